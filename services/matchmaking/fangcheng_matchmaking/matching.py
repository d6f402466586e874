"""Puts tickets together: the waiting tickets of one pool and the time go in, groups come out.

The oldest ticket chooses first. It looks at the others from the nearest rating outwards, as far as
its own spread goes by then, and takes the first that make up four players who may sit together. So
a newcomer never waits for a rating like his own while somebody old would take him, an old ticket
is never passed over for a newer one, and one that nobody is near to takes anybody in the end.

Nothing here knows a clock, chance, a database or the wire. The driving loop::

    for group in queue.take(now_ms):      # they are out of the queue
        match = form_match(new_id(), pool, group, now_ms, chance)
        if not stored(match):
            put back those that still wait
    sleep until queue.next_ms(now_ms), or until a ticket is put in
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from math import inf

from sortedcontainers import SortedKeyList

from .core import SEATS, Mode, Pool, Ticket

MOST_TRIES = 500
"""Tickets that choose in one go, so that others have the processor between; then the next ones."""
MOST_NEAR = 16
"""Tickets of each size that one which chooses has in view: in a crowd the nearest are enough."""
MOST_SEEN = 512
"""Tickets that it looks at until it has those in view."""
STEP_MS = 250
"""How often tickets choose again while spreads widen."""

_Key = tuple[float, int, int]


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
            size: SortedKeyList(key=_rating_key) for size in range(1, SEATS)
        }
        self._players = 0
        self._last: tuple[int, int] | None = None
        """The ticket that chose last, where others have not had their turn yet."""

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
            return
        self._players += len(ticket.members)
        if len(ticket.members) < SEATS:
            self._near[len(ticket.members)].add(ticket)

    def remove(self, ticket_id: str) -> None:
        """Takes a ticket out, if it is in."""
        ticket = self._tickets.pop(ticket_id, None)
        if ticket is None:
            return
        self._line(ticket).remove(ticket)
        if ticket.standby:
            return
        self._players -= len(ticket.members)
        if len(ticket.members) < SEATS:
            self._near[len(ticket.members)].remove(ticket)

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
        groups = []
        for _ in range(MOST_TRIES):
            at = 0 if self._last is None else self._ages.bisect_key_right(self._last)
            if at >= len(self._ages):
                self._last = None
                break
            chooser = self._ages[at]
            self._last = chooser.age_key
            group = self._choose(chooser, now_ms)
            if group is not None:
                groups.append(group)
                for ticket in group:
                    self.remove(ticket.ticket_id)
        return groups

    def next_ms(self, now_ms: int) -> int | None:
        """When tickets should choose again, if none comes before; None: not before one comes."""
        if self._last is not None:
            return now_ms
        due = []
        if self._players >= SEATS and not self._is_settled(now_ms):
            due.append(now_ms + STEP_MS)
        if self.pool.fill_with_bots_after_ms and self._standby:
            # Whoever was due before and is still here found too few bots.
            at = self._ages.bisect_key_right((now_ms - self.pool.fill_with_bots_after_ms, 2**63))
            if at < len(self._ages):
                due.append(self._ages[at].queued_ms + self.pool.fill_with_bots_after_ms)
        return min(due, default=None)

    def _is_settled(self, now_ms: int) -> bool:
        """Whether waiting changes nothing: no spread widens, and all have waited for rematches."""
        waited_ms = now_ms - self._ages[-1].queued_ms
        if waited_ms < self.pool.rematch_after_ms:
            return False
        rating = self.pool.rating
        if rating is None:
            return True
        wide, later = rating.spread.at(waited_ms), rating.spread.at(waited_ms + STEP_MS)
        ends = [one.rating for near in self._near.values() if near for one in (near[0], near[-1])]
        return wide == later or not ends or wide >= max(ends) - min(ends)

    def _choose(self, chooser: Ticket, now_ms: int) -> tuple[Ticket, ...] | None:
        need = SEATS - len(chooser.members)
        if need == 0:
            return (chooser,)
        seen: list[Ticket] = []
        for ticket in self._in_view(chooser, need, now_ms):
            rest = self._subset(seen, need - len(ticket.members), (ticket,), now_ms)
            if rest is not None:
                return (chooser, *rest[1:], ticket)
            seen.append(ticket)
        fill_ms = self.pool.fill_with_bots_after_ms
        if not fill_ms or now_ms < chooser.queued_ms + fill_ms:
            return None
        together = [chooser]
        for ticket in seen:
            size = len(ticket.members)
            if size < need and all(self._may_meet(one, ticket, now_ms) for one in together):
                together.append(ticket)
                need -= size
        if len(self._standby) < need:
            return None
        return (*together, *self._standby[:need])

    def _subset(
        self, seen: Sequence[Ticket], need: int, group: tuple[Ticket, ...], now_ms: int
    ) -> tuple[Ticket, ...] | None:
        """The group with the first of `seen` that bring as many players as it still needs."""
        if need == 0:
            return group
        for at, ticket in enumerate(seen):
            size = len(ticket.members)
            if size <= need and all(self._may_meet(one, ticket, now_ms) for one in group):
                whole = self._subset(seen[at + 1 :], need - size, (*group, ticket), now_ms)
                if whole is not None:
                    return whole
        return None

    def _in_view(self, chooser: Ticket, need: int, now_ms: int) -> Iterator[Ticket]:
        """Tickets that may meet the chooser, the nearest first, some of each size."""
        rating = self.pool.rating
        width = inf if rating is None else rating.spread.at(now_ms - chooser.queued_ms)
        lines = [self._of_size(size, chooser, width, now_ms) for size in range(1, need + 1)]
        return merge(*lines, key=lambda one: _distance_key(chooser, one))

    def _of_size(self, size: int, chooser: Ticket, width: float, now_ms: int) -> Iterator[Ticket]:
        left = MOST_NEAR
        for seen, ticket in enumerate(_outwards(self._near[size], chooser.rating)):
            if not left or seen == MOST_SEEN or abs(ticket.rating - chooser.rating) > width:
                return
            if ticket is not chooser and self._may_meet(chooser, ticket, now_ms):
                left -= 1
                yield ticket

    def _may_meet(self, one: Ticket, other: Ticket, now_ms: int) -> bool:
        if not (one.apart.isdisjoint(other.player_ids) and other.apart.isdisjoint(one.player_ids)):
            return False
        if self.pool.mode is Mode.ANTI_CHEAT and not one.traits.isdisjoint(other.traits):
            return False
        if one.met.isdisjoint(other.player_ids) and other.met.isdisjoint(one.player_ids):
            return True
        return now_ms - min(one.queued_ms, other.queued_ms) >= self.pool.rematch_after_ms

    def _line(self, ticket: Ticket) -> SortedKeyList[Ticket, tuple[int, int]]:
        return self._standby if ticket.standby else self._ages


def _by_age() -> SortedKeyList[Ticket, tuple[int, int]]:
    return SortedKeyList(key=lambda ticket: ticket.age_key)


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
