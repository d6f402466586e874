"""What is counted of tables, and that series do not grow with tables, players and labels."""

from __future__ import annotations

import asyncio
import urllib.request

import grpc
import pytest
from prometheus_client import CollectorRegistry

from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_rules.scoring import Win
from fangcheng_table.events import TableClosed
from fangcheng_table.metrics import TableMetrics

from .tables import Drive, at_random, created, of
from .world import World, play_all, request, until

MOST_SERIES = 2_000
TOGETHER = 16


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    found = registry.get_sample_value(name, labels)
    assert found is not None, "a series that is not there"
    return found


def test_a_table_is_counted_where_it_stands_until_it_is_gone():
    registry = CollectorRegistry()
    counted = TableMetrics(registry).table(created())
    drive = Drive.of(created())
    here = {"rule_set": "baishan_kele", "mode": "other"}
    counted.stands(drive.table.state)
    assert value(registry, "fangcheng_tables", phase="between_hands", **here) == 1
    drive.attend(0, 1, 2, 3)
    counted.stands(drive.table.state)
    counted.stands(drive.table.state)
    assert value(registry, "fangcheng_tables", phase="between_hands", **here) == 0
    assert value(registry, "fangcheng_tables", phase=drive.table.state.phase, **here) == 1
    counted.gone()
    phases = ("before_deal", "playing", "between_hands", "closed")
    assert sum(value(registry, "fangcheng_tables", phase=phase, **here) for phase in phases) == 0


def test_seats_that_the_table_plays_for_are_counted_until_they_are_taken_back_or_it_closes():
    registry = CollectorRegistry()
    metrics = TableMetrics(registry)
    drive, other = Drive.of(created()), Drive.of(created())
    for one in (drive, other):
        one.attend(0, 1, 2, 3)
    counted = [metrics.table(created()) for _ in range(2)]

    def seats() -> float:
        for table, one in zip(counted, (drive, other), strict=True):
            table.stands(one.table.state)
        return value(registry, "fangcheng_table_trustee_seats")

    assert seats() == 0
    drive.table.set_trustee(1, True, "disconnected")
    drive.table.set_trustee(2, True, "disconnected")
    other.table.set_trustee(0, True, "asked")
    assert seats() == 3
    drive.table.set_trustee(1, False, "back")
    assert seats() == 2
    drive.play(at_random(1))
    assert drive.table.state.closed
    assert seats() == 1
    counted[1].gone()
    assert value(registry, "fangcheng_table_trustee_seats") == 0


def test_hands_are_counted_by_how_they_ended_with_fan_and_payments():
    registry = CollectorRegistry()
    metrics = TableMetrics(registry)
    wins = losses = fan = units = 0
    for seed in range(6):
        table = created(root=bytes([seed]) * 32)
        drive = Drive.of(table)
        drive.attend(0, 1, 2, 3)
        drive.play(at_random(seed))
        metrics.table(table).tells(drive.events)
        (ended,) = [event for event in drive.events if type(event).__name__ == "HandEnded"]
        wins += len(ended.score.winners) if isinstance(ended.end, Win) else 0
        fan += sum(winner.fan for winner in ended.score.winners)
        losses += sum(net < 0 for net in ended.score.net)
        units -= sum(net for net in ended.score.net if net < 0)
        assert of(TableClosed, drive.events)[0].reason == "hands_played"
    assert wins
    assert losses > wins
    kele = {"rule_set": "baishan_kele"}
    hands = {
        ending: value(registry, "fangcheng_table_hands_total", ending=ending, **kele)
        for ending in ("win", "draw", "escape", "dissolved", "eight_flowers")
    }
    assert sum(hands.values()) == 6
    assert value(registry, "fangcheng_table_win_fan_count", **kele) == wins
    assert value(registry, "fangcheng_table_win_fan_sum", **kele) == fan
    assert value(registry, "fangcheng_table_payment_points_count", **kele) == losses
    assert value(registry, "fangcheng_table_payment_points_sum", **kele) == units
    assert value(registry, "fangcheng_table_closed_total", reason="hands_played") == 6


def test_the_age_of_the_outbox_is_that_of_the_oldest_that_is_not_parked():
    registry = CollectorRegistry()
    metrics = TableMetrics(registry)
    name = "fangcheng_table_outbox"
    assert value(registry, f"{name}_oldest_age_seconds", kind="settle") == 0
    waiting, parked = {1: -1e9, 2: -1e6}, {1}
    metrics.measure_outbox("settle", waiting, parked)
    assert value(registry, name, kind="settle") == 2
    assert value(registry, "fangcheng_table_parked", kind="settle") == 1
    assert 1e6 <= value(registry, f"{name}_oldest_age_seconds", kind="settle") < 1e9
    parked.add(2)
    assert value(registry, f"{name}_oldest_age_seconds", kind="settle") == 0
    assert value(registry, name, kind="release") == 0


async def test_what_waits_for_the_wallet_is_measured_while_it_does(service: World):
    service.wallet.settling.code = grpc.StatusCode.UNAVAILABLE
    made = await service.stub("operator").CreateTable(
        request(stakes=[state_pb2.Stake(currency="silver", per_unit=1)])
    )
    playing = asyncio.create_task(play_all(service, made.table.table_id))
    await until(lambda: service.value("fangcheng_table_outbox", kind="settle") == 1)
    await until(
        lambda: service.value("fangcheng_table_outbox_oldest_age_seconds", kind="settle") > 0
    )
    service.wallet.settling.code = None
    await playing
    assert service.value("fangcheng_table_outbox", kind="settle") == 0
    assert service.value("fangcheng_table_outbox_oldest_age_seconds", kind="settle") == 0


@pytest.mark.parametrize("count", [60, pytest.param(2_000, marks=pytest.mark.slow)])
async def test_series_do_not_grow_with_tables_players_and_labels(service: World, count: int):
    await _tables(service, "early", 4)
    before = await _series(service)
    await _tables(service, "late", count)
    assert service.value("fangcheng_tables") >= count - 4
    after = await _series(service)
    # A call may have ended with a status that none had before.
    grown = {one for one in after - before if not one.startswith("grpc_server_handled_total")}
    assert grown == set()
    assert len(after) < MOST_SERIES
    for name in ("early", "late"):
        assert not any(name in one for one in after), "a series names a player or a label"


async def _tables(service: World, name: str, count: int) -> None:
    """Tables of other players and labels each; one of them is played."""
    stub, room = service.stub("operator"), asyncio.Semaphore(TOGETHER)

    async def one(number: int) -> None:
        it = f"{name}-{number}"
        seats = [wire.SeatAssignment(player_id=f"{it}-{seat}") for seat in range(4)]
        asked = request(it, labels={"club": it}, mode=number % 6)
        del asked.seats[:]
        asked.seats.extend(seats)
        async with room:
            made = await stub.CreateTable(asked)
        if number == 0:
            await play_all(service, made.table.table_id, [seat.player_id for seat in seats])
        elif number < 4:
            call = service.player(f"{it}-0").Attend(
                wire.AttendRequest(table_id=made.table.table_id)
            )
            await call.read()
            call.cancel()

    await asyncio.gather(*(one(number) for number in range(count)))


async def _series(service: World) -> set[str]:
    """The series that a scrape finds."""
    url = f"http://{service.metrics_address}/metrics"
    page = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
    return {line.rpartition(" ")[0] for line in page.splitlines() if not line.startswith("#")}
