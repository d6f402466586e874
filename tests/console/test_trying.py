"""Try a hand: answers and refusals are the evaluator's, counted and sorted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from fangcheng.evaluation.v1 import evaluation_pb2 as ev
from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng.rules.v1 import rules_pb2
from fangcheng_client import Problem, connect, explain
from fangcheng_client.reasons import catalogue
from fangcheng_console.plain import plain
from fangcheng_console.rule_sets import RuleSets
from fangcheng_console.trying import analysed
from fangcheng_evaluation.service import open_service
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_kit import serving
from fangcheng_kit.tokens import mint_token
from fangcheng_rules.notation import parse_hand
from fangcheng_rules.rulesets import BUILT_IN
from tests.console.world import KEY, Browser, console
from tests.evaluation import wire
from tests.evaluation.conftest import until_ready
from tests.rules.golden import golden_hands
from tests.rules.test_golden_waits import rows


class World:
    def __init__(self, browser: Browser, stub: Any) -> None:
        self.browser = browser
        self.stub = stub

    async def post(self, path: str, message: Any) -> tuple[int, Any]:
        body = message
        if not isinstance(message, dict):
            body = MessageToDict(message, preserving_proto_field_name=True)
        answer = await self.browser.post(path, body)
        return answer.status_code, answer.json()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    settings = EvaluationSettings(dev_key=KEY, grace_seconds=0.1)
    async with serving("evaluation", settings, open_service) as running:
        await until_ready(running)
        async with (
            console(tmp_path, evaluation=running.address) as served,
            served.browser("viewer:wang") as browser,
            connect(running.address, mint_token(KEY, "service:table")) as channel,
        ):
            yield World(browser, EvaluationServiceStub(channel))


async def test_rule_sets_are_told_as_the_evaluator_lists_them(world: World) -> None:
    listed = (await world.stub.ListRuleSets(ev.ListRuleSetsRequest())).rule_sets
    told = (await world.browser.get("/api/rule-sets")).json()["rule_sets"]
    assert [(one["id"], one["revision"]) for one in told] == [
        (one.id, one.revision) for one in listed
    ]
    for one, rules in zip(told, listed, strict=True):
        assert one["tiles"] == {str(tile): list(rules.tiles).count(tile) for tile in rules.tiles}
        assert [item["meaning"] for item in one["fan_items"]] == [
            item.meaning for item in rules.fan_items
        ]
        assert [option["id"] for option in one["options"]] == [spec.id for spec in rules.options]
    kele = told[0]
    assert kele["newest"]
    assert kele["piao"] == [0, 5, 10]
    assert kele["options"][0] == {
        "id": "cap",
        "type": "integer",
        "default": 50,
        "minimum": 0,
        "maximum": 100_000,
        "choices": [],
        "name_zh": "封顶",
        "meaning": "Units that one loser pays for the win at most; 0: no cap.",
    }
    length = next(one for rules in told for one in rules["options"] if one["id"] == "length")
    assert (length["type"], length["default"]) == ("choice", "open")
    assert length["choices"] == ["open", "round", "game"]
    titles = next(rules["titles"] for rules in told if rules["id"] == "shandong")
    assert [title["from_points"] for title in titles[:2]] == [None, 101]


async def test_the_last_rule_sets_are_shown_while_the_evaluator_is_away() -> None:
    class Evaluation:
        asked = 0

        async def ListRuleSets(
            self, request: ev.ListRuleSetsRequest, **more: float
        ) -> ev.ListRuleSetsResponse:
            self.asked += 1
            await asyncio.sleep(0)
            if self.asked == 2:
                raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, (), ())
            rules = rules_pb2.RuleSet(id="kele", revision=self.asked)
            return ev.ListRuleSetsResponse(rule_sets=[rules])

    evaluation, now = Evaluation(), [0.0]
    rule_sets = RuleSets(evaluation, clock=lambda: now[0])
    for at, revision in ((0.0, 1), (59.0, 1), (61.0, 1), (62.0, 1), (67.0, 3), (100.0, 3)):
        now[0] = at
        # All who ask at once have the same answer.
        for known in await asyncio.gather(*(rule_sets.known() for _ in range(3))):
            assert [one.revision for one in known] == [revision], at
    assert evaluation.asked == 3
    assert await rule_sets.find("kele", 2) is None
    assert (await rule_sets.find("kele")) == (await rule_sets.find("kele", 3))


async def test_an_evaluator_that_never_answered_is_told_of(tmp_path: Path) -> None:
    async with console(tmp_path) as served, served.browser("viewer:wang") as browser:
        answer = await browser.get("/api/rule-sets")
    assert (answer.status_code, answer.json()["error"]["reason"]) == (503, "UNAVAILABLE")


@pytest.mark.parametrize("rules", BUILT_IN, ids=lambda rules: rules.id)
async def test_an_analysis_is_the_evaluators(world: World, rules: Any) -> None:
    listed = (await world.stub.ListRuleSets(ev.ListRuleSetsRequest())).rule_sets
    tiles = next(list(one.tiles) for one in listed if one.id == rules.id)
    for text, _, _ in rows(rules)[::6]:
        hand = parse_hand(text)
        fourteen = hand.plus(next(kind for kind in rules.wall_tiles if hand.held[kind] < 3))
        for held in (hand, fourteen):
            request = ev.AnalyzeRequest(
                rules=wire.choice({}, rules.id), hand=wire.hand(held), progress=True
            )
            expected = (await world.stub.Analyze(request)).analysis
            request.progress = False
            status, told = await world.post("/api/try/analyze", request)
            assert status == 200, told
            found = told["analysis"]
            for key in ("wins", "readings", "shanten", "shape_shanten", "fan_items"):
                assert found[key] == plain(expected)[key], (text, key)
            worth = [(one["tile"], one["least_fan"], one["least_units"]) for one in found["waits"]]
            assert worth == [(w.tile, w.least_fan, w.least_units) for w in expected.waits]
            assert [one["tile"] for one in found["useful"]] == list(expected.useful_tiles)
            own = list(request.hand.concealed)
            own += [tile for meld in request.hand.melds for tile in meld.tiles]
            left = {tile: tiles.count(tile) - own.count(tile) for tile in tiles}
            for one in (*found["waits"], *found["useful"]):
                assert one["left"] == left[one["tile"]]
            for list_of, total in (("waits", "waits_left"), ("useful", "useful_left")):
                assert found[total] == sum(one["left"] for one in found[list_of])
            by_tile = {choice.tile: choice for choice in expected.discards}
            assert {choice["tile"] for choice in found["discards"]} == by_tile.keys()
            for choice in found["discards"]:
                assert choice["shanten"] == by_tile[choice["tile"]].shanten
                assert [one["tile"] for one in choice["useful"]] == list(
                    by_tile[choice["tile"]].useful_tiles
                )
            quality = [(one["shanten"], -one["useful_left"]) for one in found["discards"]]
            assert quality == sorted(quality)
            assert [one["rank"] for one in found["discards"]] == [
                quality.index(one) + 1 for one in quality
            ]


def test_discards_that_are_as_good_as_each_other_share_a_rank() -> None:
    def choice(tile: int, shanten: int, *useful: int) -> ev.DiscardChoice:
        return ev.DiscardChoice(tile=tile, shanten=shanten, useful_tiles=useful)

    analysis = ev.Analysis(
        discards=[choice(11, 2, 12, 13), choice(12, 1, 21), choice(19, 2, 31, 41), choice(41, 1)]
    )
    asked = ev.AnalyzeRequest(hand=ev.Hand(concealed=[12, 21, 21]))
    found = analysed(asked, analysis, dict.fromkeys(range(11, 48), 4))["discards"]
    assert [(one["tile"], one["rank"], one["useful_left"]) for one in found] == [
        (12, 1, 2),
        (41, 2, 0),
        (19, 3, 8),
        (11, 4, 7),
    ]
    asked.hand.concealed[0] = 19
    found = analysed(asked, analysis, dict.fromkeys(range(11, 48), 4))["discards"]
    assert [(one["tile"], one["rank"]) for one in found] == [(12, 1), (41, 2), (11, 3), (19, 3)]


STATUSES = {grpc.StatusCode.INVALID_ARGUMENT: 400, grpc.StatusCode.FAILED_PRECONDITION: 409}


async def scored(stub: Any, request: ev.ScoreRequest) -> rules_pb2.Score | Problem:
    try:
        return (await stub.Score(request)).score
    except grpc.aio.AioRpcError as error:
        return explain(error)


@pytest.mark.parametrize("rules", BUILT_IN, ids=lambda rules: rules.id)
async def test_a_score_is_the_evaluators_and_so_is_a_refusal(world: World, rules: Any) -> None:
    refused = 0
    for golden in golden_hands(rules.id)[::3]:
        request = wire.golden_request(golden, rules.id)
        status, told = await world.post("/api/try/score", request)
        expected = await scored(world.stub, request)
        if isinstance(expected, Problem):
            assert status == STATUSES[expected.code]
            assert told["error"] == {
                "reason": expected.reason,
                "message": expected.message,
                "field": expected.field,
                "zh": catalogue()[expected.reason].text("zh").message,
            }
            refused += 1
            continue
        assert status == 200, (golden.title, told)
        net, house = wire.net(expected)
        assert told["score"] == {**plain(expected), "net": list(net), "house": house}
        assert (net, house) == (golden.net or (0, 0, 0, 0), golden.house)
    assert refused or rules.id not in ("baishan_kele", "jintan")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"hand": {"concealed": "no list"}}, (400, "INVALID_REQUEST")),
        ({"hands": {}}, (400, "INVALID_REQUEST")),
        ({"rules": {"id": "nothing"}, "hand": {"concealed": [11]}}, (404, "UNKNOWN_RULE_SET")),
        ({}, (400, "INVALID_REQUEST")),
    ],
)
async def test_garbage_is_refused(world: World, body: Any, expected: tuple[int, str]) -> None:
    status, told = await world.post("/api/try/analyze", body)
    assert (status, told["error"]["reason"]) == expected


async def test_hands_are_for_people_who_have_signed_in(world: World) -> None:
    world.browser.client.cookies.clear()
    for path in ("/api/try/analyze", "/api/try/score"):
        status, told = await world.post(path, {})
        assert (status, told["error"]["reason"]) == (401, "NOT_SIGNED_IN")
