"""Who plays which table, in SQLite. An owner is alive while its row is there and not too old."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from . import reads
from .store import Census, Claim, Owner

_LIVE = "owner_id IN (SELECT owner_id FROM owners WHERE until_ms > ?)"


def join(db: sqlite3.Connection, owner: Owner, until_ms: int) -> None:
    """The only owner from now on: a file is one process's."""
    db.execute("DELETE FROM owners")
    db.execute(
        "INSERT INTO owners (owner_id, endpoint, version, until_ms) VALUES (?, ?, ?, ?)",
        (owner.owner_id, owner.endpoint, owner.version, until_ms),
    )


def renew(db: sqlite3.Connection, owner_id: str, now_ms: int, until_ms: int) -> bool:
    """Move the end of a lease; whether it had not come yet."""
    row = db.execute("SELECT until_ms FROM owners WHERE owner_id = ?", (owner_id,)).fetchone()
    if row is None:
        return False  # another process has the file
    db.execute("UPDATE owners SET until_ms = ? WHERE owner_id = ?", (until_ms, owner_id))
    return bool(row[0] > now_ms)


def leave(db: sqlite3.Connection, owner_id: str) -> None:
    """End a lease."""
    db.execute("DELETE FROM owners WHERE owner_id = ?", (owner_id,))


def claim(
    db: sqlite3.Connection,
    owner_id: str,
    plays: Collection[tuple[str, int]],
    limit: int,
    table_id: str,
    now_ms: int,
) -> list[Claim]:
    """Take over what nobody owns, by an owner that is alive."""
    alive = db.execute(
        "SELECT 1 FROM owners WHERE owner_id = ? AND until_ms > ?", (owner_id, now_ms)
    ).fetchone()
    if alive is None:
        return []
    rows = db.execute(
        f"SELECT place, table_id, epoch + 1, owner_id <> '', rule_set, revision FROM tables"  # noqa: S608 # nosec B608 # a constant
        f" WHERE done = 0 AND NOT {_LIVE} AND (? = '' OR table_id = ?) ORDER BY place",
        (now_ms, table_id, table_id),
    )
    free = [row for row in rows if row[4:] in plays][:limit]
    db.executemany(
        "UPDATE tables SET owner_id = ?, epoch = ? WHERE place = ?",
        [(owner_id, epoch, place) for place, _, epoch, *_ in free],
    )
    return [Claim(row[1], row[2], bool(row[3])) for row in free]


def give_up(db: sqlite3.Connection, table_id: str, epoch: int) -> None:
    """Leave a table to whoever claims it."""
    db.execute(
        "UPDATE tables SET owner_id = '' WHERE table_id = ? AND epoch = ?", (table_id, epoch)
    )


def held(db: sqlite3.Connection, owner_id: str) -> list[Claim]:
    """An owner's tables."""
    rows = db.execute(
        "SELECT table_id, epoch FROM tables WHERE done = 0 AND owner_id = ? ORDER BY place",
        (owner_id,),
    )
    return [Claim(*row) for row in rows]


def owner_of(db: sqlite3.Connection, table_id: str, now_ms: int) -> Owner | None:
    """The owner of a table, if it is alive."""
    row = db.execute(
        "SELECT o.owner_id, o.endpoint, o.version FROM tables t JOIN owners o USING (owner_id)"
        " WHERE t.table_id = ? AND o.until_ms > ?",
        (table_id, now_ms),
    ).fetchone()
    return None if row is None else Owner(*row)


def owners(db: sqlite3.Connection, now_ms: int) -> list[Owner]:
    """Those that are alive."""
    rows = db.execute(
        "SELECT owner_id, endpoint, version FROM owners WHERE until_ms > ? ORDER BY owner_id",
        (now_ms,),
    )
    return [Owner(*row) for row in rows]


def census(db: sqlite3.Connection, now_ms: int) -> Census:
    """How many tables each of them has."""
    counts = db.execute("SELECT owner_id, count(*) FROM tables WHERE done = 0 GROUP BY owner_id")
    return reads.census(owners(db, now_ms), counts)
