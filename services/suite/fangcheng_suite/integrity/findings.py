"""The report: for each pair of players what was seen, what chance would bring, and how far apart.

Four things are looked at. Three are asked of each ordered pair, whether there is too much of it:
that the one deals in to the other, discards what the other lays melds down with, pays the other
large amounts. One is asked of both together, whether there is too little: deal-ins between them,
which is what shows of hands in which one does not win from the other. (A claim that somebody could
have made and passed is not seen.)

All questions of a report count together when it is said which answers are beyond chance, each by
the hands that the two have played together. Pairs that have met too seldom to tell are not asked
about, and so do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .chance import LEAST_SPREAD, MOST_SPREAD, Expected, Pairs, expect
from .facts import Counted, HandFacts, Kind, counted
from .significance import at_least, at_most, holm

Signal = Literal["deal_in", "feed", "pay", "soft"]

LEVEL = 0.05
"""The probability that a report without any collusion calls anything beyond chance."""
LEAST_HANDS = 24
"""Hands together from which on a pair is asked about."""
LEAST_EXPECTED = 10.0
"""Deal-ins to be expected from which on too few of them could tell anything."""
PASSES = 4
"""How often what is conspicuous is set apart, and the rest estimated anew."""
SUSPECT_SHARE = 0.02
"""The greatest share of pairs that is set apart without being beyond chance in the end."""

KINDS: tuple[Kind, ...] = ("deal_in", "feed", "pay")


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question about two players."""

    signal: Signal
    one: str
    """Who discards or pays; of `soft` simply the first."""
    other: str
    observed: int
    """Hands in which it happened."""
    expected: float
    """Hands in which chance would have it happen."""
    p: float
    """Probability that chance brings this, or something further off."""
    adjusted: float
    """The same for as many questions as the report asks (Holm)."""
    beyond: bool
    """`adjusted` is at or below the report's level: look at the hands."""

    @property
    def ratio(self) -> float:
        """Observed for each one expected."""
        return self.observed / self.expected


