"""Charts as places on a canvas that is a hundred wide and a hundred high, whatever its size.

So texts keep their size on a phone, and only what is drawn stretches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .parts import Bars, Histogram, Lines, Value

FEW = 6
"""Columns whose names all stand below them, in several lines where need be."""
MOST_DOTS = 40
"""Points of a line that are shown one by one."""
LEAST_SPAN = 1e-200
"""Less than that is nothing, and reckoning with it would end below what a float can hold."""
LEAST_SHOWN = 0.4
"""Hundredths that a column of anything but zero is high at least, so that it is seen."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark at an axis, in hundredths from the left or from the top."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Track:
    """A bar from `left`, `width` wide, and the interval that its figure is believed to lie in."""

    name: str
    told: str
    left: float
    width: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class BarsDrawn:
    """Bars; `zero`: where they begin. `largest`: letters of the longest figure."""

    tracks: list[Track]
    zero: float
    largest: int
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class Line:
    """A line by its points, `x,y` each; dots with what they say, where they are few."""

    name: str
    points: str
    dots: list[tuple[float, float, str]]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a histogram."""

    left: float
    width: float
    top: float
    told: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines or columns between two axes. `rows`: the same as a table, the first cell is text."""

    x_ticks: list[Tick]
    y_ticks: list[Tick]
    lines: list[Line]
    bars: list[Column]
    columns: list[str]
    rows: list[list[str]]
    few: bool = False
    """So few columns that each has its name below it."""


def written(value: Value) -> str:
    """A number for people: 1,204; 24.9; 0.0031. A text as it is."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or value == 0:
        return f"{int(value):,}".replace("-", "−")
    if not math.isfinite(value):
        return "–"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def with_unit(value: Value, unit: str) -> str:
    """A figure and its unit; a per cent sign and the like stand close to it."""
    if not unit:
        return written(value)
    return f"{written(value)}{'' if unit == '%' else ' '}{unit}"


def step(span: float, most: int) -> float:
    """The distance of ticks, `most` over a span: the first of 1, 2, 5, 10, ... and their tenths."""
    least = max(span, LEAST_SPAN) / most
    power: float = 10 ** math.floor(math.log10(least))
    # A whole number of steps is no reason for the next larger one, whatever the rounding.
    return next(times * power for times in (1, 2, 5, 10) if times * power >= least * (1 - 1e-9))


def draw_bars(chart: Bars) -> BarsDrawn:
    """Where bars are; all of them fit, with their intervals."""
    bars = [(bar[0], bar[1], bar[2] if len(bar) == 3 else None) for bar in chart.bars]
    ends = [0.0, *(value for _, value, _ in bars)]
    ends += [end for _, _, interval in bars if interval for end in interval]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0

    def x(value: float) -> float:
        return round(100 * (value - low) / span, 3)

    tracks, rows = [], []
    for name, value, interval in bars:
        left, right = sorted((x(0), x(value)))
        told = with_unit(value, chart.unit)
        between = (x(interval[0]), x(interval[1])) if interval else None
        tracks.append(Track(name, told, left, round(right - left, 3), between))
        ends_told = [with_unit(end, chart.unit) for end in interval] if interval else ["", ""]
        rows.append([name, told, *ends_told])
    estimated = any(interval for _, _, interval in bars)
    columns = ["", "", "from", "to"] if estimated else ["", ""]
    longest = max((len(track.told) for track in tracks), default=0)
    shown = [row[: len(columns)] for row in rows]
    return BarsDrawn(tracks, x(0), longest, columns, shown)


def draw_lines(chart: Lines) -> Plot:
    """Where lines are, from zero to a round figure above the highest point."""
    points = [point for line in chart.series.values() for point in line]
    first = min((x for x, _ in points), default=0.0)
    last = max((x for x, _ in points), default=1.0)
    width = last - first if last - first > LEAST_SPAN else 1.0
    top, y_ticks = _up_to(max((y for _, y in points), default=1.0))

    def place(x: float, y: float) -> tuple[float, float]:
        return round(100 * (x - first) / width, 2), round(100 * (1 - y / top), 2)

    lines = []
    for name, line in chart.series.items():
        placed = [place(x, y) for x, y in line]
        dots = [
            (*at, f"{name}: {with_unit(y, chart.y_unit)}, {with_unit(x, chart.x_unit)}")
            for at, (x, y) in zip(placed, line, strict=True)
        ]
        lines.append(
            Line(
                name,
                " ".join(f"{x:g},{y:g}" for x, y in placed),
                dots if len(dots) <= MOST_DOTS else [],
            )
        )
    between = step(width, 7)
    ticks = [
        number * between
        for number in range(math.ceil(first / between), math.floor(last / between) + 1)
    ]
    x_ticks = [Tick(place(x, 0)[0], written(x)) for x in ticks]
    by_name = [dict(line) for line in chart.series.values()]
    rows = [
        [written(x), *(written(line.get(x)) if x in line else "" for line in by_name)]
        for x in sorted({x for x, _ in points})
    ]
    return Plot(x_ticks, y_ticks, lines, [], [chart.x_unit, *chart.series], rows)


def draw_histogram(chart: Histogram) -> Plot:
    """Columns side by side; of many names only some are written."""
    count = len(chart.counts)
    top, y_ticks = _up_to(max((value for _, value in chart.counts), default=1.0))
    wide = 100 / max(count, 1)
    bars, x_ticks, rows = [], [], []
    names = [written(name) for name, _ in chart.counts]
    few = count <= FEW
    # As many as stand beside one another on a phone.
    room = max(1, min(10, 36 // max(map(len, names), default=1)))
    every = 1 if few else math.ceil(count / room)
    for number, (name, (_, value)) in enumerate(zip(names, chart.counts, strict=True)):
        told = with_unit(value, chart.y_unit)
        height = max(100 * value / top, LEAST_SHOWN if value else 0)
        left = round(number * wide + wide * 0.08, 3)
        bars.append(Column(left, round(wide * 0.84, 3), round(100 - height, 3), f"{name}: {told}"))
        if number % every == 0:
            x_ticks.append(Tick(round((number + 0.5) * wide, 2), name))
        rows.append([name, told])
    return Plot(x_ticks, y_ticks, [], bars, [chart.x_unit, chart.y_unit], rows, few)


def _up_to(highest: float) -> tuple[float, list[Tick]]:
    """The round figure at the top of an axis from zero, and its ticks."""
    highest = highest if highest > LEAST_SPAN else 1.0
    between = step(highest, 5)
    steps = math.ceil(highest / between - 1e-9)
    top = steps * between
    return top, [
        Tick(round(100 * (1 - number / steps), 2), written(number * between))
        for number in range(steps + 1)
    ]


def is_number(rows: Sequence[Sequence[Value]], column: int) -> bool:
    """Whether a column has numbers, and nothing else, in it."""
    cells = [row[column] for row in rows if row[column] is not None]
    return bool(cells) and not any(isinstance(cell, str) for cell in cells)
