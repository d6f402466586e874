"""The commands for the tables' journal: `fangcheng journal`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .errors import SuiteError
from .terminal import State, make_console, run, told

journal = typer.Typer(no_args_is_help=True, help="The tables' journal: months, archives, keys.")

Database = Annotated[
    str,
    typer.Option(
        envvar="FANGCHENG_TABLE_DATABASE", help="Address of the tables' PostgreSQL database."
    ),
]


@journal.command()
@told
def months(database: Database) -> None:
    """List the months in which tables were made, and which of them are archived.

    Example: `fangcheng journal months --database postgresql://db/tables`
    """
    from .journals import list_months

    console = make_console()
    run(lambda: list_months(database, console))


@journal.command()
@told
def archive(
    month: Annotated[str, typer.Argument(metavar="YYYY-MM", help="A month that is over, UTC.")],
    file: Annotated[Path, typer.Argument(help="Where to write; must not be there yet.")],
    database: Database,
    state: State = None,
) -> None:
    """Move the events of the tables made in a month out of the database into a file.

    All of them must be over. The file, gzipped JSON lines, is compared with the database before
    anything is dropped. The index of tables and finished hands stays. With keys in
    FANGCHENG_TABLE_JOURNAL_KEYS the file is sealed too.

    Example: `fangcheng journal archive 2026-01 2026-01.json.gz --database postgresql://db/tables`
    """
    from .journals import archive_journal, journal_keys_of

    console = make_console()
    keys = journal_keys_of(state)
    run(lambda: archive_journal(database, month, file, console, keys))


@journal.command("print")
@told
def print_(
    file: Annotated[Path, typer.Argument(help="What `journal archive` has written.")],
    state: State = None,
) -> None:
    """Print the events of an archive as lines of JSON, opened with the journal's keys.

    Example: `fangcheng journal print 2026-01.json.gz`
    """
    from .journals import journal_keys_of, print_archive

    print_archive(file, make_console(), journal_keys_of(state))


@journal.command("new-key")
@told
def new_key(
    key_id: Annotated[
        str, typer.Argument(metavar="ID", help="Names the key where it is used, such as 2026-01.")
    ],
) -> None:
    """Print a new key, as FANGCHENG_TABLE_JOURNAL_KEYS takes it.

    Example: `fangcheng journal new-key 2026-01`
    """
    from fangcheng_table.sealing import JournalKeys
    from fangcheng_table.sealing import new_key as made

    key = made(key_id)
    try:
        JournalKeys.parse(key)
    except ValueError as error:
        raise SuiteError(
            f"{key_id} cannot name a key: {error}", "A month is a good name: 2026-01."
        ) from None
    print(key)


@journal.command()
@told
def reseal(
    database: Annotated[
        str,
        typer.Option(
            envvar="FANGCHENG_TABLE_DATABASE",
            help="Journal of the tables: SQLite file or postgresql:// address.",
        ),
    ],
    state: State = None,
) -> None:
    """Seal everything in a journal with the first of its keys: what is plain, or under older ones.

    Services may go on meanwhile; they must have that key as their first already. Older keys are
    needed afterwards for archives and backups only.

    Example: `fangcheng journal reseal --database postgresql://db/tables`
    """
    from .journals import journal_keys_of, reseal_journal

    console = make_console()
    keys = journal_keys_of(state)
    run(lambda: reseal_journal(database, console, keys))
