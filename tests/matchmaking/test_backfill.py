"""A seat that its player has left between two hands, at a table that goes on."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Awaitable, Callable

import grpc
import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng.matchmaking.v1 import operations_pb2
from fangcheng_client import explain
from fangcheng_kit import serving
from fangcheng_matchmaking.migrations import QUEUES
from fangcheng_matchmaking.service import open_service
from fangcheng_matchmaking.sqlite import open_sqlite
from tests.matchmaking.clients import Player
from tests.matchmaking.faults import Fault, Halt, dropped, lost
from tests.matchmaking.test_fencing import given_up
from tests.matchmaking.world import World, eventually
from tests.postgres import database_of

POOLS = """
pools:
  - id: shandong
    name: filled up
    rules: {id: shandong}
    stakes: [{currency: silver, per_unit: 5, buy_in: 1000}]
    timing: {vacancy_ms: 60000}
    rematch_after_ms: 0
    backfill: true
  - id: bots
    name: filled up with bots
    rules: {id: shandong}
    timing: {vacancy_ms: 60000}
    fill_with_bots_after_ms: 200
    backfill: true
  - id: left
    name: not filled up
    rules: {id: shandong}
    timing: {vacancy_ms: 60000}
  - id: probe
    name: probe
    rules: {id: baishan_kele}
