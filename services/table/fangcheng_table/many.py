"""One stream for the seats of many players, as a gateway has it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial

from fangcheng.table.v1 import events_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_kit.errors import ServiceError
from fangcheng_kit.tracing import Span, here

from .errors import Moved, NotAdded, PlayedElsewhere, ReaderTooSlow, ReplicaBusy, TooManySeats
from .feed import Reader, Waiter
from .live import LiveTable
from .relays import OpenStream, Place, Relays
from .tables import Tables

MOST_EVENTS = 256
"""Events in one message at most."""

MOST_ACTS = 256
"""Acts of one stream under way at the same time at most; further ones wait in the stream."""

GATHER_SECONDS = 0.01
"""Between two messages of a stream: what happens meanwhile at all its tables goes into the next.

A message costs about as much as ten events in it. A stream that has been silent for longer sends
at once.
"""

MOST_UNSENT = 256
"""Answers of one stream that wait to be sent; where there are so many, no more is read from it, nor
from other replicas for it."""


class ManySeats:
    """A stream of many seats. What goes wrong with one of them is told, and the others go on."""

    def __init__(
        self,
        tables: Tables,
        most_behind: int,
        heartbeat: Callable[[], events_pb2.Heartbeat],
        waiter: Waiter,
        open_stream: OpenStream | None = None,
        admit: Callable[[str], None] | None = None,
        most_seats: int = 10_000,
    ) -> None:
        """`open_stream`: to another replica, for the seats that it plays. `admit`: raises where a
        player does too much; None: nobody does."""
        self._admit = admit or _everything
        self._most_seats = most_seats
        self._tables = tables
        self._most_behind = most_behind
        self._heartbeat = heartbeat
        self._seats: dict[Place, tuple[LiveTable, Reader]] = {}
        self._news: dict[Place, None] = {}
        self._out: deque[wire.AttendManyResponse] = deque()
        self._accepted: list[wire.SeatActed] = []
        self._room = asyncio.Event()
        self._waiter = waiter
        self._acts: set[asyncio.Task[None]] = set()
        self._may_act = asyncio.Semaphore(MOST_ACTS)
        self._relays = Relays(
            open_stream,
            self._say,
            self._may_say,
            lambda place: self._problem(place, Moved(place[1])),
        )

    async def run(
        self, requests: AsyncIterator[wire.AttendManyRequest]
    ) -> AsyncGenerator[wire.AttendManyResponse, None]:
        """Answer a stream until it is cancelled, or has no more requests and no more seats."""
        listening = asyncio.get_running_loop().create_task(self._listen(requests))
        listening.add_done_callback(lambda _: self._waiter.wake())
        try:
            while True:
                while self._out:
                    yield self._out.popleft()
                    self._waiter.spoke()
                    self._room.set()
                accepted, self._accepted = self._accepted, []
                events = self._take()
                if events or accepted:
                    told = wire.SeatEvents(events=events, acted=accepted)
                    yield wire.AttendManyResponse(events=told)
                    self._waiter.spoke()
                    self._room.set()
                    continue
                if self._out:
                    continue
                if listening.done():
                    listening.result()  # raises what was wrong with a request
                    if not (self._seats or self._relays or self._acts):
                        return
                if not await self._waiter.wait():
                    yield wire.AttendManyResponse(heartbeat=self._heartbeat())
                    self._waiter.spoke()
                else:
                    await self._waiter.since_spoken(GATHER_SECONDS)
        finally:
            listening.cancel()
            for task in self._acts:
                task.cancel()
            for place in list(self._seats):
                self._drop(place)
            await self._relays.close()
            await asyncio.gather(listening, *self._acts, return_exceptions=True)

    # What is sent.

    def _take(self) -> list[wire.SeatEvent]:
        """The next events, a fair share of each seat that has some."""
        events: list[wire.SeatEvent] = []
        for place in list(self._news):
            del self._news[place]
            if place not in self._seats:
                continue
            _, reader = self._seats[place]
            player_id, table_id = place
            try:
                while len(events) < MOST_EVENTS:
                    event = reader.next(self._most_behind)
                    if event is None:
                        break
                    events.append(
                        wire.SeatEvent(player_id=player_id, table_id=table_id, event=event)
                    )
                else:
                    self._news[place] = None
                    return events
                while (talk := reader.heard()) is not None:
                    heard = wire.SeatTalk(player_id=player_id, table_id=table_id, talk=talk)
                    self._say(wire.AttendManyResponse(talk=heard))
            except ReaderTooSlow:
                raise
            except ServiceError as error:  # attended elsewhere
                self._drop(place)
                self._problem(place, error)
                continue
            if reader.at_end:
                self._drop(place)
                done = wire.SeatDone(player_id=player_id, table_id=table_id)
                self._say(wire.AttendManyResponse(done=done))
        return events

    def _say(self, message: wire.AttendManyResponse) -> None:
        self._out.append(message)
        self._waiter.wake()

    async def _may_say(self) -> None:
        """Wait until enough has been sent of what there is to say."""
        while len(self._out) + len(self._accepted) >= MOST_UNSENT:
            self._room.clear()
            await self._room.wait()

    def _problem(self, place: Place, error: ServiceError, decision_id: str = "") -> None:
        problem = wire.SeatProblem(player_id=place[0], table_id=place[1], decision_id=decision_id)
        problem.problem.reason = error.reason
        problem.problem.message = error.message
        problem.problem.field = error.field or ""
        self._say(wire.AttendManyResponse(problem=problem))

    # What is asked.

    async def _listen(self, requests: AsyncIterator[wire.AttendManyRequest]) -> None:
        async for request in requests:
            await self._may_say()
            match request.WhichOneof("message"):
                case "add":
                    if self._may(request.add.player_id, request.add.table_id):
                        with self._span("AttendMany add", request.add.table_id):
                            await self._add(request.add)
                case "remove":
                    place = (request.remove.player_id, request.remove.table_id)
                    if not self._drop(place):
                        self._problem(place, NotAdded())
                case _ if not self._may(
                    request.act.player_id, request.act.act.table_id, request.act.act.decision_id
                ):
                    pass
                case _ if (request.act.player_id, request.act.act.table_id) in self._relays:
                    place = (request.act.player_id, request.act.act.table_id)
                    try:
                        self._relays.pass_on(place, request)
                    except ReplicaBusy as busy:
                        self._problem(place, busy, request.act.act.decision_id)
                case _:
                    await self._may_act.acquire()
                    task = asyncio.get_running_loop().create_task(self._act(request.act))
                    self._acts.add(task)
                    task.add_done_callback(self._acted)

    def _may(self, player_id: str, table_id: str, decision_id: str = "") -> bool:
        """Whether something is to be done for a player; told where he asks for too much."""
        try:
            self._admit(player_id)
        except ServiceError as error:
            self._problem((player_id, table_id), error, decision_id)
            return False
        return True

    async def _add(self, add: wire.AddSeat) -> None:
        place = (add.player_id, add.table_id)
        try:
            is_new = place not in self._seats and place not in self._relays
            if is_new and len(self._seats) + len(self._relays) >= self._most_seats:
                raise TooManySeats(self._most_seats)
            table = await self._tables.get(add.table_id)
            seat = table.seat_of(add.player_id)
            self._drop(place)
            reader = table.attend(
                seat,
                add.from_number,
                add.entropy,
                partial(self._wake, place),
                snapshot=add.snapshot,
                muted=add.muted,
            )
        except PlayedElsewhere as elsewhere:
            if not self._relays.may_pass_on:
                self._problem(place, elsewhere)
                return
            self._drop(place)  # or it would be followed where it was played before, too
            try:
                self._relays.add(place, elsewhere.endpoint, add)
            except ReplicaBusy as busy:
                self._problem(place, busy)
            return
        except ServiceError as error:
            self._problem(place, error)
            return
        self._seats[place] = (table, reader)
        self._wake(place)

    async def _act(self, act: wire.SeatAct) -> None:
        place, decision_id = (act.player_id, act.act.table_id), act.act.decision_id
        try:
            if place not in self._seats:
                raise NotAdded
            table, _ = self._seats[place]
            with self._span("AttendMany act", place[1]):
                # Another may have the seat by now.
                await table.act(table.seat_of(act.player_id), decision_id, act.act.action)
        except ServiceError as error:
            self._problem(place, error, decision_id)
            return
        acted = wire.SeatActed(player_id=place[0], table_id=place[1], decision_id=decision_id)
        self._accepted.append(acted)
        self._waiter.wake()

    def _span(self, name: str, table_id: str) -> Span:
        """Each message begins a trace: the stream's own would hold all that happens for hours."""
        return self._tables.tracing.span(name, [], links=[here()], table_id=table_id)

    def _acted(self, task: asyncio.Task[None]) -> None:
        self._acts.discard(task)
        self._may_act.release()
        self._waiter.wake()

    def _wake(self, place: Place) -> None:
        self._news[place] = None
        self._waiter.wake()

    def _drop(self, place: Place) -> bool:
        """Follow a seat no longer; whether it was followed."""
        seat = self._seats.pop(place, None)
        if seat is None:
            return self._relays.drop(place)
        table, reader = seat
        table.leave(reader)
        return True


def _everything(player_id: str) -> None:
    """Admits whatever is done."""
