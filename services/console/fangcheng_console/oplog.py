"""The operator log: what operators do through the console, written before it is done.

Lines are only ever added. An act is written before its call is made, so that nothing is done that
does not stand here; what came of it follows as a line of its own. An act without one, or with one
that says `unknown` (the console was killed, a service did not answer), may be repeated under its
request id: the services answer as the first time.

`tests/console/test_oplog.py` holds every database to what is promised here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Protocol, get_args

Kind = Literal["act", "repeat", "outcome", "note"]
Status = Literal["done", "refused", "unknown"]
STATUSES: Mapping[str, Status] = {status: status for status in get_args(Status)}


class LogError(Exception):
    """The root of what the log refuses."""


class LogUnavailable(LogError):
    """The database fails now; whether the line was written is not known."""


class RequestUsed(LogError):
    """An act has this request id already."""

    def __init__(self, story: Story) -> None:
        super().__init__(f"line {story.entry.number} has request id {story.entry.request_id}")
        self.story = story


class Ended(LogError):
    """The act was done, or refused: nothing more comes of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a line is about; what is empty it is not about."""

    table_id: str = ""
    hand_number: int = 0
    player_id: str = ""
    other_id: str = ""
    """The other player of a pair."""
    pool_id: str = ""
    settlement: str = ""
    """Its key."""
    link_id: str = ""
    """A link for customer service."""


_TARGETS = tuple(one.name for one in fields(Target))
_SOUGHT = tuple(name for name in _TARGETS if name != "hand_number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line."""

    number: int
    """Ascending in the order of writing, not without gaps."""
    time_us: int
    kind: Kind
    act: int
    """The line of the act that a repeat or an outcome belongs to; 0: none."""
    person: str
    """The operator's name, as he has signed in."""
    verb: str
    target: Target
    reason: str
    case_id: str
    request_id: str
    """Of an act: under which it is asked for. Otherwise empty."""
    status: Status | None
    """Of an outcome."""
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Story:
    """An act or a note, and what followed."""

    entry: Entry
    later: Sequence[Entry] = ()
    """Repeats and outcomes, in their order."""

    @property
    def status(self) -> Status:
        """How it stands; an act of which nothing is known yet is `unknown`."""
        if self.entry.kind == "note":
            return "done"
        outcomes = [one.status for one in self.later if one.status is not None]
        last = [one for one in outcomes if one != "unknown"]
        return last[0] if last else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Which acts and notes are looked for; what is empty is not asked about."""

    person: str = ""
    verbs: Sequence[str] = ()
    target: str = ""
    """An id, whatever it is of: a table, either player, a pool, a settlement, a link."""
    since_us: int = 0
    until_us: int = 0
    """The moment itself is not in it."""
    status: Status | None = None
    but: Sequence[str] = ()
    """Verbs that are not looked for."""
    link_id: str = ""
    """Everything about this link: made, opened, revoked."""


class Db(Protocol):
    """A database; each statement is a transaction of its own, on disk when it returns."""

    async def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Execute a statement with `?` for values; raises LogUnavailable."""

    async def close(self) -> None:
        """Wait for what was begun and close the database."""


def _now_us() -> int:
    return time.time_ns() // 1_000


