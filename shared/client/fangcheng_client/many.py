"""The seats of many players on one stream, over broken connections: for a gateway.

async with aclosing(ManySeats(channel)) as seats:
    seats.add("ming", table_id)
    async for news in seats:
        match news:
            case table_pb2.SeatEvent(event=event) if event.HasField("prompt"):
                seats.act(news.player_id, news.table_id, event.prompt.decision_id, answer)
            case table_pb2.SeatDone() | table_pb2.SeatProblem():
                ...
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2, table_pb2_grpc
from fangcheng_client.streams import Breaks, MissingEvent, OnBreak

AGAIN_SECONDS = 0.2
"""After so long a seat or an act is given again that could not be taken at that moment."""

SeatNews = (
    table_pb2.SeatEvent
    | table_pb2.SeatActed
    | table_pb2.SeatProblem
    | table_pb2.SeatDone
    | table_pb2.SeatTalk
)

_Place = tuple[str, str]
"""Player and table."""

_PASSING = frozenset(
    {
        *("MOVED", "NO_OWNER", "REPLICA_BUSY", "JOURNAL_UNAVAILABLE", "DRAINING"),
        *("READER_TOO_SLOW", "TOO_MANY_CALLS"),
    }
)


@dataclass(slots=True)
class _Seat:
    """A seat that is followed."""

    number: int
    """The last that was received."""
    entropy: bytes
    muted: Collection[int]
    snapshot: bool = False
    """Its next stream is to begin with one: it has met a kind of event that is not known here."""
    lost_since: float | None = None
    in_doubt: bool = False
    """What comes may be about it as it was before it was removed: until its first event."""
    given_again: bool = False
    """An end or a problem came while it was in doubt."""


@dataclass(slots=True)
class _Act:
    """An act that was not answered yet."""

    act: table_pb2.SeatAct
    since: float = field(default_factory=time.monotonic)


class ManySeats:
    """Attends the seats that are added, and acts for them, on a stream of the caller's gateway.

    Iterating gives what happens at them: the events of each seat once and in order, which acts were
    accepted, what the seats hear, which of them are done, and what went wrong for good. A seat or
    act of which a problem is told is forgotten. A broken connection is opened again, its seats go
    on from their last events, and acts that were not answered are given again (a repeat is answered
    as the first was); so are seats that are on their way to another replica.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        *,
        give_up_seconds: float = 60.0,
        silence_seconds: float = 60.0,
        on_heartbeat: Callable[[events_pb2.Heartbeat], None] | None = None,
        on_break: OnBreak | None = None,
    ) -> None:
        """``give_up_seconds``: how long a connection, a seat or an act is tried again. Iterating
        raises ``AioRpcError``, ``TimeoutError`` (silent for ``silence_seconds``) and
        ``MissingEvent`` then, as ``attend`` does; of a seat or an act a problem is told.
        """
        self._stub: Any = table_pb2_grpc.TableServiceStub(channel)
        self._give_up_seconds = give_up_seconds
        self._silence_seconds = silence_seconds
        self._on_heartbeat = on_heartbeat
        self._on_break = on_break
        self._seats: dict[_Place, _Seat] = {}
        self._acts: dict[tuple[_Place, str], _Act] = {}
        self._removed: set[_Place] = set()
        """On the connection that there is: what was sent before the table knew may still come."""
        self._out: asyncio.Queue[table_pb2.AttendManyRequest | None] | None = None
        """What is sent on the connection that there is."""
        self._news = self._all_news()

    def add(
        self,
        player_id: str,
        table_id: str,
        from_number: int = 0,
        *,
        entropy: bytes = b"",
        muted: Collection[int] = (),
        snapshot: bool = False,
    ) -> None:
        """Follow a seat after a number, as ``attend`` does; again: on from where it is.

        To go back to an earlier number, remove it first. ``snapshot``: begin with one, for whoever
        has met a kind of event that he does not know.
        """
        place = (player_id, table_id)
        known = self._seats.get(place)
        if known is None:
            seat = _Seat(from_number, entropy, muted, snapshot, in_doubt=place in self._removed)
        else:
            snapshot = snapshot or known.snapshot
            seat = _Seat(known.number, entropy, muted, snapshot, in_doubt=known.in_doubt)
        self._seats[place] = seat
        self._give_seat(place)

    def remove(self, player_id: str, table_id: str) -> None:
        """Follow a seat no longer: it counts as disconnected unless it is attended elsewhere."""
        place = (player_id, table_id)
        if self._forget(place):
            self._removed.add(place)
            remove = table_pb2.RemoveSeat(player_id=player_id, table_id=table_id)
            self._send(table_pb2.AttendManyRequest(remove=remove))

    def act(
        self, player_id: str, table_id: str, decision_id: str, action: state_pb2.Action
    ) -> None:
        """Answer a prompt of a seat that was added; it is told whether that was accepted."""
        request = table_pb2.ActRequest(table_id=table_id, decision_id=decision_id, action=action)
        key = ((player_id, table_id), decision_id)
        self._acts[key] = _Act(table_pb2.SeatAct(player_id=player_id, act=request))
        self._give_act(key)

    def __aiter__(self) -> AsyncIterator[SeatNews]:
        return self._news

    async def aclose(self) -> None:
        """End the stream."""
        await self._news.aclose()

    async def _all_news(self) -> AsyncGenerator[SeatNews, None]:
        breaks = Breaks(self._give_up_seconds)
        while True:
            out = self._out = asyncio.Queue()
            self._removed.clear()
            for seat in self._seats.values():
                seat.in_doubt = False
            for place in self._seats:
                self._give_seat(place)
            for key in self._acts:
                self._give_act(key)
            call = self._stub.AttendMany(_given(out))
            try:
                while True:
                    async with asyncio.timeout(self._silence_seconds):
                        message = await call.read()
                    if message is grpc.aio.EOF:
                        return
                    breaks.alive()
                    for news in self._read(message):
                        yield news
            except (grpc.aio.AioRpcError, TimeoutError) as error:
                breaks.check(error)
                if self._on_break is not None:
                    self._on_break(error)
            finally:
                self._out = None
                out.put_nowait(None)  # gRPC would wait for the next request of a call that is over
                call.cancel()
            await breaks.pause()

    # What is sent.

    def _send(self, request: table_pb2.AttendManyRequest) -> None:
        if self._out is not None:
            self._out.put_nowait(request)

    def _give_seat(self, place: _Place) -> None:
        if (seat := self._seats.get(place)) is not None:
            add = table_pb2.AddSeat(
                player_id=place[0],
                table_id=place[1],
                from_number=seat.number,
                entropy=seat.entropy,
                snapshot=seat.snapshot,
                muted=seat.muted,
            )
            self._send(table_pb2.AttendManyRequest(add=add))

    def _give_act(self, key: tuple[_Place, str]) -> None:
        if (given := self._acts.get(key)) is not None:
            self._send(table_pb2.AttendManyRequest(act=given.act))

    def _forget(self, place: _Place) -> bool:
        """A seat is followed no longer, nor are its acts; whether it was."""
        for key in [key for key in self._acts if key[0] == place]:
            del self._acts[key]
        return self._seats.pop(place, None) is not None

    # What is read.

    def _read(self, message: table_pb2.AttendManyResponse) -> Iterator[SeatNews]:
        match message.WhichOneof("message"):
            case "events":
                for entry in message.events.events:
                    yield from self._event(entry)
                for acted in message.events.acted:
                    place = (acted.player_id, acted.table_id)
                    if self._acts.pop((place, acted.decision_id), None) is not None:
                        yield acted
            case "problem":
                yield from self._problem(message.problem)
            case "done":
                place = (message.done.player_id, message.done.table_id)
                if not self._is_asked_again(place) and self._forget(place):
                    yield message.done
            case "talk":
                if (message.talk.player_id, message.talk.table_id) in self._seats:
                    yield message.talk
            case "heartbeat" if self._on_heartbeat is not None:
                self._on_heartbeat(message.heartbeat)

    def _event(self, entry: table_pb2.SeatEvent) -> Iterator[table_pb2.SeatEvent]:
        place, event = (entry.player_id, entry.table_id), entry.event
        seat = self._seats.get(place)
        if seat is None or (seat.snapshot and not event.HasField("snapshot")):
            return
        kind = event.WhichOneof("kind")
        if kind != "snapshot":
            if event.number <= seat.number:
                return
            if event.number != seat.number + 1:
                if seat.in_doubt:
                    return
                raise MissingEvent(f"event {event.number} of {place} came after {seat.number}")
        elif event.number < seat.number:
            if seat.in_doubt:
                return
            raise MissingEvent(f"a snapshot of {event.number} of {place} came after {seat.number}")
        seat.number, seat.snapshot, seat.lost_since = event.number, kind is None, None
        seat.in_doubt = False
        if seat.snapshot:
            self._give_seat(place)
        else:
            yield entry

    def _is_asked_again(self, place: _Place) -> bool:
        """Whether an end or a problem may be of a seat as it was before it was removed; then it is
        given again, and what is told next counts."""
        seat = self._seats.get(place)
        if seat is None or not seat.in_doubt or seat.given_again:
            return False
        seat.given_again = True
        self._give_seat(place)
        return True

    def _problem(self, told: table_pb2.SeatProblem) -> Iterator[table_pb2.SeatProblem]:
        place, reason = (told.player_id, told.table_id), told.problem.reason
        loop, now = asyncio.get_running_loop(), time.monotonic()
        seat = self._seats.get(place)
        if told.decision_id:
            key = (place, told.decision_id)
            given = self._acts.get(key)
            if given is None:
                return
            # Its seat is added again meanwhile.
            passes = reason in _PASSING or (reason == "NOT_ADDED" and seat is not None)
            if passes and now < given.since + self._give_up_seconds:
                loop.call_later(AGAIN_SECONDS, self._give_act, key)
                return
            del self._acts[key]
        elif reason == "NOT_ADDED":
            return  # it was removed, and had ended already
        elif seat is not None:
            if reason not in _PASSING and self._is_asked_again(place):
                return
            seat.lost_since = now if seat.lost_since is None else seat.lost_since
            if reason in _PASSING and now < seat.lost_since + self._give_up_seconds:
                loop.call_later(AGAIN_SECONDS, self._give_seat, place)
                return
            self._forget(place)
        else:
            return
        yield told


async def _given(
    out: asyncio.Queue[table_pb2.AttendManyRequest | None],
) -> AsyncIterator[table_pb2.AttendManyRequest]:
    while (request := await out.get()) is not None:
        yield request
