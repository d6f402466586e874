"""Pools of tickets on a clock of their own: who comes, and who is seated when.

Everything is drawn from a seed. *Ratings* are normal about 25 with a deviation of 25/3, which is
what OpenSkill takes players to be before it has seen them play. *Arrivals* are a Poisson process.
Over a day its rate follows `HOURS`, a curve of our own after what games have published of their
servers: least before dawn, a shoulder at noon, nine times as much as before dawn at nine in the
evening (League of Legends, North America, had 30,000 games an hour at five and 270,000 at eight).
"""

from __future__ import annotations

import heapq
import math
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from fangcheng_matchmaking.core import (
    Member,
    Mode,
    Pool,
    Rating,
    Spread,
    Stake,
    Terms,
    Ticket,
)
from fangcheng_matchmaking.matching import Queue

MEAN, DEVIATION = 25.0, 25 / 3
HOURS = (
    *(2.6, 1.7, 1.2, 1.0, 1.0, 1.1, 1.5, 2.2, 3.0, 3.6, 4.2, 5.0),
    *(6.0, 5.4, 4.6, 4.4, 4.6, 5.2, 6.4, 7.8, 8.8, 9.0, 7.4, 4.6),
)
"""How many come in an hour, as a multiple of the stillest one."""
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

POOL = Pool(
    pool_id="ranked",
    name="ranked",
    mode=Mode.RANKED,
    terms=Terms(rule_set="baishan_kele", stakes=(Stake(currency="points", per_unit=1),), hands=8),
    most_party=2,
    rating=Rating(spread=Spread(points=2.0, widen_per_second=1.0, widest=25.0)),
)
"""By skill: two points to either side at first, a point more for every second, to three deviations.
Who met at their last table do not meet again within ten seconds."""

PARTIES = 0.1
"""So many tickets are two friends."""
GOES_ON = 2 / 3
"""So many queue again when their table has closed, after five to twenty seconds."""
TABLE_MINUTES, TABLE_SIGMA = 12.0, 0.3
"""A table's length is log-normal: its median, and the deviation of its logarithm."""


@dataclass(slots=True)
class Waits:
    """What became of tickets."""

    ms: list[int] = field(default_factory=list)
    """What each player waited."""
    gaps: list[float] = field(default_factory=list)
    """Of each table, between the highest rating and the lowest."""

    def seconds(self, share: float) -> float:
        """The wait that so many of the players do not exceed."""
        return _quantile(self.ms, share) / 1_000

    def gap(self, share: float) -> float:
        """As `seconds`, between ratings, of tables."""
        return _quantile(self.gaps, share)

    def within(self, ms: int) -> float:
        """The share of the players who waited no longer."""
        return sum(one <= ms for one in self.ms) / len(self.ms)

    def see(self, group: Iterable[Ticket], now_ms: int) -> None:
        """Notes a table."""
        ratings = []
        for ticket in group:
            ratings.append(ticket.rating)
            self.ms.extend(now_ms - ticket.queued_ms for _ in ticket.members)
        self.gaps.append(max(ratings) - min(ratings))


