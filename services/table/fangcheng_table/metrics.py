"""What is measured of tables. Labels are rule sets and words of ours, never a table or player.

All series are there from the start, at 0, so that an alert can tell nothing from no news.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from fangcheng_rules import events as play
from fangcheng_rules.actions import TrusteeReason
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_rules.scoring import End

from .events import CLOSING_REASONS, Event, TableClosed, TableCreated, TableMode
from .finished import word_of
from .state import Phase, TableState

PLAYED_HERE = tuple([rules.id for rules in RULE_SETS])

Errand = Literal["settle", "release"]
"""What a table has the wallet do."""

# Four to a decade around the promise that an act is seen within 50 ms, down to one commit.
_MOMENTS_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
    *(0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
# Nearly all wins have 0 to 5 fan (simple players, every rule set), so each has a bucket of its own.
_FAN = (0, 1, 2, 3, 4, 5, 6, 8, 12, 20)
# A fan doubles what is paid, so the steps do.
_POINTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True, slots=True)
class _Hands:
    """What is counted of the hands of one rule set."""

    endings: Mapping[str, Counter]
    fan: Histogram
    points: Histogram


class TableMetrics:
    """The metrics of the table service."""

    def __init__(
        self,
        registry: CollectorRegistry,
        rule_sets: Iterable[str] = PLAYED_HERE,
    ) -> None:
        """`rule_sets`: the ids of those that are played here."""
        self._tables = Gauge(
            "fangcheng_tables",
            "Tables in play, by rule set, by where they stand, and by the mode of the pool that "
            "their players came from (`room`: a private room, `other`: made by somebody else). "
            "Those that stay `closed` wait for the wallet.",
            ("rule_set", "phase", "mode"),
            registry=registry,
        )
        self._hands = Counter(
            "fangcheng_table_hands_total",
            "Hands that have ended, by how. `escape`: somebody left, and pays for it.",
            ("rule_set", "ending"),
            registry=registry,
        )
        self._fan = Histogram(
            "fangcheng_table_win_fan",
            "Fan of a win, of each winner; 0 where the rule set pays a flat amount. Shifts where "
            "rules or players change.",
            ("rule_set",),
            buckets=_FAN,
            registry=registry,
        )
        self._points = Histogram(
            "fangcheng_table_payment_points",
            "What one seat has lost when a hand ends, in units of the rule set, before stakes "
            "multiply and caps cut it.",
            ("rule_set",),
            buckets=_POINTS,
            registry=registry,
        )
        self.acts = Histogram(
            "fangcheng_table_act_seconds",
            "From a player's act to the moment its events are stored and shown. Promised: 0.05.",
            buckets=_MOMENTS_SECONDS,
            registry=registry,
        )
        self._timed_out = Counter(
            "fangcheng_table_prompts_timed_out_total",
            "Prompts that nobody answered in time. Many at once: clients do not hear or reach us.",
            registry=registry,
        )
        trustees = Counter(
            "fangcheng_table_trustees_total",
            "Seats that the table began to play for (timeouts, asked, disconnected, removed), or "
            "gave back (back).",
            ("why",),
            registry=registry,
        )
        self._trustees = {why: trustees.labels(why) for why in get_args(TrusteeReason)}
        self._trustee_seats = Gauge(
            "fangcheng_table_trustee_seats",
            "Seats that tables play for now. Many at once: clients have lost the service.",
            registry=registry,
        )
        self._closed = Counter(
            "fangcheng_table_closed_total",
            "Tables that closed, by why. `deserted`: nobody attended any seat for the grace.",
            ("reason",),
            registry=registry,
        )
        for reason in CLOSING_REASONS:
            self._closed.labels(reason)
        streams = Gauge(
            "fangcheng_table_streams",
            "Streams that are open, of seats and of spectators.",
            ("kind",),
            registry=registry,
        )
        self.seat_streams = streams.labels("seat")
        self.spectator_streams = streams.labels("spectator")
        self.reconnects = Counter(
            "fangcheng_table_reconnects_total",
            "Seats that were attended again, from where they had been. Many at once: a gateway or "
            "a network has failed.",
            registry=registry,
        )
        self.commits = Histogram(
            "fangcheng_table_journal_commit_seconds",
            "One commit of the journal. Every act waits for one.",
            buckets=_MOMENTS_SECONDS,
            registry=registry,
        )
        self.commit_appends = Histogram(
            "fangcheng_table_journal_commit_appends",
            "Appends of tables that share one commit. Grows where commits are slow.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
            registry=registry,
        )
        self.journal_failures = Counter(
            "fangcheng_table_journal_failures_total",
            "Appends that the database refused; their tables are rebuilt and go on.",
            registry=registry,
        )
        self.superseded = Counter(
            "fangcheng_table_superseded_total",
            "Tables that this process let go of, since another one has claimed them.",
            registry=registry,
        )
        self.taken_over = Counter(
            "fangcheng_table_taken_over_total",
            "Tables taken over from a process that has not given them up: it crashed, hung, or "
            "lost the database. Those that are found at a start are not counted.",
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
            "Time in which this process did not run (a paused machine, no CPU), which counted "
            "against no player.",
            registry=registry,
        )
        self.failures = Counter(
            "fangcheng_table_failures_total",
            "Tables that failed by a fault of ours and were rebuilt from the journal. The log has "
            "why.",
            registry=registry,
        )
        self.questions = Gauge(
            "fangcheng_table_evaluator_questions",
            "Questions that no evaluator has answered yet. No prompt is open meanwhile.",
            registry=registry,
        )
        answers = Histogram(
            "fangcheng_table_evaluator_wait_seconds",
            "From a question to the evaluator's answer, repeats included; the table waits "
            "meanwhile.",
            ("kind",),
            buckets=_MOMENTS_SECONDS,
            registry=registry,
        )
        self.answers = {kind: answers.labels(kind) for kind in ("analyze", "score")}
        self.evaluator_failures = Counter(
            "fangcheng_table_evaluator_failures_total",
            "Questions that were asked again, since no evaluator answered or one refused.",
            registry=registry,
        )
        self._outbox = Gauge(
            "fangcheng_table_outbox",
            "Settlements and releases of holds that the wallet has not acknowledged yet, parked "
            "ones too.",
            ("kind",),
            registry=registry,
        )
        self._oldest = Gauge(
            "fangcheng_table_outbox_oldest_age_seconds",
            "How long this process has tried the oldest errand at the wallet that is not parked; "
            "0: there is none. Where it grows, the wallet does not answer.",
            ("kind",),
            registry=registry,
        )
        self._parked = Gauge(
            "fangcheng_table_parked",
            "Settlements and releases of holds that the wallet has refused. They are tried again "
            "now and then; somebody must look.",
            ("kind",),
            registry=registry,
        )
        for kind in get_args(Errand):
            self.measure_outbox(kind, {}, ())
        self.settlements = Counter(
            "fangcheng_table_settlements_total",
            "Hands that the wallet has settled, as tables have been told.",
            registry=registry,
        )
        self._of_rule_set: dict[str, _Hands] = {}
        self._standing: dict[tuple[str, str], Mapping[Phase, Gauge]] = {}
        for rule_set in rule_sets:
            self._hands_of(rule_set)
            for mode in get_args(TableMode):
                self._standing_of(rule_set, mode)

    def measure_outbox(
        self, kind: Errand, waiting: Mapping[int, float], parked: Collection[int]
    ) -> None:
        """Measures from now on what waits for the wallet.

        `waiting`: since when each does, the oldest first, by the monotonic clock. `parked`: which
        of them were refused.
        """
        self._outbox.labels(kind).set_function(partial(len, waiting))
        self._oldest.labels(kind).set_function(partial(_age_seconds, waiting, parked))
        self._parked.labels(kind).set_function(partial(len, parked))

    def table(self, created: TableCreated) -> CountedTable:
        """A table, to be counted."""
        return CountedTable(
            self,
            self._hands_of(created.rule_set),
            self._standing_of(created.rule_set, created.mode),
        )

    def _hands_of(self, rule_set: str) -> _Hands:
        found = self._of_rule_set.get(rule_set)
        if found is None:
            found = self._of_rule_set[rule_set] = _Hands(
                {
                    ending: self._hands.labels(rule_set, ending)
                    for ending in map(word_of, get_args(End))
                },
                self._fan.labels(rule_set),
                self._points.labels(rule_set),
            )
        return found

    def _standing_of(self, rule_set: str, mode: TableMode) -> Mapping[Phase, Gauge]:
        found = self._standing.get((rule_set, mode))
        if found is None:
            found = self._standing[rule_set, mode] = {
                phase: self._tables.labels(rule_set, phase, mode or "other")
                for phase in get_args(Phase)
            }
        return found


class CountedTable:
    """A table among those that are counted."""

    def __init__(
        self, metrics: TableMetrics, hands: _Hands, standing: Mapping[Phase, Gauge]
    ) -> None:
        self._metrics = metrics
        self._hands = hands
        self._standing = standing
        self._phase: Phase | None = None
        self._trustee_seats = 0

    def tells(self, told: Sequence[Event]) -> None:
        """Count what it has told, once that is stored."""
        metrics = self._metrics
        for event in told:
            match event:
                case play.HandEnded():
                    self._ended(event)
                case play.TimedOut():
                    metrics._timed_out.inc()
                case play.TrusteeSet():
                    metrics._trustees[event.reason].inc()
                case TableClosed():
                    metrics._closed.labels(event.reason).inc()
                case _:
                    pass

    def stands(self, state: TableState) -> None:
        """Count it as it stands now."""
        phase = state.phase
        played = 0 if phase == "closed" else sum([seat.trustee for seat in state.seats])
        self._count(phase, played)

    def gone(self) -> None:
        """Count it no more."""
        self._count(None, 0)

    def _ended(self, event: play.HandEnded) -> None:
        self._hands.endings[word_of(type(event.end))].inc()
        for winner in event.score.winners:
            self._hands.fan.observe(winner.fan)
        for units in event.score.net:
            if units < 0:
                self._hands.points.observe(-units)

    def _count(self, phase: Phase | None, trustee_seats: int) -> None:
        if phase != self._phase:
            if self._phase is not None:
                self._standing[self._phase].dec()
            if phase is not None:
                self._standing[phase].inc()
            self._phase = phase
        if trustee_seats != self._trustee_seats:
            self._metrics._trustee_seats.inc(trustee_seats - self._trustee_seats)
            self._trustee_seats = trustee_seats


def _age_seconds(waiting: Mapping[int, float], parked: Collection[int]) -> float:
    # Copied in one go, since another thread may change it meanwhile.
    for number, since in list(waiting.items()):
        if number not in parked:
            return max(0.0, time.monotonic() - since)
    return 0.0
