"""What this process knows of the live tickets, and who watches them.

The store decides; the board follows. Whatever the store answers is put on the board at once, before
anything else is awaited, so that the order of changes is the store's. A version on each ticket
keeps a late answer from hiding a newer one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from .core import Offer, Ticket, TicketState
from .matching import Queue

PACE_SEATINGS = 32
"""Seatings that an estimate is made of."""
MOST_PENDING = 32
"""Changes kept for a watcher that reads slowly; older ones are left out, the outcome never."""


@dataclass(frozen=True, slots=True)
class View:
    """A ticket and its place in the queue."""

    ticket: Ticket
    position: int
    estimate_ms: int | None = None
    """How long it will wait yet, as far as the last seatings tell."""

    @property
    def is_last(self) -> bool:
        """The outcome: nothing more will happen to the ticket in the queue."""
        return self.ticket.state not in (TicketState.WAITING, TicketState.MATCHED)


class Watch:
    """The changes of one ticket for one reader, from when it was begun."""

    def __init__(self) -> None:
        self._pending: deque[View] = deque(maxlen=MOST_PENDING)
        self._version = 0
        self._more = asyncio.Event()

    def show(self, view: View) -> None:
        """Adds a view, unless it tells nothing new."""
        if view.ticket.version < self._version:
            return
        latest = self._pending[-1] if self._pending else None
        if latest is not None and latest.ticket.state is view.ticket.state:
            self._pending.pop()  # only the newest position matters
        self._pending.append(view)
        self._version = view.ticket.version
        self._more.set()

    async def next(self) -> View:
        """The next view, in order; waits for it."""
        while not self._pending:
            self._more.clear()
            await self._more.wait()
        return self._pending.popleft()


class Board:
    """Live tickets by id, queues by pool and revision, watches by ticket."""

    def __init__(self, offers: Mapping[str, Offer]) -> None:
        self.queues: dict[tuple[str, int], Queue] = {}
        self.paces: dict[str, Pace] = {}
        self.changed = asyncio.Event()
        """Set when a queue has changed; whoever waits for it clears it."""
        self.moved = asyncio.Event()
        """Set when watchers have positions to be told; `show_positions` clears it."""
        self._tickets: dict[str, Ticket] = {}
        self._watches: dict[str, set[Watch]] = {}
        self._moved_pools: set[str] = set()
        self.offer(offers)

    def offer(self, offers: Mapping[str, Offer]) -> None:
        """Queues for these pools, and none for others; the tickets that wait in them go along."""
        self.queues = {
            (pool.pool_id, pool.revision): Queue(pool)
            for offer in offers.values()
            for pool in offer.pools
        }
        self.paces = {pool_id: self.paces.get(pool_id, Pace()) for pool_id in offers}
        for ticket in self._tickets.values():
            self._enqueue(ticket)

    def of_pool(self, pool_id: str) -> list[Queue]:
        """The queues of a pool, one for each revision."""
        return [queue for (of, _), queue in self.queues.items() if of == pool_id]

    def put(self, *tickets: Ticket) -> None:
        """Shows tickets as the store has answered them."""
        for ticket in tickets:
            known = self._tickets.get(ticket.ticket_id)
            if known is not None:
                if known.version >= ticket.version:
                    continue
                if known.revision != ticket.revision:
                    self._dequeue(known)
            if ticket.is_live:
                self._tickets[ticket.ticket_id] = ticket
            else:
                self._tickets.pop(ticket.ticket_id, None)
            self._enqueue(ticket)
            for watch in self._watches.get(ticket.ticket_id, ()):
                watch.show(self.view(ticket))

    def view(self, ticket: Ticket) -> View:
        """The ticket with its place in the queue."""
        queue = self.queues.get((ticket.pool_id, ticket.revision))
        position = 0 if queue is None else queue.position(ticket.ticket_id)
        if not position or ticket.standby:
            return View(ticket, position)
        return View(ticket, position, self.paces[ticket.pool_id].estimate_ms(position))

    def put_back(self, tickets: Iterable[Ticket]) -> None:
        """Tickets that were taken out of their queue for a match that was not formed wait again."""
        for taken in tickets:
            ticket = self._tickets.get(taken.ticket_id)
            if ticket is not None and ticket.state is TicketState.WAITING:
                self._enqueue(ticket)

    def note_seated(self, pool_id: str, now_ms: int, players: int) -> None:
        """Players of a pool were seated; the estimates of others are made of it."""
        if pool_id in self.paces:
            self.paces[pool_id].seated(now_ms, players)

    def newest(self, ticket: Ticket) -> Ticket:
        """A ticket as it stands now, if it is live; otherwise as it was."""
        return self._tickets.get(ticket.ticket_id, ticket)

    def waiting(self) -> Iterable[Ticket]:
        """The waiting tickets, of pools that are configured or not."""
        return [one for one in self._tickets.values() if one.state is TicketState.WAITING]

    def tables(self, pool_ids: Collection[str]) -> set[str]:
        """The tables that tickets of these pools are assigned to."""
        return {
            ticket.table_id
            for ticket in self._tickets.values()
            if ticket.state is TicketState.ASSIGNED
            and ticket.table_id is not None
            and ticket.pool_id in pool_ids
        }

    @contextmanager
    def watching(self, ticket_id: str) -> Iterator[Watch]:
        """A watch of a ticket's changes from now on."""
        watch = Watch()
        self._watches.setdefault(ticket_id, set()).add(watch)
        try:
            yield watch
        finally:
            others = self._watches[ticket_id]
            others.discard(watch)
            if not others:
                del self._watches[ticket_id]

    def show_positions(self) -> None:
        """Tells the watchers of queues that have moved where their tickets are now."""
        moved, self._moved_pools = self._moved_pools, set()
        self.moved.clear()
        for ticket_id, watches in self._watches.items():
            ticket = self._tickets.get(ticket_id)
            if ticket is None or ticket.pool_id not in moved:
                continue
            if ticket.state is TicketState.WAITING:
                for watch in watches:
                    watch.show(self.view(ticket))

    def _enqueue(self, ticket: Ticket) -> None:
        if ticket.state is not TicketState.WAITING:
            self._dequeue(ticket)
            return
        queue = self.queues.get((ticket.pool_id, ticket.revision))
        if queue is not None:
            queue.put(ticket)
            self._note_move(ticket.pool_id)

    def _dequeue(self, ticket: Ticket) -> None:
        queue = self.queues.get((ticket.pool_id, ticket.revision))
        if queue is not None:
            queue.remove(ticket.ticket_id)
            self._note_move(ticket.pool_id)

    def _note_move(self, pool_id: str) -> None:
        self._moved_pools.add(pool_id)
        self.moved.set()
        self.changed.set()


class Pace:
    """How quickly a pool seats its players, by its last seatings."""

    def __init__(self) -> None:
        self._seated: deque[tuple[int, int]] = deque(maxlen=PACE_SEATINGS)

    def seated(self, now_ms: int, players: int) -> None:
        """Players were seated."""
        self._seated.append((now_ms, players))

    def estimate_ms(self, position: int) -> int | None:
        """How long until as many are seated, at the pace of late; None: too little is known."""
        if len(self._seated) < 2:
            return None
        took_ms = self._seated[-1][0] - self._seated[0][0]
        players = sum(count for _, count in self._seated) - self._seated[0][1]
        return took_ms * position // players
