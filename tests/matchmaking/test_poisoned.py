"""A ticket that can never be seated fails alone: the others of its four are seated without it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng_matchmaking.core import Member, NewTicket
from tests.matchmaking.clients import Player
from tests.matchmaking.world import World

Poison = Callable[[World, Player], None]


def changed(world: World, sql: str, *values: object) -> None:
    """Changes the database behind the back of the service."""
    with closing(sqlite3.connect(world.folder / "matchmaking.db", timeout=20)) as db, db:
        assert db.execute(sql, values).rowcount == 1


def expired(world: World, player: Player) -> None:
    changed(world, "DELETE FROM tickets WHERE player_id = ?", player.player_id)


def rated(rating: str) -> Poison:
    def poison(world: World, player: Player) -> None:
        changed(
            world,
            "UPDATE tickets SET record = replace(record, '\"rating\":0.0', ?) WHERE player_id = ?",
            f'"rating":{rating}',
            player.player_id,
        )

    return poison


def without_a_wallet(world: World, player: Player) -> None:
    del world.wallet.silver[player.player_id]


def poor(world: World, player: Player) -> None:
    world.wallet.silver[player.player_id] = 999


POISONED = {
    "expired": (expired, "TICKET_UNREADABLE"),
    "rated with a word": (rated('"good"'), "TICKET_UNREADABLE"),
    "not rated": (rated("null"), "TICKET_UNREADABLE"),
    "rated out of all measure": (rated("1e999"), "TICKET_UNREADABLE"),
    "without a wallet": (without_a_wallet, "UNKNOWN_WALLET"),
    "poor": (poor, "INSUFFICIENT_BALANCE"),
}


@pytest.mark.parametrize(("poison", "reason"), POISONED.values(), ids=POISONED)
async def test_a_poisoned_ticket_fails_alone(world: World, poison: Poison, reason: str) -> None:
    players = await world.players(5)
    for player in players[:3]:
        await player.join("silver")
    poison(world, players[1])
    for player in players[3:]:
        await player.join("silver")
    failed = await players[1].outcome() if poison is not expired else None
    for player in (players[0], *players[2:]):
        assert (await player.outcome()).state == pb.TICKET_STATE_ASSIGNED
    if failed is not None:
        assert (failed.state, failed.problem.reason) == (pb.TICKET_STATE_FAILED, reason)
        assert not (await players[1].status()).HasField("ticket")
    world.wallet.silver["p1"] = 10_000
    assert (await players[1].join("silver", "again")).state == pb.TICKET_STATE_WAITING
    world.check()


@pytest.mark.parametrize("rating", ["null", '"good"'])
async def test_an_unreadable_ticket_keeps_no_service_from_starting_and_no_player_from_queueing(
    world: World, rating: str
) -> None:
    players = await world.players(4)
    for player in players[:3]:
        await player.join("silver")
    await world.stop()
    rated(rating)(world, players[1])
    await world.start()
    players = await world.players(4)
    await players[1].join("silver", "again")
    await players[3].join("silver")
    for player in players[1], players[3]:
        assert (await player.outcome()).state == pb.TICKET_STATE_ASSIGNED
    world.check()


@pytest.mark.parametrize("rating", [float("nan"), float("inf")])
def test_a_rating_that_is_no_number_makes_no_ticket(rating: float) -> None:
    with pytest.raises(ValueError, match="p0 is rated"):
        NewTicket(
            ticket_id="t0",
            request_id="r",
            members=(Member(player_id="p0"),),
            pool_id="silver",
            rating=rating,
            queued_ms=0,
        )
