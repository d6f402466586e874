"""What is kept of a table that is over, written anew: see `store.Journal.rewrite`."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .codec import encode
from .errors import TableNotOver, UnknownTable
from .reads import event_record, new_table
from .sealing import JournalKeys, event_place
from .store import Rewriting
from .writes import ADD_LABEL

TABLE = (
    "SELECT table_id, request_id, request, rule_set, revision, player_ids, labels FROM tables"
    " WHERE place = ?"
)
UPDATE_TABLE = "UPDATE tables SET request = ?, labels = ?, summary = ? WHERE place = ?"
DELETE_LABEL = "DELETE FROM labels WHERE key = ? AND value = ? AND place = ?"


@dataclass(frozen=True, slots=True)
class Kept:
    """A table that is over, as it is stored."""

    place: int
    table: Any
    """A row that `new_table` reads."""
    summary: bytes | None
    events: Sequence[Any]
    """Rows: sequence, time, body."""


@dataclass(frozen=True, slots=True)
class Anew:
    """What is written in its place."""

    bodies: list[tuple[bytes, int]]
    """Of the events that have changed, with their sequences."""
    table: tuple[Any, ...]
    labels_gone: list[tuple[str, str, int]]
    labels_added: list[tuple[str, str, int]]


def read_sqlite(db: sqlite3.Connection, table_id: str) -> Kept:
    """Raises `UnknownTable` and `TableNotOver`."""
    row = db.execute(
        "SELECT place, done, summary FROM tables WHERE table_id = ?", (table_id,)
    ).fetchone()
    if row is None:
        raise UnknownTable(table_id)
    place, done, summary = row
    if not done:
        raise TableNotOver(table_id)
    events = db.execute(
        "SELECT sequence, time_ms, body FROM events WHERE place = ? ORDER BY sequence", (place,)
    )
    return Kept(place, db.execute(TABLE, (place,)).fetchone(), summary, events.fetchall())


@contextmanager
def overwriting(db: sqlite3.Connection) -> Iterator[None]:
    """What is replaced meanwhile is overwritten in the file, and not only let go of."""
    db.execute("PRAGMA secure_delete = 1")
    try:
        yield
    finally:
        db.execute("PRAGMA secure_delete = 0")


def write_sqlite(db: sqlite3.Connection, table_id: str, kept: Kept, anew: Anew) -> bool:
    """In the transaction that the connection is in; False: somebody, perhaps another process, has
    changed what was read, and nothing is written.
    """
    if read_sqlite(db, table_id) != kept:
        return False
    with overwriting(db):
        db.executemany(
            "UPDATE events SET body = ? WHERE place = ? AND sequence = ?",
            [(body, kept.place, sequence) for body, sequence in anew.bodies],
        )
        db.execute(UPDATE_TABLE, anew.table)
        db.executemany(DELETE_LABEL, anew.labels_gone)
        db.executemany(ADD_LABEL, anew.labels_added)
    return True


async def made_anew(table_id: str, kept: Kept, change: Rewriting, keys: JournalKeys) -> Anew:
    """What a table becomes; in a thread, since it may have tens of thousands of events."""
    return await asyncio.to_thread(_made_anew, table_id, kept, change, keys)


def _made_anew(table_id: str, kept: Kept, change: Rewriting, keys: JournalKeys) -> Anew:
    bodies = []
    for row in kept.events:
        record = event_record(table_id, row, keys)
        event = change.event(record.event)
        if event != record.event:
            place = event_place(record.sequence)
            bodies.append((keys.seal(table_id, place, encode(event)), record.sequence))
    old = new_table(kept.table)
    new = change.table(old)
    before, after = set(old.labels.items()), set(new.labels.items())
    summary = None if kept.summary is None else change.summary(kept.summary)
    return Anew(
        bodies,
        (new.request, json.dumps(dict(new.labels)), summary, kept.place),
        labels_gone=[(*label, kept.place) for label in sorted(before - after)],
        labels_added=[(*label, kept.place) for label in sorted(after - before)],
    )
