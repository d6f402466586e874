"""The operator log as the page shows it and as a file, and beside it the table service's own.

What others do with `fangcheng call`, past the console, stands in the log of the service alone.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from fangcheng.table.v1 import operators_pb2

from .currencies import currencies_of
from .oplog import STATUSES, Entry, Sought, Story
from .problems import Refused
from .session import Person, operator
from .verbs import is_text
from .web import Console, Part

PAGE = 50
_LARGEST_PAGE = 500
_MOST_DIGITS = 15
"""Of a number in an address; a thousand times as much is still one of the database."""
_COLUMNS = (
    *("number", "time", "person", "verb", "status", "reason", "case_id", "request_id"),
    *("table_id", "hand_number", "player_id", "other_id", "pool_id", "settlement", "link_id"),
    *("outcome_time", "outcome_person", "outcome_reason", "detail"),
)


def sought(asked: Mapping[str, str]) -> Sought:
    """What is looked for, from an address; `Refused` (400) names what cannot be."""
    for name, value in asked.items():
        if not is_text(value, 256):
            raise Refused(400, "INVALID_REQUEST", f"{name}: a text is needed.", name)
    status = asked.get("status", "")
    if status and status not in STATUSES:
        raise Refused(400, "INVALID_REQUEST", "status: done, refused or unknown.", "status")
    return Sought(
        person=asked.get("person", ""),
        verbs=tuple(verb for verb in asked.get("verb", "").split(",") if verb),
        but=tuple(verb for verb in asked.get("but", "").split(",") if verb),
        target=asked.get("target", ""),
        since_us=1_000 * number_of(asked, "since_ms"),
        until_us=1_000 * number_of(asked, "until_ms"),
        status=STATUSES.get(status),
    )


def number_of(asked: Mapping[str, str], name: str) -> int:
    """A number of an address; 0 where it is not there, `Refused` (400) where it is none."""
    text = asked.get(name, "")
    if not text:
        return 0
    # More digits than this are no number of ours, and from some length on Python refuses them.
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text)
    raise Refused(400, "INVALID_REQUEST", f"{name}: a whole number is needed.", name)


def told(story: Story) -> dict[str, Any]:
    """An act or a note as the page reads it."""
    entry = story.entry
    act = entry.kind == "act"
    return {
        "number": entry.number,
        "ms": entry.time_us // 1_000,
        "kind": entry.kind,
        "person": entry.person,
        "verb": entry.verb,
        "target": _target(entry),
        "reason": entry.reason,
        "case_id": entry.case_id,
        "request_id": entry.request_id,
        "status": story.status,
        "preview": entry.detail.get("preview"),
        "detail": None if act else entry.detail,
        "later": [
            {
                "ms": one.time_us // 1_000,
                "kind": one.kind,
                "person": one.person,
                "status": one.status,
                "says": one.detail.get("says", []),
                "problem": one.detail.get("reason", ""),
                "message": one.detail.get("message", ""),
            }
            for one in story.later
        ],
    }


def _target(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in asdict(entry.target).items() if value}


def feature(console: Console) -> Part:
    """`/api/log…`: pages of the log, the log as a file, and the tables' own. For operators."""
    backend, log = console.backend, console.log

    @operator
    async def page(request: Request, person: Person) -> Response:
        asked = dict(request.query_params)
        before = number_of(asked, "before") or None
        found = await log.find(sought(asked), PAGE + 1, before)
        more, found = len(found) > PAGE, found[:PAGE]
        return JSONResponse(
            {
                "stories": [told(one) for one in found],
                "before": found[-1].entry.number if more else None,
                "currencies": await currencies_of(backend),
            }
        )

    @operator
    async def export(request: Request, person: Person) -> Response:
        asked = dict(request.query_params)
        wanted, kind = sought(asked), asked.get("format", "")
        if kind not in ("csv", "json"):
            raise Refused(400, "INVALID_REQUEST", "format: csv or json.", "format")
        # The first page now: whether the log can be read is still an answer of its own.
        first = await log.find(wanted, _LARGEST_PAGE)
        return StreamingResponse(
            _csv(wanted, first) if kind == "csv" else _json(wanted, first),
            media_type="text/csv" if kind == "csv" else "application/json",
            headers={
                "content-disposition": f'attachment; filename="operator-log.{kind}"',
            },
        )

    async def _all(wanted: Sought, found: list[Story]) -> AsyncIterator[Story]:
        while found:
            for one in found:
                yield one
            found = await log.find(wanted, _LARGEST_PAGE, found[-1].entry.number)

    async def _json(wanted: Sought, first: list[Story]) -> AsyncIterator[str]:
        yield "["
        comma = "\n"
        async for one in _all(wanted, first):
            yield comma + json.dumps(told(one), ensure_ascii=False)
            comma = ",\n"
        yield "\n]\n"

    async def _csv(wanted: Sought, first: list[Story]) -> AsyncIterator[str]:
        yield "\ufeff" + _line(_COLUMNS)
        async for one in _all(wanted, first):
            yield _line(_cells(one))

    @operator
    async def tables(request: Request, person: Person) -> Response:
        asked = dict(request.query_params)
        for name in ("table_id", "page_token"):
            if not is_text(asked.get(name, ""), 256):
                raise Refused(400, "INVALID_REQUEST", f"{name}: a text is needed.", name)
        found = await backend.operations.ListOperatorActions(
            operators_pb2.ListOperatorActionsRequest(
                table_id=asked.get("table_id", ""),
                page_size=PAGE,
                page_token=asked.get("page_token", ""),
            ),
            metadata=backend.as_operator(person),
        )
        ours = await log.requested([one.request_id for one in found.actions])
        return JSONResponse(
            {
                "actions": [
                    {
                        "ms": one.time.ToMilliseconds(),
                        "person": one.operator,
                        "verb": one.verb,
                        "table_id": one.table_id,
                        "reason": one.reason,
                        "case_id": one.case_id,
                        "detail": one.detail,
                        "request_id": one.request_id,
                        "number": ours.get(one.request_id),
                    }
                    for one in found.actions
                ],
                "page_token": found.next_page_token,
            }
        )

    return Part(
        [
            Route("/api/log", page, methods=["GET"]),
            Route("/api/log/export", export, methods=["GET"]),
            Route("/api/log/tables", tables, methods=["GET"]),
        ]
    )


def _cells(story: Story) -> list[object]:
    entry, target = story.entry, story.entry.target
    last = next((one for one in reversed(story.later) if one.kind == "outcome"), None)
    return [
        *(entry.number, _moment(entry.time_us), entry.person, entry.verb, story.status),
        *(entry.reason, entry.case_id, entry.request_id),
        *(target.table_id, target.hand_number or "", target.player_id, target.other_id),
        *(target.pool_id, target.settlement, target.link_id),
        *((_moment(last.time_us), last.person) if last else ("", "")),
        last.detail.get("reason", "") if last else "",
        json.dumps(entry.detail, ensure_ascii=False),
    ]


def _moment(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="milliseconds")


def _line(cells: Any) -> str:
    line = io.StringIO()
    csv.writer(line).writerow([_safe(str(cell)) for cell in cells])
    return line.getvalue()


def _safe(cell: str) -> str:
    """What a person has written is text: spreadsheets would take some of it for a formula."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
