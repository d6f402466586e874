"""How likely a discard is won on, from what a player sees of the others.

The figures are measured: 2,500 hands of four `Efficient` players, 500 of each rule set, in which
it was noted who waited, and on what. They are of all rule sets together, but for what the rule
set itself tells: who can win on a discard at all, which pairs are allowed, the run of dragons.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fangcheng_rules.kernels.facts import DRAGON_RUN, NEEDS_258
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.tiles import DRAGONS, PLAY_KINDS, is_suited, rank

from .situation import SeatSeen, Situation

WAITS = 1.75
"""Kinds that a waiting seat waits for, weighed as below."""
OF_A_DISCARD_OF_ITS_OWN = 0.05
"""What a seat has thrown away itself it hardly ever waits for."""
OF_A_TILE_JUST_PASSED = 0.05
"""Nor for what it let pass a moment ago."""
PAIR = 2
"""Ways to wait for a kind as a triplet or pair, for every two copies that may be held of it."""
RUN = 4
"""Ways to wait for a dragon of a run, likewise."""


def dangers(situation: Situation, unseen: Sequence[int]) -> list[float]:
    """By kind, how likely a discard of it is won on by one of the others."""
    weights = _weights(situation.rule_set, unseen)
    danger = [0.0] * PLAY_KINDS
    for number, seat in enumerate(situation.seats):
        if number == situation.own:
            continue
        ready = readiness(situation.rule_set, seat)
        if not ready:
            continue
        own = list(weights)
        for kind in {*seat.river}:
            own[kind] *= OF_A_DISCARD_OF_ITS_OWN
        for kind in _passed(situation, number):
            own[kind] *= OF_A_TILE_JUST_PASSED
        share = WAITS * ready / (sum(own) or 1.0)
        for kind, weight in enumerate(own):
            danger[kind] += share * weight
    return danger


def readiness(rules: RuleSet, seat: SeatSeen) -> float:
    """How likely a seat waits and may win on a discard."""
    if seat.declared:
        # 明楼 shows its tiles and wins by self-draw alone.
        return 0.0 if seat.declared in rules.calls.shown else 1.0
    odds = 1.2 * seat.meld_count + 0.3 * len(seat.river) - 5.0
    return 1 / (1 + math.exp(-odds))


def _passed(situation: Situation, waiting: int) -> list[int]:
    """What lies last in the rivers of those who played after a seat did, until the player."""
    between = (situation.own - waiting) % 4
    rivers = (situation.seats[(waiting + step) % 4].river for step in range(1, between))
    return [river[-1] for river in rivers if river]


def _weights(rules: RuleSet, unseen: Sequence[int]) -> list[float]:
    """In how many ways others can wait for each kind, in proportion."""
    only_258 = bool(rules.hot.needs & NEEDS_258)
    weights = []
    for kind in range(PLAY_KINDS):
        left = unseen[kind]
        ways = PAIR * left * (left - 1) + 0.5 * left
        if is_suited(kind):
            place = rank(kind)
            if only_258 and place % 3 == 2:
                ways += 3 * left
            if place >= 3:
                ways += unseen[kind - 2] * unseen[kind - 1]
            if 2 <= place <= 8:
                ways += unseen[kind - 1] * unseen[kind + 1]
            if place <= 7:
                ways += unseen[kind + 1] * unseen[kind + 2]
        elif kind in DRAGONS and rules.hot.shapes & DRAGON_RUN:
            one, other = (dragon for dragon in DRAGONS if dragon != kind)
            ways += RUN * unseen[one] * unseen[other]
        weights.append(ways)
    return weights
