"""What waits at the same time is done in one go.

SQLite commits a hundred postings as fast as one; an evaluator answers a hundred questions in one
call. A ``Batcher`` collects what is submitted while the event loop turns, or while the batch before
is at work, and hands it over as one list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from fangcheng_kit.tracing import OFF, Trace, Tracing, distinct, first, here, within

Item = TypeVar("Item")
Result = TypeVar("Result")

Work = Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]]
"""Takes a batch, answers a result or an exception for each item, in order."""


class Batcher(Generic[Item, Result]):
    """Collects items that are submitted at the same time into one call of ``work``.

    At most ``most_running`` calls are at work at once: 1 for a writer that must be alone, more
    where nobody should wait for the batch before. A batch has at most ``most_items`` items. With
    ``spread`` what waits is shared out among the calls that may begin: where a call has two stages,
    one batch is in the first while the other is in the second. Where items come one by one but
    thick, ``gap_seconds`` makes batches of them: one that follows a batch of several begins no
    sooner after it than that.

    Whoever waits may be cancelled: its item is done all the same, so that a client that goes away
    does not tear a commit apart. An exception of ``work`` itself fails every item of its batch.

    A batch of what several traces have brought about is a span of the first, ``span``, with links
    to the others.
    """

    def __init__(
        self,
        work: Work[Item, Result],
        *,
        most_items: int = 1_000,
        most_running: int = 1,
        spread: bool = False,
        gap_seconds: float = 0.0,
        tracing: Tracing = OFF,
        span: str = "batch",
    ) -> None:
        self._work = work
        self._most_items = most_items
        self._most_running = most_running
        self._spread = spread
        self._gap_seconds = gap_seconds
        self._tracing = tracing
        self._span = span
        self._not_before = 0.0
        self._waiting: list[tuple[Item, asyncio.Future[Result], Trace | None]] = []
        self._running: set[asyncio.Task[None]] = set()
        self._scheduled = False
        self._closed = False

    async def submit(self, item: Item) -> Result:
        """Have an item done in the next batch; raises the exception that it was answered with."""
        if self._closed:
            raise RuntimeError("the batcher is closed")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((item, answer, here()))
        self._schedule(loop)
        return await answer

    async def close(self) -> None:
        """Take nothing more, and wait for everything that was submitted."""
        self._closed = True
        while self._scheduled or self._waiting or self._running:
            if self._running:
                await asyncio.wait(self._running)
            else:
                await asyncio.sleep(0)

    async def __aenter__(self) -> Batcher[Item, Result]:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        # After everything else of this turn of the loop, so that all of it shares a batch.
        if self._waiting and not self._scheduled and len(self._running) < self._most_running:
            self._scheduled = True
            if self._not_before > loop.time():
                loop.call_at(self._not_before, self._start, loop)
            else:
                loop.call_soon(self._start, loop)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = False
        count = self._most_items
        if self._spread:
            free = self._most_running - len(self._running)
            count = min(count, -(-len(self._waiting) // free))
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        self._not_before = loop.time() + self._gap_seconds if len(batch) > 1 else 0.0
        task = loop.create_task(self._do(batch))
        self._running.add(task)
        task.add_done_callback(self._done)
        self._schedule(loop)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._schedule(task.get_loop())

    async def _do(self, batch: list[tuple[Item, asyncio.Future[Result], Trace | None]]) -> None:
        try:
            with self._within([trace for _, _, trace in batch]):
                results = await self._work([item for item, _, _ in batch])
            if len(results) != len(batch):
                raise RuntimeError(f"{len(batch)} items had {len(results)} results")
        except asyncio.CancelledError:
            for _, answer, _ in batch:
                answer.cancel()
            raise
        except Exception as error:
            results = [error] * len(batch)
        for (_, answer, _), result in zip(batch, results, strict=True):
            if answer.done():  # whoever asked was cancelled
                continue
            if isinstance(result, Exception):
                answer.set_exception(result)
            else:
                answer.set_result(result)

    def _within(self, traces: Sequence[Trace | None]) -> AbstractContextManager[object]:
        if self._tracing.is_on and len(distinct(traces)) > 1:
            return self._tracing.span(self._span, traces, items=len(traces))
        return within(first(traces))


def in_thread(
    work: Callable[[Sequence[Item]], Sequence[Result | Exception]],
    executor: Executor | None = None,
) -> Work[Item, Result]:
    """Make blocking ``work`` fit for a ``Batcher``: it runs in a thread of ``executor``."""

    async def run(items: Sequence[Item]) -> Sequence[Result | Exception]:
        return await asyncio.get_running_loop().run_in_executor(executor, work, items)

    return run
