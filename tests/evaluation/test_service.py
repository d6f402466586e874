"""The promises of `EvaluationService`, over gRPC."""

from __future__ import annotations

import asyncio
import threading
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc
from hypothesis import HealthCheck, given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from fangcheng.evaluation.v1 import evaluation_pb2 as ev
from fangcheng.evaluation.v1 import evaluation_pb2_grpc
from fangcheng.rules.v1 import rules_pb2
from fangcheng_client import Problem, connect, explain
from fangcheng_evaluation import core, service
from fangcheng_evaluation.service import analysis_of, open_service, score_of
from fangcheng_kit import Running, serving
from fangcheng_kit.tokens import mint_token
from fangcheng_kit.validation import Limits
from fangcheng_rules import rulesets
from fangcheng_rules.errors import RulesError
from fangcheng_rules.scoring import Escape, FinishedHand, Score, SeatEnd, Win
from fangcheng_rules.tiles import code
from tests.evaluation import wire
from tests.evaluation.conftest import KEY, settings, until_ready
from tests.evaluation.hostile import messages, mutated
from tests.matchmaking.world import eventually
from tests.rules.golden import golden_hands

Stub = evaluation_pb2_grpc.EvaluationServiceStub

READY = "123456789m11p44z"
WON = "123456789m111p44z"


async def problem(call: Awaitable[object]) -> Problem:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return explain(error.value)


async def test_rule_sets_are_described(stub: Stub) -> None:
    found = (await stub.ListRuleSets(ev.ListRuleSetsRequest())).rule_sets
    assert [(one.id, one.revision) for one in found] == [
        (one.id, one.revision) for one in rulesets.known()
    ]
    kele = found[0]
    assert (kele.name_zh, len(kele.tiles)) == ("科乐白山麻将", 136)
    assert {tile: list(kele.tiles).count(tile) for tile in set(kele.tiles)} == {
        code(kind): 4 for kind in range(34)
    }
    options = {option.id: option for option in kele.options}
    assert options["cap"].type == rules_pb2.OPTION_TYPE_INTEGER
    assert options["cap"].default_value.integer == 50
    assert options["cap"].maximum > 50
    assert options["piao"].type == rules_pb2.OPTION_TYPE_BOOL
    assert options["piao"].default_value.boolean is True
    items = {item.id: item for item in kele.fan_items}
    assert (items["twin_seq"].name_zh, items["twin_seq"].fan) == ("一般高", 1)
    assert items["thirteen_orphans"].flat
    assert list(items["triple_seq"].excludes) == ["twin_seq"]
    whose = [items[item].whose for item in ("self_draw", "discarder", "closed")]
    assert whose == ["winner", "loser", "both"]
    assert all(item.meaning for item in kele.fan_items)
    assert all(option.meaning for option in kele.options)


async def test_an_older_revision_is_listed_after_the_newest_and_still_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older = rulesets.rule_set("baishan_kele")
    newest = replace(older, revision=older.revision + 1, score=lambda options, hand: Score())
    both = {(rules.id, rules.revision): rules for rules in (newest, older)}
    monkeypatch.setattr(rulesets, "_KNOWN", both)
    monkeypatch.setattr(rulesets, "_NEWEST", {newest.id: newest})
    core._chosen.cache_clear()
    try:
        async with (
            serving("evaluation", settings(), open_service) as server,
            connect(server.address, token=mint_token(KEY, "operator")) as channel,
        ):
            stub = evaluation_pb2_grpc.EvaluationServiceStub(channel)
            found = (await stub.ListRuleSets(ev.ListRuleSetsRequest())).rule_sets
            assert [(one.id, one.revision) for one in found] == list(both)
            request = wire.golden_request(golden_hands(older.id)[0], older.id)
            paid = {}
            for revision in (older.revision, newest.revision):
                request.rules.revision = revision
                paid[revision] = len((await stub.Score(request)).score.transfers)
            assert paid[older.revision] > 0
            assert paid[newest.revision] == 0
    finally:
        core._chosen.cache_clear()


async def test_titles_are_told_with_the_points_from_which_they_are_held(stub: Stub) -> None:
    found = (await stub.ListRuleSets(ev.ListRuleSetsRequest())).rule_sets
    for told, rules in zip(found, rulesets.known(), strict=True):
        bounds = [t.from_points if t.HasField("from_points") else None for t in told.titles]
        assert bounds == [title.from_points for title in rules.titles]
        assert [t.name_zh for t in told.titles] == [title.name_zh for title in rules.titles]
        assert all(title.name_en for title in told.titles)


