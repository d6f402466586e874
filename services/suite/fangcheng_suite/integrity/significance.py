"""How far a count is from what was expected, and what that says when much is looked at.

The count's distribution under chance is the gamma-Poisson one (negative binomial): Poisson, with a
rate that is itself not known exactly. It is the model by which drug safety looks for pairs of drug
and reaction that are reported too often (W. DuMouchel, "Bayesian Data Mining in Large Frequency
Tables, With an Application to the FDA Spontaneous Reporting System", The American Statistician 53
(1999), 177-190); here the pairs are players.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_NEGLIGIBLE = 1e-17
"""A term so small beside the sum so far changes nothing."""


def at_least(count: int, expected: float, spread: float) -> float:
    """The probability of `count` or more.

    `expected`: the mean. `spread`: the squared coefficient of variation of the rate; 0: Poisson.
    """
    if count <= 0:
        return 1.0
    if expected <= 0:
        return 0.0
    if count <= expected:
        return max(0.0, 1.0 - at_most(count - 1, expected, spread))
    term = total = _term(count, expected, spread)
    while term > total * _NEGLIGIBLE:
        term *= _ratio(count, expected, spread)
        total += term
        count += 1
    return min(1.0, total)


def at_most(count: int, expected: float, spread: float) -> float:
    """The probability of `count` or less; arguments as of `at_least`."""
    if count < 0:
        return 0.0
    if expected <= 0:
        return 1.0
    if count > expected:
        return max(0.0, 1.0 - at_least(count + 1, expected, spread))
    term = total = _term(count, expected, spread)
    while count > 0 and term > total * _NEGLIGIBLE:
        count -= 1
        term /= _ratio(count, expected, spread)
        total += term
    return min(1.0, total)


def _term(count: int, expected: float, spread: float) -> float:
    """The probability of exactly `count`."""
    if spread * expected < 1e-9:
        return math.exp(count * math.log(expected) - expected - math.lgamma(count + 1))
    shape = 1 / spread
    return math.exp(
        math.lgamma(count + shape)
        - math.lgamma(shape)
        - math.lgamma(count + 1)
        - shape * math.log1p(expected * spread)
        + count * math.log(expected / (shape + expected))
    )


def _ratio(count: int, expected: float, spread: float) -> float:
    """The probability of `count + 1`, divided by that of `count`."""
    return expected * (1 + count * spread) / ((count + 1) * (1 + expected * spread))


def holm(p_values: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """The p-values adjusted for there being so many of them, in the same order.

    To take those at or below a level for true errs in any of them with at most that probability,
    however they depend on each other (S. Holm, "A Simple Sequentially Rejective Multiple Test
    Procedure", Scandinavian Journal of Statistics 6 (1979), 65-70). That is stricter than to bound
    the share of errors among what is named: here each single error accuses a person.

    `weights`: how the level is shared out, all greater than 0; they must not depend on what was
    found. None: evenly.
    """
    count = len(p_values)
    shares = list(weights) if weights is not None else [1.0] * count
    adjusted = [0.0] * count
    order = sorted(range(count), key=lambda place: p_values[place] / shares[place])
    running, left = 0.0, math.fsum(shares)
    for place in order:
        running = max(running, min(1.0, p_values[place] * left / shares[place]))
        adjusted[place] = running
        left = max(left - shares[place], 0.0)
    return adjusted
