"""What chance would bring each pair of players, given who sat at the tables.

The model is that of a draw among the twelve ordered pairs of a table. Given that so many things of
a kind happened in a hand (that a tile was dealt in, say), each of them falls on a pair (one, other)
with a probability proportional to

    how readily one gives  x  how readily the other takes  x  what their places make of it.

That something happened at all is taken as it was: so neither options under which it is frequent
nor lively tables make anybody conspicuous. How readily each gives and takes, and what the places
do, is estimated from all hands by the MM algorithm for models of the Bradley-Terry kind (D. R.
Hunter, "MM Algorithms for Generalized Bradley-Terry Models", The Annals of Statistics 32 (2004),
384-406), and drawn towards the average where little is known of a player. What two do to each other
is left out of what is expected of the two, else they would be their own excuse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .facts import CELLS, PLACES, Counted, Kind

Floats = NDArray[np.float64]

ROUNDS = 40
CLOSE = 1e-4
"""The estimate has settled when no weight moves by more, relatively."""
PLACE_WEIGHT = 20.0
"""Events that a place's weight is drawn towards the average with."""
VARIANT_WEIGHT = 100.0
"""Events that a variant's own weights of the places are drawn towards those of all with."""
LEAST_WEIGHT, MOST_WEIGHT = 4.0, 400.0
"""Bounds of how many events a player is drawn towards the average with; the data say how many."""
LEAST_SPREAD, MOST_SPREAD = 0.01, 1.0
"""Bounds of how much innocent pairs differ, as a squared coefficient of variation."""
OUTLYING = 9.0
"""A pair's squared distance in variances from which on it tells no more about innocent ones."""

_ONE = np.array([one for one, _ in CELLS])
_OTHER = np.array([other for _, other in CELLS])


@dataclass(frozen=True, slots=True)
class Pairs:
    """All ordered pairs of players who met, in the order of `key`."""

    key: NDArray[np.int64]
    """Number of the first times the number of players, plus the number of the second."""
    of_cell: NDArray[np.int64]
    """H x 12: the cell's pair."""
    hands: NDArray[np.int64]
    """Hands together."""
    back: NDArray[np.int64]
    """The pair the other way round."""

    @classmethod
    def of(cls, counted: Counted) -> Pairs:
        """The pairs of these hands."""
        players = len(counted.players)
        keys = counted.seats[:, _ONE] * players + counted.seats[:, _OTHER]
        key, of_cell, hands = np.unique(keys, return_inverse=True, return_counts=True)
        one, other = np.divmod(key, max(players, 1))
        back = np.searchsorted(key, other * players + one)
        return cls(key, of_cell.reshape(keys.shape), hands, back)


@dataclass(frozen=True, slots=True)
class Expected:
    """What one kind of thing came to for each pair, in the order of `Pairs`."""

    observed: NDArray[np.int64]
    """Hands in which it happened."""
    expected: Floats
    """Hands in which chance would have it happen."""
    unknown: Floats
    """Squared coefficient of variation of `expected`: how little is known of the two."""
    pair_spread: float
    """The same of what innocent pairs differ by beyond that, as it was found among all pairs."""


def expect(
    counted: Counted, pairs: Pairs, kind: Kind, apart: NDArray[np.bool_], judged: NDArray[np.bool_]
) -> Expected:
    """What chance would bring.

    `apart`: pairs of which nothing is learnt about others (they are beyond chance already).
    `judged`: pairs that tell how much innocent pairs differ.
    """
    happened = counted.events[kind]
    hands = np.flatnonzero(happened.any(axis=1))
    events = happened[hands].astype(np.float64)
    of_cell = pairs.of_cell[hands]
    fit = _Fit(counted, hands, events, ~apart[of_cell])
    fit.settle()

    count = len(pairs.key)

    def by_pair(of_cells: Floats) -> Floats:
        return np.bincount(of_cell.ravel(), of_cells.ravel(), count).astype(np.float64)

    observed = by_pair(events)
    weights = fit.weights()
    shares = weights / weights.sum(axis=1, keepdims=True) * events.sum(axis=1, keepdims=True)
    from_pair = by_pair(fit.shares())
    # Others are not to have had what the pairs set apart have done.
    expected = np.where(apart, by_pair(shares), from_pair)
    own = np.where(apart, 0.0, observed)

    one, other = np.divmod(pairs.key, max(len(counted.players), 1))
    unknown = np.ones(count)
    for side, player in ((fit.gives, one), (fit.takes, other)):
        # The player's weight as it would be without what the two did to each other.
        happened_to = side.prior + side.events[player] - own
        would_have = side.prior + side.exposure[player] - from_pair / side.weight[player]
        would_have = np.maximum(would_have, side.prior)
        expected = expected * happened_to / would_have / side.weight[player]
        unknown *= 1 + 1 / happened_to
    unknown -= 1
    innocent = judged & ~apart & (expected > 0)
    pair_spread = _spread(observed[innocent], expected[innocent], unknown[innocent])
    return Expected(observed.astype(np.int64), expected, unknown, pair_spread)