"""
WAITING = pb.TICKET_STATE_WAITING
MATCHED = pb.TICKET_STATE_MATCHED
ASSIGNED = pb.TICKET_STATE_ASSIGNED
LEFT = pb.TICKET_STATE_LEFT
FAILED = pb.TICKET_STATE_FAILED


@pytest.fixture
async def world(stopped_world: World) -> World:
    (stopped_world.folder / "pools.yaml").write_text(POOLS, "utf-8")
    await stopped_world.start()
    return stopped_world


async def seated(world: World, pool_id: str = "shandong", prefix: str = "p") -> str:
    """Has p0 to p3 sit down; their table."""
    players = [await world.player(f"{prefix}{number}") for number in range(4)]
    for player in players:
        await player.join(pool_id)
    return (await players[0].outcome()).table_id


async def waiting(world: World, player_id: str, pool_id: str = "shandong") -> Player:
    player = await world.player(player_id)
    await player.join(pool_id, f"r-{player_id}")
    return player


async def state(player: Player) -> int:
    return (await player.now()).state


def players_of(world: World, table_id: str) -> list[str]:
    return [seat.player_id for seat in world.tables.tables[table_id].seats]


def until(player: Player, wanted: int) -> Callable[[], Awaitable[bool]]:
    async def there() -> bool:
        return await state(player) == wanted

    return there


async def test_a_seat_that_is_left_goes_to_the_oldest_who_waits(world: World) -> None:
    table_id = await seated(world)
    first, second = await waiting(world, "first"), await waiting(world, "second")
    seat = world.tables.vacate(table_id, "p1")
    told = await first.outcome()
    assert (told.state, told.table_id, told.seat, told.endpoint) == (
        ASSIGNED,
        table_id,
        seat,
        "127.0.0.1:7999",
    )
    (request,) = world.tables.seated
    assert (request.table_id, request.seat, request.reason) == (
        table_id,
        seat,
        "from the queue of shandong",
    )
    (hold_id,) = request.player.hold_ids
    assert world.wallet.open_holds[hold_id].player_id == "first"
    status = await first.status()
    assert (status.table_id, status.seat, list(status.hold_ids)) == (table_id, seat, [hold_id])
    assert await state(second) == WAITING
    assert len(world.tables.tables) == 1
    world.check()
    assert world.running is not None
    url = f"http://{world.running.metrics_address}/metrics"
    page = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
    assert 'fangcheng_matchmaking_backfilled_seats_total{pool="shandong"} 1.0' in page


async def test_a_pool_tells_whether_its_tables_are_filled_up(world: World) -> None:
    pools = (await (await world.stub("operator")).ListPools(pb.ListPoolsRequest())).pools
    assert [pool.pool_id for pool in pools if pool.backfill] == ["shandong", "bots"]


async def test_it_waits_for_who_comes_later_and_ends_with_its_table_for_him_too(
    world: World,
) -> None:
    table_id = await seated(world)
    world.tables.vacate(table_id, "p1")
    left = await waiting(world, "p1")  # who has left it does not get it back
    newcomer = await waiting(world, "newcomer")
    assert (await newcomer.outcome()).table_id == table_id
    assert await state(left) == WAITING
    world.tables.close(table_id)
    again = await world.player("newcomer")
    assert (await again.join("shandong", "again")).state == WAITING
    world.check()


@pytest.mark.parametrize("fault", [lost, dropped])
@pytest.mark.parametrize("call", ["PlaceHolds", "SeatPlayer", "GetTable"])
async def test_a_call_without_an_answer_is_repeated_with_its_key(
    world: World, call: str, fault: Fault
) -> None:
    table_id = await seated(world)
    newcomer = await waiting(world, "newcomer")
    partner = world.wallet if call == "PlaceHolds" else world.tables
    partner.faults[call].extend([fault, fault])
    world.tables.vacate(table_id, "p1")
    assert (await newcomer.outcome()).table_id == table_id
    assert len(world.tables.seated) == 1
    world.check()


async def asked_for_the_seat(world: World, table_id: str) -> tuple[Halt, int]:
    """The seat of p1 is left and offered: SeatPlayer is on its way, and held up; the seat."""
    halt = Halt(done=False)
    world.tables.faults["SeatPlayer"].append(halt)
    seat = world.tables.vacate(table_id, "p1")
    await halt.reached.wait()
    return halt, seat


@pytest.mark.parametrize("what", ["filled", "closed", "forgotten"])
async def test_who_was_offered_a_seat_that_is_gone_waits_on_with_his_age(
    world: World, what: str
) -> None:
    table_id = await seated(world)
    newcomer = await waiting(world, "newcomer")
    halt, seat = await asked_for_the_seat(world, table_id)
    queued = newcomer.ticket.queued
    if what == "filled":
        world.tables.fill(table_id, seat, "another")
    else:
        world.tables.close(table_id)
        if what == "forgotten":
            world.tables.forget(table_id)
    halt.go_on.set()
    await eventually(until(newcomer, WAITING))
    assert (await newcomer.now()).queued == queued
    assert world.tables.seated == []
    holds = world.wallet.open_holds
    assert "newcomer" not in {hold.player_id for hold in holds.values()}
    # The next seat is his.
    other_id = await seated(world, prefix="q")
    world.tables.vacate(other_id, "q1")
    assert (await newcomer.outcome()).table_id == other_id
    world.check()


async def test_who_leaves_before_the_seat_was_asked_for_is_out_and_the_next_one_gets_it(
    world: World,
) -> None:
    table_id = await seated(world)
    first, second = await waiting(world, "first"), await waiting(world, "second")
    halt = Halt(done=True)
    world.wallet.faults["PlaceHolds"].append(halt)
    world.tables.vacate(table_id, "p1")
    await halt.reached.wait()
    leaving = asyncio.create_task(first.leave())
    await eventually(lambda: is_leaving(world, first))
    halt.go_on.set()
    assert (await leaving).state == LEFT
    assert (await second.outcome()).table_id == table_id
    assert [one.player.player_id for one in world.tables.seated] == ["second"]
    world.check()


async def is_leaving(world: World, player: Player) -> bool:
    store = await open_sqlite(world.folder / "matchmaking.db")
    try:
        return (await store.ticket(player.ticket.ticket_id)).leaving
    finally:
        await store.close()


@pytest.mark.parametrize("is_gone", [False, True])
async def test_leaving_while_the_seat_is_asked_for_has_one_outcome(
    world: World, is_gone: bool
) -> None:
    table_id = await seated(world)
    newcomer = await waiting(world, "newcomer")
    halt, seat = await asked_for_the_seat(world, table_id)
    leaving = asyncio.create_task(newcomer.leave())
    await eventually(lambda: is_leaving(world, newcomer))
    if is_gone:
        world.tables.fill(table_id, seat, "another")
    halt.go_on.set()
    if is_gone:
        assert (await leaving).state == LEFT
    else:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await leaving
        told = explain(caught.value)
        assert (told.reason, told.metadata["table_id"]) == ("ALREADY_SEATED", table_id)
    world.check()


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("call", ["PlaceHolds", "SeatPlayer"])
async def test_an_offer_goes_on_where_it_was_after_a_crash(
    world: World, call: str, done: bool
) -> None:
    table_id = await seated(world)
    newcomer = await waiting(world, "newcomer")
    await waiting(world, "next")
    halt = Halt(done=done)
    partner = world.wallet if call == "PlaceHolds" else world.tables
    partner.faults[call].append(halt)
    world.tables.vacate(table_id, "p1")
    await halt.reached.wait()
    await world.restart()
    halt.go_on.set()
    newcomer = await back(world, newcomer)
    assert (await newcomer.outcome()).table_id == table_id
    assert [one.player.player_id for one in world.tables.seated] == ["newcomer"]
    world.check()


async def back(world: World, player: Player) -> Player:
    """The player's client after a restart."""
    again = await world.player(player.player_id)
    again.ticket = player.ticket
    return again


