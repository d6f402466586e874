"""Shares and means with confidence intervals.

The sessions are independent of each other, the hands of one are not quite: the dealer stays, a
drawn hand doubles the next. So every spread is taken between sessions, not between hands.

A share's interval is Wilson's, with as many hands as would have told as much were they independent
(the "effective sample size"; C. Franco and others, "Comparative Study of Confidence Intervals for
Proportions in Complex Sample Surveys", Journal of Survey Statistics and Methodology 7 (2019),
334-364): it stays within 0 and 1, and is right where next to nothing was seen. A mean's is
Student's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
"""One whole number for each session."""

LEVEL = 0.95
LEAST_SESSIONS = 10
"""Fewer do not tell how much they differ."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What was seen, and the interval that holds the true value in 95 of 100 simulations."""

    value: float | None
    """None: there was nothing to take it from."""
    low: float | None
    high: float | None
    """None: there were fewer than `LEAST_SESSIONS`."""
    of: int
    """From how many hands, wins, sessions it was taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """A sum over something that is counted: by session, what was summed and how many there were."""

    over: Counts
    of: Counts
    is_share: bool = False
    """Each of what is counted adds 0 or 1."""

    @property
    def estimate(self) -> Estimate:
        """The share or mean."""
        count = int(self.of.sum())
        if not count:
            return Estimate(None, None, None, 0)
        value = int(self.over.sum()) / count
        if len(self.of) < LEAST_SESSIONS:
            return Estimate(value, None, None, count)
        error = _error(self._rests / count)
        times = _student(len(self.of) - 1)
        if not self.is_share:
            low = value - times * error
            if (self.over >= 0).all():
                low = max(low, 0.0)  # what is never negative is not so on average
            return Estimate(value, low, value + times * error, count)
        return Estimate(value, *_wilson(value, count, error, times), count)

    @property
    def _rests(self) -> NDArray[np.float64]:
        """By session, how far the sum is from what the share or mean would have it."""
        return self.over - self.of * (int(self.over.sum()) / int(self.of.sum()))


def difference(one: Measure, other: Measure) -> Estimate:
    """How much more the other has, where both are of the same sessions in the same order.

    The same chance in both takes away most of the spread.
    """
    counts = [int(measure.of.sum()) for measure in (one, other)]
    if not all(counts):
        return Estimate(None, None, None, min(counts))
    value = int(other.over.sum()) / counts[1] - int(one.over.sum()) / counts[0]
    if len(one.of) < LEAST_SESSIONS:
        return Estimate(value, None, None, min(counts))
    error = _error(other._rests / counts[1] - one._rests / counts[0])
    half = _student(len(one.of) - 1) * error
    return Estimate(value, value - half, value + half, min(counts))


def _error(rests: NDArray[np.float64]) -> float:
    """The standard error of a sum over sessions."""
    sessions = len(rests)
    return math.sqrt(float(rests @ rests) * sessions / (sessions - 1))


def _wilson(share: float, count: int, error: float, times: float) -> tuple[float, float]:
    if error > 0 and 0 < share < 1:
        # Never more than there are: that sessions are alike by chance makes nothing surer.
        count = min(count, math.floor(share * (1 - share) / error**2) or 1)
    square = times**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = (
        times
        / (1 + square / count)
        * math.sqrt(share * (1 - share) / count + square / 4 / count**2)
    )
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def _student(freedom: int) -> float:
    """How many standard errors the interval reaches: Student's quantile, by Fisher's expansion.

    From nine degrees of freedom on it is good to the third decimal.
    """
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