async def test_what_can_be_declared_is_told_with_its_names(stub: Stub) -> None:
    found = (await stub.ListRuleSets(ev.ListRuleSetsRequest())).rule_sets
    for told, rules in zip(found, rulesets.known(), strict=True):
        assert [(one.id, one.name_zh, one.name_en, one.meaning) for one in told.declarations] == [
            (one.id, one.name_zh, one.name_en, one.meaning) for one in rules.declares
        ]
    names = [one.name_zh for told in found for one in told.declarations]
    assert names == ["听", "报听", "明楼", "暗楼"]


async def test_what_only_some_rule_sets_have_is_told_with_them(stub: Stub) -> None:
    found = (await stub.ListRuleSets(ev.ListRuleSetsRequest())).rule_sets
    told = {one.id: one for one in found}
    assert [id for id, one in told.items() if one.whirlwind] == ["baicheng"]
    assert [id for id, one in told.items() if one.treasure] == ["baicheng"]
    assert {id: list(one.piao) for id, one in told.items() if one.piao} == {
        "baishan_kele": [0, 5, 10]
    }
    assert [id for id, one in told.items() if one.units_of_waits] == ["shandong", "jintan"]
    for id, flowers in {"jintan": 8, "shandong": 0}.items():
        assert told[id].flowers_win == flowers, id


async def test_a_ready_hand_tells_its_waits(stub: Stub) -> None:
    analysis = (await stub.Analyze(wire.analyze(READY))).analysis
    assert [wait.tile for wait in analysis.waits] == [21, 44]
    assert all(wait.least_fan >= 1 for wait in analysis.waits), "closed counts"
    assert not analysis.wins
    assert not analysis.discards
    assert not analysis.useful_tiles, "not asked for"


async def test_a_complete_hand_tells_its_readings_and_what_it_counts(stub: Stub) -> None:
    analysis = (await stub.Analyze(wire.analyze(WON, progress=True))).analysis
    assert analysis.wins
    assert analysis.shanten == -1
    (reading,) = analysis.readings
    assert reading.shape == "standard"
    assert [list(entry.tiles) for entry in reading.sets] == [
        [11, 12, 13],
        [14, 15, 16],
        [17, 18, 19],
        [21, 21, 21],
        [44, 44],
    ]
    assert [(item.id, item.fan, item.count) for item in analysis.fan_items] == [("closed", 1, 1)]
    assert {choice.tile for choice in analysis.discards} == {*range(11, 20), 21, 44}


async def test_kongs_tell_what_they_leave(stub: Stub) -> None:
    analysis = (await stub.Analyze(wire.analyze("111m3456p2z [222z] [789s]"))).analysis
    assert [(kong.tile, kong.kind) for kong in analysis.kongs] == [(42, "added_kong")]
    four = (await stub.Analyze(wire.analyze("1111m23456p55s [789s]"))).analysis
    assert [(kong.tile, kong.kind) for kong in four.kongs] == [(11, "concealed_kong")]


HANDS_THAT_NOBODY_HOLDS = [
    ([11] * 5 + [12] * 4 + [13] * 4, [], "FIFTH_COPY", "hand.concealed"),
    ([11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 21, 21], [], "WRONG_TILE_COUNT", "hand.concealed"),
    ([*range(11, 20), 21, 21, 21, 20], [], "UNKNOWN_TILE", "hand.concealed[12]"),
    ([*range(11, 20), 21, 21, 21, 51], [], "TILE_NOT_PLAYED", "hand.concealed"),
    (
        [*range(11, 20), 21],
        [rules_pb2.Meld(kind="chi", tiles=[11, 12, 14])],
        "INVALID_MELD",
        "hand.melds[0]",
    ),
    (
        [*range(11, 20), 21],
        [rules_pb2.Meld(kind="chow", tiles=[11, 12, 13])],
        "INVALID_MELD",
        "hand.melds[0].kind",
    ),
    (
        [*range(11, 20), 21],
        [rules_pb2.Meld(kind="concealed_kong", tiles=[0, 0, 0, 0])],
        "UNKNOWN_TILE",
        "hand.melds[0].tiles[0]",
    ),
    (
        [*range(11, 20), 21],
        [rules_pb2.Meld(kind="pong", tiles=[22, 22, 22], claimed_tile=23)],
        "INVALID_MELD",
        "hand.melds[0]",
    ),
    ([], [], "INVALID_REQUEST", "hand.concealed"),
    ([11] * 15, [], "INVALID_REQUEST", "hand.concealed"),
    ([*range(11, 20), 21, 21, 21, 99], [], "INVALID_REQUEST", "hand.concealed[12]"),
]


