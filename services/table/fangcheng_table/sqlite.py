"""The journal in SQLite: one writer thread that commits what waits together, readers beside it."""

from __future__ import annotations

import asyncio
import json
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .codec import StoredEvent, decode, encode
from .store import Filter, Found, JournalError, NewTable, Record, SequenceConflict

T = TypeVar("T")

SCHEMA_VERSION = 1
MOST_TOGETHER = 512
"""Appends in one transaction at most."""

_SCHEMA = """
CREATE TABLE tables (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    table_id TEXT NOT NULL UNIQUE,
    request_id TEXT NOT NULL UNIQUE,
    request TEXT NOT NULL,
    rule_set TEXT NOT NULL,
    player_ids TEXT NOT NULL,
    labels TEXT NOT NULL,
    closed INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    summary BLOB
) STRICT;
CREATE INDEX tables_open ON tables (place) WHERE closed = 0;
CREATE INDEX tables_unfinished ON tables (place) WHERE done = 0;
CREATE TABLE players (
    player_id TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (player_id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE labels (
    key TEXT NOT NULL, value TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (key, value, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    place INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (place, sequence)
) STRICT, WITHOUT ROWID;
"""


@dataclass(slots=True)
class _Work:
    """Something for the writer to do, and where its outcome goes."""

    do: Callable[[sqlite3.Connection], Any]
    loop: asyncio.AbstractEventLoop
    outcome: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class Commit:
    """What one transaction of the writer was like, for the metrics."""

    appends: int
    seconds: float


class SqliteJournal:
    """A `store.Journal` in one SQLite file."""

    def __init__(self, path: Path, on_commit: Callable[[Commit], None] | None = None) -> None:
        """Open or make the file; raises `JournalError` where it is another version's."""
        self._path = path
        self._on_commit = on_commit or (lambda commit: None)
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        path.parent.mkdir(parents=True, exist_ok=True)
        _prepare(path)
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="journal-read")
        self._writer = threading.Thread(target=self._write_forever, name="journal-write")
        self._writer.start()
        self._closed = False

    # Writing.

    async def create(self, table: NewTable, records: Sequence[Record]) -> NewTable:
        """See `store.Journal`."""
        rows = _rows(records)

        def do(db: sqlite3.Connection) -> NewTable:
            before = _by_request(db, table.request_id)
            if before is not None:
                return before
            place = db.execute(
                "INSERT INTO tables (table_id, request_id, request, rule_set, player_ids, labels)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    table.table_id,
                    table.request_id,
                    table.request,
                    table.rule_set,
                    json.dumps(table.player_ids),
                    json.dumps(dict(table.labels)),
                ),
            ).lastrowid
            db.executemany(
                "INSERT INTO players VALUES (?, ?)", [(p, place) for p in table.player_ids]
            )
            db.executemany(
                "INSERT INTO labels VALUES (?, ?, ?)",
                [(key, value, place) for key, value in table.labels.items()],
            )
            db.executemany(_INSERT, [(place, *row) for row in rows])
            return table

        return await self._write(do)

    async def append(
        self,
        table_id: str,
        records: Sequence[Record],
        *,
        closed: bytes | None = None,
        done: bool = False,
    ) -> None:
        """See `store.Journal`."""
        rows = _rows(records)

        def do(db: sqlite3.Connection) -> None:
            found = db.execute(
                "SELECT place, (SELECT max(sequence) FROM events WHERE place = t.place)"
                " FROM tables t WHERE table_id = ?",
                (table_id,),
            ).fetchone()
            if found is None:
                raise JournalError(f"there is no table {table_id}")
            place, last = found
            if rows and rows[0][0] != (last or 0) + 1:
                raise SequenceConflict(f"{table_id}: {rows[0][0]} does not follow {last}")
            db.executemany(_INSERT, [(place, *row) for row in rows])
            if closed is not None:
                db.execute(
                    "UPDATE tables SET closed = 1, summary = ? WHERE place = ?", (closed, place)
                )
            if done:
                db.execute("UPDATE tables SET done = 1 WHERE place = ?", (place,))

        await self._write(do)

    async def check(self) -> None:
        """See `store.Journal`."""

        def do(db: sqlite3.Connection) -> None:
            # Changes no value, and writes its page all the same.
            db.execute(
                "UPDATE tables SET done = done WHERE place = (SELECT max(place) FROM tables)"
            )

        await self._write(do)

    async def _write(self, do: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise JournalError("the journal is closed")
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        self._work.put(_Work(do, loop, outcome))
        # The writer goes on when the caller is cancelled: a commit is never cut in half.
        return await outcome

    def _write_forever(self) -> None:
        db = _connect(self._path)
        try:
            while (first := self._work.get()) is not None:
                batch, last = [first], False
                while len(batch) < MOST_TOGETHER:
                    try:
                        more = self._work.get_nowait()
                    except queue.Empty:
                        break
                    if more is None:
                        last = True
                        break
                    batch.append(more)
                self._commit(db, batch)
                if last:
                    return
        finally:
            db.close()

    def _commit(self, db: sqlite3.Connection, batch: list[_Work]) -> None:
        """Do a batch in one transaction; one bad piece of work fails alone."""
        started = time.perf_counter()
        outcomes: list[tuple[_Work, Any, Exception | None]] = []
        try:
            db.execute("BEGIN IMMEDIATE")
            for work in batch:
                db.execute("SAVEPOINT work")
                try:
                    outcomes.append((work, work.do(db), None))
                except (JournalError, sqlite3.IntegrityError) as error:
                    db.execute("ROLLBACK TO work")
                    outcomes.append((work, None, _as_journal_error(error)))
                db.execute("RELEASE work")
            db.execute("COMMIT")
        except Exception as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            failure = _as_journal_error(error)
            outcomes = [(work, None, failure) for work in batch]
        self._on_commit(Commit(len(batch), time.perf_counter() - started))
        for loop in {work.loop for work in batch}:
            mine = [outcome for outcome in outcomes if outcome[0].loop is loop]
            if not loop.is_closed():
                loop.call_soon_threadsafe(_tell, mine)

    # Reading.

    async def read(self, table_id: str) -> list[Record]:
        """See `store.Journal`."""

        def do(db: sqlite3.Connection) -> list[Record]:
            rows = db.execute(
                "SELECT sequence, time_ms, kind, version, body FROM events WHERE place ="
                " (SELECT place FROM tables WHERE table_id = ?) ORDER BY sequence",
                (table_id,),
            )
            return [Record(row[0], row[1], decode(StoredEvent(*row[2:]))) for row in rows]

        return await self._run(do)

    async def by_request(self, request_id: str) -> NewTable | None:
        """See `store.Journal`."""
        return await self._run(lambda db: _by_request(db, request_id))

    async def unfinished(self) -> list[str]:
        """See `store.Journal`."""
        rows = await self._read("SELECT table_id FROM tables WHERE done = 0 ORDER BY place", ())
        return [row[0] for row in rows]

    async def find(self, wanted: Filter, before: int | None, limit: int) -> list[Found]:
        """See `store.Journal`."""
        where = ["TRUE"]
        values: list[Any] = []
        if before is not None:
            where.append("place < ?")
            values.append(before)
        if not wanted.include_closed:
            where.append("closed = 0")
        if wanted.rule_set:
            where.append("rule_set = ?")
            values.append(wanted.rule_set)
        if wanted.player_id:
            where.append("place IN (SELECT place FROM players WHERE player_id = ?)")
            values.append(wanted.player_id)
        for key, value in (wanted.labels or {}).items():
            where.append("place IN (SELECT place FROM labels WHERE key = ? AND value = ?)")
            values += (key, value)
        query = (
            "SELECT place, table_id, summary FROM tables WHERE "  # noqa: S608 (words of our own)
            + " AND ".join(where)
            + " ORDER BY place DESC LIMIT ?"
        )
        return [Found(*row) for row in await self._read(query, (*values, limit))]

    async def _read(self, query: str, values: Sequence[Any]) -> list[Any]:
        return await self._run(lambda db: db.execute(query, values).fetchall())

    async def _run(self, do: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise JournalError("the journal is closed")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._with, do)

    def _with(self, do: Callable[[sqlite3.Connection], T]) -> T:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = self._local.db = _connect(self._path)
            self._connections.append(db)
        try:
            return do(db)
        except sqlite3.Error as error:
            raise _as_journal_error(error) from error

    async def close(self) -> None:
        """See `store.Journal`."""
        if self._closed:
            return
        self._closed = True
        self._work.put(None)
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._readers.shutdown)
        for db in self._connections:
            db.close()


