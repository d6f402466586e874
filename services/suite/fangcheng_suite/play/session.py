"""A player's way, as any client goes it: queue, sit down, attend, act, leave. No screen in it.

Everything that happens is told to a `Listener` in the order in which it happened. A connection that
breaks is opened again; a call whose answer was lost is repeated.
"""

from __future__ import annotations

import math
import secrets
import uuid
from dataclasses import dataclass
from typing import Protocol

import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2, table_pb2_grpc
from fangcheng_client import Problem, attend, explain, follow_ticket
from fangcheng_client.view import TableView
from fangcheng_suite.bots.player import Place, attempts, is_lost

_GONE = frozenset({"LEFT_TABLE", "REMOVED"})
"""Why the stream of one who is no longer at the table ends."""


class Refused(Exception):
    """It does not go on by itself: a service has said why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Way(Protocol):
    """How a player reaches the services."""

    def channel(self, service: str, target: str | None = None) -> grpc.aio.Channel:
        """A channel on which the player calls; `target`: another address than the usual one."""

    @property
    def has_hints(self) -> bool:
        """Whether there is an evaluation service to ask."""


class Listener(Protocol):
    """Told what happens."""

    def queued(self) -> None:
        """The player waits for a table."""

    def seated(self, place: Place) -> None:
        """A table has been found."""

    def happened(self, event: events_pb2.TableEvent, view: TableView) -> None:
        """The next event, which `view` has seen."""

    def broke(self, reason: str) -> None:
        """The connection is broken, and is being opened again."""

    def lives(self) -> None:
        """The connection is there (again)."""


@dataclass(slots=True)
class Session:
    """One player, one table after the other."""

    way: Way
    listener: Listener
    pool_id: str
    name: str = ""
    """What the others see; a table of before keeps the name that it knows."""
    place: Place | None = None
    view: TableView | None = None
    ticket_id: str = ""
    _tables: tuple[grpc.aio.Channel, grpc.aio.Channel] | None = None
    """While a table is attended: to its owner, and to any replica, which knows another owner."""

    async def play(self) -> TableView | None:
        """Play at one table to its end; None where the queue was left.

        A seat that the player has already is taken up again, and so is a ticket. Raises Refused.
        """
        self.place = None
        self.ticket_id = ""
        try:
            self.place = await self._sit()
            if self.place is None:
                return None
            self.listener.seated(self.place)
            return await self._attend(self.place)
        except grpc.aio.AioRpcError as error:
            raise Refused(explain(error)) from error

    async def act(self, decision_id: str, action: state_pb2.Action) -> None:
        """Answer a decision; a lost answer is repeated. Raises AioRpcError for a refusal."""
        request = table_pb2.ActRequest(
            table_id=self._table_id(), decision_id=decision_id, action=action
        )
        async for attempt in attempts():
            if self._tables is None:
                return  # the table is over
            try:
                await table_pb2_grpc.TableServiceStub(self._tables[attempt > 0]).Act(request)
            except grpc.aio.AioRpcError as error:
                if is_lost(error):
                    self.listener.broke(explain(error).message)
                    continue
                raise
            return

    async def analyse(self, hand: evaluation_pb2.Hand) -> evaluation_pb2.Analysis:
        """What the own hand is worth. Raises AioRpcError, TOO_MANY_CALLS where it was too often."""
        view = self.view or TableView()
        async with self.way.channel("evaluation") as channel:
            answer = await evaluation_pb2_grpc.EvaluationServiceStub(channel).Analyze(
                evaluation_pb2.AnalyzeRequest(
                    rules=view.rules,
                    hand=hand,
                    progress=True,
                    flowers=sorted(set(view.own.flowers)),
                )
            )
        return answer.analysis

    async def leave(self, mode: table_pb2.LeaveMode.ValueType) -> None:
        """Leave the table, or the queue. Raises AioRpcError."""
        async for _ in attempts():
            try:
                if self.place is not None:
                    await self._leave_table(mode)
                elif self.ticket_id:
                    await self._leave_queue()
            except grpc.aio.AioRpcError as error:
                if is_lost(error):
                    continue
                raise
            return

    async def _leave_table(self, mode: table_pb2.LeaveMode.ValueType) -> None:
        async with self.way.channel("table") as channel:
            await table_pb2_grpc.TableServiceStub(channel).LeaveTable(
                table_pb2.LeaveTableRequest(table_id=self._table_id(), mode=mode)
            )

    async def _leave_queue(self) -> None:
        async with self.way.channel("matchmaking") as channel:
            await matchmaking_pb2_grpc.MatchmakingServiceStub(channel).LeaveQueue(
                matchmaking_pb2.LeaveQueueRequest(ticket_id=self.ticket_id)
            )

    def _table_id(self) -> str:
        return self.place.table_id if self.place is not None else ""

    async def _sit(self) -> Place | None:
        request_id = uuid.uuid4().hex  # of every attempt: the player queues once
        async with self.way.channel("matchmaking") as channel:
            stub = matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
            async for _ in attempts():
                try:
                    ticket = await self._seat_or_ticket(stub, request_id)
                except grpc.aio.AioRpcError as error:
                    if not is_lost(error):
                        raise
                    self.listener.broke(explain(error).message)
                    continue
                break
            if isinstance(ticket, Place):
                return ticket
            self.listener.lives()
            self.listener.queued()
            self.ticket_id = ticket.ticket_id
            async for current in follow_ticket(channel, ticket.ticket_id, give_up_seconds=math.inf):
                match current.state:
                    case matchmaking_pb2.TICKET_STATE_ASSIGNED:
                        return Place(current.table_id, current.seat, current.endpoint)
                    case matchmaking_pb2.TICKET_STATE_LEFT:
                        return None
                    case matchmaking_pb2.TICKET_STATE_FAILED:
                        told = current.problem
                        code = grpc.StatusCode.FAILED_PRECONDITION
                        raise Refused(Problem(code, told.reason, told.message))
        return None

    async def _seat_or_ticket(
        self, stub: matchmaking_pb2_grpc.MatchmakingServiceAsyncStub, request_id: str
    ) -> Place | matchmaking_pb2.Ticket:
        status = await stub.GetPlayerStatus(matchmaking_pb2.GetPlayerStatusRequest())
        if status.table_id:
            # The address that the table's owner had when it was made; another may have it now.
            return Place(status.table_id, status.seat, "")
        if status.HasField("ticket"):
            return status.ticket
        joined = await stub.JoinQueue(
            matchmaking_pb2.JoinQueueRequest(
                request_id=request_id, pool_id=self.pool_id, profile=self.name.encode()
            )
        )
        return joined.ticket

    async def _attend(self, place: Place) -> TableView:
        view = self.view = TableView()
        listener = self.listener

        def broke(error: grpc.aio.AioRpcError | TimeoutError) -> None:
            listener.broke("" if isinstance(error, TimeoutError) else explain(error).message)

        async with (
            self.way.channel("table", place.endpoint or None) as table,
            self.way.channel("table") as any_table,
        ):
            self._tables = table, any_table
            try:
                async for event in attend(
                    table,
                    place.table_id,
                    entropy=secrets.token_bytes(16),
                    elsewhere=any_table,
                    give_up_seconds=math.inf,
                    on_heartbeat=lambda heartbeat: listener.lives(),
                    on_break=broke,
                ):
                    view.apply(event)
                    listener.lives()
                    listener.happened(event, view)
            except grpc.aio.AioRpcError as error:
                if explain(error).reason not in _GONE:
                    raise
            finally:
                self._tables = None
        return view
