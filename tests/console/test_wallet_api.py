"""Wallets in the console: what is told is the wallet's, and a player's money is for operators."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from fangcheng.rules.v1 import rules_pb2
from fangcheng.wallet.v1 import settlement_pb2, wallet_pb2
from fangcheng_console.plain import plain
from fangcheng_console.wallet import hand_of, title_of
from fangcheng_evaluation.service import open_service
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_kit import serving
from tests.console.money import REVERSED, SHORT, TABLE, Bank, bank
from tests.console.world import KEY, Browser, console


class World:
    def __init__(self, bank: Bank, operator: Browser, viewer: Browser) -> None:
        self.bank = bank
        self.operator = operator
        self.viewer = viewer


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    settings = EvaluationSettings(dev_key=KEY, grace_seconds=0.1)
    async with (
        bank(tmp_path, KEY) as (wallet, opened),
        serving("evaluation", settings, open_service) as evaluation,
        console(tmp_path, wallet=wallet, evaluation=evaluation.address) as served,
        served.browser("operator:mei") as operator,
        served.browser("viewer:wang") as viewer,
    ):
        await opened.live()
        yield World(opened, operator, viewer)


async def told(browser: Browser, path: str, **query: Any) -> Any:
    answer = await browser.get(f"{path}?{urlencode(query, doseq=True)}" if query else path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(browser: Browser, path: str, **query: Any) -> tuple[int, str]:
    answer = await browser.get(f"{path}?{urlencode(query)}" if query else path)
    return answer.status_code, answer.json()["error"]["reason"]


async def test_an_operator_is_told_all_of_a_wallet(world: World) -> None:
    for player in ("ann", "bob"):
        found = await told(world.operator, "/api/wallet", player=player)
        asked = wallet_pb2.GetBalancesRequest(player_id=player)
        balances = await world.bank.operator.GetBalances(asked)
        holds = await world.bank.operator.ListHolds(wallet_pb2.ListHoldsRequest(player_id=player))
        assert found["money"] == {
            "balances": plain(balances)["balances"],
            "state": plain(balances)["player"],
            "holds": plain(holds)["holds"],
        }
    bob = (await told(world.operator, "/api/wallet", player="bob"))["money"]
    assert bob["balances"][-1] == {
        "currency": "silver",
        "book": "",
        "available": 0,
        "held": 0,
        "owed": 300,
    }
    assert bob["state"]["frozen"]
    assert (bob["state"]["reason"], bob["state"]["case_id"]) == ("under review", "case-82")
    ann = await told(world.operator, "/api/wallet", player="ann")
    assert ann["titles"] == [
        {
            "name_zh": "三万",
            "name_en": "Three of Characters",
            "currency": "points",
            "book": "baishan_dazui",
        }
    ]
    assert ann["books"]["baishan_dazui"]["name_zh"] == "白山麻将 (大嘴)"
    assert ann["where"] == {"problem": "UNAVAILABLE"}, "there is no matchmaking in this test"
    silver = next(one for one in ann["currencies"] if one["currency"] == "silver")
    assert silver["names"]["zh"] == "银子"


async def test_a_viewer_is_told_nothing_of_money(world: World) -> None:
    found = await told(world.viewer, "/api/wallet", player="bob")
    own = await told(world.operator, "/api/wallet", player="bob")
    assert found == {**own, "money": None}
    for query in ({}, {"currency": "silver"}, {"reference": SHORT}):
        assert await refused(world.viewer, "/api/wallet/entries", player="ann", **query) == (
            403,
            "OPERATORS_ONLY",
        )


async def test_nobody_is_told_of_wallets_without_a_session(world: World) -> None:
    world.viewer.client.cookies.clear()
    for path in ("/api/wallet?player=ann", "/api/wallet/entries?player=ann", "/api/currencies"):
        assert await refused(world.viewer, path) == (401, "NOT_SIGNED_IN")
    for path in (f"/api/settlements/{SHORT}", "/api/leaderboard?currency=silver"):
        assert await refused(world.viewer, path) == (401, "NOT_SIGNED_IN")


async def test_balances_are_told_as_they_were(world: World) -> None:
    entries = (await told(world.operator, "/api/wallet/entries", player="cat"))["entries"]
    first = entries[-1]
    then = await told(world.operator, "/api/wallet", player="cat", at=first["time"] - 1)
    assert then["money"]["balances"] == []
    later = await told(world.operator, "/api/wallet", player="cat", at=entries[0]["time"] + 1_000)
    assert later["money"]["balances"] == [
        {"currency": "silver", "book": "", "available": 680, "held": 0, "owed": 0}
    ]


async def test_a_statement_is_the_wallets_and_can_be_sifted(world: World) -> None:
    asked = wallet_pb2.ListEntriesRequest(player_id="ann")
    expected = (await world.bank.operator.ListEntries(asked)).entries
    found = await told(world.operator, "/api/wallet/entries", player="ann")
    assert [{**plain(one), "hand": hand_of(one.reference)} for one in expected] == found["entries"]
    await world.bank.deposit("cat", "points", 1, request_id="orders/7", book="jintan")
    deposited = await told(world.operator, "/api/wallet/entries", player="cat", currency="points")
    assert [(one["reference"], one["hand"]) for one in deposited["entries"]] == [("orders/7", None)]
    assert (found["next_page_token"], found["archived_before"]) == ("", None)
    paid = [one for one in found["entries"] if one["reference"] == SHORT]
    assert {one["reason"] for one in paid} >= {"win", "kong"}
    assert all(one["hand"] == {"table_id": TABLE, "hand": 7} for one in paid)
    assert all(one["labels"] == {"club": "17"} for one in paid)
    points = await told(world.operator, "/api/wallet/entries", player="ann", currency="points")
    assert [one["reason"] for one in points["entries"]] == ["kong", "deposit"]
    assert points["entries"][1]["memo"] == "the season's start"
    some = await told(world.operator, "/api/wallet/entries", player="ann", reason=["hold", "kong"])
    assert {one["reason"] for one in some["entries"]} == {"hold", "kong"}
    until = found["entries"][-2]["time"]
    early = await told(world.operator, "/api/wallet/entries", player="ann", until=until)
    assert all(one["time"] < until for one in early["entries"])
    late = await told(world.operator, "/api/wallet/entries", **{"player": "ann", "from": until})
    assert len(early["entries"]) + len(late["entries"]) == len(found["entries"])


async def test_a_long_statement_comes_in_pages(world: World) -> None:
    for number in range(60):
        await world.bank.deposit("dan", "silver", 1, request_id=f"drop {number}")
    versions: list[int] = []
    page = ""
    while True:
        found = await told(
            world.operator, "/api/wallet/entries", player="dan", currency="silver", page=page
        )
        assert len(found["entries"]) <= 50
        versions += [one["version"] for one in found["entries"]]
        page = found["next_page_token"]
        if not page:
            break
    assert versions == list(range(61, 0, -1))


async def test_a_settlement_is_the_wallets(world: World) -> None:
    for key in (SHORT, REVERSED):
        request = settlement_pb2.GetSettlementRequest(key=key)
        expected = (await world.bank.table.GetSettlement(request)).settlement
        found = await told(world.operator, f"/api/settlements/{key}")
        assert found["settlement"] == plain(expected)
        assert found["hand"] == {"table_id": TABLE, "hand": int(key[-1])}
        ids = [id for party in expected.parties for id in party.hold_ids]
        assert [hold["hold_id"] for hold in found["holds"]] == ids
    short = (await told(world.operator, f"/api/settlements/{SHORT}"))["settlement"]
    first = short["transfers"][0]
    assert (first["transfer"]["amount"], first["paid"]) == (1_234_567, 1_000)
    back = (await told(world.operator, f"/api/settlements/{REVERSED}"))["settlement"]["reversal"]
    assert (back["case_id"], {one["owed"] for one in back["parties"]}) == ("case-81", {0, 300})


async def test_a_viewer_sees_who_paid_whom_and_not_what_is_left(world: World) -> None:
    for key in (SHORT, REVERSED):
        own = (await told(world.operator, f"/api/settlements/{key}"))["settlement"]
        answer = await world.viewer.get(f"/api/settlements/{key}")
        found = answer.json()
        for open_to_all in ("key", "transfers", "fees", "time", "labels", "caps", "hold_only"):
            assert found["settlement"][open_to_all] == own[open_to_all]
        assert found["holds"] == []
        assert [party["player_id"] for party in found["settlement"]["parties"]] == [
            party["player_id"] for party in own["parties"]
        ]
        text = answer.text
        assert not any(id in text for party in own["parties"] for id in party["hold_ids"])
        assert found["settlement"]["balances"] == []
        if own["reversal"] is not None:
            assert found["settlement"]["reversal"] == {"time": own["reversal"]["time"]}
            assert "case-81" not in json.dumps(found)


async def test_leaderboards_are_for_all(world: World) -> None:
    found = await told(world.viewer, "/api/leaderboard", currency="silver", player="bob")
    asked = wallet_pb2.GetLeaderboardRequest(currency="silver", player_id="bob", page_size=50)
    assert found == plain(await world.bank.operator.GetLeaderboard(asked))
    assert [(one["player_id"], one["score"]) for one in found["standings"]] == [
        ("ann", 1_270),
        ("cat", -320),
        ("bob", -1_000),
    ]


async def test_what_there_is_not_and_what_makes_no_sense(world: World) -> None:
    for browser in (world.operator, world.viewer):
        assert await refused(browser, "/api/wallet", player="nobody") == (404, "UNKNOWN_WALLET")
        assert await refused(browser, "/api/wallet") == (400, "PLAYER_REQUIRED")
        for at in ("now", "-1", "9" * 15, "1.5"):
            assert await refused(browser, "/api/wallet", player="ann", at=at) == (
                400,
                "INVALID_TIME",
            )
        assert await refused(browser, f"/api/settlements/{TABLE}/99") == (404, "UNKNOWN_SETTLEMENT")
        assert await refused(browser, "/api/leaderboard", currency="gold") == (
            404,
            "UNKNOWN_CURRENCY",
        )
    answer = await refused(world.operator, "/api/wallet/entries", player="ann", page="nonsense")
    assert answer == (400, "INVALID_PAGE_TOKEN")


async def test_money_is_told_while_the_evaluator_is_away(tmp_path: Path) -> None:
    async with (
        bank(tmp_path, KEY) as (wallet, opened),
        console(tmp_path, wallet=wallet) as served,
        served.browser("operator:mei") as operator,
    ):
        await opened.live()
        ann = await told(operator, "/api/wallet", player="ann")
        assert ann["titles"] == []
        assert len(ann["money"]["balances"]) == 2
        assert (await told(operator, f"/api/settlements/{SHORT}"))["settlement"]["key"] == SHORT


@pytest.mark.parametrize(
    ("points", "title"),
    [
        (-5, "low"),
        (0, "low"),
        (99, "low"),
        (100, "mid"),
        (101, "mid"),
        (200, "high"),
        (900, "high"),
    ],
)
def test_a_title_is_held_from_its_points_to_where_the_next_begins(points: int, title: str) -> None:
    rules = rules_pb2.RuleSet(
        titles=[
            rules_pb2.Title(name_en="low"),
            rules_pb2.Title(name_en="mid", from_points=100),
            rules_pb2.Title(name_en="high", from_points=200),
        ]
    )
    held = title_of(rules, points)
    assert held is not None
    assert held.name_en == title
    assert title_of(rules_pb2.RuleSet(), points) is None


def test_a_word_of_a_newer_wallet_is_told_as_its_number() -> None:
    for state, expected in ((settlement_pb2.HOLD_STATE_OPEN, "open"), (77, "77")):
        assert plain(settlement_pb2.Hold(state=state))["state"] == expected


def test_numbers_that_a_page_cannot_hold_are_text() -> None:
    for score, expected in ((2**53, 2**53), (2**53 + 1, str(2**53 + 1)), (-(2**60), str(-(2**60)))):
        assert plain(wallet_pb2.Standing(score=score))["score"] == expected
