"""The events of a month's tables, moved out of a PostgreSQL journal into a file.

A month is that in which a table was made; all its tables must be over. What stays in the database
is what tables and finished hands are found by, so that lists, cursors and repeats of requests go on
as before; what a hand was is in the file alone.

The file is gzipped JSON: a line about the month, then one for each event, in the order of tables
and sequences. With keys the event is `sealed`, as it would be in the database, in base64; without,
`event` has the fields of `stored/v1/event.proto`. Nothing is dropped before the file, read
again, was compared with the database, event by event.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import asyncpg
from google.protobuf import json_format

from fangcheng_kit.files import keep
from fangcheng_kit.postgres import FAILED

from . import postgres
from .codec import UnknownEvent, encode
from .reads import event_record
from .sealing import NO_KEYS, JournalKeys, event_place
from .store import Record
from .stored.v1 import event_pb2 as stored

_FORM = re.compile(r"(\d{4})-(0[1-9]|1[0-2])", re.ASCII)
_AT_ONCE = 5_000

_EVENTS = """
SELECT e.place, t.table_id, e.sequence, e.time_ms, e.body
FROM events e JOIN tables t USING (place)
WHERE e.month = $1 AND (e.place, e.sequence) > ($2, $3)
ORDER BY e.place, e.sequence LIMIT $4
"""

_MONTHS = """
SELECT t.month, count(*) AS tables, count(*) FILTER (WHERE NOT h.done) AS open,
    coalesce(sum(h.last_sequence), 0)::bigint AS events, bool_or(a.month IS NOT NULL) AS archived
FROM tables t JOIN heads h USING (place) LEFT JOIN archives a USING (month)
GROUP BY t.month ORDER BY t.month
"""

OnProgress = Callable[[str, int, int], None]
"""What is being done, to how many events, and of how many."""


_UNREADABLE = (OSError, EOFError, ValueError, KeyError, StopIteration, json_format.ParseError)


class ArchiveFailed(Exception):
    """A month was not archived; nothing has changed, and no file is left."""


@dataclass(frozen=True, slots=True)
class Month:
    """The tables that were made in a month, UTC."""

    month: str
    tables: int
    open: int
    """Those of them that are not over."""
    events: int
    archived: bool
    """Its events are in a file, and no longer in the database."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A month that was archived."""

    month: str
    tables: int
    events: int


async def months(database: str) -> list[Month]:
    """The months of a journal, oldest first; raises `ArchiveFailed`."""
    db = await _connect(database)
    try:
        return [Month(_name(row[0]), *row[1:]) for row in await db.fetch(_MONTHS)]
    except FAILED as error:
        raise ArchiveFailed(str(error)) from error
    finally:
        await db.close()


async def archive(
    database: str,
    month: str,
    target: Path,
    on_progress: OnProgress = lambda what, done, total: None,
    keys: JournalKeys = NO_KEYS,
) -> tuple[Archive, str]:
    """Move the events of a month (`2026-01`, UTC) to a file that is not there yet.

    `keys`: the journal's. Answers what went, and the file's SHA-256. Tables go on being played
    meanwhile: those of the month are over. Raises `ArchiveFailed`.
    """
    form = _FORM.fullmatch(month)
    if form is None:
        raise ArchiveFailed(f"{month} is no month, such as 2026-01")
    number = int(form[1] + form[2])
    if await asyncio.to_thread(target.exists):
        raise ArchiveFailed(f"{target} is there already")
    db = await _connect(database)
    try:
        transaction = db.transaction()
        await transaction.start()
        try:
            done, digest = await _move(db, number, month, target, on_progress, keys)
        except BaseException:
            await _forget(transaction, target)
            raise
        try:
            await transaction.commit()
        except FAILED as error:
            # The file stays: it may be the only place by now.
            raise ArchiveFailed(f"{error}; `journal months` tells whether it was done") from error
    except FAILED as error:
        raise ArchiveFailed(str(error)) from error
    finally:
        await db.close()
    return done, digest


async def _move(
    db: Any, number: int, month: str, target: Path, on_progress: OnProgress, keys: JournalKeys
) -> tuple[Archive, str]:
    """Everything but the commit."""
    # Of two that archive, one waits and then finds the month gone.
    await db.execute("LOCK TABLE archives IN EXCLUSIVE MODE")
    done = await _look(db, number, month)
    fresh = target.with_name(target.name + ".part")
    try:
        await _write(db, fresh, number, done, on_progress, keys)
        digest = await _verify(db, fresh, number, done, on_progress, keys)
        # The file first: a month may be in both places, never in none.
        await asyncio.to_thread(keep, fresh, target)
    finally:
        fresh.unlink(missing_ok=True)
    await db.execute(
        "INSERT INTO archives VALUES ($1, $2, $3, $4)", number, done.tables, done.events, digest
    )
    # Appends wait from here to the commit, and no longer for somebody else's long transaction.
    await db.execute("SET LOCAL lock_timeout = '5s'")
    await db.execute(f"ALTER TABLE events DETACH PARTITION events_{number}")
    await db.execute(f"DROP TABLE events_{number}")
    return done, digest


