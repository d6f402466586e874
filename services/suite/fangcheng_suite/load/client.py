"""A client process: queues players, seats them, acts for them, and tells what it measured.

`python -m fangcheng_suite.load.client` reads its orders, a line of JSON, from standard input, and
ends in order when that ends, however it does. Four times a second it writes a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import secrets
import sys
import time
import zlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any

import grpc
import grpc.aio

from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng.table.v1 import table_pb2, table_pb2_grpc
from fangcheng_client import explain
from fangcheng_kit.collector import relax
from fangcheng_suite.access import BOT_SCOPE, Access

from .measured import LATE, SEATED, SEATINGS, Slice
from .seats import Seats
from .way import Way

TOLD_SECONDS = 0.25
LATE_SECONDS = 0.05
"""How often the delay of the process's own clock is taken."""
SEATS_PER_STREAM = 1_000
QUEUEING = 64
"""Players that queue at the same time; four of each pool if that is more, as a table needs four."""
LEAVING = 32
LEAVE_SECONDS = 10.0
"""For tables to be dissolved, before each player leaves for himself."""
PAUSE_SECONDS = 1.0
"""Before a player queues again who was not seated."""
GATEWAY = "service:gateway"
LABELS = {"source": "fangcheng-load"}
"""Of tickets, and so of tables and records, so that a studio can tell them apart."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What a client process is to do."""

    way: Mapping[str, Any]
    players: Sequence[tuple[str, str]]
    """Player id and pool; four for each table."""
    turn_seconds: float
    """Median time that a player thinks about a turn; 0: none."""
    hints: float
    """Of so many turns a hint is asked for."""
    seed: int
    leave: bool
    """The tables go on without the load: its players leave them when it ends."""

    def to_line(self) -> bytes:
        """As the process reads it."""
        return json.dumps(asdict(self)).encode() + b"\n"


