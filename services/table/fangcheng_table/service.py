"""`TableService`: validate, call, convert; and how the service is put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from importlib.metadata import version
from typing import Any, TypeVar

import grpc.aio

from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.operators_pb2_grpc import add_TableOperationsServiceServicer_to_server
from fangcheng.table.v1.privacy_pb2_grpc import add_PrivacyServiceServicer_to_server
from fangcheng.table.v1.records_pb2_grpc import add_TableRecordServiceServicer_to_server
from fangcheng.table.v1.table_pb2_grpc import (
    TableServiceServicer,
    TableServiceStub,
    add_TableServiceServicer_to_server,
)
from fangcheng_kit import Kit, Servicer, StartFailed, pages, running
from fangcheng_kit.ids import new_id
from fangcheng_kit.limits import CallerLimits
from fangcheng_kit.principal import BOT_SCOPE, current

from . import convert, votes
from .clocks import Patience
from .erasing import Personal
from .errors import NotOperator
from .evaluator import Evaluator
from .feed import Reader, Waiter, heartbeat
from .gameclock import GameClock
from .ids import VOTE, table_question_id
from .journals import open_journal
from .live import LiveTable
from .lobby import Elsewhere, Insight, Lobby
from .many import ManySeats
from .metrics import TableMetrics
from .operating import Order
from .outbox import Outbox
from .peers import Peers, forwarded, forwarded_stream, made_by_heir, was_passed_on
from .records import News, Records
from .service_operators import OPERATIONS, OperationsServicer
from .service_privacy import PRIVACY, PrivacyServicer
from .service_records import RECORDS, RecordServicer
from .settings import TableSettings
from .store import Commit, Filter, JournalError, Owner
from .surroundings import Surroundings
from .tables import Tables

SERVICE = "fangcheng.table.v1.TableService"

Context = grpc.aio.ServicerContext[Any, Any]
Message = TypeVar("Message", wire.AttendResponse, wire.WatchResponse)


class TableServicer(TableServiceServicer):
    """The calls of the contract."""

    def __init__(
        self,
        tables: Tables,
        settings: TableSettings,
        endpoint: str,
        peers: Peers,
        clock: GameClock,
        callers: CallerLimits,
    ) -> None:
        """`endpoint`: where players reach this process; `clock`: by which its tables are played;
        `callers`: what players may do for whom a gateway acts."""
        self._callers = callers
        self.peers = peers
        self._tables = tables
        self._settings = settings
        self._endpoint = endpoint
        self._insight = Insight(endpoint, clock, round(settings.trouble_seconds * 1_000))

    @forwarded(TableServiceStub)
    async def CreateTable(
        self, request: wire.CreateTableRequest, context: Context
    ) -> wire.CreateTableResponse:
        """See the contract."""
        if not was_passed_on(context) and (heirs := await self._tables.heirs()):
            made = await made_by_heir(self.peers, heirs, request)
            if made is not None:
                return made
        table, replayed = await self._tables.create(request)
        return wire.CreateTableResponse(
            table=self._for_caller(await table.shown()), replayed=replayed
        )

    @forwarded(TableServiceStub)
    async def GetTable(
        self, request: wire.GetTableRequest, context: Context
    ) -> wire.GetTableResponse:
        """See the contract."""
        table = await self._tables.get(request.table_id)
        return wire.GetTableResponse(table=self._for_caller(await table.shown()))

    async def ListTables(
        self, request: wire.ListTablesRequest, context: Context
    ) -> wire.ListTablesResponse:
        """See the contract."""
        wanted = Filter(
            include_closed=request.include_closed,
            rule_set=request.rule_set,
            labels=dict(request.labels),
            player_id=request.player_id,
        )
        tables, next_token = await self._tables.find(
            wanted, pages.page_size(request.page_size), request.page_token
        )
        return wire.ListTablesResponse(
            tables=[self._for_caller(table) for table in tables], next_page_token=next_token
        )

    @forwarded_stream(TableServiceStub)
    async def Attend(
        self, request: wire.AttendRequest, context: Context
    ) -> AsyncIterator[wire.AttendResponse]:
        """See the contract."""
        table = await self._tables.get(request.table_id)
        seat = table.seat_of(current().id)
        waiter = Waiter(self._settings.heartbeat_seconds)
        reader = table.attend(
            seat,
            request.from_number,
            request.entropy,
            waiter.wake,
            snapshot=request.snapshot,
            muted=request.muted,
        )
        async with aclosing(self._stream(table, reader, waiter, wire.AttendResponse)) as stream:
            async for response in stream:
                yield response

    async def AttendMany(
        self, request_iterator: AsyncIterator[wire.AttendManyRequest], context: Context
    ) -> AsyncIterator[wire.AttendManyResponse]:
        """See the contract."""
        waiter = Waiter(self._settings.heartbeat_seconds)
        seats = ManySeats(
            self._tables,
            self._settings.most_behind_events,
            heartbeat,
            waiter,
            None if was_passed_on(context) else self.peers.many_seats(),
            # A studio's bots are as quick as they like.
            None if BOT_SCOPE in current().scopes else self._callers.admit_act,
            self._settings.seats_per_stream,
        )
        async with aclosing(seats.run(request_iterator)) as stream:
            async for response in stream:
                yield response

    @forwarded(TableServiceStub)
    async def Act(self, request: wire.ActRequest, context: Context) -> wire.ActResponse:
        """See the contract."""
        table = await self._tables.get(request.table_id)
        seat = table.seat_of(current().id)
        replayed = await table.act(seat, request.decision_id, request.action)
        return wire.ActResponse(replayed=replayed)

    @forwarded_stream(TableServiceStub)
    async def Watch(
        self, request: wire.WatchRequest, context: Context
    ) -> AsyncIterator[wire.WatchResponse]:
        """See the contract."""
        table = await self._tables.get(request.table_id)
        waiter = Waiter(self._settings.heartbeat_seconds)
        if request.HasField("reveal"):
            reader = await table.reveal(_order(request.reveal), waiter.wake)
        else:
            reader = table.watch(request.from_number, waiter.wake, snapshot=request.snapshot)
        async with aclosing(self._stream(table, reader, waiter, wire.WatchResponse)) as stream:
            async for response in stream:
                yield response

    @forwarded(TableServiceStub)
    async def Say(self, request: wire.SayRequest, context: Context) -> wire.SayResponse:
        """See the contract."""
        table = await self._tables.get(request.table_id)
        table.say(table.seat_of(current().id), request)
        return wire.SayResponse()

    async def WatchTables(
        self, request: wire.WatchTablesRequest, context: Context
    ) -> AsyncIterator[wire.WatchTablesResponse]:
        """See the contract."""
        waiter = Waiter(self._settings.heartbeat_seconds)
        lobby = Lobby(
            lambda: self._tables.live,
            request.rule_set,
            dict(request.labels),
            vacant=request.vacant,
            insight=None if current().kind == "player" else self._insight,
        )
        elsewhere: asyncio.Task[None] | None = None
        try:
            if not was_passed_on(context):
                following = Elsewhere(lobby, self._tables.others, self.peers.lobby(request))
                elsewhere = asyncio.get_running_loop().create_task(following.run())
                await following.told()
            while True:
                for changes in lobby.look():
                    yield wire.WatchTablesResponse(changes=changes)
                    waiter.spoke()
                if waiter.is_due:
                    yield wire.WatchTablesResponse(heartbeat=heartbeat())
                    waiter.spoke()
                await asyncio.sleep(self._settings.summary_seconds)
        finally:
            if elsewhere is not None:
                elsewhere.cancel()
                await asyncio.gather(elsewhere, return_exceptions=True)

    @forwarded(TableServiceStub)
    async def LeaveTable(
        self, request: wire.LeaveTableRequest, context: Context
    ) -> wire.LeaveTableResponse:
        """See the contract."""
        table, player_id = await self._tables.get(request.table_id), current().id
        # Who has left is answered the same again.
        if player_id not in table.state.former:
            seat, now = table.seat_of(player_id), request.mode == wire.LEAVE_MODE_NOW
            await table.do(lambda table: table.leave(seat, now=now))
        return wire.LeaveTableResponse(table=self._for_caller(await table.shown()))

    @forwarded(TableServiceStub)
    async def ProposeDissolution(
        self, request: wire.ProposeDissolutionRequest, context: Context
    ) -> wire.ProposeDissolutionResponse:
        """See the contract."""
        table = await self._tables.get(request.table_id)
        seat = table.seat_of(current().id)
        vote, replayed = await table.do(
            lambda table: votes.propose(table, seat, request.hand_number)
        )
        return wire.ProposeDissolutionResponse(
            decision_id=table_question_id(VOTE, vote), replayed=replayed
        )

    async def _stream(
        self,
        table: LiveTable,
        reader: Reader,
        waiter: Waiter,
        response: Callable[..., Message],
    ) -> AsyncGenerator[Message, None]:
        """What a reader reads, until the table has closed; heartbeats where nothing happens."""
        try:
            while True:
                event = reader.next(self._settings.most_behind_events)
                if event is not None:
                    yield response(event=event)
                    waiter.spoke()
                elif (talk := reader.heard()) is not None:
                    yield response(talk=talk)
                    waiter.spoke()
                elif reader.at_end:
                    return
                elif not await waiter.wait():
                    yield response(heartbeat=heartbeat(reader.number))
                    waiter.spoke()
        finally:
            table.leave(reader)

    def _for_caller(self, table: state_pb2.Table) -> state_pb2.Table:
        table.endpoint = table.endpoint or self._endpoint
        if current().kind == "player":
            convert.hide_from_players(table)
        return table


def _order(reveal: wire.Reveal) -> Order:
    caller = current()
    if caller.kind != "operator":
        raise NotOperator("reveal")
    return Order(reveal.request_id, caller.subject, reveal.reason, reveal.case_id)


@asynccontextmanager
async def open_service(settings: TableSettings, kit: Kit) -> AsyncIterator[list[Servicer]]:
    """The table service: its journal, its tables, and the task of each."""
    metrics = TableMetrics(kit.registry)

    def measure(commit: Commit) -> None:
        metrics.commits.observe(commit.seconds)
        metrics.commit_appends.observe(commit.appends)

    try:
        journal = await open_journal(settings.database, measure, settings.sealing)
    except (JournalError, OSError) as error:
        raise StartFailed(f"cannot open the journal: {error}") from error
    if not settings.journal_keys:
        kit.log.warning(
            "the journal is not sealed: whoever reads the database sees the hands in play",
            setting="JOURNAL_KEYS",
        )
    try:
        news = News()

        def lost(ms: int) -> None:
            metrics.lost_time.inc(ms / 1_000)
            kit.log.warning("this process did not run for a while", ms=ms)

        clock = GameClock(round(settings.lease_seconds * 500), lost)
        around = Surroundings(
            journal=journal,
            evaluator=Evaluator(
                kit.connect(settings.evaluation), metrics, kit.log, tracing=kit.tracing
            ),
            outbox=Outbox(
                kit.connect(settings.wallet),
                settings.park_seconds,
                settings.hold_seconds,
                metrics,
                kit.log,
                kit.tracing,
            ),
            metrics=metrics,
            log=kit.log,
            patience=Patience(
                start_ms=round(settings.start_grace_seconds * 1_000),
                linger_ms=round(settings.linger_seconds * 1_000),
                resume_ms=round(settings.resume_grace_seconds * 1_000),
            ),
            clock=clock,
            most_kept=settings.most_behind_events,
            finished=news.tell,
            stopping=kit.draining,
            phrases=frozenset(settings.phrases.split()),
            tracing=kit.tracing,
            storing=lambda works: kit.health(works, "" if works else "the journal does not store"),
        )
        endpoint = settings.advertised or kit.address
        peers = Peers(kit)
        lease_ms = round(settings.lease_seconds * 1_000)
        me = Owner(new_id(), endpoint, settings.version or version("fangcheng-table"))
        tables = Tables(around, settings.archived_tables, me, lease_ms)
        resumed = await tables.resume()
        kit.log.info("tables resumed", tables=resumed)
        try:
            servicer = TableServicer(tables, settings, endpoint, peers, clock, kit.callers)
            kept = Records(journal)
            records = RecordServicer(kept, news, settings.heartbeat_seconds)
            privacy = PrivacyServicer(Personal(journal, kept), kit.log)
            operations = OperationsServicer(tables, journal, endpoint, peers)
            leaving = _leave_to_others(tables, kit.draining, settings.drain_seconds / 4)
            async with running(clock.tick(), tables.keep(), leaving):
                yield [
                    Servicer(add_TableServiceServicer_to_server, servicer, SERVICE),
                    Servicer(add_TableRecordServiceServicer_to_server, records, RECORDS),
                    Servicer(add_TableOperationsServiceServicer_to_server, operations, OPERATIONS),
                    Servicer(add_PrivacyServiceServicer_to_server, privacy, PRIVACY),
                ]
        finally:
            await tables.stop()
    finally:
        await journal.close()


async def _leave_to_others(tables: Tables, draining: asyncio.Event, pause_seconds: float) -> None:
    """When the process is to stop, leave its tables to others, once clients look for those."""
    await draining.wait()
    await asyncio.sleep(pause_seconds)
    await tables.retire()
