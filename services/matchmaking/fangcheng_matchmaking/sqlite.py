"""The store on SQLite: one file, one thread that writes.

All calls go through one thread. What waits there is done in one transaction with one COMMIT, each
call in a savepoint of its own, so that a refused call takes nothing with it and many calls share
the price of the disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fangcheng_kit.batching import Batcher, in_thread

from .core import LIVE, Match, MatchState, NewTicket, Problem, Ticket, TicketState
from .store import (
    Joined,
    LiveTicket,
    NotWaiting,
    RequestReused,
    SomebodyLeaves,
    StoreError,
    StoreUnavailable,
    UnknownMatch,
    UnknownTicket,
    WrongStep,
)

T = TypeVar("T")

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE tickets (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    ticket_id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    player_id TEXT NOT NULL,
    pool_id TEXT NOT NULL,
    client_version INTEGER NOT NULL,
    profile BLOB NOT NULL,
    labels TEXT NOT NULL,
    standby INTEGER NOT NULL,
    is_bot INTEGER NOT NULL,
    queued_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    leaving INTEGER NOT NULL,
    match_id TEXT,
    seat INTEGER,
    table_id TEXT,
    endpoint TEXT,
    hold_ids TEXT NOT NULL,
    problem TEXT,
    UNIQUE (player_id, request_id)
) STRICT;
CREATE UNIQUE INDEX one_live_ticket ON tickets (player_id)
    WHERE state IN ('waiting', 'matched', 'assigned');
CREATE INDEX tickets_of_table ON tickets (table_id) WHERE state = 'assigned';
CREATE INDEX tickets_of_match ON tickets (match_id) WHERE match_id IS NOT NULL;
CREATE INDEX past_tickets ON tickets (queued_ms)
    WHERE state NOT IN ('waiting', 'matched', 'assigned');
CREATE TABLE matches (
    match_id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    formed_ms INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX unfinished_matches ON matches (formed_ms)
    WHERE state NOT IN ('seated', 'returned');
"""
_LARGEST_BATCH = 256

_Call = Callable[[sqlite3.Connection], Any]


