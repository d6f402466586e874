"""Every call of real services, made by everybody: let in is who the protos say, and no other."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import MethodDescriptor

from . import contracts
from .entries import ELSEWHERE, ENTRIES
from .evening import Evening, Outcome, entry_of, served
from .oracle import ADMITTED, Caller, expected

AT_THE_DOOR = {"CALLER_NOT_ALLOWED", "SCOPE_MISSING", "ACT_AS_NOT_ALLOWED"}
"""Reasons of PERMISSION_DENIED for who calls, not for what he asks for."""
UNREAD = {"INVALID_REQUEST", "MALFORMED_REQUEST", "MESSAGE_TOO_LARGE"}
"""Reasons of a request that no handler was shown."""
NO_ANSWER = {
    *("UNAUTHENTICATED", "UNIMPLEMENTED", "UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"),
    *("INTERNAL", "UNKNOWN", "DATA_LOSS"),
}
"""What no call that was let in may end with here; UNIMPLEMENTED would be a call that is in the
contract and in no service."""
ANY_PLAYER = Caller("somebody", kind="player", id="somebody")
NAMES = ("player_id", "table_id", "ticket_id", "room_id", "hold_id", "hold_ids", "code")
"""Fields that name what may be a player's."""


def cells(evening: Evening) -> Iterator[tuple[str, MethodDescriptor, Caller]]:
    for process, call in served():
        for caller in evening.callers:
            yield process, call, caller


def is_admitted(outcome: Outcome) -> bool:
    code, reason = outcome
    return code not in NO_ANSWER and reason not in AT_THE_DOOR | UNREAD


def test_every_call_of_the_contracts_is_asked() -> None:
    """A new call needs an entry in entries.py, and a call that is gone has none."""
    entries = {(process, name) for process, calls in ENTRIES.items() for name in calls}
    assert {(process, call.name) for process, call in served()} == entries
    assert {call.containing_service.name for call in contracts.calls()} >= set(ELSEWHERE)


def test_who_may_call_is_who_is_let_in(evening: Evening) -> None:
    wrong = []
    for process, call, caller in cells(evening):
        outcome, due = (
            evening.outcomes[call.full_name, caller.name],
            expected(process, call, caller),
        )
        good = is_admitted(outcome) if due == ADMITTED else outcome[0] == due
        if due == "PERMISSION_DENIED":
            good = good and outcome[1] in AT_THE_DOOR
        if not good:
            wrong.append(f"{call.full_name} by {caller.name}: {due}, and it was {outcome}")
    assert wrong == [], "\n".join(wrong)


def test_what_is_one_players_is_refused_to_another(evening: Evening) -> None:
    wrong = []
    for process, call, caller in cells(evening):
        entry = entry_of(process, call)
        if caller.kind != "player" or expected(process, call, caller) != ADMITTED:
            continue
        code, reason = evening.outcomes[call.full_name, caller.name]
        if entry.refused and caller.id != entry.own:
            good = reason == entry.refused and code in ("PERMISSION_DENIED", "NOT_FOUND")
        else:
            # What else his request is refused for is its own affair.
            good = not entry.refused or reason != entry.refused
        if not good:
            wrong.append(f"{call.full_name} by {caller.name}: {code} {reason}")
    assert wrong == [], "\n".join(wrong)


def test_a_call_that_names_something_says_whose_it_is() -> None:
    unsaid = []
    for process, call in served():
        if expected(process, call, ANY_PLAYER) != ADMITTED:
            continue
        fields = {field.name for field in call.input_type.fields}
        entry = entry_of(process, call)
        if fields.intersection(NAMES) and not entry.refused and not entry.open:
            unsaid.append(call.full_name)
    assert unsaid == []
