"""What is measured: times in buckets that can be added up, and counts.

A bucket is two hundredths wider than the one before, so that a percentile is told to one in a
hundred, whatever the number of times and whoever took them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SEEN = "act seen by all seats"
"""From when a discard is sent until each seat at the table that the load plays has been told."""
TAKEN = "act taken"
"""From when an answer is sent until the table says that it was accepted."""
SEATED = "JoinQueue until seated"
"""From when a player queues until his ticket has a table; he waits for three others too."""
ANALYZED = "Analyze"
"""A call, as a client makes it that shows its player a hint."""
SETTLED = "hand ended until settled"
"""From when a hand ends until the table tells that the wallet has it."""
LATE = "the load's own delay"
"""How late the clients' own clocks were: what is measured cannot be more exact."""
MEASURES = (SEEN, TAKEN, SEATED, ANALYZED, SETTLED, LATE)

ACTS = "acts"
HANDS = "hands"
SEATINGS = "seatings"

_LEAST_SECONDS = 1e-6
_WIDER = math.log(1.02)


@dataclass(slots=True)
class Spread:
    """Times, in seconds."""

    buckets: Counter[int] = field(default_factory=Counter)
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        seconds = max(seconds, _LEAST_SECONDS)
        self.buckets[int(math.log(seconds / _LEAST_SECONDS) / _WIDER)] += 1
        self.longest = max(self.longest, seconds)

    def take(self, other: Spread) -> None:
        """All that another has."""
        self.buckets.update(other.buckets)
        self.longest = max(self.longest, other.longest)

    @property
    def count(self) -> int:
        """How many there are."""
        return self.buckets.total()

    def percentile(self, share: float) -> float | None:
        """What this share of them does not exceed, in seconds; None where there are none."""
        rest = math.ceil(self.count * share)
        for bucket in sorted(self.buckets):
            rest -= self.buckets[bucket]
            if rest <= 0:
                middle = _LEAST_SECONDS * math.exp((bucket + 0.5) * _WIDER)
                return min(middle, self.longest)
        return None


@dataclass(slots=True)
class Slice:
    """What happened in a while."""

    spreads: dict[str, Spread] = field(default_factory=dict)
    """By measure."""
    counts: Counter[str] = field(default_factory=Counter)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By call and reason."""

    def time(self, measure: str, seconds: float) -> None:
        """One more time of a measure."""
        self.spreads.setdefault(measure, Spread()).add(seconds)

    def spread(self, measure: str) -> Spread:
        """The times of a measure; none where nothing was measured."""
        return self.spreads.get(measure, Spread())

    def take(self, other: Slice) -> None:
        """All that happened in another."""
        for measure, spread in other.spreads.items():
            self.spreads.setdefault(measure, Spread()).take(spread)
        self.counts.update(other.counts)
        self.errors.update(other.errors)

    def to_json(self) -> dict[str, Any]:
        """As a client process tells it."""
        return {
            "spreads": {
                measure: [spread.longest, *map(list, spread.buckets.items())]
                for measure, spread in self.spreads.items()
            },
            "counts": self.counts,
            "errors": [[*key, count] for key, count in self.errors.items()],
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Slice:
        """As it was told."""
        return cls(
            {
                measure: Spread(Counter(dict(map(tuple, buckets))), longest)
                for measure, (longest, *buckets) in told["spreads"].items()
            },
            Counter(told["counts"]),
            Counter({(call, reason): count for call, reason, count in told["errors"]}),
        )
