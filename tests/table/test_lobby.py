"""Summaries of live tables, for lobbies and dashboards."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_table import lobby, operating
from fangcheng_table.events import SeatPlan, Timing
from fangcheng_table.feed import Feed
from fangcheng_table.lobby import Lobby
from fangcheng_table.operating import Order
from fangcheng_table.state import TableState
from fangcheng_table.store import Owner

from .tables import Drive, at_random, created
from .world import PLAYERS, play_all, request, until, until_attended, world


class Shown:
    """As much of a live table as a lobby looks at."""

    def __init__(self, drive: Drive, table_id: str = "t1") -> None:
        self.drive = drive
        self.feed = Feed()
        self.table_id = table_id
        self._published = 0
        self.publish()

    @property
    def state(self) -> TableState:
        return self.drive.table.state

    def publish(self) -> None:
        self.feed.publish(self.drive.records[self._published :])
        self._published = len(self.drive.records)


def lobby_of(table: Any, rule_set: str = "", labels: dict[str, str] | None = None) -> Lobby:
    return Lobby(lambda: [table], rule_set, labels or {})


def looked(watcher: Lobby) -> tuple[list[wire.TableSummary], list[str]]:
    changes = list(watcher.look())
    return (
        [table for change in changes for table in change.tables],
        [gone for change in changes for gone in change.gone],
    )


def test_a_watcher_is_told_what_has_changed_since_it_looked():
    table = Shown(Drive.of(created(hands=2)))
    tables: list[Any] = [table]
    watcher = Lobby(lambda: tables, "", {})
    (first,), gone = looked(watcher)
    assert (first.table_id, first.rule_set, dict(first.labels)) == (
        "t1",
        "baishan_kele",
        {"club": "17"},
    )
    assert first.phase == state_pb2.TABLE_PHASE_BETWEEN_HANDS
    assert [seat.player_id for seat in first.seats] == list(PLAYERS)
    assert gone == []
    assert looked(watcher) == ([], [])
    table.drive.attend(0, 1, 2, 3)
    table.publish()
    (second,), _ = looked(watcher)
    assert all(seat.connected for seat in second.seats)
    table.drive.play(at_random(3))
    table.publish()
    tables.clear()
    (last,), gone = looked(watcher)
    assert (last.phase, last.closed_reason) == (state_pb2.TABLE_PHASE_CLOSED, "hands_played")
    assert [seat.standing for seat in last.seats] == [s.standing for s in table.state.seats]
    assert gone == ["t1"]
    assert looked(watcher) == ([], [])


def test_nothing_that_is_hidden_shows_in_a_summary():
    """Seats that are asked, that pass, and shares in the shuffle leave no trace."""
    table = Shown(Drive.of(created()))
    watcher = lobby_of(table)
    looked(watcher)
    table.drive.table.give_entropy(1, b"x")
    table.drive.settle()
    table.publish()
    assert looked(watcher) == ([], [])


@pytest.mark.parametrize(
    ("rule_set", "labels", "found"),
    [
        ("", {}, True),
        ("baishan_kele", {"club": "17"}, True),
        ("jintan", {}, False),
        ("", {"club": "18"}, False),
        ("", {"club": "17", "app": "x"}, False),
    ],
)
def test_tables_are_chosen_by_rule_set_and_labels(rule_set, labels, found):
    table = Shown(Drive.of(created()))
    watcher = lobby_of(table, rule_set, labels)
    assert bool(looked(watcher)[0]) == found


def test_a_table_is_told_of_while_a_seat_waits_to_whoever_asks_for_vacancies():
    waits = Timing(claim_window_ms=0, between_hands_ms=5_000, vacancy_ms=60_000)
    table = Shown(Drive.of(created(rules_id="shandong", hands=8, timing=waits)))
    watcher = Lobby(lambda: [table], "", {}, vacant=True)
    table.drive.attend(0)
    table.publish()
    assert looked(watcher) == ([], [])
    table.drive.table.leave(2, now=False)
    table.drive.settle()
    table.publish()
    (told,), gone = looked(watcher)
    assert [seat.player_id for seat in told.seats] == ["ann", "bob", "", "dan"]
    assert gone == []
    order = Order("o-1", "matchmaking", "from the queue", "")
    operating.seat_player(table.drive.table, order, 2, SeatPlan("eve"))
    table.drive.settle()
    table.publish()
    assert looked(watcher) == ([], ["t1"])


def test_many_tables_come_in_many_messages(monkeypatch):
    monkeypatch.setattr(lobby, "MOST_SUMMARIES", 3)
    ids = [f"t{number}" for number in range(8)]
    tables: list[Any] = [Shown(Drive.of(replace(created(), table_id=one)), one) for one in ids]
    changes = Lobby(lambda: tables, "", {}).look()
    assert [len(change.tables) for change in changes] == [3, 3, 2]
    assert [change.complete for change in changes] == [False, False, True]


def test_the_first_picture_is_complete_be_it_empty_and_none_after_it():
    tables: list[Any] = []
    watcher = Lobby(lambda: tables, "", {})
    assert watcher.look() == [wire.TableChanges(complete=True)]
    tables.append(Shown(Drive.of(created())))
    (change,) = watcher.look()
    assert not change.complete


class Others:
    """Streams of other processes, which tell what they are told to."""

    def __init__(self, *messages: wire.WatchTablesResponse) -> None:
        self.messages = list(messages)

    async def read(self) -> Any:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)

    def cancel(self) -> None:
        """Nobody reads on."""


async def test_a_first_picture_waits_for_the_other_replicas_but_not_for_one_that_hangs(monkeypatch):
    told = wire.WatchTablesResponse(changes=summaries("t1"))
    whole = wire.WatchTablesResponse(changes=wire.TableChanges(complete=True))
    streams = {"b:1": Others(told, whole), "c:1": Others()}
    owners = [Owner(endpoint, endpoint) for endpoint in streams]

    async def others() -> list[Owner]:
        return owners

    async def first(patience_seconds: float) -> list[str]:
        monkeypatch.setattr(lobby, "PATIENCE_SECONDS", patience_seconds)
        watcher = Lobby(list, "", {})
        elsewhere = lobby.Elsewhere(watcher, others, streams.__getitem__)
        task = asyncio.create_task(elsewhere.run())
        await elsewhere.told()
        task.cancel()
        (change,) = watcher.look()
        assert change.complete
        return [table.table_id for table in change.tables]

    assert await first(0.2) == ["t1"]
    streams["b:1"].messages += [told, whole]
    owners.pop()
    assert await first(600) == ["t1"]


async def test_a_lobby_without_tables_says_so_at_once(service):
    call = service.stub("operator").WatchTables(wire.WatchTablesRequest())
    # The first message of all, before any heartbeat.
    assert (await call.read()).changes == wire.TableChanges(complete=True)
    call.cancel()


def summaries(*table_ids: str) -> wire.TableChanges:
    return wire.TableChanges(tables=[wire.TableSummary(table_id=one) for one in table_ids])


def test_a_table_that_moves_to_another_replica_is_not_lost_on_the_way():
    table = Shown(Drive.of(created()))
    tables: list[Any] = [table]
    watcher = Lobby(lambda: tables, "", {})
    looked(watcher)
    # The new owner tells of it before the old one lets it go ...
    watcher.hear("b:1", summaries("t1"))
    assert [one.table_id for one in looked(watcher)[0]] == ["t1"]
    table.drive.attend(0)
    table.publish()
    assert looked(watcher) == ([], [])
    tables.clear()
    assert looked(watcher) == ([], [])
    # ... or after it; and back.
    tables.append(table)
    watcher.hear("b:1", wire.TableChanges(gone=["t1"]))
    told, gone = looked(watcher)
    assert [one.table_id for one in told] == ["t1"]
    assert gone == []


def test_the_tables_of_a_replica_that_is_lost_are_gone():
    watcher = Lobby(list, "", {})
    watcher.hear("b:1", summaries("t1", "t2"))
    watcher.hear("c:1", summaries("t3"))
    watcher.hear("c:1", summaries("t2"))
    assert [one.table_id for one in looked(watcher)[0]] == ["t1", "t2", "t3"]
    watcher.lose("b:1")
    assert looked(watcher) == ([], ["t1"])


def test_what_other_replicas_tell_does_not_pile_up_for_who_does_not_look():
    watcher = Lobby(list, "", {})
    watcher.hear("b:1", summaries("t1"))
    assert [one.table_id for one in looked(watcher)[0]] == ["t1"]
    for wall_tiles in range(1_000):
        table = wire.TableSummary(table_id="t1", wall_tiles=wall_tiles)
        watcher.hear("b:1", wire.TableChanges(tables=[table]))
        # One that came and went meanwhile is not told of at all.
        watcher.hear("b:1", summaries(f"short-{wall_tiles}"))
        watcher.hear("b:1", wire.TableChanges(gone=[f"short-{wall_tiles}"]))
    closed = wire.TableSummary(table_id="t1", closed_reason="hands_played")
    watcher.hear("b:1", wire.TableChanges(tables=[closed]))
    watcher.hear("b:1", wire.TableChanges(gone=["t1"]))
    assert looked(watcher) == ([closed], ["t1"])
    assert looked(watcher) == ([], [])


async def test_a_lobby_follows_a_table_from_its_creation_to_its_end(tmp_path):
    async with world(tmp_path, summary_seconds=0.02, heartbeat_seconds=0.2) as service:
        seen: list[wire.TableSummary] = []
        gone: list[str] = []
        beats = 0

        async def watching() -> None:
            nonlocal beats
            async for message in service.player("eve").WatchTables(wire.WatchTablesRequest()):
                seen.extend(message.changes.tables)
                gone.extend(message.changes.gone)
                beats += message.HasField("heartbeat")

        task = asyncio.create_task(watching())
        await until(lambda: beats > 0)
        made = await service.stub("operator").CreateTable(request())
        table_id = made.table.table_id
        await play_all(service, table_id)
        await until(lambda: gone == [table_id])
        assert {summary.table_id for summary in seen} == {table_id}
        assert seen[-1].closed_reason == "hands_played"
        walls = [summary.wall_tiles for summary in seen if summary.hand_number]
        assert walls == sorted(walls, reverse=True)
        task.cancel()


async def test_spectators_are_counted(tmp_path):
    async with world(tmp_path, summary_seconds=0.02) as service:
        made = await service.stub("operator").CreateTable(request())
        table_id = made.table.table_id
        call = service.stub("operator").WatchTables(wire.WatchTablesRequest())

        async def told() -> wire.TableSummary:
            while not (message := await call.read()).changes.tables:
                pass  # a heartbeat
            summary: wire.TableSummary = message.changes.tables[0]
            return summary

        assert (await told()).spectators == 0
        watching = service.player("eve").Watch(wire.WatchRequest(table_id=table_id))
        await watching.read()
        while (await told()).spectators != 1:
            pass
        await until_attended(service, table_id, "ann")  # no spectator
        while not (shown := await told()).seats[0].connected:
            pass
        assert shown.spectators == 1
        watching.cancel()
        while (await told()).spectators != 0:
            pass
        call.cancel()
