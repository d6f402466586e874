"""What a player may lose in a hand and on a day."""

from __future__ import annotations

import time

import grpc
import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client import explain
from fangcheng_matchmaking.core import Stake
from fangcheng_matchmaking.losses import Calendar, reached
from tests.matchmaking.clients import Player
from tests.matchmaking.world import World, eventually

CAPPED = """
pools:
  - id: capped
    name: with caps
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 1, loss_cap_per_hand: 60, loss_cap_per_day: 100}]
    rematch_after_ms: 0
    fill_with_bots_after_ms: 100
  - id: higher
    name: with a higher cap
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 1, loss_cap_per_day: 150}]
  - id: uncapped
    name: without
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 1}]
rooms:
  - id: friends
    name: with caps
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 1, loss_cap_per_day: 100}]
"""


@pytest.fixture
async def world(stopped_world: World) -> World:
    (stopped_world.folder / "pools.yaml").write_text(CAPPED, "utf-8")
    await stopped_world.start(calendar_offset_minutes=480)
    return stopped_world


async def seated(players: list[Player], pool: str, world: World) -> state_pb2.Table:
    for player in players:
        await player.join(pool, f"{pool} {time.monotonic_ns()}")
    return world.tables.tables[(await players[0].outcome()).table_id]


def pays(
    table: state_pb2.Table, payer: str, payee: str, paid: int, reason: str = "win"
) -> events_pb2.SettledPayment:
    seat = {seat.player_id: seat.seat for seat in table.seats}
    return events_pb2.SettledPayment(
        currency="silver",
        from_seat=seat[payer],
        to_seat=seat[payee],
        due=1_000,
        paid=paid,
        reason=reason,
    )


async def test_a_table_is_told_the_cap_of_a_hand(world: World) -> None:
    await seated(await world.players(4), "capped", world)
    (request,) = world.tables.requests.values()
    assert [(one.currency, one.loss_cap) for one in request.stakes] == [("silver", 60)]
    operator = await world.stub("operator")
    (pool, *_) = (await operator.ListPools(matchmaking_pb2.ListPoolsRequest())).pools
    assert (pool.stakes[0].loss_cap_per_hand, pool.stakes[0].loss_cap_per_day) == (60, 100)


async def test_who_has_lost_the_cap_of_a_day_leaves_and_waits_for_the_next(world: World) -> None:
    players = await world.players(4)
    table = await seated(players, "capped", world)
    first = [
        pays(table, "p1", "p0", 60),
        pays(table, "p2", "p0", 60),
        pays(table, "p1", "p3", 9, "fee"),
    ]
    world.records.finish(table, 1, [3, -1, -1, -1], payments=first)
    world.records.finish(table, 1, [3, -1, -1, -1], payments=first)  # at least once, it says
    world.records.finish(table, 2, [3, -1, -1, -1], payments=[pays(table, "p2", "p1", 30)])
    world.records.finish(table, 3, [3, -1, -1, -1], payments=[pays(table, "p1", "p0", 60)])
    world.records.finish(table, 4, [3, -1, -1, -1], payments=[pays(table, "p2", "p3", 10)])
    await eventually(lambda: world.tables.left == [(table.table_id, "p2")])
    world.tables.close(table.table_id)
    await world.restart()
    players = await world.players(4)
    before = int(time.time())
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await players[2].join("capped", "again")
    told = explain(error.value)
    assert (told.code, told.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "LOSS_CAP_REACHED")
    assert (told.metadata["player_id"], told.metadata["currency"]) == ("p2", "silver")
    until = int(told.metadata["until_seconds"])
    assert before < until <= before + 86_400 + 60
    assert (until + 8 * 3_600) % 86_400 == 0, "the day ends in China"
    host = await world.guest("p2")
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await host.open("friends")
    assert explain(error.value).reason == "LOSS_CAP_REACHED"
    # 90 of 100: this one goes on. Another pool allows more, and one without a cap does not ask.
    await players[1].join("capped", "again")
    await players[2].join("higher", "again")
    await players[2].leave()
    await players[2].join("uncapped", "once more")


async def test_a_bot_has_no_cap_and_other_pools_do_not_count(world: World) -> None:
    players = await world.players(4)
    table = await seated(players, "uncapped", world)
    lost = [pays(table, "p1", "p0", 500)]
    world.records.finish(table, 1, [3, -1, -1, -1], payments=lost)
    world.tables.close(table.table_id)
    bots = [await world.player(f"bot{number}", "bot") for number in range(3)]
    for bot in bots:
        await bot.join("capped", standby=True)
    table = await seated([players[1]], "capped", world)
    lost = [pays(table, "bot0", "bot1", 500), pays(table, "p1", "bot1", 100)]
    world.records.finish(table, 1, [3, -1, -1, -1], payments=lost)
    await eventually(lambda: world.tables.left == [(table.table_id, "p1")])


def test_the_day_is_that_of_the_studios_calendar() -> None:
    china = Calendar(480)
    ten_at_night_in_utc = 22 * 3_600_000
    assert (Calendar(0).day(ten_at_night_in_utc), china.day(ten_at_night_in_utc)) == (0, 1)
    assert china.ends_ms(1) == (24 + 16) * 3_600_000
    assert china.day(china.ends_ms(1) - 1) == 1
    assert china.day(china.ends_ms(1)) == 2


def test_a_stake_without_a_cap_is_never_reached() -> None:
    free = Stake(currency="silver", per_unit=1)
    capped = Stake(currency="points", book="b", per_unit=1, loss_cap_per_day=5)
    assert reached([free, capped], {("silver", ""): 10**9, ("points", "b"): 4}) is None
    assert reached([free, capped], {("points", "b"): 5}) is capped
