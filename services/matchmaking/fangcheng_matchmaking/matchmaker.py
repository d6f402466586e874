"""The matchmaker as it runs: requests and time come in, matches are formed, tables watched.

Nothing here decides (`joining`, `matching`, `store` do) and nothing knows the wire of players
(`service` does).

Any number of replicas run beside each other on one store. Each takes requests for all pools, and
follows what the others do; each pool is matched by one of them, which holds its lease.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import grpc.aio

from fangcheng_kit.privacy import Erasure
from fangcheng_kit.tracing import OFF, Tracing

from .admission import Admission
from .backfill import Backfill
from .board import Board, View
from .codes import WrongCodes
from .core import (
    Match,
    NewTicket,
    Offer,
    Problem,
    Ticket,
    TicketState,
    form_match,
    form_offer,
)
from .hands import Hands
from .joining import CannotJoin, Joining, occupied
from .lobby import Lobby
from .losses import Calendar
from .matches import Backoff, Matches, free_players
from .matching import Queue
from .metrics import Metrics
from .partners import Seat, TableNow, Tables, Unanswered, Wallet
from .spans import formed
from .store import (
    UNREADABLE,
    UNREADABLE_VERSION,
    Apart,
    Erased,
    Joined,
    LiveTicket,
    NotWaiting,
    Pause,
    SeatOffered,
    Store,
    StoreUnavailable,
    UnknownTicket,
)

T = TypeVar("T")

POSITION_SECONDS = 0.5
"""How often at most the watchers of a queue are told that they have moved up."""
SYNC_SECONDS = 0.1
"""How often a replica looks for what the others have changed."""
LEASE_MS = 2_000
RENEW_SECONDS = 0.5
"""With the lease: a pool whose replica was killed is matched by another within three seconds."""
FORGET_SECONDS = 3_600.0
NO_POOL = ""
"""The lease of what belongs to no pool: rooms, and skills made of finished hands."""
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Status:
    """Where a player is."""

    view: View | None
    seat: Seat | None
    hold_ids: tuple[str, ...] = ()


def wall_clock_ms() -> int:
    """Milliseconds since 1970: ages must outlast a restart."""
    return time.time_ns() // 1_000_000


def _match_id() -> str:
    return "m-" + secrets.token_hex(12)


def _lasting() -> float:
    """Seconds that only go forward, by the clock by which the loop's pauses end."""
    return asyncio.get_running_loop().time()


