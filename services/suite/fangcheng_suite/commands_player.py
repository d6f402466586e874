"""The commands for personal data: `fangcheng player`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .terminal import State, access_of, make_console, run, told

player = typer.Typer(no_args_is_help=True, help="What the suite keeps of a player.")

PlayerId = Annotated[str, typer.Argument(metavar="ID", help="The player's id.")]


@player.command()
@told
def export(
    player_id: PlayerId,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write; none yet.")],
    state: State = None,
) -> None:
    """Write everything that is kept of a player to a file, for him to have: a JSON object a line.

    Example: `fangcheng player export ming --out ming.jsonl`
    """
    from .players import export as write

    access = access_of(state)
    run(lambda: write(access, make_console(), player_id, out))


@player.command()
@told
def erase(
    player_id: PlayerId,
    reason: Annotated[
        str, typer.Option(help="For the log: a case or a number, nothing that names the person.")
    ],
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY[=VALUE]",
            help="A label that names the person, to go wherever he took part. Repeat it for more.",
        ),
    ] = None,
    keep_texts: Annotated[
        bool,
        typer.Option(help="Leave memos, and reasons of operators: where books must stay whole."),
    ] = False,
    request_id: Annotated[
        str, typer.Option(metavar="ID", help="Of an erasure that failed, to finish it.")
    ] = "",
    state: State = None,
) -> None:
    """Take what is personal of a player out of every database; money and hands stay as they are.

    He must be in no queue, and every table at which he sat be over.

    Example: `fangcheng player erase ming --label nickname --reason "request 81"`
    """
    from fangcheng_kit.ids import new_id

    from .players import erase as take_out

    access = access_of(state)
    run(
        lambda: take_out(
            access,
            make_console(),
            player_id,
            request_id or new_id(),
            label or [],
            keep_texts=keep_texts,
            reason=reason,
        )
    )
