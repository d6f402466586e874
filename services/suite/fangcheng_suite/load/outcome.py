"""What a load found, whatever way it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .measured import LATE, MEASURES, SEATED, SEEN, Slice, Spread

EXPECTED = frozenset({("Act", "STALE_DECISION")})
"""What happens at a healthy table too: another seat's claim came first, or time ran out."""
BUSY_CORES = 0.8
"""Of a core, from which on a client process may be late; it is one thread that does its work."""
LATE_SHARE = 0.25
"""Of what is measured: a delay of its own that is larger shows in the figures."""


@dataclass(slots=True)
class Moment:
    """Some seconds of a load."""

    until_seconds: float
    """Since the players came."""
    seconds: float
    """How long it was."""
    happened: Slice
    tables: int
    """In play, at its end."""
    cores: Mapping[str, float]
    """Of a processor core, what each process used; by its label."""
    memory_bytes: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Audit:
    """What the wallet's audit of its ledger found."""

    balanced: bool
    entries: int
    settlements: int
    findings: Sequence[str]


@dataclass(slots=True)
class Outcome:
    """A load, as it was and what came of it."""

    command: str
    where: str
    """Which suite it was played at."""
    machine: str
    began: str
    """When, UTC."""
    wanted_tables: int
    pools: Sequence[str]
    pace: str
    seconds: float = 0.0
    """For which it was measured, once the tables played."""
    seating_seconds: float = 0.0
    """Before that."""
    moments: list[Moment] = field(default_factory=list)
    interrupted: bool = False
    audit: Audit | None = None
    trouble: str = ""
    """Why it ended early, if it did."""

    @property
    def tables(self) -> int:
        """In play at the same time, at most."""
        return max((moment.tables for moment in self.moments), default=0)

    @property
    def measured(self) -> list[Moment]:
        """The moments after the players were seated."""
        return [one for one in self.moments if one.until_seconds > self.seating_seconds]

    @property
    def total(self) -> Slice:
        """What happened while it was measured; how long players waited for a seat, all the time."""
        total = Slice()
        for moment in self.measured:
            total.take(moment.happened)
        seated = Spread()
        for moment in self.moments:
            seated.take(moment.happened.spread(SEATED))
        total.spreads[SEATED] = seated
        return total

    @property
    def spreads(self) -> dict[str, Spread]:
        """The times of each measure that there are any of."""
        total = self.total
        return {name: spread for name in MEASURES if (spread := total.spread(name)).count}

    @property
    def errors(self) -> dict[tuple[str, str], int]:
        """What went wrong from the beginning on, by call and reason, the most frequent first."""
        errors = Slice()
        for moment in self.moments:
            errors.take(moment.happened)
        return dict(errors.errors.most_common())

    @property
    def unexpected(self) -> int:
        """How much went wrong that does not at a healthy table."""
        return sum(count for key, count in self.errors.items() if key not in EXPECTED)

    def a_minute(self, what: str) -> float:
        """How many of something there were in a minute."""
        return 60 * self.total.counts[what] / self.seconds if self.seconds else 0.0

    @property
    def processes(self) -> dict[str, tuple[float, float, float]]:
        """Of each process: cores used on average and at most, and bytes at most."""
        found: dict[str, tuple[float, float, float]] = {}
        for label in sorted({label for moment in self.measured for label in moment.cores}):
            own = [one for one in self.measured if label in one.cores]
            seconds = sum(one.seconds for one in own)
            mean = sum(one.cores[label] * one.seconds for one in own) / seconds
            found[label] = (
                mean,
                max(one.cores[label] for one in own),
                max(one.memory_bytes.get(label, 0.0) for one in own),
            )
        return found

    @property
    def bottleneck(self) -> str:
        """Why the load's own processes may have been what was slow; '' where they were not."""
        busy = {
            label: mean
            for label, (mean, _, _) in self.processes.items()
            if label.startswith("client") and mean > BUSY_CORES
        }
        if busy:
            label, mean = max(busy.items(), key=lambda one: one[1])
            return f"{label} used {mean:.0%} of a core, and one thread does all of its work"
        spreads = self.spreads
        late, seen = (
            spreads[name].percentile(0.9) if name in spreads else None for name in (LATE, SEEN)
        )
        if late is not None and seen is not None and late > LATE_SHARE * seen:
            return (
                f"one time in ten its clients were late by {1e3 * late:.1f} ms themselves, which "
                "is in the figures"
            )
        return ""
