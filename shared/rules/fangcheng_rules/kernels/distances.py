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

**Features.** Where a rule set asks more of a win than its shape (`Hot.needs`), the vectors also
tell how far it is to sets and a pair of which one is a triplet, of which one has a terminal or
honour, or both. A fresh set is all of that at no more cost: a triplet of a terminal or honour that
is not held, or one made from those that are (were any laid down, the hand would have what it
needs). A fresh pair can be of a terminal or honour, but is no triplet.

**What is wanted.** Melds seldom matter to a suit's distances: they do where its tiles want a copy
that is laid down. `wanted` tells of every suit how many copies of each rank one cheapest way to
each of its distances wants; if all of them are left, the distances are those without melds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.int8]
Ints: TypeAlias = npt.NDArray[np.int64]
Number = TypeVar("Number", np.int8, np.int64)

SYMBOLS_FOR_LAID = (0, 5, 9, 12, 14)
"""Where the symbols of a rank start by the copies that are laid down; the copies in hand are
added, so that the fifteen possible pairs of the two are numbered."""
SYMBOLS = 15

_FAR = 15
_UNIT = 1 << 27
"""What a tile costs in `wanted`, where the bits below tell which way it is."""


TRIPLET = 1
"""Feature: a triplet; of honours with dragon runs, what stands in for one as well."""
TERMINAL = 2
"""Feature: a terminal or honour."""

SEQUENCES = range(7)
"""Where a sequence of a numbered suit can begin, from 0."""
DRAGON_RUNS = range(4, 5)
"""Where one of the honours can: at the first dragon, where dragon runs are sets."""
ANY_RANK = frozenset(range(9))


class Walk(NamedTuple):
    """A suit's way to its distances, rank by rank."""

    steps: list[Ints]
    """For each rank, next state by state and symbol; -1 for what no hand can be."""
    vectors: Bytes
    """The distances of each last state: [state, sets, pair or not, features]."""


class _Phase(NamedTuple):
    """What melds may still do to the ranks to come; and the hand's tiles so far, at least."""

    two_more: int
    """Chi melds that cover the next two ranks,"""
    one_more: int
    """... and the next one."""
    melds_left: int


def walk(
    melds: int,
    *,
    ranks: int = 9,
    runs: range = SEQUENCES,
    features: int = 1,
    pairs: frozenset[int] = ANY_RANK,
) -> Walk:
    """The walk of a suit in a hand that has this many melds, in this suit or others.

    `features`: 1, or 4 for every combination of `TRIPLET` and `TERMINAL`. `pairs`: the ranks of
    which the pair may be (a pair in another suit is always possible).
    """
    sets = 4 - melds
    waiting = min(2, sets) + 1 if runs else 1  # three alike are three triplets as well
    start = np.full((1, waiting, waiting, sets + 1, 2, features), _FAR, np.int8)
    start[0, 0, 0, 0, 0, 0] = 0
    states = _cut(start)
    # By phase, for each state the least tiles in hand with which it can be reached.
    reached = {_Phase(0, 0, melds): np.zeros(1, np.int64)}
    steps = []
    for rank in range(ranks):
        run = rank in runs
        brings = _Brings(
            terminal=TERMINAL if ranks == 7 or rank in (0, 8) else 0,
            stand_in=TRIPLET if ranks == 7 and len(runs) and rank >= runs[0] else 0,
        )
        # Where one may go: the phase after, and for each symbol which states can have it.
        ways: list[tuple[_Phase, int, Ints, Ints]] = []
        wanted: dict[int, Ints] = {}
        for phase, least in reached.items():
            for laid, after in (_honours_laid_down if ranks == 7 else _laid_down)(phase, run):
                for held in range(5 - laid):
                    here = np.flatnonzero(least + held <= 14 - 3 * melds)
                    symbol = SYMBOLS_FOR_LAID[laid] + held
                    if len(here):
                        ways.append((after, symbol, here, least[here] + held))
                        wanted[symbol] = np.union1d(wanted.get(symbol, here), here)
        after_all = []
        for laid in range(5):
            for held in range(5 - laid):
                here = wanted.get(SYMBOLS_FOR_LAID[laid] + held, np.zeros(0, np.int64))
                if len(here):
                    costs = [max(0, want - held) for want in range(5 - laid)]
                    after_all.append(_next(states[here], costs, run, brings, rank in pairs))
        if rank == ranks - 1:
            after_all = [vectors[:, 0, 0] for vectors in after_all]  # nothing may be left waiting
        step = np.full((len(states), SYMBOLS), -1, np.int64)
        states, numbers = unique_rows(np.concatenate(after_all))
        begin = 0
        for symbol, here in sorted(wanted.items()):
            step[here, symbol] = numbers[begin : begin + len(here)]
            begin += len(here)
        reached = {}
        for after, symbol, here, tiles in ways:
            least = reached.setdefault(after, np.full(len(states), 99, np.int64))
            np.minimum.at(least, step[here, symbol], tiles)
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


class _Brings(NamedTuple):
    """The features that a tile of this rank brings."""

    terminal: int
    stand_in: int
    """What a pair or a run of it brings."""


