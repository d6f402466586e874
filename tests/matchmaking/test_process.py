"""Matchmaking as a process of its own: killed in the middle, started again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng_matchmaking.migrations import QUEUES
from tests.matchmaking.faults import Halt
from tests.matchmaking.world import World, eventually
from tests.postgres import database_of

pytestmark = pytest.mark.system


@asynccontextmanager
async def process(
    world: World, name: str = "port", **more: object
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The service as a process; it is killed at the end. With it comes its address."""
    port_file = world.folder / f"{name}.json"
    port_file.unlink(missing_ok=True)
    settings = world.settings(port_file=port_file, **more)
    names = ("dev_key", "database", "pools", "table", "wallet", "evaluation", "port_file")
    own = {f"FANGCHENG_MATCHMAKING_{name.upper()}": str(getattr(settings, name)) for name in names}
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fangcheng_matchmaking", env={**os.environ, **own}
    )
    try:
        await eventually(lambda: port_file.exists() or running.returncode is not None, 60)
        yield running, json.loads(port_file.read_text("utf-8"))["listen"]
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()


async def seated(world: World, address: str, tickets: dict[str, str]) -> list[pb.Ticket]:
    """What becomes of the tickets, by player."""
    last = []
    for player_id, ticket_id in tickets.items():
        async with world.client(address, player_id) as player:
            player.ticket.ticket_id = ticket_id
            last.append(await player.outcome())
    return last


@pytest.mark.parametrize("call", ["PlaceHolds", "CreateTable"])
async def test_a_killed_process_leaves_no_hold_no_table_and_no_ticket_behind(
    stopped_world: World, call: str
) -> None:
    world = stopped_world
    halt = Halt(done=True)
    (world.wallet if call == "PlaceHolds" else world.tables).faults[call].append(halt)
    tickets: dict[str, str] = {}
    async with process(world) as (running, address):
        for number in range(4):
            player_id = f"p{number}"
            async with world.client(address, player_id) as player:
                tickets[player_id] = (await player.join("silver")).ticket_id
        await halt.reached.wait()
        running.send_signal(signal.SIGKILL)
        assert await running.wait() == -signal.SIGKILL
        halt.go_on.set()
    async with process(world) as (_, address):
        last = await seated(world, address, tickets)
        assert [ticket.state for ticket in last] == [pb.TICKET_STATE_ASSIGNED] * 4
        assert len({ticket.table_id for ticket in last}) == 1
    assert len(world.tables.tables) == 1
    assert len(world.wallet.holds) == 4
    world.check()


async def test_a_drained_process_ends_its_streams_and_keeps_its_tickets(
    stopped_world: World,
) -> None:
    world = stopped_world
    async with (
        process(world) as (running, address),
        world.client(address, "p0") as player,
    ):
        ticket = await player.join("silver")
        watch = player.stub.WatchTicket(pb.WatchTicketRequest(ticket_id=ticket.ticket_id))
        await watch.read()
        running.send_signal(signal.SIGTERM)
        assert await running.wait() == 0
    async with (
        process(world) as (_, address),
        world.client(address, "p0") as player,
    ):
        player.ticket.ticket_id = ticket.ticket_id
        assert (await player.now()).position == 1


async def test_when_a_replica_is_killed_another_takes_its_pools_and_its_matches_over(
    stopped_world: World,
) -> None:
    world = stopped_world
    database = await database_of(world.folder, QUEUES)
    halt = Halt(done=True)
    world.tables.faults["CreateTable"].append(halt)
    tickets: dict[str, str] = {}
    async with (
        process(world, "first", database=database) as (first, _),
        process(world, "second", database=database) as (_, address),
    ):
        for number in range(5):
            player_id = f"p{number}"
            async with world.client(address, player_id) as player:
                tickets[player_id] = (await player.join("silver")).ticket_id
        await halt.reached.wait()
        first.send_signal(signal.SIGKILL)
        await first.wait()
        halt.go_on.set()
        fifth = tickets.pop("p4")
        last = await seated(world, address, tickets)
        assert [ticket.state for ticket in last] == [pb.TICKET_STATE_ASSIGNED] * 4
        for number in range(5, 8):
            player_id = f"p{number}"
            async with world.client(address, player_id) as player:
                await player.join("silver")
        (ticket,) = await seated(world, address, {"p4": fifth})
        assert ticket.state == pb.TICKET_STATE_ASSIGNED
    assert len(world.tables.tables) == 2
    world.check()
