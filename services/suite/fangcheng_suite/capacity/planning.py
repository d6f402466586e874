"""`fangcheng capacity`: from what was asked to what is printed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fangcheng_suite.errors import SuiteError

from . import report
from .figures import costs
from .model import Assumptions, plan_for
from .prices import load_prices


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for."""

    players: int
    given: Assumptions
    cells: int | None = None
    prices: Path | None = None


def show(console: Console, wish: Wish, *, as_json: bool) -> None:
    """Plan and print; raises SuiteError."""
    if wish.given.seated_share + wish.given.queued_share > 1:
        raise SuiteError(
            "--seated-share and --queued-share are more than 1 together",
            "They are shares of the same players.",
        )
    prices = load_prices(wish.prices) if wish.prices is not None else None
    measured = costs()
    plan = plan_for(wish.players, wish.given, measured, wish.cells)
    if as_json:
        console.print_json(report.as_json(plan, wish.given, prices))
        return
    console.print(Text(report.heading(plan), "bold"))
    if caution := report.caution(plan):
        console.print(caution)
    for section in (
        *report.sections(plan, measured, prices),
        report.assumed(wish.given),
    ):
        console.print()
        console.print(Text(section.title, "bold"))
        console.print(_table(section))
        if section.note:
            console.print(section.note)


def _table(section: report.Section) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in section.columns:
        table.add_column(column, justify="left" if column in _TEXT else "right")
    for row in section.rows:
        table.add_row(*row)
    return table


_TEXT = frozenset({"what", "service", "option", "why"})
