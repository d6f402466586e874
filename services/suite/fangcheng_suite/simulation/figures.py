"""What is told of hands: boards of figures, each said what it is, and spreads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .estimates import Estimate, Measure, difference
from .plan import Plan

Text = tuple[str, str]
"""In Chinese and in English."""


@dataclass(frozen=True, slots=True)
class Column:
    """What a board tells of each of its rows."""

    id: str
    name: str
    meaning: str
    unit: str = ""
    """'%' for a share, else what is counted."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a board tells of."""

    id: str
    name: Text
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Board:
    """Figures of one kind."""

    id: str
    heading: str
    text: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    cells: Mapping[tuple[str, str], Measure]
    """By the ids of row and column."""
    hides_zeros: bool = False
    """Rows of which nothing was seen say nothing."""

    @property
    def shown(self) -> list[Row]:
        """The rows that say something."""
        return [
            row
            for row in self.rows
            if not self.hides_zeros
            or any(self.cells[row.id, column.id].over.any() for column in self.columns)
        ]


@dataclass(frozen=True, slots=True)
class Spread:
    """How often each value was seen."""

    id: str
    heading: str
    text: str
    unit: str
    of: str
    """What was counted: 'hands', 'wins'."""
    counts: Mapping[int, int]
    """By value, ascending."""

    @property
    def total(self) -> int:
        """How many there were."""
        return sum(self.counts.values())

    def quantile(self, share: float) -> int | None:
        """The least value that at least this share does not go beyond; None: there is none."""
        rank, seen = share * self.total, 0
        for value, count in self.counts.items():
            seen += count
            if seen >= rank:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Figures:
    """All that is told of a plan."""

    plan: Plan
    hands: int
    sessions: int
    boards: tuple[Board, ...]
    spreads: tuple[Spread, ...]
    ruin: Mapping[int, Sequence[float]]
    """By buy-in: the share of sessions that had closed after no, one, two ... hands."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of two plans that were played with the same walls."""

    board: Board
    row: Row
    column: Column
    one: Estimate
    other: Estimate
    more: Estimate
    """How much more the other has."""

    @property
    def beyond_chance(self) -> bool:
        """Whether the interval of the difference leaves zero out."""
        low, high = self.more.low, self.more.high
        return low is not None and high is not None and not low <= 0 <= high


def differences(one: Figures, other: Figures) -> list[Difference]:
    """What there is of both, nothing left out but what neither has seen at all."""
    return [
        Difference(board, row, column, here.estimate, there.estimate, difference(here, there))
        for board, beside in zip(one.boards, other.boards, strict=True)
        for row in board.rows
        for column in board.columns
        if (here := board.cells[row.id, column.id]).over.any()
        | (there := beside.cells[row.id, column.id]).over.any()
    ]
