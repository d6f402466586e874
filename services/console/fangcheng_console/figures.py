"""The suite's figures of the last hour, for the charts of the lobby."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from .backend import SERVICES
from .scrape import SCRAPE_SECONDS, Process, Scraper, added, quantile, total

KEPT_SECONDS = 60 * 60
RATE_SECONDS = 60.0
WAIT_SECONDS = 5 * 60.0
"""Few players are seated in a minute; their waits are told over this."""

FIGURES = (
    "tables",
    "hands_per_minute",
    "wait_p50_seconds",
    "wait_p95_seconds",
    "evaluator_load",
    "imbalance",
)
"""The figures of a point, after its time; each is `None` where nobody tells it.

Tables that are live; hands that end a minute; how long players wait for a seat, half of them and
19 of 20; the share of its threads' time that the busiest evaluator works, 0 to 1; the largest sum
of a currency's accounts, which is 0 unless something is wrong.
"""

Point = tuple[float | None, ...]


class Figures:
    """Points of the last hour, one for each round of the scraper."""

    def __init__(self, scraper: Scraper, live_tables: Callable[[], int | None]) -> None:
        """`live_tables`: how many there are; `None` where nobody tells."""
        self.points: deque[Point] = deque(maxlen=int(KEPT_SECONDS / SCRAPE_SECONDS))
        """Unix seconds, then `FIGURES`."""
        self._scraper = scraper
        self._live_tables = live_tables

    def note(self) -> None:
        """Add a point for now."""
        of = self._scraper.of
        hands = total(one.rate("fangcheng_table_hands_total", RATE_SECONDS) for one in of("table"))
        waited = "fangcheng_matchmaking_wait_seconds_bucket"
        waits = added(one.buckets(waited, WAIT_SECONDS) for one in of("matchmaking"))
        loads = [load for process in of("evaluation") if (load := load_of(process)) is not None]
        sums = [
            abs(amount)
            for process in of("wallet")
            for amount in process.series("fangcheng_wallet_ledger_imbalance").values()
        ]
        values = (
            self._live_tables(),
            None if hands is None else hands * 60,
            quantile(0.5, waits),
            quantile(0.95, waits),
            max(loads, default=None),
            max(sums, default=None),
        )
        self.points.append((round(time.time()), *(_short(value) for value in values)))

    def columns(self) -> dict[str, list[float | None]]:
        """All points, a list for each figure."""
        names = ("time", *FIGURES)
        columns = zip(*self.points, strict=True) if self.points else [()] * len(names)
        return {name: list(column) for name, column in zip(names, columns, strict=True)}

    def missing(self) -> dict[str, dict[str, Any]]:
        """The services of which no process tells anything, and since when (Unix ms; `None`: none
        is known), so that a panel can say why it is empty."""
        found: dict[str, dict[str, Any]] = {}
        for service in SERVICES:
            known = self._scraper.known(service)
            if any(one.away_since is None for one in known):
                continue
            if not known and not self._scraper.rounds:
                continue  # nobody has been asked yet
            lost = max((one.away_since or 0.0 for one in known), default=None)
            found[service] = {"since": None if lost is None else int(lost * 1_000)}
        return found


def load_of(evaluator: Process) -> float | None:
    """The share of its threads' time that an evaluator has worked in the last minute, 0 to 1."""
    worked = evaluator.rate("fangcheng_evaluation_work_seconds_sum", RATE_SECONDS)
    threads = evaluator.value("fangcheng_evaluation_threads")
    return None if worked is None or not threads else min(1.0, worked / threads)


def _short(value: float | None) -> float | None:
    """As many digits as a chart shows."""
    return None if value is None else float(f"{value:.4g}")
