"""The calls of matchmaking: check, ask the matchmaker, convert."""

from __future__ import annotations

import asyncio
import random
import secrets
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from fangcheng.matchmaking.v1 import (
    matchmaking_pb2,
    matchmaking_pb2_grpc,
    operations_pb2_grpc,
    privacy_pb2_grpc,
    rooms_pb2_grpc,
)
from fangcheng_kit import Kit, Servicer, principal, running
from fangcheng_kit.app import StartFailed
from fangcheng_kit.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
)
from fangcheng_kit.migrations import BadDatabase
from fangcheng_kit.settings import is_postgres
from fangcheng_kit.trace_context import traceparent

from . import convert, refusals
from .admission import Admission, NotAdmitted
from .core import Member, NewTicket, Ticket, TicketState
from .joining import CannotJoin
from .losses import Calendar
from .matchmaker import Matchmaker, wall_clock_ms
from .metrics import Metrics
from .partners import Evaluators, Tables, Unanswered, Wallet
from .pools import BadPools, Offers, costing_otherwise, load_pools, unplayable
from .postgres import open_postgres
from .service_operations import OPERATIONS, Operations
from .service_privacy import PRIVACY, Privacy
from .service_rooms import ROOMS, Rooms
from .settings import MatchmakingSettings
from .sql import SqlStore
from .sqlite import open_sqlite
from .store import Apart, RequestReused, Store, StoreUnavailable, UnknownTicket

