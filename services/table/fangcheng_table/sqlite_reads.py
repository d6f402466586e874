"""What is read of a journal in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from .codec import decode
from .store import (
    Filter,
    Found,
    FoundAction,
    FoundHand,
    HandEntry,
    HandFilter,
    NewTable,
    Opening,
    OperatorAction,
    Record,
)

_MOST = 2**63 - 1


def events(db: sqlite3.Connection, table_id: str, after: int, upto: int | None) -> list[Record]:
    """A table's events."""
    rows = db.execute(
        "SELECT sequence, time_ms, body FROM events WHERE place ="
        " (SELECT place FROM tables WHERE table_id = ?) AND sequence > ? AND sequence <= ?"
        " ORDER BY sequence",
        (table_id, after, _MOST if upto is None else upto),
    )
    return [Record(row[0], row[1], decode(row[2])) for row in rows]


def by_request(db: sqlite3.Connection, request_id: str) -> NewTable | None:
    """The table of a request."""
    row = db.execute(
        "SELECT table_id, request_id, request, rule_set, revision, player_ids, labels FROM tables"
        " WHERE request_id = ?",
        (request_id,),
    ).fetchone()
    if row is None:
        return None
    table_id, request_id, request, rule_set, revision, player_ids, labels = row
    return NewTable(
        *(table_id, request_id, request, rule_set, revision),
        player_ids=tuple(json.loads(player_ids)),
        labels=json.loads(labels),
    )


def find(db: sqlite3.Connection, wanted: Filter, before: int | None, limit: int) -> list[Found]:
    """Tables."""
    where = _Where("place", before)
    if not wanted.include_closed:
        where.add("closed = 0")
    if wanted.rule_set:
        where.add("rule_set = ?", wanted.rule_set)
    if wanted.player_id:
        where.add("place IN (SELECT place FROM players WHERE player_id = ?)", wanted.player_id)
    where.labels("place", wanted.labels or {})
    return [
        Found(*row)
        for row in where.newest(db, "SELECT place, table_id, summary FROM tables", limit)
    ]


_HANDS = (
    "SELECT h.place, t.table_id, h.hand_number, t.rule_set, h.player_ids, t.labels, h.ended_ms,"
    " h.ending, h.first_sequence, h.last_sequence"
    " FROM hands h JOIN tables t ON t.place = h.table_place"
)


def hands(
    db: sqlite3.Connection, wanted: HandFilter, before: int | None, limit: int
) -> list[FoundHand]:
    """Finished hands."""
    where = _Where("h.place", before)
    if wanted.table_id:
        where.add("t.table_id = ?", wanted.table_id)
    if wanted.hand_number:
        where.add("h.hand_number = ?", wanted.hand_number)
    if wanted.player_id:
        where.add(
            "h.place IN (SELECT place FROM hand_players WHERE player_id = ?)", wanted.player_id
        )
    if wanted.rule_set:
        where.add("t.rule_set = ?", wanted.rule_set)
    where.labels("t.place", wanted.labels)
    if wanted.since_ms:
        where.add("h.ended_ms >= ?", wanted.since_ms)
    if wanted.until_ms:
        where.add("h.ended_ms < ?", wanted.until_ms)
    return [_hand(row) for row in where.newest(db, _HANDS, limit)]


def finished(db: sqlite3.Connection, after: int, limit: int) -> list[FoundHand]:
    """Finished hands, oldest first."""
    rows = db.execute(_HANDS + " WHERE h.place > ? ORDER BY h.place LIMIT ?", (after, limit))
    return [_hand(row) for row in rows]


def _hand(row: Any) -> FoundHand:
    place, table_id, number, rule_set, player_ids, labels, *rest = row
    return FoundHand(
        place,
        HandEntry(
            table_id, number, rule_set, tuple(json.loads(player_ids)), json.loads(labels), *rest
        ),
    )


def operator_actions(
    db: sqlite3.Connection, table_id: str, before: int | None, limit: int
) -> list[FoundAction]:
    """What operators did."""
    where = _Where("a.place", before)
    if table_id:
        where.add("t.table_id = ?", table_id)
    rows = where.newest(
        db,
        "SELECT a.place, a.action_id, t.table_id, a.time_ms, a.operator, a.verb, a.reason,"
        " a.case_id, a.detail FROM operator_actions a JOIN tables t ON t.place = a.table_place",
        limit,
    )
    return [FoundAction(row[0], OperatorAction(*row[1:])) for row in rows]


def opening(db: sqlite3.Connection, table_id: str) -> Opening | None:
    """The newest opening."""
    row = db.execute(
        "SELECT sequence, state FROM openings"
        " WHERE place = (SELECT place FROM tables WHERE table_id = ?)",
        (table_id,),
    ).fetchone()
    return None if row is None else Opening(*row)


class _Where:
    """Conditions, in words of our own, with their values."""

    def __init__(self, place: str, before: int | None) -> None:
        self._place = place
        self._conditions = [f"{place} < ?"]
        self._values: list[Any] = [_MOST if before is None else before]

    def add(self, condition: str, *values: Any) -> None:
        self._conditions.append(condition)
        self._values += values

    def labels(self, place: str, labels: Mapping[str, str]) -> None:
        for key, value in labels.items():
            self.add(
                f"{place} IN (SELECT place FROM labels WHERE key = ? AND value = ?)",  # noqa: S608
                key,
                value,
            )

    def newest(self, db: sqlite3.Connection, select: str, limit: int) -> list[Any]:
        where = " AND ".join(self._conditions)
        query = f"{select} WHERE {where} ORDER BY {self._place} DESC LIMIT ?"
        return db.execute(query, (*self._values, limit)).fetchall()
