"""How likely a discard is won on, from what a player sees of the others."""

from __future__ import annotations

from collections.abc import Sequence

from fangcheng_rules.tiles import PLAY_KINDS

from .situation import SeatSeen, Situation

SEEN_IN_RIVER = 0.3
"""What a seat has thrown away itself it seldom waits for."""


def readiness(seat: SeatSeen) -> float:
    """How likely a seat waits, from its melds and how long it has played."""
    if seat.declared:
        return 1.0
    turns = len(seat.river) + seat.meld_count
    return min(0.02 * turns + 0.12 * seat.meld_count, 0.9)


def dangers(situation: Situation, unseen: Sequence[int]) -> list[float]:
    """By kind, how likely a discard of it is won on by one of the others."""
    danger = [0.0] * PLAY_KINDS
    weights = [_weight(kind, unseen) for kind in range(PLAY_KINDS)]
    for number, seat in enumerate(situation.seats):
        if number == situation.own:
            continue
        own = [
            weight * (SEEN_IN_RIVER if kind in seat.river else 1.0)
            for kind, weight in enumerate(weights)
        ]
        share = 1.8 * readiness(seat) / (sum(own) or 1.0)
        for kind in range(PLAY_KINDS):
            danger[kind] += share * own[kind]
    return danger


def _weight(kind: int, unseen: Sequence[int]) -> float:
    """In how many ways others can wait for a kind, in proportion."""
    ways = 1.5 * unseen[kind]
    if kind < 27:
        rank = kind % 9
        if rank >= 2:
            ways += unseen[kind - 2] * unseen[kind - 1]
        if 1 <= rank <= 7:
            ways += unseen[kind - 1] * unseen[kind + 1]
        if rank <= 6:
            ways += unseen[kind + 1] * unseen[kind + 2]
    return ways
