"""Several replicas on one database, and pools that change while players wait."""

from __future__ import annotations

import asyncio
import sqlite3
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial

import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng.matchmaking.v1 import operations_pb2, operations_pb2_grpc
from fangcheng_client import connect
from fangcheng_kit import Running, serving
from fangcheng_kit.tokens import mint_token
from fangcheng_matchmaking.core import Offer, Pool, Terms
from fangcheng_matchmaking.migrations import QUEUES
from fangcheng_matchmaking.service import open_service
from tests.matchmaking.clients import Player
from tests.matchmaking.faults import Halt
from tests.matchmaking.world import KEY, POOLS, World, eventually
from tests.postgres import database_of


@asynccontextmanager
async def replica(world: World) -> AsyncIterator[Running]:
    """A service beside others, on the world's PostgreSQL database."""
    settings = world.settings(database=await database_of(world.folder, QUEUES))
    async with serving("matchmaking", settings, open_service) as running:
        yield running


async def test_players_of_all_replicas_are_seated_together_and_each_is_told(
    stopped_world: World,
) -> None:
    world = stopped_world
    async with replica(world) as one, replica(world) as other:
        outcomes = []
        for number in range(8):
            async with world.client((one, other)[number % 2].address, f"p{number}") as player:
                await player.join("silver")
                outcomes.append(player.ticket)
        for number, ticket in enumerate(outcomes):
            # Whoever asks, and wherever: not where he queued.
            async with world.client((other, one)[number % 2].address, f"p{number}") as player:
                player.ticket = ticket
                assert (await player.outcome()).state == pb.TICKET_STATE_ASSIGNED
    assert len(world.tables.tables) == 2
    world.check()


async def test_each_replica_tells_who_waits_at_any_of_them(stopped_world: World) -> None:
    """Which is why rules and panels take the most that one tells, and not the sum."""
    world = stopped_world
    async with (
        replica(world) as one,
        replica(world) as other,
        world.client(one.address, "ming") as player,
    ):
        await player.join("silver")

        async def told(replica: Running) -> bool:
            url = f"http://{replica.metrics_address}/metrics"
            page = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
            waiting = 'fangcheng_matchmaking_waiting_tickets{kind="player",pool="silver"} 1.0'
            return waiting in page.splitlines()

        for each in (one, other):
            await eventually(partial(told, each))


async def test_one_player_at_two_replicas_has_one_ticket(stopped_world: World) -> None:
    world = stopped_world
    async with (
        replica(world) as one,
        replica(world) as other,
        world.client(one.address, "ming") as here,
        world.client(other.address, "ming") as there,
    ):
        answers = await asyncio.gather(
            *(device.join("silver", f"r{n}") for n in range(10) for device in (here, there)),
            return_exceptions=True,
        )
        tickets = {one.ticket_id for one in answers if isinstance(one, pb.Ticket)}
        assert len(tickets) == 1


async def test_a_pool_goes_on_when_its_replica_is_gone_in_the_middle_of_a_match(
    stopped_world: World,
) -> None:
    world = stopped_world
    halt = Halt(done=True)
    world.wallet.faults["PlaceHolds"].append(halt)
    async with AsyncExitStack() as first_stack, AsyncExitStack() as stack:
        # Whoever comes first has the leases.
        first = await first_stack.enter_async_context(replica(world))
        second = await stack.enter_async_context(replica(world))
        tickets = []
        for number in range(4):
            async with world.client(second.address, f"p{number}") as player:
                await player.join("silver")
                tickets.append(player.ticket)
        await halt.reached.wait()
        await first_stack.aclose()
        halt.go_on.set()
        assert first.address != second.address
        for number, ticket in enumerate(tickets):
            async with world.client(second.address, f"p{number}") as player:
                player.ticket = ticket
                assert (await player.outcome()).state == pb.TICKET_STATE_ASSIGNED
    assert len(world.tables.tables) == 1
    assert len(world.wallet.holds) == 4
    world.check()


NEWER = """
pools:
  - id: silver
    name: for silver
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 10, buy_in: 1000}]
    newer:
      revision: 2
      labels: {channel: beta}
      changes: {CHANGES}
"""


async def reloaded(world: World, text: str) -> None:
    (world.folder / "pools.yaml").write_text(text, "utf-8")
    await world.reload()


