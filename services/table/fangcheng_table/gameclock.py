"""The clock by which tables are played: time in which the process did not run has not passed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_TICKS_A_GAP = 6


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class GameClock:
    """Milliseconds that count for players.

    It is looked at often (`tick` sees to that), so that a long time between two looks means that
    the process was stopped, its machine was, or its loop hung. Players could do nothing meanwhile;
    the time is left out, whoever looks first.
    """

    def __init__(
        self,
        longest_gap_ms: int,
        on_gap: Callable[[int], None] = lambda lost_ms: None,
        source: Callable[[], int] = _monotonic_ms,
    ) -> None:
        """`longest_gap_ms`: between two looks; what is longer did not count. `on_gap`: told so."""
        self._longest_gap_ms = longest_gap_ms
        self._on_gap = on_gap
        self._source = source
        self._last_ms = source()
        self._lost_ms = 0

    def now_ms(self) -> int:
        """The time; never falls."""
        real_ms = self._source()
        gap_ms = real_ms - self._last_ms
        self._last_ms = real_ms
        if gap_ms > self._longest_gap_ms:
            self._lost_ms += gap_ms
            self._on_gap(gap_ms)
        return real_ms - self._lost_ms

    async def tick(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self.now_ms()
            await asyncio.sleep(self._longest_gap_ms / _TICKS_A_GAP / 1_000)