class Client:
    """The players of one process. `say`: takes a line of what was measured."""

    def __init__(
        self, orders: Orders, access: Access, stack: AsyncExitStack, say: Callable[[str], None]
    ) -> None:
        self._say_line = say
        self._orders = orders
        self._access = access
        self._stack = stack
        self._chance = random.Random(orders.seed)  # noqa: S311 # nosec B311 # no secret
        self._slice = Slice()
        pools = {pool for _, pool in orders.players}
        self._room = asyncio.Semaphore(max(QUEUEING, 4 * len(pools)))
        self._tickets: dict[str, str] = {}
        """Of players who queue."""
        self._streams: list[Seats] = []
        self._leaving = False

    async def open(self) -> None:
        """Open the channels, and a stream for each thousand seats."""
        # Without the scope of bots: bots may not sit where silver is staked.
        self._matchmaking = matchmaking_pb2_grpc.MatchmakingServiceStub(
            await self._channel("matchmaking", "act_as")
        )
        self._tables = table_pb2_grpc.TableServiceStub(await self._channel("table", "act_as"))
        for _ in range(-(-len(self._orders.players) // SEATS_PER_STREAM)):
            self._streams.append(
                Seats(
                    await self._channel("table", "act_as", BOT_SCOPE),
                    await self._channel("evaluation"),
                    lambda: self._slice,
                    self._chance,
                    turn_seconds=self._orders.turn_seconds,
                    hints=self._orders.hints,
                )
            )

    async def _channel(self, service: str, *scopes: str) -> grpc.aio.Channel:
        channel = self._access.channel(service, GATEWAY, scopes)
        return await self._stack.enter_async_context(channel)

    async def run(self, until: asyncio.Task[None]) -> None:
        """Play until the task is done; then leave, where tables go on without the load."""
        tasks = [
            until,
            *(asyncio.create_task(stream.read()) for stream in self._streams),
            asyncio.create_task(self._tell()),
            asyncio.create_task(self._look_at_the_clock()),
            *(asyncio.create_task(self._live(*player)) for player in self._orders.players),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if self._orders.leave:
                await self._leave()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._say()

    async def _live(self, player_id: str, pool_id: str) -> None:
        """Queue and play, table after table, until the load leaves."""
        while not self._leaving:
            try:
                async with self._room:
                    table_id = await self._seat(player_id, pool_id)
            except grpc.aio.AioRpcError as error:
                self._slice.errors["JoinQueue", explain(error).reason] += 1
                table_id = ""
            if not table_id:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            # All seats of a table on one stream, which sees when each of them is told of something.
            stream = self._streams[zlib.crc32(table_id.encode()) % len(self._streams)]
            await stream.play(player_id, table_id)

    async def _seat(self, player_id: str, pool_id: str) -> str:
        """The table that a player is seated at; '' where he is not. Raises AioRpcError."""
        stub, act_as = self._matchmaking, _act_as(player_id)
        began = time.perf_counter()
        request = matchmaking_pb2.JoinQueueRequest(
            request_id=secrets.token_hex(16), pool_id=pool_id, labels=LABELS
        )
        ticket = (await stub.JoinQueue(request, metadata=act_as)).ticket
        self._tickets[player_id] = ticket.ticket_id
        try:
            watch = matchmaking_pb2.WatchTicketRequest(ticket_id=ticket.ticket_id)
            async for answer in stub.WatchTicket(watch, metadata=act_as):
                ticket = answer.ticket
        finally:
            del self._tickets[player_id]
        if ticket.state == matchmaking_pb2.TICKET_STATE_LEFT and self._leaving:
            return ""
        if ticket.state != matchmaking_pb2.TICKET_STATE_ASSIGNED:
            self._slice.errors["JoinQueue", ticket.problem.reason or "LEFT"] += 1
            return ""
        self._slice.time(SEATED, time.perf_counter() - began)
        self._slice.counts[SEATINGS] += 1
        return ticket.table_id

    async def _leave(self) -> None:
        """Leave queues and tables. All seats of a table agree to dissolve it; where others sit too
        and do not, it plays its hand to the end.
        """
        self._leaving = True
        tickets = list(self._tickets.items())
        proposals = [one for stream in self._streams for one in stream.leave()]
        await self._all(
            *(self._give_up(*one) for one in tickets), *(self._propose(*one) for one in proposals)
        )
        over = [one for stream in self._streams for one in stream.over]
        if over:
            await asyncio.wait(over, timeout=LEAVE_SECONDS)
        places = [place for stream in self._streams for place in stream.places]
        await self._all(*(self._leave_table(*place) for place in places))

    async def _give_up(self, player_id: str, ticket_id: str) -> None:
        request = matchmaking_pb2.LeaveQueueRequest(ticket_id=ticket_id)
        await self._matchmaking.LeaveQueue(request, metadata=_act_as(player_id))

    async def _propose(self, player_id: str, table_id: str, hand_number: int) -> None:
        request = table_pb2.ProposeDissolutionRequest(table_id=table_id, hand_number=hand_number)
        await self._tables.ProposeDissolution(request, metadata=_act_as(player_id))

    async def _leave_table(self, player_id: str, table_id: str) -> None:
        request = table_pb2.LeaveTableRequest(
            table_id=table_id, mode=table_pb2.LEAVE_MODE_AFTER_HAND
        )
        await self._tables.LeaveTable(request, metadata=_act_as(player_id))

    async def _all(self, *calls: Coroutine[Any, Any, None]) -> None:
        """Make many calls, some at a time, and note which of them fail."""
        room = asyncio.Semaphore(LEAVING)

        async def one(call: Coroutine[Any, Any, None]) -> None:
            async with room:
                try:
                    await call
                except grpc.aio.AioRpcError as error:
                    # What has closed, or has its table, meanwhile is left already.
                    if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                        self._slice.errors["Leave", explain(error).reason] += 1

        await asyncio.gather(*map(one, calls))

    async def _look_at_the_clock(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LATE_SECONDS
            await asyncio.sleep(LATE_SECONDS)
            self._slice.time(LATE, max(loop.time() - due, 0.0))

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(TOLD_SECONDS)
            self._say()

    def _say(self) -> None:
        told, self._slice = self._slice, Slice()
        line = {
            **told.to_json(),
            "tables": sum(stream.playing for stream in self._streams),
            "cpu_seconds": time.process_time(),
            "memory_bytes": _memory_bytes(),
        }
        self._say_line(json.dumps(line))


def _act_as(player_id: str) -> tuple[tuple[str, str], ...]:
    return (("fangcheng-act-as", player_id),)


def _memory_bytes() -> int:
    """What this process has had at most."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


async def _main() -> None:
    reader = asyncio.StreamReader(limit=2**26)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    orders = Orders(**json.loads(await reader.readline()))
    access = Way(**orders.way).access()
    async with AsyncExitStack() as stack:
        client = Client(orders, access, stack, lambda line: print(line, flush=True))
        await client.open()
        await client.run(asyncio.create_task(_ended(reader)))


async def _ended(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass


if __name__ == "__main__":
    relax(20_000, 50, 20)  # as the table service does, so that no pause of ours is measured
    asyncio.run(_main())
