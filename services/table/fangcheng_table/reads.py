"""What is read of a journal, whichever database is below: the queries are the same."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .codec import decode
from .sealing import JournalKeys, event_place, opening_place
from .store import (
    Census,
    Filter,
    Found,
    FoundAction,
    FoundHand,
    HandEntry,
    HandFilter,
    NewTable,
    Opening,
    OperatorAction,
    Owner,
    Record,
)

MOST_SEQUENCE = 2**31 - 1
_MOST_PLACE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Query:
    """A question to the database: a text of our own with a `?` for each value."""

    text: str
    values: tuple[Any, ...]


class Reads(ABC):
    """The reading half of a journal."""

    EVENTS = (
        "SELECT sequence, time_ms, body FROM events"
        " WHERE place = (SELECT place FROM tables WHERE table_id = ?)"
        " AND sequence > ? AND sequence <= ? ORDER BY sequence"
    )

    _keys: JournalKeys

    @abstractmethod
    async def _fetch(self, query: Query) -> Sequence[Any]:
        """All rows that a query finds."""

    async def read(self, table_id: str, after: int = 0, upto: int | None = None) -> list[Record]:
        """See `store.Journal`."""
        last = MOST_SEQUENCE if upto is None else upto
        rows = await self._fetch(Query(self.EVENTS, (table_id, after, last)))
        return [event_record(table_id, row, self._keys) for row in rows]

    async def by_request(self, request_id: str) -> NewTable | None:
        """See `store.Journal`."""
        rows = await self._fetch(by_request(request_id))
        return new_table(rows[0]) if rows else None

    async def find(self, wanted: Filter, before: int | None, limit: int) -> list[Found]:
        """See `store.Journal`."""
        return [Found(*row) for row in await self._fetch(_find(wanted, before, limit))]

    async def hands(self, wanted: HandFilter, before: int | None, limit: int) -> list[FoundHand]:
        """See `store.Journal`."""
        return [_hand(row) for row in await self._fetch(_find_hands(wanted, before, limit))]

    async def finished(self, after: int, limit: int) -> list[FoundHand]:
        """See `store.Journal`."""
        query = Query(_HANDS + " WHERE h.place > ? ORDER BY h.place LIMIT ?", (after, limit))
        return [_hand(row) for row in await self._fetch(query)]

    async def operator_actions(
        self, table_id: str, before: int | None, limit: int
    ) -> list[FoundAction]:
        """See `store.Journal`."""
        rows = await self._fetch(_find_actions(table_id, before, limit))
        return [FoundAction(row[0], OperatorAction(*row[1:])) for row in rows]

    async def opening(self, table_id: str) -> Opening | None:
        """See `store.Journal`."""
        query = Query(
            "SELECT sequence, state FROM openings"
            " WHERE place = (SELECT place FROM tables WHERE table_id = ?)",
            (table_id,),
        )
        rows = await self._fetch(query)
        if not rows:
            return None
        sequence, state = rows[0]
        return Opening(sequence, self._keys.open(table_id, opening_place(sequence), state))


def event_record(table_id: str, row: Any, keys: JournalKeys) -> Record:
    """An event of a row: sequence, time, body. Raises `UnknownEvent`."""
    sequence, time_ms, body = row
    return Record(sequence, time_ms, decode(keys.open(table_id, event_place(sequence), body)))


def by_request(request_id: str) -> Query:
    """The table of a request; its row is a `new_table`."""
    return Query(
        "SELECT table_id, request_id, request, rule_set, revision, player_ids, labels FROM tables"
        " WHERE request_id = ?",
        (request_id,),
    )


def new_table(row: Any) -> NewTable:
    """See `by_request`."""
    table_id, request_id, request, rule_set, revision, player_ids, labels = row
    return NewTable(
        *(table_id, request_id, request, rule_set, revision),
        player_ids=tuple(json.loads(player_ids)),
        labels=json.loads(labels),
    )


def census(alive: Sequence[Owner], counts: Iterable[Sequence[Any]]) -> Census:
    """How tables are spread. `counts`: how many that are not done each owner id has."""
    owners = {owner.owner_id: 0 for owner in alive}
    unowned = 0
    for owner_id, count in counts:
        if owner_id in owners:
            owners[owner_id] = count
        else:
            unowned += count
    return Census(owners, unowned)


def _find(wanted: Filter, before: int | None, limit: int) -> Query:
    where = _Where("place", before)
    if not wanted.include_closed:
        where.add("NOT closed")
    if wanted.rule_set:
        where.add("rule_set = ?", wanted.rule_set)
    if wanted.player_id:
        where.add("place IN (SELECT place FROM players WHERE player_id = ?)", wanted.player_id)
    where.labels("place", wanted.labels or {})
    return where.newest("SELECT place, table_id, summary FROM tables", limit)


_HANDS = (
    "SELECT h.place, t.table_id, h.hand_number, t.rule_set, h.player_ids, t.labels, h.ended_ms,"
    " h.ending, h.first_sequence, h.last_sequence"
    " FROM hands h JOIN tables t ON t.place = h.table_place"
)


def _find_hands(wanted: HandFilter, before: int | None, limit: int) -> Query:
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
    return where.newest(_HANDS, limit)


def _find_actions(table_id: str, before: int | None, limit: int) -> Query:
    where = _Where("a.place", before)
    if table_id:
        where.add("t.table_id = ?", table_id)
    return where.newest(
        "SELECT a.place, a.action_id, t.table_id, a.time_ms, a.operator, a.verb, a.reason,"
        " a.case_id, a.detail FROM operator_actions a JOIN tables t ON t.place = a.table_place",
        limit,
    )


def _hand(row: Any) -> FoundHand:
    place, table_id, number, rule_set, player_ids, labels, *rest = row
    return FoundHand(
        place,
        HandEntry(
            table_id, number, rule_set, tuple(json.loads(player_ids)), json.loads(labels), *rest
        ),
    )


class _Where:
    """Conditions, in words of our own, with their values."""

    def __init__(self, place: str, before: int | None) -> None:
        self._place = place
        self._conditions = [f"{place} < ?"]
        self._values: list[Any] = [_MOST_PLACE if before is None else before]

    def add(self, condition: str, *values: Any) -> None:
        self._conditions.append(condition)
        self._values += values

    def labels(self, place: str, labels: Mapping[str, str]) -> None:
        for key, value in labels.items():
            self.add(
                f"{place} IN (SELECT place FROM labels WHERE key = ? AND value = ?)",  # noqa: S608 # nosec B608 # a column's name, of ours
                key,
                value,
            )

    def newest(self, select: str, limit: int) -> Query:
        where = " AND ".join(self._conditions)
        text = f"{select} WHERE {where} ORDER BY {self._place} DESC LIMIT ?"
        return Query(text, (*self._values, limit))
