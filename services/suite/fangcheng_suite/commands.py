"""The commands of `fangcheng`: what each is told; groups of them stand in modules of their own.

What a command needs is imported in it: `--help` and what needs no service answer at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from . import (
    commands_bots,
    commands_call,
    commands_capacity,
    commands_certificates,
    commands_console,
    commands_doctor,
    commands_integrity,
    commands_journal,
    commands_load,
    commands_logs,
    commands_play,
    commands_player,
    commands_records,
    commands_simulate,
    commands_strength,
    commands_token,
    commands_wallet,
)
from .cli import EXIT_INTERRUPTED
from .commands_bots import Strength, Think
from .state import default_folder
from .terminal import State, access_of, make_console, make_ink, run, told

app = typer.Typer(
    name="fangcheng",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Fangcheng 方城: gRPC services for regional Chinese mahjong, run on this computer.\n\n"
    "Begin with `fangcheng demo`, then `fangcheng up`.",
)
app.add_typer(commands_records.records)
app.add_typer(commands_bots.bots)
app.add_typer(commands_call.call)
app.add_typer(commands_play.play)
app.add_typer(commands_capacity.capacity)
app.add_typer(commands_console.console)
app.add_typer(commands_load.load)
app.add_typer(commands_doctor.doctor)
app.add_typer(commands_wallet.ledger, name="ledger")
app.add_typer(commands_journal.journal, name="journal")
app.add_typer(commands_player.player, name="player")
app.add_typer(commands_integrity.integrity, name="integrity")
app.add_typer(commands_wallet.wallet, name="wallet")
app.command()(commands_logs.logs)
app.command()(commands_certificates.dev_certs)
app.command()(commands_simulate.simulate)
app.command()(commands_strength.strength)
app.command()(commands_token.token)
app.command()(commands_token.dev_keys)


@app.command()
@told
def demo() -> None:
    """Play hands of every rule set between four bots, then check the books.

    Starts every service as a process of its own, queues four bots, shows each hand's result, audits
    the ledger and verifies shuffles. Takes less than a minute and leaves nothing behind.

    Example: `fangcheng demo`
    """
    from .demo import Demo

    run(Demo(make_console(), make_ink()).run, EXIT_INTERRUPTED)


@app.command()
@told
def up(
    evaluators: Annotated[
        int, typer.Option(min=1, max=64, help="Processes of the evaluation service.")
    ] = 1,
    tables: Annotated[
        int,
        typer.Option(
            min=0,
            max=100,
            help="Practice tables that bots keep alive, each of the next of the five rule sets.",
        ),
    ] = 5,
    think: Think = 1.0,
    strength: Strength = "efficient",
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65_000,
            help="First port: matchmaking here, table +1, wallet +2, the console's page +3, "
            "evaluators from +10; metrics a hundred above. 0: free ports.",
        ),
    ] = 7100,
    state: State = None,
) -> None:
    """Run the whole suite on this computer until Ctrl-C, with bots at practice tables.

    Every service is a process of its own, listens on loopback and keeps its data in the state
    folder. One that crashes is started again.

    Example: `fangcheng up --evaluators 2 --tables 10`
    """
    from .up import up as run_up

    run(
        lambda: run_up(
            make_console(),
            make_ink(),
            state or default_folder(),
            evaluators=evaluators,
            port=port,
            tables=tables,
            turn_seconds=think,
            strength=strength,
        )
    )


@app.command()
@told
def migrate(
    wallet: Annotated[
        str | None, typer.Option(envvar="FANGCHENG_WALLET_DATABASE", help="The ledger's address.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(envvar="FANGCHENG_TABLE_DATABASE", help="The journal's address.")
    ] = None,
    matchmaking: Annotated[
        str | None,
        typer.Option(envvar="FANGCHENG_MATCHMAKING_DATABASE", help="The queues' address."),
    ] = None,
    console: Annotated[
        str | None,
        typer.Option(envvar="FANGCHENG_CONSOLE_DATABASE", help="The operator log's address."),
    ] = None,
) -> None:
    """Make the tables of PostgreSQL databases, or bring them up to date, before services start.

    Each service does so for itself when it starts; where it may not, or a roll-out should stop
    before anything is replaced, run this first.

    Example: `fangcheng migrate --wallet postgresql://db/wallet --table postgresql://db/tables`
    """
    from .migrating import migrate_all

    databases = {
        "wallet": wallet,
        "table": table,
        "matchmaking": matchmaking,
        "console": console,
    }
    run(lambda: migrate_all(databases, make_console()))


@app.command()
@told
def evaluate(
    hand: Annotated[
        str, typer.Argument(help="Concealed tiles: `123m456p789s1122z`, with or without spaces.")
    ],
    melds: Annotated[
        list[str] | None,
        typer.Option(
            help="A set laid down: `chi 123m`, `pong 555z`, `concealed kong 1111p`, `碰 白白白`; "
            "repeatable."
        ),
    ] = None,
    flowers: Annotated[
        str, typer.Option(help="Flowers laid down: `12f`. They matter for what a wait is worth.")
    ] = "",
    rules: Annotated[str, typer.Option(help="The rule set.")] = "baishan_kele",
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the rule set: `cap=0`; repeatable.")
    ] = None,
) -> None:
    """Tell what a hand of 13 or 14 tiles is: win, readings, fan, waits, shanten, best discards.

    Works by itself; no service has to run.

    Example: `fangcheng evaluate "123m456p77s999m" --melds "pong 555z"`
    """
    if "fangcheng_rules" not in sys.modules:
        # To compile the rules would take longer than many hands take without.
        os.environ.setdefault("FANGCHENG_INTERPRETED", "1")
    from .evaluate import answer, ask

    console = make_console()
    for line in answer(ask(rules, hand, melds or [], option or [], flowers), make_ink()):
        console.print(line)


@app.command()
@told
def rules(
    rule_set: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A rule set. Default: a list of all.")
    ] = None,
) -> None:
    """Tell the rule sets; of one its tiles, fan items, options and rank titles.

    Works by itself; no service has to run. The same catalogue comes from `ListRuleSets`.

    Example: `fangcheng rules shandong`
    """
    from .cataloguing import list_rule_sets, show_rule_set

    console = make_console()
    ink = make_ink()
    for part in show_rule_set(rule_set, ink) if rule_set else list_rule_sets(ink):
        console.print(part)


@app.command()
@told
def tables(
    closed: Annotated[bool, typer.Option("--closed", help="Closed tables too.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print the list once and end.")] = False,
    state: State = None,
) -> None:
    """List the live tables; in a terminal the list stays up to date until Ctrl-C.

    Example: `fangcheng tables --once`
    """
    from .watching import show_tables

    console = make_console()
    live = console.is_terminal and not once
    access = access_of(state)
    run(lambda: show_tables(access, console, make_ink(), closed=closed, live=live))


@app.command()
@told
def watch(
    table: Annotated[
        str | None,
        typer.Argument(help="The table's id or the beginning of it. Default: the newest."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Draw the table as it is and end.")] = False,
    state: State = None,
) -> None:
    """Draw a table in the terminal as a spectator sees it, live, until it closes or Ctrl-C.

    Without a terminal a line is printed for each event.

    Example: `fangcheng watch`
    """
    from .watching import find_table, show_table

    access = access_of(state)

    async def show() -> None:
        table_id = await find_table(access, table)
        await show_table(access, make_console(), make_ink(), table_id, once=once)

    run(show)
