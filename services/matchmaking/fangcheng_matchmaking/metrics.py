"""What is measured of the queues. Labels are reasons of a list, and pools of the configuration.

All series are there from the start, at 0, so that an alert can tell nothing from no news.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from .core import Offer
from .matching import Queue

_REASONS = (
    *("INSUFFICIENT_BALANCE", "UNKNOWN_WALLET", "PLAYER_FROZEN", "UNKNOWN_POOL"),
    *("POOL_CHANGED", "TICKET_UNREADABLE", "OTHER"),
)
# Closest around the promise of 3 seconds; the longest are those of a pool that nobody comes to.
_WAIT_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600)

MOST_POOLS = 26
"""Pools that have series of their own, the first of the file: 34 each, of 2,000 in all."""
REST = "other"
"""All other pools, private rooms, and pools that are gone, under one label."""

Queues = Callable[[str], Sequence[Queue]]
"""The queues of a pool, as they are then."""


@dataclass(frozen=True, slots=True)
class _Pool:
    """The counters of a pool."""

    wait_seconds: Histogram
    seated: Counter
    returned: Counter
    filled: Counter
    backfilled: Counter
    failed: Mapping[str, Counter]


class Metrics:
    """The metrics of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pools: dict[str, _Pool] = {}
        self._waiting = Gauge(
            "fangcheng_matchmaking_waiting_tickets",
            "Tickets that wait: of players, or on standby (bots). Every replica tells all of them: "
            "take the `max` over replicas, not the sum.",
            ("pool", "kind"),
            registry=registry,
        )
        self._oldest_seconds = Gauge(
            "fangcheng_matchmaking_oldest_ticket_age_seconds",
            "Age of the oldest waiting player's ticket; 0 where nobody waits.",
            ("pool",),
            registry=registry,
        )
        self._fill_after_seconds = Gauge(
            "fangcheng_matchmaking_fill_after_seconds",
            "After which wait bots fill a table up, as the pool is configured; 0: never.",
            ("pool",),
            registry=registry,
        )
        self._paused = Gauge(
            "fangcheng_matchmaking_paused",
            "1 where an operator has paused the pool: nobody is matched.",
            ("pool",),
            registry=registry,
        )
        self._wait_seconds = Histogram(
            "fangcheng_matchmaking_wait_seconds",
            "From joining a queue to the seat, of players; standby tickets are not counted.",
            ("pool",),
            buckets=_WAIT_SECONDS,
            registry=registry,
        )
        self._matches = Counter(
            "fangcheng_matchmaking_matches_total",
            "Matches that ended: `seated` at a table, or `returned` to the queue.",
            ("pool", "outcome"),
            registry=registry,
        )
        self._filled = Counter(
            "fangcheng_matchmaking_filled_tables_total",
            "Tables at which a standby ticket (a bot) was seated, since too few players came.",
            ("pool",),
            registry=registry,
        )
        self._backfilled = Counter(
            "fangcheng_matchmaking_backfilled_seats_total",
            "Seats left at tables under way that were given to a waiting ticket.",
            ("pool",),
            registry=registry,
        )
        self._failed = Counter(
            "fangcheng_matchmaking_failed_tickets_total",
            "Tickets that could not be seated, by reason. POOL_CHANGED comes of a reload, the "
            "others of wallets.",
            ("pool", "reason"),
            registry=registry,
        )
        reloads = Counter(
            "fangcheng_matchmaking_pool_reloads_total",
            "Times that the pools were read anew; `refused`: the file has a fault, and nothing has "
            "changed.",
            ("outcome",),
            registry=registry,
        )
        self._used, self._refused = reloads.labels("used"), reloads.labels("refused")
        self._repeated = Counter(
            "fangcheng_matchmaking_repeated_steps_total",
            "Steps of matches that had no answer from wallet or table and were repeated. Where "
            "they go on, one of the two is away.",
            registry=registry,
        )
        self.unfinished = Gauge(
            "fangcheng_matchmaking_unfinished_matches",
            "Matches on their way: neither seated nor returned. Where they stay, so do their "
            "players.",
            registry=registry,
        )
        codes = Counter(
            "fangcheng_matchmaking_wrong_room_codes_total",
            "Codes of private rooms that were `wrong`, or not looked at since too many were "
            "(`refused`). Many: somebody looks for rooms that are not his.",
            ("outcome",),
            registry=registry,
        )
        self._wrong_codes = {False: codes.labels("wrong"), True: codes.labels("refused")}
        self.measure({}, lambda pool: (), tuple)

    def measure(
        self, offers: Mapping[str, Offer], queues: Queues, pauses: Callable[[], Container[str]]
    ) -> None:
        """Measures these pools from now on.

        `queues` are those of a pool, and `pauses` the pools that are paused, as they are then.
        """
        named = [pool for pool in offers if pool != REST][:MOST_POOLS]
        for pool in self._pools.keys() - {*named, REST}:
            del self._pools[pool]
            self._forget(pool)
        rest = [pool for pool in offers if pool not in named]
        for label, pools in {**{pool: [pool] for pool in named}, REST: rest}.items():
            if label not in self._pools:
                self._pools[label] = self._counted(label)
            fill_ms = [offers[pool].pool.fill_with_bots_after_ms for pool in pools]
            self._fill_after_seconds.labels(label).set(max(fill_ms, default=0) / 1_000)
            self._look_at(label, pools, queues, pauses)

    def seated(self, pool: str, waits_seconds: Iterable[float], *, filled: bool) -> None:
        """A match has its table."""
        counted = self._of(pool)
        counted.seated.inc()
        if filled:
            counted.filled.inc()
        for seconds in waits_seconds:
            counted.wait_seconds.observe(seconds)

    def backfilled(self, pool: str) -> None:
        """A seat at a table under way was given to another."""
        self._of(pool).backfilled.inc()

    def returned(self, pool: str) -> None:
        """A match fell through."""
        self._of(pool).returned.inc()

    def failed(self, pool: str, reason: str) -> None:
        """A ticket could not be seated."""
        failed = self._of(pool).failed
        failed[reason if reason in failed else "OTHER"].inc()

    def reloaded(self, *, used: bool) -> None:
        """The pools were read anew."""
        (self._used if used else self._refused).inc()

    def wrong_code(self, *, is_locked_out: bool) -> None:
        """A code of a room was wrong, or was not even looked at."""
        self._wrong_codes[is_locked_out].inc()

    def repeated(self) -> None:
        """A step had no answer."""
        self._repeated.inc()

    def _of(self, pool: str) -> _Pool:
        # Tickets may outlive the pool that they were queued in.
        return self._pools.get(pool) or self._pools[REST]

    def _counted(self, pool: str) -> _Pool:
        return _Pool(
            self._wait_seconds.labels(pool),
            self._matches.labels(pool, "seated"),
            self._matches.labels(pool, "returned"),
            self._filled.labels(pool),
            self._backfilled.labels(pool),
            {reason: self._failed.labels(pool, reason) for reason in _REASONS},
        )

    def _look_at(
        self,
        label: str,
        pools: Sequence[str],
        queues: Queues,
        pauses: Callable[[], Container[str]],
    ) -> None:
        def count(of: Callable[[Queue], int]) -> float:
            return sum(of(queue) for pool in pools for queue in queues(pool))

        self._waiting.labels(label, "player").set_function(partial(count, len))
        self._waiting.labels(label, "standby").set_function(partial(count, _standby))
        self._oldest_seconds.labels(label).set_function(partial(_age_seconds, queues, pools))
        self._paused.labels(label).set_function(
            lambda: float(sum(pool in pauses() for pool in pools))
        )

    def _forget(self, pool: str) -> None:
        for kind in ("player", "standby"):
            self._waiting.remove(pool, kind)
        for outcome in ("seated", "returned"):
            self._matches.remove(pool, outcome)
        for reason in _REASONS:
            self._failed.remove(pool, reason)
        for metric in (
            *(self._oldest_seconds, self._fill_after_seconds, self._paused),
            *(self._wait_seconds, self._filled, self._backfilled),
        ):
            metric.remove(pool)


def _standby(queue: Queue) -> int:
    return queue.standby


def _age_seconds(queues: Queues, pools: Sequence[str]) -> float:
    since = [
        queue.oldest_queued_ms
        for pool in pools
        for queue in queues(pool)
        if queue.oldest_queued_ms is not None
    ]
    return max(0.0, time.time() - min(since) / 1_000) if since else 0.0
