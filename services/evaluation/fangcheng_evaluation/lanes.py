"""CPU work beside the event loop, in lanes with a bounded queue each.

Single hands have a lane of their own, so that they never wait behind a thousand. A batch goes
through its lane in chunks: between two of them others get their turn, and a caller that has gone
away (cancelled, or past its deadline) is noticed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from .metrics import LaneMetrics

T = TypeVar("T")

_SHORTEST_RETRY_SECONDS = 0.05
_LONGEST_RETRY_SECONDS = 5.0
# How much the newest measurement counts in the average.
_NEWEST = 0.2


class Busy(Exception):
    """The queue is full; try again after this."""

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__(f"try again in {retry_after_seconds:.2f} s")
        self.retry_after_seconds = retry_after_seconds


class Lane:
    """Threads that work off a queue of hands."""

    def __init__(self, name: str, threads: int, most_waiting: int, metrics: LaneMetrics) -> None:
        self._threads = threads
        self._most_waiting = most_waiting
        self._metrics = metrics
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"evaluation-{name}")
        self._waiting = 0
        self._seconds_per_hand = 0.0

    def close(self) -> None:
        """Lets what is at work finish, and drops the rest."""
        self._executor.shutdown(cancel_futures=True)

    @contextmanager
    def admitted(self, hands: int) -> Iterator[None]:
        """Within it, these hands count as waiting. Raises Busy where there are too many.

        A call that finds nobody waiting is always let in, however large it is.
        """
        if self._waiting and self._waiting + hands > self._most_waiting:
            self._metrics.refused.inc()
            raise Busy(self._retry_after_seconds())
        self._count(hands)
        try:
            yield
        finally:
            self._count(-hands)

    async def do(self, hands: int, work: Callable[[], T]) -> T:
        """Has a chunk of admitted hands done in a thread.

        Cancelled, it leaves the thread to finish this chunk; the result is lost.
        """
        asked = time.perf_counter()

        def timed() -> tuple[T, float, float]:
            begun = time.perf_counter()
            return work(), begun - asked, time.perf_counter() - begun

        result, waited_seconds, took_seconds = await asyncio.get_running_loop().run_in_executor(
            self._executor, timed
        )
        self._metrics.queued.observe(waited_seconds)
        self._metrics.worked.observe(took_seconds)
        newest = took_seconds / hands
        self._seconds_per_hand += _NEWEST * (newest - self._seconds_per_hand)
        return result

    def _count(self, hands: int) -> None:
        self._waiting += hands
        self._metrics.waiting.set(self._waiting)

    def _retry_after_seconds(self) -> float:
        """When half of what waits now should be done."""
        seconds = self._waiting / 2 * self._seconds_per_hand / self._threads
        return min(max(seconds, _SHORTEST_RETRY_SECONDS), _LONGEST_RETRY_SECONDS)
