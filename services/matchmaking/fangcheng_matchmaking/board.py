"""What this process knows of the live tickets, and who watches them.

The store decides; the board follows. Whatever the store answers is put on the board at once, before
anything else is awaited, so that the order of changes is the store's. A version on each ticket
keeps a late answer from hiding a newer one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from .core import Pool, Queue, Ticket, TicketState

MOST_PENDING = 32
"""Changes kept for a watcher that reads slowly; older ones are left out, the outcome never."""


@dataclass(frozen=True, slots=True)
class View:
    """A ticket and its place in the queue."""

    ticket: Ticket
    position: int

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
    """Live tickets by id, queues by pool, watches by ticket."""

    def __init__(self, pools: Mapping[str, Pool]) -> None:
        self.queues = {
            pool_id: Queue(pool.fill_with_bots_after_ms) for pool_id, pool in pools.items()
        }
        self.changed = asyncio.Event()
        """Set when a queue has changed; whoever waits for it clears it."""
        self.moved = asyncio.Event()
        """Set when watchers have positions to be told; `show_positions` clears it."""
        self._tickets: dict[str, Ticket] = {}
        self._watches: dict[str, set[Watch]] = {}
        self._moved_pools: set[str] = set()

    def put(self, *tickets: Ticket) -> None:
        """Shows tickets as the store has answered them."""
        for ticket in tickets:
            known = self._tickets.get(ticket.ticket_id)
            if known is not None and known.version >= ticket.version:
                continue
            if ticket.is_live:
                self._tickets[ticket.ticket_id] = ticket
            else:
                self._tickets.pop(ticket.ticket_id, None)
            self._enqueue(ticket)
            for watch in self._watches.get(ticket.ticket_id, ()):
                watch.show(self.view(ticket))

    def view(self, ticket: Ticket) -> View:
        """The ticket with its place in the queue."""
        queue = self.queues.get(ticket.pool_id)
        return View(ticket, 0 if queue is None else queue.position(ticket.ticket_id))

    def waiting(self) -> Iterable[Ticket]:
        """The waiting tickets, of pools that are configured or not."""
        return [one for one in self._tickets.values() if one.state is TicketState.WAITING]

    def tables(self) -> set[str]:
        """The tables that tickets are assigned to."""
        return {
            ticket.table_id
            for ticket in self._tickets.values()
            if ticket.state is TicketState.ASSIGNED and ticket.table_id is not None
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
        queue = self.queues.get(ticket.pool_id)
        if queue is None:
            return
        if ticket.state is TicketState.WAITING:
            queue.put(ticket)
        elif not queue.position(ticket.ticket_id):
            return
        else:
            queue.remove(ticket.ticket_id)
        self._moved_pools.add(ticket.pool_id)
        self.moved.set()
        self.changed.set()