SERVICE = "fangcheng.matchmaking.v1.MatchmakingService"
MOST_AVOIDED = 100
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
        caller, matchmaker = principal.current(), self._matchmaker
        pools = []
        for offer in matchmaker.offers.values():
            queues = matchmaker.board.of_pool(offer.pool.pool_id)
            pool = offer.of(caller.id, {}) if caller.kind == "player" else offer.pool
            pause = matchmaker.pauses.get(pool.pool_id)
            pools.append(convert.pool(pool, sum(map(len, queues)), pause))
        return matchmaking_pb2.ListPoolsResponse(pools=pools)

    async def JoinQueue(
        self, request: matchmaking_pb2.JoinQueueRequest, context: Any
    ) -> matchmaking_pb2.JoinQueueResponse:
        """See the proto."""
        caller = principal.current()
        _check_gateway(request, caller)
        members = [
            Member(player_id=caller.id, profile=request.profile),
            *(Member(player_id=one.player_id, profile=one.profile) for one in request.party),
        ]
        if len({member.player_id for member in members}) < len(members):
            raise InvalidArgument(
                "DUPLICATE_PLAYER", "A player is named twice in the party.", field="party"
            )
        new = NewTicket(
            ticket_id="k-" + secrets.token_hex(12),
            request_id=request.request_id,
            members=tuple(members),
            pool_id=request.pool_id,
            client_version=request.client_version,
            labels=dict(request.labels),
            traits=convert.traits(request.origin),
            standby=request.standby,
            is_bot=principal.BOT_SCOPE in caller.scopes,
            queued_ms=wall_clock_ms(),
            trace=traceparent(),
        )
        try:
            joined = await self._matchmaker.join(new)
        except RequestReused:
            raise AlreadyExists(
                "REQUEST_ID_REUSED",
                f"The request {request.request_id} was made before with other contents.",
                field="request_id",
            ) from None
        except CannotJoin as error:
            raise refusals.of(error) from None
        except NotAdmitted as error:
            raise refusals.not_admitted(error) from None
        except Unanswered:
            raise refusals.unanswered() from None
        return matchmaking_pb2.JoinQueueResponse(
            ticket=self._shown(joined.ticket), replayed=joined.replayed
        )

    async def WatchTicket(
        self, request: matchmaking_pb2.WatchTicketRequest, context: Any
    ) -> AsyncIterator[matchmaking_pb2.WatchTicketResponse]:
        """See the proto."""
        await self._own(request.ticket_id)
        player_id = principal.current().id
        async with aclosing(self._matchmaker.watch(request.ticket_id)) as views:
            async for view in views:
                yield matchmaking_pb2.WatchTicketResponse(ticket=convert.ticket(view, player_id))

    async def LeaveQueue(
        self, request: matchmaking_pb2.LeaveQueueRequest, context: Any
    ) -> matchmaking_pb2.LeaveQueueResponse:
        """See the proto."""
        await self._own(request.ticket_id)
        ticket = await self._matchmaker.leave(request.ticket_id)
        if ticket.state in (TicketState.ASSIGNED, TicketState.ENDED):
            raise FailedPrecondition(
                "ALREADY_SEATED",
                "Too late: the ticket has its table.",
                metadata={"table_id": ticket.table_id or ""},
            )
        return matchmaking_pb2.LeaveQueueResponse(ticket=self._shown(ticket))

    async def AvoidPlayer(
        self, request: matchmaking_pb2.AvoidPlayerRequest, context: Any
    ) -> matchmaking_pb2.AvoidPlayerResponse:
        """See the proto."""
        caller = principal.current()
        if request.player_id == caller.id:
            raise InvalidArgument("SAME_PLAYER", "That is the caller.", field="player_id")
        pair = Apart(
            player_id=caller.id,
            other_id=request.player_id,
            origin="player",
            time_ms=wall_clock_ms(),
        )
        if request.stop:
            await self._matchmaker.bring_together(pair)
        elif len(avoided := await self._avoided()) >= MOST_AVOIDED and (
            request.player_id not in avoided
        ):
            raise FailedPrecondition(
                "TOO_MANY_AVOIDED",
                f"At most {MOST_AVOIDED}; stop avoiding another first.",
                field="player_id",
            )
        else:
            await self._matchmaker.keep_apart(pair)
        return matchmaking_pb2.AvoidPlayerResponse(player_ids=await self._avoided())

    async def GetPlayerStatus(
        self, request: matchmaking_pb2.GetPlayerStatusRequest, context: Any
    ) -> matchmaking_pb2.GetPlayerStatusResponse:
        """See the proto."""
        player_id = _asked_player(request.player_id)
        try:
            status = await self._matchmaker.status(player_id)
        except Unanswered:
            raise refusals.unanswered() from None
        response = matchmaking_pb2.GetPlayerStatusResponse(
            player_id=player_id, hold_ids=status.hold_ids
        )
        if status.view is not None and status.view.ticket.room_id:
            response.room_id = status.view.ticket.room_id
        elif status.view is not None:
            response.ticket.CopyFrom(convert.ticket(status.view, player_id))
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
        if ticket is None or ticket.member(principal.current().id) is None:
            raise NotFound("UNKNOWN_TICKET", "There is no such ticket.", field="ticket_id")
        return ticket

    async def _avoided(self) -> list[str]:
        pairs = await self._matchmaker.apart(principal.current().id)
        return [pair.other_id for pair in pairs if pair.origin == "player"]

    def _shown(self, ticket: Ticket) -> matchmaking_pb2.Ticket:
        return convert.ticket(self._matchmaker.board.view(ticket), principal.current().id)


def _check_gateway(request: matchmaking_pb2.JoinQueueRequest, caller: principal.Principal) -> None:
    """Only who acts for a player may say what the player could not be believed."""
    told = "party" if request.party else "origin" if request.HasField("origin") else None
    if told and caller.via is None:
        raise PermissionDenied(
            "NOT_A_GATEWAY", "Only a gateway that acts for the player fills this in.", field=told
        )


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


async def _unplayable(offers: Offers, evaluators: Evaluators) -> list[str] | None:
    """What is wrong with the pools' rule sets; None where no evaluator answers."""
    try:
        return unplayable(offers, await evaluators.rule_sets())
    except Unanswered:
        return None


async def _watch(
    store: Store, matchmaker: Matchmaker, evaluators: Evaluators, checked: bool, kit: Kit
) -> None:
    """Keep health up to date. `checked`: the rule sets of the pools are known to be played."""
    while True:
        wrong = (
            []
            if checked
            else await _unplayable(
                Offers(matchmaker.offers, matchmaker.lobby.templates), evaluators
            )
        )
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


