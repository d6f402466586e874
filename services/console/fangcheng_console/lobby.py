"""The lobby: all live tables of all table processes, and the suite's figures, for many viewers.

One `WatchTables` serves the process. Viewers are sent a full picture first, and then about once a
second what has changed since, of each table only the fields that have: serialised once for all of
them. Nobody has a queue: who reads too slowly for the changes that are kept is sent a full picture
again. Nothing hidden is in a summary, so that viewers and operators are sent the same.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import grpc.aio
from pydantic_core import to_json

from fangcheng.table.v1 import state_pb2, table_pb2
from fangcheng_client import explain, follow_tables
from fangcheng_kit.background import running

from .figures import Figures, Point
from .hub import Feed
from .names import name_of
from .shown import PHASES

TELL_SECONDS = 1.0
KEPT_CHANGES = 8
"""Changes that a slow viewer may lag behind before it is sent everything again."""
GIVE_UP_SECONDS = 1.0
"""Tables are told of as old when their stream was not to be had again for so long."""
SILENCE_SECONDS = 30.0
"""A stream without even a heartbeat for so long is lost."""
PAUSE_SECONDS = 0.5

Row = dict[str, Any]
"""A table as the page has it; see `row`."""

_MODES = {
    table_pb2.TABLE_MODE_CASUAL: "casual",
    table_pb2.TABLE_MODE_RANKED: "ranked",
    table_pb2.TABLE_MODE_ANTI_CHEAT: "anti_cheat",
    table_pb2.TABLE_MODE_PRACTICE: "practice",
    table_pb2.TABLE_MODE_ROOM: "room",
}
_TROUBLES = {
    table_pb2.TABLE_TROUBLE_KIND_STUCK: "stuck",
    table_pb2.TABLE_TROUBLE_KIND_EVALUATOR: "evaluator",
    table_pb2.TABLE_TROUBLE_KIND_WALLET: "wallet",
    table_pb2.TABLE_TROUBLE_KIND_PARKED: "parked",
    table_pb2.TABLE_TROUBLE_KIND_TAKEN_OVER: "taken_over",
}


class Tables:
    """The live tables, followed for as long as the console runs."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """`channel`: to the table service."""
        self.live: dict[str, table_pb2.TableSummary] = {}
        """By table."""
        self.away_since: float | None = time.time()
        """Since when nothing is heard of them, a Unix time; `None`: they are as they are told."""
        self.trouble = "it has not answered yet"
        """Why nothing is heard."""
        self.touched: set[str] = set()
        """Tables that have changed or gone; whoever has told of them empties it."""
        self.told: Collection[str] = ()
        """Tables that somebody was told of: of others nobody needs to hear that they are gone."""
        self._channel = channel

    def running(self) -> AbstractAsyncContextManager[None]:
        """Follows them while the `async with` lasts."""
        return running(self._run())

    def hear(self, *changed: table_pb2.TableSummary, gone: Iterable[str] = ()) -> None:
        """What the service tells of its tables."""
        for table in changed:
            self.live[table.table_id] = table
            self.touched.add(table.table_id)
        for table_id in gone:
            self.live.pop(table_id, None)
            if table_id in self.told:
                self.touched.add(table_id)
            else:
                self.touched.discard(table_id)

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
                self._lose("its stream has ended")
            except grpc.aio.AioRpcError as error:
                self._lose(explain(error).message)
            except TimeoutError:
                self._lose("its stream says nothing")
            await asyncio.sleep(PAUSE_SECONDS)

    async def _follow(self) -> None:
        async for news in follow_tables(
            self._channel, give_up_seconds=GIVE_UP_SECONDS, silence_seconds=SILENCE_SECONDS
        ):
            gone = news.gone
            if self.away_since is not None:
                # The first news tell of all: what is not among them is over.
                self.away_since, self.trouble = None, ""
                gone = [table_id for table_id in self.live if table_id not in news.tables]
            self.hear(*news.changed, gone=gone)

    def _lose(self, why: str) -> None:
        self.trouble = why
        if self.away_since is None:
            self.away_since = time.time()


class Picture(Feed):
    """The lobby as its viewers have it."""

    def __init__(self, tables: Tables, figures: Figures, **more: Any) -> None:
        """`more`: as of `Feed`."""
        super().__init__(self._follow, **more)
        self._tables = tables
        self._figures = figures
        self._told_state: dict[str, Any] = {}
        self._told_point: Point | None = None
        self._rows: dict[str, Row] = {}
        """Tables as they were told of last."""
        tables.told = self._rows
        self._count = 0
        self._changes: deque[bytes] = deque(maxlen=KEPT_CHANGES)
        """The newest ends with `version`."""
        self._full: tuple[int, bytes] = (-1, b"")
        self._told_at = float("-inf")

    async def messages(self, seen: int) -> AsyncIterator[bytes]:
        """What one viewer is sent: everything, and then the changes."""
        self._tell_if_due()
        seen = -1
        while not self._ended:
            behind = self.version - seen
            if behind == 0:
                await self._news.wait()
                continue
            if behind > len(self._changes) or seen < 0:
                seen = self.version
                yield self._whole()
            else:
                seen += 1
                yield self._changes[-behind]

    async def _follow(self, feed: Feed) -> None:
        while True:
            self._tell_if_due()
            await asyncio.sleep(TELL_SECONDS)

    def _tell_if_due(self) -> None:
        if asyncio.get_running_loop().time() - self._told_at >= TELL_SECONDS / 2:
            self.tell()

    def tell(self) -> None:
        """Tell all viewers what has changed since they were told last."""
        self._told_at = asyncio.get_running_loop().time()
        changed, gone = self._look()
        change: dict[str, Any] = {"tables": changed, "gone": gone}
        for name, told in self._state().items():
            if self._told_state.get(name) != told:
                change[name] = self._told_state[name] = told
        points = self._figures.points
        if points and points[-1] is not self._told_point:
            self._told_point = change["point"] = points[-1]
        self.version += 1
        self._changes.append(_message(self.version, change))
        self._wake()

    def _look(self) -> tuple[list[Row], list[int]]:
        """What has changed of the tables since the last look, and which are gone."""
        changed: list[Row] = []
        gone: list[int] = []
        touched, self._tables.touched = self._tables.touched, set()
        for table_id in touched:
            known = self._rows.get(table_id)
            table = self._tables.live.get(table_id)
            if table is None:
                if known is not None:
                    gone.append(self._rows.pop(table_id)["n"])
                continue
            if known is None:
                self._count += 1
                self._rows[table_id] = {"n": self._count, **row(table)}
                changed.append(_short(self._rows[table_id]))
                continue
            new = row(table)
            patch = {name: value for name, value in new.items() if known[name] != value}
            if patch:
                known.update(patch)
                changed.append({"n": known["n"], **patch})
        return changed, gone

    def _whole(self) -> bytes:
        if self._full[0] != self.version:
            tables = [_short(one) for one in self._rows.values()]
            figures = self._figures.columns()
            picture = {"full": True, "tables": tables, **self._told_state, "figures": figures}
            self._full = self.version, _message(self.version, picture)
        return self._full[1]

    def _state(self) -> dict[str, Any]:
        since = self._tables.away_since
        away = None if since is None else {"since": _ms(since), "why": self._tables.trouble}
        return {"away": away, "missing": self._figures.missing()}


def _message(version: int, picture: dict[str, Any]) -> bytes:
    told = {"version": version, "now": _ms(time.time()), **picture}
    return b"id: %d\ndata: %b\n\n" % (version, to_json(told))


def _ms(unix_seconds: float) -> int:
    return int(unix_seconds * 1_000)


_UNSAID: Row = {
    "pool": "",
    "mode": "",
    "labels": {},
    "hands": 0,
    "spectators": 0,
    "closed": "",
    "troubles": {},
    "away": [],
    "trustees": [],
    "bots": [],
    "names": [],
    "standings": [0, 0, 0, 0],
}
"""Fields that a table is told of without while they are so."""


def _short(table: Row) -> Row:
    return {
        name: value
        for name, value in table.items()
        if name not in _UNSAID or _UNSAID[name] != value
    }


def row(table: table_pb2.TableSummary) -> Row:
    """A table as the page has it, without its number `n`, by which changes name it.

    `players` are four ids (empty: a seat that waits for somebody), `names` empty where they are the
    ids; `away`, `trustees` and `bots` are seats. `troubles` says since when (Unix ms; 0: unknown).
    """
    players = [seat.player_id for seat in table.seats]
    names = [name_of(seat.profile, seat.player_id) for seat in table.seats]
    # A player who has not come yet, or has left a table that is over, is not missed.
    is_on = table.phase in (
        state_pb2.TABLE_PHASE_PLAYING,
        state_pb2.TABLE_PHASE_BETWEEN_HANDS,
    )
    return {
        "id": table.table_id,
        "rule_set": table.rule_set,
        "pool": table.pool_id,
        "mode": _MODES.get(table.mode, ""),
        "labels": dict(table.labels),
        "phase": PHASES.get(table.phase, ""),
        "hand": table.hand_number,
        "hands": table.hands,
        "dealer": table.dealer,
        "wall": table.wall_tiles,
        "spectators": table.spectators,
        "created": table.created.ToMilliseconds(),
        "closed": table.closed_reason,
        "troubles": troubles_of(table),
        "players": players,
        "names": [] if names == players else names,
        "standings": [seat.standing for seat in table.seats],
        "away": [
            at
            for at, seat in enumerate(table.seats)
            if is_on and players[at] and not seat.connected
        ],
        "trustees": [at for at, seat in enumerate(table.seats) if seat.trustee],
        "bots": [at for at, seat in enumerate(table.seats) if seat.is_bot],
    }


def troubles_of(table: table_pb2.TableSummary) -> dict[str, int]:
    """What is wrong with a table, and since when (Unix ms)."""
    return {
        _TROUBLES[trouble.kind]: trouble.since.ToMilliseconds()
        for trouble in table.troubles
        if trouble.kind in _TROUBLES
    }
