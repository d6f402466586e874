"""The commands for the wallet: `fangcheng ledger` and `fangcheng wallet`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from .errors import SuiteError
from .state import default_folder
from .terminal import (
    Certificate,
    CertificateKey,
    Certificates,
    OperatorToken,
    State,
    access_of,
    access_to,
    make_console,
    run,
    told,
)

ledger = typer.Typer(no_args_is_help=True, help="The wallet's books.")
wallet = typer.Typer(no_args_is_help=True, help="The wallet as a service: ours or a studio's own.")

Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="HOST:PORT",
        help="The wallet. Default: that of the running suite.",
        show_default=False,
    ),
]


@ledger.command()
@told
def audit(
    target: Target = None,
    token: OperatorToken = None,
    ca: Certificates = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    state: State = None,
) -> None:
    """Recompute every account from its entries and compare. Exit code 1 if anything is wrong.

    Example: `fangcheng ledger audit`
    """
    from .checking import audit_ledger

    access = access_to(target, token, ca, certificate, certificate_key, state)
    console = make_console()
    run(lambda: audit_ledger(access, console))


@ledger.command(name="verify")
@told
def verify_ledger(
    head: Annotated[
        str,
        typer.Option(
            metavar="COUNT:HASH",
            help="A head that an earlier run printed: a chain that was rewritten is found too.",
        ),
    ] = "",
    target: Target = None,
    token: OperatorToken = None,
    ca: Certificates = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    state: State = None,
) -> None:
    """Compare every entry with the hash chain; tell the first one that was tampered with.

    Exit code 1 if anything was changed since it was written. Keep the printed head elsewhere.

    Example: `fangcheng ledger verify --head 41870:9f2c5d1c`
    """
    from .ledgers import read_head
    from .ledgers import verify_ledger as run_verification

    operations, noted = read_head(head)
    access = access_to(target, token, ca, certificate, certificate_key, state)
    console = make_console()
    run(lambda: run_verification(access, console, operations, noted))


@ledger.command()
@told
def export(
    file: Annotated[
        Path, typer.Argument(help="Where to write; `.parquet` makes Parquet, any other CSV.")
    ],
    after: Annotated[
        str, typer.Option(metavar="CURSOR", help="Go on behind an earlier export.")
    ] = "",
    currency: Annotated[str, typer.Option(help="Only entries of this currency.")] = "",
    target: Target = None,
    token: OperatorToken = None,
    ca: Certificates = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    state: State = None,
) -> None:
    """Write the ledger's entries to a file, in the order in which they were written.

    Example: `fangcheng ledger export entries.csv --after 41870`
    """
    from .ledgers import export_ledger

    access = access_to(target, token, ca, certificate, certificate_key, state)
    console = make_console()
    run(lambda: export_ledger(access, console, file, after, currency))


@ledger.command()
@told
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

    console = make_console()
    run(lambda: back_up(database or str(_state_file(state, "wallet.db")), file, console))


@ledger.command()
@told
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

    console = make_console()
    target = database or str(_state_file(state, "wallet.db"))
    run(lambda: restore_ledger(file, target, currencies, console))


@ledger.command()
@told
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

    console = make_console()
    run(lambda: archive_month(database, month, file, console))


@ledger.command()
@told
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
    target: Target = None,
    token: OperatorToken = None,
    ca: Certificates = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    state: State = None,
) -> None:
    """Tell a restored wallet again what the tables have settled, by key: nothing is paid twice.

    A wallet that no suite here runs is named with --target; the token is one of a table service.
    The journal opens with the keys of FANGCHENG_TABLE_JOURNAL_KEYS, or the state folder's.

    Example: `fangcheng ledger replay --since 2026-01-31T04:00:00`
    """
    from .journals import journal_keys_of
    from .restoring import replay as run_replay

    if target and not journal:
        raise SuiteError(
            "it is not said which tables the wallet is told of",
            "Name their journal with --journal, or in FANGCHENG_TABLE_DATABASE.",
        )
    access = access_to(target, token, ca, certificate, certificate_key, state)
    address = journal or str(_state_file(state, "table.db"))
    console = make_console()
    keys = journal_keys_of(state)
    run(lambda: run_replay(access, address, since.replace(tzinfo=UTC), console, keys))


def _state_file(state: Path | None, name: str) -> Path:
    return (state or default_folder()).expanduser() / name


@wallet.command()
@told
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
    ca: Certificates = None,
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

    console = make_console()
    tokens: tuple[Token, Token, Token] = (token, matchmaking_token or token, token)
    if not target:
        access = access_of(state)
        target = [access.target_of("wallet")]
        tokens = (
            tokens[0] or renewing_token(access.key, "service:table"),
            tokens[1] or renewing_token(access.key, "service:matchmaking"),
            renewing_token(access.key, OPERATOR),
        )
    chosen = Wallet(target, player or [], currency, book, *tokens, ca_file=ca)
    run(lambda: check_wallet(chosen, only or [], console))
