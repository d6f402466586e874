"""The command `fangcheng strength`."""

from __future__ import annotations

from typing import Annotated

import typer

from .terminal import make_console, make_ink, told


@told
def strength(
    rule_set: Annotated[
        list[str] | None,
        typer.Option(help="A rule set; repeatable. Default: all.", show_default=False),
    ] = None,
    hands: Annotated[
        int, typer.Option(min=4, max=1_000_000, help="Hands of each pair: two of each wall.")
    ] = 2_000,
    seed: Annotated[int, typer.Option(help="The same seed deals the same walls.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Measure the bots' strengths against each other, on the same walls from changed seats.

    Example: `fangcheng strength --rule-set jintan --hands 500`
    """
    from .strengths import as_json, as_table, measured

    found = measured(rule_set or [], hands, seed)
    if json:
        typer.echo(as_json(found))
    else:
        make_console().print(as_table(found, make_ink()), soft_wrap=True)