async def test_a_replica_goes_on_with_the_offers_of_one_that_is_gone(
    stopped_world: World,
) -> None:
    world = stopped_world
    (world.folder / "pools.yaml").write_text(POOLS, "utf-8")
    database = await database_of(world.folder, QUEUES)
    await world.start(database=database)
    table_id = await seated(world)
    async with serving("matchmaking", world.settings(database=database), open_service) as other:
        newcomer = await waiting(world, "newcomer")
        halt = Halt(done=True)
        world.tables.faults["SeatPlayer"].append(halt)
        world.tables.vacate(table_id, "p1")
        await halt.reached.wait()
        await world.stop()
        halt.go_on.set()
        async with world.client(other.address, "newcomer") as client:
            client.ticket = newcomer.ticket
            assert (await client.outcome()).table_id == table_id
        # And with the seats that are left from now on.
        async with world.client(other.address, "second") as client:
            await client.join("shandong")
            world.tables.vacate(table_id, "p2")
            assert (await client.outcome()).table_id == table_id
    world.check()


async def test_a_seat_of_an_offer_that_was_given_up_meanwhile_is_left_again(world: World) -> None:
    table_id = await seated(world)
    newcomer = await waiting(world, "newcomer")
    halt = Halt(done=False)
    world.tables.faults["SeatPlayer"].append(halt)
    world.tables.vacate(table_id, "p1")
    await halt.reached.wait()
    await given_up(world)
    second = await waiting(world, "second")
    halt.go_on.set()
    await eventually(lambda: world.tables.left == [(table_id, "newcomer")])
    world.tables.vacate(table_id, "newcomer")
    assert (await second.outcome()).table_id == table_id
    assert await state(newcomer) == WAITING


async def test_a_seat_that_was_left_while_nobody_looked_is_not_lost(world: World) -> None:
    table_id = await seated(world)
    await world.stop()
    world.tables.vacate(table_id, "p1")
    await world.start()
    newcomer = await waiting(world, "newcomer")
    assert (await newcomer.outcome()).table_id == table_id


async def test_a_stream_that_was_cut_loses_no_seat(world: World) -> None:
    table_id = await seated(world)
    other_id = await seated(world, prefix="q")
    seat = world.tables.vacate(table_id, "p1")
    await eventually(lambda: world.tables.calls["GetTable"] > 0)  # it is known
    world.tables.cuts = 1
    await eventually(lambda: world.tables.cuts == 0)
    world.tables.fill(table_id, seat, "another")
    world.tables.vacate(other_id, "q1")
    newcomer = await waiting(world, "newcomer")
    assert (await newcomer.outcome()).table_id == other_id
    assert world.tables.calls["WatchTables"] == 2
    world.check()


async def test_two_seats_of_one_table_are_given_one_after_the_other(world: World) -> None:
    """So that two who avoid each other do not both get one."""
    table_id = await seated(world)
    first, second = await waiting(world, "first"), await waiting(world, "second")
    await first.stub.AvoidPlayer(pb.AvoidPlayerRequest(player_id="second"))
    world.tables.vacate(table_id, "p1")
    world.tables.vacate(table_id, "p2")
    assert (await first.outcome()).table_id == table_id
    third = await waiting(world, "third")
    assert (await third.outcome()).table_id == table_id
    assert await state(second) == WAITING
    assert set(players_of(world, table_id)) == {"p0", "p3", "first", "third"}
    world.check()


async def test_who_is_avoided_by_now_by_one_who_sits_there_does_not_get_the_seat(
    world: World,
) -> None:
    table_id = await seated(world)
    sits = await world.player("p0")
    first = await waiting(world, "first")
    await sits.stub.AvoidPlayer(pb.AvoidPlayerRequest(player_id="first"))
    second = await waiting(world, "second")
    world.tables.vacate(table_id, "p1")
    assert (await second.outcome()).table_id == table_id
    assert await state(first) == WAITING


