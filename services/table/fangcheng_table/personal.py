"""What is personal in what is kept of a table: pure; a record goes in, without it one comes out.

Talk is not among it: nobody keeps it.
"""

from __future__ import annotations

import ast
import json
from dataclasses import replace

from fangcheng.table.v1 import state_pb2
from fangcheng_kit.privacy import Erasure

from .events import Event, OperatorActed, PlayerSeated, SeatPlan, TableCreated
from .store import NewTable, OperatorAction, Rewriting


def rewriting(erasure: Erasure) -> Rewriting:
    """What becomes of a table."""
    return Rewriting(
        event=lambda event: event_without(event, erasure),
        table=lambda table: table_without(table, erasure),
        summary=lambda summary: summary_without(summary, erasure),
    )


def event_without(event: Event, erasure: Erasure) -> Event:
    """An event without a player's profile, labels that name a person, and operators' reasons."""
    match event:
        case TableCreated():
            return replace(
                event,
                seats=tuple(_plan(plan, erasure) for plan in event.seats),
                labels=erasure.without(event.labels),
            )
        case PlayerSeated():
            return replace(event, plan=_plan(event.plan, erasure))
        case OperatorActed():
            return replace(
                event,
                reason=event.reason if erasure.keep_texts else "",
                detail=_detail(event.verb, event.detail, erasure),
            )
        case _:
            return event


def action_without(action: OperatorAction, erasure: Erasure) -> OperatorAction:
    """The same of an entry of the operators' log."""
    return replace(
        action,
        reason=action.reason if erasure.keep_texts else "",
        detail=_detail(action.verb, action.detail, erasure),
    )


def table_without(table: NewTable, erasure: Erasure) -> NewTable:
    """The same of what a table is found by; see `convert.canonical`."""
    request = json.loads(table.request)
    request["seats"] = [
        [player_id, "" if player_id == erasure.player_id else profile, *rest]
        for player_id, profile, *rest in request["seats"]
    ]
    request["labels"] = sorted(erasure.without(dict(request["labels"])).items())
    return replace(
        table,
        request=json.dumps(request, ensure_ascii=False, separators=(",", ":")),
        labels=erasure.without(table.labels),
    )


def summary_without(summary: bytes, erasure: Erasure) -> bytes:
    """The same of a closed table as lists show it."""
    table = state_pb2.Table.FromString(summary)
    for seat in table.seats:
        if seat.player_id == erasure.player_id:
            seat.ClearField("profile")
    labels = erasure.without(dict(table.labels))
    table.labels.clear()
    table.labels.update(labels)
    return table.SerializeToString(deterministic=True)


def _plan(plan: SeatPlan, erasure: Erasure) -> SeatPlan:
    return replace(plan, profile=b"") if plan.player_id == erasure.player_id else plan


def _detail(verb: str, detail: str, erasure: Erasure) -> str:
    """What an operator asked for: the profile of whom he seated is in it; see `operating`."""
    if verb != "seat_player":
        return detail
    seat, player_id, profile, *rest = ast.literal_eval(detail)
    if player_id == erasure.player_id:
        profile = b""
    return repr((seat, player_id, profile, *rest))
