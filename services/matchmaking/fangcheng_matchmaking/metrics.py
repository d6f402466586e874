"""What is measured of the queues. Labels are pools of the configuration and reasons of a list."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from .core import Offer
from .matching import Queue

_REASONS = frozenset(
    {
        "INSUFFICIENT_BALANCE",
        "UNKNOWN_WALLET",
        "PLAYER_FROZEN",
        "UNKNOWN_POOL",
        "POOL_CHANGED",
        "TICKET_UNREADABLE",
    }
)
_WAIT_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600)


class Metrics:
    """The metrics of one process; of the pools that it measures alone."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pools: frozenset[str] = frozenset()
        self.waiting = Gauge(
            "fangcheng_matchmaking_waiting_tickets",
            "Tickets that wait, by pool; kind is player or standby.",
            ("pool", "kind"),
            registry=registry,
        )
        self.oldest_seconds = Gauge(
            "fangcheng_matchmaking_oldest_ticket_age_seconds",
            "Age of the oldest waiting player's ticket; 0 where nobody waits.",
            ("pool",),
            registry=registry,
        )
        self.fill_after_seconds = Gauge(
            "fangcheng_matchmaking_fill_after_seconds",
            "After which wait bots fill a table up, as the pool is configured; 0: never.",
            ("pool",),
            registry=registry,
        )
        self.paused = Gauge(
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
            "Matches that ended; outcome is seated or returned.",
            ("pool", "outcome"),
            registry=registry,
        )
        self._filled = Counter(
            "fangcheng_matchmaking_filled_tables_total",
            "Tables at which a standby ticket was seated.",
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
            "Tickets that could not be seated, by reason.",
            ("pool", "reason"),
            registry=registry,
        )
        self._reloads = Counter(
            "fangcheng_matchmaking_pool_reloads_total",
            "Times that the pools were read anew; outcome is used or refused.",
            ("outcome",),
            registry=registry,
        )
        self._repeated = Counter(
            "fangcheng_matchmaking_repeated_steps_total",
            "Steps of matches that had no answer from wallet or table and were repeated.",
            registry=registry,
        )
        self.unfinished = Gauge(
            "fangcheng_matchmaking_unfinished_matches",
            "Matches that are neither seated nor returned.",
            registry=registry,
        )

    def measure(
        self,
        offers: Mapping[str, Offer],
        queues: Callable[[str], Sequence[Queue]],
        pauses: Callable[[], Container[str]],
    ) -> None:
        """Measures these pools from now on.

        `queues` are those of a pool, and `pauses` the pools that are paused, as they are then.
        """
        before, self._pools = self._pools, frozenset(offers)
        for pool in before - self._pools:
            for kind in ("player", "standby"):
                self.waiting.remove(pool, kind)
            for gauge in (self.oldest_seconds, self.fill_after_seconds, self.paused):
                gauge.remove(pool)
        for pool, offer in offers.items():
            self.fill_after_seconds.labels(pool).set(offer.pool.fill_with_bots_after_ms / 1_000)
        for pool in self._pools - before:
            # From 0 on: what begins with its first count hides that one from rate().
            self._wait_seconds.labels(pool)
            for outcome in ("seated", "returned"):
                self._matches.labels(pool, outcome)
            self.paused.labels(pool).set_function(partial(_paused, pauses, pool))
            self.waiting.labels(pool, "player").set_function(partial(_players, queues, pool))
            self.waiting.labels(pool, "standby").set_function(partial(_standby, queues, pool))
            self.oldest_seconds.labels(pool).set_function(partial(_age_seconds, queues, pool))

    def seated(self, pool: str, waits_seconds: Iterable[float], *, filled: bool) -> None:
        """A match has its table."""
        pool = self._bounded(pool)
        self._matches.labels(pool, "seated").inc()
        if filled:
            self._filled.labels(pool).inc()
        for seconds in waits_seconds:
            self._wait_seconds.labels(pool).observe(seconds)

    def backfilled(self, pool: str) -> None:
        """A seat at a table under way was given to another."""
        self._backfilled.labels(self._bounded(pool)).inc()

    def returned(self, pool: str) -> None:
        """A match fell through."""
        self._matches.labels(self._bounded(pool), "returned").inc()

    def failed(self, pool: str, reason: str) -> None:
        """A ticket could not be seated."""
        self._failed.labels(self._bounded(pool), reason if reason in _REASONS else "OTHER").inc()

    def reloaded(self, *, used: bool) -> None:
        """The pools were read anew."""
        self._reloads.labels("used" if used else "refused").inc()

    def repeated(self) -> None:
        """A step had no answer."""
        self._repeated.inc()

    def _bounded(self, pool: str) -> str:
        # Tickets may outlive the pool that they were queued in.
        return pool if pool in self._pools else "other"


def _players(queues: Callable[[str], Sequence[Queue]], pool: str) -> float:
    return sum(len(queue) for queue in queues(pool))


def _standby(queues: Callable[[str], Sequence[Queue]], pool: str) -> float:
    return sum(queue.standby for queue in queues(pool))


def _paused(pauses: Callable[[], Container[str]], pool: str) -> float:
    return float(pool in pauses())


def _age_seconds(queues: Callable[[str], Sequence[Queue]], pool: str) -> float:
    queued = [one.oldest_queued_ms for one in queues(pool) if one.oldest_queued_ms is not None]
    return max(0.0, time.time() - min(queued) / 1_000) if queued else 0.0
