"""The matchmaker as it runs: requests and time come in, matches are formed, tables watched.

Nothing here decides (`core`, `store` do) and nothing knows the wire of players (`service` does).
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import grpc.aio

from .board import Board, View
from .core import Match, NewTicket, Pool, Queue, Ticket, TicketState, form_match
from .matches import Backoff, Matches, end_table
from .metrics import Metrics
from .partners import Seat, Tables, Unanswered, Wallet
from .store import Joined, LiveTicket, NotWaiting, Store

T = TypeVar("T")

POSITION_SECONDS = 0.5
"""How often at most the watchers of a queue are told that they have moved up."""
FORGET_SECONDS = 3_600.0
DAY_MS = 86_400_000


class UnknownPool(Exception):
    """No pool of that id."""


class NotABot(Exception):
    """Only bots wait on standby."""


class NotFilled(Exception):
    """The pool is never filled: nobody would come to seat a standby ticket."""


class ClientTooOld(Exception):
    """The pool takes newer clients."""

    def __init__(self, least: int) -> None:
        super().__init__(str(least))
        self.least = least


class AlreadyQueued(Exception):
    """The player has a ticket in a queue."""

    def __init__(self, ticket: Ticket) -> None:
        super().__init__(ticket.ticket_id)
        self.ticket = ticket


class AlreadySeated(Exception):
    """The player sits at a table that has not closed."""

    def __init__(self, table_id: str) -> None:
        super().__init__(table_id)
        self.table_id = table_id


@dataclass(frozen=True, slots=True)
class Status:
    """Where a player is."""

    view: View | None
    seat: Seat | None
    hold_ids: tuple[str, ...] = ()


def wall_clock_ms() -> int:
    """Milliseconds since 1970: ages must outlast a restart."""
    return time.time_ns() // 1_000_000


class Matchmaker:
    """Queues, matches and assignments. `load` first, then `run` beside the server."""

    def __init__(
        self,
        pools: Mapping[str, Pool],
        store: Store,
        wallet: Wallet,
        tables: Tables,
        metrics: Metrics,
        *,
        log: Any,
        chance: random.Random,
        table_check_seconds: float,
        longest_backoff_seconds: float,
        keep_days: float,
    ) -> None:
        self.pools = pools
        self.board = Board(pools)
        self._store = store
        self._wallet = wallet
        self._tables = tables
        self._metrics = metrics
        self._log = log
        self._chance = chance
        self._table_check_seconds = table_check_seconds
        self._keep_ms = int(keep_days * DAY_MS)
        self._matches = Matches(
            store,
            self.board,
            wallet,
            tables,
            metrics,
            clock_ms=wall_clock_ms,
            chance=chance,
            longest_backoff_seconds=longest_backoff_seconds,
            table_refused=self._pause,
            table_given=self._resume,
            log=log,
        )
        self._pauses = {pool_id: Backoff(longest_backoff_seconds, chance) for pool_id in pools}
        self._paused_until: dict[str, float] = {}
        self._unfinished: list[Match] = []
        self._begun: set[asyncio.Task[Any]] = set()
        for pool_id, queue in self.board.queues.items():
            metrics.waiting.labels(pool_id, "player").set_function(queue.__len__)
            metrics.waiting.labels(pool_id, "standby").set_function(partial(_standby, queue))
            metrics.oldest_seconds.labels(pool_id).set_function(partial(_age_seconds, queue))

    async def load(self) -> None:
        """Takes up what the process before has left."""
        self.board.put(*await self._store.live_tickets())
        self._unfinished = await self._store.unfinished_matches()
        for ticket in self.board.waiting():
            await self._matches.fail_without_pool(ticket)

    async def run(self) -> None:
        """Forms matches and follows them and their tables, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for match in self._unfinished:
                group.create_task(self._matches.drive(match))
            group.create_task(self._form_matches(group))
            group.create_task(self._check_tables())
            group.create_task(self._tell_positions())
            group.create_task(self._forget())

    async def close(self) -> None:
        """Waits for what requests have begun."""
        while self._begun:
            await asyncio.wait(self._begun)

    async def join(self, new: NewTicket) -> Joined:
        """Queues a player.

        Raises RequestReused; UnknownPool, NotABot, NotFilled, ClientTooOld; AlreadyQueued,
        AlreadySeated; Refused where the player could not bring the buy-in; AioRpcError and
        Unanswered where wallet or table do not answer.
        """
        replayed = await self._store.replay(new)
        if replayed is not None:
            return Joined(replayed, replayed=True)
        pool = self.pools.get(new.pool_id)
        if pool is None:
            raise UnknownPool(new.pool_id)
        if new.standby and not new.is_bot:
            raise NotABot(new.player_id)
        if new.standby and not pool.fill_with_bots_after_ms:
            raise NotFilled(pool.pool_id)
        if new.client_version < pool.least_client_version:
            raise ClientTooOld(pool.least_client_version)
        await self._check_free(new.player_id)
        if pool.terms.stakes:
            await self._wallet.check(new.player_id, pool.terms.stakes)
        return await self._finish(self._join(new))

    async def leave(self, ticket_id: str) -> Ticket:
        """Takes a ticket out: its outcome, LEFT, FAILED, or ASSIGNED where it was too late.

        A ticket that is being matched is waited for. Raises UnknownTicket.
        """
        with self.board.watching(ticket_id) as watch:
            ticket = await self._finish(self._leave(ticket_id))
            while ticket.state is TicketState.MATCHED:
                ticket = (await watch.next()).ticket
                if ticket.state is TicketState.WAITING:  # as it was before it left
                    ticket = await self._finish(self._leave(ticket_id))
            return ticket

    async def ticket(self, ticket_id: str) -> Ticket:
        """The ticket as it stands; raises UnknownTicket."""
        return await self._store.ticket(ticket_id)

    async def watch(self, ticket_id: str) -> AsyncGenerator[View, None]:
        """The ticket now, then every change, to its outcome. Raises UnknownTicket."""
        with self.board.watching(ticket_id) as watch:
            view = self.board.view(await self._store.ticket(ticket_id))
            watch.show(view)
            while True:
                view = await watch.next()
                yield view
                if view.is_last:
                    return

    async def status(self, player_id: str) -> Status:
        """Where a player is. Raises AioRpcError where nothing but a table could tell."""
        ticket = await self._store.live_ticket(player_id)
        if ticket is None:
            return Status(None, await self._tables.seat_of(player_id))
        if ticket.state is not TicketState.ASSIGNED:
            return Status(self.board.view(ticket), None, ticket.hold_ids)
        table_id = ticket.table_id or ""
        endpoint: str | None = ticket.endpoint
        with suppress(grpc.aio.AioRpcError, Unanswered):  # then what we know is all there is
            endpoint = await self._tables.endpoint(table_id)
            if endpoint is None and await self._end(table_id):
                return Status(None, await self._tables.seat_of(player_id))
        seat = Seat(table_id, ticket.seat or 0, endpoint or ticket.endpoint or "")
        return Status(self.board.view(ticket), seat, ticket.hold_ids)

    async def _check_free(self, player_id: str) -> None:
        live = await self._store.live_ticket(player_id)
        if live is not None:
            if live.state is not TicketState.ASSIGNED:
                raise AlreadyQueued(live)
            if not await self._end(live.table_id or ""):
                raise AlreadySeated(live.table_id or "")
        seat = await self._tables.seat_of(player_id)
        if seat is not None:
            raise AlreadySeated(seat.table_id)

    async def _join(self, new: NewTicket) -> Joined:
        try:
            joined = await self._store.join(new)
        except LiveTicket as other:
            # Another request of the same player was quicker.
            if other.ticket.state is TicketState.ASSIGNED:
                raise AlreadySeated(other.ticket.table_id or "") from None
            raise AlreadyQueued(other.ticket) from None
        self.board.put(joined.ticket)
        return joined

    async def _leave(self, ticket_id: str) -> Ticket:
        ticket = await self._store.leave(ticket_id)
        self.board.put(ticket)
        return ticket

    async def _end(self, table_id: str) -> bool:
        return await self._finish(
            end_table(table_id, self._tables, self._wallet, self._store, self.board)
        )

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Does a change to its end, even when the client that asked for it goes away."""
        task = asyncio.ensure_future(work)
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        return await asyncio.shield(task)

    async def _form_matches(self, group: asyncio.TaskGroup) -> None:
        while True:
            self.board.changed.clear()
            for pool in self.pools.values():
                try:
                    await self._form_in(pool, group)
                except Exception:  # the store; the tickets wait in it
                    self._log.exception("cannot form matches", pool=pool.pool_id)
                    self._pause(pool.pool_id)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds_to_next()):
                    await self.board.changed.wait()

    async def _form_in(self, pool: Pool, group: asyncio.TaskGroup) -> None:
        queue = self.board.queues[pool.pool_id]
        while not self._is_paused(pool.pool_id):
            now_ms = wall_clock_ms()
            matches = [
                form_match("m-" + secrets.token_hex(12), pool, four, now_ms, self._chance)
                for four in queue.groups(now_ms)
            ]
            if not matches:
                return
            await asyncio.gather(*(self._form(match, group) for match in matches))

    async def _form(self, match: Match, group: asyncio.TaskGroup) -> None:
        try:
            tickets = await self._store.form(match)
        except NotWaiting as error:
            self.board.put(*error.tickets)
            return
        self.board.put(*tickets)
        group.create_task(self._matches.drive(match))

    def _seconds_to_next(self) -> float | None:
        """Until bots fill a table or a pause ends; None: only a change can bring a match."""
        now_ms, now = wall_clock_ms(), time.monotonic()
        due = [until - now for until in self._paused_until.values()]
        for pool_id, queue in self.board.queues.items():
            fill_ms = queue.next_fill_ms()
            if fill_ms is not None and pool_id not in self._paused_until:
                due.append((fill_ms - now_ms) / 1_000)
        return max(0.0, min(due)) if due else None

    def _is_paused(self, pool_id: str) -> bool:
        until = self._paused_until.get(pool_id)
        if until is None:
            return False
        if time.monotonic() < until:
            return True
        del self._paused_until[pool_id]
        return False

    def _pause(self, pool_id: str) -> None:
        """Nothing is formed in a pool for a while: its last match was refused."""
        if pool_id in self._pauses:
            seconds = self._pauses[pool_id].next_seconds()
            self._paused_until[pool_id] = time.monotonic() + seconds
            self.board.changed.set()

    def _resume(self, pool_id: str) -> None:
        if pool_id in self._pauses:
            self._pauses[pool_id].reset()
            self._paused_until.pop(pool_id, None)

    async def _check_tables(self) -> None:
        """Frees the players of tables that have closed."""
        while True:
            await asyncio.sleep(self._table_check_seconds)
            assigned = self.board.tables()
            if not assigned:
                continue
            try:
                async with aclosing(self._tables.open_tables()) as open_tables:
                    async for table_id in open_tables:
                        assigned.discard(table_id)
                for table_id in assigned:
                    await self._end(table_id)
            except (grpc.aio.AioRpcError, Unanswered) as error:
                self._log.warning("cannot ask for tables", problem=str(error))
            except Exception:  # the store; the next round tries again
                self._log.exception("cannot end tables")

    async def _tell_positions(self) -> None:
        while True:
            await self.board.moved.wait()
            self.board.show_positions()
            await asyncio.sleep(POSITION_SECONDS)

    async def _forget(self) -> None:
        while True:
            try:
                gone = await self._store.forget(wall_clock_ms() - self._keep_ms)
                self._log.debug("forgot old tickets", tickets=gone)
            except Exception:  # nothing hangs on it
                self._log.exception("cannot forget old tickets")
            await asyncio.sleep(FORGET_SECONDS)


def _standby(queue: Queue) -> float:
    return queue.standby


def _age_seconds(queue: Queue) -> float:
    queued_ms = queue.oldest_queued_ms
    return 0.0 if queued_ms is None else max(0.0, (wall_clock_ms() - queued_ms) / 1_000)