@dataclass(frozen=True, slots=True)
class PairReport:
    """Two players who met often enough."""

    one: str
    other: str
    tables: int
    hands: int
    paid_to_other: int
    """Units that the first paid the second, at tables of any stake."""
    paid_to_one: int
    findings: tuple[Finding, ...]

    @property
    def beyond(self) -> bool:
        """Something about the two is beyond chance."""
        return any(finding.beyond for finding in self.findings)

    @property
    def least(self) -> float:
        """The least of its probabilities."""
        return min(finding.p for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Report:
    """What hands tell of pairs."""

    hands: int
    tables: int
    players: int
    met: int
    """Pairs that have met at all."""
    questions: int
    level: float
    least_hands: int
    spreads: dict[Kind, float]
    """How much innocent pairs differ, as a squared coefficient of variation, by kind."""
    pairs: tuple[PairReport, ...]
    """Those who met often enough, the most conspicuous first."""

    @property
    def beyond(self) -> tuple[PairReport, ...]:
        """Those of whom something is beyond chance."""
        return tuple(pair for pair in self.pairs if pair.beyond)


def report(
    hands: Sequence[HandFacts], *, level: float = LEVEL, least_hands: int = LEAST_HANDS
) -> Report:
    """The report on these hands; a hand that comes twice counts twice."""
    looked = counted(hands)
    pairs = Pairs.of(looked)
    judged = pairs.hands >= least_hands
    apart = np.zeros(len(pairs.key), np.bool_)
    for _ in range(PASSES):
        expected = {kind: expect(looked, pairs, kind, apart, judged) for kind in KINDS}
        asked = _ask(pairs, expected, judged)
        # What is conspicuous must not pass for the way of the two when others are looked at, nor
        # for how much innocent pairs differ.
        further = _set_apart(pairs, expected, judged, asked, apart, level)
        if (further == apart).all():
            break
        apart = further
    else:
        expected = {kind: expect(looked, pairs, kind, apart, judged) for kind in KINDS}
        asked = _ask(pairs, expected, judged)
    return _told(looked, pairs, asked, expected, level, least_hands)


@dataclass(frozen=True, slots=True)
class _Asked:
    """All questions with their answers."""

    signals: list[Signal]
    pairs: list[int]
    observed: list[int]
    expected: list[float]
    p: list[float]
    adjusted: list[float]


def _ask(
    pairs: Pairs,
    expected: dict[Kind, Expected],
    judged: NDArray[np.bool_],
    most_spread: float = MOST_SPREAD,
) -> _Asked:
    """Ask all questions, innocent pairs differing by `most_spread` at most."""
    asked = _Asked([], [], [], [], [], [])
    spreads = {
        kind: (1 + told.unknown) * (1 + min(told.pair_spread, most_spread)) - 1
        for kind, told in expected.items()
    }

    def add(signal: Signal, pair: int, observed: int, mean: float, p: float) -> None:
        asked.signals.append(signal)
        asked.pairs.append(pair)
        asked.observed.append(observed)
        asked.expected.append(mean)
        asked.p.append(p)

    for pair in np.flatnonzero(judged).tolist():
        for kind in KINDS:
            told = expected[kind]
            observed, mean = int(told.observed[pair]), float(told.expected[pair])
            if mean > 0:
                p = at_least(observed, mean, float(spreads[kind][pair]))
                add(kind, pair, observed, mean, p)
        told, back = expected["deal_in"], int(pairs.back[pair])
        if pair < back:
            means = told.expected[[pair, back]]
            mean = float(means.sum())
            if mean >= LEAST_EXPECTED:
                spread = float((spreads["deal_in"][[pair, back]] * means**2).sum()) / mean**2
                observed = int(told.observed[[pair, back]].sum())
                add("soft", pair, observed, mean, at_most(observed, mean, spread))
    # Who plays with each other more can be judged better: the level is shared out by that.
    asked.adjusted.extend(holm(asked.p, pairs.hands[asked.pairs].tolist()))
    return asked


def _set_apart(
    pairs: Pairs,
    expected: dict[Kind, Expected],
    judged: NDArray[np.bool_],
    asked: _Asked,
    apart: NDArray[np.bool_],
    level: float,
) -> NDArray[np.bool_]:
    """The pairs that are to be set apart, both ways round: where there is too much of something.

    Those that are beyond chance; and the worst of those that would be if innocent pairs did not
    differ, for among few players one such pair makes all seem to differ.
    """
    found = apart.copy()
    for pair, _ in _worst(asked, level):
        found[[pair, pairs.back[pair]]] = True
    room = max(2, 2 * int(SUSPECT_SHARE * judged.sum() / 2)) - int(apart.sum())
    for pair, _ in _worst(_ask(pairs, expected, judged, LEAST_SPREAD), level):
        if room <= 0:
            break
        room -= 0 if found[pair] else 2
        found[[pair, pairs.back[pair]]] = True
    return found


def _worst(asked: _Asked, level: float) -> list[tuple[int, float]]:
    """Pairs with too much of something, beyond the level, the worst first, with their p-value."""
    found = [
        (pair, p)
        for signal, pair, p, adjusted in zip(
            asked.signals, asked.pairs, asked.p, asked.adjusted, strict=True
        )
        if signal != "soft" and adjusted <= level
    ]
    return sorted(found, key=lambda pair: pair[1])


def _told(
    looked: Counted,
    pairs: Pairs,
    asked: _Asked,
    expected: dict[Kind, Expected],
    level: float,
    least_hands: int,
) -> Report:
    count = len(looked.players)
    findings: dict[int, list[Finding]] = {}
    for number, signal in enumerate(asked.signals):
        pair = asked.pairs[number]
        one, other = divmod(int(pairs.key[pair]), count)
        finding = Finding(
            signal,
            looked.players[one],
            looked.players[other],
            asked.observed[number],
            asked.expected[number],
            asked.p[number],
            asked.adjusted[number],
            asked.adjusted[number] <= level,
        )
        findings.setdefault(min(pair, int(pairs.back[pair])), []).append(finding)
    units = np.zeros(len(pairs.key), np.int64)
    np.add.at(units, pairs.of_cell.ravel(), looked.units.ravel())
    tables = _tables(looked, pairs)
    told = []
    for pair, of_pair in findings.items():
        one, other = divmod(int(pairs.key[pair]), count)
        told.append(
            PairReport(
                looked.players[one],
                looked.players[other],
                int(tables[pair]),
                int(pairs.hands[pair]),
                int(units[pair]),
                int(units[pairs.back[pair]]),
                tuple(sorted(of_pair, key=lambda finding: finding.p)),
            )
        )
    told.sort(key=lambda pair: (not pair.beyond, pair.least, pair.one, pair.other))
    return Report(
        hands=len(looked.tables),
        tables=len(np.unique(looked.tables)),
        players=count,
        met=len(pairs.key) // 2,
        questions=len(asked.p),
        level=level,
        least_hands=least_hands,
        spreads={kind: expected[kind].pair_spread for kind in KINDS},
        pairs=tuple(told),
    )


def _tables(looked: Counted, pairs: Pairs) -> NDArray[np.int64]:
    """Tables at which each pair has met."""
    tables = np.repeat(looked.tables[:, None], pairs.of_cell.shape[1], axis=1)
    met = np.unique(np.stack([pairs.of_cell.ravel(), tables.ravel()], axis=1), axis=0)
    return np.bincount(met[:, 0], minlength=len(pairs.key))
