"""The bar of `progress` in a terminal."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text


class Shown:
    """A line: what is done, how much of it, since when and until when."""

    def __init__(self, console: Console, what: str, total: float | None, unit: str) -> None:
        columns: list[ProgressColumn] = [
            SpinnerColumn("line"),  # which every terminal can show
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),  # a line of eighty columns has room for the words
            *([_Count(unit)] if unit else []),
            TimeElapsedColumn(Column(no_wrap=True)),
        ]
        if unit:
            columns.append(TimeRemainingColumn(table_column=Column(no_wrap=True)))
        # What is printed meanwhile goes where it was meant to go, and not to the error output.
        self._bar = Progress(
            *columns,
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task(escape(what), total=total)

    def __enter__(self) -> Shown:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def advance(self, count: float = 1) -> None:
        """So much more is done."""
        self._bar.advance(self._task, count)

    def at(self, done: float, total: float | None = None) -> None:
        """So much is done in all; `total`: of how much, where that is known by now."""
        self._bar.update(self._task, completed=done, total=total)

    def say(self, text: str) -> None:
        """What is being done now."""
        self._bar.update(self._task, description=escape(text))

    def above(self, console: Console, part: object) -> None:
        """Print something on a console without breaking the bar."""
        self._bar.stop()
        console.print(part)
        self._bar.start()


class _Count(ProgressColumn):
    """12,000 of 100,000 hands."""

    def __init__(self, unit: str) -> None:
        super().__init__(Column(no_wrap=True))
        self._unit = unit

    def render(self, task: Task) -> Text:
        """What is done, and of how much where that is known."""
        whole = "" if task.total is None else f" of {self._told(task.total)}"
        unit = "" if self._unit == "bytes" else f" {self._unit}"
        return Text(f"{self._told(task.completed)}{whole}{unit}", "dim")

    def _told(self, count: float) -> str:
        return decimal(int(count)) if self._unit == "bytes" else f"{int(count):,}"
