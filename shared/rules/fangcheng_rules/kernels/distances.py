"""How far a suit is from so many sets, with and without a pair: the shanten tables.

The distance of a suit from *j* sets (and a pair, or none) is how many tiles must still come,
at the least, for the suit to hold them. What is wanted of a kind can be no more than the copies
that are not laid down in melds: nobody draws a fifth tile, and the four of a kong are gone.

A suit's ten distances (0 to 4 sets, without and with a pair) are found from the first rank to
the last, keeping for each state (sets so far, pair or not, sequences that want the next rank,
sequences that want the next two) the least that must come. A *walk* is that turned into a table:
from step to step only the whole vector matters, equal vectors are one, and a few thousand are
left. There is a walk for each number of melds (with *m* melds only 4 - m sets are wanted).

**Fresh sets.** A kind that is neither held nor laid down always exists: thirty-four kinds, of
which hand, melds and target touch too few. So a set can always be had for three tiles and a pair
for two, if not in this suit then in another, and no vector need say more than that. It is this
cut that keeps the walks small, and it makes the vectors true only for the whole hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.int8]
Ints: TypeAlias = npt.NDArray[np.int64]

SYMBOLS_FOR_LAID = (0, 5, 9, 12, 14)
"""Where the symbols of a rank start by the copies that are laid down; the copies in hand are
added, so that the fifteen possible pairs of the two are numbered."""
SYMBOLS = 15

_FAR = 15


class Walk(NamedTuple):
    """A suit's way to its distances, rank by rank."""

    steps: list[Ints]
    """For each rank, next state by state and symbol; -1 for what no hand can be."""
    vectors: Bytes
    """The ten distances of each last state: [state, sets, pair or not]."""


class _Phase(NamedTuple):
    """What melds may still do to the ranks to come; and the hand's tiles so far, at least."""

    two_more: int
    """Chi melds that cover the next two ranks,"""
    one_more: int
    """... and the next one."""
    melds_left: int


SEQUENCES = range(7)
"""Where a sequence of a numbered suit can begin, from 0."""
DRAGON_RUNS = range(4, 5)
"""Where one of the honours can: at the first dragon, where dragon runs are sets."""


def walk(melds: int, *, ranks: int = 9, runs: range = SEQUENCES) -> Walk:
    """The walk of a suit in a hand that has this many melds, in this suit or others."""
    sets = 4 - melds
    waiting = min(2, sets) + 1 if runs else 1  # three alike are three triplets as well
    start = np.full((1, waiting, waiting, sets + 1, 2), _FAR, np.int8)
    start[0, 0, 0, 0, 0] = 0
    states = _cut(start)
    # The least tiles in hand with which each state and phase can be reached.
    reached = {(0, _Phase(0, 0, melds)): 0}
    steps = []
    for rank in range(ranks):
        run = rank in runs
        wanted: dict[int, dict[int, dict[_Phase, int]]] = {}
        for (state, phase), tiles in reached.items():
            laid_down = _honours_laid_down if ranks == 7 else _laid_down
            for laid, after in laid_down(phase, run):
                for held in range(min(4 - laid, 14 - 3 * melds - tiles) + 1):
                    symbol = SYMBOLS_FOR_LAID[laid] + held
                    phases = wanted.setdefault(symbol, {}).setdefault(state, {})
                    phases[after] = min(tiles + held, phases.get(after, 99))
        step = np.full((len(states), SYMBOLS), -1, np.int64)
        after_all = []
        found: list[tuple[int, int, dict[_Phase, int]]] = []
        for laid in range(5):
            for held in range(5 - laid):
                symbol = SYMBOLS_FOR_LAID[laid] + held
                if symbol in wanted:
                    from_states = wanted[symbol]
                    after_all.append(_next(states[list(from_states)], held, 4 - laid, run))
                    found += [(state, symbol, phases) for state, phases in from_states.items()]
        if rank == ranks - 1:
            after_all = [vectors[:, 0, 0] for vectors in after_all]  # nothing may be left waiting
        states, numbers = np.unique(np.concatenate(after_all), axis=0, return_inverse=True)
        reached = {}
        for (state, symbol, phases), number in zip(found, numbers.tolist(), strict=True):
            step[state, symbol] = number
            for phase, tiles in phases.items():
                reached[number, phase] = min(tiles, reached.get((number, phase), 99))
        steps.append(step)
    return Walk(steps, _all_sets(states))


