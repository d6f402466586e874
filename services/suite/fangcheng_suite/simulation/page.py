"""The figures as a page: what a designer who tunes caps and stakes would look at.

Nothing of when and how fast it was played is in it: the same plan makes the same page, byte for
byte.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from fangcheng_suite.chosen import shown
from fangcheng_suite.pages import (
    Bars,
    Grid,
    Histogram,
    Lines,
    Part,
    Section,
    write_page,
)
from fangcheng_suite.pages import Figures as Headlines

from .estimates import LEAST_SESSIONS, Estimate
from .figures import Board, Difference, Figures, Row, Spread, Text
from .told import TOO_FEW, changed, options_told, said, unit_of

MOST_COLUMNS = 40
"""Of a histogram."""
REST = 0.002
"""The share of the largest, and of the smallest values that one column may hold together."""

ASKED_FOR = ("ends", "course", "wins", "buy_ins")
"""Boards whose figures are compared even where they do not differ: how surely they do not."""

_SHARES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999)

_INTERVALS = (
    "Behind each share and mean stands the interval that holds the true value in 95 of 100 such "
    "simulations. It is taken from how much the sessions differ: they are independent of each "
    "other, the hands of one are not. Of figures without any difference, one in twenty looks as if "
    "it had one: do not go by a single one that is just outside."
)
_PLAYERS = (
    "The players are programs. They go for the win by the tiles they see and make no mistakes in "
    "counting; people play more slowly, call less wisely and chase large hands. Trust comparisons "
    "of options more than any single figure."
)


def write(
    path: Path,
    one: Figures,
    other: Figures | None,
    found: Sequence[Difference],
    command: str,
    version: str,
) -> None:
    """Write the page; raises SuiteError where it cannot.

    `other`: what is compared. `command`: what makes the same page again. `version`: of the suite.
    """
    rules = one.plan.rules
    sections = [
        Section("At a glance", "", _glance(one)),
        _plan(one, version),
        *([_compared(one, other, found)] if other is not None else []),
        *(_board(board, one) for board in one.boards),
        *(_spread(spread) for spread in one.spreads),
        Section("How to read it", f"{_INTERVALS}\n\n{_PLAYERS}"),
    ]
    write_page(
        path,
        f"Simulated: {_both((rules.name_zh, rules.name_en))}",
        sections,
        lead=f"{one.hands:,} hands in {one.sessions:,} sessions, {rules.id} revision "
        f"{rules.revision}, seed {one.plan.seed}; {options_told(one.plan)}.\n\n"
        f"The same again: {command}",
    )


def _both(name: Text) -> str:
    return " ".join(filter(None, name))


def _glance(figures: Figures) -> list[Part]:
    boards = {board.id: board for board in figures.boards}

    def told(board_id: str, row: str, column: str) -> str:
        board = boards[board_id]
        estimate = board.cells[row, column].estimate
        plain = Estimate(estimate.value, None, None, estimate.of)
        found = next(one for one in board.rows if one.id == row)
        heads = next(one for one in board.columns if one.id == column)
        return said(plain, unit_of(board, found, heads))

    stakes = figures.plan.stakes
    lost = next(spread for spread in figures.spreads if spread.id == "lost")
    return [
        Headlines(
            [
                ("hands drawn", told("ends", "draw", "share")),
                ("hands won by self-draw", told("ends", "self_draw", "share")),
                ("the dealer wins", told("places", "dealer", "wins")),
                ("discards in a hand", told("course", "discards", "mean")),
                ("units of a win", told("wins", "won", "mean")),
                ("payments that the cap cut", told("wins", "capped", "mean")),
                ("units that the worst hand of 100 costs somebody", lost.quantile(0.99)),
                (
                    f"players bankrupt with a buy-in of {stakes.buy_in:,}",
                    told("buy_ins", str(stakes.buy_in), "bankrupt"),
                ),
            ]
        )
    ]


def _plan(figures: Figures, version: str) -> Section:
    plan = figures.plan
    stakes = plan.stakes
    played: list[tuple[str, str, str]] = [
        ("rule set", plan.rule_set, _both((plan.rules.name_zh, plan.rules.name_en))),
        ("revision", str(plan.revision), "Of the rule set: another may play and pay otherwise."),
        ("suite", version, "The version of fangcheng that played."),
        ("seed", str(plan.seed), "The same seed deals the same walls, whatever the options."),
        ("hands", f"{figures.hands:,}", "All of them count, also those after a bankruptcy."),
        ("sessions", f"{figures.sessions:,}", f"Of {plan.session_hands} hands at one table."),
        ("players", ", ".join(plan.players), "They move on a seat with each session."),
        ("a unit", f"{stakes.per_unit:,}", "What a unit of the rules is worth in coins."),
        ("buy-in", f"{stakes.buy_in:,}", "What each sits down with; nobody tops up."),
        ("least to go on", f"{stakes.minimum:,}", "Who has less after a hand is bankrupt."),
        (
            "loss cap",
            f"{stakes.loss_cap:,}" if stakes.loss_cap else "none",
            "What nobody loses more than in a hand.",
        ),
        ("fee", f"{stakes.fee:,}", "What each pays to the house with the first hand."),
    ]
    options = [
        (spec.id, shown(plan.options[spec.id]), shown(spec.default), spec.meaning)
        for spec in plan.rules.options
    ]
    return Section(
        "What was played",
        "" if figures.sessions >= LEAST_SESSIONS else TOO_FEW,
        [
            Grid(["what", "value", "meaning"], played),
            Grid(["option", "value", "default", "meaning"], options, "Options of the rule set"),
        ],
    )


def _compared(one: Figures, other: Figures, found: Sequence[Difference]) -> Section:
    beyond = [each for each in found if each.beyond_chance]
    rest = [each for each in found if not each.beyond_chance and each.board.id in ASKED_FOR]
    text = (
        f"The same walls, dealt once as above and once with {changed(one.plan, other.plan)}. "
        "Since both have the same chance, a difference is surer than the two figures beside it.\n\n"
        f"{len(beyond)} of {len(found)} figures differ by more than chance; without any effect, "
        f"about {max(1, round(len(found) / 20))} would be expected to."
    )
    parts: list[Part] = []
    for title, differences in (("What differs", beyond), ("What is not seen to differ", rest)):
        rows = [_difference_row(each) for each in differences]
        if rows:
            parts.append(Grid(["figure", "as above", "changed", "difference"], rows, title))
    return Section(f"With {changed(one.plan, other.plan)}", text, parts)


def _difference_row(each: Difference) -> tuple[str, str, str, str]:
    unit = unit_of(each.board, each.row, each.column)
    return (
        f"{each.board.heading}: {_both(each.row.name)}, {each.column.name}",
        _unbroken(said(each.one, unit)),
        _unbroken(said(each.other, unit)),
        _unbroken(said(each.more, unit, signed=True)),
    )


def _board(board: Board, figures: Figures) -> Section:
    parts: list[Part] = []
    share = next((column for column in board.columns if column.unit == "%"), None)
    if share is not None:
        bars = [
            (_both(row.name), estimate)
            for row in board.shown
            if (estimate := board.cells[row.id, share.id].estimate).value is not None
        ]
        parts.append(Bars(share.name, [_bar(name, estimate) for name, estimate in bars], "%"))
    if board.id == "buy_ins":
        parts.append(_ruin(figures))
    meanings = any(row.meaning for row in board.shown)
    parts.append(
        Grid(
            ["", *(column.name for column in board.columns), *(["meaning"] if meanings else [])],
            [_row(board, row, meanings=meanings) for row in board.shown],
        )
    )
    told = " ".join(f"{_capital(one.name)}: {one.meaning}" for one in board.columns)
    return Section(board.heading, f"{board.text}\n\n{told}", parts)


def _row(board: Board, row: Row, *, meanings: bool) -> list[str]:
    cells = [
        _unbroken(said(board.cells[row.id, column.id].estimate, unit_of(board, row, column)))
        for column in board.columns
    ]
    return [_both(row.name), *cells, *([row.meaning] if meanings else [])]


def _bar(
    name: str, estimate: Estimate
) -> tuple[str, float] | tuple[str, float, tuple[float, float]]:
    value = 100 * (estimate.value or 0)
    if estimate.low is None or estimate.high is None:
        return name, value
    return name, value, (100 * estimate.low, 100 * estimate.high)


def _ruin(figures: Figures) -> Lines:
    series = {
        f"buy-in {buy_in:,}": [(float(hand), 100 * share) for hand, share in enumerate(shares)]
        for buy_in, shares in figures.ruin.items()
    }
    return Lines("Sessions that had closed after so many hands", series, "hands", "%")


def _spread(spread: Spread) -> Section:
    if not spread.total:
        return Section(spread.heading, f"{spread.text}\n\nThere was none.")
    quantiles = [(f"{100 * share:g} %", spread.quantile(share)) for share in _SHARES]
    least, most = next(iter(spread.counts)), next(reversed(spread.counts))
    columns = [("least", least), *quantiles, ("most", most)]
    return Section(
        spread.heading,
        spread.text,
        [
            Histogram(
                f"{_capital(spread.of)} by {spread.unit}",
                columns_of(spread),
                spread.unit,
                f"% of {spread.of}",
            ),
            Grid(
                [f"share of {spread.of}", *(name for name, _ in columns)],
                [[f"{spread.unit} up to", *(value for _, value in columns)]],
            ),
        ],
    )


def columns_of(spread: Spread) -> list[tuple[str, float]]:
    """A spread as columns of equal width, in per cent; what is rare at an end stands together."""
    low, high = spread.quantile(REST), spread.quantile(1 - REST)
    if low is None or high is None:
        return []
    width = _round_up((high - low + 1) / MOST_COLUMNS)
    first = low // width
    counts = [0] * (high // width - first + 1)
    for value, count in spread.counts.items():
        counts[min(max(value // width - first, 0), len(counts) - 1)] += count
    names = [_interval(width * (first + place), width) for place in range(len(counts))]
    if next(iter(spread.counts)) < width * first:
        names[0] = f"up to {width * (first + 1) - 1:,}"
    if next(reversed(spread.counts)) >= width * (first + len(counts)):
        names[-1] = f"{width * (first + len(counts) - 1):,} or more"
    return [
        (name, round(100 * count / spread.total, 4))
        for name, count in zip(names, counts, strict=True)
    ]


def _interval(first: int, width: int) -> str:
    return f"{first:,}" if width == 1 else f"{first:,} to {first + width - 1:,}"


def _round_up(least: float) -> int:
    """The first of 1, 2, 5, 10, 20 ... that is not less."""
    power: int = 10 ** max(0, math.floor(math.log10(max(least, 1))))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= least)


def _unbroken(text: str) -> str:
    """An estimate that is broken before its interval if it must be, and nowhere else."""
    return text.replace(" ", "\N{NO-BREAK SPACE}").replace("\N{NO-BREAK SPACE}(", " (")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
