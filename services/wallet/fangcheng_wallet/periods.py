"""The periods of leaderboards: years, months, weeks and days of the studio's calendar."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from fangcheng_wallet.errors import InvalidPeriod

_FORM = re.compile(r"(\d{4})(?:-W(\d{2})|-(\d{2})(?:-(\d{2}))?)?", re.ASCII)


def bounds_us(period: str, utc_offset_minutes: int) -> tuple[int | None, int | None]:
    """The first moment of a period and the first after it, in microseconds since 1970.

    ``2026``, ``2026-01``, ``2026-W05`` (ISO, from Monday) or ``2026-01-31``; empty: all time, both
    ``None``. Raises ``InvalidPeriod``.
    """
    if not period:
        return None, None
    form = _FORM.fullmatch(period)
    if form is None:
        raise InvalidPeriod(period)
    year, week, month, day = (None if one is None else int(one) for one in form.groups())
    try:
        if week is not None:
            first = date.fromisocalendar(year or 0, week, 1)
            after = first + timedelta(days=7)
        elif day is not None:
            first = date(year or 0, month or 0, day)
            after = first + timedelta(days=1)
        elif month is not None:
            first = date(year or 0, month, 1)
            after = (first + timedelta(days=31)).replace(day=1)
        else:
            first = date(year or 0, 1, 1)
            after = date(first.year + 1, 1, 1)
    except (ValueError, OverflowError):
        raise InvalidPeriod(period) from None
    offset_us = utc_offset_minutes * 60_000_000
    return _midnight_us(first) - offset_us, _midnight_us(after) - offset_us


def _midnight_us(day: date) -> int:
    """The beginning of a day at UTC."""
    since = datetime(day.year, day.month, day.day, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1)
