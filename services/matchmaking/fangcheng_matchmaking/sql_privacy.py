"""Personal data in SQL: a player's records are looked for some at a time, so that queues go on."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from fangcheng_kit.privacy import Erasure, line

from . import personal, records
from .core import Match, Ticket
from .records import Db
from .rooms import Room
from .skill import Skill
from .sql_calls import SqlCalls
from .store import Apart, Erased, ErasureReused, LiveTicket

_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class _Kind:
    """A table with records of a kind."""

    name: str
    key: str
    first: int | str
    """Below every key."""
    type: type[Any]
    without: Callable[[Any, Erasure], Any]
    line: Callable[[Any, str], str | None]

    def read(self, record: str) -> Any | None:
        """What a record says; None where it is damaged."""
        try:
            return msgspec.json.decode(record, type=self.type)
        except msgspec.DecodeError:
            return None

    def masked(self, record: str, erasure: Erasure) -> str:
        """A record without what is personal; nothing is left of a damaged one."""
        value = self.read(record)
        if value is None:
            return ""
        left = self.without(value, erasure)
        return record if left == value else records.encoded(left)


_TICKETS = _Kind("tickets", "number", 0, Ticket, personal.without_ticket, personal.ticket_line)
_MATCHES = _Kind("matches", "match_id", "", Match, personal.without_match, personal.match_line)
_ROOMS = _Kind("rooms", "room_id", "", Room, personal.without_room, personal.room_line)
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
"""Of a record."""


class SqlPrivacy(SqlCalls):
    """The part of `Store` about personal data."""

    async def was_erased(self, erasure: Erasure) -> bool:
        """See `Store.was_erased`."""
        return await self._read(lambda db: _was_erased(db, erasure))

    async def erase(self, erasure: Erasure) -> Erased:
        """See `Store.erase`."""
        if await self.was_erased(erasure):
            await self._wipe()
            return Erased(0, replayed=True)
        changed = 0
        shared: set[str] = set()
        for kind in (_ROOMS, _MATCHES):
            async for keys, _ in self._telling(kind, {erasure.player_id}):
                changed += await self._write(_without(kind, keys, erasure))
                shared.update(map(str, keys))

        def without(ticket: Ticket, erasure: Erasure) -> Ticket:
            # Tickets of others who came to the same table or room have the labels that it has.
            # Those of players who have met him, or avoid him, name him and are none of his.
            is_his = ticket.member(erasure.player_id) is not None
            if is_his or not shared.isdisjoint((ticket.match_id, ticket.room_id)):
                return personal.without_ticket(ticket, erasure)
            return ticket

        tickets = replace(_TICKETS, without=without)
        async for keys, _ in self._telling(tickets, {erasure.player_id, *shared}):
            changed += await self._write(_without(tickets, keys, erasure))
        changed += await self._write(lambda db: _forget(db, erasure))
        await self._wipe()
        return Erased(changed, replayed=False)

    async def lines(self, player_id: str) -> AsyncIterator[str]:
        """See `Store.lines`."""
        for kind in (_TICKETS, _MATCHES, _ROOMS):
            async for _, found in self._telling(kind, {player_id}):
                for record in found:
                    value = kind.read(record)
                    told: str | None = line("damaged", record=record)
                    if value is not None:
                        told = kind.line(value, player_id)
                    if told is not None:
                        yield told
        for one in await self._read(lambda db: list(_known(db, player_id))):
            yield one

    async def _telling(
        self, kind: _Kind, ids: Collection[str]
    ) -> AsyncIterator[tuple[list[int | str], list[str]]]:
        """Keys and records of a kind in which one of some ids is, some at a time."""
        wanted = frozenset(msgspec.json.encode(one).decode() for one in ids)
        after: int | str | None = kind.first

        def call(db: Db) -> list[tuple[Any, ...]]:
            return db.rows(
                f"SELECT {kind.key}, record FROM {kind.name} WHERE {kind.key} > ?"  # noqa: S608 # nosec B608 # constants
                f" ORDER BY {kind.key} LIMIT {_AT_ONCE}",
                after,
            )

        while rows := await self._read(call):
            after = rows[-1][0]
            found = [row for row in rows if not wanted.isdisjoint(_STRINGS.findall(row[1]))]
            if found:
                yield [key for key, _ in found], [record for _, record in found]


def _was_erased(db: Db, erasure: Erasure) -> bool:
    rows = db.rows(
        "SELECT player_id, labels, keep_texts, reason FROM erasures WHERE request_id = ?",
        erasure.request_id,
    )
    if rows and rows[0] != _asked(erasure):
        raise ErasureReused(erasure.request_id)
    return bool(rows)


def _asked(erasure: Erasure) -> tuple[str, str, int, str]:
    return (
        erasure.player_id,
        erasure.labels_digest,
        int(erasure.keep_texts),
        erasure.reason,
    )


def _without(kind: _Kind, keys: Sequence[int | str], erasure: Erasure) -> Callable[[Db], int]:
    """Takes what is personal out of records; how many it changed."""

    def call(db: Db) -> int:
        changed = 0
        for key in keys:
            for (record,) in db.rows(
                f"SELECT record FROM {kind.name} WHERE {kind.key} = ?",  # noqa: S608 # nosec B608 # constants
                key,
            ):
                masked = kind.masked(record, erasure)
                if masked != record:
                    changed += 1
                    db.rows(
                        f"UPDATE {kind.name} SET record = ? WHERE {kind.key} = ?",  # noqa: S608 # nosec B608 # constants
                        masked,
                        key,
                    )
        return changed

    return call


def _forget(db: Db, erasure: Erasure) -> int:
    """Forgets what is known of a player himself, and notes that he is erased."""
    player_id = erasure.player_id
    live = records.read_live(db, player_id)
    if live is not None:
        raise LiveTicket(player_id, live)  # he queued meanwhile, with a profile
    if _was_erased(db, erasure):
        return 0
    gone = db.rows("DELETE FROM skills WHERE player_id = ? RETURNING rule_set", player_id)
    gone += db.rows("DELETE FROM met WHERE player_id = ? RETURNING player_id", player_id)
    gone += db.rows(
        "DELETE FROM apart WHERE player_id = ? AND origin = 'player' RETURNING other_id", player_id
    )
    if not erasure.keep_texts:
        gone += db.rows(
            "UPDATE apart SET reason = '' WHERE (player_id = ? OR other_id = ?)"
            " AND origin = 'operator' AND reason <> '' RETURNING other_id",
            player_id,
            player_id,
        )
    asked = _asked(erasure)
    db.rows(
        "INSERT INTO erasures VALUES (?, ?, ?, ?, ?, ?)", erasure.request_id, *asked, db.now_ms()
    )
    return len(gone)


def _known(db: Db, player_id: str) -> list[str]:
    skills = db.rows(
        "SELECT rule_set, mu, sigma, hands FROM skills WHERE player_id = ? ORDER BY rule_set",
        player_id,
    )
    apart = db.rows(
        "SELECT other_id, origin, reason, case_id, time_ms FROM apart WHERE player_id = ?"
        " ORDER BY other_id, origin",
        player_id,
    )
    days = db.rows("SELECT DISTINCT day FROM losses WHERE player_id = ? ORDER BY day", player_id)
    told = personal.known_lines(
        [(rule_set, Skill(*skill)) for rule_set, *skill in skills],
        sorted(records.read_met(db, [player_id])),
        [
            Apart(
                player_id=player_id,
                other_id=other_id,
                origin=origin,
                reason=reason,
                case_id=case_id,
                time_ms=time_ms,
            )
            for other_id, origin, reason, case_id, time_ms in apart
        ],
        [(day, records.read_losses(db, player_id, day)) for (day,) in days],
    )
    erasures = db.rows(
        "SELECT request_id, reason, time_ms FROM erasures WHERE player_id = ? ORDER BY time_ms",
        player_id,
    )
    return [
        *told,
        *(
            line("erasure", time=personal.time_of(time_ms), request_id=request_id, reason=reason)
            for request_id, reason, time_ms in erasures
        ),
    ]
