"""What a dashboard is to us: rows of panels, each with queries and a sentence for who reads it.

The dashboards are written in these words; ``grafana.py`` makes Grafana's of them, ``page.py`` the
page of the documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

FULL_WIDTH = 24
"""Columns of Grafana's grid."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel; the legend names each of its series, by their labels."""

    promql: str
    legend: str


@dataclass(frozen=True, slots=True)
class Link:
    """A way from a panel to another dashboard, or to one panel there; keeps time and variables."""

    uid: str
    panel: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a click on a series chooses at another dashboard: a variable, by the series' label."""

    uid: str
    variable: str
    label: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a value begins to be looked at, and where somebody must act.

    Where ``act`` is below ``look``, low values are the bad ones. The value itself is still good.
    """

    look: float
    act: float


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. ``tells`` says in a sentence or two what it shows and what to do."""

    title: str
    tells: str
    unit: str
    queries: tuple[Query, ...]
    kind: Literal["stat", "series", "heatmap"] = "series"
    width: int = 8
    height: int = 7
    limits: Limits | None = None
    promise: float | None = None
    """A line in the graph that values promise to stay under."""
    highest: float | None = None
    stacked: bool = False
    to: Link | None = None
    chooses: Choice | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading, from the left, wrapped where a line is full."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """What may be chosen above a dashboard: the values of a label of a metric."""

    name: str
    label: str
    metric: str
    of: str

    @property
    def query(self) -> str:
        """Grafana's query for the values."""
        return f"label_values({self.metric}, {self.of})"


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard."""

    uid: str
    title: str
    tells: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    def panels(self) -> Iterator[tuple[int, Panel]]:
        """All panels with their numbers in Grafana, by which links find them."""
        yield from enumerate((panel for row in self.rows for panel in row.panels), 1)

    def variable(self, name: str) -> Variable:
        """A variable by its name; ``ValueError`` where there is none."""
        (found,) = (variable for variable in self.variables if variable.name == name)
        return found

    def number(self, title: str) -> int:
        """The number of a panel; ``ValueError`` where there is not exactly one of the title."""
        (found,) = (number for number, panel in self.panels() if panel.title == title)
        return found


def stat(
    title: str,
    tells: str,
    unit: str,
    promql: str,
    limits: Limits | None = None,
    *,
    to: Link | None = None,
    width: int = 4,
) -> Panel:
    """One figure as it is now, with a line of how it came about."""
    queries = (Query(promql, title),)
    return Panel(title, tells, unit, queries, "stat", width, 4, limits=limits, to=to)
