"""How much one caller may ask of a process: calls a second, calls of a kind a minute, open streams.

Each process counts for itself. A gateway that acts for players (``act_as``) calls as each of them,
so that no player can use up the share of another. Who carries the scope ``bot`` is a program of the
studio's own, which the studio's key has signed for: it counts as a service, not as a player.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

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
        self._open: dict[str, int] = {}
        """Open streams by subject; "" for those that are open to everybody."""
        self._all_open = 0
        refused = Counter(
            "fangcheng_calls_limited_total",
            "Calls refused since their caller made too many, or has too many streams open, by the "
            "limit: `player`, `service`, `call` (one that has a limit of its own), "
            "`player_streams`, `streams`.",
            ("limit",),
            registry=registry,
        )
        self._refused = {
            limit: refused.labels(limit)
            for limit in ("player", "service", "call", "player_streams", "streams")
        }

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

    def open_stream(self, caller: Principal | None) -> str:
        """A stream begins, of nobody in particular where ``None``; what ``close_stream`` needs.

        ``ResourceExhausted`` (TOO_MANY_STREAMS) where too many are open.
        """
        settings = self._settings
        key = "" if caller is None else caller.subject
        is_open = self._open.get(key, 0)
        if caller is not None and is_limited_player(caller):
            self._expect("player_streams", is_open, settings.player_streams, "of a player")
        if caller is None:  # health: whoever cannot call us is not to shut out who can
            self._expect("streams", is_open, settings.streams, "of those that need no caller")
        else:
            self._expect("streams", self._all_open, settings.streams, "of all callers")
            self._all_open += 1
        self._open[key] = is_open + 1
        return key

    def close_stream(self, key: str) -> None:
        """A stream that was opened is over."""
        left = self._open[key] - 1
        if left:
            self._open[key] = left
        else:
            del self._open[key]
        if key:
            self._all_open -= 1

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

    def _expect(self, limit: str, are_open: int, most: int, who: str) -> None:
        if most and are_open >= most:
            self._refused[limit].inc()
            raise ResourceExhausted(
                "TOO_MANY_STREAMS",
                f"As many streams {who} are open as may be at the same time: {most}.",
                metadata={"limit": limit},
                retry_after_seconds=AGAIN_SECONDS,
            )


def is_limited_player(caller: Principal) -> bool:
    """Whether the limits of players hold: not for a program of the studio's that plays."""
    return caller.kind == "player" and BOT_SCOPE not in caller.scopes
