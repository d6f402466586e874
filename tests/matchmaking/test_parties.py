"""Parties, and those who are not seated together, over the calls of the service."""

from __future__ import annotations

from collections.abc import Awaitable

import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng.matchmaking.v1 import operations_pb2 as ops
from fangcheng_client import explain
from tests.matchmaking.clients import Player
from tests.matchmaking.world import World, eventually

PARTIES = """
pools:
  - id: friends
    name: with friends
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 10, buy_in: 1000, entry_minimum: 2000}]
    fees: [{currency: silver, amount: 50}]
    hold_only: true
    most_party: 3
    rematch_after_ms: 3600000
  - id: strict
    name: each for himself
    mode: anti_cheat
    rules: {id: baishan_kele}
  - {id: probe, name: probe, rules: {id: baishan_kele}}
"""


@pytest.fixture
async def world(stopped_world: World) -> World:
    (stopped_world.folder / "pools.yaml").write_text(PARTIES, "utf-8")
    await stopped_world.start()
    return stopped_world


async def refused(call: Awaitable[object]) -> tuple[str, dict[str, str]]:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    told = explain(error.value)
    return told.reason, dict(told.metadata)


async def party(world: World, *player_ids: str) -> tuple[Player, list[Player]]:
    """Players whose gateway queues them together: the first, and the others."""
    players = [await world.player(one) for one in player_ids]
    first = Player(player_ids[0], await world.gateway(player_ids[0]))
    await first.join("friends", party=[pb.PartyMember(player_id=one) for one in player_ids[1:]])
    return first, players[1:]


async def test_a_party_waits_as_one_and_is_seated_together(world: World) -> None:
    first, others = await party(world, "ming", "lan", "ju")
    assert list(first.ticket.party_ids) == ["lan", "ju"]
    for other in others:
        other.ticket.CopyFrom(first.ticket)
        assert (await other.status()).ticket.ticket_id == first.ticket.ticket_id
        assert (await refused(other.join("friends", "own")))[0] == "ALREADY_QUEUED"
    zhu = await world.player("zhu")
    await zhu.join("friends")
    outcomes = {one.player_id: await one.outcome() for one in (first, *others, zhu)}
    (table,) = world.tables.open_tables
    assert {one.table_id for one in outcomes.values()} == {table.table_id}
    for player_id, outcome in outcomes.items():
        assert table.seats[outcome.seat].player_id == player_id
    request = world.tables.requests[table.table_id]
    assert request.hold_only
    assert request.pool_id == "friends"
    assert [(fee.currency, fee.amount) for fee in request.fees] == [("silver", 50)]
    held = (await others[0].status()).hold_ids
    assert [world.wallet.holds[one].player_id for one in held] == ["lan"]
    world.check()


async def test_any_member_takes_the_party_out(world: World) -> None:
    first, (lan, _) = await party(world, "ming", "lan", "ju")
    lan.ticket.CopyFrom(first.ticket)
    assert (await lan.leave()).state == pb.TICKET_STATE_LEFT
    assert (await first.outcome()).state == pb.TICKET_STATE_LEFT
    assert (await first.join("friends", "alone")).state == pb.TICKET_STATE_WAITING


async def test_a_member_who_cannot_bring_the_buy_in_takes_only_his_party_out(world: World) -> None:
    first, _ = await party(world, "ming", "lan")
    world.wallet.silver["lan"] = 0
    singles = [await world.player(f"p{number}") for number in range(2)]
    for single in singles:
        await single.join("friends")
    failed = await first.outcome()
    assert (failed.state, failed.problem.reason) == (
        pb.TICKET_STATE_FAILED,
        "INSUFFICIENT_BALANCE",
    )
    for single in singles:
        assert (await single.now()).state == pb.TICKET_STATE_WAITING
    assert world.wallet.open_holds == {}


async def test_what_only_a_gateway_knows_no_player_says_of_himself(world: World) -> None:
    ming = await world.player("ming")
    friends = [pb.PartyMember(player_id="lan")]
    assert (await refused(ming.join("friends", party=friends)))[0] == "NOT_A_GATEWAY"
    origin = pb.Origin(device="d-1")
    assert (await refused(ming.join("strict", origin=origin)))[0] == "NOT_A_GATEWAY"
    assert (await refused(ming.join("strict")))[0] == "ORIGIN_MISSING"
    gateway = Player("ming", await world.gateway("ming"))
    twice = [pb.PartyMember(player_id="ming")]
    assert (await refused(gateway.join("friends", party=twice)))[0] == "DUPLICATE_PLAYER"
    many = [pb.PartyMember(player_id=one) for one in ("a", "b", "c")]
    assert await refused(gateway.join("friends", party=many)) == (
        "PARTY_TOO_LARGE",
        {"most_party": "3"},
    )


