"""What is measured of tables. Labels are rule sets and words of ours, never a table or player."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from fangcheng_rules import events as play

from .events import Event
from .finished import ending_of
from .state import Phase

_MOMENTS_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
    *(0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)


class TableMetrics:
    """The metrics of the table service."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.tables = Gauge(
            "fangcheng_tables", "Tables in play.", ("rule_set", "phase"), registry=registry
        )
        self.hands = Counter(
            "fangcheng_table_hands_total",
            "Hands that have ended: win, draw, escape, dissolved or eight_flowers.",
            ("rule_set", "ending"),
            registry=registry,
        )
        self.acts = Histogram(
            "fangcheng_table_act_seconds",
            "From a player's act to the moment its events are stored and shown.",
            buckets=_MOMENTS_SECONDS,
            registry=registry,
        )
        self.timed_out = Counter(
            "fangcheng_table_prompts_timed_out_total",
            "Prompts that nobody answered in time.",
            registry=registry,
        )
        self.trustees = Counter(
            "fangcheng_table_trustees_total",
            "Seats that the table began to play for (timeouts, disconnected) or gave back (back).",
            ("why",),
            registry=registry,
        )
        self.streams = Gauge(
            "fangcheng_table_streams",
            "Streams of seats and of spectators.",
            ("kind",),
            registry=registry,
        )
        self.reconnects = Counter(
            "fangcheng_table_reconnects_total",
            "Seats that were attended again, from where they had been.",
            registry=registry,
        )
        self.commits = Histogram(
            "fangcheng_table_journal_commit_seconds",
            "One commit of the journal.",
            buckets=_MOMENTS_SECONDS,
            registry=registry,
        )
        self.commit_appends = Histogram(
            "fangcheng_table_journal_commit_appends",
            "Appends of tables that share one commit.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
            registry=registry,
        )
        self.journal_failures = Counter(
            "fangcheng_table_journal_failures_total",
            "Appends that failed; the table is rebuilt from what was stored.",
            registry=registry,
        )
        self.superseded = Counter(
            "fangcheng_table_superseded_total",
            "Tables that this process let go of, since another one has claimed them.",
            registry=registry,
        )
        self.unowned = Gauge(
            "fangcheng_table_unowned",
            "Tables that are not done and that no process plays. Where it stays above 0, none has "
            "their rule set.",
            registry=registry,
        )
        self.lost_time = Counter(
            "fangcheng_table_lost_seconds_total",
            "Time in which this process did not run, which counted against no player.",
            registry=registry,
        )
        self.failures = Counter(
            "fangcheng_table_failures_total",
            "Tables that failed by a fault of ours and were rebuilt from the journal.",
            registry=registry,
        )
        self.questions = Gauge(
            "fangcheng_table_evaluator_questions",
            "Questions that no evaluator has answered yet. No prompt is open meanwhile.",
            registry=registry,
        )
        self.answers = Histogram(
            "fangcheng_table_evaluator_wait_seconds",
            "From a question to the evaluator's answer, repeats included.",
            ("kind",),
            buckets=_MOMENTS_SECONDS,
            registry=registry,
        )
        self.evaluator_failures = Counter(
            "fangcheng_table_evaluator_failures_total",
            "Questions that were asked again, since no evaluator answered or one refused.",
            registry=registry,
        )
        self.outbox = Gauge(
            "fangcheng_table_outbox",
            "Settlements and releases of holds that the wallet has not acknowledged yet.",
            ("kind",),
            registry=registry,
        )
        self.parked = Gauge(
            "fangcheng_table_parked",
            "Of those, the ones that the wallet has refused. Somebody must look.",
            ("kind",),
            registry=registry,
        )
        self.settlements = Counter(
            "fangcheng_table_settlements_total", "Hands that were settled.", registry=registry
        )

    def see(self, rule_set: str, told: Sequence[Event]) -> None:
        """Count what a table of a rule set has told."""
        for event in told:
            match event:
                case play.HandEnded():
                    self.hands.labels(rule_set, ending_of(event)).inc()
                case play.TimedOut():
                    self.timed_out.inc()
                case play.TrusteeSet():
                    self.trustees.labels(event.reason).inc()
                case _:
                    pass

    def table(self, rule_set: str) -> CountedTable:
        """A table, to be counted under its phase."""
        return CountedTable(self.tables, rule_set)


class CountedTable:
    """A table among those that are counted."""

    def __init__(self, tables: Gauge, rule_set: str) -> None:
        self._tables = tables
        self._rule_set = rule_set
        self._phase: Phase | None = None

    def under(self, phase: Phase | None) -> None:
        """Count the table under its phase; None: no more."""
        if phase == self._phase:
            return
        if self._phase is not None:
            self._tables.labels(self._rule_set, self._phase).dec()
        if phase is not None:
            self._tables.labels(self._rule_set, phase).inc()
        self._phase = phase
