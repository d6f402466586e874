"""Which of two kinds of players is the stronger: they play the same walls from changed seats.

Two of each kind sit at a table, across from each other. Every wall is played twice: the second
time all move on a seat, so that each kind has had every hand that the other had. What is compared
is the two hands of a wall together; walls are independent of each other, so that the mean over
them is tested as a paired difference.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist, fmean, stdev

from .players import Player
from .round import HandSetup, Round
from .ruleset import RuleSet
from .scoring import SEATS, Win
from .simulate import play_hand

Make = Callable[[random.Random], Player]


@dataclass(frozen=True, slots=True)
class Lead:
    """By how much one kind is ahead of the other, per hand and seat."""

    mean: float
    error: float
    """Standard error of the mean."""

    @property
    def chance(self) -> float:
        """How likely a mean so far above 0 comes about by chance, were both alike (one-sided)."""
        if not self.error:
            return 0.5 if not self.mean else float(self.mean < 0)
        return 1 - NormalDist().cdf(self.mean / self.error)

    @property
    def reach(self) -> float:
        """Half of the interval in which the true mean lies 95 times of 100."""
        return 1.96 * self.error


@dataclass(slots=True)
class Side:
    """What one kind of player came to; each hand is played by two of them."""

    wins: int = 0
    deal_ins: int = 0
    """Hands in which another won on its discard or added kong."""
    units: int = 0
    """Won less lost."""


@dataclass(slots=True)
class Duel:
    """What two kinds of players came to against each other."""

    one: Side = field(default_factory=Side)
    other: Side = field(default_factory=Side)
    _before: tuple[int, int, int] = (0, 0, 0)
    _wins: list[int] = field(default_factory=list)
    _deal_ins: list[int] = field(default_factory=list)
    _units: list[int] = field(default_factory=list)

    @property
    def hands(self) -> int:
        """Hands played: two of each wall."""
        return 2 * len(self._units)

    @property
    def wins(self) -> Lead:
        """How much oftener the first kind wins."""
        return _lead(self._wins)

    @property
    def deal_ins(self) -> Lead:
        """How much oftener the first kind is won on; less than 0 where it is more careful."""
        return _lead(self._deal_ins)

    @property
    def units(self) -> Lead:
        """How many units more it wins."""
        return _lead(self._units)

    def add(self, played: Sequence[tuple[Round, int]]) -> None:
        """Count the hands of one wall: each with the lower seat of the first kind, 0 or 1."""
        for play, lower in played:
            for number in SEATS:
                _count(self.one if number % 2 == lower else self.other, play, number)
        now = (
            self.one.wins - self.other.wins,
            self.one.deal_ins - self.other.deal_ins,
            self.one.units - self.other.units,
        )
        for list_, new, old in zip(
            (self._wins, self._deal_ins, self._units), now, self._before, strict=True
        ):
            list_.append(new - old)
        self._before = now


def duel(rules: RuleSet, one: Make, other: Make, *, walls: int, seed: int) -> Iterator[Duel]:
    """Play walls, each of them twice; what they came to so far, after each wall."""
    found = Duel()
    for number in range(walls):
        found.add(
            [(_hand(rules, one, other, lower, f"{seed}/{number}"), lower) for lower in (0, 1)]
        )
        yield found


def _hand(rules: RuleSet, one: Make, other: Make, lower: int, wall_seed: str) -> Round:
    chance = random.Random(wall_seed)  # noqa: S311 # nosec B311 # to be repeatable
    wall = list(rules.wall_tiles)
    chance.shuffle(wall)
    dice = tuple(chance.randint(1, 6) for _ in range(rules.hand_dice))
    dealer = chance.randrange(4)
    players = [
        (one if seat % 2 == lower else other)(
            random.Random(f"{wall_seed}/{seat}")  # noqa: S311 # nosec B311 # to be repeatable
        )
        for seat in SEATS
    ]
    play, _ = play_hand(
        HandSetup(
            rule_set_id=rules.id,
            revision=rules.revision,
            options=rules.complete(),
            hand_number=1,
            dealer=dealer,
            dice=dice,
            wall=tuple(wall),
        ),
        players,
    )
    return play


def _count(side: Side, play: Round, number: int) -> None:
    end = play.end
    if isinstance(end, Win):
        side.wins += number in end.winners
        side.deal_ins += number == end.source
    side.units += play.score.net[number] if play.score is not None else 0


def _lead(differences: Sequence[int]) -> Lead:
    """Of four seats' hands of each wall, two hands of two seats."""
    if len(differences) < 2:
        return Lead(math.nan, math.nan)
    per_seat = 4
    return Lead(
        fmean(differences) / per_seat, stdev(differences) / per_seat / math.sqrt(len(differences))
    )
