"""The calls of matchmaking: check, ask the matchmaker, convert."""

from __future__ import annotations

import asyncio
import random
import secrets
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng_kit import Kit, Servicer, principal, running
from fangcheng_kit.app import StartFailed
from fangcheng_kit.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unavailable,
)

from . import convert
from .board import View
from .core import NewTicket, Pool, Ticket, TicketState
from .matchmaker import (
    AlreadyQueued,
    AlreadySeated,
    ClientTooOld,
    Matchmaker,
    NotABot,
    NotFilled,
    UnknownPool,
    wall_clock_ms,
)
from .metrics import Metrics
from .partners import Evaluators, Refused, Tables, Unanswered, Wallet
from .pools import BadPools, load_pools, unplayable
from .settings import MatchmakingSettings
from .sqlite import SqliteStore
from .store import RequestReused, Store, StoreError, StoreUnavailable, UnknownTicket

SERVICE = "fangcheng.matchmaking.v1.MatchmakingService"
BOT_SCOPE = "bot"
STORE_CHECK_SECONDS = 2.0
UNCHECKED = "no evaluator tells yet whether it plays the pools' rule sets"


class Matchmaking(matchmaking_pb2_grpc.MatchmakingServiceServicer):
    """`MatchmakingService`; what each call promises stands in its proto."""

    def __init__(self, matchmaker: Matchmaker) -> None:
        self._matchmaker = matchmaker

    async def ListPools(
        self, request: matchmaking_pb2.ListPoolsRequest, context: Any
    ) -> matchmaking_pb2.ListPoolsResponse:
        """See the proto."""
        queues = self._matchmaker.board.queues
        return matchmaking_pb2.ListPoolsResponse(
            pools=[
                convert.pool(pool, len(queues[pool.pool_id]))
                for pool in self._matchmaker.pools.values()
            ]
        )

    async def JoinQueue(
        self, request: matchmaking_pb2.JoinQueueRequest, context: Any
    ) -> matchmaking_pb2.JoinQueueResponse:
        """See the proto."""
        caller = principal.current()
        new = NewTicket(
            ticket_id="k-" + secrets.token_hex(12),
            request_id=request.request_id,
            player_id=caller.id,
            pool_id=request.pool_id,
            client_version=request.client_version,
            profile=request.profile,
            labels=dict(request.labels),
            standby=request.standby,
            is_bot=BOT_SCOPE in caller.scopes,
            queued_ms=wall_clock_ms(),
        )
        try:
            joined = await self._matchmaker.join(new)
        except RequestReused:
            raise AlreadyExists(
                "REQUEST_ID_REUSED",
                f"The request {request.request_id} was made before with other contents.",
                field="request_id",
            ) from None
        except UnknownPool:
            raise NotFound(
                "UNKNOWN_POOL", f"There is no pool {request.pool_id}.", field="pool_id"
            ) from None
        except NotABot:
            raise PermissionDenied(
                "NOT_A_BOT", "Standby needs the scope bot in the token.", field="standby"
            ) from None
        except NotFilled:
            raise FailedPrecondition(
                "POOL_NOT_FILLED", "The pool is never filled with bots.", field="standby"
            ) from None
        except ClientTooOld as error:
            raise FailedPrecondition(
                "CLIENT_TOO_OLD",
                f"The pool takes clients from version {error.least} on.",
                field="client_version",
                metadata={"least_client_version": str(error.least)},
            ) from None
        except AlreadyQueued as error:
            raise FailedPrecondition(
                "ALREADY_QUEUED",
                "The player is in a queue already; leave it first.",
                metadata={"ticket_id": error.ticket.ticket_id, "pool_id": error.ticket.pool_id},
            ) from None
        except AlreadySeated as error:
            raise _already_seated(
                error.table_id, f"The player sits at table {error.table_id}; attend or leave it."
            ) from None
        except Refused as refused:
            raise FailedPrecondition(refused.problem.reason, refused.problem.message) from None
        except Unanswered:
            raise _unavailable() from None
        return matchmaking_pb2.JoinQueueResponse(
            ticket=self._shown(joined.ticket), replayed=joined.replayed
        )

    async def WatchTicket(
        self, request: matchmaking_pb2.WatchTicketRequest, context: Any
    ) -> AsyncIterator[matchmaking_pb2.WatchTicketResponse]:
        """See the proto."""
        await self._own(request.ticket_id)
        async with aclosing(self._matchmaker.watch(request.ticket_id)) as views:
            async for view in views:
                yield matchmaking_pb2.WatchTicketResponse(ticket=_shown(view))

    async def LeaveQueue(
        self, request: matchmaking_pb2.LeaveQueueRequest, context: Any
    ) -> matchmaking_pb2.LeaveQueueResponse:
        """See the proto."""
        await self._own(request.ticket_id)
        ticket = await self._matchmaker.leave(request.ticket_id)
        if ticket.state in (TicketState.ASSIGNED, TicketState.ENDED):
            raise _already_seated(ticket.table_id or "", "Too late: the ticket has its table.")
        return matchmaking_pb2.LeaveQueueResponse(ticket=self._shown(ticket))

    async def GetPlayerStatus(
        self, request: matchmaking_pb2.GetPlayerStatusRequest, context: Any
    ) -> matchmaking_pb2.GetPlayerStatusResponse:
        """See the proto."""
        player_id = _asked_player(request.player_id)
        try:
            status = await self._matchmaker.status(player_id)
        except Unanswered:
            raise _unavailable() from None
        response = matchmaking_pb2.GetPlayerStatusResponse(
            player_id=player_id, hold_ids=status.hold_ids
        )
        if status.view is not None:
            response.ticket.CopyFrom(_shown(status.view))
        if status.seat is not None:
            response.table_id = status.seat.table_id
            response.seat = status.seat.seat
            response.endpoint = status.seat.endpoint
        return response

    async def _own(self, ticket_id: str) -> Ticket:
        """The caller's ticket. Another player's is as unknown as none."""
        try:
            ticket = await self._matchmaker.ticket(ticket_id)
        except UnknownTicket:
            ticket = None
        if ticket is None or ticket.player_id != principal.current().id:
            raise NotFound("UNKNOWN_TICKET", "There is no such ticket.", field="ticket_id")
        return ticket

    def _shown(self, ticket: Ticket) -> matchmaking_pb2.Ticket:
        return _shown(self._matchmaker.board.view(ticket))


