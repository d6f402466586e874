"""How much one caller may ask of a process: calls a second, calls of a kind a minute, open streams.

Each process counts for itself. A gateway that acts for players (``act_as``) calls as each of them,
so that no player can use up the share of another. Who carries the scope ``bot`` is a program of the
studio's own, which the studio's key has signed for: it counts as a service, not as a player.
"""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Callable, Hashable
from typing import Literal

from prometheus_client import CollectorRegistry, Counter

from fangcheng_kit.contract import Method
from fangcheng_kit.errors import ResourceExhausted
from fangcheng_kit.principal import BOT_SCOPE, Principal
from fangcheng_kit.settings import Settings

BURST_SECONDS = 2.0
"""Whoever has been silent may make as many calls at once as are his in this time."""
BURST_OF_A_KIND_SECONDS = 20.0
"""The same for a call that has a limit of its own."""
AGAIN_SECONDS = 1.0
"""After this long it is worth asking again for a stream."""

_MOST_REMEMBERED = 32_768
_ROUNDING_SECONDS = 1e-6
_LEAST_UNDER_WAY = 8


class Rates:
    """Token buckets, one for each key, as many as need remembering and a bounded number of them.

    A bucket is one number, the time at which it will be full again (GCRA). Of those that have not
    been asked for while thousands of others were, the oldest are forgotten: they count as full.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, most: int = _MOST_REMEMBERED
    ) -> None:
        """``most``: half as many keys as are remembered at the same time at most."""
        self._clock = clock
        self._most = most
        # Two generations, so that forgetting is one step and not a search.
        self._full_at: dict[Hashable, float] = {}
        self._older: dict[Hashable, float] = {}

    def take(self, key: Hashable, per_second: float, burst: float) -> float:
        """Take a token out of a bucket of ``burst`` that gets ``per_second`` new ones.

        0: it is taken; otherwise in how many seconds there is one, and nothing is.
        """
        now, interval = self._clock(), 1 / per_second
        full_at = max(self._full_at.get(key) or self._older.get(key, 0.0), now)
        wait = full_at + interval - now - max(burst, 1.0) * interval
        is_taken = wait < _ROUNDING_SECONDS
        if len(self._full_at) >= self._most and key not in self._full_at:
            self._older, self._full_at = self._full_at, {}
        # Noted where nothing is taken, too: who keeps asking is not forgotten.
        self._full_at[key] = full_at + interval if is_taken else full_at
        return 0.0 if is_taken else wait

    def __len__(self) -> int:
        """How many keys are remembered."""
        return len(self._full_at.keys() | self._older.keys())


class _Held:
    """How many there are, by whose they are."""

    def __init__(self) -> None:
        self.of: Counts[str] = Counts()
        self.total = 0


Held = tuple[Literal["calls", "streams"], str]
"""What is under way or open, and whose it is; "": it is open to everybody."""

LIMITS = ("player", "service", "call", "under_way", "player_streams", "streams")


class CallerLimits:
    """Refuses what a caller asks for beyond his share, and counts that."""

    def __init__(
        self,
        settings: Settings,
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._rates = Rates(clock)
        self._held = {"calls": _Held(), "streams": _Held()}
        refused = Counter(
            "fangcheng_calls_limited_total",
            "Calls refused since their caller made too many, or has too many under way or streams "
            "open, by the limit: of a `player`, of a `service`, of a `call` that has one of its "
            "own, of calls `under_way`, of `player_streams`, of all `streams`.",
            ("limit",),
            registry=registry,
        )
        self._refused = {limit: refused.labels(limit) for limit in LIMITS}

    def admit(self, caller: Principal, method: Method) -> None:
        """A call begins; ``ResourceExhausted`` (TOO_MANY_CALLS) where it is one too many."""
        settings = self._settings
        is_player = is_limited_player(caller)
        if is_player and settings.player_calls_per_second:
            subject = caller.subject
            if method.need is not None and method.need.player_calls_per_minute:
                per_second = method.need.player_calls_per_minute / 60
                self._take("call", (subject, method.path), per_second, BURST_OF_A_KIND_SECONDS)
            self._take("player", subject, settings.player_calls_per_second, BURST_SECONDS)
        if settings.service_calls_per_second and (caller.via is not None or not is_player):
            payer = f"via {caller.via}" if caller.via is not None else caller.subject
            self._take("service", payer, settings.service_calls_per_second, BURST_SECONDS)

    def admit_act(self, player_id: str) -> None:
        """Something is done for a player on a stream of his gateway's, as ``admit``."""
        if self._settings.player_calls_per_second:
            subject = f"player:{player_id}"
            self._take("player", subject, self._settings.player_calls_per_second, BURST_SECONDS)

    def hold(self, caller: Principal | None, method: Method) -> Held:
        """A call is under way, or a stream open, until it is given to ``release``.

        ``None``: a caller of whom nothing is known. ``ResourceExhausted`` (TOO_MANY_CALLS,
        TOO_MANY_STREAMS) where there are too many.
        """
        settings = self._settings
        what: Literal["calls", "streams"] = "calls" if method.kind == "unary" else "streams"
        held, key = self._held[what], "" if caller is None else caller.subject
        is_stream = what == "streams"
        if caller is not None and is_limited_player(caller):
            rate = settings.player_calls_per_second
            most = max(_LEAST_UNDER_WAY, int(rate * BURST_SECONDS)) if rate else 0
            if is_stream:
                most = settings.player_streams
            limit = "player_streams" if is_stream else "under_way"
            self._expect(what, limit, held.of[key], most, "of a player")
        # Whoever tells nothing of himself does not shut out who does.
        others = held.of[""]
        total = held.total - others if key else others
        most = settings.streams if is_stream else settings.calls
        limit = "streams" if is_stream else "under_way"
        self._expect(what, limit, total, most, "of all callers")
        held.of[key] += 1
        held.total += 1
        return what, key

    def release(self, held: Held) -> None:
        """It is over."""
        what, key = held
        counted = self._held[what]
        counted.total -= 1
        counted.of[key] -= 1
        if not counted.of[key]:
            del counted.of[key]

    def _take(self, limit: str, key: Hashable, per_second: float, burst_seconds: float) -> None:
        wait = self._rates.take(key, per_second, per_second * burst_seconds)
        if wait:
            self._refused[limit].inc()
            raise ResourceExhausted(
                "TOO_MANY_CALLS",
                f"At most {per_second * 60:g} such calls a minute; try again in {wait:.2f} s.",
                metadata={"limit": limit},
                retry_after_seconds=wait,
            )

    def _expect(self, what: str, limit: str, are: int, most: int, whose: str) -> None:
        if most and are >= most:
            self._refused[limit].inc()
            raise ResourceExhausted(
                f"TOO_MANY_{what.upper()}",
                f"As many {what} {whose} are under way as may be at the same time: {most}.",
                metadata={"limit": limit},
                retry_after_seconds=AGAIN_SECONDS,
            )


def is_limited_player(caller: Principal) -> bool:
    """Whether the limits of players hold: not for a program of the studio's that plays."""
    return caller.kind == "player" and BOT_SCOPE not in caller.scopes