def _laid_down(phase: _Phase, run: bool) -> Iterator[tuple[int, _Phase]]:
    """How many copies of the next rank may lie in melds, and what then lies ahead."""
    for chis in range(phase.melds_left + 1 if run else 1):
        for copies in (0, 3, 4):
            laid = phase.two_more + phase.one_more + chis + copies
            left = phase.melds_left - chis - (copies > 0)
            if laid <= 4 and left >= 0:
                yield laid, _Phase(chis, phase.two_more, left)


def _honours_laid_down(phase: _Phase, run: bool) -> Iterator[tuple[int, _Phase]]:
    """The same of an honour: to a dragon run (旋风杠) any number of each dragon may be added."""
    for laid in range(5 if phase.melds_left else 1):
        yield laid, phase


def _next(states: Bytes, held: int, most: int, run: bool) -> Bytes:
    """One rank further, `held` in hand and no more than `most` to be wanted.

    States are [state, sequences that want this rank and the next, sequences that want this rank,
    sets, pair or not]; a sequence counts as a set where it begins.
    """
    waiting, sets = states.shape[1], states.shape[3] - 1
    after = np.full_like(states, _FAR)
    for both in range(waiting):
        for this in range(waiting):
            for begun in range(waiting if run else 1):
                for triplet in (0, 1):
                    new = begun + triplet
                    for pair in (0, 1):
                        want = both + this + begun + 3 * triplet + 2 * pair
                        if want > most or new > sets:
                            continue
                        cost = np.int8(max(0, want - held))
                        before = states[:, both, this, : sets + 1 - new]
                        target = after[:, begun, both, new:]
                        if pair:
                            target[..., 1] = np.minimum(target[..., 1], before[..., 0] + cost)
                        else:
                            target[...] = np.minimum(target, before + cost)
    return _cut(after)


def _cut(states: Bytes) -> Bytes:
    """No more than a fresh set or pair would cost in place of one here."""
    waiting, sets = states.shape[1], states.shape[3] - 1
    three, two = np.int8(3), np.int8(2)
    for _ in range(2):
        states[..., 1] = np.minimum(states[..., 1], states[..., 0] + two)
        for j in range(1, sets + 1):
            fewer = states[:, :, :, j - 1] + three
            here = states[:, :, :, j]
            here[...] = np.minimum(here, fewer)
            for k in range(1, waiting):
                here[:, k] = np.minimum(here[:, k], fewer[:, k - 1])
                here[:, :, k] = np.minimum(here[:, :, k], fewer[:, :, k - 1])
    return states


def _all_sets(vectors: Bytes) -> Bytes:
    """The vectors for up to four sets; those beyond what the hand wants are never asked for."""
    while vectors.shape[1] < 5:
        vectors = np.concatenate([vectors, vectors[:, -1:] + np.int8(3)], axis=1)
    return vectors


def together(first: Bytes, second: Bytes) -> Bytes:
    """The distances of two suits together; vectors in rows, paired off one by one."""
    both = np.full(first.shape, _FAR, np.int8)
    for i in range(5):
        for j in range(5 - i):
            one, other = first[:, i], second[:, j]
            here = both[:, i + j]
            here[:, 0] = np.minimum(here[:, 0], one[:, 0] + other[:, 0])
            here[:, 1] = np.minimum(here[:, 1], one[:, 0] + other[:, 1])
            here[:, 1] = np.minimum(here[:, 1], one[:, 1] + other[:, 0])
    return both
