"""The clocks of a table: what each waits for, and when none of them runs.

Times are milliseconds of a monotonic clock. A clock that stands still rings no sooner for it: time
in which the suite keeps a table waiting, and time in which nobody attends any seat, count against
nobody. Clocks are not stored; a table that is taken over begins them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

from fangcheng_rules.actions import PromptKind

from .events import Timing
from .state import TableState

Key = tuple[str, int, int, int]
"""A clock: what it is for, one of `ORDER`, and of what."""

ORDER = {
    kind: place
    for place, kind in enumerate(
        ("decision", "window", "lost", "away", "vote", "ready", "vacant", "deserted", "begin")
    )
}
"""Which of several that are due rings first."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a table waits for its players' streams; settings of the service."""

    start_ms: int = 5_000
    """For all four to attend, before a hand begins without those who never have."""
    linger_ms: int = 2_000
    """For a new stream of a seat whose stream has ended, before it counts as disconnected."""
    resume_ms: int = 10_000
    """The same after all seats had lost theirs, as where the service itself was away."""


class Wait(NamedTuple):
    """How long a clock runs."""

    ms: int
    reserve_ms: int = 0
    """More than that, from the reserve of the seat."""


@dataclass(slots=True)
class _Clock:
    at_ms: int
    """When it rings, the reserve included; while it stands still, had it gone on."""
    reserve_ms: int
    stands_since: int | None = None

    def left(self, now_ms: int) -> int:
        now_ms = now_ms if self.stands_since is None else self.stands_since
        return max(0, self.at_ms - now_ms)


class Clocks:
    """Clocks by their keys."""

    def __init__(self) -> None:
        self._clocks: dict[Key, _Clock] = {}

    def set(self, wanted: Mapping[Key, Wait], now_ms: int, stands: Callable[[Key], bool]) -> None:
        """Start the clocks that are new, drop those not wanted any more, stop and go on."""
        before, self._clocks = self._clocks, {}
        for key, wait in wanted.items():
            clock = before.get(key) or _Clock(now_ms + wait.ms + wait.reserve_ms, wait.reserve_ms)
            if stands(key):
                clock.stands_since = now_ms if clock.stands_since is None else clock.stands_since
            elif clock.stands_since is not None:
                clock.at_ms += now_ms - clock.stands_since
                clock.stands_since = None
            self._clocks[key] = clock

    def due(self, now_ms: int, dealer: int) -> Key | None:
        """What rings first; it is dropped.

        If two seats pass their grace at once, the first in turn order from the dealer is the one
        that escapes (rules/README, Leaving).
        """
        due = [
            (clock.at_ms, ORDER[key[0]], (key[1] - dealer) % 4, key)
            for key, clock in self._clocks.items()
            if clock.stands_since is None and clock.at_ms <= now_ms
        ]
        if not due:
            return None
        key = min(due)[-1]
        del self._clocks[key]
        return key

    def next_ms(self) -> int | None:
        """When the next one rings."""
        running = (clock.at_ms for clock in self._clocks.values() if clock.stands_since is None)
        return min(running, default=None)

    def left(self, key: Key, now_ms: int) -> tuple[int, int]:
        """Milliseconds left, and of the reserve besides; none where there is no such clock."""
        clock = self._clocks.get(key)
        if clock is None:
            return 0, 0
        left_ms = clock.left(now_ms)
        return max(0, left_ms - clock.reserve_ms), min(left_ms, clock.reserve_ms)

    def spent(self, open_keys: Set[Key], now_ms: int) -> Iterator[tuple[int, int]]:
        """Seats whose turn is over, and what it took of their reserve; these clocks are dropped."""
        for key in [key for key in self._clocks if key[0] == "decision" and key not in open_keys]:
            clock = self._clocks.pop(key)
            spent_ms = clock.reserve_ms - min(clock.reserve_ms, clock.left(now_ms))
            if spent_ms > 0:
                yield key[2], spent_ms


def decision_waits(state: TableState) -> Iterator[tuple[Key, Wait]]:
    """The clocks of what seats are asked in a hand."""
    timing, hand = state.created.timing, state.in_play
    if hand is None:
        return
    waits: dict[PromptKind, int] = {
        "piao": timing.before_deal_ms,
        "turn": timing.turn_ms,
        "claim": timing.claim_ms,
        "dealt_out": timing.claim_ms,
    }
    for seat, prompt in hand.prompts().items():
        # All know whose turn it is; a reserve for claims would tell that somebody was asked.
        reserve_ms = reserve_left(timing, state, seat) if prompt.kind == "turn" else 0
        key = ("decision", state.hand_number, seat, prompt.decision)
        yield key, Wait(waits[prompt.kind], reserve_ms)


def reserve_left(timing: Timing, state: TableState, seat: int) -> int:
    """What a seat has left of its reserve in this hand."""
    return max(0, timing.reserve_ms - state.seats[seat].reserve_spent_ms)
