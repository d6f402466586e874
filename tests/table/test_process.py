"""The table service as a process: killed in the middle of a hand, and stopped with streams open."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_table.settings import TableSettings
from fangcheng_table.sqlite import SqliteJournal
from fangcheng_table.state import TableState
from fangcheng_table.store import Census

from . import partners
from .world import PLAYERS, Player, World, request, timeless, until

pytestmark = pytest.mark.system


class Process(World):
    """The table service as a process of its own, always on the same port."""

    process: asyncio.subprocess.Process
    listen = "127.0.0.1:0"

    @property
    def address(self) -> str:
        return self.listen

    async def start(self) -> None:
        port_file = self.folder / "port.json"
        port_file.unlink(missing_ok=True)
        settings: TableSettings = self.settings()
        given = ("dev_key", "database", "evaluation", "wallet", "drain_seconds")
        names = {name: str(getattr(settings, name)) for name in (*given, "player_calls_per_second")}
        names |= {"listen": self.listen, "port_file": str(port_file), "start_grace_seconds": "30"}
        names |= {"resume_grace_seconds": "30", "grace_seconds": "120"}
        environment = {f"FANGCHENG_TABLE_{name.upper()}": text for name, text in names.items()}
        kept = {name: text for name, text in os.environ.items() if not name.startswith("FANG")}
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fangcheng_table", env={**kept, **environment}
        )
        await until(lambda: port_file.exists() or self.process.returncode is not None, 30)
        assert self.process.returncode is None, "the service did not start"
        self.listen = json.loads(port_file.read_text())["listen"]

    async def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), 60)

    async def stop(self) -> None:
        if self.process.returncode is None:
            await self.end(signal.SIGKILL)


@asynccontextmanager
async def process(folder: Path) -> AsyncIterator[Process]:
    it = Process(folder)
    async with partners.serving(it.evaluator, it.wallet) as address:
        it._partners = address
        await it.start()
        try:
            yield it
        finally:
            await it.close()


@pytest.mark.timeout(300)
async def test_a_table_that_is_killed_in_the_middle_of_hands_goes_on(tmp_path):
    """kill -9, again and again: no hand is lost, none is paid twice, no viewer misses an event."""
    async with process(tmp_path) as service:
        made = await service.stub("operator").CreateTable(
            request(hands=4, stakes=[state_pb2.Stake(currency="silver", per_unit=10)])
        )
        table_id = made.table.table_id
        players = [Player(service, name) for name in PLAYERS]
        playing = asyncio.gather(*(player.play(table_id) for player in players))
        rng = random.Random(7)
        kills = 0
        for _ in range(3):
            seen = len(players[0].events) + rng.randrange(20, 90)
            await until(lambda seen=seen: len(players[0].events) > seen or playing.done(), 60)
            if playing.done():
                break
            assert await service.end(signal.SIGKILL) == -signal.SIGKILL
            kills += 1
            await service.start()
        await asyncio.wait_for(playing, 90)
        assert kills >= 2

        for player in players:
            numbers = [event.number for event in player.events]
            assert numbers == list(range(1, len(numbers) + 1))
            assert player.events[-1].table_closed.reason == "hands_played"
        stub = service.player("cat")
        whole = players[2].events
        after = wire.AttendRequest(table_id=table_id, from_number=len(whole) - 30)
        again = [m.event async for m in stub.Attend(after)]
        assert timeless(again) == timeless(whole[-30:])
        # Each hand was paid once, whatever was offered again.
        assert sorted(service.wallet.settled) == [f"{table_id}/{n}" for n in range(1, 5)]
        ended = [e.hand_ended for e in whole if e.HasField("hand_ended")]
        closed = whole[-1].table_closed
        assert [sum(net) for net in zip(*(e.net for e in ended), strict=True)] == list(
            closed.standings
        )
        # Every answer that a player was told was taken is in the journal.
        answered = [
            e.prompt_closed.why for p in players for e in p.events if e.HasField("prompt_closed")
        ]
        assert answered.count("timed_out") == 0

        assert await service.end(signal.SIGTERM) == 0
        journal = SqliteJournal(tmp_path / "table.db")
        try:
            records = await journal.read(table_id)
            state = TableState.replay(record.event for record in records)
            assert state.done
            assert [seat.standing for seat in state.seats] == list(closed.standings)
            assert await journal.census() == Census({}, 0)
        finally:
            await journal.close()


async def test_a_process_with_open_streams_stops_long_before_its_grace_is_over(tmp_path):
    """A process with an open stream must still exit within its grace."""
    async with process(tmp_path) as service:
        made = await service.stub("operator").CreateTable(request())
        table_id = made.table.table_id
        calls: list[Any] = [
            service.player(name).Attend(wire.AttendRequest(table_id=table_id)) for name in PLAYERS
        ]
        calls += [
            service.player("eve").Watch(wire.WatchRequest(table_id=table_id)) for _ in range(16)
        ]
        for call in calls:
            await call.read()
        assert await service.end(signal.SIGTERM) == 0
        for call in calls:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await drained(call)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def drained(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass
