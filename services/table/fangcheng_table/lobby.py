"""Live tables at a glance, as lobbies and dashboards follow them.

A summary has what every spectator sees, looked at now and then: neither what is in it nor when it
comes tells of a claim. Operators and services have more in theirs, and are told whenever trouble
comes or goes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc.aio

from fangcheng.table.v1 import table_pb2 as wire

from .convert import MODES_TO_WIRE
from .gameclock import GameClock
from .live import LiveTable
from .store import Owner
from .troubles import Trouble, TroubleKind
from .views import SPECTATORS

LOOK_SECONDS = 1.0
"""How often other processes are looked for."""

PATIENCE_SECONDS = 2.0
"""How long a first picture waits for what other processes tell."""

MOST_SUMMARIES = 256
"""Summaries in one message at most."""

HERE = ""
"""Where a table is played that this process plays; other processes are known by their endpoints."""


TROUBLE_KINDS: dict[TroubleKind, wire.TableTroubleKind.ValueType] = {
    "stuck": wire.TABLE_TROUBLE_KIND_STUCK,
    "evaluator": wire.TABLE_TROUBLE_KIND_EVALUATOR,
    "wallet": wire.TABLE_TROUBLE_KIND_WALLET,
    "parked": wire.TABLE_TROUBLE_KIND_PARKED,
    "taken_over": wire.TABLE_TROUBLE_KIND_TAKEN_OVER,
}


@dataclass(frozen=True, slots=True)
class Insight:
    """What operators and services are told besides."""

    endpoint: str
    """Where this process is reached."""
    clock: GameClock
    long_ms: int
    """What takes longer is trouble."""


_Look = tuple[int, int, tuple[Trouble, ...]]
"""What of a table is told again once it has changed: last event, spectators, troubles."""


class Lobby:
    """One watcher of the live tables.

    Of each table the newest summary waits for it alone, however seldom it looks.
    """

    def __init__(
        self,
        live: Callable[[], Iterable[LiveTable]],
        rule_set: str,
        labels: Mapping[str, str],
        *,
        vacant: bool = False,
        insight: Insight | None = None,
    ) -> None:
        """`live`: the tables of this process; `rule_set` and `labels`: which, empty for all.

        `vacant`: only while a seat waits for another player. `insight`: None: for a player.
        """
        self._live = live
        self._rule_set = rule_set
        self._labels = labels.items()
        self._vacant = vacant
        self._insight = insight
        self._seen: dict[str, tuple[LiveTable, _Look]] = {}
        """Tables of this process, as they were at the last look."""
        self._played_at: dict[str, str] = {}
        self._changed: dict[str, wire.TableSummary] = {}
        """What it is to be told, by table, and then what is gone."""
        self._gone: set[str] = set()
        self._known: set[str] = set()
        """Tables that it was told of."""
        self._has_looked = False

    def hear(self, endpoint: str, changes: wire.TableChanges) -> None:
        """What another process tells of its tables."""
        self._note(endpoint, changes.tables, changes.gone)

    def lose(self, endpoint: str) -> None:
        """Another process tells of its tables no more."""
        self._note(endpoint, gone=[one for one, at in self._played_at.items() if at == endpoint])

    def look(self) -> list[wire.TableChanges]:
        """What has changed since the last look; at the first one all there is, be it nothing."""
        self._look_here()
        changed, self._changed = list(self._changed.values()), {}
        gone, self._gone = sorted(self._gone), set()
        self._known = (self._known | {table.table_id for table in changed}).difference(gone)
        messages = [
            wire.TableChanges(tables=changed[start : start + MOST_SUMMARIES])
            for start in range(0, len(changed), MOST_SUMMARIES)
        ]
        if gone or not (messages or self._has_looked):
            messages.append(wire.TableChanges(gone=gone))
        if not self._has_looked:
            self._has_looked = messages[-1].complete = True
        return messages

    def _note(
        self, at: str, tables: Iterable[wire.TableSummary] = (), gone: Iterable[str] = ()
    ) -> None:
        """Tables that have changed there; one that is gone there may be played on elsewhere."""
        for table in tables:
            self._played_at[table.table_id] = at
            self._changed[table.table_id] = table
            self._gone.discard(table.table_id)
        for table_id in gone:
            if self._played_at.get(table_id) != at:
                continue
            del self._played_at[table_id]
            if table_id in self._known:
                self._gone.add(table_id)
            else:
                self._changed.pop(table_id, None)

    def _look_here(self) -> None:
        live = {table.table_id: table for table in self._live() if self._wants(table)}
        inside = self._insight
        now_ms = inside.clock.now_ms() if inside else 0
        for table_id, table in live.items():
            troubles = table.troubles(now_ms, inside.long_ms) if inside else ()
            now = (table.feed.last(SPECTATORS), table.feed.spectators, troubles)
            seen = self._seen.get(table_id)
            if seen == (table, now):
                continue
            self._seen[table_id] = (table, now)
            # One that another process has taken over is still among ours for a moment.
            is_new = seen is None or seen[0] is not table
            if is_new or self._played_at.get(table_id) == HERE:
                self._note(HERE, [self._summary(table, troubles)])
        for table_id in [table_id for table_id in self._seen if table_id not in live]:
            table, (last, *_) = self._seen.pop(table_id)
            is_over = table.feed.finished and table.feed.last(SPECTATORS) > last
            self._note(HERE, [self._summary(table, ())] if is_over else [], [table_id])

    def _summary(self, table: LiveTable, troubles: Iterable[Trouble]) -> wire.TableSummary:
        shown = summary(table)
        if self._insight is not None:
            _tell_more(shown, table, troubles, self._insight)
        return shown

    def _wants(self, table: LiveTable) -> bool:
        created = table.state.created
        if self._vacant and not any(seat.vacant for seat in table.state.seats):
            return False
        return self._rule_set in ("", created.rule_set) and self._labels <= created.labels.items()


class Elsewhere:
    """Follows the tables of the other processes for one watcher, those that come later too."""

    def __init__(
        self,
        lobby: Lobby,
        others: Callable[[], Awaitable[Iterable[Owner]]],
        open_stream: Callable[[str], Any],
    ) -> None:
        """`others`: the other processes; `open_stream`: WatchTables at an endpoint."""
        self._lobby = lobby
        self._others = others
        self._open_stream = open_stream
        self._followed: dict[str, asyncio.Task[None]] = {}
        self._silent: set[str] | None = None
        """Who has not told of all its tables yet; None: nobody was looked for yet."""
        self._told = asyncio.Event()

    async def told(self) -> None:
        """Wait until all that there were at first have told of their tables, but not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._told.wait()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                others = await self._others()
                if self._silent is None:
                    self._silent = {owner.endpoint for owner in others}
                    self._has_told("")
                for owner in others:
                    if owner.endpoint not in self._followed:
                        task = loop.create_task(self._follow(owner.endpoint))
                        self._followed[owner.endpoint] = task
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for task in self._followed.values():
                task.cancel()
            await asyncio.gather(*self._followed.values(), return_exceptions=True)

    async def _follow(self, endpoint: str) -> None:
        stream = self._open_stream(endpoint)
        try:
            while (message := await stream.read()) is not grpc.aio.EOF:
                self._lobby.hear(endpoint, message.changes)
                if message.changes.complete or message.HasField("heartbeat"):
                    self._has_told(endpoint)
        except grpc.aio.AioRpcError:
            pass  # it has gone, or will be found again
        finally:
            stream.cancel()
            self._lobby.lose(endpoint)
            self._followed.pop(endpoint, None)
            self._has_told(endpoint)

    def _has_told(self, endpoint: str) -> None:
        if self._silent is not None:
            self._silent.discard(endpoint)
            if not self._silent:
                self._told.set()


