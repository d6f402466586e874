"""What is measured of the queues. Labels are pools of the configuration and reasons of a list."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_REASONS = frozenset({"INSUFFICIENT_BALANCE", "UNKNOWN_WALLET", "PLAYER_FROZEN", "UNKNOWN_POOL"})
_WAIT_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600)


class Metrics:
    """The metrics of one process; of the given pools alone."""

    def __init__(self, registry: CollectorRegistry, pools: Iterable[str]) -> None:
        self._pools = frozenset(pools)
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
        self._failed = Counter(
            "fangcheng_matchmaking_failed_tickets_total",
            "Tickets that could not be seated, by reason.",
            ("pool", "reason"),
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

    def seated(self, pool: str, waits_seconds: Iterable[float], *, filled: bool) -> None:
        """A match has its table."""
        pool = self._bounded(pool)
        self._matches.labels(pool, "seated").inc()
        if filled:
            self._filled.labels(pool).inc()
        for seconds in waits_seconds:
            self._wait_seconds.labels(pool).observe(seconds)

    def returned(self, pool: str) -> None:
        """A match fell through."""
        self._matches.labels(self._bounded(pool), "returned").inc()

    def failed(self, pool: str, reason: str) -> None:
        """A ticket could not be seated."""
        self._failed.labels(self._bounded(pool), reason if reason in _REASONS else "OTHER").inc()

    def repeated(self) -> None:
        """A step had no answer."""
        self._repeated.inc()

    def _bounded(self, pool: str) -> str:
        # Tickets may outlive the pool that they were queued in.
        return pool if pool in self._pools else "other"
