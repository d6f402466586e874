"""Frames: JSON objects with one kind of content, and an ``id`` where an answer is to have it.

The contents are messages of the contract in protobuf's JSON, without the player: names are
``tableId``, bytes are base64, and numbers of 64 bits are texts (``"number": "41"``). What is at its
default is written too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import protovalidate
from google.protobuf import json_format
from google.protobuf.message import Message

from fangcheng.matchmaking.v1 import matchmaking_pb2 as queues
from fangcheng.table.v1 import table_pb2 as tables

CALLS: dict[str, type[Message]] = {
    "GetPlayerStatus": queues.GetPlayerStatusRequest,
    "JoinQueue": queues.JoinQueueRequest,
    "LeaveQueue": queues.LeaveQueueRequest,
    "LeaveTable": tables.LeaveTableRequest,
    "ProposeDissolution": tables.ProposeDissolutionRequest,
    "Say": tables.SayRequest,
}
"""Calls that a client may make as its player, by their names in the contract."""

_STREAM: dict[str, type[Message]] = {
    "attend": tables.AddSeat,
    "detach": tables.RemoveSeat,
    "act": tables.ActRequest,
}
_PLAIN = ("hello", "heartbeat")
MOST_NESTED = 8
"""Of an object in a frame; JSON of a client's own."""


class BadFrame(Exception):
    """A frame that cannot be taken; the message says why."""

    def __init__(self, message: str, frame_id: str | int | None = None) -> None:
        super().__init__(message)
        self.frame_id = frame_id


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a client."""

    kind: str
    body: Any
    """The message; of ``hello`` and ``heartbeat`` what JSON has."""
    id: str | int | None = None


def read(text: str | bytes, player_id: str) -> Frame:
    """What a client says for this player; ``BadFrame``."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame("not JSON") from None
    if not isinstance(given, dict):
        raise BadFrame("not an object")
    frame_id = given.pop("id", None)
    if not (frame_id is None or (type(frame_id) in (str, int) and _is_short(str(frame_id)))):
        raise BadFrame("id is neither a short ASCII text nor a number")
    if len(given) != 1:
        raise BadFrame("not one kind of content", frame_id)
    ((kind, body),) = given.items()
    if kind in _PLAIN and isinstance(body, dict):
        return Frame(kind, body, frame_id)
    made = _STREAM.get(kind) or CALLS.get(kind)
    if made is None:
        raise BadFrame("of an unknown kind", frame_id)
    message = made()
    try:
        written("", body).encode()  # JSON can name half of a sign, which is no text
        json_format.ParseDict(body, message, max_recursion_depth=MOST_NESTED)
    except (json_format.ParseError, ValueError, TypeError, RecursionError) as error:
        raise BadFrame(str(error), frame_id) from None
    if isinstance(message, tables.AddSeat | tables.RemoveSeat):
        message.player_id = player_id  # whatever it said
    wrong = protovalidate.collect_violations(message)
    if wrong:
        # On the one stream of all players a request against the contract would end it for all.
        raise BadFrame("; ".join(violation.proto.message for violation in wrong), frame_id)
    return Frame(kind, message, frame_id)


def _is_short(text: str) -> bool:
    return len(text) <= 64 and text.isascii()


def content(message: Message) -> dict[str, Any]:
    """A message as JSON has it, without the player: the connection is his."""
    told: dict[str, Any] = json_format.MessageToDict(
        message, always_print_fields_with_no_presence=True
    )
    told.pop("playerId", None)
    return told


def problem(reason: str, message: str, table_id: str = "", decision_id: str = "") -> dict[str, Any]:
    """What was wrong, in the shape in which the tables tell it."""
    told = tables.SeatProblem(table_id=table_id, decision_id=decision_id)
    told.problem.reason = reason
    told.problem.message = message
    return content(told)


def written(kind: str, body: Any, frame_id: str | int | None = None) -> str:
    """A frame as text."""
    frame = {kind: body} if frame_id is None else {"id": frame_id, kind: body}
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
