"""Ids of decisions: what a prompt is answered with.

They count a seat's own decisions, so that they tell nothing of the others: `3-12` is a seat's
twelfth decision in the third hand, `back-2` takes the seat back after the table has begun to play
for it a second time.
"""

from __future__ import annotations

import re

BACK = "back"
"""The kind of action that takes a seat back."""

TRUSTEE = "trustee"
"""The kind of action that has the table play for a seat."""

_TRUSTEE = re.compile(r"back-([1-9]\d{0,5})", re.ASCII)
_PROMPT = re.compile(r"([1-9]\d{0,5})-([1-9]\d{0,5})", re.ASCII)


def prompt_id(hand_number: int, decision: int) -> str:
    """The id of a seat's decision in a hand."""
    return f"{hand_number}-{decision}"


def read_prompt_id(text: str) -> tuple[int, int] | None:
    """Hand number and decision; None for what is no prompt's id."""
    found = _PROMPT.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None


def read_trustee_id(text: str) -> int | None:
    """How often the table had begun to play for the seat; None for what is no such id."""
    found = _TRUSTEE.fullmatch(text)
    return int(found[1]) if found else None


def trustee_id(times: int) -> str:
    """The id with which a seat is taken back, the `times`th time."""
    return f"{BACK}-{times}"