@pytest.mark.parametrize(("concealed", "melds", "reason", "field"), HANDS_THAT_NOBODY_HOLDS)
async def test_a_hand_that_nobody_can_hold_is_refused_with_its_field(
    stub: Stub, concealed: list[int], melds: list[rules_pb2.Meld], reason: str, field: str
) -> None:
    request = ev.AnalyzeRequest(rules=wire.KELE, hand=ev.Hand(concealed=concealed, melds=melds))
    told = await problem(stub.Analyze(request))
    assert (told.code, told.reason, told.field) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        reason,
        field,
    )


def with_option(key: str, **value: object) -> rules_pb2.RuleSetChoice:
    return rules_pb2.RuleSetChoice(id="baishan_kele", options={key: rules_pb2.OptionValue(**value)})


CHOICES_THAT_ARE_NONE = [
    (
        rules_pb2.RuleSetChoice(id="none"),
        grpc.StatusCode.NOT_FOUND,
        "UNKNOWN_RULE_SET",
        "rules.id",
    ),
    (
        rules_pb2.RuleSetChoice(id="baishan_kele", revision=999),
        grpc.StatusCode.FAILED_PRECONDITION,
        "UNKNOWN_REVISION",
        "rules.revision",
    ),
    *(
        (choice, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_OPTION", field)
        for choice, field in [
            (with_option("cap", integer=-1), "rules.options.cap"),
            (with_option("cap", boolean=True), "rules.options.cap"),
            (with_option("cap", text="50"), "rules.options.cap"),
            (with_option("piao", integer=1), "rules.options.piao"),
            (with_option("none", integer=1), "rules.options.none"),
        ]
    ),
]


@pytest.mark.parametrize(("choice", "code_", "reason", "field"), CHOICES_THAT_ARE_NONE)
async def test_rules_that_are_none_are_refused_with_their_field(
    stub: Stub,
    choice: rules_pb2.RuleSetChoice,
    code_: grpc.StatusCode,
    reason: str,
    field: str,
) -> None:
    told = await problem(stub.Analyze(ev.AnalyzeRequest(rules=choice, hand=wire.hand(READY))))
    assert (told.code, told.reason, told.field) == (code_, reason, field)
    # And a good choice is not taken for it afterwards, or the other way round.
    assert (await stub.Analyze(wire.analyze(READY))).analysis.waits


async def test_an_option_of_another_type_is_not_taken_for_an_equal_one_seen_before(
    stub: Stub,
) -> None:
    """True equals 1 to Python; a rule set that is remembered by its options must not think so."""
    hand = wire.hand(READY)
    for good, bad in [
        (with_option("cap", integer=1), with_option("cap", boolean=True)),
        (with_option("piao", boolean=False), with_option("piao", integer=0)),
    ]:
        assert (await stub.Analyze(ev.AnalyzeRequest(rules=good, hand=hand))).analysis.waits
        told = await problem(stub.Analyze(ev.AnalyzeRequest(rules=bad, hand=hand)))
        assert told.reason == "INVALID_OPTION"


def won_on_a_discard(**more: object) -> FinishedHand:
    winner = SeatEnd(tuple(wire.parse_hand(READY).concealed))
    fields = {"winners": (0,), "tile": 9, "by": "discard", "source": 1, **more}
    return FinishedHand(0, (winner, SeatEnd(), SeatEnd(), SeatEnd()), Win(**fields))


async def test_a_claim_that_is_no_win_is_refused(stub: Stub) -> None:
    request = ev.ScoreRequest(rules=wire.KELE, hand=wire.finished(won_on_a_discard(tile=20)))
    told = await problem(stub.Score(request))
    assert (told.code, told.reason, told.field) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "NOT_A_WIN",
        "hand.seats[0].concealed",
    )


@pytest.mark.parametrize(
    ("hand", "field"),
    [
        (won_on_a_discard(source=None), "hand.win.from_seat"),
        (won_on_a_discard(source=0), "hand.win.from_seat"),
        (won_on_a_discard(after_kong="exposed"), "hand.win.after_kong"),
        (won_on_a_discard(kong_source=2), "hand.win.kong_from_seat"),
        (won_on_a_discard(on_deal=True), "hand.win.on_deal"),
    ],
)
async def test_an_end_that_cannot_have_come_about_is_refused(
    stub: Stub, hand: FinishedHand, field: str
) -> None:
    told = await problem(stub.Score(ev.ScoreRequest(rules=wire.KELE, hand=wire.finished(hand))))
    assert (told.code, told.reason, told.field) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_END",
        field,
    )


