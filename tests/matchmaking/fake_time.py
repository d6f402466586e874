"""A loop whose time a test need not wait for, and channels that need no network.

`FakeTimeLoop` goes on to the next timer as soon as nothing else is to be done: hours of races take
as long as their work. gRPC has threads and a clock of its own, so that in such a loop a `Direct`
channel takes its place: the partner's servicer is called at once, but for pauses and losses.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import grpc.aio

from fangcheng_kit.errors import ServiceError, details

SLOWEST_SECONDS = 0.05
LOST = 0.03
"""The share of requests that are lost on their way; as many answers are."""


class FakeTimeLoop(asyncio.SelectorEventLoop):
    """Time begins at 1,000 s, and passes while nothing is ready and no thread is at work."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.is_real = False
        self.at_work = 0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return int(self.now * 1_000)

    @contextmanager
    def in_real_time(self) -> Iterator[None]:
        """Here time stands, and whoever waits for a network really waits."""
        self.is_real = True
        try:
            yield
        finally:
            self.is_real = False

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        self.at_work += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._rests)
        return future

    def _rests(self, future: Any) -> None:
        self.at_work -= 1


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: FakeTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout <= 0 or self._loop.is_real:
            return super().select(timeout)
        if self._loop.at_work:
            return super().select()
        self._loop.now += timeout
        return super().select(0)


class Direct:
    """A channel to a servicer in this loop. The network is slow by chance, and loses by chance."""

    def __init__(self, servicer: Any, chance: random.Random) -> None:
        self._servicer = servicer
        self._chance = chance

    def unary_unary(self, path: str, *_: Any, **__: Any) -> Callable[..., Any]:
        name = path.rpartition("/")[2]

        async def call(request: Any, **_: Any) -> Any:
            await self._travel()
            try:
                answer = await getattr(self._servicer, name)(request, _Context)
            except ServiceError as error:
                raise _failed(error.code, details(error)) from None
            sent = type(answer)()
            sent.CopyFrom(answer)
            await self._travel()
            return sent

        return call

    def unary_stream(self, path: str, *_: Any, **__: Any) -> Callable[..., AsyncIterator[Any]]:
        name = path.rpartition("/")[2]

        async def call(request: Any, **_: Any) -> AsyncIterator[Any]:
            await self._travel()
            async for answer in getattr(self._servicer, name)(request, _Context):
                yield answer
                await self._travel()

        return call

    def stream_stream(self, path: str, *_: Any, **__: Any) -> None:
        """Matchmaking has no such call."""

    async def _travel(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, SLOWEST_SECONDS))
        if self._chance.random() < LOST:
            raise _failed(grpc.StatusCode.UNAVAILABLE)


class _Context:
    @staticmethod
    async def abort(code: grpc.StatusCode, message: str, trailing: Any) -> None:
        raise _failed(code, trailing[0][1])


def _failed(code: grpc.StatusCode, status: bytes = b"") -> grpc.aio.AioRpcError:
    trailing = grpc.aio.Metadata(("grpc-status-details-bin", status))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing)
