"""The command `fangcheng logs`."""

from __future__ import annotations

import contextlib
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from .state import StateFolder, default_folder
from .terminal import State, make_console, told


@told
def logs(
    table: Annotated[
        str,
        typer.Option(
            metavar="ID", help="The table whose story is told; its first characters will do."
        ),
    ],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILES|FOLDER|-",
            help="Logs of the services, or folders of them; - for standard input. Default: those "
            "of the suite that `fangcheng up` runs here.",
            show_default=False,
        ),
    ] = None,
    hand: Annotated[int | None, typer.Option(min=1, help="This hand alone.")] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Nothing before: 90s, 10m, 2h, 3d ago, or a time as ISO 8601 has it."),
    ] = None,
    ids: Annotated[bool, typer.Option("--ids", help="Show ids of requests and traces.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as the table goes on, until Ctrl-C.")
    ] = False,
    state: State = None,
) -> None:
    """Tell one table's story, out of the logs of all services.

    Joins what names the table with what it came from: its match, the tickets, the calls and the
    settlements. By time, in words.

    Example: `fangcheng logs --table 01a22d1de0af76999b730bc968d05252 --hand 2`
    """
    from .telling import since as begin
    from .telling import tell

    if not paths:
        paths = [StateFolder(state or default_folder()).logs]
    try:
        # Ctrl-C is how following ends.
        with contextlib.suppress(KeyboardInterrupt) if follow else contextlib.nullcontext():
            tell(
                make_console(),
                table,
                paths,
                hand=hand,
                begin=None if since is None else begin(since, datetime.now(UTC)),
                ids=ids,
                follow=follow,
            )
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