def _spread(observed: Floats, expected: Floats, unknown: Floats) -> float:
    """How much pairs differ beyond chance and what is not known, by the method of moments."""
    known = expected + unknown * expected**2
    squares = np.minimum((observed - expected) ** 2, OUTLYING * known)
    over = float((squares - known).sum())
    found = over / float((expected**2).sum()) if len(expected) else 0.0
    return min(max(found, LEAST_SPREAD), MOST_SPREAD)


class _Side:
    """How readily each player gives, or takes; the average is 1."""

    def __init__(self, of_cell: NDArray[np.int64], events: Floats, players: int) -> None:
        self.of_cell = of_cell
        self.weight = np.ones(players)
        self.events = np.bincount(of_cell.ravel(), events.ravel(), players)
        self.exposure = np.zeros(players)
        """Events that a player of weight 1 would have had."""
        self.prior = LEAST_WEIGHT

    def update(self, shares: Floats) -> float:
        """Take the next estimate; how far it is from the one before."""
        expected = np.bincount(self.of_cell.ravel(), shares.ravel(), len(self.weight))
        self.exposure = expected / self.weight
        self.prior = self._prior()
        weight = (self.prior + self.events) / (self.prior + self.exposure)
        moved = float(np.abs(np.log(weight / self.weight)).max(initial=0.0))
        self.weight = weight
        return moved

    def _prior(self) -> float:
        """How alike the players are, by the method of moments."""
        squares = float((self.exposure**2).sum())
        over = float(((self.events - self.exposure) ** 2 - self.exposure).sum())
        if over <= 0 or squares <= 0:
            return MOST_WEIGHT
        return min(max(squares / over, LEAST_WEIGHT), MOST_WEIGHT)


class _Fit:
    """The estimate in the making."""

    def __init__(
        self, counted: Counted, hands: NDArray[np.int64], events: Floats, open_: NDArray[np.bool_]
    ) -> None:
        """`open_`: the cells from which is learnt."""
        seats = counted.seats[hands]
        self._open = open_
        self._events = np.where(open_, events, 0.0)
        self._count = self._events.sum(axis=1, keepdims=True)
        players = len(counted.players)
        self.gives = _Side(seats[:, _ONE], self._events, players)
        self.takes = _Side(seats[:, _OTHER], self._events, players)
        self._place = counted.places[hands]
        self._variant = counted.variants[hands][:, None] * PLACES + self._place
        self._places = np.ones(PLACES)
        self._variants = np.ones(PLACES * (int(counted.variants.max(initial=-1)) + 1))

    def settle(self) -> None:
        """Go on until nothing moves."""
        for _ in range(ROUNDS):
            moved = self.gives.update(self.shares())
            moved = max(moved, self.takes.update(self.shares()))
            self._update(self._place, self._places, PLACE_WEIGHT)
            self._update(self._variant, self._variants, VARIANT_WEIGHT)
            if moved < CLOSE:
                return

    def weights(self) -> Floats:
        """Of each cell."""
        of_players = self.gives.weight[self.gives.of_cell] * self.takes.weight[self.takes.of_cell]
        found: Floats = of_players * self._places[self._place] * self._variants[self._variant]
        return found

    def shares(self) -> Floats:
        """What each open cell would have of its hand's events, by the estimate so far."""
        weights = np.where(self._open, self.weights(), 0.0)
        total = weights.sum(axis=1, keepdims=True)
        per_event = np.divide(self._count, total, out=np.zeros_like(total), where=total > 0)
        found: Floats = weights * per_event
        return found

    def _update(self, of_cell: NDArray[np.int64], weight: Floats, prior: float) -> None:
        flat = of_cell.ravel()
        happened = np.bincount(flat, self._events.ravel(), len(weight))
        expected = np.bincount(flat, self.shares().ravel(), len(weight))
        weight[:] = (prior + happened) / (prior + expected / weight)
