"""`TableRecordService`: validate, call, convert."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Literal

import grpc.aio

from fangcheng.table.v1 import records_pb2 as wire
from fangcheng.table.v1.records_pb2_grpc import TableRecordServiceServicer
from fangcheng_kit import pages, times
from fangcheng_kit.principal import current

from .errors import OtherPlayer
from .feed import Waiter, heartbeat
from .records import News, Records, entry_to_wire, hide_from_players
from .store import HandFilter

RECORDS = "fangcheng.table.v1.TableRecordService"

LOOK_SECONDS = 1.0
"""How soon a hand that another process has finished is told of, at the latest."""

Context = grpc.aio.ServicerContext[Any, Any]


class RecordServicer(TableRecordServiceServicer):
    """The calls of the contract."""

    def __init__(self, records: Records, news: News, heartbeat_seconds: float) -> None:
        """`news`: of the hands that this process finishes."""
        self._records = records
        self._news = news
        self._heartbeat_seconds = heartbeat_seconds

    async def GetHandRecord(
        self, request: wire.GetHandRecordRequest, context: Context
    ) -> wire.GetHandRecordResponse:
        """See the contract."""
        caller = _player()
        record = await self._records.record(request.table_id, request.hand_number, caller)
        if caller:
            hide_from_players(record)
        return wire.GetHandRecordResponse(record=record)

    async def ListHandRecords(
        self, request: wire.ListHandRecordsRequest, context: Context
    ) -> wire.ListHandRecordsResponse:
        """See the contract."""
        caller = _player()
        if caller and request.player_id not in ("", caller):
            raise OtherPlayer
        wanted = HandFilter(
            table_id=request.table_id,
            player_id=caller or request.player_id,
            rule_set=request.rule_set,
            labels=dict(request.labels),
            since_ms=_milliseconds(request, "since"),
            until_ms=_milliseconds(request, "until"),
        )
        found, next_token = await self._records.page(
            wanted, pages.page_size(request.page_size), request.page_token
        )
        return wire.ListHandRecordsResponse(
            hands=map(entry_to_wire, found), next_page_token=next_token
        )

    async def StreamFinishedHands(
        self, request: wire.StreamFinishedHandsRequest, context: Context
    ) -> AsyncIterator[wire.StreamFinishedHandsResponse]:
        """See the contract."""
        waiter = Waiter(self._heartbeat_seconds)
        look_seconds = min(LOOK_SECONDS, self._heartbeat_seconds)
        hands = self._records.finished(
            request.cursor, self._news, look_seconds, with_records=request.with_records
        )
        async with aclosing(hands):
            async for hand in hands:
                if hand is not None:
                    yield wire.StreamFinishedHandsResponse(hand=hand)
                    waiter.spoke()
                elif waiter.is_due:
                    yield wire.StreamFinishedHandsResponse(heartbeat=heartbeat())
                    waiter.spoke()


def _player() -> str:
    """The player who calls; empty for operators and services."""
    caller = current()
    return caller.id if caller.kind == "player" else ""


def _milliseconds(request: wire.ListHandRecordsRequest, field: Literal["since", "until"]) -> int:
    """A moment that bounds a list, in milliseconds since 1970; 0: none does."""
    time = times.moment(request, field)
    return 0 if time is None else time.ToMilliseconds()