def _tell_more(
    shown: wire.TableSummary, table: LiveTable, troubles: Iterable[Trouble], insight: Insight
) -> None:
    """Add to a summary what operators and services are told."""
    created = table.state.created
    shown.endpoint = insight.endpoint
    shown.pool_id = created.pool_id
    shown.mode = MODES_TO_WIRE[created.mode]
    shown.last_event.FromMilliseconds(table.stored_ms)
    for number, state in enumerate(table.state.seats):
        if state.plan.is_bot:
            shown.seats[number].is_bot = True
    for kind, since_ms in troubles:
        trouble = shown.troubles.add(kind=TROUBLE_KINDS[kind])
        ago_ms = insight.clock.now_ms() - since_ms
        trouble.since.FromMilliseconds(time.time_ns() // 1_000_000 - ago_ms)


def summary(table: LiveTable) -> wire.TableSummary:
    """A table as every spectator sees it."""
    view = table.feed.open_view
    return wire.TableSummary(
        table_id=view.table_id,
        rule_set=view.rules.id,
        labels=view.table.labels,
        phase=view.phase,
        hand_number=view.hand_number,
        hands=view.hands,
        dealer=view.dealer,
        wall_tiles=view.wall_tiles,
        seats=[
            wire.SeatSummary(
                player_id=seat.player_id,
                profile=shown.profile,
                connected=seat.connected,
                trustee=seat.trustee,
                standing=seat.standing,
            )
            for seat, shown in zip(view.seats, view.table.seats, strict=True)
        ],
        spectators=table.feed.spectators,
        created=view.table.created,
        closed_reason=view.closed.reason if view.closed is not None else "",
    )
