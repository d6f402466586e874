"""What may be wrong with a table, as those who run the service are told of it.

Times are milliseconds of the game clock: time in which the process did not run is nobody's trouble.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

TAKEN_OVER_MS = 600_000
"""How long it is told that a table was taken over."""

TroubleKind = Literal["stuck", "evaluator", "wallet", "parked", "taken_over"]
Partner = Literal["evaluator", "wallet"]
"""Whom a table waits for."""


class Trouble(NamedTuple):
    """Something that is wrong with a table; see `TableTroubleKind` in the contract."""

    kind: TroubleKind
    since_ms: int


@dataclass(slots=True, eq=False)
class Waiting:
    """Something that a table has asked of another."""

    partner: Partner
    since_ms: int
    refused_ms: int | None = None
    """Since when it is refused, and asked again now and then."""


def waiting_for(waiting: Iterable[Waiting], long_ago_ms: int) -> Iterator[Trouble]:
    """What was asked before that, and what was refused; the oldest of each kind."""
    oldest: dict[TroubleKind, int] = {}
    for one in waiting:
        if one.refused_ms is not None:
            oldest["parked"] = min(one.refused_ms, oldest.get("parked", one.refused_ms))
        elif one.since_ms <= long_ago_ms:
            oldest[one.partner] = min(one.since_ms, oldest.get(one.partner, one.since_ms))
    for kind in ("evaluator", "wallet", "parked"):
        if kind in oldest:
            yield Trouble(kind, oldest[kind])
