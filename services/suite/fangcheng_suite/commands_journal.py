"""The commands for the tables' journal: `fangcheng journal`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .terminal import make_console, run, told

journal = typer.Typer(no_args_is_help=True, help="The tables' journal in PostgreSQL.")

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
) -> None:
    """Move the events of the tables made in a month out of the database into a file.

    All of them must be over. The file, gzipped JSON lines, is compared with the database before
    anything is dropped. The index of tables and finished hands stays.

    Example: `fangcheng journal archive 2026-01 2026-01.json.gz --database postgresql://db/tables`
    """
    from .journals import archive_journal

    console = make_console()
    run(lambda: archive_journal(database, month, file, console))