def _shown(view: View) -> matchmaking_pb2.Ticket:
    return convert.ticket(view.ticket, view.position)


def _asked_player(player_id: str) -> str:
    caller = principal.current()
    if caller.kind != "player":
        if not player_id:
            raise InvalidArgument(
                "PLAYER_REQUIRED", "Only a player may leave the player out.", field="player_id"
            )
        return player_id
    if player_id not in ("", caller.id):
        raise PermissionDenied(
            "NOT_YOUR_STATUS", "A player sees his own status alone.", field="player_id"
        )
    return caller.id


def _already_seated(table_id: str, message: str) -> FailedPrecondition:
    return FailedPrecondition("ALREADY_SEATED", message, metadata={"table_id": table_id})


def _unavailable() -> Unavailable:
    return Unavailable(
        "DEPENDENCY_UNAVAILABLE", "A service that this call needs does not answer; repeat it."
    )


async def _unplayable(pools: Mapping[str, Pool], evaluators: Evaluators) -> list[str] | None:
    """What is wrong with the pools' rule sets; None where no evaluator answers."""
    try:
        return unplayable(pools.values(), await evaluators.rule_sets())
    except Unanswered:
        return None


async def _watch(
    store: Store, pools: Mapping[str, Pool], evaluators: Evaluators, checked: bool, kit: Kit
) -> None:
    """Keep health up to date. `checked`: the rule sets of the pools are known to be played."""
    while True:
        wrong = [] if checked else await _unplayable(pools, evaluators)
        checked = wrong == []
        try:
            await store.check()
            if wrong is None:
                kit.health(False, UNCHECKED)
            else:
                kit.health(checked, "; ".join(wrong))
        except StoreUnavailable as error:
            kit.health(False, f"the queues cannot be reached: {error.__cause__}")
        await asyncio.sleep(STORE_CHECK_SECONDS)


@asynccontextmanager
async def open_service(
    settings: MatchmakingSettings, kit: Kit
) -> AsyncIterator[Sequence[Servicer]]:
    """Opens the store, takes up what the process before has left, and matches until the end."""
    try:
        pools = load_pools(settings.pools)
    except BadPools as error:
        raise StartFailed(str(error)) from error
    evaluators = Evaluators(kit.connect(settings.evaluation))
    wrong = await _unplayable(pools, evaluators)
    if wrong:
        name = settings.pools or "pools.yaml"
        raise StartFailed("\n".join(f"{name}: {complaint}" for complaint in wrong))
    if wrong is None:
        kit.health(False, UNCHECKED)
    try:
        store = await SqliteStore.open(settings.database)
    except (StoreError, sqlite3.Error) as error:
        raise StartFailed(f"{settings.database} cannot be used: {error}") from error
    try:
        matchmaker = Matchmaker(
            pools,
            store,
            Wallet(kit.connect(settings.wallet)),
            Tables(kit.connect(settings.table)),
            Metrics(kit.registry, pools),
            log=kit.log,
            chance=random.SystemRandom(),
            table_check_seconds=settings.table_check_seconds,
            longest_backoff_seconds=settings.longest_backoff_seconds,
            keep_days=settings.keep_days,
        )
        await matchmaker.load()
        async with running(matchmaker.run(), _watch(store, pools, evaluators, wrong == [], kit)):
            yield [
                Servicer(
                    matchmaking_pb2_grpc.add_MatchmakingServiceServicer_to_server,
                    Matchmaking(matchmaker),
                    SERVICE,
                )
            ]
        await matchmaker.close()
    finally:
        await store.close()