class Matchmaker:
    """Queues, matches and assignments. `load` first, then `run` beside the server."""

    def __init__(
        self,
        offers: Mapping[str, Offer],
        store: Store,
        wallet: Wallet,
        tables: Tables,
        admission: Admission,
        metrics: Metrics,
        *,
        log: Any,
        chance: random.Random,
        table_check_seconds: float,
        longest_backoff_seconds: float,
        keep_days: float,
        calendar: Calendar,
        room_minutes: float,
        wrong_codes_per_minute: int,
        clock_ms: Callable[[], int] = wall_clock_ms,
        tracing: Tracing = OFF,
    ) -> None:
        """`clock_ms`: milliseconds since 1970. What only lasts is measured by the loop's clock."""
        self.offers = offers
        self.board = Board(offers)
        self.pauses: Mapping[str, Pause] = {}
        """What operators have paused."""
        self._store = store
        self._wallet = wallet
        self._tables = tables
        self._metrics = metrics
        self._log = log
        self._tracing = tracing
        self._chance = chance
        self._clock_ms = clock_ms
        self._table_check_seconds = table_check_seconds
        self._longest_backoff_seconds = longest_backoff_seconds
        self._keep_ms = int(keep_days * DAY_MS)
        self._owner = secrets.token_hex(8)
        self._mine: frozenset[str] = frozenset()
        """The pools that this replica matches."""
        self._lease_ends = 0.0
        self._renew = asyncio.Event()
        """Set when the leases should be looked at before their time."""
        self._replaced: Mapping[str, Offer] = {}
        """The pools as they were before the last reload."""
        self._placed: frozenset[str] | None = None
        """The pools of whose waiting tickets each has a place; None: none has been looked at."""
        self._head = 0
        self._joining = Joining(
            store,
            wallet,
            tables,
            admission,
            self._free_players,
            calendar=calendar,
            clock_ms=clock_ms,
        )
        self._backfill = Backfill(
            store,
            self.board,
            tables,
            free_players=self._free_players,
            is_wanted=self._backfills,
            clock_ms=clock_ms,
            backoff=lambda: Backoff(longest_backoff_seconds, chance),
            log=log,
        )
        self._matches = Matches(
            store,
            self.board,
            wallet,
            tables,
            metrics,
            clock_ms=clock_ms,
            chance=chance,
            longest_backoff_seconds=longest_backoff_seconds,
            table_refused=self._back_off,
            table_given=self._resume,
            seat_refused=self._backfill.refused,
            log=log,
            tracing=tracing,
        )
        self.lobby = Lobby(
            store,
            self._joining,
            wrong_codes=WrongCodes(wrong_codes_per_minute, metrics),
            chance=chance,
            clock_ms=clock_ms,
            lifetime_ms=int(room_minutes * 60_000),
            drive=self._drive,
            show=lambda tickets: self.board.put(*tickets),
            leave=self.leave,
        )
        self._hands = Hands(
            store,
            tables,
            admission,
            calendar=calendar,
            is_mine=lambda: NO_POOL in self._mine,
            matter=self._hands_matter,
            clock_ms=clock_ms,
            backoff=Backoff(longest_backoff_seconds, chance),
            log=log,
        )
        self._group = asyncio.TaskGroup()
        self._backoffs: dict[str, Backoff] = {}
        self._backing_off_until: dict[str, float] = {}
        self._driven: set[str] = set()
        self._begun: set[asyncio.Task[Any]] = set()
        self._measure()

    async def load(self) -> None:
        """Takes up what the process before has left."""
        live = await self._store.live_tickets()
        self.board.put(*live.tickets)
        self._head = live.head
        await self._drop(live.tickets)
        await self._lease()

    async def run(self) -> None:
        """Forms matches and follows them and their tables, until cancelled."""
        try:
            async with self._group as group:
                group.create_task(self._keep_leases())
                group.create_task(self._follow())
                group.create_task(self._form_matches())
                group.create_task(self._check_tables())
                group.create_task(self._tell_positions())
                group.create_task(self._forget())
                group.create_task(self._hands.follow())
                group.create_task(self._backfill.watch())
                group.create_task(self._backfill.look())
        finally:
            with suppress(StoreUnavailable):  # then the leases end by themselves
                await asyncio.shield(self._store.give_up_leases(self._owner))

    def reload(self, offers: Mapping[str, Offer]) -> None:
        """Other pools, or other revisions of them, from now on.

        Tickets of a revision that is gone go to the one that their player gets, where it costs the
        same; otherwise they fail (POOL_CHANGED). That is done next, as soon as the store lets it.
        """
        self._replaced, self.offers = self.offers, offers
        self._placed = None
        self.board.offer(offers)
        self._measure()
        self._renew.set()

    async def close(self) -> None:
        """Waits for what requests have begun."""
        while self._begun:
            await asyncio.wait(self._begun)

    async def join(self, new: NewTicket) -> Joined:
        """Queues a player or a party. Raises what `Joining.check` does."""
        replayed = await self._store.replay(new)
        if replayed is not None:
            return Joined(replayed, replayed=True)
        try:
            new = await self._joining.check(new, self.offers, self.pauses)
        except CannotJoin:  # for the same request, which was under way, perhaps
            replayed = await self._store.replay(new)
            if replayed is None:
                raise
            return Joined(replayed, replayed=True)
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
        member = ticket.member(player_id)
        assert member is not None  # noqa: S101 # nosec B101 # whose live ticket it is
        if ticket.state is not TicketState.ASSIGNED:
            return Status(self.board.view(ticket), None, member.hold_ids)
        table_id = ticket.table_id or ""
        endpoint = ticket.endpoint or ""
        with suppress(grpc.aio.AioRpcError, Unanswered):  # then what we know is all there is
            table = await self._free_players(table_id)
            if table is None or player_id not in table.player_ids:
                return Status(None, await self._tables.seat_of(player_id))
            endpoint = table.endpoint
        seat = Seat(table_id, member.seat or 0, endpoint)
        return Status(self.board.view(ticket), seat, member.hold_ids)

    async def keep_apart(self, pair: Apart) -> None:
        """Two players are not seated together from now on."""
        self.board.put(*await self._finish(self._store.keep_apart(pair)))

    async def bring_together(self, pair: Apart) -> None:
        """Takes `keep_apart` back."""
        self.board.put(*await self._finish(self._store.bring_together(pair)))

    async def apart(self, player_id: str) -> list[Apart]:
        """Whom a player avoids, and with whom he is barred."""
        return await self._store.apart(player_id)

    def lines(self, player_id: str) -> AsyncIterator[str]:
        """All that is kept of a player, as lines of an export."""
        return self._store.lines(player_id)

    async def erase(self, erasure: Erasure) -> Erased:
        """Takes what is personal of a player out of everything. Raises ErasureReused, and what
        `Joining.check_free` does."""
        if not await self._store.was_erased(erasure):
            await self._joining.check_free(erasure.player_id)
        try:
            return await self._finish(self._store.erase(erasure))
        except LiveTicket as other:
            raise occupied(other.player_id, other.ticket) from None

    async def pause(self, pool_id: str, pause: Pause | None) -> None:
        """Pauses a pool, or ends its pause, in every replica."""
        await self._finish(self._store.pause(pool_id, pause))
        self.pauses = await self._store.pauses()
        self.board.changed.set()

    async def _join(self, new: NewTicket) -> Joined:
        joined = await self._joining.join(new)
        self.board.put(joined.ticket)
        if not joined.replayed:
            ticket = joined.ticket
            self._log.info("ticket queued", ticket_id=ticket.ticket_id, pool_id=ticket.pool_id)
        return joined

    async def _leave(self, ticket_id: str) -> Ticket:
        ticket = await self._store.leave(ticket_id)
        self.board.put(ticket)
        return ticket

    async def _free_players(self, table_id: str) -> TableNow | None:
        return await self._finish(
            free_players(table_id, self._tables, self._wallet, self._store, self.board)
        )

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Does a change to its end, even when the client that asked for it goes away."""
        task = asyncio.ensure_future(work)
        self._begun.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._begun.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: who would have been told may have gone away

    async def _keep_leases(self) -> None:
        """Renews the leases, and takes up the matches and tickets of replicas that are gone."""
        while True:
            self._renew.clear()
            try:
                await self._lease()
                if self._placed != self._mine:
                    await self._place_tickets()
                if NO_POOL in self._mine:
                    await self.lobby.close_expired()
                for match in await self._store.unfinished_matches():
                    if match.pool_id in self._mine:
                        self._drive(match)
            except Exception:  # the store; the next round tries again
                self._log.exception("cannot renew leases")
            with suppress(TimeoutError):
                async with asyncio.timeout(RENEW_SECONDS):
                    await self._renew.wait()

    async def _lease(self) -> None:
        began = _lasting()
        pools = {NO_POOL, *self.offers, *(ticket.pool_id for ticket in self.board.waiting())}
        pools.update(match.pool_id for match in await self._store.unfinished_matches())
        mine = await self._store.lease(self._owner, pools, LEASE_MS)
        self.pauses = await self._store.pauses()
        self._lease_ends = began + LEASE_MS / 1_000
        if mine - self._mine:
            self.board.changed.set()
        self._mine = mine

    async def _follow(self) -> None:
        """Shows on the board what other replicas have changed."""
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            try:
                changes = await self._store.changes(self._head)
                await self._drop(changes.tickets)
            except StoreUnavailable as error:
                self._log.warning("cannot follow the store", problem=str(error.__cause__))
                continue
            self._head = changes.head
            self.lobby.note(changes.rooms)

    async def _place_tickets(self) -> None:
        """Deals with tickets that wait for a pool, or a revision of one, that is gone."""
        offers, mine = self.offers, self._mine
        for ticket in self.board.waiting():
            if ticket.room_id or ticket.pool_id not in mine:
                continue
            offer = offers.get(ticket.pool_id)
            if offer is None:
                await self._fail(
                    ticket, "UNKNOWN_POOL", f"The pool {ticket.pool_id} has been taken away."
                )
            elif offer.revision(ticket.revision) is None:
                old = self._replaced.get(ticket.pool_id)
                was = None if old is None else old.revision(ticket.revision)
                now = offer.of(ticket.player_id, ticket.labels)
                if was is not None and was.terms.costs_the_same(now.terms):
                    self.board.put(await self._store.move(ticket.ticket_id, now.revision))
                else:
                    await self._fail(
                        ticket, "POOL_CHANGED", "What the pool costs has changed; queue again."
                    )
        if offers is self.offers:
            self._placed = mine

    async def _fail(self, ticket: Ticket, reason: str, message: str) -> None:
        failed = await self._store.fail(ticket.ticket_id, Problem(reason, message))
        self.board.put(failed)
        if failed.state is TicketState.FAILED:
            self._metrics.failed(ticket.pool_id, reason)

    async def _form_matches(self) -> None:
        while True:
            self.board.changed.clear()
            for queue in list(self.board.queues.values()):
                try:
                    await self._form_in(queue)
                except Exception:  # the store; the tickets wait in it
                    self._log.exception("cannot form matches", pool_id=queue.pool.pool_id)
                    self._back_off(queue.pool.pool_id)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds_to_next()):
                    await self.board.changed.wait()

    async def _form_in(self, queue: Queue) -> None:
        pool = queue.pool
        while self._matches_now(pool.pool_id):
            now_ms = self._clock_ms()
            # Those who wait at a table come first: there are three of them.
            formed: list[tuple[Match, tuple[Ticket, ...]]] = [
                (form_offer(_match_id(), pool, vacancy, ticket, now_ms), (ticket,))
                for vacancy, ticket in self._backfill.take(queue, now_ms)
            ]
            formed += [
                (form_match(_match_id(), pool, four, now_ms, self._chance), four)
                for four in queue.take(now_ms)
            ]
            if formed:
                await asyncio.gather(*(self._form(*one) for one in formed))
            elif queue.next_ms(now_ms) != now_ms:
                return
            await asyncio.sleep(0)  # requests are answered between

    async def _form(self, match: Match, tickets: tuple[Ticket, ...]) -> None:
        self._driven.add(match.match_id)
        try:
            with formed(self._tracing, match, tickets) as span:
                match = replace(match, trace=span.trace.parent if span.trace else "")
                self.board.put(*await self._store.form(match))
                self._log.info(
                    "match formed",
                    match_id=match.match_id,
                    pool_id=match.pool_id,
                    ticket_ids=[ticket.ticket_id for ticket in tickets],
                )
        except BaseException as error:
            self._driven.discard(match.match_id)
            self.board.put_back(tickets)
            self._backfill.not_formed(match)
            if isinstance(error, NotWaiting):
                await self._drop(error.tickets)
            elif isinstance(error, UnknownTicket):
                self._forget_ticket(tickets, str(error))
            elif not isinstance(error, SeatOffered):
                raise
            return
        self._driven.discard(match.match_id)
        self._drive(match)

    async def _drop(self, tickets: Iterable[Ticket]) -> None:
        """Shows tickets as they stand; those that nobody can read are out from now on."""
        for ticket in tickets:
            if ticket.version == UNREADABLE_VERSION:
                with suppress(UnknownTicket):  # gone meanwhile
                    await self._fail(ticket, UNREADABLE.reason, UNREADABLE.message)
            else:
                self.board.put(ticket)

    def _forget_ticket(self, tickets: Iterable[Ticket], ticket_id: str) -> None:
        """A ticket that the store does not know any more keeps no others waiting."""
        for ticket in tickets:
            if ticket.ticket_id == ticket_id:
                self._log.error("a ticket is gone from the store", ticket_id=ticket_id)
                gone = replace(ticket, state=TicketState.FAILED, problem=UNREADABLE)
                self.board.put(replace(gone, version=ticket.version + 1))

    def _drive(self, match: Match) -> None:
        if match.match_id not in self._driven:
            self._driven.add(match.match_id)
            self._backfill.begun(match)
            task = self._group.create_task(self._matches.drive(match))
            task.add_done_callback(lambda _: self._ended(match))

    def _ended(self, match: Match) -> None:
        self._driven.discard(match.match_id)
        self._backfill.ended(match)

    def _seconds_to_next(self) -> float | None:
        """Until tickets should choose again or a pause ends; None: only a change can bring one."""
        now_ms, now = self._clock_ms(), _lasting()
        due = [until - now for until in self._backing_off_until.values()]
        for queue in self.board.queues.values():
            if self._matches_now(queue.pool.pool_id):
                nexts = (queue.next_ms(now_ms), self._backfill.next_ms(queue))
                due += [(next_ms - now_ms) / 1_000 for next_ms in nexts if next_ms is not None]
        return max(0.0, min(due)) if due else None

    def _matches_now(self, pool_id: str) -> bool:
        """Whether this replica may form matches in a pool now."""
        if pool_id not in self._mine or pool_id in self.pauses:
            return False
        if _lasting() >= self._lease_ends:
            return False
        until = self._backing_off_until.get(pool_id)
        if until is not None and _lasting() >= until:
            del self._backing_off_until[pool_id]
            return True
        return until is None

    def _back_off(self, pool_id: str) -> None:
        """Nothing is formed in a pool for a while: its last match was refused."""
        backoff = self._backoffs.setdefault(
            pool_id, Backoff(self._longest_backoff_seconds, self._chance)
        )
        self._backing_off_until[pool_id] = _lasting() + backoff.next_seconds()
        self.board.changed.set()

    def _resume(self, pool_id: str) -> None:
        self._backoffs.pop(pool_id, None)
        self._backing_off_until.pop(pool_id, None)

    def _measure(self) -> None:
        self._metrics.measure(self.offers, self.board.of_pool, lambda: self.pauses)

    async def _check_tables(self) -> None:
        """Frees the players of tables that have closed."""
        while True:
            await asyncio.sleep(self._table_check_seconds)
            assigned = self.board.tables(self._mine)
            if not assigned:
                continue
            try:
                async with aclosing(self._tables.open_tables()) as open_tables:
                    async for table_id in open_tables:
                        assigned.discard(table_id)
                for table_id in assigned:
                    await self._free_players(table_id)
            except (grpc.aio.AioRpcError, Unanswered) as error:
                self._log.warning("cannot ask for tables", problem=str(error))
            except Exception:  # the store; the next round tries again
                self._log.exception("cannot end tables")

    def _hands_matter(self) -> bool:
        """Some pool or room asks what finished hands say: of skill, or of losses."""
        pools = [pool for offer in self.offers.values() for pool in offer.pools]
        terms = [pool.terms for pool in pools]
        terms += [template.terms for template in self.lobby.templates.values()]
        return any(pool.is_rated for pool in pools) or any(
            stake.loss_cap_per_day for one in terms for stake in one.stakes
        )

    def _backfills(self) -> bool:
        return any(
            pool.backfill and pool_id in self._mine
            for pool_id, offer in self.offers.items()
            for pool in offer.pools
        )

    async def _tell_positions(self) -> None:
        while True:
            await self.board.moved.wait()
            self.board.show_positions()
            await asyncio.sleep(POSITION_SECONDS)

    async def _forget(self) -> None:
        while True:
            try:
                gone = await self._store.forget(self._clock_ms() - self._keep_ms)
                self._log.debug("forgot old tickets", tickets=gone)
            except Exception:  # nothing hangs on it
                self._log.exception("cannot forget old tickets")
            await asyncio.sleep(FORGET_SECONDS)
