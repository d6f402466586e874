"""The journal in PostgreSQL, for production: any number of table services on one database.

What waits at the same time is appended by one statement and one COMMIT. Of each table the statement
first locks the head, and goes on only where it stands as its owner thinks; so an append that comes
too late, or from one who is not the owner any more, is left out and the others are not.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import asyncpg

from fangcheng_kit import Batcher
from fangcheng_kit.migrations import BadDatabase
from fangcheng_kit.postgres import CONTENDED, FAILED, connector, numbered, pool, prepared, session

from . import postgres_leases as leases
from .erasures import Erasures
from .errors import TableArchived
from .migrations import JOURNAL
from .postgres_rewriting import rewrite
from .reads import Query, by_request, new_table
from .resealing import Resealing
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

MOST_TOGETHER = 512
"""Appends in one transaction at most."""

_WRITERS = 4
_READERS = 4
_SESSION = "fangcheng-table"
_MOST_TRIES = 5
_HANDS_LOCK = 0x68616E64  # numbers of our own among the advisory locks
_MONTHS_LOCK = 0x6D6F6E74
_MOST_KNOWN = 100_000

_log = logging.getLogger(__name__)

T = TypeVar("T")

_APPEND = """
WITH wanted AS (
    SELECT * FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::integer[])
        AS one (place, epoch, first, count)
), fitting AS (
    SELECT h.place FROM heads h JOIN wanted w USING (place)
    WHERE h.epoch = w.epoch AND (w.count = 0 OR h.last_sequence = w.first - 1)
    ORDER BY h.place FOR UPDATE OF h
), moved AS (
    UPDATE heads h SET last_sequence = h.last_sequence + w.count
    FROM fitting JOIN wanted w USING (place) WHERE h.place = fitting.place
    RETURNING h.place
), stored AS (
    INSERT INTO events
    SELECT e.* FROM unnest($5::integer[], $6::bigint[], $7::integer[], $8::bigint[], $9::bytea[])
        AS e (month, place, sequence, time_ms, body) JOIN moved USING (place)
)
SELECT place FROM moved
"""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a table's events go."""

    place: int
    month: int


@dataclass(frozen=True, slots=True)
class _Append:
    """One call of `append`."""

    table_id: str
    at: _Place
    rows: Sequence[tuple[int, int, bytes]]
    epoch: int
    closed: bytes | None
    done: bool
    hands: Sequence[HandEntry]
    actions: Sequence[OperatorAction]
    seated: Sequence[str]

    @property
    def is_plain(self) -> bool:
        """Events and nothing else."""
        return not (
            self.done or self.hands or self.actions or self.seated or self.closed is not None
        )


async def open_postgres(
    database: str,
    on_commit: Callable[[Commit], None] = lambda commit: None,
    keys: JournalKeys = NO_KEYS,
) -> PostgresJournal:
    """Open the journal in a database, its tables made where there are none.

    `database`: `postgresql://user:password@host/name`. Raises `JournalError` for a server that is
    not there, too old or set up to forget what it has committed, and a database that is another's
    or sealed with other keys.
    """
    settings = session(_SESSION)
    try:
        async with prepared(connector(database, settings), JOURNAL) as db:
            keys.check(await db.fetch("SELECT key_id, proof FROM journal_keys"))
            if keys:
                await db.execute(numbered(ADD_KEY), keys.first, keys.proof())
            writers = await pool(database, settings, _WRITERS)
            readers = await pool(database, settings, _READERS, read_only=True)
    except BadJournalKeys as error:
        raise JournalError(f"the database cannot be used: {error}") from None
    except BadDatabase as error:
        raise JournalError(str(error)) from None
    return PostgresJournal(writers, readers, on_commit, keys)


