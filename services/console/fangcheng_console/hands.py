"""The list of finished hands."""

from __future__ import annotations

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fangcheng.table.v1 import records_pb2

from .problems import Refused
from .session import Person, viewer
from .web import Console, Part

HANDS_A_PAGE = 50


def feature(console: Console) -> Part:
    """What /hands asks for."""

    @viewer
    async def listed(request: Request, person: Person) -> Response:
        """`{hands: [{table_id, hand_number, rule_set, player_ids, ended_ms, ending}],
        next_page_token}`, newest first."""
        answer = await console.backend.records.ListHandRecords(_wanted(request))
        hands = [
            {
                "table_id": entry.table_id,
                "hand_number": entry.hand_number,
                "rule_set": entry.rule_set,
                "player_ids": list(entry.player_ids),
                "ended_ms": entry.ended.ToMilliseconds(),
                "ending": entry.ending,
            }
            for entry in answer.hands
        ]
        return JSONResponse({"hands": hands, "next_page_token": answer.next_page_token})

    return Part([Route("/api/hands", listed, methods=["GET"])])


def _wanted(request: Request) -> records_pb2.ListHandRecordsRequest:
    given = request.query_params
    return records_pb2.ListHandRecordsRequest(
        table_id=given.get("table", ""),
        player_id=given.get("player", ""),
        rule_set=given.get("rule_set", ""),
        since=_time(request, "since"),
        until=_time(request, "until"),
        page_size=HANDS_A_PAGE,
        page_token=given.get("page_token", ""),
    )


def _time(request: Request, name: str) -> Timestamp | None:
    """A moment with its offset from UTC: `2026-11-30T18:30:00Z`. Raises `Refused`: INVALID_TIME."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError
        stamp = Timestamp()
        stamp.FromDatetime(moment)
    except (ValueError, OverflowError):
        raise Refused(
            400, "INVALID_TIME", "Expected a time such as 2026-11-30T18:30:00Z.", name
        ) from None
    return stamp
