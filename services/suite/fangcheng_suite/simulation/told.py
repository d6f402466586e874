"""The figures for a terminal, and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fangcheng_suite.chosen import shown
from fangcheng_suite.render import Ink

from .estimates import LEAST_SESSIONS, Estimate
from .figures import Board, Column, Difference, Figures, Row, Spread
from .plan import Plan

QUANTILES = (0.5, 0.9, 0.99, 1.0)


def as_json(one: Figures, other: Figures | None, found: Sequence[Difference]) -> str:
    """All figures, for programs; `other`: what is compared."""
    told: dict[str, Any] = _as_dict(one)
    if other is not None:
        told["compared"] = _as_dict(other)
        told["differences"] = [
            {
                "board": one.board.id,
                "row": one.row.id,
                "column": one.column.id,
                **asdict(one.more),
                "beyond_chance": one.beyond_chance,
            }
            for one in found
        ]
    return json.dumps(told, ensure_ascii=False, indent=1)


def _as_dict(figures: Figures) -> dict[str, Any]:
    return {
        "plan": asdict(figures.plan),
        "hands": figures.hands,
        "sessions": figures.sessions,
        "boards": {
            board.id: {
                row.id: {
                    column.id: asdict(board.cells[row.id, column.id].estimate)
                    for column in board.columns
                }
                for row in board.rows
            }
            for board in figures.boards
        },
        "spreads": {
            spread.id: {
                "unit": spread.unit,
                "of": spread.of,
                "counts": [list(one) for one in spread.counts.items()],
            }
            for spread in figures.spreads
        },
    }


def as_text(
    one: Figures, other: Figures | None, found: Sequence[Difference], ink: Ink
) -> list[RenderableType]:
    """The figures for a terminal; of two plans, how they differ besides."""
    told: list[RenderableType] = [Text(headline(one, ink), "bold")]
    told += [Text(line, "dim") for line in played(one.plan)]
    if one.sessions < LEAST_SESSIONS:
        told.append(Text(TOO_FEW, "yellow"))
    for board in one.boards:
        told += [Text(), _board(board, ink)]
    told += [Text(), _spreads(one.spreads)]
    if other is not None:
        told += [Text(), _differences(one.plan, other.plan, found, ink)]
    return told


TOO_FEW = (
    f"Fewer than {LEAST_SESSIONS} sessions tell no intervals: play more --hands, or fewer "
    "--session-hands."
)


def headline(figures: Figures, ink: Ink) -> str:
    """What was played."""
    rules = figures.plan.rules
    name = rules.name_zh if ink.chinese else rules.name_en
    return f"{figures.hands:,} hands of {name}, seed {figures.plan.seed}"


def played(plan: Plan) -> list[str]:
    """All that the figures follow from, a line each."""
    stakes = plan.stakes
    more = [f"least to go on {stakes.minimum:,}"] if stakes.minimum else []
    more += [f"loss of a hand at most {stakes.loss_cap:,}"] if stakes.loss_cap else []
    more += [f"fee {stakes.fee:,}"] if stakes.fee else []
    return [
        f"{plan.rule_set} revision {plan.revision}; {options_told(plan)}",
        f"players {', '.join(plan.players)}; sessions of {plan.session_hands} hands; "
        + ", ".join([f"a unit is worth {stakes.per_unit:,}", f"buy-in {stakes.buy_in:,}", *more]),
    ]


def options_told(plan: Plan) -> str:
    """Every option and its value."""
    return ", ".join(f"{id} {shown(value)}" for id, value in plan.options.items()) or "no options"


def changed(one: Plan, other: Plan) -> str:
    """The options by which a plan differs from another."""
    return ", ".join(
        f"{id} {shown(value)}" for id, value in other.options.items() if one.options[id] != value
    )


def said(estimate: Estimate, unit: str, *, signed: bool = False) -> str:
    """An estimate with its interval, in as many digits as that is worth: `24.9 % (24.1 to 25.7)`.

    `signed`: of a difference.
    """
    if estimate.value is None:
        return "none"
    times = 100 if unit == "%" else 1
    digits = _digits(estimate, times)
    sign = "+" if signed else ""
    value = f"{times * estimate.value:{sign},.{digits}f}{' %' if unit == '%' else ''}"
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return value
    low, high = (f"{times * end:{sign},.{digits}f}" for end in (estimate.low, estimate.high))
    return f"{value} ({low} to {high})"


def _digits(estimate: Estimate, times: int) -> int:
    """Digits after the point: two that count of half the interval, or three of the value."""
    if estimate.low is not None and estimate.high is not None and estimate.high > estimate.low:
        half, counted = times * (estimate.high - estimate.low) / 2, 2
    else:
        half, counted = times * abs(estimate.value or 0), 3
    return min(4, max(0, counted - 1 - math.floor(math.log10(half)))) if half else 0


def unit_of(board: Board, row: Row, column: Column) -> str:
    """The unit of a figure."""
    return "%" if board.cells[row.id, column.id].is_share else column.unit


def _board(board: Board, ink: Ink) -> Table:
    table = _table(board.heading, [column.name for column in board.columns])
    for row in board.shown:
        cells = [
            said(board.cells[row.id, column.id].estimate, unit_of(board, row, column))
            for column in board.columns
        ]
        table.add_row(ink.both(*row.name), *cells)
    return table


def _spreads(spreads: Sequence[Spread]) -> Table:
    names = ["median", *(f"{100 * share:g} % up to" for share in QUANTILES[1:-1]), "most"]
    table = _table("How it spreads", names)
    for spread in spreads:
        found = [spread.quantile(share) for share in QUANTILES]
        cells = ["none" if value is None else f"{value:,}" for value in found]
        table.add_row(f"{spread.heading} ({spread.unit})", *cells)
    return table


def _differences(one: Plan, other: Plan, found: Sequence[Difference], ink: Ink) -> Table:
    beyond = [each for each in found if each.beyond_chance]
    heading = f"With {changed(one, other)}: {len(beyond)} of {len(found)} figures differ"
    table = _table(heading, ["now", "then", "difference"])
    for each in beyond:
        unit = unit_of(each.board, each.row, each.column)
        name = f"{ink.both(*each.row.name)}, {each.column.name}"
        more = said(each.more, unit, signed=True)
        table.add_row(name, said(each.one, unit), said(each.other, unit), more)
    return table


def _table(heading: str, columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", title_justify="left")
    table.add_column(heading, header_style="bold", overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table