_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)"


def _rows(records: Sequence[Record]) -> list[tuple[int, int, str, int, str]]:
    return [(record.sequence, record.time_ms, *encode(record.event)) for record in records]


def _by_request(db: sqlite3.Connection, request_id: str) -> NewTable | None:
    row = db.execute(
        "SELECT table_id, request_id, request, rule_set, player_ids, labels FROM tables"
        " WHERE request_id = ?",
        (request_id,),
    ).fetchone()
    if row is None:
        return None
    table_id, request_id, request, rule_set, player_ids, labels = row
    return NewTable(
        table_id, request_id, request, rule_set, tuple(json.loads(player_ids)), json.loads(labels)
    )


def _tell(outcomes: list[tuple[_Work, Any, Exception | None]]) -> None:
    for work, value, error in outcomes:
        if work.outcome.done():
            continue
        if error is None:
            work.outcome.set_result(value)
        else:
            work.outcome.set_exception(error)


def _as_journal_error(error: Exception) -> JournalError:
    if isinstance(error, JournalError):
        return error
    if isinstance(error, sqlite3.IntegrityError):
        return SequenceConflict(str(error))
    return JournalError(f"{type(error).__name__}: {error}")


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db


def _prepare(path: Path) -> None:
    try:
        with closing(_connect(path)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                db.executescript(
                    f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version = {SCHEMA_VERSION};COMMIT;"
                )
            elif version != SCHEMA_VERSION:
                raise JournalError(f"{path} has schema version {version}, not {SCHEMA_VERSION}")
    except sqlite3.Error as error:
        raise JournalError(f"{path}: {error}") from error