async def _reload(
    asked: asyncio.Event,
    path: Path | None,
    matchmaker: Matchmaker,
    evaluators: Evaluators,
    metrics: Metrics,
    log: Any,
) -> None:
    """Reads the pools anew whenever it is asked for; what cannot be used changes nothing."""
    while True:
        await asked.wait()
        asked.clear()
        try:
            offers = load_pools(path)
            wrong = costing_otherwise(matchmaker.offers, offers.pools)
            wrong += await _unplayable(offers, evaluators) or []
            if wrong:
                raise BadPools("\n".join(f"{path or 'pools.yaml'}: {one}" for one in wrong))
            matchmaker.lobby.templates = offers.rooms
            matchmaker.reload(offers.pools)
        except BadPools as error:
            log.error("the pools stay as they are", problem=str(error))
            metrics.reloaded(used=False)
        else:
            log.info("pools reloaded", pools=len(offers.pools), rooms=len(offers.rooms))
            metrics.reloaded(used=True)


@contextmanager
def _on_hangup(asked: asyncio.Event) -> Iterator[None]:
    """SIGHUP asks for the pools to be read anew.

    Python hears signals in the main thread alone: a service that a program runs in another one
    reads its pools at its start only, and so does one on Windows, which has no SIGHUP.
    """
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, asked.set)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


def _open_store(database: str) -> Awaitable[SqlStore]:
    return open_postgres(database) if is_postgres(database) else open_sqlite(database)


@asynccontextmanager
async def open_service(
    settings: MatchmakingSettings, kit: Kit
) -> AsyncIterator[Sequence[Servicer]]:
    """Opens the store, takes up what the process before has left, and matches until the end."""
    try:
        offers = load_pools(settings.pools)
    except BadPools as error:
        raise StartFailed(str(error)) from error
    evaluators = Evaluators(kit.connect(settings.evaluation))
    wrong = await _unplayable(offers, evaluators)
    if wrong:
        name = settings.pools or "pools.yaml"
        raise StartFailed("\n".join(f"{name}: {complaint}" for complaint in wrong))
    if wrong is None:
        kit.health(False, UNCHECKED)
    try:
        store = await _open_store(settings.database)
    except BadDatabase as error:
        raise StartFailed(str(error)) from error
    try:
        metrics = Metrics(kit.registry)
        matchmaker = Matchmaker(
            offers.pools,
            store,
            Wallet(kit.connect(settings.wallet)),
            Tables(kit.connect(settings.table, scopes=[principal.ACT_AS_SCOPE])),
            Admission(
                kit.connect(settings.admission) if settings.admission else None,
                timeout_seconds=settings.admission_timeout_seconds,
                when_silent=settings.admission_when_silent,
                log=kit.log,
            ),
            metrics,
            log=kit.log,
            tracing=kit.tracing,
            chance=random.SystemRandom(),
            table_check_seconds=settings.table_check_seconds,
            longest_backoff_seconds=settings.longest_backoff_seconds,
            keep_days=settings.keep_days,
            calendar=Calendar(settings.calendar_offset_minutes),
            room_minutes=settings.room_minutes,
            wrong_codes_per_minute=settings.wrong_codes_per_minute,
        )
        matchmaker.lobby.templates = offers.rooms
        await matchmaker.load()
        asked = asyncio.Event()
        with _on_hangup(asked):
            async with running(
                matchmaker.run(),
                _watch(store, matchmaker, evaluators, wrong == [], kit),
                _reload(asked, settings.pools, matchmaker, evaluators, metrics, kit.log),
            ):
                yield [
                    Servicer(
                        matchmaking_pb2_grpc.add_MatchmakingServiceServicer_to_server,
                        Matchmaking(matchmaker),
                        SERVICE,
                    ),
                    Servicer(
                        operations_pb2_grpc.add_MatchmakingOperationsServiceServicer_to_server,
                        Operations(matchmaker),
                        OPERATIONS,
                    ),
                    Servicer(
                        rooms_pb2_grpc.add_RoomServiceServicer_to_server,
                        Rooms(matchmaker),
                        ROOMS,
                    ),
                    Servicer(
                        privacy_pb2_grpc.add_PrivacyServiceServicer_to_server,
                        Privacy(matchmaker, kit.log),
                        PRIVACY,
                    ),
                ]
        await matchmaker.close()
    finally:
        await store.close()