@dataclass
class OpLog:
    """The log in a database; `close` it at the end. Any call raises LogUnavailable."""

    db: Db
    clock: Callable[[], int] = field(default=_now_us)
    """Microseconds since 1970."""

    async def begin(
        self,
        person: str,
        verb: str,
        target: Target,
        *,
        request_id: str,
        reason: str,
        case_id: str = "",
        detail: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Write what is about to be done; raises RequestUsed."""
        entry = self._new("act", person, verb, target, request_id, reason, case_id, detail)
        written = await self._write(entry)
        if written is None:
            story = await self.story(request_id)
            if story is None:
                raise LogUnavailable("a line of this request id was written and is not there")
            raise RequestUsed(story)
        return written

    async def repeat(self, act: Entry, person: str) -> Entry:
        """Write that somebody asks for an act again; raises Ended."""
        if (await self.followed([act]))[0].status != "unknown":
            raise Ended(f"line {act.number} has its outcome")
        entry = self._new("repeat", person, act.verb, act.target, act=act.number)
        written = await self._write(entry)
        assert written is not None  # noqa: S101 # nosec B101 # only request ids and outcomes are refused
        return written

    async def end(
        self, act: Entry, person: str, status: Status, detail: Mapping[str, Any] | None = None
    ) -> Entry | None:
        """Write what came of an act; None where that was known already, by another process."""
        entry = self._new(
            "outcome", person, act.verb, act.target, act=act.number, status=status, detail=detail
        )
        return await self._write(entry)

    async def note(
        self,
        person: str,
        verb: str,
        target: Target | None = None,
        *,
        reason: str = "",
        case_id: str = "",
        detail: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Write something that is done by being written, or was done by the console itself."""
        entry = self._new("note", person, verb, target or Target(), None, reason, case_id, detail)
        written = await self._write(entry)
        assert written is not None  # noqa: S101 # nosec B101 # only request ids and outcomes are refused
        return written

    async def story(self, request_id: str) -> Story | None:
        """The act of a request id, and what followed."""
        found = await self._read("kind = 'act' AND request_id = ?", request_id)
        return (await self.followed(found))[0] if found else None

    async def requested(self, request_ids: Sequence[str]) -> dict[str, int]:
        """The lines of the acts with these request ids, by request id; others are not there."""
        if not request_ids:
            return {}
        marks = ", ".join("?" * len(request_ids))
        found = await self._read(f"kind = 'act' AND request_id IN ({marks})", *request_ids)
        return {one.request_id: one.number for one in found}

    async def find(self, sought: Sought, size: int, before: int | None = None) -> list[Story]:
        """Acts and notes, the newest first, at most `size`. `before`: a line's number."""
        where, values = _conditions(sought)
        if before is not None:
            where, values = f"{where} AND number < ?", [*values, before]
        found = await self._read(f"{where} ORDER BY number DESC LIMIT {int(size)}", *values)
        return await self.followed(found)

    async def close(self) -> None:
        """Wait for what was begun and close the database."""
        await self.db.close()

    async def followed(self, entries: Sequence[Entry]) -> list[Story]:
        """Acts or notes with what followed."""
        later: dict[int, list[Entry]] = {one.number: [] for one in entries}
        acts = [one.number for one in entries if one.kind == "act"]
        if acts:
            marks = ", ".join("?" * len(acts))
            for one in await self._read(f"act IN ({marks}) ORDER BY number", *acts):
                later[one.act].append(one)
        return [Story(one, later[one.number]) for one in entries]

    def _new(
        self,
        kind: Kind,
        person: str,
        verb: str,
        target: Target,
        request_id: str | None = None,
        reason: str = "",
        case_id: str = "",
        detail: Mapping[str, Any] | None = None,
        *,
        act: int | None = None,
        status: Status | None = None,
    ) -> dict[str, object]:
        return {
            "time_us": self.clock(),
            "kind": kind,
            "act": act,
            "person": person,
            "verb": verb,
            **asdict(target),
            "reason": reason,
            "case_id": case_id,
            "request_id": request_id,
            "status": status,
            "detail": json.dumps(detail or {}, separators=(",", ":")),
        }

    async def _write(self, line: Mapping[str, object]) -> Entry | None:
        """Add a line; None where it would be the second act of a request id, or last outcome."""
        columns, marks = ", ".join(line), ", ".join("?" * len(line))
        rows = await self.db.rows(
            f"INSERT INTO log ({columns}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608 # nosec B608 # names written in this file
            f" RETURNING {_COLUMNS}",
            *line.values(),
        )
        return _entry(rows[0]) if rows else None

    async def _read(self, where: str, *values: object) -> list[Entry]:
        rows = await self.db.rows(f"SELECT {_COLUMNS} FROM log WHERE {where}", *values)  # noqa: S608 # nosec B608 # written in this file
        return [_entry(row) for row in rows]


_COLUMNS = ", ".join(
    [
        *("number", "time_us", "kind", "act", "person", "verb"),
        *_TARGETS,
        *("reason", "case_id", "request_id", "status", "detail"),
    ]
)


def _entry(row: Sequence[Any]) -> Entry:
    number, time_us, kind, act, person, verb, *rest = row
    targets, (reason, case_id, request_id, status, detail) = rest[:-5], rest[-5:]
    return Entry(
        number=number,
        time_us=time_us,
        kind=kind,
        act=act or 0,
        person=person,
        verb=verb,
        target=Target(**dict(zip(_TARGETS, targets, strict=True))),
        reason=reason,
        case_id=case_id,
        request_id=request_id or "",
        status=status,
        detail=json.loads(detail),
    )


def _conditions(sought: Sought) -> tuple[str, list[object]]:
    where = ["kind IN ('act', 'note')"]
    values: list[object] = []

    def also(condition: str, *given: object) -> None:
        where.append(condition)
        values.extend(given)

    if sought.person:
        also("person = ?", sought.person)
    if sought.verbs:
        also(f"verb IN ({', '.join('?' * len(sought.verbs))})", *sought.verbs)
    if sought.but:
        also(f"verb NOT IN ({', '.join('?' * len(sought.but))})", *sought.but)
    if sought.target:
        # One by one, each with the condition of its index: with OR none of them serves it.
        found = " UNION ".join(
            f"SELECT number FROM log WHERE kind IN ('act', 'note') AND {name} = ? AND {name} <> ''"  # noqa: S608 # nosec B608 # names written in this file
            for name in _SOUGHT
        )
        also(f"number IN ({found})", *[sought.target] * len(_SOUGHT))
    if sought.link_id:
        also("link_id = ? AND link_id <> ''", sought.link_id)
    if sought.since_us:
        also("time_us >= ?", sought.since_us)
    if sought.until_us:
        also("time_us < ?", sought.until_us)
    outcome = "EXISTS (SELECT 1 FROM log later WHERE later.act = log.number AND later.status "
    if sought.status == "unknown":
        also(f"kind = 'act' AND NOT {outcome} IN ('done', 'refused'))")
    elif sought.status == "done":
        also(f"(kind = 'note' OR {outcome} = 'done'))")
    elif sought.status == "refused":
        also(f"{outcome} = 'refused')")
    return " AND ".join(where), values
