"""Populations in which collusion is planted, to see whether the report finds it, and only it.

Hands are drawn, not played: who deals in to whom, who feeds whom and who pays, by a way of play
that each player has; and honest pairs differ by more than what each is like. Tables of hands that
were really played are made by `benchmarks/integrity.py`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .facts import CELLS, SEATS, HandFacts
from .findings import Report

POSITION = {1: 1.0, 2: 0.9, 3: 0.8}
"""How often somebody deals in to the next player, to the one across, to the one before."""
NEXT_FEEDS = 3.0
"""The next player may lay down chi as well."""
DISCARD_WINS, SELF_DRAWS = 0.6, 0.25
"""Shares of hands; the others are drawn."""
SMALL, LARGE = (1, 2, 4), (8, 16)
"""Units that a win pays."""


@dataclass(frozen=True, slots=True)
class Collusion:
    """Two who help each other."""

    giver: str
    taker: str
    times: float = 5.0
    """How many times as readily the first deals in to the second; below 1: to each other."""


@dataclass(slots=True)
class Population:
    """Players with ways of their own."""

    chance: random.Random
    players: Sequence[str]
    unlike: float = 0.3
    """How much players differ: the deviation of the logarithm of what they give and take."""
    pairs_unlike: float = 0.1
    """The same of what an honest pair has to do with each other, beyond what each is like."""
    colluding: dict[frozenset[str], Collusion] = field(default_factory=dict)
    _gives: dict[str, float] = field(default_factory=dict)
    _takes: dict[str, float] = field(default_factory=dict)
    _pairs: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for player in self.players:
            self._gives[player] = self.chance.lognormvariate(0, self.unlike)
            self._takes[player] = self.chance.lognormvariate(0, self.unlike)

    def table(self, name: str, seated: Sequence[str], hands: int) -> Iterator[HandFacts]:
        """The hands of a table."""
        dealer = self.chance.randrange(4)
        seats = tuple(seated)
        if len(seats) != len(SEATS):
            raise ValueError(f"a table has four players, not {len(seats)}")
        for number in range(1, hands + 1):
            yield self._hand(name, number, (seats[0], seats[1], seats[2], seats[3]), dealer)
            dealer = (dealer + (self.chance.random() < 0.6)) % 4

    def _hand(
        self, table: str, number: int, seats: tuple[str, str, str, str], dealer: int
    ) -> HandFacts:
        weights = [self._readily(seats, dealer, *cell) for cell in CELLS]
        fair = sum(self._readily(seats, dealer, *cell, helping=False) for cell in CELLS)
        # Whoever helps makes more hands end by a discard; the others' shares shrink for it.
        deals = sum(weights) * DISCARD_WINS / (1 - DISCARD_WINS) / fair
        paid: tuple[tuple[int, int, int], ...] = ()
        deal_ins: tuple[tuple[int, int], ...] = ()
        if self.chance.random() < deals / (1 + deals):
            (cell,) = self.chance.choices(CELLS, weights)
            deal_ins, paid = (cell,), ((*cell, self._units()),)
        elif self.chance.random() < SELF_DRAWS / (1 - DISCARD_WINS):
            (winner,) = self.chance.choices(SEATS, [self._takes[player] for player in seats])
            amount = self._units()
            paid = tuple((seat, winner, amount) for seat in SEATS if seat != winner)
        return HandFacts(
            table_id=table,
            hand_number=number,
            rule_set="rehearsal",
            variant="rehearsal",
            ended_ms=0,
            players=seats,
            dealer=dealer,
            deal_ins=deal_ins,
            claims=tuple(cell for cell in CELLS if self._claims(seats, *cell)),
            paid=paid,
        )

    def _readily(
        self,
        seats: Sequence[str],
        dealer: int,
        one: int,
        other: int,
        *,
        helping: bool = True,
    ) -> float:
        giver, taker = seats[one], seats[other]
        readily = self._gives[giver] * self._takes[taker] * POSITION[(other - one) % 4]
        if dealer == other:
            readily *= 1.1
        if (giver, taker) not in self._pairs:
            self._pairs[giver, taker] = self.chance.lognormvariate(0, self.pairs_unlike)
        readily *= self._pairs[giver, taker]
        plot = self.colluding.get(frozenset((giver, taker))) if helping else None
        if plot is not None and (plot.times < 1 or plot.giver == giver):
            readily *= plot.times
        return readily

    def _claims(self, seats: Sequence[str], one: int, other: int) -> bool:
        often = 0.12 * math.sqrt(self._takes[seats[other]])
        if (other - one) % 4 == 1:
            often *= NEXT_FEEDS
        return self.chance.random() < often

    def _units(self) -> int:
        return self.chance.choice(LARGE if self.chance.random() < 0.15 else SMALL)


@dataclass(frozen=True, slots=True)
class Rates:
    """How a report did."""

    planted: int
    found: int
    """Pairs that were planted and are beyond chance."""
    honest: int
    """Honest pairs that were asked about."""
    false_alarms: int


def rates(told: Report, planted: Sequence[Collusion]) -> Rates:
    """Compare a report with what was planted."""
    plots = {frozenset((plot.giver, plot.taker)) for plot in planted}
    named = {frozenset((pair.one, pair.other)) for pair in told.beyond}
    asked = {frozenset((pair.one, pair.other)) for pair in told.pairs}
    return Rates(len(plots), len(plots & named), len(asked - plots), len(named - plots))


def season(
    chance: random.Random,
    *,
    tables: int,
    hands: int,
    players: int,
    pairs: int,
    tables_each: int,
    times: float,
    groups: int = 1,
    unlike: float = 0.3,
    pairs_unlike: float = 0.1,
) -> tuple[list[HandFacts], list[Collusion]]:
    """Tables of a season, some with a colluding pair.

    `pairs` pairs collude at `tables_each` tables each, the other two seats and all other tables are
    filled at random; the colluders play honestly at as many other tables as anybody. `groups`:
    players meet only those of their group (a club), so that honest pairs meet often too.
    """
    names = [f"p{number:05}" for number in range(players)]
    population = Population(chance, names, unlike, pairs_unlike)
    clubs = [names[club::groups] for club in range(groups)]
    planted = []
    seatings: list[list[str]] = []
    for number in range(pairs):
        club = clubs[number % groups]
        start = 2 * (number // groups)
        plot = Collusion(club[start], club[start + 1], times)
        planted.append(plot)
        population.colluding[frozenset((plot.giver, plot.taker))] = plot
        for _ in range(tables_each):
            others = [name for name in club if name not in (plot.giver, plot.taker)]
            strangers = chance.sample(others, 2)
            seatings.append([plot.giver, plot.taker, *strangers])
    if len(seatings) > tables:
        raise ValueError("there are more tables with collusion than tables")
    while len(seatings) < tables:
        seatings.append(chance.sample(chance.choice(clubs), 4))
    chance.shuffle(seatings)
    facts: list[HandFacts] = []
    for number, seated in enumerate(seatings):
        facts += population.table(f"t{number:06}", chance.sample(seated, 4), hands)
    return facts, planted
