"""Who has a seat now, and where: nothing is done or told in the name of who had it before."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_kit.tracing import OFF
from fangcheng_table import operating, votes
from fangcheng_table.errors import (
    JournalUnavailable,
    LeftTable,
    NotSeated,
    PlayedElsewhere,
    RemovedFromTable,
)
from fangcheng_table.events import Event, OperatorActed, SeatPlan, SeatVacated, Timing
from fangcheng_table.feed import Waiter, heartbeat
from fangcheng_table.live import LiveTable
from fangcheng_table.many import ManySeats
from fangcheng_table.operating import Order
from fangcheng_table.store import JournalError, Record

from .test_recovery import Stage, stage
from .world import until

WAITS = Timing(claim_window_ms=0, between_hands_ms=0, turn_ms=600_000, vacancy_ms=60_000)


ORDER = Order("o-1", "operator", "from the waiting list", "")


@asynccontextmanager
async def playing(folder: Path) -> AsyncIterator[tuple[Stage, LiveTable]]:
    """A table in its first hand whose seats wait for another player when theirs leaves."""
    async with stage(folder) as it:
        table = await it.open(rules_id="shandong", hands=8, timing=WAITS)
        running = asyncio.create_task(table.run())
        for seat in range(4):
            table.attend(seat, 0, b"", lambda: None)
        await until(lambda: table.state.in_play is not None)
        yield it, table
        running.cancel()


class OneTable:
    """As much of the tables of a process as a gateway asks for."""

    tracing = OFF

    def __init__(self, table: LiveTable) -> None:
        self._table = table
        self.endpoint = ""
        """Of the process that plays the table now; empty: this one."""

    async def get(self, table_id: str) -> LiveTable:
        if self.endpoint:
            raise PlayedElsewhere(table_id, self.endpoint)
        return self._table


class Replicas:
    """The other processes, as a gateway's stream is passed on to them; they answer nothing."""

    def __init__(self) -> None:
        self.asked: dict[str, AsyncIterator[wire.AttendManyRequest]] = {}

    def open(self, endpoint: str, asked: AsyncIterator[wire.AttendManyRequest]) -> Replicas:
        self.asked[endpoint] = asked
        return self

    async def read(self) -> None:
        await asyncio.Event().wait()

    def cancel(self) -> None:
        """The stream is over."""


