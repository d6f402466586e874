"""Lobbies, tickets and rooms that are followed over broken connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import grpc
import pytest

from fangcheng.matchmaking.v1 import (
    matchmaking_pb2,
    matchmaking_pb2_grpc,
    rooms_pb2,
    rooms_pb2_grpc,
)
from fangcheng.table.v1 import events_pb2, table_pb2, table_pb2_grpc
from fangcheng_client import TablesNews, explain, follow_room, follow_tables, follow_ticket, streams
from fangcheng_client import following as following_module
from fangcheng_kit import errors

from .test_streams import AWAY, Scripted, connected

Told = tuple[dict[str, int], list[str], list[str]]
"""What there is with its hand, what has changed, and what is gone."""


class Tables(Scripted):
    """Tells of tables what it is told to, one list for each stream that is opened."""

    def __init__(self, *scripts: Sequence[Any]) -> None:
        self.scripts = [list(script) for script in scripts]
        self.asked: list[Any] = []

    async def _tell(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self.asked.append(request)
        for step in self.scripts.pop(0):
            if isinstance(step, Exception):
                raise step
            if step is None:
                await asyncio.Event().wait()
            yield step

    WatchTables = WatchTicket = WatchRoom = _tell


def on(*hands: tuple[str, int], gone: Sequence[str] = (), complete: bool = False) -> Any:
    tables = [table_pb2.TableSummary(table_id=one, hand_number=hand) for one, hand in hands]
    changes = table_pb2.TableChanges(tables=tables, gone=gone, complete=complete)
    return table_pb2.WatchTablesResponse(changes=changes)


BEAT = table_pb2.WatchTablesResponse(heartbeat=events_pb2.Heartbeat())
WHOLE = on(complete=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(streams, "LONGEST_PAUSE_SECONDS", 0.05)


async def all_told(table: Tables, **more: Any) -> list[Told]:
    told: list[Told] = []
    async with connected(table, table_pb2_grpc.add_TableServiceServicer_to_server) as channel:
        async for news in follow_tables(channel, **more):
            assert isinstance(news, TablesNews)
            now = {one: summary.hand_number for one, summary in news.tables.items()}
            told.append((now, [one.table_id for one in news.changed], list(news.gone)))
    return told


async def test_the_first_news_are_of_all_that_there_are_be_it_none() -> None:
    assert await all_told(Tables([WHOLE])) == [({}, [], [])]
    script = [on(("a", 1)), on(("b", 1), complete=True), on(("a", 2)), on(gone=["b"])]
    assert await all_told(Tables(script)) == [
        ({"a": 1, "b": 1}, ["a", "b"], []),
        ({"a": 2, "b": 1}, ["a"], []),
        ({"a": 2}, [], ["b"]),
    ]


async def test_after_a_break_only_what_is_different_is_told_and_what_is_gone_forgotten() -> None:
    first = [on(("a", 1), ("b", 1), ("c", 1), complete=True), BEAT, AWAY]
    broken = [on(("a", 7)), AWAY]
    again = [on(("a", 1), ("d", 1)), on(("d", 2), ("e", 1)), on(("b", 2), gone=["e"]), WHOLE]
    service = Tables(first, broken, again)
    breaks: list[Any] = []
    wanted = {"rule_set": "jintan", "labels": {"club": "17"}, "vacant": True}
    assert await all_told(service, **wanted, on_break=breaks.append) == [
        ({"a": 1, "b": 1, "c": 1}, ["a", "b", "c"], []),
        ({"a": 1, "d": 2, "b": 2}, ["d", "b"], ["c"]),
    ]
    assert service.asked == [table_pb2.WatchTablesRequest(**wanted)] * 3
    assert [explain(error).reason for error in breaks] == ["DRAINING"] * 2


async def test_what_was_never_told_of_is_not_gone() -> None:
    told = await all_told(Tables([on(("a", 1), gone=["x"], complete=True), on(gone=["y"])]))
    assert told == [({"a": 1}, ["a"], []), ({"a": 1}, [], [])]


@pytest.mark.parametrize("seconds", [-1.0, 600.0])
async def test_a_service_that_does_not_say_complete_is_done_when_it_falls_silent_or_is_late(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(following_module, "BEGINNING_SECONDS", seconds)
    beats: list[Any] = []
    told = await all_told(Tables([on(("a", 1)), BEAT, BEAT]), on_heartbeat=beats.append)
    assert told == [({"a": 1}, ["a"], [])]
    assert len(beats) == 2


async def test_what_does_not_pass_by_waiting_is_raised() -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await all_told(Tables([WHOLE, errors.PermissionDenied("NOT_SEATED", "Not yours.")]))
    assert explain(caught.value).reason == "NOT_SEATED"


async def test_a_stream_that_hangs_counts_as_broken() -> None:
    told = await all_told(Tables([WHOLE, None], [WHOLE]), silence_seconds=0.1)
    assert told == [({}, [], [])] * 2


async def test_who_reads_no_further_ends_the_stream() -> None:
    service = Tables([WHOLE, None])
    adder = table_pb2_grpc.add_TableServiceServicer_to_server
    async with connected(service, adder) as channel:
        async with aclosing(follow_tables(channel)) as news:
            await anext(news)
        with pytest.raises(StopAsyncIteration):
            await anext(news)


def ticket(state: int) -> matchmaking_pb2.WatchTicketResponse:
    return matchmaking_pb2.WatchTicketResponse(
        ticket=matchmaking_pb2.Ticket(ticket_id="k-1", state=state)
    )


async def test_a_ticket_is_followed_to_its_outcome_and_no_state_is_told_twice() -> None:
    service = Tables([ticket(1), ticket(2), AWAY], [ticket(2), AWAY], [ticket(2), ticket(3)])
    adder = matchmaking_pb2_grpc.add_MatchmakingServiceServicer_to_server
    async with connected(service, adder, "matchmaking") as channel:
        states = [one.state async for one in follow_ticket(channel, "k-1")]
    assert states == [1, 2, 3]
    assert {request.ticket_id for request in service.asked} == {"k-1"}


async def test_a_room_is_followed_until_it_ends() -> None:
    def room(state: int) -> rooms_pb2.WatchRoomResponse:
        return rooms_pb2.WatchRoomResponse(room=rooms_pb2.Room(room_id="r-1", state=state))

    service = Tables([room(1), AWAY], [room(1), room(2), room(3)])
    adder = rooms_pb2_grpc.add_RoomServiceServicer_to_server
    async with connected(service, adder, "matchmaking") as channel:
        states = [one.state async for one in follow_room(channel, "r-1")]
    assert states == [1, 2, 3]
    assert {request.room_id for request in service.asked} == {"r-1"}
