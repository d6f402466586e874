"""Live tables at a glance, as lobbies and dashboards follow them.

A summary has what every spectator sees, looked at now and then: neither what is in it nor when it
comes tells of a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from fangcheng.table.v1 import table_pb2 as wire

from .live import LiveTable
from .views import SPECTATORS

MOST_SUMMARIES = 256
"""Summaries in one message at most."""


class Lobby:
    """One watcher of the live tables."""

    def __init__(
        self, live: Callable[[], Iterable[LiveTable]], rule_set: str, labels: Mapping[str, str]
    ) -> None:
        """`live`: the tables there are; `rule_set` and `labels`: which of them, empty for all."""
        self._live = live
        self._rule_set = rule_set
        self._labels = labels.items()
        self._told: dict[str, tuple[LiveTable, tuple[int, int]]] = {}

    def look(self) -> Iterator[wire.TableChanges]:
        """What has changed since the last look."""
        live = {table.table_id: table for table in self._live() if self._wants(table)}
        changed: list[wire.TableSummary] = []
        for table_id, table in live.items():
            now = (table.feed.last(SPECTATORS), table.feed.spectators)
            if self._told.get(table_id) != (table, now):
                self._told[table_id] = (table, now)
                changed.append(summary(table))
        gone = [table_id for table_id in self._told if table_id not in live]
        for table_id in gone:
            table, (last, _) = self._told.pop(table_id)
            if table.feed.finished and table.feed.last(SPECTATORS) > last:
                changed.append(summary(table))
        for start in range(0, len(changed), MOST_SUMMARIES):
            yield wire.TableChanges(tables=changed[start : start + MOST_SUMMARIES])
        if gone:
            yield wire.TableChanges(gone=gone)

    def _wants(self, table: LiveTable) -> bool:
        created = table.state.created
        return self._rule_set in ("", created.rule_set) and self._labels <= created.labels.items()


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
