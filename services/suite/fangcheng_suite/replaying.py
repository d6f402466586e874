"""`fangcheng replay`: a finished hand in the terminal, step by step, every tile open."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from fangcheng.table.v1 import records_pb2

from .recording import opened
from .render import Ink
from .verify import followed
from .watching import drawn_table, result_lines, told


async def show_replay(
    record: records_pb2.HandRecord, console: Console, ink: Ink, *, speed: float, step: bool
) -> None:
    """Draw the table after each event; without a terminal print a line for each.

    `speed`: steps a second. `step`: wait for Enter before each instead. Raises SuiteError where the
    record is of no hand.
    """
    steps: list[tuple[int, list[Text], RenderableType]] = []
    with followed():
        view = opened(record)
        for event in record.events:
            view.apply(event)
            if lines := told(event, view, ink):
                picture = drawn_table(view, ink) if console.is_terminal else Text()
                steps.append((event.number, lines, picture))
        result = result_lines(view, ink)
    if not console.is_terminal:
        for _, lines, _ in steps:
            for line in lines:
                console.print(line)
        return
    wait = _enter if step else _pause(1.0 / speed)
    count = len(record.events)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as screen:
        for number, lines, picture in steps:
            foot = Text(f"{number} of {count}  ", "dim").append_text(lines[0])
            if step:
                foot.append("   Enter: on, Ctrl-C: end", "dim")
            screen.update(Group(picture, Text(), foot), refresh=True)
            await wait()
    for line in result:
        console.print(line)


def _pause(seconds: float) -> Callable[[], Awaitable[None]]:
    return lambda: asyncio.sleep(seconds)


async def _enter() -> None:
    """Until a line was typed. Nothing is left behind where it is cancelled meanwhile."""
    loop = asyncio.get_running_loop()
    typed = asyncio.Event()
    loop.add_reader(sys.stdin, typed.set)
    try:
        await typed.wait()
        sys.stdin.readline()
    finally:
        loop.remove_reader(sys.stdin)
