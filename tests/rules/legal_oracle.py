"""How far a hand is from a legal win, straight from the conditions and slowly.

Every way for a suit to hold some sets and a pair is laid beside what is held of it, with what it
brings; the suits are then put together in every way, and those that pass the conditions count.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ORPHANS = [0, 8, 9, 17, 18, 26, *range(27, 34)]
SUITS = ((0, 9), (9, 9), (18, 9), (27, 7))


class Whole(NamedTuple):
    """What is known of a whole hand in the standard shape."""

    sets: int = 0
    pair: str = ""
    """'', '258', 'dragon' or 'other'"""
    triplet: bool = False
    run: bool = False
    orphan: bool = False
    suits: frozenset[int] = frozenset()

    def plus(self, other: Whole) -> Whole | None:
        if self.sets + other.sets > 4 or (self.pair and other.pair):
            return None
        return Whole(
            self.sets + other.sets,
            self.pair or other.pair,
            self.triplet or other.triplet,
            self.run or other.run,
            self.orphan or other.orphan,
            self.suits | other.suits,
        )


def whole_of(tiles: tuple[tuple[int, ...], ...], pair: int | None) -> Whole:
    every = [tile for one in tiles for tile in one] + ([] if pair is None else [pair])
    kind = ""
    if pair is not None:
        kind = "dragon" if pair >= 31 else "other"
        if pair < 27 and pair % 9 in (1, 4, 7):
            kind = "258"
    return Whole(
        len(tiles),
        kind,
        any(len(set(one)) == 1 for one in tiles),
        any(len(set(one)) == 3 and one[0] >= 27 for one in tiles),
        any(tile in ORPHANS for tile in every),
        frozenset(tile // 9 for tile in every if tile < 27),
    )


@cache
def both(one: Whole, other: Whole) -> Whole | None:
    return one.plus(other)


class Ways(NamedTuple):
    """What a suit can hold, and the counts of its kinds in rows, those of each together."""

    wholes: list[Whole]
    rows: npt.NDArray[np.int8]
    starts: list[int]


@cache
def ways(suit: int, runs: bool, kinds: frozenset[int]) -> Ways:
    """Everything that a suit can hold."""
    first, ranks = SUITS[suit]
    here = [kind for kind in range(first, first + ranks) if kind in kinds]
    sets = [(kind,) * 3 for kind in here]
    if suit < 3:
        sets += [(kind, kind + 1, kind + 2) for kind in here if kind % 9 <= 6]
    elif runs:
        sets.append((31, 32, 33))
    found: dict[Whole, set[tuple[int, ...]]] = {}
    for n in range(5):
        for chosen in itertools.combinations_with_replacement(sets, n):
            counts = [0] * ranks
            for tile in itertools.chain(*chosen):
                counts[tile - first] += 1
            if max(counts) > 4:
                continue
            for pair in (None, *here):
                more = list(counts)
                if pair is not None:
                    more[pair - first] += 2
                if max(more) <= 4:
                    found.setdefault(whole_of(chosen, pair), set()).add(tuple(more))
    starts = [0, *itertools.accumulate(len(rows) for rows in found.values())][:-1]
    return Ways(
        list(found), np.array([r for rows in found.values() for r in rows], np.int8), starts
    )


def standard_distance(
    concealed: list[int],
    laid: list[int],
    melds: Whole,
    passes: Callable[[Whole], bool],
    kinds: frozenset[int],
    *,
    runs: bool,
) -> int:
    """Tiles that must come for the nearest legal hand; 99: there is none."""
    nearest = {melds: 0}
    for suit, (first, ranks) in enumerate(SUITS):
        held = np.array(concealed[first : first + ranks], np.int8)
        most = 4 - np.array(laid[first : first + ranks], np.int8)
        after: dict[Whole, int] = {}
        possible = ways(suit, runs, kinds)
        costs = np.maximum(possible.rows - held, 0).sum(axis=1)
        costs[(possible.rows > most).any(axis=1)] = 99
        least = np.minimum.reduceat(costs, possible.starts).tolist()
        for whole, cost in zip(possible.wholes, least, strict=True):
            for before, spent in nearest.items():
                together = both(before, whole)
                if together is not None and spent + cost < after.get(together, 99):
                    after[together] = spent + cost
        nearest = after
    return min(
        (n for whole, n in nearest.items() if whole.sets == 4 and whole.pair and passes(whole)),
        default=99,
    )


def seven_pairs_distance(concealed: list[int], *, orphan: bool) -> int:
    """Two tiles for each of seven pairs, one of a terminal or honour where that is asked."""
    halves = [(kind, half) for kind in range(34) for half in (0, 1)]
    lacking: list[tuple[int, bool]] = sorted(
        (2 - min(2, max(0, concealed[kind] - 2 * half)), kind not in ORPHANS)
        for kind, half in halves
    )
    best = lacking[:7]
    cost = sum(lack for lack, _ in best)
    if not orphan or any(not plain for _, plain in best):
        return cost
    # The dearest pair makes way for the cheapest of a terminal or honour.
    return cost - best[-1][0] + min(lack for lack, plain in lacking if not plain)


def thirteen_orphans_distance(concealed: list[int]) -> int:
    return min(
        sum(max(0, 1 + int(kind == twice) - concealed[kind]) for kind in ORPHANS)
        for twice in ORPHANS
    )
