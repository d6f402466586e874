"""What the viewers of a table have seen, and the readers that follow it.

A reader is a cursor over its viewer's events, woken when there are more: however slow it is,
nothing queues up for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_kit.errors import ServiceError

from .errors import InvalidNumber, ReaderTooSlow
from .events import TableClosed
from .store import Record
from .views import VIEWERS, Projector


class Reader:
    """One viewer's place in a feed."""

    def __init__(self, feed: Feed, viewer: int, number: int, on_news: Callable[[], None]) -> None:
        """`number`: the last event that is known; raises `InvalidNumber` if there is none such."""
        if number > feed.last(viewer):
            raise InvalidNumber(number, feed.last(viewer))
        self.viewer = viewer
        self.number = number
        self.on_news = on_news
        self._feed = feed
        # What had happened before it came does not count as its slowness.
        self._from = feed.last(viewer)
        self._ended: ServiceError | None = None

    def end(self, why: ServiceError) -> None:
        """Let the reader go no further."""
        self._ended = why
        self.on_news()

    def next(self, most_behind: int) -> events_pb2.TableEvent | None:
        """The next event, None where there is none yet.

        Raises what it was ended with, and `ReaderTooSlow` where more than `most_behind` events have
        come since it began that it has not read.
        """
        if self._ended is not None:
            raise self._ended
        last = self._feed.last(self.viewer)
        behind = last - max(self.number, self._from)
        if behind > most_behind:
            raise ReaderTooSlow(behind)
        if self.number >= last:
            return None
        self.number += 1
        return self._feed.event(self.viewer, self.number)

    @property
    def at_end(self) -> bool:
        """The table has closed and every event was read."""
        return self._feed.finished and self.number >= self._feed.last(self.viewer)


class Feed:
    """The events of all viewers of a table."""

    def __init__(self) -> None:
        self.finished = False
        """The table has closed: no more events come."""
        self.ms_left: Callable[[int, str], int] = lambda seat, decision_id: 0
        """How long a seat's prompt is still open."""
        self._projector = Projector()
        # Without their numbers, so that all who see the same share one copy.
        self._bodies: dict[int, list[bytes]] = {viewer: [] for viewer in VIEWERS}
        self._readers: set[Reader] = set()

    def publish(self, records: Iterable[Record]) -> None:
        """Show what was stored."""
        for record in records:
            for viewers, event in self._projector.see(record):
                body = event.SerializeToString()
                for viewer in viewers:
                    self._bodies[viewer].append(body)
            self.finished |= isinstance(record.event, TableClosed)
        for reader in self._readers:
            reader.on_news()

    def last(self, viewer: int) -> int:
        """Number of a viewer's newest event."""
        return len(self._bodies[viewer])

    def event(self, viewer: int, number: int) -> events_pb2.TableEvent:
        """An event of a viewer, as it is to be sent now."""
        event = events_pb2.TableEvent.FromString(self._bodies[viewer][number - 1])
        event.number = number
        if event.HasField("prompt"):
            event.prompt.ms_left = self.ms_left(viewer, event.prompt.decision_id)
        return event

    def has_answered(self, seat: int, decision_id: str, action: state_pb2.Action) -> bool:
        """Whether a seat has given this answer to this prompt, however long ago."""
        wanted = decision_id.encode()
        for body in reversed(self._bodies[seat]):
            if wanted not in body:
                continue
            closed = events_pb2.TableEvent.FromString(body).prompt_closed
            if closed.decision_id == decision_id:
                return closed.why == "answered" and closed.action == action
        return False

    def open(self, viewer: int, number: int, on_news: Callable[[], None]) -> Reader:
        """A reader that knows the events up to `number` already; `on_news`: there are more."""
        reader = Reader(self, viewer, number, on_news)
        self._readers.add(reader)
        return reader

    def end(self, why: ServiceError) -> None:
        """End all readers."""
        for reader in self._readers:
            reader.end(why)

    def close(self, reader: Reader) -> None:
        """Forget a reader."""
        self._readers.discard(reader)


class Waiter:
    """Waits for the news of one or more readers, or until a stream has been silent for long.

    Readers are also woken by what they may not see. So the silence is counted from the last message
    and by nothing else: the time of a heartbeat must not tell that something hidden has happened.
    """

    def __init__(self, silence_seconds: float) -> None:
        """`silence_seconds`: how long a stream may be without a message."""
        self._silence_seconds = silence_seconds
        self._news = asyncio.Event()
        self.spoke()

    def spoke(self) -> None:
        """A message was sent."""
        self._silent_until = asyncio.get_running_loop().time() + self._silence_seconds

    def wake(self) -> None:
        """There is something to do."""
        self._news.set()

    async def wait(self) -> bool:
        """Wait for news, until the silence is over; whether there are any."""
        try:
            async with asyncio.timeout_at(self._silent_until):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True
