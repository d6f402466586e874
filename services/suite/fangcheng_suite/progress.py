"""How far a command has come: one bar on the error output for everything that takes its time.

    with progress("Reading hands", total=len(hands)) as bar:
        for hand in hands:
            ...
            bar.advance()

It shows only in a terminal, and goes when the work is done: what a command prints stays as it is
for whoever reads it through a pipe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console


class Bar(Protocol):
    """What the work tells while it goes on."""

    def advance(self, count: float = 1) -> None:
        """So much more is done."""

    def at(self, done: float, total: float | None = None) -> None:
        """So much is done in all; `total`: of how much, where that is known by now."""

    def say(self, text: str) -> None:
        """What is being done now."""

    def above(self, console: Console, part: object) -> None:
        """Print something on a console without breaking the bar."""


class Silent:
    """Nobody looks."""

    def advance(self, count: float = 1) -> None:
        """Nothing is shown."""

    def at(self, done: float, total: float | None = None) -> None:
        """Nothing is shown."""

    def say(self, text: str) -> None:
        """Nothing is shown."""

    def above(self, console: Console, part: object) -> None:
        """Print it."""
        console.print(part)


@contextmanager
def progress(
    what: str, *, total: float | None = None, unit: str = "", console: Console | None = None
) -> Iterator[Bar]:
    """Show how far the work in the block has come.

    `total`: how much there is to do, where that is known; else it shows what is done and for how
    long. `unit`: what is counted, `hands`, `bytes` or `seconds`; empty: nothing is.
    `console`: another than the error output's, for tests.
    """
    console = console or Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield Silent()
        return
    # Here, and not above: most commands are done at once.
    from .showing import Shown

    with Shown(console, what, total, unit) as bar:
        yield bar


def stages(bar: Bar, things: str) -> Callable[[str, int, int], None]:
    """For work that is done in several goes over many things: what is done with them, to how many,
    of how many."""

    def show(what: str, done: int, total: int) -> None:
        bar.say(f"{things} {what}")
        bar.at(done, total)

    return show