async def test_the_house_is_no_seat(stub: Stub) -> None:
    hand = wire.finished(FinishedHand(0, (SeatEnd(),) * 4, Escape(2)))
    score = (await stub.Score(ev.ScoreRequest(rules=wire.KELE, hand=hand))).score
    (transfer,) = score.transfers
    assert (transfer.from_seat, transfer.HasField("to_seat"), transfer.reason) == (
        2,
        False,
        "escape",
    )


async def test_one_bad_item_of_a_batch_gets_a_problem_and_the_others_answers(stub: Stub) -> None:
    """One bad item must not fail its batch, whether the rules or the limits refuse it."""
    good = wire.analyze(READY)
    bad = [
        ev.AnalyzeRequest(rules=wire.KELE, hand=ev.Hand(concealed=concealed, melds=melds))
        for concealed, melds, _, _ in HANDS_THAT_NOBODY_HOLDS
    ]
    bad += [ev.AnalyzeRequest(rules=one[0], hand=good.hand) for one in CHOICES_THAT_ARE_NONE]
    bad += [ev.AnalyzeRequest(), ev.AnalyzeRequest(rules=rules_pb2.RuleSetChoice(id="x" * 65))]
    requests = [one for pair in zip(bad, [good] * len(bad), strict=True) for one in pair]
    response = await stub.AnalyzeBatch(ev.AnalyzeBatchRequest(requests=requests))
    expected = [(reason, field) for _, _, reason, field in HANDS_THAT_NOBODY_HOLDS]
    expected += [(reason, field) for _, _, reason, field in CHOICES_THAT_ARE_NONE]
    expected += [("INVALID_REQUEST", "rules"), ("INVALID_REQUEST", "rules.id")]
    told = [(one.problem.reason, one.problem.field) for one in response.results[::2]]
    assert told == expected
    assert all(one.problem.message for one in response.results[::2])
    answer = (await stub.Analyze(good)).analysis
    assert all(one.analysis == answer for one in response.results[1::2])


async def test_the_size_of_a_batch_is_bounded(stub: Stub) -> None:
    for requests in ([], [wire.analyze(READY)] * 1_001):
        told = await problem(stub.AnalyzeBatch(ev.AnalyzeBatchRequest(requests=requests)))
        assert (told.code, told.field) == (grpc.StatusCode.INVALID_ARGUMENT, "requests")
    full = await stub.AnalyzeBatch(ev.AnalyzeBatchRequest(requests=[wire.analyze(READY)] * 1_000))
    assert len(full.results) == 1_000


