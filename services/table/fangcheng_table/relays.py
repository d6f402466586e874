"""The seats of a stream of many that are played on other replicas: a stream to each of those."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc.aio

from fangcheng.table.v1 import table_pb2 as wire

from .errors import ReplicaBusy

MOST_WAITING = 4_096
"""Requests of one stream that wait for one replica at most.

Enough for a burst. Whoever is behind by more does not read at all, and the stream does not wait for
it: its other seats go on.
"""

Place = tuple[str, str]
"""Player and table."""

OpenStream = Callable[[str, AsyncIterator[wire.AttendManyRequest]], Any]
"""Opens AttendMany at an endpoint, for whoever opened ours."""


class Relays:
    """Streams to other replicas, one each, as they are needed."""

    def __init__(
        self,
        open_stream: OpenStream | None,
        say: Callable[[wire.AttendManyResponse], None],
        may_say: Callable[[], Awaitable[None]],
        lost: Callable[[Place], None],
    ) -> None:
        """`open_stream`: None where seats are not passed on. `say`: what a replica answers.

        `may_say`: waited for before another answer is read. `lost`: a seat's stream has ended
        before the seat did.
        """
        self._open_stream = open_stream
        self._say = say
        self._may_say = may_say
        self._lost = lost
        self._relays: dict[str, _Relay] = {}
        self._seats: dict[Place, _Relay] = {}

    @property
    def may_pass_on(self) -> bool:
        """Whether seats are passed on at all."""
        return self._open_stream is not None

    def __contains__(self, place: Place) -> bool:
        return place in self._seats

    def __len__(self) -> int:
        return len(self._seats)

    def __bool__(self) -> bool:
        return bool(self._seats)

    def add(self, place: Place, endpoint: str, add: wire.AddSeat) -> None:
        """Follow a seat at an endpoint; raises `ReplicaBusy`."""
        relay = self._relays.get(endpoint)
        if relay is None:
            relay = self._relays[endpoint] = _Relay()
            relay.task = asyncio.get_running_loop().create_task(self._run(endpoint, relay))
        relay.ask(place[1], wire.AttendManyRequest(add=add))
        self._seats[place] = relay

    def pass_on(self, place: Place, request: wire.AttendManyRequest) -> None:
        """What is asked of a seat that is followed elsewhere; raises `ReplicaBusy`."""
        self._seats[place].ask(place[1], request)

    def drop(self, place: Place) -> bool:
        """Follow a seat no longer; whether it was followed."""
        relay = self._seats.pop(place, None)
        if relay is None:
            return False
        remove = wire.RemoveSeat(player_id=place[0], table_id=place[1])
        # Never refused: there are no more of them than of seats that were added.
        relay.requests.put_nowait(wire.AttendManyRequest(remove=remove))
        return True

    async def close(self) -> None:
        """End all streams."""
        tasks = [relay.task for relay in self._relays.values() if relay.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, endpoint: str, relay: _Relay) -> None:
        assert self._open_stream is not None  # noqa: S101 # nosec B101 # or no seat would be passed on
        stream = self._open_stream(endpoint, relay.asked())
        try:
            while (answer := await stream.read()) is not grpc.aio.EOF:
                self._answered(relay, answer)
                await self._may_say()
        except grpc.aio.AioRpcError:
            pass  # its seats are told below; whoever adds them again finds their new owner
        finally:
            stream.cancel()
            relay.requests.put_nowait(None)
            if self._relays.get(endpoint) is relay:
                del self._relays[endpoint]
        for place in [place for place, at in self._seats.items() if at is relay]:
            del self._seats[place]
            self._lost(place)

    def _answered(self, relay: _Relay, answer: wire.AttendManyResponse) -> None:
        match answer.WhichOneof("message"):
            case "heartbeat":
                return  # of its own stream; ours has others
            case "done":
                place = (answer.done.player_id, answer.done.table_id)
            case "problem" if not answer.problem.decision_id:
                place = (answer.problem.player_id, answer.problem.table_id)
            case _:
                self._say(answer)
                return
        if self._seats.get(place) is relay:
            del self._seats[place]
            self._say(answer)


class _Relay:
    """A stream to one replica, and what is to be sent on it."""

    def __init__(self) -> None:
        self.requests: asyncio.Queue[wire.AttendManyRequest | None] = asyncio.Queue()
        """None: the stream has ended. gRPC would wait for its next request for ever."""
        self.task: asyncio.Task[None] | None = None

    def ask(self, table_id: str, request: wire.AttendManyRequest) -> None:
        if self.requests.qsize() >= MOST_WAITING:
            raise ReplicaBusy(table_id)
        self.requests.put_nowait(request)

    async def asked(self) -> AsyncIterator[wire.AttendManyRequest]:
        while (request := await self.requests.get()) is not None:
            yield request