def wanted() -> Ints:
    """For each key of a numbered suit with melds beside it: what its distances want at the most.

    Three bits for each rank, the first one's lowest: three more than how many copies it wants, so
    that with one more than is left they carry. Keys of more than eleven tiles want none.
    """
    sets, waiting = 3, 3
    states = np.full((1, waiting, waiting, sets + 1, 2, 1), _FAR * _UNIT, np.int64)
    states[0, 0, 0, 0, 0, 0] = 0
    states = _cut(states, _UNIT)
    keys = tiles = np.zeros(1, np.int64)
    for rank in range(9):
        run = rank in SEQUENCES
        if rank == 8:
            states = states[:, :1]  # nothing wants a rank after the last
        after = []
        for held in range(5):
            here = np.flatnonzero(tiles + held <= 11)
            # Of two ways at one cost the lesser is kept: one that wants less of the later ranks.
            costs = [max(0, want - held) * _UNIT + (want << 3 * rank) for want in range(5)]
            moved = _next(states[here], costs, run, _Brings(0, 0), True, _UNIT)
            after.append((keys[here] + held * 5**rank, tiles[here] + held, moved))
        keys, tiles, states = (np.concatenate(part) for part in zip(*after, strict=True))
    ways = states[:, 0, 0].reshape(len(keys), -1)
    most = np.zeros(len(keys), np.int64)
    for rank in range(9):
        most |= (ways >> 3 * rank & 7).max(axis=1) << 3 * rank
    words = np.zeros(5**9, np.int64)
    words[keys] = most
    return words + 0o333333333


def _next(
    states: npt.NDArray[Number],
    costs: list[int],
    run: bool,
    brings: _Brings,
    may_pair: bool,
    unit: int = 1,
) -> npt.NDArray[Number]:
    """One rank further; `costs`: of no copy of it, of one, up to the most that may be wanted.

    States are [state, sequences that want this rank and the next, sequences that want this rank,
    sets, pair or not, features]; a sequence counts as a set where it begins.
    """
    waiting, sets, features = states.shape[2], states.shape[3] - 1, states.shape[5]
    after = np.full_like(states, _FAR * unit)
    for both in range(states.shape[1]):
        for this in range(waiting):
            for begun in range(waiting if run else 1):
                for triplet in (0, 1):
                    new = begun + triplet
                    for pair in (0, 1) if may_pair else (0,):
                        want = both + this + begun + 3 * triplet + 2 * pair
                        if want >= len(costs) or new > sets:
                            continue
                        brought = brings.terminal if want else 0
                        brought |= TRIPLET if triplet else 0
                        brought |= brings.stand_in if pair or begun else 0
                        cost = after.dtype.type(costs[want])
                        before = states[:, both, this, : sets + 1 - new] + cost
                        target = after[:, begun, both, new:]
                        for feature in range(features):
                            came = before[..., feature & ~brought]
                            if pair:
                                there = target[..., 1, feature]
                                np.minimum(there, came[..., 0], out=there)
                            else:
                                there = target[..., feature]
                                np.minimum(there, came, out=there)
    return _cut(after, unit)


def _cut(states: npt.NDArray[Number], unit: int = 1) -> npt.NDArray[Number]:
    """No more than a fresh set or pair would cost in place of one here."""
    sets, features = states.shape[3] - 1, states.shape[5]
    three, two, far = (states.dtype.type(tiles * unit) for tiles in (3, 2, _FAR))
    for feature in range(features):
        here = states[..., 1, feature]
        np.minimum(here, states[..., 0, feature & ~TERMINAL] + two, out=here)
    for j in range(1, sets + 1):
        fewer = states[:, :, :, j - 1, :, :1] + three
        here = states[:, :, :, j]
        here[...] = np.minimum(here, fewer)
        for k in range(1, states.shape[1]):
            here[:, k] = np.minimum(here[:, k], fewer[:, k - 1])
        for k in range(1, states.shape[2]):
            here[:, :, k] = np.minimum(here[:, :, k], fewer[:, :, k - 1])
    return np.minimum(states, far)


def _all_sets(vectors: Bytes) -> Bytes:
    """The vectors for up to four sets; those beyond what the hand wants are never asked for."""
    while vectors.shape[1] < 5:
        one_more = np.minimum(vectors[:, -1:] + np.int8(3), np.int8(_FAR))
        vectors = np.concatenate([vectors, one_more], axis=1)
    return vectors


def unique_rows(rows: Bytes) -> tuple[Bytes, Ints]:
    """The different rows, and the number of each row among them.

    By a hash of each row, which is ten times quicker than sorting them.
    """
    flat = np.ascontiguousarray(rows).reshape(len(rows), -1)
    flat = np.pad(flat, ((0, 0), (0, -flat.shape[1] % 8)))
    words = flat.view(np.uint64)
    odd = np.arange(1, words.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    hashed = np.zeros(len(rows), np.uint64)
    for column, factor in zip(words.T, odd | np.uint64(1), strict=True):
        hashed = (hashed ^ (hashed >> np.uint64(31)) ^ column) * factor
        hashed ^= hashed >> np.uint64(29)
    _, first, numbers = np.unique(hashed, return_index=True, return_inverse=True)
    if not np.array_equal(flat[first][numbers], flat):  # two rows with one hash
        return np.unique(rows, axis=0, return_inverse=True)
    return rows[first], numbers


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