async def _forget(transaction: Any, target: Path) -> None:
    """Nothing was archived, so there is no archive."""
    with contextlib.suppress(*FAILED):
        await transaction.rollback()
    await asyncio.to_thread(target.unlink, missing_ok=True)


def archived_records(file: Path, keys: JournalKeys = NO_KEYS) -> Iterator[tuple[str, Record]]:
    """The events of an archive with the ids of their tables, in their order.

    Raises `UnknownEvent` for a file that cannot be read, with these keys.
    """
    try:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                row = json.loads(line)
                if "sealed" in row:
                    body = base64.b64decode(row["sealed"], validate=True)
                else:
                    event = json_format.ParseDict(row["event"], stored.Event())
                    body = event.SerializeToString()
                table_id, *place = row["table_id"], row["sequence"], row["time_ms"]
                yield table_id, event_record(table_id, (*place, body), keys)
    except UnknownEvent:
        raise
    except _UNREADABLE as error:
        raise UnknownEvent(f"{file}: {error}") from error


def readable(file: Path, keys: JournalKeys) -> Iterator[str]:
    """The lines of an archive's events with nothing sealed; raises as `archived_records`."""
    for table_id, record in archived_records(file, keys):
        place = {"table_id": table_id, "sequence": record.sequence, "time_ms": record.time_ms}
        row = {**place, "event": _fields(encode(record.event))}
        yield json.dumps(row, ensure_ascii=False)


async def _connect(database: str) -> Any:
    try:
        return await asyncpg.connect(database)
    except (*FAILED, ValueError) as error:
        raise ArchiveFailed(f"the database cannot be used: {error}") from None


async def _look(db: Any, number: int, month: str) -> Archive:
    """What a month comes to; refuses one that cannot go."""
    if number >= postgres.month_now():
        raise ArchiveFailed(f"{month} is not over")
    if await db.fetchval("SELECT to_regclass($1)", f"events_{number}") is None:
        raise ArchiveFailed(f"there is nothing of {month}")
    tables, still_open, events = await db.fetchrow(
        "SELECT count(*), count(*) FILTER (WHERE NOT h.done),"
        " coalesce(sum(h.last_sequence), 0)::bigint"
        " FROM tables t JOIN heads h USING (place) WHERE t.month = $1",
        number,
    )
    if still_open:
        raise ArchiveFailed(f"{still_open} tables of {month} are not over")
    return Archive(month, tables, events)


async def _write(
    db: Any, fresh: Path, number: int, done: Archive, on_progress: OnProgress, keys: JournalKeys
) -> None:
    written = 0
    with gzip.open(fresh, "wt", encoding="utf-8") as file:
        file.write(json.dumps(asdict(done)) + "\n")
        async for rows in _pages(db, number):
            for _, table_id, sequence, time_ms, body in rows:
                row = {"table_id": table_id, "sequence": sequence, "time_ms": time_ms}
                body = keys.open(table_id, event_place(sequence), body)
                if keys:
                    sealed = keys.seal(table_id, event_place(sequence), body)
                    row["sealed"] = base64.b64encode(sealed).decode()
                else:
                    row["event"] = _fields(body)
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            written += len(rows)
            on_progress("written", written, done.events)
    if written != done.events:
        raise ArchiveFailed(f"{done.events} events should be there, and {written} are")


def _fields(body: bytes) -> dict[str, Any]:
    """A plain event, as a person reads it."""
    return json_format.MessageToDict(
        stored.Event.FromString(body), preserving_proto_field_name=True
    )


async def _verify(
    db: Any, fresh: Path, number: int, done: Archive, on_progress: OnProgress, keys: JournalKeys
) -> str:
    """Compare what the file says with the database; the file's digest."""
    compared = 0
    records = archived_records(fresh, keys)
    try:
        async for rows in _pages(db, number):
            for _, table_id, sequence, time_ms, body in rows:
                expected = table_id, event_record(table_id, (sequence, time_ms, body), keys)
                if next(records, None) != expected:
                    raise ArchiveFailed(f"event {sequence} of table {table_id} is not in the file")
            compared += len(rows)
            on_progress("verified", compared, done.events)
        if next(records, None) is not None:
            raise ArchiveFailed("the file has more events than the journal")
    except UnknownEvent as error:
        raise ArchiveFailed(str(error)) from error
    return await asyncio.to_thread(_digest, fresh)


async def _pages(db: Any, number: int) -> Any:
    """A month's events, some at a time; no cursor, or the table could not be dropped beside it."""
    after = (0, 0)
    while rows := await db.fetch(_EVENTS, number, *after, _AT_ONCE):
        yield rows
        after = (rows[-1][0], rows[-1][2])


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _name(number: int) -> str:
    return f"{number // 100:04}-{number % 100:02}"