async def test_a_message_of_five_megabytes_is_refused(stub: Stub) -> None:
    request = wire.analyze(READY)
    request.rules.id = "x" * 5_000_000
    told = await problem(stub.Analyze(request))
    assert (told.code, told.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE")


async def test_batches_and_scores_are_not_for_players(running: Running) -> None:
    async with connect(running.address, token=mint_token(KEY, "player:p")) as channel:
        stub = evaluation_pb2_grpc.EvaluationServiceStub(channel)
        assert (await stub.Analyze(wire.analyze(READY))).analysis.waits
        batch = ev.AnalyzeBatchRequest(requests=[wire.analyze(READY)])
        told = await problem(stub.AnalyzeBatch(batch))
        assert told.code is grpc.StatusCode.PERMISSION_DENIED


class Gate:
    """Stands in for the rules in the threads: counts what passes, and can be held shut."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.passed = 0

    def __call__(self, request: ev.AnalyzeRequest) -> ev.Analysis:
        assert self.open.wait(30)
        self.passed += 1
        return ev.Analysis(wins=True)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate()
    monkeypatch.setattr(service, "analysis_of", gate)
    return gate


def batch(hands: int) -> ev.AnalyzeBatchRequest:
    return ev.AnalyzeBatchRequest(requests=[wire.analyze(READY)] * hands)


async def test_beyond_its_queue_the_evaluator_is_busy_and_says_until_when(gate: Gate) -> None:
    async with _served(most_waiting_hands=1_000) as (running, channel):
        stub: Stub = evaluation_pb2_grpc.EvaluationServiceStub(channel)
        first = asyncio.ensure_future(stub.AnalyzeBatch(batch(600)))
        await eventually(lambda: _waiting(running, "bulk") == 600)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.AnalyzeBatch(batch(401))
        told = explain(error.value)
        assert (told.code, told.reason) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "EVALUATOR_BUSY",
        )
        trailing = dict(error.value.trailing_metadata())
        details = Status.FromString(trailing["grpc-status-details-bin"]).details
        retry = RetryInfo()
        assert any(detail.Unpack(retry) for detail in details)
        assert 0 < retry.retry_delay.ToTimedelta().total_seconds() <= 5

        second = asyncio.ensure_future(stub.AnalyzeBatch(batch(400)))
        await eventually(lambda: _waiting(running, "bulk") == 1_000)
        gate.open.set()
        answers = await asyncio.gather(first, second)
        assert [len(answer.results) for answer in answers] == [600, 400]
        assert _waiting(running, "bulk") == 0
        assert len((await stub.AnalyzeBatch(batch(401))).results) == 401


async def test_single_hands_do_not_wait_behind_a_batch(
    stub: Stub, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    monkeypatch.setattr(service, "score_of", gate)
    bulk = asyncio.ensure_future(
        stub.ScoreBatch(ev.ScoreBatchRequest(requests=[_score_request()] * 100))
    )
    await eventually(lambda: _waiting(running, "bulk") == 100)
    assert (await stub.Analyze(wire.analyze(READY))).analysis.waits
    assert not bulk.done()
    bulk.cancel()
    gate.open.set()


@pytest.mark.parametrize("how", ["cancel", "deadline"])
async def test_a_caller_that_is_gone_costs_no_more_than_a_chunk(gate: Gate, how: str) -> None:
    async with _served(chunk_hands=10) as (running, channel):
        stub: Stub = evaluation_pb2_grpc.EvaluationServiceStub(channel)
        call = stub.AnalyzeBatch(batch(1_000), timeout=0.2 if how == "deadline" else 30)
        await eventually(lambda: _waiting(running, "bulk") == 1_000 or call.done())
        if how == "cancel":
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        else:
            told = await problem(call)
            assert told.code is grpc.StatusCode.DEADLINE_EXCEEDED
        await eventually(lambda: _waiting(running, "bulk") == 0)
        gate.open.set()
        assert len((await stub.AnalyzeBatch(batch(20))).results) == 20
        assert gate.passed <= 10 + 20


async def test_health_is_told_while_the_threads_are_at_work(
    stub: Stub, running: Running, gate: Gate
) -> None:
    calls = [asyncio.ensure_future(stub.AnalyzeBatch(batch(1_000))) for _ in range(3)]
    await eventually(lambda: _waiting(running, "bulk") == 3_000)
    async with grpc.aio.insecure_channel(running.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=10)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    gate.open.set()
    assert [len(answer.results) for answer in await asyncio.gather(*calls)] == [1_000] * 3


async def test_the_evaluator_serves_only_once_its_kernels_are_warm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warm = threading.Event()
    monkeypatch.setattr(service, "warm_up", lambda: warm.wait(30))
    async with (
        serving("evaluation", settings(), open_service) as running,
        grpc.aio.insecure_channel(running.address) as channel,
    ):
        health = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service=service.SERVICE)
        told = (await health.Check(request)).status
        warm.set()
        assert told == health_pb2.HealthCheckResponse.NOT_SERVING
        await until_ready(running)
        assert (await health.Check(request)).status == health_pb2.HealthCheckResponse.SERVING


async def test_metrics_count_hands_by_call_and_rule_set(stub: Stub, running: Running) -> None:
    await stub.Analyze(wire.analyze(READY))
    other = ev.AnalyzeRequest(rules=rules_pb2.RuleSetChoice(id="p17"), hand=wire.hand(READY))
    await stub.AnalyzeBatch(ev.AnalyzeBatchRequest(requests=[wire.analyze(READY)] * 3 + [other]))
    page = await asyncio.to_thread(
        lambda: urllib.request.urlopen(f"http://{running.metrics_address}/metrics").read().decode()
    )
    lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    name = "fangcheng_evaluation_"
    hands = name + "hands_total{{answered={},call={},rule_set={}}}"
    assert lines[hands.format('"yes"', '"Analyze"', '"baishan_kele"')] == "1.0"
    assert lines[hands.format('"yes"', '"AnalyzeBatch"', '"baishan_kele"')] == "3.0"
    assert lines[hands.format('"no"', '"AnalyzeBatch"', '"unknown"')] == "1.0"
    assert lines[name + 'waiting_hands{lane="bulk"}'] == "0.0"
    assert lines[name + 'queue_seconds_count{lane="bulk"}'] == "1.0"
    assert lines[name + 'work_seconds_count{lane="single"}'] == "1.0"
    assert lines[name + 'chunk_hands_sum{lane="bulk"}'] == "4.0"
    assert lines[name + 'kernel_seconds_count{rule_set="baishan_kele"}'] == "2.0"
    assert lines[name + 'waiting_hands_limit{lane="single"}'] == "1000.0"
    assert lines[name + "threads"] == "3.0"
    assert lines[name + "busy_threads"] == "0.0"
    assert "p17" not in page


HOSTILE_HANDS = st.one_of(
    messages(ev.AnalyzeRequest.DESCRIPTOR),
    mutated(
        [
            wire.analyze(WON, progress=True),
            wire.analyze("111m3456p2z [222z] [789s]"),
            wire.analyze("19m19p19s1234567z"),
        ]
    ),
)
HOSTILE_ENDS = st.one_of(
    messages(ev.ScoreRequest.DESCRIPTOR),
    mutated(
        [wire.golden_request(hand) for hand in golden_hands("baishan_kele") if not hand.refused]
    ),
)
ORDERLY = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION,
}


@given(HOSTILE_HANDS)
@example_settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_no_message_makes_analyze_fail(stub: Stub, request_: ev.AnalyzeRequest) -> None:
    assert await _status(stub.Analyze(request_)) in ORDERLY
    (result,) = (await stub.AnalyzeBatch(ev.AnalyzeBatchRequest(requests=[request_]))).results
    assert result.WhichOneof("result") is not None


@given(HOSTILE_ENDS)
@example_settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_no_message_makes_score_fail(stub: Stub, request_: ev.ScoreRequest) -> None:
    assert await _status(stub.Score(request_)) in ORDERLY
    (result,) = (await stub.ScoreBatch(ev.ScoreBatchRequest(requests=[request_]))).results
    assert result.WhichOneof("result") is not None


@given(HOSTILE_ENDS)
@example_settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_the_rules_refuse_of_a_finished_hand_has_a_field(request_: ev.ScoreRequest) -> None:
    _is_answered_or_refused(score_of, request_)


@given(HOSTILE_HANDS)
@example_settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_the_rules_refuse_of_a_hand_has_a_field(request_: ev.AnalyzeRequest) -> None:
    _is_answered_or_refused(analysis_of, request_)


def _is_answered_or_refused(answer: Callable[[object], object], request: object) -> None:
    """Whatever the limits let through and what they do not: never another error."""
    refused: RulesError | None = None
    try:
        answer(request)
    except RulesError as error:
        refused = error
    if refused is not None:
        assert refused.field is not None
        assert refused.field.split(".")[0].split("[")[0] in ("rules", "hand", "flowers")
        assert refused.reason.isupper()


async def test_threads_share_nothing_that_is_not_theirs(stub: Stub) -> None:
    """Many batches at once are answered as each alone."""
    limits = Limits()
    for request in (wire.analyze(READY), wire.analyze(WON, progress=True)):
        limits.check(request)
    requests = [wire.analyze(READY), wire.analyze(WON, progress=True), ev.AnalyzeRequest()] * 50
    alone = await stub.AnalyzeBatch(ev.AnalyzeBatchRequest(requests=requests))
    together = await asyncio.gather(
        *(stub.AnalyzeBatch(ev.AnalyzeBatchRequest(requests=requests)) for _ in range(8))
    )
    assert all(answer == alone for answer in together)


@asynccontextmanager
async def _served(**more: object) -> AsyncIterator[tuple[Running, grpc.aio.Channel]]:
    async with serving("evaluation", settings(**more), open_service) as running:
        await until_ready(running)
        async with connect(running.address, token=mint_token(KEY, "operator")) as channel:
            yield running, channel


async def _status(call: Awaitable[object]) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def _score_request() -> ev.ScoreRequest:
    return ev.ScoreRequest(rules=wire.KELE, hand=wire.finished(won_on_a_discard()))


def _waiting(running: Running, lane: str) -> float | None:
    return running.kit.registry.get_sample_value(
        "fangcheng_evaluation_waiting_hands", {"lane": lane}
    )
