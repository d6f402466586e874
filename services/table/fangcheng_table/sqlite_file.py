"""Files of a journal: how they are opened."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from fangcheng_kit.migrations import BadDatabase

from .migrations import JOURNAL
from .store import JournalError


def connect(path: Path) -> sqlite3.Connection:
    """A connection whose commits are on disk when they return."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db


def prepare(path: Path) -> None:
    """Make the tables where there are none; raises `JournalError` for another version's."""
    try:
        with closing(connect(path)) as db:
            if JOURNAL.is_due_in_sqlite(db):
                JOURNAL.upgrade_sqlite(path)
    except (sqlite3.Error, BadDatabase) as error:
        raise JournalError(f"{path}: {error}") from error
