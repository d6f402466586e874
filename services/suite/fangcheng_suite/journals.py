"""`fangcheng journal months` and `fangcheng journal archive`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from fangcheng_kit.settings import is_postgres
from fangcheng_table.archive import ArchiveFailed, archive, months

from .errors import SuiteError
from .terminal import progress


def _check(database: str) -> None:
    if not is_postgres(database):
        raise SuiteError(
            "only a journal in PostgreSQL has months",
            "Name its address, postgresql://user:password@host/name, with --database.",
        )


async def list_months(database: str, console: Console) -> None:
    """Print the months of a journal, and which of them are archived."""
    _check(database)
    try:
        found = await months(database)
    except ArchiveFailed as error:
        raise SuiteError(f"the journal cannot be read: {error}") from error
    table = Table("month", box=None, pad_edge=False)
    for column in ("tables", "not over", "events"):
        table.add_column(column, justify="right")
    table.add_column("where")
    for one in found:
        where = "in its archive" if one.archived else "in the database"
        table.add_row(one.month, f"{one.tables:,}", f"{one.open:,}", f"{one.events:,}", where)
    console.print(table if found else "The journal is empty.")


async def archive_journal(database: str, month: str, target: Path, console: Console) -> None:
    """Move the events of a month's tables to a file, and tell what went."""
    _check(database)
    with progress(console, "events") as show:
        try:
            done, digest = await archive(database, month, target, show)
        except ArchiveFailed as error:
            raise SuiteError(
                f"{month} was not archived: {error}", "Nothing was changed in the journal."
            ) from error
    console.print(
        f"{target}: {done.events:,} events of {done.tables:,} tables made in {done.month}. "
        "They are no longer in the database."
    )
    console.print(f"SHA-256: {digest}")
