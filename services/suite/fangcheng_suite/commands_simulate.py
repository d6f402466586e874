"""The command `fangcheng simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .terminal import make_console, make_ink, told

MOST_COINS = 10**12


@told
def simulate(
    rule_set: Annotated[
        str | None,
        typer.Option(
            help="The rule set; `fangcheng rules` tells which there are. Default: baishan_kele.",
            show_default=False,
        ),
    ] = None,
    hands: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many hands.")] = 1_000,
    workers: Annotated[
        int,
        typer.Option(min=1, max=256, help="Processes that play. The figures are always the same."),
    ] = 1,
    players: Annotated[
        str,
        typer.Option(
            help="Who plays: first_legal, efficient or careful; one for all seats, or four with "
            "commas."
        ),
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
    pool: Annotated[
        str | None,
        typer.Option(
            help="Play a pool of matchmaking: its rule set, options, hands and stakes, except for "
            "what else is given here.",
            show_default=False,
        ),
    ] = None,
    pools: Annotated[
        Path | None,
        typer.Option(
            envvar="FANGCHENG_MATCHMAKING_POOLS",
            metavar="FILE",
            help="The file of pools. Default: the one that comes with matchmaking.",
            show_default=False,
        ),
    ] = None,
    stake: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000_000,
            help="What a unit of the rules is worth. Default: 10.",
            show_default=False,
        ),
    ] = None,
    buy_in: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_COINS,
            help="What each player sits down with. Default: 5000.",
            show_default=False,
        ),
    ] = None,
    minimum: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MOST_COINS,
            help="Who has less after a hand cannot go on. Default: 0.",
            show_default=False,
        ),
    ] = None,
    loss_cap: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MOST_COINS,
            help="What nobody loses more than in a hand. Default: 0, no cap.",
            show_default=False,
        ),
    ] = None,
    fee: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MOST_COINS,
            help="What each pays to the house with the first hand. Default: 0.",
            show_default=False,
        ),
    ] = None,
    session_hands: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000,
            help="Hands of a session at one table. Default: 16.",
            show_default=False,
        ),
    ] = None,
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
    from .simulating import StakesGiven, Wish
    from .simulating import simulate as run_simulation

    wish = Wish(
        rules=rule_set,
        pool=pool,
        pools=pools,
        options=option or (),
        compared=compare or (),
        players=players,
        hands=hands,
        session_hands=session_hands,
        seed=seed,
        stakes=StakesGiven(stake, buy_in, minimum, loss_cap, fee),
        workers=workers,
        report=report,
        parquet=parquet,
        as_json=json,
    )
    run_simulation(wish, make_console(), make_ink())
