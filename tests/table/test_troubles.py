"""What operators and services are told of a table besides, and its troubles as they come and go."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import grpc
import pytest

from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_table.feed import Feed
from fangcheng_table.gameclock import GameClock
from fangcheng_table.live import LiveTable
from fangcheng_table.lobby import Insight, Lobby
from fangcheng_table.troubles import TAKEN_OVER_MS, Trouble, Waiting, waiting_for

from .tables import Drive, created
from .test_recovery import SILVER, stage
from .world import PLAYERS, Lobbyist, World, play_all, request, until, until_attended, world

LONG_MS = 10_000


class Time:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.clock = GameClock(2**60, source=lambda: self.now_ms)


def told(*waiting: Waiting) -> list[Trouble]:
    return list(waiting_for(waiting, long_ago_ms=5_000))


def test_what_has_no_answer_for_long_is_trouble():
    assert told(Waiting("wallet", 5_001), Waiting("evaluator", 5_001)) == []
    assert told(Waiting("wallet", 5_000)) == [Trouble("wallet", 5_000)]
    many = [Waiting("wallet", 3_000), *(Waiting("evaluator", at) for at in (4_000, 2_000, 6_000))]
    assert told(*many) == [Trouble("evaluator", 2_000), Trouble("wallet", 3_000)]


def test_what_was_refused_is_parked_at_once_and_tells_nothing_of_a_wait():
    parked = [Waiting("wallet", 1_000, 9_000), Waiting("wallet", 1_000, 8_000)]
    assert told(*parked) == [Trouble("parked", 8_000)]
    assert told(*parked, Waiting("wallet", 3_000)) == [
        Trouble("wallet", 3_000),
        Trouble("parked", 8_000),
    ]


async def test_that_it_was_taken_over_is_told_for_a_while(tmp_path):
    async with stage(tmp_path) as it:
        await it.open()
        records, now_ms = await it.journal.read("t1"), it.around.clock.now_ms()
        table = LiveTable(records, it.around, 2, taken_over=True)
        ((kind, since_ms),) = table.troubles(now_ms, LONG_MS)
        assert kind == "taken_over"
        assert table.troubles(since_ms + TAKEN_OVER_MS - 1, LONG_MS)
        assert not table.troubles(since_ms + TAKEN_OVER_MS, LONG_MS)
        assert not LiveTable(records, it.around, 3).troubles(now_ms, LONG_MS)


class Shown:
    """As much of a live table as a lobby looks at."""

    def __init__(self) -> None:
        drive = Drive.of(created())
        self.state, self.feed, self.table_id = drive.table.state, Feed(), "t1"
        self.feed.publish(drive.records)
        self.stored_ms = 1_767_225_600_000
        self.wrong: tuple[Trouble, ...] = ()

    def troubles(self, now_ms: int, long_ms: int) -> Sequence[Trouble]:
        return self.wrong


def looked(watcher: Lobby) -> list[list[tuple[str, int]]]:
    return [
        [(wire.TableTroubleKind.Name(one.kind), one.since.ToMilliseconds()) for one in t.troubles]
        for change in watcher.look()
        for t in change.tables
    ]


def test_trouble_is_told_though_nothing_happens_and_to_players_never():
    time, table = Time(), Shown()
    tables: list[Any] = [table]
    operators = Lobby(lambda: tables, "", {}, insight=Insight("a:1", time.clock, LONG_MS))
    players = Lobby(lambda: tables, "", {})
    assert looked(operators) == looked(players) == [[]]
    table.wrong = (Trouble("stuck", time.now_ms - 12_000),)
    ((kind, since_ms),) = looked(operators)[0]
    assert kind == "TABLE_TROUBLE_KIND_STUCK"
    time.now_ms += 700
    table.wrong = (*table.wrong, Trouble("parked", time.now_ms - 12_000))
    (_, (more, later_ms)) = looked(operators)[0]
    assert more == "TABLE_TROUBLE_KIND_PARKED"
    assert later_ms >= since_ms
    assert looked(operators) == []
    table.wrong = ()
    assert looked(operators) == [[]]
    assert looked(players) == []


# Over a real channel.


async def asking(service: World, **more: Any) -> tuple[str, Lobbyist]:
    """A table of a pool, and an operator who watches; it was told of the table."""
    made = await service.stub("operator").CreateTable(request(**more))
    watching = Lobbyist(service.stub("operator"))
    await until(lambda: bool(watching.summaries))
    return made.table.table_id, watching


async def test_a_table_that_waits_for_the_evaluator_is_told_of_to_operators_alone(tmp_path):
    settings = {"summary_seconds": 0.02, "heartbeat_seconds": 0.1, "trouble_seconds": 0.05}
    async with world(tmp_path, **settings) as service:
        table_id, operator = await asking(service)
        player = Lobbyist(service.player("eve"))
        gateway = Lobbyist(
            TableServiceStub(service.channel("service:gateway", "act_as", act_as="eve"))
        )
        service.evaluator.switch.code = grpc.StatusCode.UNAVAILABLE
        playing = asyncio.create_task(play_all(service, table_id))
        shown = await operator.until_told("EVALUATOR")
        assert shown.last_event.ToMilliseconds() >= shown.created.ToMilliseconds()
        # Nothing happens at the table any more; so its players' streams are silent from here on.
        for watching in (player, gateway):
            beats = watching.beats
            await until(lambda watching=watching, beats=beats: watching.beats > beats + 2)
        before = [len(watching.summaries) for watching in (player, gateway)]
        since = shown.troubles[0].since.ToMilliseconds()
        assert since >= shown.last_event.ToMilliseconds() - 1_000
        service.evaluator.switch.code = None
        await playing
        await until(lambda: operator.gone == [table_id])
        assert not operator.summaries[-1].troubles
        for watching, count in zip((player, gateway), before, strict=True):
            assert len(watching.summaries) > count
            assert not any(one.troubles for one in watching.summaries)
            watching.stop()
        operator.stop()


@pytest.mark.parametrize(
    ("code", "kind"), [("UNAVAILABLE", "WALLET"), ("FAILED_PRECONDITION", "PARKED")]
)
async def test_a_settlement_that_the_wallet_does_not_take_is_told_of_until_it_does(
    tmp_path, code, kind
):
    async with world(tmp_path, summary_seconds=0.02, trouble_seconds=0.05) as service:
        service.wallet.settling.code = grpc.StatusCode[code]
        table_id, operator = await asking(service, hands=2, stakes=SILVER)
        playing = asyncio.create_task(play_all(service, table_id))
        await operator.until_told(kind)
        parked = operator.summaries[-1]
        service.wallet.settling.code = None
        await playing
        await until(lambda: operator.gone == [table_id])
        after = operator.summaries[operator.summaries.index(parked) + 1 :]
        assert any(one.hand_number == 2 and not one.troubles for one in after)
        operator.stop()


async def test_a_release_that_is_refused_is_told_of_at_the_closed_table(tmp_path):
    async with world(tmp_path, summary_seconds=0.02) as service:
        service.wallet.releasing.code = grpc.StatusCode.NOT_FOUND
        seats = [wire.SeatAssignment(player_id=name, hold_ids=[f"h-{name}"]) for name in PLAYERS]
        asked = request(stakes=SILVER)
        del asked.seats[:]
        asked.seats.extend(seats)
        made = await service.stub("operator").CreateTable(asked)
        operator = Lobbyist(service.stub("operator"))
        await until(lambda: bool(operator.summaries))
        await play_all(service, made.table.table_id)
        shown = await operator.until_told("PARKED")
        assert shown.phase == state_pb2.TABLE_PHASE_CLOSED
        service.wallet.releasing.code = None
        await until(lambda: operator.gone == [made.table.table_id])
        operator.stop()


async def test_a_table_that_gets_nothing_stored_is_stuck_until_it_does(tmp_path):
    async with world(tmp_path, summary_seconds=0.02, trouble_seconds=0.05) as service:
        table_id, operator = await asking(service)
        with closing(sqlite3.connect(tmp_path / "table.db", isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            call = service.player("ann").Attend(wire.AttendRequest(table_id=table_id))
            await operator.until_told("STUCK")
            db.execute("ROLLBACK")
        await operator.until_told()
        assert operator.summaries[-1].seats[0].connected
        call.cancel()
        operator.stop()


# What else they are told.


async def test_operators_and_services_are_told_of_pool_mode_owner_and_bots(tmp_path):
    async with world(tmp_path, summary_seconds=0.02) as service:
        asked = request(pool_id="kele-silver", mode=wire.TABLE_MODE_RANKED)
        asked.seats[1].is_bot = True
        operator = service.stub("operator")
        made = await operator.CreateTable(asked)
        table_id = made.table.table_id
        assert made.table.pool_id == "kele-silver"
        asked.pool_id = "kele-points"
        assert (await operator.CreateTable(asked)).replayed
        lookers = {
            "operator": operator,
            "service": service.stub("service:console"),
            "player": service.player("eve"),
            "gateway": TableServiceStub(service.channel("service:gateway", "act_as", act_as="eve")),
        }
        for who, stub in lookers.items():
            inside = who in ("operator", "service")
            watching = Lobbyist(stub)
            await until(lambda watching=watching: bool(watching.summaries))
            watching.stop()
            (shown,) = watching.summaries
            assert shown.endpoint == (service.address if inside else "")
            assert shown.pool_id == ("kele-silver" if inside else "")
            assert shown.mode == (wire.TABLE_MODE_RANKED if inside else 0)
            assert [seat.is_bot for seat in shown.seats] == [False, inside, False, False]
            assert shown.HasField("last_event") == inside
            got = (await stub.GetTable(wire.GetTableRequest(table_id=table_id))).table
            (listed,) = (await stub.ListTables(wire.ListTablesRequest())).tables
            for table in (got, listed):
                assert table.pool_id == ("kele-silver" if inside else "")
                assert [seat.is_bot for seat in table.seats] == [False, inside, False, False]


async def test_no_event_tells_of_the_pool_nor_after_a_restart(tmp_path):
    async with world(tmp_path) as service:
        asked = request(pool_id="kele-silver", hands=2)
        made = await service.stub("operator").CreateTable(asked)
        table_id = made.table.table_id
        await until_attended(service, table_id, "ann")
        watched = [made.table]
        for _ in range(2):
            for snapshot in (False, True):
                watch = wire.WatchRequest(table_id=table_id, snapshot=snapshot)
                event = (await service.stub("operator").Watch(watch).read()).event
                table = event.snapshot.table if snapshot else event.table_opened.table
                assert table.table_id in (table_id, "")
                assert table.pool_id == ""
                watched.append(table)
            await service.restart()
        got = await service.stub("operator").GetTable(wire.GetTableRequest(table_id=table_id))
        assert got.table.pool_id == "kele-silver"
