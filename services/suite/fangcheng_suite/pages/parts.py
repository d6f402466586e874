"""What a page is made of: plain data, which `writing` draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = str | int | float | None
"""A text as it is; a number, which is written with separators; nothing."""
Bar: TypeAlias = tuple[str, float] | tuple[str, float, tuple[float, float]]
"""A name, its figure and, where it is an estimate, the interval that it is believed to lie in."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The few figures that matter most, large: each with what it is."""

    figures: Sequence[tuple[str, Value]]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: columns of numbers stand to the right. Each row has as many cells as columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    title: str = ""

    def __post_init__(self) -> None:
        if wrong := [row for row in self.rows if len(row) != len(self.columns)]:
            raise ValueError(f"{wrong[0]} is no row of {len(self.columns)} columns")


@dataclass(frozen=True, slots=True)
class Bars:
    """Figures side by side, each a bar with its name; below zero they go to the left."""

    title: str
    bars: Sequence[Bar]
    unit: str = ""
    """Of all of them, as it is written behind a figure: `%`, `ms`, `units a hand`."""


@dataclass(frozen=True, slots=True)
class Lines:
    """How figures go with something, time for instance: a line for each name; from zero on."""

    title: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    """Points of each line, the smaller x first. Eight lines at most can be told apart."""
    x_unit: str = ""
    y_unit: str = ""

    def __post_init__(self) -> None:
        if len(self.series) > 8:
            raise ValueError(f"{self.title}: {len(self.series)} lines, 8 can be told apart")


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often each of many things in order happened, as columns."""

    title: str
    counts: Sequence[tuple[str | int | float, float]]
    """What, and how often or how large a share, in the order in which they stand."""
    x_unit: str = ""
    y_unit: str = ""


Part: TypeAlias = Figures | Grid | Bars | Lines | Histogram


@dataclass(frozen=True, slots=True)
class Section:
    """Something that a page tells, under a heading."""

    heading: str
    text: str = ""
    """Paragraphs, an empty line between two."""
    parts: Sequence[Part] = ()
