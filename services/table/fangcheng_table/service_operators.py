"""`TableOperationsService`: validate, call, convert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import grpc.aio

from fangcheng.table.v1 import operators_pb2 as wire
from fangcheng.table.v1.operators_pb2_grpc import (
    TableOperationsServiceServicer,
    TableOperationsServiceStub,
)
from fangcheng_kit import pages
from fangcheng_kit.principal import current

from . import convert, operating
from .core import Table
from .operating import Order
from .peers import Peers, forwarded
from .store import Journal
from .tables import Tables

OPERATIONS = "fangcheng.table.v1.TableOperationsService"

Context = grpc.aio.ServicerContext[Any, Any]
R = TypeVar("R")


class _Wanted(Protocol):
    """What every request of an operator has."""

    request_id: str
    table_id: str
    reason: str
    case_id: str


class OperationsServicer(TableOperationsServiceServicer):
    """The calls of the contract."""

    def __init__(self, tables: Tables, journal: Journal, endpoint: str, peers: Peers) -> None:
        """`endpoint`: where players reach this process."""
        self.peers = peers
        self._tables = tables
        self._journal = journal
        self._endpoint = endpoint

    @forwarded(TableOperationsServiceStub)
    async def RemoveFromTable(
        self, request: wire.RemoveFromTableRequest, context: Context
    ) -> wire.RemoveFromTableResponse:
        """See the contract."""
        return await self._do(
            request,
            wire.RemoveFromTableResponse,
            lambda table, order: operating.remove(table, order, request.player_id),
        )

    @forwarded(TableOperationsServiceStub)
    async def VoidHand(
        self, request: wire.VoidHandRequest, context: Context
    ) -> wire.VoidHandResponse:
        """See the contract."""
        return await self._do(
            request,
            wire.VoidHandResponse,
            lambda table, order: operating.void_hand(table, order, request.hand_number),
        )

    @forwarded(TableOperationsServiceStub)
    async def CloseTable(
        self, request: wire.CloseTableRequest, context: Context
    ) -> wire.CloseTableResponse:
        """See the contract."""
        return await self._do(
            request,
            wire.CloseTableResponse,
            lambda table, order: operating.close_table(table, order, after_hand=request.after_hand),
        )

    @forwarded(TableOperationsServiceStub)
    async def SeatPlayer(
        self, request: wire.SeatPlayerRequest, context: Context
    ) -> wire.SeatPlayerResponse:
        """See the contract."""
        (plan,) = convert.seats_from_wire([request.player])
        return await self._do(
            request,
            wire.SeatPlayerResponse,
            lambda table, order: operating.seat_player(table, order, request.seat, plan),
        )

    async def ListOperatorActions(
        self, request: wire.ListOperatorActionsRequest, context: Context
    ) -> wire.ListOperatorActionsResponse:
        """See the contract."""
        filters = [request.table_id]
        last = pages.after(request.page_token, [int], filters)
        size = pages.page_size(request.page_size)
        found = await self._journal.operator_actions(
            request.table_id, int(last[0]) if last else None, size + 1
        )
        more, found = len(found) > size, found[:size]
        return wire.ListOperatorActionsResponse(
            actions=[convert.operator_action_to_wire(one.action) for one in found],
            next_page_token=pages.page_token([found[-1].place], filters) if more else "",
        )

    async def _do(
        self, request: _Wanted, response: Callable[..., R], change: Callable[[Table, Order], bool]
    ) -> R:
        table = await self._tables.get(request.table_id)
        order = Order(request.request_id, current().subject, request.reason, request.case_id)
        replayed = await table.do(lambda table: change(table, order))
        shown = await table.shown()
        shown.endpoint = self._endpoint
        return response(table=shown, replayed=replayed)
