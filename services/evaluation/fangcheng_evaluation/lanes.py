"""CPU work beside the event loop, in lanes with a bounded queue each.

Single hands have a lane of their own, so that they never wait behind a thousand, and packed records
have one. A batch goes through its lane in chunks: between two of them others get their turn, and a
caller that has gone away (cancelled, or past its deadline) is noticed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from .metrics import LaneMetrics

T = TypeVar("T")

_SHORTEST_RETRY_SECONDS = 0.05
_LONGEST_RETRY_SECONDS = 5.0
NEWEST = 0.2
"""How much the newest measurement counts in an average."""


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
        self._held_back: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._seconds_per_hand = 0.0
        metrics.limit.set(most_waiting)
        metrics.threads.inc(threads)
        metrics.waiting.set_function(lambda: self._waiting)

    def close(self) -> None:
        """Lets what is at work finish, and drops the rest."""
        self._executor.shutdown(cancel_futures=True)

    @asynccontextmanager
    async def admitted(self, hands: int, *, held_back: bool = False) -> AsyncIterator[None]:
        """Within it, these hands count as waiting. Raises Busy where there are too many.

        A call that finds nobody waiting is always let in, however large it is. One that may be
        `held_back` is not refused but waits until there is room, before all others.
        """
        if not self._held_back and self._has_room(hands):
            self._count(hands)
        elif held_back:
            await self._room(hands)
        else:
            raise self.refusal(self._retry_after_seconds())
        try:
            yield
        finally:
            self._count(-hands)

    def refusal(self, retry_after_seconds: float) -> Busy:
        """What to raise for a call that is not let in, and counted as such."""
        self._metrics.refused.inc()
        return Busy(retry_after_seconds)

    async def do(self, hands: int, work: Callable[[], T]) -> T:
        """Has a chunk of admitted hands done in a thread.

        Cancelled, it leaves the thread to finish this chunk; the result is lost.
        """
        asked = time.perf_counter()

        def timed() -> tuple[T, float, float]:
            begun = time.perf_counter()
            with self._metrics.busy.track_inprogress():
                return work(), begun - asked, time.perf_counter() - begun

        result, waited_seconds, took_seconds = await asyncio.get_running_loop().run_in_executor(
            self._executor, timed
        )
        self._metrics.queued.observe(waited_seconds)
        self._metrics.worked.observe(took_seconds)
        self._metrics.chunk_hands.observe(hands)
        newest = took_seconds / hands
        self._seconds_per_hand += NEWEST * (newest - self._seconds_per_hand)
        return result

    async def _room(self, hands: int) -> None:
        """Returns when there is room, with the hands counted."""
        let_in = asyncio.get_running_loop().create_future()
        self._held_back.append((hands, let_in))
        try:
            await let_in
        except asyncio.CancelledError:
            # Cancelled while it waits, or when it has been let in and does not know yet.
            self._count(0 if let_in.cancelled() else -hands)
            raise

    def _has_room(self, hands: int) -> bool:
        return not self._waiting or self._waiting + hands <= self._most_waiting

    def _count(self, hands: int) -> None:
        self._waiting += hands
        while self._held_back:
            held, let_in = self._held_back[0]
            if not let_in.cancelled():
                if not self._has_room(held):
                    break
                self._waiting += held
                let_in.set_result(None)
            self._held_back.popleft()

    def _retry_after_seconds(self) -> float:
        """When half of what waits now should be done."""
        seconds = self._waiting / 2 * self._seconds_per_hand / self._threads
        return min(max(seconds, _SHORTEST_RETRY_SECONDS), _LONGEST_RETRY_SECONDS)
