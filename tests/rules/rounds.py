"""Hands of play in a few words: set up, moved on, looked at."""

from __future__ import annotations

from typing import TypeVar

from fangcheng_rules.actions import (
    Action,
)
from fangcheng_rules.events import (
    Asked,
    Event,
)
from fangcheng_rules.round import Round
from fangcheng_rules.tiles import from_name
from tests.rules.transcripts import begin, do, words

E = TypeVar("E")

TING = "123p88m79s555m234s6z"
"""Declares 听 with 6z."""
CHI_OR_PONG = {
    "dealer_drew": "1m",
    "hand_1": "23m58m369p147s125z",
    "hand_2": "11m9m147p258s1267z",
}
"""Seat 1 may chi what seat 0 discards, seat 2 pong it."""


def setup(**said: str) -> dict[str, str]:
    """A hand in which only the seats whose tiles are said are players.

    `hand_1` is the setup's `hand 1`. The table plays for the others: they pass every claim and
    discard what they draw, the dealer what it was dealt last (`dealer_drew`).
    """
    named = {key.replace("hand_", "hand ").replace("at_", "at "): said[key] for key in said}
    others = " ".join(str(seat) for seat in range(4) if f"hand {seat}" not in named)
    basic = {"rule_set": "baishan_kele", "options": "piao off", "dealer": "0", "trustees": others}
    return basic | named


def scene(**said: str) -> Round:
    """Such a hand, up to where a player is asked."""
    return begin(setup(**said))[0]


def moves(play: Round, *said: str) -> list[Event]:
    return [event for move in said for event in do(play, move)]


def offered(play: Round, seat: int) -> list[str]:
    prompt = play.prompts().get(seat)
    return [words(action) for action in prompt.actions] if prompt else []


def only(events: list[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def discard(tile: str, declare: str = "") -> Action:
    return Action("discard", from_name(tile), declare=declare)


def turns_of(events: list[Event], seat: int) -> list[str]:
    """How often and for what a seat was asked."""
    return [event.kind for event in only(events, Asked) if event.seat == seat]