async def test_whom_the_table_does_not_take_back_is_not_offered_its_seat_again(
    world: World,
) -> None:
    table_id = await seated(world)
    seat = world.tables.vacate(table_id, "p1")
    world.tables.fill(table_id, seat, "guest")  # by an operator; of which we know nothing
    world.tables.vacate(table_id, "guest")
    guest = await waiting(world, "guest")
    await eventually(lambda: world.tables.calls["SeatPlayer"] == 1)
    await eventually(until(guest, WAITING))
    newcomer = await waiting(world, "newcomer")
    assert (await newcomer.outcome()).table_id == table_id
    assert await state(guest) == WAITING
    assert world.tables.calls["SeatPlayer"] == 2
    world.check()


async def test_who_cannot_bring_his_buy_in_falls_out_and_the_next_one_gets_the_seat(
    world: World,
) -> None:
    table_id = await seated(world)
    first, second = await waiting(world, "first"), await waiting(world, "second")
    world.wallet.silver["first"] = 0
    world.tables.vacate(table_id, "p1")
    told = await first.outcome()
    assert (told.state, told.problem.reason) == (FAILED, "INSUFFICIENT_BALANCE")
    assert (await second.outcome()).table_id == table_id
    world.check()


async def test_nothing_is_offered_while_the_pool_is_paused(world: World) -> None:
    operations = await world.operations()
    table_id = await seated(world)
    newcomer = await waiting(world, "newcomer")
    pause = operations_pb2.PausePoolRequest(pool_id="shandong", reason="maintenance")
    await operations.PausePool(pause)
    world.tables.vacate(table_id, "p1")
    await eventually(lambda: world.tables.calls["GetTable"] > 0)
    await world.settled()
    assert await state(newcomer) == WAITING
    await operations.ResumePool(operations_pb2.ResumePoolRequest(pool_id="shandong"))
    assert (await newcomer.outcome()).table_id == table_id


async def test_tables_of_pools_that_are_not_filled_up_are_left_alone(world: World) -> None:
    table_id = await seated(world, "left")
    newcomer = await waiting(world, "newcomer", "left")
    other = await waiting(world, "other")  # of a pool that is, with other stakes
    looked = world.tables.calls["GetTable"]
    world.tables.vacate(table_id, "p1")
    await eventually(lambda: world.tables.calls["GetTable"] > looked)
    await world.settled()
    assert [await state(newcomer), await state(other)] == [WAITING, WAITING]
    assert world.tables.calls["SeatPlayer"] == 0


async def test_a_bot_comes_where_no_player_does_in_time(world: World) -> None:
    table_id = await seated(world, "bots")
    bot = await world.player("bot", "bot")
    await bot.join("bots", standby=True)
    world.tables.vacate(table_id, "p1")
    assert (await bot.outcome()).table_id == table_id
    assert [one.player.is_bot for one in world.tables.seated] == [True]


async def test_who_has_left_a_table_that_goes_on_may_queue_again_and_who_has_not_may_not(
    world: World,
) -> None:
    table_id = await seated(world, "left")
    gone, there = await world.player("p1"), await world.player("p2")
    world.tables.vacate(table_id, "p1")
    ticket = await gone.join("shandong", "again")
    assert ticket.state == WAITING
    status = await gone.status()
    assert (status.ticket.ticket_id, status.table_id) == (ticket.ticket_id, "")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await there.join("shandong", "again")
    assert explain(caught.value).reason == "ALREADY_SEATED"
    world.check()


async def test_the_status_of_who_has_left_a_table_that_goes_on_names_no_table(
    world: World,
) -> None:
    table_id = await seated(world, "left")
    gone, there = await world.player("p1"), await world.player("p2")
    world.tables.vacate(table_id, "p1")
    told = await gone.status()
    assert (told.table_id, told.ticket.ticket_id) == ("", "")
    assert (await there.status()).table_id == table_id


async def test_who_sits_at_an_older_table_than_he_has_left_is_found_there(world: World) -> None:
    older = await seated(world, "left")
    seat = world.tables.vacate(older, "p0")
    newer = await seated(world, "left", prefix="q")
    world.tables.vacate(newer, "q0")
    world.tables.fill(older, seat, "q0")  # by an operator
    status = await (await world.player("q0")).status()
    assert (status.table_id, status.seat) == (older, seat)
