"""Who may queue: what is checked before a ticket is stored, and what the ticket is given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from .admission import Admission
from .core import Mode, NewTicket, Offer, Pool, Rating, Stake, Terms, Ticket, TicketState
from .losses import Calendar, reached
from .partners import Refused, Tables, Wallet
from .store import Joined, LiveTicket, Pause, Store


class CannotJoin(Exception):
    """The root of what keeps a player from a queue."""


class UnknownPool(CannotJoin):
    """No pool of that id."""


class PoolClosed(CannotJoin):
    """An operator lets nobody in now."""


class NotABot(CannotJoin):
    """Only bots wait on standby."""


class NotFilled(CannotJoin):
    """The pool is never filled: nobody would come to seat a standby ticket."""


class ClientTooOld(CannotJoin):
    """The pool takes newer clients."""

    def __init__(self, least: int) -> None:
        super().__init__(str(least))
        self.least = least


class PartyTooLarge(CannotJoin):
    """The pool takes smaller parties, or none."""

    def __init__(self, most: int) -> None:
        super().__init__(str(most))
        self.most = most


class OriginMissing(CannotJoin):
    """An anti_cheat pool has to know where a player comes from."""


class AlreadyQueued(CannotJoin):
    """A player has a ticket in a queue."""

    def __init__(self, player_id: str, ticket: Ticket) -> None:
        super().__init__(ticket.ticket_id)
        self.player_id = player_id
        self.ticket = ticket


class AlreadyInRoom(CannotJoin):
    """A player is in a private room."""

    def __init__(self, player_id: str, room_id: str) -> None:
        super().__init__(room_id)
        self.player_id = player_id
        self.room_id = room_id


class AlreadySeated(CannotJoin):
    """A player sits at a table that has not closed."""

    def __init__(self, player_id: str, table_id: str) -> None:
        super().__init__(table_id)
        self.player_id = player_id
        self.table_id = table_id


class LossCapReached(CannotJoin):
    """A player has lost today what the pool allows a day."""

    def __init__(self, player_id: str, stake: Stake, until_ms: int) -> None:
        super().__init__(f"{player_id}: {stake.loss_cap_per_day} {stake.currency}")
        self.player_id = player_id
        self.stake = stake
        self.until_ms = until_ms
        """When he may again, in milliseconds since 1970."""


class Poor(CannotJoin):
    """A player could not bring what the pool asks for now, or may stake nothing."""

    def __init__(self, player_id: str, refused: Refused) -> None:
        super().__init__(str(refused))
        self.player_id = player_id
        self.problem = refused.problem


def occupied(player_id: str, live: Ticket) -> CannotJoin:
    """Why a player with this live ticket can have no other."""
    if live.state is TicketState.ASSIGNED:
        return AlreadySeated(player_id, live.table_id or "")
    if live.room_id:
        return AlreadyInRoom(player_id, live.room_id)
    return AlreadyQueued(player_id, live)


class Joining:
    """Checks tickets, and stores those that may queue."""

    def __init__(
        self,
        store: Store,
        wallet: Wallet,
        tables: Tables,
        admission: Admission,
        free_players: Callable[[str], Awaitable[object]],
        *,
        calendar: Calendar,
        clock_ms: Callable[[], int],
    ) -> None:
        """`free_players` frees those who do not sit at a table any longer."""
        self._store = store
        self._wallet = wallet
        self._tables = tables
        self._admission = admission
        self._free_players = free_players
        self._calendar = calendar
        self._clock_ms = clock_ms

    async def check(
        self, new: NewTicket, offers: Mapping[str, Offer], pauses: Mapping[str, Pause]
    ) -> NewTicket:
        """The ticket with its pool's revision and its rating filled in.

        Raises CannotJoin, NotAdmitted; AioRpcError and Unanswered where a service does not answer.
        """
        offer = offers.get(new.pool_id)
        if offer is None:
            raise UnknownPool(new.pool_id)
        if new.pool_id in pauses and pauses[new.pool_id].closed:
            raise PoolClosed(pauses[new.pool_id].reason)
        pool = offer.of(new.player_id, new.labels)
        if new.standby and not new.is_bot:
            raise NotABot(new.player_id)
        if new.standby and not pool.fill_with_bots_after_ms:
            raise NotFilled(pool.pool_id)
        if new.client_version < pool.least_client_version:
            raise ClientTooOld(pool.least_client_version)
        if len(new.members) > pool.most_party:
            raise PartyTooLarge(pool.most_party)
        if pool.mode is Mode.ANTI_CHEAT and not new.traits:
            raise OriginMissing(pool.pool_id)
        ratings = await asyncio.gather(*(self._check(one, pool, new) for one in new.player_ids))
        return replace(new, revision=pool.revision, rating=sum(ratings) / len(ratings))

    async def join(self, new: NewTicket) -> Joined:
        """Stores a ticket that was checked; raises RequestReused and what `occupied` says."""
        try:
            return await self._store.join(new)
        except LiveTicket as other:  # another request of the same player was quicker
            raise occupied(other.player_id, other.ticket) from None

    async def _check(self, player_id: str, pool: Pool, new: NewTicket) -> float:
        """Checks one player; his rating."""
        await self.check_free(player_id)
        if not new.is_bot:
            await self._admission.check(player_id, "queue", pool_id=pool.pool_id, labels=new.labels)
            await self._check_losses(player_id, pool.terms)
        rating = await self._check_balance(player_id, pool.terms, pool.rating)
        if pool.rating is not None and pool.rating.by_skill:
            rating = (await self._store.skill(player_id, pool.terms.rule_set)).mu
        return rating

    async def check_guest(self, player_id: str, terms: Terms, labels: Mapping[str, str]) -> None:
        """Checks a player who enters a room; raises as `check` does."""
        await self.check_free(player_id)
        await self._admission.check(player_id, "room", labels=labels)
        await self._check_losses(player_id, terms)
        await self._check_balance(player_id, terms, None)

    async def _check_losses(self, player_id: str, terms: Terms) -> None:
        if any(stake.loss_cap_per_day for stake in terms.stakes):
            day = self._calendar.day(self._clock_ms())
            stake = reached(terms.stakes, await self._store.losses(player_id, day))
            if stake is not None:
                raise LossCapReached(player_id, stake, self._calendar.ends_ms(day))

    async def _check_balance(self, player_id: str, terms: Terms, rating: Rating | None) -> float:
        if not terms.stakes and (rating is None or rating.by_skill):
            return 0.0  # no wallet is asked where nothing is at stake
        try:
            return await self._wallet.check(player_id, terms, rating)
        except Refused as refused:
            raise Poor(player_id, refused) from refused

    async def check_free(self, player_id: str) -> None:
        """Raises CannotJoin where a player is in a queue or a room, or sits at a table; AioRpcError
        and Unanswered where a service does not answer."""
        live = await self._store.live_ticket(player_id)
        if live is not None:
            if live.state is TicketState.ASSIGNED:
                await self._free_players(live.table_id or "")
                live = await self._store.live_ticket(player_id)
            if live is not None:
                raise occupied(player_id, live)
        seat = await self._tables.seat_of(player_id)
        if seat is not None:
            raise AlreadySeated(player_id, seat.table_id)
