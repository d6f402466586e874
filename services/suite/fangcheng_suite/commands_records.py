"""The commands for finished hands: `fangcheng record`, `replay` and `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .terminal import State, access_of, make_console, make_ink, run, told

records = typer.Typer()

Record = Annotated[
    str,
    typer.Argument(
        metavar="TABLE|FILE",
        help="The table's id or the beginning of it; or a file that `record --json` has written.",
    ),
]
Hand = Annotated[
    int | None, typer.Argument(min=1, help="The hand's number, from 1; not with a file.")
]


@records.command()
@told
def record(
    table: Annotated[str, typer.Argument(help="The table's id or the beginning of it.")],
    hand: Annotated[int, typer.Argument(min=1, help="The hand's number, from 1.")],
    json: Annotated[bool, typer.Option("--json", help="As JSON, with everything in it.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write it into this file.")
    ] = None,
    state: State = None,
) -> None:
    """Print the record of a hand that has ended, in words or as JSON.

    Example: `fangcheng record 01JD 3 --json -o hand.json`
    """
    from .recording import export

    access = access_of(state)
    run(lambda: export(access, make_console(), make_ink(), table, hand, as_json=json, file=out))


@records.command()
@told
def replay(
    record: Record,
    hand: Hand = None,
    speed: Annotated[float, typer.Option(min=0.1, max=100, help="Steps a second, roughly.")] = 1.5,
    step: Annotated[bool, typer.Option("--step", help="Wait for Enter before every step.")] = False,
    state: State = None,
) -> None:
    """Show a finished hand step by step, with every tile open, until its end or Ctrl-C.

    Without a terminal a line is printed for each event.

    Example: `fangcheng replay 01JD 3 --speed 4`
    """
    from .recording import found
    from .replaying import show_replay

    async def show() -> None:
        told = await found(lambda: access_of(state), record, hand)
        await show_replay(told, make_console(), make_ink(), speed=speed, step=step)

    run(show)


@records.command()
@told
def verify(
    record: Record,
    hand: Hand = None,
    commitment: Annotated[
        str,
        typer.Option(
            metavar="HEX",
            help="What was told when the table was made. Default: what table or file tell.",
        ),
    ] = "",
    state: State = None,
) -> None:
    """Check a finished hand: its shuffle, every step, what it scored, and what was paid.

    Example: `fangcheng verify 01JD 3`
    """
    from .recording import check

    run(lambda: check(lambda: access_of(state), make_console(), record, hand, commitment))
