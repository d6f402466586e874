"""A seat that is left at a table of the real table service, and given to who waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng.table.v1 import operators_pb2, table_pb2
from fangcheng.table.v1.operators_pb2_grpc import TableOperationsServiceStub
from fangcheng_client import attend
from tests.matchmaking.clients import Player
from tests.matchmaking.faults import Halt
from tests.matchmaking.world import World, eventually
from tests.table import world as tables

POOLS = """
pools:
  - id: shandong
    name: filled up
    rules: {id: shandong}
    stakes: [{currency: silver, per_unit: 5, buy_in: 1000}]
    timing: {vacancy_ms: 60000, between_hands_ms: 0}
    rematch_after_ms: 0
    backfill: true
"""


@asynccontextmanager
async def both(world: World) -> AsyncIterator[tables.World]:
    """Matchmaking and the real table service, on one wallet."""
    (world.folder / "pools.yaml").write_text(POOLS, "utf-8")
    folder = world.folder / "tables"
    folder.mkdir()
    async with tables.world(
        folder, wallet=world.target("wallet"), summary_seconds=0.05, start_grace_seconds=60
    ) as service:
        await world.start(table=service.address)
        yield service
        await world.stop()


async def seated(world: World) -> tuple[str, list[Player]]:
    players = await world.players(4)
    for player in players:
        await player.join("shandong")
    return (await players[0].outcome()).table_id, players


async def leave(service: tables.World, player_id: str, table_id: str) -> None:
    """The player leaves, and his seat waits."""
    request = table_pb2.LeaveTableRequest(table_id=table_id, mode=table_pb2.LEAVE_MODE_AFTER_HAND)
    await service.player(player_id).LeaveTable(request)


async def close(service: tables.World, table_id: str) -> None:
    operations: Any = TableOperationsServiceStub(service.channel("operator"))
    request = operators_pb2.CloseTableRequest(request_id="c", table_id=table_id, reason="enough")
    await operations.CloseTable(request)


async def players_at(service: tables.World, table_id: str) -> list[str]:
    answer = await service.stub("operator").GetTable(table_pb2.GetTableRequest(table_id=table_id))
    return [seat.player_id for seat in answer.table.seats]


def holders(world: World) -> list[str]:
    return sorted(hold.player_id for hold in world.wallet.open_holds.values())


async def test_the_table_gives_the_seat_takes_the_hold_and_plays_on(
    stopped_world: World,
) -> None:
    world = stopped_world
    async with both(world) as service:
        table_id, players = await seated(world)
        newcomer = await world.player("newcomer")
        await newcomer.join("shandong")
        await leave(service, "p1", table_id)
        told = await newcomer.outcome()
        assert (told.table_id, told.endpoint) == (table_id, service.address)
        there = await players_at(service, table_id)
        assert there[told.seat] == "newcomer"
        assert set(there) == {"newcomer", "p0", "p2", "p3"}
        await eventually(lambda: holders(world) == ["newcomer", "p0", "p2", "p3"])
        left = await players[1].join("shandong", "again")
        assert left.state == pb.TICKET_STATE_WAITING
        # The hand begins with the newcomer.
        await begins(service, table_id, there)
        await close(service, table_id)
        await eventually(lambda: holders(world) == [])


async def begins(service: tables.World, table_id: str, player_ids: list[str]) -> None:
    """All four attend, until the first hand has begun."""

    async def attending(player_id: str) -> None:
        async for event in attend(service.channel(f"player:{player_id}"), table_id):
            if event.HasField("hand_started"):
                return

    await asyncio.gather(*(attending(one) for one in player_ids))


async def test_two_seats_go_to_two_who_wait_also_after_a_restart(stopped_world: World) -> None:
    world = stopped_world
    async with both(world) as service:
        table_id, _ = await seated(world)
        await leave(service, "p1", table_id)
        await leave(service, "p2", table_id)
        first = await world.player("first")
        await first.join("shandong")
        assert (await first.outcome()).table_id == table_id
        await world.restart(table=service.address)
        second = await world.player("second")
        await second.join("shandong")
        assert (await second.outcome()).table_id == table_id
        assert set(await players_at(service, table_id)) == {"first", "second", "p0", "p3"}
        await eventually(lambda: holders(world) == ["first", "p0", "p3", "second"])


async def test_who_was_offered_a_seat_of_a_table_that_has_closed_waits_on(
    stopped_world: World,
) -> None:
    world = stopped_world
    async with both(world) as service:
        table_id, _ = await seated(world)
        newcomer = await world.player("newcomer")
        await newcomer.join("shandong")
        halt = Halt(done=True)
        world.wallet.faults["PlaceHolds"].append(halt)
        await leave(service, "p1", table_id)
        await halt.reached.wait()
        await close(service, table_id)
        halt.go_on.set()
        await eventually(lambda: holders(world) == [])

        async def waits() -> bool:
            return (await newcomer.now()).state == pb.TICKET_STATE_WAITING

        await eventually(waits)
