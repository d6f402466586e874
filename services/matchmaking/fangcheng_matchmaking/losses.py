"""What players have lost on a day of the studio's calendar, where a pool caps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .core import Stake

_DAY_MS = 86_400_000

Unit = tuple[str, str]
"""Currency and book."""
Losses = Mapping[Unit, int]
"""What a player has lost on a day, of the currencies that are capped; less than 0: he has won."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """The studio's days, all at the same distance from UTC."""

    offset_minutes: int

    def day(self, time_ms: int) -> int:
        """The number of the day, from 1970-01-01 on."""
        return (time_ms + self.offset_minutes * 60_000) // _DAY_MS

    def ends_ms(self, day: int) -> int:
        """When a day is over, in milliseconds since 1970."""
        return (day + 1) * _DAY_MS - self.offset_minutes * 60_000


def reached(stakes: Iterable[Stake], losses: Losses) -> Stake | None:
    """The first stake of which a player may lose no more today."""
    return next(
        (
            stake
            for stake in stakes
            if stake.loss_cap_per_day
            and losses.get((stake.currency, stake.book), 0) >= stake.loss_cap_per_day
        ),
        None,
    )
