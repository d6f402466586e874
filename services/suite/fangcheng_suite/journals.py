"""`fangcheng journal`: months, archives, and the keys that seal what is kept of hands."""

from __future__ import annotations

import asyncio
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fangcheng_kit.settings import is_postgres
from fangcheng_table.archive import ArchiveFailed, archive, months, readable
from fangcheng_table.codec import UnknownEvent
from fangcheng_table.journals import open_journal
from fangcheng_table.sealing import NO_KEYS, VARIABLE, BadJournalKeys, JournalKeys
from fangcheng_table.store import JournalError

from .errors import SuiteError
from .progress import progress, stages
from .state import StateFolder, default_folder

_ADDRESS = (
    "Name the table service's database with --database, as FANGCHENG_TABLE_DATABASE has it: a "
    "file, or postgresql://user:password@host/name."
)


def _check(database: str) -> None:
    if not is_postgres(database):
        raise SuiteError(
            "only a journal in PostgreSQL has months",
            "Name its address, postgresql://user:password@host/name, with --database.",
        )


def journal_keys_of(state: Path | None = None) -> JournalKeys:
    """The keys in the environment, or else those of a state folder; raises SuiteError."""
    try:
        return JournalKeys.parse(StateFolder(state or default_folder()).journal_keys())
    except BadJournalKeys as error:
        raise SuiteError(
            f"the journal's keys cannot be used: {error}",
            f"Set {VARIABLE} as the table service has it: `fangcheng journal new-key` shows the "
            "form.",
        ) from None


async def list_months(database: str, console: Console) -> None:
    """Print the months of a journal, and which of them are archived."""
    _check(database)
    try:
        with progress("Counting"):
            found = await months(database)
    except ArchiveFailed as error:
        raise SuiteError(f"the journal cannot be read: {error}", _ADDRESS) from error
    table = Table("month", box=None, pad_edge=False)
    for column in ("tables", "not over", "events"):
        table.add_column(column, justify="right")
    table.add_column("where")
    for one in found:
        where = "in its archive" if one.archived else "in the database"
        table.add_row(one.month, f"{one.tables:,}", f"{one.open:,}", f"{one.events:,}", where)
    console.print(table if found else "The journal is empty.")


async def archive_journal(
    database: str, month: str, target: Path, console: Console, keys: JournalKeys = NO_KEYS
) -> None:
    """Move the events of a month's tables to a file, and tell what went."""
    _check(database)
    with progress("Archiving", unit="events") as bar:
        try:
            shown = stages(bar, "Events")
            done, digest = await archive(database, month, target, shown, keys)
        except ArchiveFailed as error:
            raise SuiteError(
                f"{month} was not archived: {error}", "Nothing was changed in the journal."
            ) from error
    console.print(
        f"{target}: {done.events:,} events of {done.tables:,} tables made in {done.month}. "
        "They are no longer in the database."
    )
    console.print(f"SHA-256: {digest}")
    if keys:
        console.print(f"It is sealed with the key {keys.first}: keep that as long as the file.")


def print_archive(file: Path, console: Console, keys: JournalKeys) -> None:
    """Print the events of an archive, a line of JSON for each."""
    try:
        for line in readable(file, keys):
            console.out(line, highlight=False)  # as it is: print makes a sign of ":smile:"
    except UnknownEvent as error:
        raise SuiteError(
            f"the archive cannot be read: {error}",
            "It has to be a file of `fangcheng journal archive`, whole, and its key among those of "
            f"{VARIABLE}.",
        ) from error


async def reseal_journal(database: str, console: Console, keys: JournalKeys) -> None:
    """Seal a whole journal with the first of its keys, and tell which others it needs no more."""
    if not keys:
        raise SuiteError("there is no key to seal with", f"Set {VARIABLE}.")
    if not (is_postgres(database) or await asyncio.to_thread(Path(database).exists)):
        raise SuiteError(f"there is no journal {database}", _ADDRESS)
    try:
        journal = await open_journal(database, keys=keys)
        try:
            with progress("Sealing the journal anew"):
                done = await journal.reseal()
        finally:
            await journal.close()
    except (JournalError, UnknownEvent) as error:
        raise SuiteError(
            f"the journal was not sealed anew: {error}",
            f"Give all keys that it was sealed with in {VARIABLE}, the new one first, and do "
            "this again: what was sealed anew is left as it is.",
        ) from error
    console.print(f"{done.bodies:,} events and openings were sealed with the key {keys.first}.")
    if done.in_use:
        raise SuiteError(
            f"a service still writes without the key {keys.first}",
            f"Give it to all of them as the first of {VARIABLE}, then do this again.",
        )
    for key_id in done.struck_off:
        console.print(f"The journal does not need the key {key_id} any more.")
