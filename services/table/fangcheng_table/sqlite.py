"""The journal in SQLite: one writer thread that commits what waits together, readers beside it.

The writer takes what waits without asking the event loop (a `Batcher` does), which has most of a
core to itself to be quick: an append took a tenth less of it so.
"""

from __future__ import annotations

import asyncio
import json
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from fangcheng_kit.migrations import BadDatabase
from fangcheng_kit.sqlite import open_file, open_reader, wipe

from . import sqlite_leases as leases
from .erasures import Erasures
from .migrations import JOURNAL
from .reads import Query, by_request, new_table
from .resealing import Resealing
from .rewriting import made_anew, overwriting, read_sqlite, write_sqlite
from .sealing import NO_KEYS, BadJournalKeys, JournalKeys, opening_place
from .store import (
    Census,
    Claim,
    Commit,
    HandEntry,
    JournalError,
    NewTable,
    Opening,
    OperatorAction,
    Owner,
    Record,
    Rewriting,
    SequenceConflict,
    Superseded,
)
from .writes import (
    ADD_HAND_PLAYER,
    ADD_KEY,
    ADD_LABEL,
    ADD_PLAYER,
    add_action,
    add_hand,
    add_table,
    event_rows,
)

T = TypeVar("T")

MOST_TOGETHER = 512
"""Appends in one transaction at most."""
GAP_SECONDS = 0.003
"""Between the beginnings of two transactions, where several tables append at once: one costs as
much as many appends."""
MOST_ROWS = 1_000
"""Events that one statement inserts at most."""


@dataclass(frozen=True, slots=True)
class _Append:
    """Events of a table and nothing else, as nearly every append is."""

    table_id: str
    epoch: int
    rows: list[tuple[int, int, bytes]]


@dataclass(slots=True)
class _Work:
    """Something for the writer to do, and where its outcome goes."""

    do: Callable[[sqlite3.Connection], Any] | _Append
    outcome: asyncio.Future[Any]


