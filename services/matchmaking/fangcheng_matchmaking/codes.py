"""The codes of private rooms, and who tries too many of them.

A code has eight digits, drawn from the system's own source of chance: 26.6 bits, so that with a
hundred rooms open one try in a million finds one. That alone would not keep people out for long;
what does is that wrong ones are few: ten a minute of one player, however many
connections he has, and a number that is set for all players together, half of it for those of one
gateway, which can name as many players as it likes. A player with the code of a room that there is
uses up none of that; while too many are wrong, he waits as all others do.

Codes are compared by the database's index, whose time tells at most how they are ordered, and
that in fractions of a microsecond: nothing that ten tries a minute could measure.
"""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from . import rooms
from .metrics import Metrics

DIGITS = 8
CODES = 50
"""Codes that are drawn for a room; the first that is free is taken."""
MOST_WRONG = 10
"""Codes that a player may get wrong within a minute, at each replica."""
WINDOW_SECONDS = 60.0

_ALL = ("all", "")


class TooManyCodes(rooms.RoomRefusal):
    """Too many codes were tried that no room has."""

    def __init__(self, who: str, retry_after_seconds: float) -> None:
        super().__init__(who)
        self.retry_after_seconds = retry_after_seconds
        """When the next one may be tried."""


def drawn(chance: random.Random) -> list[str]:
    """Codes for a room."""
    return [f"{chance.randrange(10**DIGITS):0{DIGITS}}" for _ in range(CODES)]


class WrongCodes:
    """Counts the codes that were wrong within the last minute, and refuses to look at more."""

    def __init__(
        self, most: int, metrics: Metrics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`most`: of all players together."""
        self._most = {"player": MOST_WRONG, "gateway": max(1, most // 2), "all": most}
        self._metrics = metrics
        self._clock = clock
        self._wrong: deque[tuple[float, tuple[tuple[str, str], ...]]] = deque()
        """When, and whose. Never more than `most`: what is refused is not tried."""
        self._tries: Counter[tuple[str, str]] = Counter()
        """How many each has under way or got wrong."""

    @contextmanager
    def trying(self, player_id: str, via: str | None) -> Iterator[None]:
        """Within it a code is looked up; UnknownRoom, raised there, makes it a wrong one.

        `via`: the gateway that the player comes by. Raises TooManyCodes. What is being looked up
        counts as wrong meanwhile, so that a thousand at the same time are not let through.
        """
        self._forget()
        whose = (("player", player_id), *([("gateway", via)] if via else []), _ALL)
        for kind, who in whose:
            if self._tries[kind, who] >= self._most[kind]:
                self._metrics.wrong_code(is_locked_out=True)
                raise TooManyCodes(player_id, self._until((kind, who)))
        self._tries.update(whose)
        try:
            yield
        except rooms.UnknownRoom:
            self._metrics.wrong_code(is_locked_out=False)
            self._wrong.append((self._clock(), whose))
            raise
        except BaseException:
            self._let_go(whose)
            raise
        else:
            self._let_go(whose)

    def _until(self, whose: tuple[str, str]) -> float:
        """In how many seconds the first of its wrong codes is forgotten."""
        for at, who in self._wrong:
            if whose in who:
                return max(0.0, at + WINDOW_SECONDS - self._clock())
        return 1.0  # all of them are being looked up

    def _forget(self) -> None:
        while self._wrong and self._wrong[0][0] <= self._clock() - WINDOW_SECONDS:
            self._let_go(self._wrong.popleft()[1])

    def _let_go(self, whose: tuple[tuple[str, str], ...]) -> None:
        for one in whose:
            self._tries[one] -= 1
            if not self._tries[one]:
                del self._tries[one]
