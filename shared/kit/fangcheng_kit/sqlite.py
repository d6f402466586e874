"""What every store in an SQLite file needs: a writer whose commits stay, its tables, readers.

Needs the extra ``databases``.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from fangcheng_kit.migrations import BadDatabase, Migrations

OLDEST_SQLITE = (3, 38, 0)
"""The first with STRICT tables and with JSON built in."""

BUSY_SECONDS = 5.0
"""How long a connection waits for a lock that another one has."""

_DURABLE: dict[str, str | int] = {"journal_mode": "wal", "synchronous": 2}  # FULL


def open_file(path: Path, migrations: Migrations, **pragmas: int) -> sqlite3.Connection:
    """A connection whose commits are on disk when they return, with the tables as they must be.

    The file is made where there is none. ``pragmas``: what the connection is set to besides. Any
    thread may use it, one at a time. ``BadDatabase`` for an SQLite that is too old, for a file that
    does not take the settings, and for one that is another's.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise BadDatabase(f"SQLite {sqlite3.sqlite_version} is too old; 3.38 will do")
    try:
        db = sqlite3.connect(
            path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            cached_statements=256,
            check_same_thread=False,
        )
        try:
            _set(db, migrations.what, {**_DURABLE, **pragmas})
            if migrations.is_due_in_sqlite(db):
                migrations.upgrade_sqlite(path)
        except BaseException:
            db.close()
            raise
    except (sqlite3.Error, BadDatabase) as error:
        raise BadDatabase(f"{path} cannot be used: {error}") from error
    return db


def _set(db: sqlite3.Connection, what: str, pragmas: dict[str, str | int]) -> None:
    """Set a connection up, and check that it took it."""
    for name, value in pragmas.items():
        db.execute(f"PRAGMA {name} = {value}")
        (got,) = db.execute(f"PRAGMA {name}").fetchone()
        if got != value:
            raise BadDatabase(f"it has {name} {got}; {what} needs {value}")


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, and never checkpoints. As for threads, see ``open_file``."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    db.execute("PRAGMA query_only = ON")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    return db


def wipe(db: sqlite3.Connection) -> None:
    """Write a file anew, so that nothing which was changed or deleted is left in it or in its WAL.

    Takes about as long as copying the file; who writes waits meanwhile. Where a reader goes on for
    longer than ``BUSY_SECONDS`` it raises ``sqlite3.OperationalError``; the same again finishes it.
    """
    db.execute("VACUUM")
    (is_busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:
        raise sqlite3.OperationalError("the file is being read; its WAL holds what was erased")
