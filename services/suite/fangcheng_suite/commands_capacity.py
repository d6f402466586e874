"""The command `fangcheng capacity`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .capacity.model import Assumptions
from .terminal import make_console, told

capacity = typer.Typer()

# typer reads options from the signature, so that each field of the assumptions stands there once
# more; the defaults are theirs.
_DEFAULTS = Assumptions()


@capacity.command("capacity")
@told
def plan(
    players: Annotated[
        int, typer.Option(min=1, max=10**9, help="Players online at the busiest time.")
    ],
    prices: Annotated[
        Path | None,
        typer.Option(help="YAML file of prices: what thirty days cost.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    cells: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10**6,
            help="Suites that share the players; without it as few as their limits allow.",
            show_default=False,
        ),
    ] = None,
    seated_share: Annotated[
        float, typer.Option(min=0.01, max=1, help="Players at a table, as a share of those online.")
    ] = _DEFAULTS.seated_share,
    queued_share: Annotated[
        float, typer.Option(min=0, max=1, help="Players in a queue, likewise.")
    ] = _DEFAULTS.queued_share,
    turn_seconds: Annotated[
        float, typer.Option(min=0.1, max=600, help="From one discard at a table to the next.")
    ] = _DEFAULTS.turn_seconds,
    between_hands_seconds: Annotated[
        float, typer.Option(min=0, max=600, help="From the end of a hand to the next deal.")
    ] = _DEFAULTS.between_hands_seconds,
    discards_per_hand: Annotated[
        float, typer.Option(min=1, max=120, help="On average.")
    ] = _DEFAULTS.discards_per_hand,
    hands_per_table: Annotated[
        float, typer.Option(min=1, max=1_000, help="Until its players queue again.")
    ] = _DEFAULTS.hands_per_table,
    spectators_per_table: Annotated[
        float, typer.Option(min=0, max=10_000, help="On average.")
    ] = _DEFAULTS.spectators_per_table,
    analyses_per_hour: Annotated[
        float, typer.Option(min=0, max=100_000, help="Hands analysed for a player's client.")
    ] = _DEFAULTS.analyses_per_hour,
    reads_per_hour: Annotated[
        float, typer.Option(min=0, max=100_000, help="Balances that a player looks at.")
    ] = _DEFAULTS.reads_per_hour,
    average_load: Annotated[
        float,
        typer.Option(min=0.01, max=1, help="Players over a day, as a share of the busiest time's."),
    ] = _DEFAULTS.average_load,
    busy_share: Annotated[
        float, typer.Option(min=0.05, max=1, help="How busy a core may be; the rest is headroom.")
    ] = _DEFAULTS.busy_share,
    spare_replicas: Annotated[
        int, typer.Option(min=0, max=100, help="Of each service, beyond those needed.")
    ] = _DEFAULTS.spare_replicas,
) -> None:
    """Tell what so many players need: replicas, memory, databases, network, and what that costs.

    Rests on what was measured, and on assumptions of how people play: each is an option.
    `docs/operations/capacity.md` tells where every figure is from.

    Example: `fangcheng capacity --players 10000`
    """
    from .capacity.planning import Wish, show

    given = Assumptions(
        seated_share=seated_share,
        queued_share=queued_share,
        turn_seconds=turn_seconds,
        between_hands_seconds=between_hands_seconds,
        discards_per_hand=discards_per_hand,
        hands_per_table=hands_per_table,
        spectators_per_table=spectators_per_table,
        analyses_per_hour=analyses_per_hour,
        reads_per_hour=reads_per_hour,
        average_load=average_load,
        busy_share=busy_share,
        spare_replicas=spare_replicas,
    )
    show(make_console(), Wish(players, given, cells, prices), as_json=as_json)