async def test_a_newer_revision_is_for_some_and_can_be_taken_back(stopped_world: World) -> None:
    world = stopped_world
    (world.folder / "pools.yaml").write_text(NEWER.replace("CHANGES", "hands: 4"), "utf-8")
    await world.start()
    players = await world.players(4)
    for player in players[:2]:
        assert (await player.join("silver", labels={"channel": "beta"})).revision == 2
    for player in players[2:]:
        assert (await player.join("silver")).revision == 1
    assert (await players[3].now()).position == 2
    await reloaded(world, NEWER[: NEWER.index("    newer:")])
    outcomes = [await player.outcome() for player in players]
    assert {one.revision for one in outcomes} == {1}
    assert len({one.table_id for one in outcomes}) == 1
    world.check()


async def test_who_waits_for_other_stakes_than_there_are_now_has_to_ask_again(
    stopped_world: World,
) -> None:
    world = stopped_world
    dearer = "stakes: [{currency: silver, per_unit: 20, buy_in: 2000}]"
    (world.folder / "pools.yaml").write_text(NEWER.replace("CHANGES", dearer), "utf-8")
    await world.start()
    (player,) = await world.players(1)
    await player.join("silver", labels={"channel": "beta"})
    await reloaded(world, NEWER[: NEWER.index("    newer:")])
    outcome = await player.outcome()
    assert (outcome.state, outcome.problem.reason) == (pb.TICKET_STATE_FAILED, "POOL_CHANGED")


async def test_tickets_of_pools_that_are_gone_are_dealt_with_once_the_database_is_back(
    world: World,
) -> None:
    (player,) = await world.players(1)
    await player.join("free")
    with closing(sqlite3.connect(world.folder / "matchmaking.db")) as db:
        db.execute("ALTER TABLE tickets RENAME TO lost")
        await reloaded(world, POOLS.replace("id: free", "id: other"))
        db.execute("ALTER TABLE lost RENAME TO tickets")
    await eventually(lambda: _answers(player))  # its health may have been seen to be bad
    outcome = await player.outcome()
    assert (outcome.state, outcome.problem.reason) == (pb.TICKET_STATE_FAILED, "UNKNOWN_POOL")


async def _answers(player: Player) -> bool:
    try:
        await player.now()
    except grpc.aio.AioRpcError:
        return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        "pools: [",
        "pools: [{id: silver, name: s, rules: {id: riichi}}]",
        "pools: [{id: silver, name: s, rules: {id: baishan_kele}}]",  # costs something else
    ],
)
async def test_pools_that_cannot_be_used_change_nothing(world: World, text: str) -> None:
    (player,) = await world.players(1)
    await player.join("silver")
    await reloaded(world, text)
    assert (await player.now()).state == pb.TICKET_STATE_WAITING
    pools = (await player.stub.ListPools(pb.ListPoolsRequest())).pools
    assert [pool.pool_id for pool in pools] == ["silver", "free", "practice"]


def test_a_percentage_of_the_players_gets_the_newer_revision_and_always_the_same() -> None:
    pool = Pool(pool_id="p", name="p", terms=Terms(rule_set="baishan_kele"))
    newer = Pool(pool_id="p", name="p", revision=2, terms=Terms(rule_set="baishan_kele"))
    ids = [f"player {number}" for number in range(2_000)]

    def chosen(percent: float) -> set[str]:
        offer = Offer(pool=pool, newer=newer, percent=percent)
        return {one for one in ids if offer.of(one, {}).revision == 2}

    assert chosen(0) == set()
    assert 150 < len(chosen(10)) < 250
    assert chosen(10) < chosen(50) < chosen(100) == set(ids)


async def test_tickets_of_a_pool_whose_operator_paused_it_at_another_replica_wait(
    stopped_world: World,
) -> None:
    world = stopped_world
    async with replica(world) as one, replica(world) as other:
        async with connect(one.address, token=mint_token(KEY, "operator")) as channel:
            stub = operations_pb2_grpc.MatchmakingOperationsServiceStub(channel)
            await stub.PausePool(operations_pb2.PausePoolRequest(pool_id="silver"))
        async with world.client(other.address, "ming") as player:

            async def paused() -> bool:
                pools = (await player.stub.ListPools(pb.ListPoolsRequest())).pools
                return pools[0].paused

            await eventually(paused)
