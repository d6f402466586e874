"""What changes among tables, and of a ticket or room, over broken connections.

These streams begin with the whole whenever they are opened. So what happened while there was no
connection is not told one by one: it shows in what is different afterwards.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import grpc.aio

from fangcheng.matchmaking.v1 import (
    matchmaking_pb2,
    matchmaking_pb2_grpc,
    rooms_pb2,
    rooms_pb2_grpc,
)
from fangcheng.table.v1 import events_pb2, table_pb2, table_pb2_grpc
from fangcheng_client.streams import OnBreak, reopened

BEGINNING_SECONDS = 10.0
"""A service of before ``TableChanges.complete`` has told of all its tables after that."""


@dataclass(frozen=True, slots=True)
class TablesNews:
    """What has changed among the live tables since the news before."""

    tables: Mapping[str, table_pb2.TableSummary]
    """All of them, by id, as they are now: later news change it."""
    changed: Sequence[table_pb2.TableSummary]
    """New ones, and those that have changed; one that has closed comes a last time."""
    gone: Sequence[str]
    """Ids of those that are not live any more, or not of the kind that was asked for."""


async def follow_tables(
    channel: grpc.aio.Channel,
    *,
    rule_set: str = "",
    labels: Mapping[str, str] | None = None,
    vacant: bool = False,
    give_up_seconds: float = 60.0,
    silence_seconds: float = 60.0,
    on_heartbeat: Callable[[events_pb2.Heartbeat], None] | None = None,
    on_break: OnBreak | None = None,
) -> AsyncIterator[TablesNews]:
    """The live tables as they change; ``rule_set``, ``labels``, ``vacant`` as in WatchTables.

    The first news are of all that there are, be it none, and do not come before that is known. So
    are the first after a break, which tell what is different from before. Does not end by itself; a
    connection that breaks is opened again, of which ``on_break`` is told: until then the picture is
    an old one. Errors are raised as by ``attend``; ``give_up_seconds`` may be ``math.inf``.
    """
    request = table_pb2.WatchTablesRequest(rule_set=rule_set, labels=labels or {}, vacant=vacant)
    stub: Any = table_pb2_grpc.TableServiceStub(channel)
    known: dict[str, table_pb2.TableSummary] = {}
    shown = MappingProxyType(known)
    fresh: dict[str, table_pb2.TableSummary] | None = None
    """What a stream has told of since it began, until that is all."""
    began = 0.0
    streams = reopened(
        lambda: stub.WatchTables(request), give_up_seconds, silence_seconds, on_break
    )
    async with aclosing(streams) as stream:
        async for message in stream:
            if message is None:
                fresh, began = {}, time.monotonic()
                continue
            is_silent, changes = message.HasField("heartbeat"), message.changes
            if is_silent and on_heartbeat is not None:
                on_heartbeat(message.heartbeat)
            if fresh is None:
                if not is_silent:
                    gone = [one for one in changes.gone if known.pop(one, None) is not None]
                    known.update((table.table_id, table) for table in changes.tables)
                    yield TablesNews(shown, list(changes.tables), gone)
                continue
            fresh.update((table.table_id, table) for table in changes.tables)
            for one in changes.gone:
                fresh.pop(one, None)
            if changes.complete or is_silent or time.monotonic() > began + BEGINNING_SECONDS:
                changed = [table for one, table in fresh.items() if known.get(one) != table]
                gone = [one for one in known if one not in fresh]
                known.clear()
                known.update(fresh)
                fresh = None
                yield TablesNews(shown, changed, gone)


def follow_ticket(
    channel: grpc.aio.Channel, ticket_id: str, *, give_up_seconds: float = 60.0
) -> AsyncIterator[matchmaking_pb2.Ticket]:
    """A ticket of the caller: as it is now, then after every change, until its outcome.

    A connection that breaks is opened again as by ``attend``; raises ``AioRpcError``.
    """
    stub: Any = matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
    request = matchmaking_pb2.WatchTicketRequest(ticket_id=ticket_id)
    return _changes(lambda: stub.WatchTicket(request), "ticket", give_up_seconds)


def follow_room(
    channel: grpc.aio.Channel, room_id: str, *, give_up_seconds: float = 60.0
) -> AsyncIterator[rooms_pb2.Room]:
    """A room that the caller is in: as it is now, then after every change.

    Until it is closed or the caller is not in it any more. As ``follow_ticket`` otherwise.
    """
    stub: Any = rooms_pb2_grpc.RoomServiceStub(channel)
    request = rooms_pb2.WatchRoomRequest(room_id=room_id)
    return _changes(lambda: stub.WatchRoom(request), "room", give_up_seconds)


async def _changes(
    open_stream: Callable[[], Any], what: str, give_up_seconds: float
) -> AsyncIterator[Any]:
    """One thing as it changes; not told again where a stream that begins anew has nothing new."""
    last = None
    async with aclosing(reopened(open_stream, give_up_seconds)) as stream:
        async for message in stream:
            if message is not None and getattr(message, what) != last:
                last = getattr(message, what)
                yield last