class PostgresJournal(Resealing, Erasures):
    """A `store.Journal` in a PostgreSQL database. Made by `open_postgres`."""

    EVENTS = (
        "SELECT e.sequence, e.time_ms, e.body FROM events e"
        " JOIN (SELECT place, month FROM tables WHERE table_id = ?) t USING (month, place)"
        " WHERE e.sequence > ? AND e.sequence <= ? ORDER BY e.sequence"
    )

    SET_BODY = (
        "UPDATE events e SET body = ? FROM tables t WHERE t.place = ? AND e.month = t.month"
        " AND e.place = t.place AND e.sequence = ? AND e.body = ?"
    )

    def __init__(
        self,
        writers: asyncpg.Pool,
        readers: asyncpg.Pool,
        on_commit: Callable[[Commit], None],
        keys: JournalKeys,
    ) -> None:
        self._keys = keys
        self._writers = writers
        self._readers = readers
        self._on_commit = on_commit
        self._places: dict[str, _Place] = {}
        self._months: set[int] = set()
        # One at a time: what was handed over first is stored first.
        self._batcher: Batcher[_Append, None] = Batcher(self._commit, most_items=MOST_TOGETHER)
        self._closed = False

    # Writing.

    async def create(self, table: NewTable, records: Sequence[Record], owner_id: str) -> NewTable:
        """See `store.Journal`."""
        month = month_now()
        rows = event_rows(table.table_id, records, self._keys)

        async def do(db: Any) -> NewTable:
            await self._make_month(db, month)
            place = await _place(db, add_table(table, month=month))
            if place is None:
                query = by_request(table.request_id)
                return new_table(await db.fetchrow(numbered(query.text), *query.values))
            await db.execute(
                "INSERT INTO heads (place, last_sequence, owner_id, epoch) VALUES ($1, $2, $3, 1)",
                place,
                len(rows),
                owner_id,
            )
            await _add_players(db, place, table.player_ids)
            await db.executemany(
                numbered(ADD_LABEL), [(*label, place) for label in table.labels.items()]
            )
            await db.executemany(
                "INSERT INTO events VALUES ($1, $2, $3, $4, $5)",
                [(month, place, *row) for row in rows],
            )
            self._know(table.table_id, _Place(place, month))
            return table

        made = await self._write(do)
        self._months.add(month)  # not before: its partition may go with the transaction
        return made

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
        self._check_open()
        rows = event_rows(table_id, records, self._keys)
        at = self._places.get(table_id) or await self._find_place(table_id)
        await self._batcher.submit(
            _Append(table_id, at, rows, epoch, closed, done, hands, actions, seated)
        )

    async def _find_place(self, table_id: str) -> _Place:
        query = Query("SELECT place, month FROM tables WHERE table_id = ?", (table_id,))
        rows = await self._fetch(query)
        if not rows:
            raise JournalError(f"there is no table {table_id}")
        found = _Place(*rows[0])
        self._know(table_id, found)
        return found

    def _know(self, table_id: str, at: _Place) -> None:
        if len(self._places) >= _MOST_KNOWN:
            self._places.clear()
        self._places[table_id] = at

    async def _commit(self, batch: Sequence[_Append]) -> Sequence[Exception | None]:
        """Do a batch in one transaction; one bad append fails alone."""
        started = time.perf_counter()
        try:
            outcomes = await self._insist(lambda db: self._append_all(db, batch))
        except JournalError as error:
            if len(batch) > 1 and isinstance(error, SequenceConflict):
                # A hand or an action that is there already; the others must not suffer from it.
                return [(await self._commit([one]))[0] for one in batch]
            outcomes = [error] * len(batch)
        self._on_commit(Commit(len(batch), time.perf_counter() - started))
        return outcomes

    async def _append_all(self, db: Any, batch: Sequence[_Append]) -> list[Exception | None]:
        rounds = list(_rounds(batch))
        if len(rounds) == 1 and all(one.is_plain for one in batch):
            places = await _append(db, batch)
            stored = {id(one) for one in batch if one.at.place in places}
        else:
            stored = set()
            async with db.transaction():
                if any(one.hands for one in batch):
                    # Places of finished hands are given out in the order of the commits.
                    await db.execute("SELECT pg_advisory_xact_lock($1)", _HANDS_LOCK)
                for some in rounds:
                    places = await _append(db, some)
                    for one in some:
                        if one.at.place in places:
                            stored.add(id(one))
                            await _add_more(db, one)
        return [None if id(one) in stored else await _why(db, one) for one in batch]

    async def save_opening(self, table_id: str, opening: Opening) -> None:
        """See `store.Journal`."""
        state = self._keys.seal(table_id, opening_place(opening.sequence), opening.state)
        await self._write(
            lambda db: db.execute(
                "INSERT INTO openings"
                " SELECT place, $2, $3 FROM tables JOIN heads USING (place)"
                " WHERE table_id = $1 AND NOT done"
                " ON CONFLICT (place) DO UPDATE SET sequence = excluded.sequence,"
                " state = excluded.state WHERE excluded.sequence > openings.sequence",
                table_id,
                opening.sequence,
                state,
            )
        )

    async def rewrite(self, table_id: str, change: Rewriting) -> int | None:
        """See `store.Journal`."""
        return await self._write(lambda db: rewrite(db, table_id, change, self._keys))

    async def _execute(self, queries: Sequence[Query]) -> None:
        async def do(db: Any) -> None:
            for query in queries:
                await db.execute(numbered(query.text), *query.values)

        await self._write(do)

    async def _wipe(self) -> None:
        """Old rows are the server's to take away, by its VACUUM."""

    async def check(self) -> None:
        """See `store.Journal`."""
        # Takes a number of a transaction, and so writes that it was committed.
        await self._write(lambda db: db.fetchval("SELECT pg_current_xact_id()::text"))

    async def _make_month(self, db: Any, month: int) -> None:
        """Make the partition of a month, if it is not there."""
        if month in self._months:
            return
        await db.execute("SELECT pg_advisory_xact_lock($1)", _MONTHS_LOCK)
        await db.execute(
            f"CREATE TABLE IF NOT EXISTS events_{month} PARTITION OF events FOR VALUES IN ({month})"
        )

    # Leases.

    async def join(self, owner: Owner, lease_ms: int) -> None:
        """See `store.Journal`."""
        await self._write(lambda db: leases.join(db, owner, lease_ms))

    async def renew(self, owner_id: str, lease_ms: int) -> bool:
        """See `store.Journal`."""
        return await self._write(lambda db: leases.renew(db, owner_id, lease_ms))

    async def leave(self, owner_id: str) -> None:
        """See `store.Journal`."""
        await self._write(lambda db: leases.leave(db, owner_id))

    async def claim(
        self, owner_id: str, plays: Collection[tuple[str, int]], limit: int, table_id: str = ""
    ) -> list[Claim]:
        """See `store.Journal`."""
        return await self._write(lambda db: leases.claim(db, owner_id, plays, limit, table_id))

    async def give_up(self, table_id: str, epoch: int) -> None:
        """See `store.Journal`."""
        await self._write(lambda db: leases.give_up(db, table_id, epoch))

    async def held(self, owner_id: str) -> list[Claim]:
        """See `store.Journal`."""
        return await self._read(lambda db: leases.held(db, owner_id))

    async def owner_of(self, table_id: str) -> Owner | None:
        """See `store.Journal`."""
        return await self._read(lambda db: leases.owner_of(db, table_id))

    async def owners(self) -> list[Owner]:
        """See `store.Journal`."""
        return await self._read(leases.owners)

    async def census(self) -> Census:
        """See `store.Journal`."""
        return await self._read(leases.census)

    # Reading.

    async def read(self, table_id: str, after: int = 0, upto: int | None = None) -> list[Record]:
        """See `store.Journal`."""
        records = await super().read(table_id, after, upto)
        if not records:
            query = Query(
                "SELECT 1 FROM tables JOIN archives USING (month) WHERE table_id = ?", (table_id,)
            )
            if await self._fetch(query):
                raise TableArchived(table_id)
        return records

    async def _fetch(self, query: Query) -> Sequence[Any]:
        return await self._read(lambda db: db.fetch(numbered(query.text), *query.values))

    # Connections.

    async def _read(self, do: Callable[[Any], Awaitable[T]]) -> T:
        return await self._with(self._readers, do)

    async def _write(self, do: Callable[[Any], Awaitable[T]]) -> T:
        async def whole(db: Any) -> T:
            async with db.transaction():
                return await do(db)

        return await self._insist(whole)

    async def _insist(self, do: Callable[[Any], Awaitable[T]]) -> T:
        """Try again where others were in the way, and nothing was done."""
        tries = 0
        while True:
            tries += 1
            try:
                return await self._with(self._writers, do)
            except JournalError as error:
                if not isinstance(error.__cause__, CONTENDED) or tries == _MOST_TRIES:
                    raise

    async def _with(self, pool: asyncpg.Pool, do: Callable[[Any], Awaitable[T]]) -> T:
        self._check_open()
        try:
            async with pool.acquire() as db:
                return await do(db)
        except asyncpg.IntegrityConstraintViolationError as error:
            raise SequenceConflict(str(error)) from error
        except FAILED as error:
            raise JournalError(f"{type(error).__name__}: {error}") from error

    def _check_open(self) -> None:
        if self._closed:
            raise JournalError("the journal is closed")

    async def close(self) -> None:
        """See `store.Journal`."""
        if self._closed:
            return
        await self._batcher.close()
        self._closed = True
        await self._writers.close()
        await self._readers.close()