async def test_one_poor_member_is_named_and_nobody_is_queued(world: World) -> None:
    world.wallet.silver["lan"] = 1_999
    gateway = Player("ming", await world.gateway("ming"))
    world.wallet.silver["ming"] = 10_000
    friends = [pb.PartyMember(player_id="lan")]
    reason, metadata = await refused(gateway.join("friends", party=friends))
    assert (reason, metadata) == ("INSUFFICIENT_BALANCE", {"player_id": "lan"})
    assert not (await gateway.status()).HasField("ticket")


async def test_who_shares_a_device_or_an_address_does_not_meet(world: World) -> None:
    origins = {
        "a": pb.Origin(device="1", address="x"),
        "b": pb.Origin(device="2", address="x"),
        "c": pb.Origin(device="3"),
        "d": pb.Origin(device="4"),
    }
    players = {name: Player(name, await world.gateway(name)) for name in origins}
    for name, origin in origins.items():
        await players[name].join("strict", origin=origin)
    await world.settled()
    assert (await players["a"].now()).state == pb.TICKET_STATE_WAITING
    last = Player("e", await world.gateway("e"))
    await last.join("strict", origin=pb.Origin(device="5", address="y"))
    await last.outcome()
    assert (await players["b"].now()).state == pb.TICKET_STATE_WAITING


async def test_a_pair_that_is_barred_while_it_waits_is_not_seated(world: World) -> None:
    operator = await world.operations()
    players = [await world.player(f"p{number}") for number in range(5)]
    for player in players[:3]:
        await player.join("friends")
    bar = ops.BarPairRequest(player_id="p0", other_id="p2", reason="collusion", case_id="case-1")
    await operator.BarPair(bar)
    await operator.BarPair(bar)
    (pair,) = (await operator.ListBarredPairs(ops.ListBarredPairsRequest(player_id="p2"))).pairs
    assert (pair.other_id, pair.reason, pair.case_id) == ("p0", "collusion", "case-1")
    await players[3].join("friends")
    await world.settled()
    assert (await players[0].now()).position == 1
    await operator.UnbarPair(ops.UnbarPairRequest(player_id="p2", other_id="p0"))
    assert (await players[2].outcome()).state == pb.TICKET_STATE_ASSIGNED


async def test_a_player_says_whom_he_avoids_and_when_he_does_not_mind_any_more(
    world: World,
) -> None:
    players = [await world.player(f"p{number}") for number in range(4)]
    avoid = pb.AvoidPlayerRequest(player_id="p3")
    assert list((await players[0].stub.AvoidPlayer(avoid)).player_ids) == ["p3"]
    itself = players[0].stub.AvoidPlayer(pb.AvoidPlayerRequest(player_id="p0"))
    assert (await refused(itself))[0] == "SAME_PLAYER"
    for player in players:
        await player.join("friends")
    await world.settled()
    assert (await players[3].now()).state == pb.TICKET_STATE_WAITING
    stop = pb.AvoidPlayerRequest(player_id="p3", stop=True)
    assert list((await players[0].stub.AvoidPlayer(stop)).player_ids) == []
    assert (await players[3].outcome()).state == pb.TICKET_STATE_ASSIGNED


async def test_who_met_at_the_last_table_waits_for_others_first(world: World) -> None:
    players = [await world.player(f"p{number}") for number in range(4)]
    for player in players:
        await player.join("friends")
    world.tables.close((await players[0].outcome()).table_id)
    for player in players:
        await player.join("friends", "again")
    await world.settled()
    assert (await players[0].now()).state == pb.TICKET_STATE_WAITING
    for number in range(4, 13):
        await (await world.player(f"p{number}")).join("friends")
    await eventually(lambda: len(world.tables.open_tables) == 3)
    for table in world.tables.open_tables:
        assert len({seat.player_id for seat in table.seats} & {"p0", "p1", "p2", "p3"}) <= 1


async def test_in_a_paused_pool_nothing_is_matched_and_no_ticket_is_lost(world: World) -> None:
    operator = await world.operations()
    players = [await world.player(f"p{number}") for number in range(5)]
    await operator.PausePool(ops.PausePoolRequest(pool_id="friends", reason="maintenance"))
    for player in players[:4]:
        await player.join("friends")
    await world.settled()
    await world.restart()
    operator = await world.operations()
    await world.settled()
    stub = await world.stub("player:p0")
    (friends, *_) = (await stub.ListPools(pb.ListPoolsRequest())).pools
    assert (friends.paused, friends.closed, friends.waiting) == (True, False, 4)
    await operator.PausePool(ops.PausePoolRequest(pool_id="friends", close=True, reason="at four"))
    late = await world.player("late")
    with pytest.raises(grpc.aio.AioRpcError, match=r"closed for now\. at four") as error:
        await late.join("friends")
    assert (explain(error.value).reason, explain(error.value).field) == ("POOL_CLOSED", "pool_id")
    await operator.ResumePool(ops.ResumePoolRequest(pool_id="friends"))
    await eventually(lambda: len(world.tables.open_tables) == 1)
    unknown = operator.PausePool(ops.PausePoolRequest(pool_id="none"))
    assert (await refused(unknown))[0] == "UNKNOWN_POOL"
