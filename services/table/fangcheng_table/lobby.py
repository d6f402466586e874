"""Live tables at a glance, as lobbies and dashboards follow them.

A summary has what every spectator sees, looked at now and then: neither what is in it nor when it
comes tells of a claim.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

import grpc.aio

from fangcheng.table.v1 import table_pb2 as wire

from .live import LiveTable
from .store import Owner
from .views import SPECTATORS

LOOK_SECONDS = 1.0
"""How often other processes are looked for."""

MOST_SUMMARIES = 256
"""Summaries in one message at most."""

HERE = ""
"""Where a table is played that this process plays; other processes are known by their endpoints."""


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
    ) -> None:
        """`live`: the tables of this process; `rule_set` and `labels`: which, empty for all.

        `vacant`: only while a seat waits for another player.
        """
        self._live = live
        self._rule_set = rule_set
        self._labels = labels.items()
        self._vacant = vacant
        self._seen: dict[str, tuple[LiveTable, tuple[int, int]]] = {}
        """Tables of this process, as they were at the last look."""
        self._played_at: dict[str, str] = {}
        self._changed: dict[str, wire.TableSummary] = {}
        """What it is to be told, by table, and then what is gone."""
        self._gone: set[str] = set()
        self._known: set[str] = set()
        """Tables that it was told of."""

    def hear(self, endpoint: str, changes: wire.TableChanges) -> None:
        """What another process tells of its tables."""
        self._note(endpoint, changes.tables, changes.gone)

    def lose(self, endpoint: str) -> None:
        """Another process tells of its tables no more."""
        self._note(endpoint, gone=[one for one, at in self._played_at.items() if at == endpoint])

    def look(self) -> Iterator[wire.TableChanges]:
        """What has changed since the last look."""
        self._look_here()
        changed, self._changed = list(self._changed.values()), {}
        gone, self._gone = sorted(self._gone), set()
        self._known = (self._known | {table.table_id for table in changed}).difference(gone)
        for start in range(0, len(changed), MOST_SUMMARIES):
            yield wire.TableChanges(tables=changed[start : start + MOST_SUMMARIES])
        if gone:
            yield wire.TableChanges(gone=gone)

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
        for table_id, table in live.items():
            now = (table.feed.last(SPECTATORS), table.feed.spectators)
            seen = self._seen.get(table_id)
            if seen == (table, now):
                continue
            self._seen[table_id] = (table, now)
            # One that another process has taken over is still among ours for a moment.
            is_new = seen is None or seen[0] is not table
            if is_new or self._played_at.get(table_id) == HERE:
                self._note(HERE, [summary(table)])
        for table_id in [table_id for table_id in self._seen if table_id not in live]:
            table, (last, _) = self._seen.pop(table_id)
            is_over = table.feed.finished and table.feed.last(SPECTATORS) > last
            self._note(HERE, [summary(table)] if is_over else [], [table_id])

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

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                for owner in await self._others():
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
        except grpc.aio.AioRpcError:
            pass  # it has gone, or will be found again
        finally:
            stream.cancel()
            self._lobby.lose(endpoint)
            self._followed.pop(endpoint, None)


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
