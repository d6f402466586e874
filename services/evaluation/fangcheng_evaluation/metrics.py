"""What is measured of an evaluator. Labels are calls, lanes, and rule sets of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


@dataclass(frozen=True, slots=True)
class LaneMetrics:
    """The metrics of one lane."""

    waiting: Gauge
    queued: Histogram
    worked: Histogram
    refused: Counter


class Metrics:
    """The metrics of one process."""

    def __init__(self, registry: CollectorRegistry, rule_sets: Iterable[str]) -> None:
        self._rule_sets = frozenset(rule_sets)
        self._hands = Counter(
            "fangcheng_evaluation_hands_total",
            "Hands that were asked about, by call, rule set, and whether there was an answer.",
            ("call", "rule_set", "answered"),
            registry=registry,
        )
        self._counters: dict[tuple[str, str], tuple[Counter, Counter]] = {}
        self._waiting = Gauge(
            "fangcheng_evaluation_waiting_hands",
            "Hands that were taken in and not answered yet.",
            ("lane",),
            registry=registry,
        )
        self._queued = Histogram(
            "fangcheng_evaluation_queue_seconds",
            "How long a chunk of hands waited for a thread.",
            ("lane",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._worked = Histogram(
            "fangcheng_evaluation_work_seconds",
            "How long a thread worked on a chunk of hands: kernels, payments, conversion.",
            ("lane",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._refused = Counter(
            "fangcheng_evaluation_refused_calls_total",
            "Calls refused because too much was waiting.",
            ("lane",),
            registry=registry,
        )

    def lane(self, name: str) -> LaneMetrics:
        """The metrics of a lane, looked up once."""
        return LaneMetrics(
            self._waiting.labels(name),
            self._queued.labels(name),
            self._worked.labels(name),
            self._refused.labels(name),
        )

    def hands(self, call: str, rule_set: str) -> tuple[Counter, Counter]:
        """The counters of hands that had an answer, and of those that had none."""
        known = rule_set if rule_set in self._rule_sets else "unknown"
        found = self._counters.get((call, known))
        if found is None:
            labels = self._hands.labels
            found = labels(call, known, "yes"), labels(call, known, "no")
            self._counters[call, known] = found
        return found

    def count(self, call: str, rule_set: str, *, answered: bool) -> None:
        """A hand was asked about."""
        self.hands(call, rule_set)[not answered].inc()
