"""Personal data at tables: all that is kept of a player, and taking it out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from google.protobuf import json_format

from fangcheng.table.v1 import records_pb2 as wire
from fangcheng_kit.privacy import Erasure, line, profile_field

from .errors import PlayerAtTable, TableArchived, TableNotOver
from .events import PlayerSeated, SeatPlan, TableCreated
from .records import Records
from .store import Filter, Found, HandFilter, Journal

_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Erased:
    """A player is erased."""

    tables: int
    """Those that were gone through."""
    archived: int
    """Of them, those whose events are in an archive."""
    replayed: bool


class Personal:
    """What the journal has of players."""

    def __init__(self, journal: Journal, records: Records) -> None:
        self._journal = journal
        self._records = records
        self._erasing = asyncio.Lock()
        """One at a time: each may hold a connection for as long as a month is being archived."""

    async def erase(self, erasure: Erasure) -> Erased:
        """Take what is personal of a player out of all his tables.

        Raises `PlayerAtTable` and `RequestIdReused`. After a failure the same again finishes it.
        """
        async with self._erasing:
            return await self._erase(erasure)

    async def _erase(self, erasure: Erasure) -> Erased:
        if await self._journal.begin_erasure(erasure):
            return Erased(0, 0, replayed=True)
        async for found in self._tables(erasure.player_id):
            if found.summary is None:
                raise PlayerAtTable(found.table_id)
        tables = archived = 0
        async for found in self._tables(erasure.player_id):
            try:
                whole = await self._journal.erase_at(found.table_id, erasure)
            except TableNotOver:
                raise PlayerAtTable(found.table_id) from None
            tables += 1
            archived += not whole
        await self._journal.end_erasure(erasure.request_id)
        return Erased(tables, archived, replayed=False)

    async def lines(self, player_id: str) -> AsyncIterator[str]:
        """All that is kept of a player, as lines of an export."""
        async for found in self._tables(player_id):
            yield await self._table(found.table_id, player_id)
            async for one in self._actions(found.table_id):
                yield one
        async for one in self._hands(player_id):
            yield one
        for request_id, reason, time_ms in await self._journal.erasures_of(player_id):
            yield line("erasure", time=_time(time_ms), request_id=request_id, reason=reason)

    async def _tables(self, player_id: str) -> AsyncIterator[Found]:
        wanted = Filter(include_closed=True, player_id=player_id)
        before: int | None = None
        while found := await self._journal.find(wanted, before, _AT_ONCE):
            for one in found:
                yield one
            before = found[-1].place

    async def _table(self, table_id: str, player_id: str) -> str:
        try:
            records = await self._journal.read(table_id, 0, 1)
            if _seated(records[0].event, player_id) is None:  # he came to it later
                records = await self._journal.read(table_id)
        except TableArchived:
            return line("table", table_id=table_id, archived=True)
        created = records[0].event
        if not isinstance(created, TableCreated):
            raise TypeError(f"the first event of table {table_id} is {type(created).__name__}")
        told: dict[str, Any] = {}
        for record in records:
            if (seated := _seated(record.event, player_id)) is not None:
                seat, plan = seated
                told = {
                    "seated": _time(record.time_ms),
                    "seat": seat,
                    **profile_field(plan.profile),
                    "hold_ids": list(plan.hold_ids),
                }
        return line(
            "table",
            table_id=table_id,
            time=_time(created.created_ms),
            rule_set=created.rule_set,
            revision=created.revision,
            mode=created.mode,
            pool_id=created.pool_id,
            labels=dict(created.labels),
            player_ids=[plan.player_id for plan in created.seats],
            **told,
        )

    async def _actions(self, table_id: str) -> AsyncIterator[str]:
        before: int | None = None
        while found := await self._journal.operator_actions(table_id, before, _AT_ONCE):
            before = found[-1].place
            for one in found:
                yield line(
                    "operator_action",
                    table_id=table_id,
                    time=_time(one.action.time_ms),
                    verb=one.action.verb,
                    reason=one.action.reason,
                    case_id=one.action.case_id,
                )

    async def _hands(self, player_id: str) -> AsyncIterator[str]:
        wanted = HandFilter(player_id=player_id)
        before: int | None = None
        while found := await self._journal.hands(wanted, before, _AT_ONCE):
            before = found[-1].place
            for entry in (one.entry for one in found):
                did: list[dict[str, Any]] | None = None
                with contextlib.suppress(TableArchived):
                    record = await self._records.record(entry.table_id, entry.hand_number)
                    did = _did(record, entry.player_ids.index(player_id))
                yield line(
                    "hand",
                    table_id=entry.table_id,
                    hand_number=entry.hand_number,
                    ended=_time(entry.ended_ms),
                    ending=entry.ending,
                    rule_set=entry.rule_set,
                    seat=entry.player_ids.index(player_id),
                    player_ids=list(entry.player_ids),
                    labels=dict(entry.labels),
                    did=did,
                    archived=did is None or None,
                )


def _seated(event: object, player_id: str) -> tuple[int, SeatPlan] | None:
    """The seat that a player is given by an event, if he is."""
    match event:
        case TableCreated():
            plans = list(enumerate(event.seats))
        case PlayerSeated():
            plans = [(event.seat, event.plan)]
        case _:
            plans = []
    return next(((seat, plan) for seat, plan in plans if plan.player_id == player_id), None)


def _did(record: wire.HandRecord, seat: int) -> list[dict[str, Any]]:
    """What happened by a seat's doing, or to it alone, in a hand."""
    did: list[dict[str, Any]] = []
    for event in record.events:
        kind = event.WhichOneof("kind")
        if kind is None:
            continue
        told = getattr(event, kind)
        if "seat" in told.DESCRIPTOR.fields_by_name and told.seat == seat:
            fields = json_format.MessageToDict(told, preserving_proto_field_name=True)
            fields.pop("seat", None)
            did.append({kind: fields})
    return did


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1_000, UTC).isoformat()