class SqliteJournal(Resealing, Erasures):
    """A `store.Journal` in one SQLite file."""

    def __init__(
        self,
        path: Path,
        on_commit: Callable[[Commit], None] = lambda commit: None,
        keys: JournalKeys = NO_KEYS,
    ) -> None:
        """Open or make the file.

        Raises `JournalError` where it is another version's, or sealed with other keys.
        """
        self._path = path
        self._on_commit = on_commit
        self._keys = keys
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = open_file(path, JOURNAL)
        except BadDatabase as error:
            raise JournalError(str(error)) from error
        try:
            _check_keys(self._db, keys)
        except BaseException as error:
            self._db.close()
            if isinstance(error, (BadJournalKeys, sqlite3.Error)):
                raise JournalError(f"{path} cannot be used: {error}") from None
            raise
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="journal-read")
        self._writer = threading.Thread(target=self._write_forever, name="journal-write")
        self._writer.start()
        self._closed = False

    # Writing.

    async def create(self, table: NewTable, records: Sequence[Record], owner_id: str) -> NewTable:
        """See `store.Journal`."""
        rows = event_rows(table.table_id, records, self._keys)

        def do(db: sqlite3.Connection) -> NewTable:
            place = _place(db, add_table(table, owner_id=owner_id, epoch=1))
            if place is None:
                query = by_request(table.request_id)
                return new_table(db.execute(query.text, query.values).fetchone())
            db.executemany(ADD_PLAYER, [(player, place) for player in table.player_ids])
            db.executemany(ADD_LABEL, [(*label, place) for label in table.labels.items()])
            db.executemany(_INSERT, [(place, *row) for row in rows])
            return table

        return await self._write(do)

    async def append(
        self,
        table_id: str,
        records: Sequence[Record],
        *,
        epoch: int,
        closed: bytes | None = None,
        done: bool = False,
        hands: Sequence[HandEntry] = (),
        actions: Sequence[OperatorAction] = (),
        seated: Sequence[str] = (),
    ) -> None:
        """See `store.Journal`."""
        events = _Append(table_id, epoch, event_rows(table_id, records, self._keys))
        if closed is None and not (done or hands or actions or seated):
            await self._write(events)
            return

        def do(db: sqlite3.Connection) -> None:
            ((place, refusal),) = _append(db, [events])
            if refusal is not None:
                raise refusal
            if closed is not None:
                db.execute(
                    "UPDATE tables SET closed = 1, summary = ? WHERE place = ?", (closed, place)
                )
            if done:
                db.execute("UPDATE tables SET done = 1, owner_id = '' WHERE place = ?", (place,))
                db.execute("DELETE FROM openings WHERE place = ?", (place,))
            db.executemany(ADD_PLAYER, [(player, place) for player in seated])
            for hand in hands:
                number = _place(db, add_hand(place, hand))
                db.executemany(ADD_HAND_PLAYER, [(player, number) for player in hand.player_ids])
            for action in actions:
                _place(db, add_action(place, action))

        await self._write(do)

    async def save_opening(self, table_id: str, opening: Opening) -> None:
        """See `store.Journal`."""
        state = self._keys.seal(table_id, opening_place(opening.sequence), opening.state)
        await self._write(
            lambda db: db.execute(
                "INSERT INTO openings SELECT place, ?, ? FROM tables"
                " WHERE table_id = ? AND done = 0"
                " ON CONFLICT (place) DO UPDATE SET sequence = excluded.sequence,"
                " state = excluded.state WHERE excluded.sequence > sequence",
                (opening.sequence, state, table_id),
            )
        )

    async def rewrite(self, table_id: str, change: Rewriting) -> int:
        """See `store.Journal`."""

        async def is_done() -> int | None:
            kept = await self._read(lambda db: read_sqlite(db, table_id))
            anew = await made_anew(table_id, kept, change, self._keys)
            written = await self._write(lambda db: write_sqlite(db, table_id, kept, anew))
            return len(anew.bodies) if written else None

        while (changed := await is_done()) is None:
            pass  # from what is stored by now
        return changed

    async def _execute(self, queries: Sequence[Query]) -> None:
        def do(db: sqlite3.Connection) -> None:
            with overwriting(db):
                for query in queries:
                    db.execute(query.text, query.values)

        await self._write(do)

    # Leases.

    async def join(self, owner: Owner, lease_ms: int) -> None:
        """See `store.Journal`."""
        await self._write(lambda db: leases.join(db, owner, _now_ms() + lease_ms))

    async def renew(self, owner_id: str, lease_ms: int) -> bool:
        """See `store.Journal`."""

        def do(db: sqlite3.Connection) -> bool:
            now_ms = _now_ms()
            return leases.renew(db, owner_id, now_ms, now_ms + lease_ms)

        return await self._write(do)

    async def leave(self, owner_id: str) -> None:
        """See `store.Journal`."""
        await self._write(lambda db: leases.leave(db, owner_id))

    async def claim(
        self, owner_id: str, plays: Collection[tuple[str, int]], limit: int, table_id: str = ""
    ) -> list[Claim]:
        """See `store.Journal`."""
        return await self._write(
            lambda db: leases.claim(db, owner_id, plays, limit, table_id, _now_ms())
        )

    async def give_up(self, table_id: str, epoch: int) -> None:
        """See `store.Journal`."""
        await self._write(lambda db: leases.give_up(db, table_id, epoch))

    async def held(self, owner_id: str) -> list[Claim]:
        """See `store.Journal`."""
        return await self._read(lambda db: leases.held(db, owner_id))

    async def owner_of(self, table_id: str) -> Owner | None:
        """See `store.Journal`."""
        return await self._read(lambda db: leases.owner_of(db, table_id, _now_ms()))

    async def owners(self) -> list[Owner]:
        """See `store.Journal`."""
        return await self._read(lambda db: leases.owners(db, _now_ms()))

    async def census(self) -> Census:
        """See `store.Journal`."""
        return await self._read(lambda db: leases.census(db, _now_ms()))

    async def check(self) -> None:
        """See `store.Journal`."""

        def do(db: sqlite3.Connection) -> None:
            # Changes no value, and writes its page all the same.
            db.execute(
                "UPDATE tables SET done = done WHERE place = (SELECT max(place) FROM tables)"
            )

        await self._write(do)

    async def _write(self, do: Callable[[sqlite3.Connection], T] | _Append) -> T:
        if self._closed:
            raise JournalError("the journal is closed")
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._work.put(_Work(do, outcome))
        # The writer goes on when the caller is cancelled: a commit is never cut in half.
        return await outcome

    async def _wipe(self) -> None:
        await self._write(wipe)

    def _write_forever(self) -> None:
        not_before, aside = 0.0, None
        while (first := aside or self._work.get()) is not None:
            aside = None
            if first.do is wipe:
                self._alone(first)
                continue
            if (rest := not_before - time.monotonic()) > 0:
                time.sleep(rest)
            batch, last = [first], False
            while len(batch) < MOST_TOGETHER:
                try:
                    more = self._work.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    last = True
                    break
                if more.do is wipe:
                    aside = more
                    break
                batch.append(more)
            not_before = time.monotonic() + GAP_SECONDS if len(batch) > 1 else 0.0
            self._commit(self._db, batch)
            if last:
                return

    def _alone(self, work: _Work) -> None:
        """Do what cannot be done within a transaction."""
        failure: JournalError | None = None
        try:
            wipe(self._db)
        except sqlite3.Error as error:
            failure = _as_journal_error(error)
        outcomes: list[_Outcome] = [(work, None, failure)]
        loop = work.outcome.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(_tell, outcomes)

    def _commit(self, db: sqlite3.Connection, batch: list[_Work]) -> None:
        """Do a batch in one transaction; one bad piece of work fails alone."""
        started = time.perf_counter()
        outcomes: list[_Outcome] = []
        try:
            db.execute("BEGIN IMMEDIATE")
            for together, some in groupby(batch, lambda work: isinstance(work.do, _Append)):
                outcomes += (_appended if together else _each)(db, list(some))
            db.execute("COMMIT")
        except Exception as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            failure = _as_journal_error(error)
            outcomes = [(work, None, failure) for work in batch]
        self._on_commit(Commit(len(batch), time.perf_counter() - started))
        loop = batch[0].outcome.get_loop()  # a journal is used in one
        if not loop.is_closed():
            loop.call_soon_threadsafe(_tell, outcomes)

    # Reading.

    async def _fetch(self, query: Query) -> list[Any]:
        return await self._read(lambda db: db.execute(query.text, query.values).fetchall())

    async def _read(self, do: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise JournalError("the journal is closed")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._with, do)

    def _with(self, do: Callable[[sqlite3.Connection], T]) -> T:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        try:
            if db is None:
                db = self._local.db = open_reader(self._path)
                self._connections.append(db)
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
        for db in (*self._connections, self._db):
            db.close()