class SqliteStore:
    """`Store` in one SQLite file; `open` it, and `close` it at the end."""

    def __init__(self, db: sqlite3.Connection, thread: ThreadPoolExecutor) -> None:
        self._db = db
        self._thread = thread
        self._calls: Batcher[_Call, Any] = Batcher(
            in_thread(partial(_commit_together, db), thread), most_items=_LARGEST_BATCH
        )

    @classmethod
    async def open(cls, path: Path | str) -> SqliteStore:
        """Opens the file, creating it where needed; raises StoreError for one of another time."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="matchmaking-store")
        try:
            db = await asyncio.get_running_loop().run_in_executor(thread, _connect, path)
        except BaseException:
            thread.shutdown()
            raise
        return cls(db, thread)

    async def close(self) -> None:
        """Waits for what was begun and closes the file."""
        await self._calls.close()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._db.close)
        self._thread.shutdown()

    async def join(self, new: NewTicket) -> Joined:
        """See `Store.join`."""

        def call(db: sqlite3.Connection) -> Joined:
            first = _replay(db, new)
            if first is not None:
                return Joined(first, replayed=True)
            live = _live_ticket(db, new.player_id)
            if live is not None:
                raise LiveTicket(live)
            fields = {name: getattr(new, name) for name in NewTicket.__dataclass_fields__}
            return Joined(_insert(db, Ticket(**fields, number=0)), replayed=False)

        return await self._do(call)

    async def replay(self, new: NewTicket) -> Ticket | None:
        """See `Store.replay`."""
        return await self._do(lambda db: _replay(db, new))

    async def check(self) -> None:
        """See `Store.check`."""
        await self._do(lambda db: db.execute("SELECT 1 FROM tickets LIMIT 1").fetchone())

    async def ticket(self, ticket_id: str) -> Ticket:
        """See `Store.ticket`."""
        return await self._do(lambda db: _ticket(db, ticket_id))

    async def live_ticket(self, player_id: str) -> Ticket | None:
        """See `Store.live_ticket`."""
        return await self._do(lambda db: _live_ticket(db, player_id))

    async def live_tickets(self) -> list[Ticket]:
        """See `Store.live_tickets`."""
        return await self._do(
            lambda db: _tickets(db, f"{_IS_LIVE} ORDER BY queued_ms, number", *_LIVE_STATES)
        )

    async def match(self, match_id: str) -> Match:
        """See `Store.match`."""
        return await self._do(lambda db: _match(db, match_id))

    async def unfinished_matches(self) -> list[Match]:
        """See `Store.unfinished_matches`."""

        def call(db: sqlite3.Connection) -> list[Match]:
            rows = db.execute(
                "SELECT record FROM matches WHERE state NOT IN ('seated', 'returned')"
                " ORDER BY formed_ms, match_id"
            )
            return [msgspec.json.decode(record, type=Match) for (record,) in rows]

        return await self._do(call)

    async def leave(self, ticket_id: str) -> Ticket:
        """See `Store.leave`."""

        def call(db: sqlite3.Connection) -> Ticket:
            ticket = _ticket(db, ticket_id)
            if ticket.state is TicketState.WAITING:
                return _save(db, replace(ticket, state=TicketState.LEFT))
            if ticket.state is TicketState.MATCHED and not ticket.leaving:
                return _save(db, replace(ticket, leaving=True))
            return ticket

        return await self._do(call)

    async def fail(self, ticket_id: str, problem: Problem) -> Ticket:
        """See `Store.fail`."""

        def call(db: sqlite3.Connection) -> Ticket:
            ticket = _ticket(db, ticket_id)
            if ticket.state is TicketState.WAITING:
                return _save(db, replace(ticket, state=TicketState.FAILED, problem=problem))
            return ticket

        return await self._do(call)

    async def form(self, match: Match) -> list[Ticket]:
        """See `Store.form`."""

        def call(db: sqlite3.Connection) -> list[Ticket]:
            if db.execute("SELECT 1 FROM matches WHERE match_id = ?", (match.match_id,)).fetchone():
                return _tickets(db, "match_id = ? ORDER BY seat", match.match_id)
            tickets = [_ticket(db, seat.ticket_id) for seat in match.seats]
            elsewhere = [one for one in tickets if one.state is not TicketState.WAITING]
            if elsewhere:
                raise NotWaiting(elsewhere)
            _save_match(db, replace(match, state=MatchState.FORMED))
            return [
                _save(
                    db,
                    replace(ticket, state=TicketState.MATCHED, match_id=match.match_id, seat=seat),
                )
                for seat, ticket in enumerate(tickets)
            ]

        return await self._do(call)

    async def held(self, match_id: str, hold_ids: Sequence[Sequence[str]]) -> Match:
        """See `Store.held`."""

        def call(db: sqlite3.Connection) -> Match:
            match = _match(db, match_id)
            if match.state is MatchState.HELD:
                return match
            _expect(match, MatchState.FORMED)
            seats = tuple(
                replace(seat, hold_ids=tuple(ids))
                for seat, ids in zip(match.seats, hold_ids, strict=True)
            )
            for seat in seats:
                ticket = _ticket(db, seat.ticket_id)
                _save(db, replace(ticket, hold_ids=seat.hold_ids))
            return _save_match(db, replace(match, state=MatchState.HELD, seats=seats))

        return await self._do(call)

    async def ask(self, match_id: str) -> Match:
        """See `Store.ask`."""

        def call(db: sqlite3.Connection) -> Match:
            match = _match(db, match_id)
            if match.state is MatchState.ASKED:
                return match
            _expect(match, MatchState.FORMED, MatchState.HELD)
            if any(_ticket(db, seat.ticket_id).leaving for seat in match.seats):
                raise SomebodyLeaves(match_id)
            return _save_match(db, replace(match, state=MatchState.ASKED))

        return await self._do(call)

    async def seated(self, match_id: str, table_id: str, endpoint: str) -> list[Ticket]:
        """See `Store.seated`."""

        def call(db: sqlite3.Connection) -> list[Ticket]:
            match = _match(db, match_id)
            if match.state is MatchState.SEATED:
                return [_ticket(db, seat.ticket_id) for seat in match.seats]
            _expect(match, MatchState.ASKED)
            _save_match(db, replace(match, state=MatchState.SEATED, table_id=table_id))
            return [
                _save(
                    db,
                    replace(
                        _ticket(db, seat.ticket_id),
                        state=TicketState.ASSIGNED,
                        leaving=False,
                        table_id=table_id,
                        endpoint=endpoint,
                    ),
                )
                for seat in match.seats
            ]

        return await self._do(call)

    async def give_up(self, match_id: str, failed: Mapping[str, Problem]) -> Match:
        """See `Store.give_up`."""

        def call(db: sqlite3.Connection) -> Match:
            match = _match(db, match_id)
            if match.state is MatchState.RETURNING:
                return match
            _expect(match, MatchState.FORMED, MatchState.HELD, MatchState.ASKED)
            return _save_match(db, replace(match, state=MatchState.RETURNING, failed=dict(failed)))

        return await self._do(call)

    async def returned(self, match_id: str) -> list[Ticket]:
        """See `Store.returned`."""

        def call(db: sqlite3.Connection) -> list[Ticket]:
            match = _match(db, match_id)
            if match.state is MatchState.RETURNED:
                return [_ticket(db, seat.ticket_id) for seat in match.seats]
            _expect(match, MatchState.RETURNING)
            _save_match(db, replace(match, state=MatchState.RETURNED))
            tickets = []
            for seat in match.seats:
                ticket = _ticket(db, seat.ticket_id)
                problem = match.failed.get(ticket.ticket_id)
                if problem is not None:
                    state = TicketState.FAILED
                else:
                    state = TicketState.LEFT if ticket.leaving else TicketState.WAITING
                out_of_match = replace(
                    ticket,
                    state=state,
                    problem=problem,
                    leaving=False,
                    match_id=None,
                    seat=None,
                    hold_ids=(),
                )
                tickets.append(_save(db, out_of_match))
            return tickets

        return await self._do(call)

    async def at_table(self, table_id: str) -> list[Ticket]:
        """See `Store.at_table`."""
        return await self._do(lambda db: _at_table(db, table_id))

    async def table_closed(self, table_id: str) -> list[Ticket]:
        """See `Store.table_closed`."""

        def call(db: sqlite3.Connection) -> list[Ticket]:
            return [
                _save(db, replace(ticket, state=TicketState.ENDED))
                for ticket in _at_table(db, table_id)
            ]

        return await self._do(call)

    async def forget(self, before_ms: int) -> int:
        """See `Store.forget`."""

        def call(db: sqlite3.Connection) -> int:
            gone = db.execute(
                "DELETE FROM tickets WHERE queued_ms < ?"
                " AND state NOT IN ('waiting', 'matched', 'assigned')",
                (before_ms,),
            ).rowcount
            db.execute(
                "DELETE FROM matches WHERE formed_ms < ? AND state IN ('seated', 'returned')"
                " AND NOT EXISTS (SELECT 1 FROM tickets WHERE tickets.match_id = matches.match_id)",
                (before_ms,),
            )
            return gone

        return await self._do(call)

    async def _do(self, call: Callable[[sqlite3.Connection], T]) -> T:
        try:
            result: T = await self._calls.submit(call)
        except sqlite3.Error as error:
            raise StoreUnavailable from error
        return result


def _commit_together(db: sqlite3.Connection, calls: Sequence[_Call]) -> list[Any]:
    answers: list[Any] = []
    try:
        db.execute("BEGIN IMMEDIATE")
        for call in calls:
            db.execute("SAVEPOINT call")
            try:
                answers.append(call(db))
            except Exception as error:  # that call's own; the others go on
                db.execute("ROLLBACK TO call")
                answers.append(error)
            db.execute("RELEASE call")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return answers


def _connect(path: Path | str) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA busy_timeout = 5000")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version == 0:
        db.executescript(
            f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
        )
    elif version != SCHEMA_VERSION:
        db.close()
        raise StoreError(
            f"{path} has schema {version}; this version of the service knows {SCHEMA_VERSION}"
        )
    return db


_NAMES = tuple(Ticket.__dataclass_fields__)
_COLUMNS = ", ".join(_NAMES)
_LIVE_STATES = tuple(sorted(LIVE))
_IS_LIVE = "state IN (?, ?, ?)"


def _ticket(db: sqlite3.Connection, ticket_id: str) -> Ticket:
    ticket = _one_ticket(db, "ticket_id = ?", ticket_id)
    if ticket is None:
        raise UnknownTicket(ticket_id)
    return ticket


def _replay(db: sqlite3.Connection, new: NewTicket) -> Ticket | None:
    first = _one_ticket(db, "player_id = ? AND request_id = ?", new.player_id, new.request_id)
    if first is not None and not first.asks_the_same(new):
        raise RequestReused(first)
    return first


def _live_ticket(db: sqlite3.Connection, player_id: str) -> Ticket | None:
    return _one_ticket(db, f"player_id = ? AND {_IS_LIVE}", player_id, *_LIVE_STATES)


def _at_table(db: sqlite3.Connection, table_id: str) -> list[Ticket]:
    return _tickets(db, "table_id = ? AND state = 'assigned' ORDER BY seat", table_id)


def _one_ticket(db: sqlite3.Connection, where: str, *values: object) -> Ticket | None:
    found = _tickets(db, where, *values)
    return found[0] if found else None


def _tickets(db: sqlite3.Connection, where: str, *values: object) -> list[Ticket]:
    rows = db.execute(f"SELECT {_COLUMNS} FROM tickets WHERE {where}", values)  # noqa: S608 - `where` is written in this file
    return [_from_row(dict(zip(_NAMES, row, strict=True))) for row in rows]


def _from_row(row: dict[str, Any]) -> Ticket:
    row["state"] = TicketState(row["state"])
    for flag in ("standby", "is_bot", "leaving"):
        row[flag] = bool(row[flag])
    row["labels"] = msgspec.json.decode(row["labels"], type=dict[str, str])
    row["hold_ids"] = msgspec.json.decode(row["hold_ids"], type=tuple[str, ...])
    if row["problem"] is not None:
        row["problem"] = msgspec.json.decode(row["problem"], type=Problem)
    return Ticket(**row)


def _insert(db: sqlite3.Connection, ticket: Ticket) -> Ticket:
    row = _to_row(ticket)
    del row["number"]
    columns, places = ", ".join(row), ", ".join("?" * len(row))
    number = db.execute(
        f"INSERT INTO tickets ({columns}) VALUES ({places})",  # noqa: S608 - constants
        tuple(row.values()),
    ).lastrowid
    assert number is not None  # noqa: S101 - an INSERT that did not raise has a row id
    return replace(ticket, number=number)


def _save(db: sqlite3.Connection, ticket: Ticket) -> Ticket:
    newer = replace(ticket, version=ticket.version + 1)
    row = _to_row(newer)
    changes = ", ".join(f"{name} = ?" for name in row)
    db.execute(
        f"UPDATE tickets SET {changes} WHERE number = ?",  # noqa: S608 - constants
        (*row.values(), newer.number),
    )
    return newer


def _to_row(ticket: Ticket) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(ticket, name) for name in _NAMES}
    for flag in ("standby", "is_bot", "leaving"):
        row[flag] = int(row[flag])
    row["state"] = ticket.state.value
    row["labels"] = _json(dict(ticket.labels))
    row["hold_ids"] = _json(ticket.hold_ids)
    row["problem"] = _json(ticket.problem) if ticket.problem else None
    return row


def _match(db: sqlite3.Connection, match_id: str) -> Match:
    row = db.execute("SELECT record FROM matches WHERE match_id = ?", (match_id,)).fetchone()
    if row is None:
        raise UnknownMatch(match_id)
    return msgspec.json.decode(row[0], type=Match)


def _save_match(db: sqlite3.Connection, match: Match) -> Match:
    db.execute(
        "INSERT INTO matches (match_id, state, formed_ms, record) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (match_id) DO UPDATE SET state = excluded.state, record = excluded.record",
        (match.match_id, match.state.value, match.formed_ms, _json(match)),
    )
    return match


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _expect(match: Match, *states: MatchState) -> None:
    if match.state not in states:
        raise WrongStep(f"match {match.match_id} is {match.state}")
