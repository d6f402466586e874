"""The golden hands once more, through `Score` and `Analyze` over gRPC."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest

from fangcheng.evaluation.v1 import evaluation_pb2 as ev
from fangcheng.evaluation.v1 import evaluation_pb2_grpc
from fangcheng.rules.v1 import rules_pb2
from fangcheng_client import explain
from fangcheng_rules.hand import Hand
from fangcheng_rules.notation import parse_hand, parse_tiles
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import BUILT_IN
from fangcheng_rules.scoring import draws_treasure
from fangcheng_rules.scoring import score as in_process
from fangcheng_rules.tiles import code
from tests.evaluation import wire
from tests.rules.golden import GoldenHand, golden_hands
from tests.rules.test_golden_waits import rows

Stub = evaluation_pb2_grpc.EvaluationServiceStub

HANDS = [(rules, hand) for rules in BUILT_IN for hand in golden_hands(rules.id)]
FIELDS = {"end.source": "win.from_seat", "end.kong_source": "win.kong_from_seat"}


def titled(hands: list[tuple[RuleSet, GoldenHand]]) -> list[object]:
    return [
        pytest.param(rules, hand, id=f"{rules.id}:{hand.line} {hand.title}")
        for rules, hand in hands
    ]


def counted(score: rules_pb2.Score) -> dict[int, dict[str, int | str]]:
    found: dict[int, dict[str, int | str]] = {}
    for entry in (*score.winners, *score.losers):
        items = {item.id: item.fan or "flat" for item in entry.items}
        if items:
            found[entry.seat] = items
    return found


def field_on_the_wire(field: str) -> str:
    if field.startswith("options."):
        return f"rules.{field}"
    return "hand." + FIELDS.get(field, field.replace("end.", "win."))


@pytest.mark.parametrize(
    ("rules", "hand"), titled([(rules, hand) for rules, hand in HANDS if not hand.refused])
)
async def test_a_finished_hand_pays_over_the_wire_what_the_page_says(
    stub: Stub, rules: RuleSet, hand: GoldenHand
) -> None:
    score = (await stub.Score(wire.golden_request(hand, rules.id))).score
    assert counted(score) == hand.fan
    assert wire.net(score) == (hand.net, hand.house)
    here = in_process(rules, hand.options, hand.finished)
    assert [loser.capped for loser in score.losers] == [loser.capped for loser in here.losers]
    for entry in (*score.winners, *score.losers):
        for item in entry.items:
            spec = rules.items[item.id]
            assert (item.name_zh, item.name_en) == (spec.name_zh, spec.name_en)
            assert item.fan == spec.fan * item.count
    points = {winner.seat: winner.flower_points for winner in score.winners}
    assert {seat: flowers for seat, flowers in points.items() if flowers} == hand.flowers
    for winner in score.winners:
        if draws_treasure(hand.finished, hand.end):
            continue  # the drawn tile stands for another
        # With its melds and the winning tile, the reading is the whole hand.
        seat = hand.finished.seats[winner.seat]
        held = [*seat.concealed, hand.end.tile, *(t for m in seat.melds for t in m.tiles)]
        read = [tile for entry in winner.reading.sets for tile in entry.tiles]
        assert sorted(read) == sorted(code(tile) for tile in held)


@pytest.mark.parametrize(
    ("rules", "hand"), titled([(rules, hand) for rules, hand in HANDS if hand.refused])
)
async def test_a_hand_that_must_be_refused_is_refused_over_the_wire(
    stub: Stub, rules: RuleSet, hand: GoldenHand
) -> None:
    assert hand.refused is not None
    reason, field = hand.refused
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await stub.Score(wire.golden_request(hand, rules.id))
    told = explain(error.value)
    assert (told.reason, told.field) == (reason, field_on_the_wire(field))
    claim = reason in ("NOT_A_WIN", "WIN_NOT_ALLOWED")
    assert told.code is (
        grpc.StatusCode.FAILED_PRECONDITION if claim else grpc.StatusCode.INVALID_ARGUMENT
    )


async def test_all_of_them_in_one_batch_are_answered_as_one_by_one(stub: Stub) -> None:
    requests = [wire.golden_request(hand, rules.id) for rules, hand in HANDS]
    results = (await stub.ScoreBatch(ev.ScoreBatchRequest(requests=requests))).results
    assert len(results) == len(HANDS)
    for (_, hand), result in zip(HANDS, results, strict=True):
        if hand.refused:
            reason, field = hand.refused
            told = (result.problem.reason, result.problem.field)
            assert told == (reason, field_on_the_wire(field))
        else:
            assert wire.net(result.score) == (hand.net, hand.house)


@pytest.mark.parametrize(
    ("rules", "hand", "waits", "shanten"),
    [
        pytest.param(rules, *row, id=f"{rules.id}:{row[0]}")
        for rules in BUILT_IN
        for row in rows(rules)
    ],
)
async def test_a_hand_waits_over_the_wire_for_what_the_page_says(
    stub: Stub, rules: RuleSet, hand: str, waits: str, shanten: int
) -> None:
    def request(given: Hand) -> ev.AnalyzeRequest:
        choice = rules_pb2.RuleSetChoice(id=rules.id)
        return ev.AnalyzeRequest(rules=choice, hand=wire.hand(given), progress=True)

    held = parse_hand(hand)
    analysis = (await stub.Analyze(request(held))).analysis
    expected = [code(tile) for tile in parse_tiles(waits)] if waits != "-" else []
    assert [wait.tile for wait in analysis.waits] == expected
    assert analysis.shape_shanten == shanten
    assert (analysis.shanten == 0) == bool(expected)
    # Holding a fourteenth tile, the discard of it leaves the same waits.
    spare = next(kind for kind in sorted(rules.kinds) if held.held[kind] == 0)
    more = (await stub.Analyze(request(held.plus(spare)))).analysis
    (choice,) = [one for one in more.discards if one.tile == code(spare)]
    assert list(choice.waits) == list(analysis.waits)
    assert choice.shanten == analysis.shanten
    assert list(choice.useful_tiles) == list(analysis.useful_tiles)
