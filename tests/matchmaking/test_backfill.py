"""A seat that its player has left between two hands, at a table that goes on."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng_client import explain
from tests.matchmaking.clients import Player
from tests.matchmaking.world import World

WAITING = pb.TICKET_STATE_WAITING
ASSIGNED = pb.TICKET_STATE_ASSIGNED


async def seated(players: list[Player], pool_id: str) -> str:
    """Has four play; their table."""
    for player in players:
        await player.join(pool_id)
    return (await players[0].outcome()).table_id


async def test_who_has_left_a_table_that_goes_on_may_queue_again_and_who_has_not_may_not(
    world: World,
) -> None:
    players = await world.players(4)
    table_id = await seated(players, "silver")
    world.tables.vacate(table_id, "p1")
    ticket = await players[1].join("free", "again")
    assert ticket.state == WAITING
    status = await players[1].status()
    assert (status.ticket.ticket_id, status.table_id) == (ticket.ticket_id, "")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await players[2].join("free", "again")
    assert explain(caught.value).reason == "ALREADY_SEATED"
    world.check()


async def test_the_status_of_who_has_left_a_table_that_goes_on_names_no_table(
    world: World,
) -> None:
    players = await world.players(4)
    table_id = await seated(players, "silver")
    world.tables.vacate(table_id, "p1")
    gone, there = await players[1].status(), await players[2].status()
    assert (gone.table_id, gone.ticket.ticket_id) == ("", "")
    assert there.table_id == table_id


async def test_who_sits_at_an_older_table_than_he_has_left_is_found_there(world: World) -> None:
    players = await world.players(8)
    older = await seated(players[:4], "silver")
    seat = world.tables.vacate(older, "p0")
    newer = await seated(players[4:], "silver")
    world.tables.vacate(newer, "p4")
    world.tables.fill(older, seat, "p4")  # by an operator
    status = await players[4].status()
    assert (status.table_id, status.seat) == (older, seat)