class Requests:
    """Requests to a stream, and whether it has taken all of them."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[wire.AttendManyRequest] = asyncio.Queue()
        self.are_taken = False

    def send(self, **message: Any) -> None:
        self.are_taken = False
        self._waiting.put_nowait(wire.AttendManyRequest(**message))

    async def __aiter__(self) -> AsyncIterator[wire.AttendManyRequest]:
        while True:
            self.are_taken = self._waiting.empty()
            yield await self._waiting.get()


@pytest.mark.parametrize("word", ["refuse", "agree"])
async def test_a_gateway_does_not_act_for_a_seat_that_another_player_has_taken_meanwhile(
    tmp_path, word
):
    async with playing(tmp_path) as (_, table):
        tables: Any = OneTable(table)
        requests = Requests()
        stream = ManySeats(tables, 10_000, heartbeat, Waiter(60)).run(aiter(requests))
        requests.send(add=wire.AddSeat(player_id="bob", table_id="t1"))
        assert (await anext(stream)).events.events  # From here on the gateway does not read.
        await table.do(lambda core: core.leave(1, now=True))
        await until(lambda: table.state.seats[1].vacant)
        await table.do(lambda core: operating.seat_player(core, ORDER, 1, SeatPlan("eve")))
        await table.do(lambda core: votes.propose(core, 0, 1))
        act = wire.ActRequest(
            table_id="t1", decision_id="vote-1", action=state_pb2.Action(kind=word)
        )
        requests.send(act=wire.SeatAct(player_id="bob", act=act))
        await until(lambda: requests.are_taken)
        await table.shown()  # What was asked of the table before is done.
        assert table.state.vote is not None
        assert table.state.vote.answers == {0: True}
        problems = []
        while not problems or problems[-1].decision_id != "vote-1":
            message = await anext(stream)
            problems += [message.problem] if message.HasField("problem") else []
            assert not message.events.acted
        assert problems[-1].problem.reason == "NOT_SEATED"
        await stream.aclose()


async def test_a_seat_that_is_added_again_is_followed_where_its_table_is_played_now_and_only_there(
    tmp_path,
):
    """Or the gateway would have its events twice, and be told that it moved once it has come."""
    async with playing(tmp_path) as (_, table):
        one_table, replicas, requests = OneTable(table), Replicas(), Requests()
        tables: Any = one_table
        seats = ManySeats(tables, 10_000, heartbeat, Waiter(60), replicas.open)
        stream = seats.run(aiter(requests))
        add = wire.AddSeat(player_id="bob", table_id="t1")
        requests.send(add=add)
        assert (await anext(stream)).events.events
        for endpoint in ("b:1", "c:1"):
            one_table.endpoint = endpoint
            requests.send(add=add)
            await until(lambda endpoint=endpoint: endpoint in replicas.asked)
        table.end_readers()
        requests.send(remove=wire.RemoveSeat(player_id="cat", table_id="t1"))
        problem = (await anext(stream)).problem
        assert (problem.player_id, problem.problem.reason) == ("cat", "NOT_ADDED")
        remove = wire.RemoveSeat(player_id="bob", table_id="t1")
        told = [await anext(replicas.asked["b:1"]) for _ in range(2)]
        assert told == [wire.AttendManyRequest(add=add), wire.AttendManyRequest(remove=remove)]
        assert await anext(replicas.asked["c:1"]) == wire.AttendManyRequest(add=add)
        await stream.aclose()


async def test_a_seat_has_its_new_player_once_that_is_stored(tmp_path):
    """Until then it would see what the one before saw, and may not get the seat at all."""
    async with playing(tmp_path) as (it, table):
        await table.do(lambda core: core.leave(1, now=True))
        await until(lambda: table.feed.open_view.seats[1].player_id == "")
        append, gate = it.journal.append, asyncio.Event()

        async def held(table_id: str, records: Sequence[Record], **more: Any) -> None:
            await gate.wait()
            await append(table_id, records, **more)

        it.journal.append = held
        plan = SeatPlan("eve")
        seating = asyncio.create_task(
            table.do(lambda core: operating.seat_player(core, ORDER, 1, plan))
        )
        await until(lambda: table.state.seats[1].plan == plan)
        with pytest.raises(NotSeated):
            table.seat_of("eve")
        gate.set()
        assert await seating is False
        assert table.seat_of("eve") == 1


def leaves(table: LiveTable) -> Any:
    return table.do(lambda core: core.leave(1, now=True))


def is_removed(table: LiveTable) -> Any:
    return table.do(lambda core: operating.remove(core, ORDER, "bob"))


@pytest.mark.parametrize(
    ("parts", "by", "why"),
    [(leaves, SeatVacated, LeftTable), (is_removed, OperatorActed, RemovedFromTable)],
)
async def test_who_leaves_reads_no_further_even_if_the_journals_answer_was_lost(
    tmp_path, monkeypatch, parts, by: type[Event], why
):
    monkeypatch.setattr("fangcheng_table.live.FIRST_PAUSE_SECONDS", 0.0)
    async with playing(tmp_path) as (it, table):
        reader = table.attend(1, 0, b"", lambda: None)
        append, lost = it.journal.append, []

        async def lossy(table_id: str, records: Sequence[Record], **more: Any) -> None:
            await append(table_id, records, **more)
            if any(isinstance(record.event, by) for record in records):
                lost.append(table_id)
                raise JournalError("stored, but the answer was lost")

        it.journal.append = lossy
        with contextlib.suppress(JournalUnavailable):
            await parts(table)
        await until(lambda: lost == ["t1"])
        await table.shown()  # It is rebuilt.
        with pytest.raises(why):
            reader.next(100_000)
        assert not table.state.seats[1].connected or table.state.seats[1].removed