async def _append(db: Any, batch: Sequence[_Append]) -> set[int]:
    """Append to tables, each once; the places of those that stood as they were thought to."""
    events = [(one.at, row) for one in batch for row in one.rows]
    rows = await db.fetch(
        _APPEND,
        [one.at.place for one in batch],
        [one.epoch for one in batch],
        [one.rows[0][0] if one.rows else 0 for one in batch],
        [len(one.rows) for one in batch],
        [at.month for at, _ in events],
        [at.place for at, _ in events],
        [row[0] for _, row in events],
        [row[1] for _, row in events],
        [row[2] for _, row in events],
    )
    return {row[0] for row in rows}


def _rounds(batch: Sequence[_Append]) -> Iterator[list[_Append]]:
    """The appends in their order, no table twice at the same time."""
    rest = list(batch)
    while rest:
        seen: set[int] = set()
        now: list[_Append] = []
        later: list[_Append] = []
        for one in rest:
            (later if one.at.place in seen else now).append(one)
            seen.add(one.at.place)
        yield now
        rest = later


async def _add_more(db: Any, one: _Append) -> None:
    """What goes with the events of an append."""
    place = one.at.place
    if one.closed is not None:
        await db.execute(
            "UPDATE tables SET closed = true, summary = $2 WHERE place = $1", place, one.closed
        )
    if one.done:
        await db.execute("UPDATE heads SET done = true, owner_id = '' WHERE place = $1", place)
        await db.execute("DELETE FROM openings WHERE place = $1", place)
    if one.seated:
        await _add_players(db, place, one.seated)
    for hand in one.hands:
        number = await _place(db, add_hand(place, hand))
        await db.executemany(
            numbered(ADD_HAND_PLAYER), [(player, number) for player in hand.player_ids]
        )
    for action in one.actions:
        await _place(db, add_action(place, action))


async def _add_players(db: Any, place: int, player_ids: Sequence[str]) -> None:
    await db.executemany(numbered(ADD_PLAYER), [(player, place) for player in player_ids])


async def _place(db: Any, query: Query) -> Any:
    """Add a row; where it stands, or None where there was no need of it."""
    return await db.fetchval(numbered(query.text), *query.values)


async def _why(db: Any, one: _Append) -> Exception:
    """Why an append was left out."""
    row = await db.fetchrow("SELECT epoch, last_sequence FROM heads WHERE place = $1", one.at.place)
    epoch, last = row
    if epoch != one.epoch:
        return Superseded(f"{one.table_id} is owned under epoch {epoch}, not {one.epoch}")
    return SequenceConflict(f"{one.table_id}: {one.rows[0][0]} does not follow {last}")


def month_now() -> int:
    """The month that a table made now belongs to, UTC: 202601."""
    now = datetime.now(UTC)
    return now.year * 100 + now.month
