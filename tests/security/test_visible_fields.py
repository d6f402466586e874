"""Every field that can reach a player or a spectator was looked at, and stands in visible.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from . import contracts
from .evening import Evening

LIST = Path(__file__).with_name("visible.yaml")
OPERATORS = "operators: "
"""What a reason begins with where the field is never filled for a player."""


@cache
def visible() -> dict[str, dict[str, str]]:
    """Message, field, reason."""
    found: dict[str, dict[str, str]] = yaml.safe_load(LIST.read_text("utf-8"))
    return found


def for_operators() -> frozenset[str]:
    """The fields that are never filled for a player, with the names of their messages."""
    return frozenset(
        f"{message}.{field}"
        for message, fields in visible().items()
        for field, reason in fields.items()
        if reason.startswith(OPERATORS)
    )


def reachable() -> dict[str, set[str]]:
    """The fields of each message that can reach a player, as the contracts are now."""
    outputs = [call.output_type for call in contracts.calls() if contracts.reaches_players(call)]
    return {
        name: {field.name for field in message.fields}
        for name, message in contracts.within(*outputs).items()
    }


def test_every_field_that_can_reach_a_player_was_reviewed() -> None:
    """A new field: ask what it tells whom, mend the service if it must not, then write why it may.

    What is gone from the contracts goes from the list too.
    """
    now, listed = reachable(), {name: set(fields) for name, fields in visible().items()}
    assert sum(map(len, now.values())) > 500
    fields = {f"{name}.{field}" for name in now for field in now[name]}
    known = {f"{name}.{field}" for name in listed for field in listed[name]}
    assert fields - known == set(), "not in visible.yaml"
    assert known - fields == set(), "in visible.yaml, but no longer in a message to players"
    assert set(now) == set(listed)


def test_every_field_has_a_reason_in_words() -> None:
    short = [
        f"{message}.{field}"
        for message, fields in visible().items()
        for field, reason in fields.items()
        if len(str(reason).removeprefix(OPERATORS).split()) < 2
    ]
    assert short == []


def test_what_is_for_operators_no_player_was_sent(evening: Evening) -> None:
    """Of an evening: a table from its first event to its last, and the answer to every call."""
    assert evening.filled["player"] & for_operators() == set()
    assert len(evening.filled["player"]) > 200
    assert len(evening.filled["operator"] & for_operators()) > 3