def _check_keys(db: sqlite3.Connection, keys: JournalKeys) -> None:
    """Compare the keys with those of the journal, and note the one that is written with."""
    db.execute("BEGIN IMMEDIATE")
    try:
        keys.check(db.execute("SELECT key_id, proof FROM journal_keys"))
        if keys:
            db.execute(ADD_KEY, (keys.first, keys.proof()))
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _now_ms() -> int:
    """By which leases run out: a file's processes are all on one host."""
    return time.time_ns() // 1_000_000


_Outcome = tuple[_Work, Any, Exception | None]


def _each(db: sqlite3.Connection, batch: Sequence[_Work]) -> Iterator[_Outcome]:
    """Do one piece of work after the other; each that cannot be done leaves nothing."""
    for work in batch:
        assert not isinstance(work.do, _Append)  # noqa: S101 # nosec B101 # told apart before
        db.execute("SAVEPOINT work")
        try:
            yield work, work.do(db), None
        except (JournalError, sqlite3.IntegrityError) as error:
            db.execute("ROLLBACK TO work")
            yield work, None, _as_journal_error(error)
        db.execute("RELEASE work")


def _appended(db: sqlite3.Connection, batch: Sequence[_Work]) -> Iterator[_Outcome]:
    appends = [work.do for work in batch if isinstance(work.do, _Append)]
    for work, (_, refusal) in zip(batch, _append(db, appends), strict=True):
        yield work, None, refusal


def _append(
    db: sqlite3.Connection, appends: Sequence[_Append]
) -> list[tuple[int, JournalError | None]]:
    """Insert the events of all that can be appended: the place of each table, and what refuses it.

    In as few steps as can be: with each the thread lets others run, and may have to wait for its
    next turn while the event loop is busy. So one row answers for all tables, and one statement
    inserts the events of all.
    """
    (found,) = db.execute(
        "SELECT json_group_object(table_id, json_array(place, epoch, coalesce("
        "(SELECT max(sequence) FROM events WHERE place = t.place), 0)))"
        " FROM tables t WHERE table_id IN (SELECT value FROM json_each(?))",
        (json.dumps([append.table_id for append in appends]),),
    ).fetchone()
    tables: dict[str, list[int]] = json.loads(found)
    outcomes: list[tuple[int, JournalError | None]] = []
    values: list[int | bytes] = []
    for append in appends:
        table_id, rows = append.table_id, append.rows
        place, newest, last = tables.get(table_id, (0, 0, 0))
        refusal: JournalError | None = None
        if not place:
            refusal = JournalError(f"there is no table {table_id}")
        elif append.epoch != newest:
            refusal = Superseded(f"{table_id} is owned under epoch {newest}, not {append.epoch}")
        elif rows and rows[0][0] != last + 1:
            refusal = SequenceConflict(f"{table_id}: {rows[0][0]} does not follow {last}")
        elif rows:
            tables[table_id][2] = rows[-1][0]
            for row in rows:
                values += (place, *row)
        outcomes.append((place, refusal))
    for start in range(0, len(values), 4 * MOST_ROWS):
        part = values[start : start + 4 * MOST_ROWS]
        db.execute(_INSERT + ", (?, ?, ?, ?)" * (len(part) // 4 - 1), part)
    return outcomes


_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?)"


def _place(db: sqlite3.Connection, query: Query) -> int | None:
    """Add a row; where it stands, or None where there was no need of it."""
    rows = db.execute(query.text, query.values).fetchall()
    return rows[0][0] if rows else None


def _tell(outcomes: list[_Outcome]) -> None:
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
