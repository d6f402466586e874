"""Streams that go on after their connection broke, against a table that breaks them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from fangcheng.table.v1 import events_pb2, table_pb2, table_pb2_grpc
from fangcheng_client import attend, connect, explain, streams, watch
from fangcheng_client.streams import MissingEvent
from fangcheng_kit import Kit, Servicer, Settings, errors, principal, serving
from fangcheng_kit.tokens import mint_token
from tests.kit.echo import KEY

Step = int | Exception | str | events_pb2.TableEvent
"""What a table does next: send an event (of a number), fail, `beat`, or `hang`."""


class Scripted:
    """A service of which only some calls are played."""

    async def _other(self, request: Any, context: Any) -> Any:
        raise AssertionError("not called here")

    def __getattr__(self, name: str) -> Any:
        """The calls of the contract that are not played."""
        if name[0].isupper():
            return self._other
        raise AttributeError(name)


class Table(Scripted):
    """A table whose streams go as they are told, one list of steps for each that is opened."""

    def __init__(self, *scripts: list[Step]) -> None:
        self.scripts = list(scripts)
        self.asked: list[tuple[str, int, bytes]] = []
        self.reveals: list[table_pb2.Reveal] = []
        self.snapshots: list[bool] = []
        """Whether each stream was to begin with one."""

    async def Attend(self, request: Any, context: Any) -> AsyncIterator[Any]:
        assert principal.current().kind == "player"
        self.asked.append((request.table_id, request.from_number, request.entropy))
        self.snapshots.append(request.snapshot)
        async for kind, message in self._play():
            yield table_pb2.AttendResponse(**{kind: message})

    async def Watch(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self.asked.append((request.table_id, request.from_number, b""))
        self.reveals.append(request.reveal)
        self.snapshots.append(request.snapshot)
        async for kind, message in self._play():
            yield table_pb2.WatchResponse(**{kind: message})

    async def _play(self) -> AsyncIterator[tuple[str, Any]]:
        for step in self.scripts.pop(0):
            if isinstance(step, int):
                drawn = events_pb2.Drawn(seat=1)
                yield "event", events_pb2.TableEvent(number=step, drawn=drawn)
            elif isinstance(step, events_pb2.TableEvent):
                yield "event", step
            elif isinstance(step, Exception):
                raise step
            elif step == "beat":
                yield "heartbeat", events_pb2.Heartbeat(last_number=7)
            else:
                await asyncio.Event().wait()


AWAY = errors.Unavailable("DRAINING", "Elsewhere.")


@asynccontextmanager
async def connected(
    service: Scripted,
    add: Callable[[Any, Any], None] = table_pb2_grpc.add_TableServiceServicer_to_server,
    name: str = "table",
    subject: str = "player:ming",
    scopes: Sequence[str] = (),
    token: Callable[[], str] | None = None,
) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a service that goes as it is told."""
    added = add.__name__.removeprefix("add_").removesuffix("Servicer_to_server")

    @asynccontextmanager
    async def open_service(settings: Settings, kit: Kit) -> AsyncIterator[list[Servicer]]:
        yield [Servicer(add, service, f"fangcheng.{name}.v1.{added}")]

    settings = Settings(dev_key=KEY, drain_seconds=0.0, grace_seconds=1.0)
    async with (
        serving(name, settings, open_service) as server,
        connect(server.address, token=token or mint_token(KEY, subject, scopes)) as channel,
    ):
        yield channel


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(streams, "LONGEST_PAUSE_SECONDS", 0.05)


Open = Callable[..., AsyncIterator[events_pb2.TableEvent]]


@pytest.mark.parametrize("open_stream", [attend, watch])
async def test_a_broken_stream_goes_on_where_it_broke(open_stream: Open) -> None:
    table = Table([1, 2, AWAY], [3, AWAY], [AWAY], ["beat", 4])
    async with connected(table) as channel:
        numbers = [event.number async for event in open_stream(channel, "t1")]
    assert numbers == [1, 2, 3, 4]
    # gRPC itself repeats a stream that broke before its first message, with the same number.
    assert [number for _, number, _ in table.asked] == [0, 2, 3, 3]
    assert {name for name, _, _ in table.asked} == {"t1"}


REVEAL = table_pb2.Reveal(request_id="case-81/1", reason="why?", case_id="case-81")


@pytest.mark.parametrize("reason", ["REQUEST_ID_REUSED", "TABLE_CLOSED"])
async def test_a_hand_that_is_revealed_is_over_though_it_ended_during_a_break(reason: str) -> None:
    over = errors.FailedPrecondition(reason, "Another hand is played.")
    shown = [snapshot(40), snapshot(42)]
    table = Table([shown[0], 41, AWAY], [shown[1], AWAY], [over])
    async with connected(table) as channel:
        events = [event async for event in watch(channel, "t1", 7, reveal=REVEAL)]
    assert [event.number for event in events] == [40, 41, 42]
    assert table.reveals == [REVEAL] * 3
    assert [number for _, number, _ in table.asked] == [0, 41, 42]
    # One that was never begun is refused as it is.
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async with connected(Table([over])) as channel:
            await anext(watch(channel, "t1", reveal=REVEAL))
    assert explain(caught.value).reason == reason


async def test_a_stream_begins_after_the_number_it_is_given() -> None:
    table = Table([6, 7])
    async with connected(table) as channel:
        stream = attend(channel, "t1", 5, entropy=b"mine")
        assert [event.number async for event in stream] == [6, 7]
    assert table.asked == [("t1", 5, b"mine")]


