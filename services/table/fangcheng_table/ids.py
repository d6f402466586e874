"""Ids of decisions: what a prompt is answered with.

They count a seat's own decisions, so that they tell nothing of the others: `3-12` is a seat's
twelfth decision in the third hand, `back-2` takes the seat back after the table has begun to play
for it a second time. Those of the whole table are the same for all seats: `ready-4` is its fourth
ready check, `vote-1` its first vote.
"""

from __future__ import annotations

import re

BACK = "back"
"""The kind of action that takes a seat back."""

TRUSTEE = "trustee"
"""The kind of action that has the table play for a seat."""

READY = "ready"
"""The answer to a ready check, and what its id begins with."""

VOTE = "vote"
"""What the id of a vote begins with."""

AGREE = "agree"
REFUSE = "refuse"

_TABLE = re.compile(r"(ready|vote)-([1-9]\d{0,5})", re.ASCII)
_TRUSTEE = re.compile(r"back-([1-9]\d{0,5})", re.ASCII)
_PROMPT = re.compile(r"([1-9]\d{0,5})-([1-9]\d{0,5})", re.ASCII)


def prompt_id(hand_number: int, decision: int) -> str:
    """The id of a seat's decision in a hand."""
    return f"{hand_number}-{decision}"


def read_prompt_id(text: str) -> tuple[int, int] | None:
    """Hand number and decision; None for what is no prompt's id."""
    found = _PROMPT.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None


def table_question_id(what: str, number: int) -> str:
    """The id of a ready check or a vote."""
    return f"{what}-{number}"


def read_table_id(text: str) -> tuple[str, int] | None:
    """`ready` or `vote`, and its number; None for what is no such id."""
    found = _TABLE.fullmatch(text)
    return (found[1], int(found[2])) if found else None


def read_trustee_id(text: str) -> int | None:
    """How often the table had begun to play for the seat; None for what is no such id."""
    found = _TRUSTEE.fullmatch(text)
    return int(found[1]) if found else None


def trustee_id(times: int) -> str:
    """The id with which a seat is taken back, the `times`th time."""
    return f"{BACK}-{times}"
