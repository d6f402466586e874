"""A table that is over, written anew in PostgreSQL: see `store.Journal.rewrite`."""

from __future__ import annotations

from typing import Any

from fangcheng_kit.postgres import numbered

from .errors import TableNotOver, UnknownTable
from .rewriting import DELETE_LABEL, TABLE, UPDATE_TABLE, Kept, made_anew
from .sealing import JournalKeys
from .store import Rewriting
from .writes import ADD_LABEL


async def rewrite(db: Any, table_id: str, change: Rewriting, keys: JournalKeys) -> int | None:
    """In the transaction that the connection is in; as `store.Journal.rewrite`."""
    # Archives of months lock this table for themselves: one comes before or after.
    await db.execute("LOCK TABLE archives IN ROW SHARE MODE")
    row = await db.fetchrow(
        "SELECT t.place, t.month, t.summary, h.done, a.month IS NOT NULL"
        " FROM tables t JOIN heads h USING (place) LEFT JOIN archives a USING (month)"
        " WHERE t.table_id = $1 FOR UPDATE OF t",
        table_id,
    )
    if row is None:
        raise UnknownTable(table_id)
    place, month, summary, done, archived = row
    if not done:
        raise TableNotOver(table_id)
    events = await db.fetch(
        "SELECT sequence, time_ms, body FROM events WHERE month = $1 AND place = $2", month, place
    )
    kept = Kept(place, await db.fetchrow(numbered(TABLE), place), summary, events)
    anew = await made_anew(table_id, kept, change, keys)
    await db.executemany(
        "UPDATE events SET body = $3 WHERE month = $1 AND place = $2 AND sequence = $4",
        [(month, place, *body) for body in anew.bodies],
    )
    await db.execute(numbered(UPDATE_TABLE), *anew.table)
    await db.executemany(numbered(DELETE_LABEL), anew.labels_gone)
    await db.executemany(numbered(ADD_LABEL), anew.labels_added)
    return None if archived else len(anew.bodies)