async def test_what_comes_twice_is_given_once() -> None:
    async with connected(Table([1, 2, AWAY], [1, 2, 3])) as channel:
        assert [event.number async for event in attend(channel, "t1")] == [1, 2, 3]


async def test_a_reader_that_was_too_slow_resumes() -> None:
    slow = errors.ResourceExhausted("READER_TOO_SLOW", "Read faster.")
    async with connected(Table([1, slow], [2])) as channel:
        assert [event.number async for event in attend(channel, "t1")] == [1, 2]


@pytest.mark.parametrize(
    "error",
    [
        errors.Aborted("ATTENDED_ELSEWHERE", "A newer stream has the seat."),
        errors.NotFound("UNKNOWN_TABLE", "There is none."),
        errors.PermissionDenied("NOT_SEATED", "Not yours."),
        errors.ResourceExhausted("TOO_MANY", "Enough."),
    ],
)
async def test_what_does_not_pass_by_waiting_is_raised_at_once(
    error: errors.ServiceError,
) -> None:
    table = Table([1, error])
    async with connected(table) as channel:
        stream = attend(channel, "t1")
        assert (await anext(stream)).number == 1
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await anext(stream)
    assert explain(caught.value).reason == error.reason
    assert table.scripts == []


async def test_a_service_that_does_not_come_back_is_given_up() -> None:
    async with connect("127.0.0.1:1", token="t") as channel:
        stream = attend(channel, "t1", give_up_seconds=0.2)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await anext(stream)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_stream_that_falls_silent_is_opened_again() -> None:
    class Silent(Table):
        """Tells one event a stream, until the last."""

        async def Attend(self, request: Any, context: Any) -> AsyncIterator[Any]:
            following = request.from_number + 1
            # On a slow machine a stream may be given up before its event has come.
            self.scripts = [[following] if following == 3 else [following, "hang"]]
            async for message in super().Attend(request, context):
                yield message

    table = Silent()
    async with connected(table) as channel:
        stream = attend(channel, "t1", silence_seconds=0.3)
        assert [event.number async for event in stream] == [1, 2, 3]
    assert {number for _, number, _ in table.asked} == {0, 1, 2}


async def test_heartbeats_are_given_to_who_wants_them() -> None:
    heard: list[int] = []
    async with connected(Table(["beat", 1, "beat"])) as channel:
        stream = attend(channel, "t1", on_heartbeat=lambda beat: heard.append(beat.last_number))
        assert [event.number async for event in stream] == [1]
    assert heard == [7, 7]


async def test_a_gap_in_the_numbers_is_an_error() -> None:
    async with connected(Table([1, 3])) as channel:
        stream = attend(channel, "t1")
        assert (await anext(stream)).number == 1
        with pytest.raises(MissingEvent, match="3 came after 1"):
            await anext(stream)


def snapshot(number: int) -> events_pb2.TableEvent:
    return events_pb2.TableEvent(number=number, snapshot=events_pb2.Snapshot())


def unknown(number: int) -> events_pb2.TableEvent:
    """An event of a kind that came after this client."""
    event = events_pb2.TableEvent.FromString(b"\xfa\x3e\x00")  # field 1,007, empty
    assert event.ByteSize() == 3
    assert event.WhichOneof("kind") is None
    event.number = number
    return event


@pytest.mark.parametrize("open_stream", [attend, watch])
async def test_a_snapshot_stands_for_what_was_missed(open_stream: Open) -> None:
    table = Table([4, AWAY], [snapshot(90), 91])
    async with connected(table) as channel:
        events = [event async for event in open_stream(channel, "t1", 3)]
    assert [event.number for event in events] == [4, 90, 91]
    assert events[1].HasField("snapshot")


@pytest.mark.parametrize("open_stream", [attend, watch])
async def test_a_kind_of_event_that_is_not_known_is_survived_by_a_snapshot(
    open_stream: Open,
) -> None:
    """Unknown event kinds are survivable for old clients."""
    table = Table([1, unknown(2), 3], [snapshot(3), 4, AWAY], [5, unknown(6)], [snapshot(6), 7])
    async with connected(table) as channel:
        events = [event async for event in open_stream(channel, "t1")]
    assert [event.number for event in events] == [1, 3, 4, 5, 6, 7]
    assert [number for _, number, _ in table.asked] == [0, 2, 4, 6]
    assert table.snapshots == [False, True, False, True]


async def test_a_snapshot_that_leads_back_is_an_error() -> None:
    async with connected(Table([1, 2, snapshot(1)])) as channel:
        stream = attend(channel, "t1")
        assert [(await anext(stream)).number for _ in range(2)] == [1, 2]
        with pytest.raises(MissingEvent, match="snapshot of 1 came after 2"):
            await anext(stream)


@pytest.mark.parametrize("told_seconds", [None, 7.0])
async def test_a_stream_that_is_one_too_many_waits_for_as_long_as_it_was_told(
    monkeypatch: pytest.MonkeyPatch, told_seconds: float | None
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(streams.asyncio, "sleep", sleep)
    refusal = errors.ResourceExhausted("TOO_MANY_STREAMS", "no", retry_after_seconds=told_seconds)
    error = grpc.aio.AioRpcError(
        refusal.code,
        grpc.aio.Metadata(),
        grpc.aio.Metadata((errors.DETAILS_KEY, errors.details(refusal))),
        "no",
    )
    breaks = streams.Breaks(give_up_seconds=60)
    breaks.check(error)
    await breaks.pause()
    least = told_seconds or 0.0
    assert least < slept[0] <= least + streams.FIRST_PAUSE_SECONDS
