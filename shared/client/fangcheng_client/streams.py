"""Streams that go on after their connection broke.

Every viewer of a table has event numbers of its own, 1, 2, 3, ... without a gap. Whoever knows the
last number received can go on from there, on any replica. A stream that asks for what is no longer
kept begins with a snapshot, and so does one that has met a kind of event which this client is too
old to know: it comes as an event like any other, with everything up to its number in it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection
from contextlib import aclosing
from typing import Any, Protocol, TypeVar, cast

import grpc
import grpc.aio

from fangcheng.table.v1 import events_pb2, table_pb2, table_pb2_grpc
from fangcheng_client.problems import explain

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 3.0

_OVER = frozenset({"REQUEST_ID_REUSED", "TABLE_CLOSED"})


class _Message(Protocol):
    """What the messages of Attend and Watch have in common."""

    def WhichOneof(self, oneof_group: Any, /) -> Any: ...  # noqa: N802 (protobuf's own name)

    @property
    def event(self) -> events_pb2.TableEvent: ...


M = TypeVar("M", bound=_Message)

OnBreak = Callable[[grpc.aio.AioRpcError | TimeoutError], None]
"""Told why a connection broke that is opened again."""


class MissingEvent(RuntimeError):
    """The service left out an event; it promises not to."""


def attend(
    channel: grpc.aio.Channel,
    table_id: str,
    from_number: int = 0,
    *,
    entropy: bytes = b"",
    muted: Collection[int] = (),
    elsewhere: grpc.aio.Channel | None = None,
    give_up_seconds: float = 60.0,
    silence_seconds: float = 60.0,
    on_heartbeat: Callable[[events_pb2.Heartbeat], None] | None = None,
    on_talk: Callable[[table_pb2.Talk], None] | None = None,
    on_break: OnBreak | None = None,
) -> AsyncIterator[events_pb2.TableEvent]:
    """The events of the caller's seat after ``from_number``, each once and in order.

    A snapshot among them stands for all up to its number (``TableView`` takes both).

    Ends when the table has closed. A broken connection is resumed from the last event; the error is
    raised when that did not work for ``give_up_seconds``, and at once for what does not pass by
    waiting, such as ABORTED (ATTENDED_ELSEWHERE: a newer stream has taken the seat over). A stream
    that says nothing for ``silence_seconds``, not even a heartbeat, counts as broken.
    ``elsewhere``: a channel to all replicas, used from the first break on; ``channel`` may then be
    one to the table's owner alone, which will not come back where another has taken the table over.
    ``entropy``: the seat's own share in the shuffle. ``on_talk``: told what the seats say, except
    those that are ``muted``. ``on_break``: told why a connection broke that is opened again.
    """
    next_stub = _stubs(channel, elsewhere)

    def open_stream(
        number: int, snapshot: bool
    ) -> grpc.aio.UnaryStreamCall[Any, table_pb2.AttendResponse]:
        request = table_pb2.AttendRequest(
            table_id=table_id,
            from_number=number,
            entropy=entropy,
            snapshot=snapshot,
            muted=muted,
        )
        stream = next_stub().Attend(request)
        return cast("grpc.aio.UnaryStreamCall[Any, table_pb2.AttendResponse]", stream)

    return resumed(
        open_stream, from_number, give_up_seconds, silence_seconds, on_heartbeat, on_talk, on_break
    )


def watch(
    channel: grpc.aio.Channel,
    table_id: str,
    from_number: int = 0,
    *,
    reveal: table_pb2.Reveal | None = None,
    elsewhere: grpc.aio.Channel | None = None,
    give_up_seconds: float = 60.0,
    silence_seconds: float = 60.0,
    on_heartbeat: Callable[[events_pb2.Heartbeat], None] | None = None,
    on_talk: Callable[[table_pb2.Talk], None] | None = None,
    on_break: OnBreak | None = None,
) -> AsyncIterator[events_pb2.TableEvent]:
    """The spectators' events of a table after ``from_number``; otherwise as ``attend``.

    ``reveal``: an operator has all tiles shown of the hand in play, or else of the next one, with
    what the seats are asked; ``from_number`` is not looked at, the stream begins with a snapshot
    and ends with that hand. It is noted once, however often the connection breaks.
    """
    next_stub = _stubs(channel, elsewhere)

    def open_stream(
        number: int, snapshot: bool
    ) -> grpc.aio.UnaryStreamCall[Any, table_pb2.WatchResponse]:
        request = table_pb2.WatchRequest(table_id=table_id, from_number=number, snapshot=snapshot)
        if reveal is not None:
            request.reveal.CopyFrom(reveal)
        stream = next_stub().Watch(request)
        return cast("grpc.aio.UnaryStreamCall[Any, table_pb2.WatchResponse]", stream)

    if reveal is not None:
        from_number = 0
    events = resumed(
        open_stream, from_number, give_up_seconds, silence_seconds, on_heartbeat, on_talk, on_break
    )
    return events if reveal is None else _of_one_hand(events)


async def _of_one_hand(
    events: AsyncGenerator[events_pb2.TableEvent, None],
) -> AsyncGenerator[events_pb2.TableEvent, None]:
    """The events of a hand that is revealed, until it is over: be it while nothing is connected."""
    has_begun = False
    async with aclosing(events):
        try:
            async for event in events:
                has_begun = True
                yield event
        except grpc.aio.AioRpcError as error:
            # The same request was taken once: it was for the hand before this one, or for the last.
            if not (has_begun and explain(error).reason in _OVER):
                raise


def _stubs(
    channel: grpc.aio.Channel, elsewhere: grpc.aio.Channel | None
) -> Callable[[], table_pb2_grpc.TableServiceStub]:
    """Gives a stub for each opening of a stream: of the first channel, then of the other."""
    channels = iter([channel] if elsewhere is not None else [])
    return lambda: table_pb2_grpc.TableServiceStub(next(channels, elsewhere or channel))


async def resumed(
    open_stream: Callable[[int, bool], grpc.aio.UnaryStreamCall[Any, M]],
    from_number: int,
    give_up_seconds: float,
    silence_seconds: float,
    on_heartbeat: Callable[[events_pb2.Heartbeat], None] | None = None,
    on_talk: Callable[[table_pb2.Talk], None] | None = None,
    on_break: OnBreak | None = None,
) -> AsyncGenerator[events_pb2.TableEvent, None]:
    """The events of a stream that is opened again and again.

    ``open_stream(last number received, whether to begin with a snapshot)`` opens it.

    Raises ``AioRpcError``, ``TimeoutError`` (the stream fell silent) and ``MissingEvent``.
    """
    last, snapshot = from_number, False
    breaks = Breaks(give_up_seconds)
    while True:
        call = open_stream(last, snapshot)
        try:
            while True:
                async with asyncio.timeout(silence_seconds):
                    message = await call.read()
                if message is grpc.aio.EOF:
                    return
                breaks.alive()
                kind = cast(M, message).WhichOneof("message")
                if kind == "heartbeat":
                    if on_heartbeat is not None:
                        on_heartbeat(cast(Any, message).heartbeat)
                    continue
                if kind == "talk":
                    if on_talk is not None:
                        on_talk(cast(Any, message).talk)
                    continue
                event = cast(M, message).event
                what = event.WhichOneof("kind")
                if what == "snapshot":
                    # It may tell what is known, where it was asked for; it never leads back.
                    if event.number < last:
                        raise MissingEvent(f"a snapshot of {event.number} came after {last}")
                elif event.number <= last:
                    continue
                elif event.number != last + 1:
                    raise MissingEvent(f"event {event.number} came after {last}")
                last, snapshot = event.number, what is None
                if snapshot:
                    break
                yield event
            continue
        except (grpc.aio.AioRpcError, TimeoutError) as error:
            breaks.check(error)
            if on_break is not None:
                on_break(error)
        finally:
            call.cancel()
        await breaks.pause()


async def reopened(
    open_stream: Callable[[], Any],
    give_up_seconds: float,
    silence_seconds: float | None = None,
    on_break: OnBreak | None = None,
) -> AsyncGenerator[Any, None]:
    """The messages of a stream that begins anew whenever it is opened; None before each beginning.

    Ends when the stream does. ``silence_seconds``: None: it may be silent for as long as it likes.
    Raises ``AioRpcError`` and ``TimeoutError`` as ``resumed``.
    """
    breaks = Breaks(give_up_seconds)
    while True:
        yield None
        call = open_stream()
        try:
            while True:
                async with asyncio.timeout(silence_seconds):
                    message = await call.read()
                if message is grpc.aio.EOF:
                    return
                breaks.alive()
                yield message
        except (grpc.aio.AioRpcError, TimeoutError) as error:
            breaks.check(error)
            if on_break is not None:
                on_break(error)
        finally:
            call.cancel()
        await breaks.pause()


class Breaks:
    """Says after each break of a stream whether it is opened again, and when."""

    def __init__(self, give_up_seconds: float) -> None:
        """``give_up_seconds``: how long nothing may have come."""
        self._give_up_seconds = give_up_seconds
        self.alive()

    def alive(self) -> None:
        """A message has come."""
        self._alive = time.monotonic()
        self._told_seconds = 0.0
        self._pause_seconds = FIRST_PAUSE_SECONDS

    def check(self, error: grpc.aio.AioRpcError | TimeoutError) -> None:
        """Raise what does not pass by waiting, or has been waited for long enough."""
        passes, self._told_seconds = True, 0.0
        if not isinstance(error, TimeoutError):
            problem = explain(error)
            passes, self._told_seconds = problem.passes, problem.retry_after_seconds or 0.0
        if not passes or time.monotonic() - self._alive > self._give_up_seconds:
            raise error

    async def pause(self) -> None:
        """Wait, longer each time, and not less than the service has told; spread out, so that the
        viewers of a lost replica do not all come back at once.
        """
        spread = random.uniform(0.5, 1.0)  # noqa: S311 # nosec B311 # no secret
        seconds = self._told_seconds + self._pause_seconds * spread
        self._pause_seconds = min(2 * self._pause_seconds, LONGEST_PAUSE_SECONDS)
        await asyncio.sleep(seconds)
