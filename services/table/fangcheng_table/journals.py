"""Which journal a setting names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fangcheng_kit.settings import is_postgres

from .sealing import NO_KEYS, JournalKeys
from .sqlite import SqliteJournal
from .store import Commit, Journal


async def open_journal(
    database: str,
    on_commit: Callable[[Commit], None] = lambda commit: None,
    keys: JournalKeys = NO_KEYS,
) -> Journal:
    """Open a journal, made where there is none: a file, or the address of a PostgreSQL database.

    `keys`: what its events are sealed with. Raises `JournalError` where it cannot be used.
    """
    if is_postgres(database):
        # What nobody needs without it takes a fifth of a second to import.
        from .postgres import open_postgres

        return await open_postgres(database, on_commit, keys)
    return SqliteJournal(Path(database), on_commit, keys)
