"""What is measured of an evaluator. Labels are calls, lanes, and rule sets of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# From one hand in a compiled kernel to a queue that nobody should wait in.
_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
# A single hand, the chunks of batches (32 unless set otherwise), those of packed hands.
_HANDS = (1, 4, 16, 32, 64, 256, 1_024, 4_096, 16_384, 32_768, 100_000)

LANES = ("single", "bulk", "packed")
CALLS = ("Analyze", "Score", "AnalyzeBatch", "ScoreBatch", "EvaluateHands", "StreamHands")


@dataclass(frozen=True, slots=True)
class LaneMetrics:
    """The metrics of one lane."""

    waiting: Gauge
    limit: Gauge
    queued: Histogram
    worked: Histogram
    chunk_hands: Histogram
    refused: Counter
    threads: Gauge
    busy: Gauge


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
            "Hands that were taken in and not answered yet. Near the limit, calls are refused.",
            ("lane",),
            registry=registry,
        )
        self._limit = Gauge(
            "fangcheng_evaluation_waiting_hands_limit",
            "How many may wait; saturation is the share of it that does.",
            ("lane",),
            registry=registry,
        )
        self._queued = Histogram(
            "fangcheng_evaluation_queue_seconds",
            "How long a chunk of hands waited for a thread. Grows before calls are refused.",
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
        self._chunk_hands = Histogram(
            "fangcheng_evaluation_chunk_hands",
            "Hands of a chunk, which a thread does in one go.",
            ("lane",),
            buckets=_HANDS,
            registry=registry,
        )
        kernels = Histogram(
            "fangcheng_evaluation_kernel_seconds",
            "Of the time of a chunk, what the rules took for its hands of a rule set: kernels and "
            "payments, without conversion.",
            ("rule_set",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._threads = Gauge(
            "fangcheng_evaluation_threads", "Threads of all lanes.", registry=registry
        )
        self._busy = Gauge(
            "fangcheng_evaluation_busy_threads",
            "Threads that are at work. All of them for long: it needs more replicas.",
            registry=registry,
        )
        self._refused = Counter(
            "fangcheng_evaluation_refused_calls_total",
            "Calls refused because too much was waiting: clients go to another replica.",
            ("lane",),
            registry=registry,
        )
        for lane in LANES:
            self.lane(lane)
        self._kernels_of = {known: kernels.labels(known) for known in self._rule_sets}
        for known in self._rule_sets:
            for call in CALLS:
                self.hands(call, known)

    def lane(self, name: str) -> LaneMetrics:
        """The metrics of a lane, looked up once."""
        return LaneMetrics(
            self._waiting.labels(name),
            self._limit.labels(name),
            self._queued.labels(name),
            self._worked.labels(name),
            self._chunk_hands.labels(name),
            self._refused.labels(name),
            self._threads,
            self._busy,
        )

    def took(self, rule_set: str, seconds: float) -> None:
        """The rules worked on a chunk's hands of a rule set; may be told by any thread."""
        self._kernels_of[rule_set].observe(seconds)

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
