"""Seats that another replica plays, when either side is slower than the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest

from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1 import table_pb2_grpc
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_table.errors import ReplicaBusy
from fangcheng_table.relays import MOST_WAITING, Place, Relays

from .world import until

PLACE = ("ann", "t1")
ADD = wire.AddSeat(player_id="ann", table_id="t1")


class Replica(table_pb2_grpc.TableServiceServicer):
    """Another replica; it reads when it may, and then answers each act."""

    def __init__(self) -> None:
        self.may_read = asyncio.Event()
        self.ends = False
        """The stream, at its first request."""
        self.asked: list[wire.AttendManyRequest] = []

    async def AttendMany(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        await self.may_read.wait()
        async for request in requests:
            self.asked.append(request)
            if self.ends:
                return
            if request.HasField("act"):
                acted = wire.SeatActed(decision_id=request.act.act.decision_id)
                yield wire.AttendManyResponse(events=wire.SeatEvents(acted=[acted]))


class Stream:
    """A gateway's stream, as far as its relays see it."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.most = 1
        self.sent = asyncio.Event()
        self.lost: list[Place] = []

    def say(self, answer: wire.AttendManyResponse) -> None:
        self.said += [acted.decision_id for acted in answer.events.acted]

    async def may_say(self) -> None:
        while len(self.said) >= self.most:
            self.sent.clear()
            await self.sent.wait()

    def send(self, most: int) -> None:
        """Let it say so much."""
        self.most = most
        self.sent.set()


@asynccontextmanager
async def relaying() -> AsyncIterator[tuple[Relays, Replica, Stream, str]]:
    replica, stream = Replica(), Stream()
    server = grpc.aio.server()
    table_pb2_grpc.add_TableServiceServicer_to_server(replica, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    async with grpc.aio.insecure_channel(address) as channel:

        def open_stream(endpoint: str, requests: AsyncIterator[wire.AttendManyRequest]) -> Any:
            return TableServiceStub(channel).AttendMany(requests)

        relays = Relays(open_stream, stream.say, stream.may_say, stream.lost.append)
        try:
            yield relays, replica, stream, address
        finally:
            await relays.close()
            await server.stop(None)


def act(number: int) -> wire.AttendManyRequest:
    asked = wire.ActRequest(table_id="t1", decision_id=f"1-{number}")
    return wire.AttendManyRequest(act=wire.SeatAct(player_id="ann", act=asked))


async def pass_on_until_refused(relays: Relays) -> int:
    """How many acts were taken before one was refused, with a replica that reads none."""
    for number in range(100 * MOST_WAITING):
        try:
            relays.pass_on(PLACE, act(number))
        except ReplicaBusy:
            return number
        if number % 100 == 0:
            await asyncio.sleep(0)  # so that what can be sent is
    raise AssertionError("no act was refused")


async def test_a_replica_that_does_not_read_is_asked_no_more_until_it_does():
    async with relaying() as (relays, replica, stream, address):
        relays.add(PLACE, address, ADD)
        taken = await pass_on_until_refused(relays)
        assert taken >= MOST_WAITING - 1
        with pytest.raises(ReplicaBusy):
            relays.add(("bob", "t1"), address, wire.AddSeat(player_id="bob", table_id="t1"))
        assert ("bob", "t1") not in relays
        # It is still told who is not followed any more, and nothing that was taken is lost.
        assert relays.drop(PLACE)
        stream.send(taken + 1)
        replica.may_read.set()
        await until(lambda: len(replica.asked) == taken + 2)
        assert replica.asked[0].HasField("add")
        assert replica.asked[-1].HasField("remove")
        await until(lambda: len(stream.said) == taken)
        assert stream.said == [f"1-{number}" for number in range(taken)]
        relays.add(PLACE, address, ADD)
        relays.pass_on(PLACE, act(taken))
        await until(lambda: len(replica.asked) == taken + 4)
        assert stream.lost == []


async def test_a_stream_that_says_nothing_reads_no_more_of_what_a_replica_answers():
    async with relaying() as (relays, replica, stream, address):
        replica.may_read.set()
        relays.add(PLACE, address, ADD)
        for number in range(100):
            relays.pass_on(PLACE, act(number))
        await until(lambda: len(replica.asked) == 101)
        for most in range(2, 102):
            assert len(stream.said) < most
            stream.send(most)
            await until(lambda: len(stream.said) == min(stream.most, 100))
        assert stream.said == [f"1-{number}" for number in range(100)]


async def test_of_a_stream_that_its_replica_has_ended_nothing_is_left():
    """gRPC waited for its next request for ever, and the garbage collector complained."""
    async with relaying() as (relays, replica, stream, address):
        replica.ends = True
        replica.may_read.set()
        relays.add(PLACE, address, ADD)
        await until(lambda: stream.lost == [PLACE])
        # gRPC's own task, in the words of its name.
        await until(
            lambda: not any("request_iterator" in str(task) for task in asyncio.all_tasks())
        )
