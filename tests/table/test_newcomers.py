"""A seat that another player has taken: nothing is done for it in the name of who had it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_table import operating, votes
from fangcheng_table.events import SeatPlan, Timing
from fangcheng_table.feed import Waiter, heartbeat
from fangcheng_table.live import LiveTable
from fangcheng_table.many import ManySeats
from fangcheng_table.operating import Order

from .test_recovery import stage
from .world import until

WAITS = Timing(claim_window_ms=0, between_hands_ms=0, turn_ms=600_000, vacancy_ms=60_000)


class OneTable:
    """As much of the tables of a process as a gateway asks for."""

    def __init__(self, table: LiveTable) -> None:
        self._table = table

    async def get(self, table_id: str) -> LiveTable:
        return self._table


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
    async with stage(tmp_path) as it:
        table = await it.open(rules_id="shandong", hands=8, timing=WAITS)
        running = asyncio.create_task(table.run())
        tables: Any = OneTable(table)
        requests = Requests()
        stream = ManySeats(tables, 10_000, heartbeat, Waiter(60)).run(aiter(requests))
        requests.send(add=wire.AddSeat(player_id="bob", table_id="t1"))
        assert (await anext(stream)).events.events  # From here on the gateway does not read.
        for seat in (0, 2, 3):
            table.attend(seat, 0, b"", lambda: None)
        await until(lambda: table.state.in_play is not None)
        await table.do(lambda core: core.leave(1, now=True))
        await until(lambda: table.state.seats[1].vacant)
        order = Order("o-1", "operator", "from the waiting list", "")
        await table.do(lambda core: operating.seat_player(core, order, 1, SeatPlan("eve")))
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
        running.cancel()
