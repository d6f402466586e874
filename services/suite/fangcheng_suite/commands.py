"""The commands of `fangcheng`: what each is told and what it tells when it fails.

What a command needs is imported in it: `--help` and what needs no service answer at once.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import commands_integrity, commands_journal, commands_records
from .cli import EXIT_INTERRUPTED
from .errors import SuiteError
from .state import StateFolder, default_folder
from .terminal import State
from .terminal import access_of as _access
from .terminal import make_console as _console
from .terminal import make_ink as _ink
from .terminal import run as _run
from .terminal import told as _told

if TYPE_CHECKING:
    from .access import Access, Elsewhere

app = typer.Typer(
    name="fangcheng",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Fangcheng 方城: gRPC services for regional Chinese mahjong, run on this computer.\n\n"
    "Begin with `fangcheng demo`, then `fangcheng up`.",
)
ledger = typer.Typer(no_args_is_help=True, help="The wallet's books.")
app.add_typer(commands_records.records)
app.add_typer(ledger, name="ledger")
app.add_typer(commands_journal.journal, name="journal")
app.add_typer(commands_integrity.integrity, name="integrity")
wallet = typer.Typer(no_args_is_help=True, help="The wallet as a service: ours or a studio's own.")
app.add_typer(wallet, name="wallet")

_Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="HOST:PORT",
        help="The wallet. Default: that of the running suite.",
        show_default=False,
    ),
]
_Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="FANGCHENG_TOKEN",
        help="Bearer token of an operator or a service, for --target.",
        show_default=False,
    ),
]
_Ca = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        help="PEM file of the certificates to trust: connect with TLS.",
        show_default=False,
    ),
]


def _wallet_at(
    target: str | None, token: str | None, ca: Path | None, state: Path | None
) -> Access | Elsewhere:
    from .access import Elsewhere

    return Elsewhere(target, token, ca) if target else _access(state)


@app.command()
@_told
def demo() -> None:
    """Play hands of every rule set between four bots, then check the books.

    Starts every service as a process of its own, queues four bots, shows each hand's result, audits
    the ledger and verifies shuffles. Takes less than a minute and leaves nothing behind.

    Example: `fangcheng demo`
    """
    from .demo import Demo

    _run(Demo(_console(), _ink()).run, EXIT_INTERRUPTED)


@app.command()
@_told
def up(
    evaluators: Annotated[
        int, typer.Option(min=1, max=64, help="Processes of the evaluation service.")
    ] = 1,
    tables: Annotated[
        int, typer.Option(min=0, max=100, help="Practice tables that bots keep alive.")
    ] = 1,
    pace: Annotated[
        float, typer.Option(min=0, max=60, help="Seconds that a bot thinks about a turn.")
    ] = 1.0,
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65_000,
            help="First port: matchmaking here, table +1, wallet +2, evaluators from +10; "
            "metrics a hundred above. 0: free ports.",
        ),
    ] = 7100,
    state: State = None,
) -> None:
    """Run the whole suite on this computer until Ctrl-C, with bots at practice tables.

    Every service is a process of its own, listens on loopback and keeps its data in the state
    folder. One that crashes is started again.

    Example: `fangcheng up --evaluators 2 --tables 2`
    """
    from .up import up as run_up

    _run(
        lambda: run_up(
            _console(),
            _ink(),
            state or default_folder(),
            evaluators=evaluators,
            port=port,
            tables=tables,
            pace_seconds=pace,
        )
    )


@app.command()
@_told
def token(
    subject: Annotated[
        str, typer.Argument(help="Who calls: `player:<id>`, `operator` or `service:<name>`.")
    ],
    scope: Annotated[
        list[str] | None, typer.Option(help="A scope, such as `act_as` or `bot`; repeatable.")
    ] = None,
    ttl: Annotated[float, typer.Option(min=1, help="Seconds that it is good for.")] = 3600.0,
    state: State = None,
) -> None:
    """Print a development token, signed with the key of the running suite.

    Example: `fangcheng token player:ming --ttl 600`
    """
    from fangcheng_kit.principal import mint_token

    key = StateFolder(state or default_folder()).read().key
    try:
        made = mint_token(key, subject, scope or [], ttl)
    except ValueError as error:
        raise SuiteError(str(error), "Example: fangcheng token player:ming") from None
    print(made)


@app.command()
@_told
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

    console = _console()
    for line in answer(ask(rules, hand, melds or [], option or [], flowers), _ink()):
        console.print(line)


@app.command()
@_told
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

    console = _console()
    ink = _ink()
    for part in show_rule_set(rule_set, ink) if rule_set else list_rule_sets(ink):
        console.print(part)


@app.command()
@_told
def tables(
    closed: Annotated[bool, typer.Option("--closed", help="Closed tables too.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print the list once and end.")] = False,
    state: State = None,
) -> None:
    """List the live tables; in a terminal the list stays up to date until Ctrl-C.

    Example: `fangcheng tables --once`
    """
    from .watching import show_tables

    console = _console()
    live = console.is_terminal and not once
    access = _access(state)
    _run(lambda: show_tables(access, console, _ink(), closed=closed, live=live))


@app.command()
@_told
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

    access = _access(state)

    async def show() -> None:
        table_id = await find_table(access, table)
        await show_table(access, _console(), _ink(), table_id, once=once)

    _run(show)


@app.command()
@_told
def simulate(
    hands: Annotated[int, typer.Argument(min=1, max=1_000_000, help="How many hands.")] = 1000,
    rules: Annotated[str, typer.Option(help="The rule set.")] = "baishan_kele",
    seed: Annotated[int, typer.Option(help="The same seed plays the same hands.")] = 1,
) -> None:
    """Play many hands in this process and tell how they ended. No service has to run.

    The first time that a rule set is played here it is compiled, which takes up to a minute.

    Example: `fangcheng simulate 1000 --seed 7`
    """
    from .simulating import simulate as run_simulation

    console = _console()
    waiting = "Playing (the first time the rules are compiled, which takes up to a minute)"
    with console.status(waiting, spinner="line"):
        parts = run_simulation(rules, hands, seed, _ink())
    for part in parts:
        console.print(part)


@ledger.command()
@_told
def audit(
    target: _Target = None, token: _Token = None, ca: _Ca = None, state: State = None
) -> None:
    """Recompute every account from its entries and compare. Exit code 1 if anything is wrong.

    Example: `fangcheng ledger audit`
    """
    from .checking import audit_ledger

    access = _wallet_at(target, token, ca, state)
    console = _console()
    _run(lambda: audit_ledger(access, console))


@ledger.command(name="verify")
@_told
def verify_ledger(
    head: Annotated[
        str,
        typer.Option(
            metavar="COUNT:HASH",
            help="A head that an earlier run printed: a chain that was rewritten is found too.",
        ),
    ] = "",
    target: _Target = None,
    token: _Token = None,
    ca: _Ca = None,
    state: State = None,
) -> None:
    """Compare every entry with the hash chain; tell the first one that was tampered with.

    Exit code 1 if anything was changed since it was written. Keep the printed head elsewhere.

    Example: `fangcheng ledger verify --head 41870:9f2c5d1c`
    """
    from .ledgers import read_head
    from .ledgers import verify_ledger as run_verification

    operations, noted = read_head(head)
    access = _wallet_at(target, token, ca, state)
    console = _console()
    _run(lambda: run_verification(access, console, operations, noted))


@ledger.command()
@_told
def export(
    file: Annotated[
        Path, typer.Argument(help="Where to write; `.parquet` makes Parquet, any other CSV.")
    ],
    after: Annotated[
        str, typer.Option(metavar="CURSOR", help="Go on behind an earlier export.")
    ] = "",
    currency: Annotated[str, typer.Option(help="Only entries of this currency.")] = "",
    target: _Target = None,
    token: _Token = None,
    ca: _Ca = None,
    state: State = None,
) -> None:
    """Write the ledger's entries to a file, in the order in which they were written.

    Example: `fangcheng ledger export entries.csv --after 41870`
    """
    from .ledgers import export_ledger

    access = _wallet_at(target, token, ca, state)
    console = _console()
    _run(lambda: export_ledger(access, console, file, after, currency))


@ledger.command()
@_told
def backup(
    file: Annotated[Path, typer.Argument(help="Where to write; must not be there yet.")],
    database: Annotated[
        str,
        typer.Option(help="SQLite file or postgresql:// address. Default: the state folder's."),
    ] = "",
    state: State = None,
) -> None:
    """Copy the ledger to a file, also while the wallet runs. PostgreSQL needs `pg_dump`.

    Example: `fangcheng ledger backup wallet.backup`
    """
    from .restoring import back_up

    console = _console()
    _run(lambda: back_up(database or str(_state_file(state, "wallet.db")), file, console))


@ledger.command()
@_told
def restore(
    file: Annotated[Path, typer.Argument(help="What `ledger backup` has written.")],
    database: Annotated[
        str,
        typer.Option(
            help="SQLite file that is not there, or address of a PostgreSQL database without "
            "tables. Default: the state folder's."
        ),
    ] = "",
    currencies: Annotated[
        Path | None, typer.Option(help="The wallet's file of currencies, if it has one.")
    ] = None,
    state: State = None,
) -> None:
    """Make a ledger of a backup, audit it, and compare it with its hash chain.

    Afterwards tell it what was settled since: `fangcheng ledger replay`.

    Example: `fangcheng ledger restore wallet.backup --database restored.db`
    """
    from .restoring import restore_ledger

    console = _console()
    target = database or str(_state_file(state, "wallet.db"))
    _run(lambda: restore_ledger(file, target, currencies, console))


@ledger.command()
@_told
def archive(
    month: Annotated[str, typer.Argument(metavar="YYYY-MM", help="A month that is over, UTC.")],
    file: Annotated[Path, typer.Argument(help="Where to write; must not be there yet.")],
    database: Annotated[str, typer.Option(help="Address of the wallet's PostgreSQL database.")],
) -> None:
    """Move the entries of a month out of the database into a file (gzipped JSON).

    Balances, keys and the hash chain stay. The oldest month comes first. The wallet may run; its
    callers wait meanwhile.

    Example: `fangcheng ledger archive 2026-01 2026-01.json.gz --database postgresql://db/wallet`
    """
    from .archiving import archive_month

    console = _console()
    _run(lambda: archive_month(database, month, file, console))


@ledger.command()
@_told
def replay(
    since: Annotated[
        datetime, typer.Option(help="Only hands settled from then on, UTC.")
    ] = datetime(1970, 1, 1),
    journal: Annotated[
        str,
        typer.Option(
            envvar="FANGCHENG_TABLE_DATABASE",
            help="Journal of the tables: SQLite file or postgresql:// address. Default: the state "
            "folder's.",
        ),
    ] = "",
    target: _Target = None,
    token: _Token = None,
    ca: _Ca = None,
    state: State = None,
) -> None:
    """Tell a restored wallet again what the tables have settled, by key: nothing is paid twice.

    A wallet that no suite here runs is named with --target; the token is one of a table service.

    Example: `fangcheng ledger replay --since 2026-01-31T04:00:00`
    """
    from .restoring import replay as run_replay

    if target and not journal:
        raise SuiteError(
            "it is not said which tables the wallet is told of",
            "Name their journal with --journal, or in FANGCHENG_TABLE_DATABASE.",
        )
    access = _wallet_at(target, token, ca, state)
    address = journal or str(_state_file(state, "table.db"))
    console = _console()
    _run(lambda: run_replay(access, address, since.replace(tzinfo=UTC), console))


def _state_file(state: Path | None, name: str) -> Path:
    return (state or default_folder()).expanduser() / name


@wallet.command()
@_told
def conformance(
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT",
            help="The server; repeatable for replicas. Default: the wallet of the running suite.",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Bearer token of a table. Default: made with the running suite's key."),
    ] = None,
    matchmaking_token: Annotated[
        str | None, typer.Option(help="Bearer token of matchmaking. Default: the same.")
    ] = None,
    player: Annotated[
        list[str] | None,
        typer.Option(
            help="A player with a wallet whom nobody else uses; four times. Default: new ones."
        ),
    ] = None,
    currency: Annotated[str, typer.Option(help="A currency with the floor 0.")] = "silver",
    book: Annotated[str, typer.Option(help="Its book, if it has any.")] = "",
    ca: Annotated[
        Path | None, typer.Option(help="PEM file of the certificates to trust: connect with TLS.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="CHECK", help="Only this check; repeatable.")
    ] = None,
    state: State = None,
) -> None:
    """Check that a wallet keeps what tables and matchmaking rely on. Exit code 1 if it does not.

    Calls `SettlementService` alone: settles, holds, repeats, races, cuts calls off, and reverses.
    Money moves between the four players and the house; run it where that may be.

    Example: `fangcheng wallet conformance --only holds-first --only one-key`
    """
    from .access import OPERATOR, renewing_token
    from .conforming import Token, Wallet, check_wallet

    console = _console()
    tokens: tuple[Token, Token, Token] = (token, matchmaking_token or token, token)
    if not target:
        access = _access(state)
        target = [access.target_of("wallet")]
        tokens = (
            tokens[0] or renewing_token(access.key, "service:table"),
            tokens[1] or renewing_token(access.key, "service:matchmaking"),
            renewing_token(access.key, OPERATOR),
        )
    chosen = Wallet(target, player or [], currency, book, *tokens, ca_file=ca)
    _run(lambda: check_wallet(chosen, only or [], console))
