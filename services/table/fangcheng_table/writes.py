"""What is written to a journal, as far as all databases take the same statements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .codec import encode
from .reads import Query
from .sealing import JournalKeys, event_place
from .store import HandEntry, NewTable, OperatorAction, Record

ADD_PLAYER = "INSERT INTO players (player_id, place) VALUES (?, ?) ON CONFLICT DO NOTHING"
ADD_LABEL = "INSERT INTO labels (key, value, place) VALUES (?, ?, ?)"
ADD_HAND_PLAYER = "INSERT INTO hand_players (player_id, place) VALUES (?, ?)"


ADD_KEY = "INSERT INTO journal_keys (key_id, proof) VALUES (?, ?) ON CONFLICT DO NOTHING"


def event_rows(
    table_id: str, records: Sequence[Record], keys: JournalKeys
) -> list[tuple[int, int, bytes]]:
    """Events as they are stored: sequence, time, body."""
    return [
        (
            record.sequence,
            record.time_ms,
            keys.seal(table_id, event_place(record.sequence), encode(record.event)),
        )
        for record in records
    ]


def add_table(table: NewTable, **more: Any) -> Query:
    """A new table, and its place; no row where its request has made one before."""
    return _insert(
        "tables",
        " ON CONFLICT (request_id) DO NOTHING",
        table_id=table.table_id,
        request_id=table.request_id,
        request=table.request,
        rule_set=table.rule_set,
        revision=table.revision,
        player_ids=json.dumps(table.player_ids),
        labels=json.dumps(dict(table.labels)),
        **more,
    )


def add_hand(table_place: int, hand: HandEntry) -> Query:
    """A finished hand, and its place."""
    return _insert(
        "hands",
        table_place=table_place,
        hand_number=hand.hand_number,
        player_ids=json.dumps(hand.player_ids),
        ended_ms=hand.ended_ms,
        ending=hand.ending,
        first_sequence=hand.first_sequence,
        last_sequence=hand.last_sequence,
    )


def add_action(table_place: int, action: OperatorAction) -> Query:
    """What an operator has done, and its place."""
    return _insert(
        "operator_actions",
        action_id=action.action_id,
        table_place=table_place,
        time_ms=action.time_ms,
        operator=action.operator,
        verb=action.verb,
        reason=action.reason,
        case_id=action.case_id,
        detail=action.detail,
    )


def _insert(into: str, unless: str = "", **values: Any) -> Query:
    names, marks = ", ".join(values), ", ".join("?" * len(values))
    return Query(
        f"INSERT INTO {into} ({names}) VALUES ({marks}){unless} RETURNING place",  # noqa: S608 # nosec B608 # names are of ours
        tuple(values.values()),
    )
