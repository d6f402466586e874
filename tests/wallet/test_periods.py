"""The periods of leaderboards, in the calendar of the studio."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fangcheng_wallet.errors import InvalidPeriod
from fangcheng_wallet.periods import bounds_us


def told(period: str, offset_minutes: int = 480) -> tuple[str, str]:
    first, after = bounds_us(period, offset_minutes)
    assert first is not None
    assert after is not None
    return clock(first), clock(after)


def clock(us: int) -> str:
    return datetime.fromtimestamp(us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    ("period", "bounds"),
    [
        ("2026", ("2025-12-31 16:00", "2026-12-31 16:00")),
        ("2026-12", ("2026-11-30 16:00", "2026-12-31 16:00")),
        ("2024-02", ("2024-01-31 16:00", "2024-02-29 16:00")),
        ("2026-W01", ("2025-12-28 16:00", "2026-01-04 16:00")),
        ("2026-W53", ("2026-12-27 16:00", "2027-01-03 16:00")),
        ("2026-02-28", ("2026-02-27 16:00", "2026-02-28 16:00")),
    ],
)
def test_a_period_begins_and_ends_at_midnight_in_china(
    period: str, bounds: tuple[str, str]
) -> None:
    assert told(period) == bounds


def test_another_calendar_has_another_midnight() -> None:
    assert told("2026-01-01", 0) == ("2026-01-01 00:00", "2026-01-02 00:00")
    assert told("2026-01-01", -210) == ("2026-01-01 03:30", "2026-01-02 03:30")


def test_all_time_has_no_bounds() -> None:
    assert bounds_us("", 480) == (None, None)


@pytest.mark.parametrize(
    "period",
    ["26", "2026-", "2026-13", "2026-1", "2025-W53", "2026-W00", "2026-02-29", "2026-W05-1", "9999",
     "0000", "２０２６", "2026\n", "every week"],
)  # fmt: skip
def test_what_the_calendar_does_not_have_is_refused(period: str) -> None:
    with pytest.raises(InvalidPeriod):
        bounds_us(period, 480)
