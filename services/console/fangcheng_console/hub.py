"""One picture for many viewers: it is made once for all of them, and who is slow skips some.

    feed = Feed()
    feed.publish(lambda: {"tables": 12})     # whenever something has changed, however often
    return feed.stream(request)              # in a handler: a stream of server-sent events

A feed keeps the newest picture and a tick, no queue for anybody: a viewer that reads slowly is sent
what is newest when it reads again. What was published is made and serialised when a tick is due, at
once after a quiet time and then every `gather_seconds` at most, and only while somebody looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterator
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from typing import Any

import structlog
from pydantic_core import to_json
from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

GATHER_SECONDS = 0.1
LINGER_SECONDS = 5.0
"""A page that is opened again finds what it left running for so long."""
SLOWEST_SECONDS = 30.0
"""A viewer that takes nothing for so long has gone; its browser comes back if it has not."""
PING_SECONDS = 15

Picture = dict[str, Any]
"""What viewers are sent, as JSON; the feed adds its `version`."""


class Feed:
    """The newest picture of something, and who looks at it."""

    def __init__(
        self,
        source: Callable[[Feed], Coroutine[Any, Any, None]] | None = None,
        *,
        gather_seconds: float = GATHER_SECONDS,
        linger_seconds: float = LINGER_SECONDS,
        viewing: Callable[[], AbstractContextManager[None]] = nullcontext,
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        """`source`: publishes to the feed; begun by the first viewer, and cancelled
        `linger_seconds` after the last one, when `on_idle` is told too. `viewing`: entered for
        each viewer, for who counts them."""
        self.version = 0
        """Counts what was sent; viewers miss some of them."""
        self.viewers = 0
        self._source = source
        self._gather_seconds = gather_seconds
        self._linger_seconds = linger_seconds
        self._viewing = viewing
        self._on_idle = on_idle
        self._make: Callable[[], Picture] | None = None
        self._message = b""
        self._ticked = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._running: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._ended = False

    def publish(self, make: Callable[[], Picture]) -> None:
        """Something has changed; `make` gives the picture as it is when it is called."""
        self._make = make
        if self.viewers:
            self._schedule()

    def stream(self, request: Request) -> EventSourceResponse:
        """The pictures from now on as server-sent events, the newest first of all."""
        return _Stream(self)

    def end(self) -> None:
        """End every stream and the source; their viewers may come back."""
        self._ended = True
        self._stop()
        self._wake()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Somebody looks."""
        self.viewers += 1
        self._ended = False
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._source is not None and self._running is None:
            self._running = asyncio.create_task(self._run(self._source))
        # What was made before is old: it tells what time it was then.
        if self._make is not None:
            self._schedule()
        try:
            with self._viewing():
                yield
        finally:
            self.viewers -= 1
            self.linger()

    def linger(self) -> None:
        """Stop when nobody has looked for a while."""
        if not self.viewers and self._idle is None:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._linger_seconds, self._stop)

    async def messages(self, seen: int) -> AsyncIterator[bytes]:
        """What a viewer is sent that knows the version `seen`; to be read while `watched`."""
        while not self._ended:
            if self.version == seen:
                await self._news.wait()
                continue
            seen = self.version
            yield self._message

    async def _run(self, source: Callable[[Feed], Coroutine[Any, Any, None]]) -> None:
        try:
            await source(self)
        except Exception:
            structlog.get_logger().exception("a feed has failed")
            self._ended = True
            self._wake()
        finally:
            if self._running is asyncio.current_task():
                self._running = None

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running is not None:
            self._running.cancel()
            self._running = None
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._on_idle()

    def _schedule(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            due = max(self._ticked + self._gather_seconds, loop.time())
            self._timer = loop.call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._ticked = asyncio.get_running_loop().time()
        if self._make is None or not self.viewers:
            return
        self.version += 1
        picture = to_json({"version": self.version, **self._make()})
        self._message = b"id: %d\ndata: %b\n\n" % (self.version, picture)
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class _Stream(EventSourceResponse):
    """A viewer's stream, counted from its beginning to its end however it ends."""

    def __init__(self, feed: Feed) -> None:
        super().__init__(
            feed.messages(feed.version), ping=PING_SECONDS, send_timeout=SLOWEST_SECONDS
        )
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._feed.watched(), suppress(SendTimeoutError):
            await super().__call__(scope, receive, send)


class Feeds:
    """The feeds that somebody looks at, by what they show; forgotten when nobody does any more."""

    def __init__(self) -> None:
        self._feeds: dict[Hashable, Feed] = {}

    def get(
        self, key: Hashable, source: Callable[[Feed], Coroutine[Any, Any, None]], **more: Any
    ) -> Feed:
        """The feed of a key, made where there is none; `more`: as of `Feed`."""
        known = self._feeds.get(key)
        if known is not None:
            return known

        def forget() -> None:
            # Another may stand there by then, made after this one had ended.
            if self._feeds.get(key) is feed:
                del self._feeds[key]

        feed = self._feeds[key] = Feed(source, on_idle=forget, **more)
        feed.linger()
        return feed

    def __len__(self) -> int:
        return len(self._feeds)

    @asynccontextmanager
    async def running(self, draining: asyncio.Event) -> AsyncIterator[None]:
        """Ends all of them at last, and as soon as the process is told to stop."""
        stopping = asyncio.create_task(self._stop_with(draining))
        try:
            yield
        finally:
            stopping.cancel()
            self._end_all()

    async def _stop_with(self, draining: asyncio.Event) -> None:
        await draining.wait()
        self._end_all()

    def _end_all(self) -> None:
        for feed in list(self._feeds.values()):
            feed.end()
