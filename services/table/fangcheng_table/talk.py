"""What the seats of a table say to each other: heard by who is there, and not kept.

It is no event: it has no number, so that a stream which is resumed misses none for it, and neither
journal nor records have it.
"""

from __future__ import annotations

import math
import time
import unicodedata
from collections.abc import Callable, Collection

from fangcheng.table.v1 import table_pb2 as wire

from .errors import InvalidText, TalkOff, TalksTooMuch, UnknownPhrase
from .events import TalkRules

MOST_CHARACTERS = 60
BURST = 5
"""Things that a seat may say one after the other."""
SECONDS_BETWEEN = 2.0
"""How long it takes until it may say one more."""

JOINER = "\u200d"
"""Holds signs of several parts together; no other control or format character is let through."""


class Talk:
    """Who may say what at one table, and how much."""

    def __init__(
        self,
        rules: TalkRules,
        phrases: Collection[str],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`phrases`: ids of those that there are; `now`: seconds."""
        self._rules = rules
        self._phrases = phrases
        self._now = now
        # Up to when each seat has used up its time to speak; a burst may begin before now.
        self._used_up_to = [-math.inf] * 4

    def say(self, seat: int, request: wire.SayRequest) -> wire.Talk:
        """What is heard of it.

        Raises `TalkOff`, `UnknownPhrase`, `InvalidText` and `TalksTooMuch`.
        """
        if self._rules.off:
            raise TalkOff("Nothing may be said at this table.")
        talk = wire.Talk(seat=seat)
        if request.HasField("phrase"):
            if request.phrase not in self._phrases:
                raise UnknownPhrase(request.phrase, self._phrases)
            talk.phrase = request.phrase
        else:
            if self._rules.phrases_only:
                raise TalkOff("Only phrases may be said at this table.")
            talk.text = checked(request.text)
        self._count(seat)
        talk.time.GetCurrentTime()
        return talk

    def _count(self, seat: int) -> None:
        now = self._now()
        used = max(self._used_up_to[seat], now - BURST * SECONDS_BETWEEN) + SECONDS_BETWEEN
        if used > now:
            raise TalksTooMuch(used - now)
        self._used_up_to[seat] = used


def checked(text: str) -> str:
    """A text as it may be shown; raises `InvalidText`."""
    text = unicodedata.normalize("NFC", text).strip()
    if not text:
        raise InvalidText("There is nothing in it but spaces.")
    if len(text) > MOST_CHARACTERS:
        raise InvalidText(f"{len(text)} characters; at most {MOST_CHARACTERS} may be said.")
    for character in text:
        # Control characters, and those that turn or hide what stands around them.
        is_space = unicodedata.category(character) == "Zs"
        if not (character.isprintable() or is_space or character == JOINER):
            raise InvalidText(f"The character U+{ord(character):04X} may not be said.")
    return text
