"""`TableRecordService`: validate, call, convert."""

from __future__ import annotations

from typing import Any

import grpc.aio

from fangcheng.table.v1 import records_pb2 as wire
from fangcheng.table.v1.records_pb2_grpc import TableRecordServiceServicer
from fangcheng_kit.principal import current

from .errors import NotSeated
from .tables import Tables

RECORDS = "fangcheng.table.v1.TableRecordService"

Context = grpc.aio.ServicerContext[Any, Any]


class RecordServicer(TableRecordServiceServicer):
    """The calls of the contract."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def GetHandRecord(
        self, request: wire.GetHandRecordRequest, context: Context
    ) -> wire.GetHandRecordResponse:
        """See the contract."""
        table, caller = await self._tables.get(request.table_id), current()
        if caller.kind == "player" and table.state.seat_of(caller.id) is None:
            raise NotSeated(request.table_id)
        record = await self._tables.record(table, request.hand_number)
        return wire.GetHandRecordResponse(record=record)
