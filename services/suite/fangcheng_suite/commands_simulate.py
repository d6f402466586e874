"""The command `fangcheng simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .terminal import make_console, make_ink, told


@told
def simulate(
    rule_set: Annotated[
        str, typer.Option(help="The rule set; `fangcheng rules` tells which there are.")
    ] = "baishan_kele",
    hands: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many hands.")] = 1_000,
    workers: Annotated[
        int,
        typer.Option(min=1, max=256, help="Processes that play. The figures are always the same."),
    ] = 1,
    players: Annotated[
        str, typer.Option(help="Who plays: one kind, or four with commas.")
    ] = "efficient",
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the rule set: `cap=0`; repeatable.")
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            help="Play the same walls again with this option changed; tell what differs by more "
            "than chance; repeatable."
        ),
    ] = None,
    stake: Annotated[
        int, typer.Option(min=1, max=1_000_000_000, help="What a unit of the rules is worth.")
    ] = 10,
    buy_in: Annotated[
        int, typer.Option(min=1, max=10**12, help="What each player sits down with.")
    ] = 5_000,
    minimum: Annotated[
        int, typer.Option(min=0, max=10**12, help="Who has less after a hand cannot go on.")
    ] = 0,
    loss_cap: Annotated[
        int, typer.Option(min=0, max=10**12, help="What nobody loses more than in a hand; 0: none.")
    ] = 0,
    session_hands: Annotated[
        int, typer.Option(min=1, max=1_000, help="Hands of a session at one table.")
    ] = 16,
    seed: Annotated[int, typer.Option(help="The same seed deals the same walls.")] = 1,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with charts: `out.html`."),
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a row for each hand: `out.parquet`."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Play many hands of a rule set and tell what comes of them: for whoever tunes caps and stakes.

    Who wins by seat and dealer, fan, payments, length, drawn hands, and who can no longer pay at a
    stake. No service has to run. Ctrl-C tells what was played by then. `docs/simulate.md` says what
    each figure is.

    Example: `fangcheng simulate --rule-set jintan --hands 20000 --workers 2 --report jintan.html`
    """
    from .simulating import Wish
    from .simulating import simulate as run_simulation
    from .simulation.plan import Stakes

    wish = Wish(
        rules=rule_set,
        options=option or (),
        compared=compare or (),
        players=players,
        hands=hands,
        session_hands=session_hands,
        seed=seed,
        stakes=Stakes(stake, buy_in, minimum, loss_cap),
        workers=workers,
        report=report,
        parquet=parquet,
        as_json=json,
    )
    run_simulation(wish, make_console(), make_ink())
