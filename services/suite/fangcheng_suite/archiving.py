"""`fangcheng ledger archive`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fangcheng_kit.settings import is_postgres
from fangcheng_wallet.archive import ArchiveFailed, archive

from .errors import SuiteError
from .progress import progress, stages


async def archive_month(database: str, month: str, target: Path, console: Console) -> None:
    """Move the entries of a month to a file, and tell what went and how the ledger goes on."""
    if not is_postgres(database):
        raise SuiteError(
            "only a ledger in PostgreSQL has archives",
            "Name its address, postgresql://user:password@host/name, with --database.",
        )
    with progress("Archiving", unit="entries") as bar:
        try:
            done = await archive(database, month, target, stages(bar, "Entries"))
        except ArchiveFailed as error:
            raise SuiteError(
                f"{month} was not archived: {error}", "Nothing was changed in the ledger."
            ) from error
    console.print(
        f"{target}: {done.postings:,} entries of {done.month}, up to entry {done.last_posting:,}, "
        "as the hash chain has them. They are no longer in the database."
    )
    console.print(f"Head of the chain after {done.month}: {done.last_operation}:{done.head}")
