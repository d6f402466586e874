"""Puts tickets together: the waiting tickets of one pool and the time go in, groups come out.

The oldest ticket chooses first. It looks at the others from the nearest rating outwards, as far as
its own spread goes by then, and takes the first that make up four players who may sit together. So
a newcomer never waits for a rating like his own while somebody old would take him, an old ticket
is never passed over for a newer one, and one that nobody is near to takes anybody in the end.

Who has chosen in vain rests. He chooses again when somebody comes whom he may take, when his spread
reaches the next one or when he may meet again whom he met: nothing else can change his luck.

Nothing here knows a clock, chance, a database or the wire. The driving loop::

    for group in queue.take(now_ms):      # they are out of the queue
        match = form_match(new_id(), pool, group, now_ms, chance)
        if not stored(match):
            put back those that still wait
    sleep until queue.next_ms(now_ms), or until a ticket is put in
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from math import inf

from sortedcontainers import SortedKeyList, SortedList

from .core import SEATS, Mode, Pool, Ticket, Vacancy

MOST_TRIES = 100
"""Tickets that choose in one go, so that others have the processor between; then the next ones."""
MOST_NEAR = 16
"""Tickets of each size that one which chooses has in view: in a crowd the nearest are enough."""
MOST_SEEN = 512
"""Tickets that it looks at until it has those in view."""
STEP_MS = 250
"""When one chooses again that had a crowd in view, of which not everybody could be looked at."""

_Key = tuple[float, float, float]


@dataclass(slots=True)
class _Turn:
    """A ticket that chooses."""

    chooser: Ticket
    now_ms: int
    width: float
    """How far from its own rating it looks."""
    again_ms: float = inf
    """When it may have more luck, though nobody comes."""

    def again_at(self, ms: float) -> None:
        """It may have more luck then."""
        self.again_ms = min(self.again_ms, max(ms, self.now_ms + 1))


class Queue:
    """The waiting tickets of one pool. Each operation costs O(log n) for a ticket.

    Players and standby tickets wait in lines of their own: a standby ticket is never what a table
    is made for.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._tickets: dict[str, Ticket] = {}
        self._ages: SortedKeyList[Ticket, tuple[int, int]] = _by_age()
        self._standby: SortedKeyList[Ticket, tuple[int, int]] = _by_age()
        self._near: dict[int, SortedKeyList[Ticket, _Key]] = {
            size: _by_rating() for size in range(1, SEATS)
        }
        self._players = 0
        self._choosing: SortedKeyList[Ticket, tuple[int, int]] = _by_age()
        """Whose turn it is; the other players' tickets rest."""
        self._newcomers: list[Ticket] = []
        """Whom nobody that rests has seen yet."""
        self._resting: SortedKeyList[Ticket, _Key] = _by_rating()
        self._again: dict[str, float] = {}
        """When those that rest choose again, by their ids."""
        self._agains: SortedList[tuple[float, str]] = SortedList()
        self._unfilled: set[str] = set()
        """The tickets for which there were too few on standby."""

    def __len__(self) -> int:
        """Players waiting, standby not counted."""
        return self._players

    @property
    def standby(self) -> int:
        """Tickets on standby."""
        return len(self._standby)

    @property
    def oldest_queued_ms(self) -> int | None:
        """When the longest waiting player was queued."""
        return self._ages[0].queued_ms if self._ages else None

    def put(self, ticket: Ticket) -> None:
        """Adds a ticket, or replaces it by its newer state."""
        self.remove(ticket.ticket_id)
        self._tickets[ticket.ticket_id] = ticket
        self._line(ticket).add(ticket)
        if ticket.standby:
            for ticket_id in self._unfilled & self._again.keys():
                self._rouse(self._tickets[ticket_id])
            self._unfilled.clear()
            return
        self._players += len(ticket.members)
        self._choosing.add(ticket)
        if len(ticket.members) < SEATS:
            self._near[len(ticket.members)].add(ticket)
            self._newcomers.append(ticket)

    def remove(self, ticket_id: str) -> None:
        """Takes a ticket out, if it is in."""
        ticket = self._tickets.get(ticket_id)
        if ticket is None:
            return
        self._line(ticket).remove(ticket)
        if not ticket.standby:
            if ticket_id in self._again:
                self._rouse(ticket)
            self._choosing.remove(ticket)
            self._unfilled.discard(ticket_id)
            self._players -= len(ticket.members)
            if len(ticket.members) < SEATS:
                self._near[len(ticket.members)].remove(ticket)
        del self._tickets[ticket_id]

    def position(self, ticket_id: str) -> int:
        """Place in the ticket's own line, 1 is next; 0: not in the queue."""
        ticket = self._tickets.get(ticket_id)
        if ticket is None:
            return 0
        place: int = self._line(ticket).bisect_key_left(ticket.age_key)
        return place + 1

    def take(self, now_ms: int) -> list[tuple[Ticket, ...]]:
        """Takes out the groups that can be seated now; the oldest tickets choose first.

        After MOST_TRIES it stops, `next_ms` is now, and the next call goes on from there.
        """
        self._rouse_all(now_ms)
        groups = []
        for _ in range(MOST_TRIES):
            if not self._choosing:
                break
            turn = self._turn(self._choosing[0], now_ms)
            group = self._choose(turn)
            if group is None:
                self._rest(turn)
            else:
                groups.append(group)
                for ticket in group:
                    self.remove(ticket.ticket_id)
        return groups

    def fill(
        self, vacancy: Vacancy, now_ms: int, after: tuple[int, int] | None = None
    ) -> tuple[Ticket | None, tuple[int, int] | None]:
        """Takes out the ticket that gets a seat at a table under way: the oldest that may have it.

        It looks at MOST_SEEN tickets, those behind `after` in the line, and tells behind which to
        go on the next time; None: from the front. Standby tickets come when no player does.
        """
        first = 0 if after is None else self._ages.bisect_key_right(after)
        for ticket in self._ages.islice(first, first + MOST_SEEN):
            if self._may_join(ticket, vacancy, now_ms):
                self.remove(ticket.ticket_id)
                return ticket, None
            after = ticket.age_key
        if first + MOST_SEEN < len(self._ages):
            return None, after
        fill_ms = self.pool.fill_with_bots_after_ms
        if fill_ms and now_ms >= vacancy.since_ms + fill_ms:
            for ticket in self._standby:
                if ticket.player_id not in vacancy.sat:
                    self.remove(ticket.ticket_id)
                    return ticket, None
        return None, None

    def next_ms(self, now_ms: int) -> int | None:
        """When tickets should choose again, if none comes before; None: not before one comes."""
        if self._choosing:
            return now_ms
        return max(now_ms, int(self._agains[0][0])) if self._agains else None

    def _turn(self, chooser: Ticket, now_ms: int) -> _Turn:
        rating = self.pool.rating
        width = inf if rating is None else rating.spread.at(now_ms - chooser.queued_ms)
        return _Turn(chooser, now_ms, width)

    def _rest(self, turn: _Turn) -> None:
        """Lays down a ticket that has chosen in vain."""
        self._choosing.remove(turn.chooser)
        self._resting.add(turn.chooser)
        self._set_again(turn.chooser, turn.again_ms)

    def _rouse(self, ticket: Ticket) -> None:
        """Has a ticket that rests choose again."""
        self._set_again(ticket, inf)
        del self._again[ticket.ticket_id]
        self._resting.remove(ticket)
        self._choosing.add(ticket)

    def _rouse_all(self, now_ms: int) -> None:
        """Has those choose again who may have more luck now."""
        while self._agains and self._agains[0][0] <= now_ms:
            self._rouse(self._tickets[self._agains[0][1]])
        newcomers, self._newcomers = self._newcomers, []
        for newcomer in newcomers:
            if self._resting and self._tickets.get(newcomer.ticket_id) is newcomer:
                self._show(newcomer, now_ms)

    def _show(self, newcomer: Ticket, now_ms: int) -> None:
        """Has those that rest choose again who may take a newcomer, now or when they reach him."""
        spread = None if self.pool.rating is None else self.pool.rating.spread
        reach = inf if spread is None or spread.widest is None else spread.widest
        within = self._resting.irange_key(
            (newcomer.rating - reach, -inf, -inf), (newcomer.rating + reach, inf, inf)
        )
        sees = []
        for one in within:
            if len(one.members) + len(newcomer.members) <= SEATS:
                waits_ms = 0.0
                if spread is not None:
                    waits_ms = spread.reaches_ms(abs(one.rating - newcomer.rating))
                sees.append((one, one.queued_ms + waits_ms))
        for one, again_ms in sees:
            if again_ms <= now_ms:
                self._rouse(one)
            elif again_ms < self._again[one.ticket_id]:
                self._set_again(one, again_ms)

    def _set_again(self, ticket: Ticket, again_ms: float) -> None:
        """When a ticket that rests chooses again; infinite: not before somebody comes."""
        before_ms = self._again.get(ticket.ticket_id, inf)
        if before_ms < inf:
            self._agains.remove((before_ms, ticket.ticket_id))
        self._again[ticket.ticket_id] = again_ms
        if again_ms < inf:
            self._agains.add((again_ms, ticket.ticket_id))

    def _choose(self, turn: _Turn) -> tuple[Ticket, ...] | None:
        chooser = turn.chooser
        need = SEATS - len(chooser.members)
        if need == 0:
            return (chooser,)
        seen: list[Ticket] = []
        for ticket in self._in_view(turn, need):
            rest = self._subset(turn, seen, need - len(ticket.members), (ticket,))
            if rest is not None:
                return (chooser, *rest[1:], ticket)
            seen.append(ticket)
        return self._fill(turn, seen, need) if self.pool.fill_with_bots_after_ms else None

    def _fill(self, turn: _Turn, seen: Sequence[Ticket], need: int) -> tuple[Ticket, ...] | None:
        """The chooser with whom it may meet and, for the other seats, tickets on standby."""
        due_ms = turn.chooser.queued_ms + self.pool.fill_with_bots_after_ms
        if turn.now_ms < due_ms:
            turn.again_at(due_ms)
            return None
        together = [turn.chooser]
        for ticket in seen:
            size = len(ticket.members)
            if size < need and all(self._may_meet(turn, one, ticket) for one in together):
                together.append(ticket)
                need -= size
        if len(self._standby) < need:
            self._unfilled.add(turn.chooser.ticket_id)
            return None
        return (*together, *self._standby[:need])

    def _subset(
        self, turn: _Turn, seen: Sequence[Ticket], need: int, group: tuple[Ticket, ...]
    ) -> tuple[Ticket, ...] | None:
        """The group with the first of `seen` that bring as many players as it still needs."""
        if need == 0:
            return group
        for at, ticket in enumerate(seen):
            size = len(ticket.members)
            if size <= need and all(self._may_meet(turn, one, ticket) for one in group):
                whole = self._subset(turn, seen[at + 1 :], need - size, (*group, ticket))
                if whole is not None:
                    return whole
        return None

    def _in_view(self, turn: _Turn, need: int) -> Iterator[Ticket]:
        """Tickets that may meet the chooser, the nearest first, some of each size."""
        lines = [self._of_size(turn, size) for size in range(1, need + 1)]
        return merge(*lines, key=lambda one: _distance_key(turn.chooser, one))

    def _of_size(self, turn: _Turn, size: int) -> Iterator[Ticket]:
        chooser, left = turn.chooser, MOST_NEAR
        for seen, ticket in enumerate(_outwards(self._near[size], chooser.rating)):
            distance = abs(ticket.rating - chooser.rating)
            if distance > turn.width:
                if self.pool.rating is not None:
                    waits_ms = self.pool.rating.spread.reaches_ms(distance)
                    turn.again_at(chooser.queued_ms + waits_ms)
                return
            if not left or seen == MOST_SEEN:
                turn.again_at(turn.now_ms + STEP_MS)
                return
            if ticket is not chooser and self._may_meet(turn, chooser, ticket):
                left -= 1
                yield ticket

    def _may_join(self, ticket: Ticket, vacancy: Vacancy, now_ms: int) -> bool:
        """Whether one who waits may sit down with those at a table; it is his wait that counts."""
        if len(ticket.members) > 1 or ticket.player_id in vacancy.sat:
            return False
        if not ticket.apart.isdisjoint(vacancy.player_ids):
            return False
        width = self._turn(ticket, now_ms).width
        may_meet_again = now_ms - ticket.queued_ms >= self.pool.rematch_after_ms
        return all(
            abs(seated.rating - ticket.rating) <= width
            and self._may_sit(ticket, seated)
            and (may_meet_again or not _have_met(ticket, seated))
            for seated in vacancy.tickets
            if not seated.standby  # whom nobody minds
        )

    def _may_sit(self, one: Ticket, other: Ticket) -> bool:
        """Whether nothing keeps the two apart for good."""
        if _name(one.apart, other) or _name(other.apart, one):
            return False
        return self.pool.mode is not Mode.ANTI_CHEAT or one.traits.isdisjoint(other.traits)

    def _may_meet(self, turn: _Turn, one: Ticket, other: Ticket) -> bool:
        if not self._may_sit(one, other):
            return False
        if not _have_met(one, other):
            return True
        from_ms = min(one.queued_ms, other.queued_ms) + self.pool.rematch_after_ms
        if turn.now_ms < from_ms:
            turn.again_at(from_ms)
            return False
        return True

    def _line(self, ticket: Ticket) -> SortedKeyList[Ticket, tuple[int, int]]:
        return self._standby if ticket.standby else self._ages


def _name(player_ids: frozenset[str], ticket: Ticket) -> bool:
    """Whether one of these players is of a ticket."""
    return bool(player_ids) and not player_ids.isdisjoint(ticket.player_ids)


def _have_met(one: Ticket, other: Ticket) -> bool:
    return _name(one.met, other) or _name(other.met, one)


def _by_age() -> SortedKeyList[Ticket, tuple[int, int]]:
    return SortedKeyList(key=lambda ticket: ticket.age_key)


def _by_rating() -> SortedKeyList[Ticket, _Key]:
    return SortedKeyList(key=_rating_key)


def _rating_key(ticket: Ticket) -> _Key:
    return (ticket.rating, *ticket.age_key)


def _distance_key(chooser: Ticket, ticket: Ticket) -> _Key:
    return (abs(ticket.rating - chooser.rating), *ticket.age_key)


def _outwards(near: SortedKeyList[Ticket, _Key], rating: float) -> Iterator[Ticket]:
    """The tickets from a rating on to both sides, the nearest first; of equals the oldest."""
    middle = (rating, -1, -1)
    above = near.irange_key(min_key=middle)
    below = near.irange_key(max_key=middle, reverse=True)
    return merge(above, below, key=lambda one: abs(one.rating - rating))
