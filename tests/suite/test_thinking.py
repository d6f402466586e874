"""How long bots seem to think."""

from __future__ import annotations

import random
from statistics import median, quantiles

from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_suite.bots.thinking import LONGEST, thinking_seconds


def waits(
    kind: str, choices: int, turn_seconds: float = 2.0, ms_left: int = 600_000
) -> list[float]:
    prompt = events_pb2.Prompt(
        kind=kind, actions=[state_pb2.Action(kind="x")] * choices, ms_left=ms_left
    )
    chance = random.Random(7)
    return [thinking_seconds(prompt, turn_seconds, chance) for _ in range(4_000)]


def test_a_claim_is_settled_quickly_and_a_turn_of_many_choices_takes_longest() -> None:
    claim, few, many = waits("claim", 2), waits("turn", 5), waits("turn", 14)
    assert median(claim) < median(few) < median(many)
    assert 1.9 < median(waits("turn", 13)) < 2.1


def test_waits_are_uneven_and_mostly_short_as_those_of_people_are() -> None:
    low, middle, high = quantiles(waits("turn", 13), n=4)
    assert high - middle > middle - low > 0
    assert max(waits("turn", 13)) > 3 * middle


def test_no_wait_comes_near_the_deadline() -> None:
    assert max(waits("turn", 14, turn_seconds=60, ms_left=5_000)) == LONGEST * 5
    assert set(waits("turn", 14, ms_left=0)) == {0.0}


def test_without_thinking_every_answer_is_given_at_once() -> None:
    assert set(waits("turn", 14, turn_seconds=0)) == {0.0}