def _quantile(values: list[float] | list[int], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def ticket(number: int, rating: float, queued_ms: int, player_ids: Iterable[str] = ()) -> Ticket:
    """A ticket; of a player of its own unless others are named."""
    return Ticket(
        ticket_id=f"t{number}",
        request_id="r",
        members=tuple(Member(player_id=one) for one in player_ids or (f"p{number}",)),
        pool_id=POOL.pool_id,
        rating=rating,
        queued_ms=queued_ms,
        number=number,
    )


def rating(chance: random.Random) -> float:
    """How good somebody is."""
    return chance.gauss(MEAN, DEVIATION)


def steady(
    per_second: float, seconds: float, chance: random.Random, first: int = 0
) -> Iterator[Ticket]:
    """Tickets of one player each that come at a rate; numbered from `first` on."""
    at, number = 0.0, first
    while per_second and (at := at + chance.expovariate(per_second)) < seconds:
        yield ticket(number, rating(chance), int(1_000 * at))
        number += 1


@dataclass(slots=True)
class Run:
    """A pool under arrivals, the time that the matcher takes included."""

    old: Waits = field(default_factory=Waits)
    """Of those who were there at first, counted from then."""
    new: Waits = field(default_factory=Waits)
    """Of those who came."""
    took_seconds: float = 0.0
    """CPU time of the matcher."""
    longest_ms: float = 0.0
    """The longest that it did nothing else."""
    cleared_ms: int = 0
    """When the last of the old ones that could be seated was."""
    left: int = 0
    """Who waited yet at the end."""


def run(waiting: int, per_second: float, seconds: float, seed: int) -> Run:
    """A pool with so many tickets that wait, as after a pause, and others that come meanwhile."""
    chance = random.Random(seed)
    queue, found = Queue(POOL), Run()
    for number in range(waiting):
        queue.put(ticket(number, rating(chance), 0))
    coming = steady(per_second, seconds, chance, first=waiting)
    following = next(coming, None)
    now = 0.0
    while now < 1_000 * seconds:
        began = time.process_time()
        while following is not None and following.queued_ms <= now:
            queue.put(following)
            following = next(coming, None)
        groups = queue.take(int(now))
        took = time.process_time() - began
        found.took_seconds += took
        found.longest_ms = max(found.longest_ms, 1_000 * took)
        now += 1_000 * took
        for group in groups:
            for one in group:
                (found.old if one.number < waiting else found.new).see((one,), int(now))
                if one.number < waiting:
                    found.cleared_ms = int(now)
        comes = None if following is None else following.queued_ms
        now = max(now, _soonest(queue.next_ms(int(now)), comes))
    found.left = len(queue)
    return found


def _soonest(*times_ms: int | None) -> float:
    return min((at for at in times_ms if at is not None), default=math.inf)


@dataclass(slots=True)
class Day:
    """A day of a pool."""

    hours: list[Waits] = field(default_factory=lambda: [Waits() for _ in HOURS])
    """By the hour in which tables were made."""
    tickets: int = 0
    took_seconds: float = 0.0
    """CPU time of the matcher."""
    most_waiting: int = 0
    left: int = 0
    """Players who waited yet at midnight."""

    @property
    def whole(self) -> Waits:
        """All hours."""
        return Waits(
            [one for hour in self.hours for one in hour.ms],
            [one for hour in self.hours for one in hour.gaps],
        )


def day(tickets: int, seed: int) -> Day:
    """A day on which about as many tickets come, those of players who queue again among them."""
    chance = random.Random(seed)
    queue, found = Queue(POOL), Day()
    # Who comes for the first time, and who comes back from a table: a heap by time.
    coming = [(one.queued_ms, one.number, one) for one in _sessions(tickets, chance)]
    heapq.heapify(coming)
    number = len(coming)
    now = 0
    while now < DAY_MS:
        began = time.process_time()
        while coming and coming[0][0] <= now:
            queue.put(heapq.heappop(coming)[2])
            found.tickets += 1
        groups = queue.take(now)
        due = queue.next_ms(now)
        found.took_seconds += time.process_time() - began
        found.most_waiting = max(found.most_waiting, len(queue))
        for group in groups:
            found.hours[now // HOUR_MS].see(group, now)
            together = {one for seated in group for one in seated.player_ids}
            length = 60_000 * TABLE_MINUTES * math.exp(chance.gauss(0.0, TABLE_SIGMA))
            for seated in group:
                if chance.random() < GOES_ON:
                    again = now + int(length + chance.uniform(5_000, 20_000))
                    met = frozenset(together.difference(seated.player_ids))
                    number += 1
                    back = replace(
                        seated, ticket_id=f"t{number}", number=number, queued_ms=again, met=met
                    )
                    heapq.heappush(coming, (again, number, back))
        now = max(now, int(min(_soonest(due, coming[0][0] if coming else None), DAY_MS)))
    found.left = len(queue)
    return found


def _sessions(tickets: int, chance: random.Random) -> Iterator[Ticket]:
    """The first tickets of players who come in a day; each brings 1 / (1 - GOES_ON) on average."""
    expected, number = tickets * (1 - GOES_ON), 0
    for hour, share in enumerate(HOURS):
        per_ms = expected * share / sum(HOURS) / HOUR_MS
        at = hour * HOUR_MS + chance.expovariate(per_ms)
        while at < (hour + 1) * HOUR_MS:
            names = [f"p{number}"]
            if chance.random() < PARTIES:
                names.append(f"p{number}.1")
            mean = sum(rating(chance) for _ in names) / len(names)
            yield ticket(number, mean, int(at), names)
            number += 1
            at += chance.expovariate(per_ms)
