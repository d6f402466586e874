"""Skill: what finished hands say of their players, and who is matched by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng_matchmaking.skill import Skill, rated
from fangcheng_matchmaking.sqlite import open_sqlite
from tests.matchmaking.world import World, eventually

RANKED = """
pools:
  - id: ranked
    name: by skill
    mode: ranked
    rules: {id: baishan_kele}
    rating: {by: skill, spread: 1}
    rematch_after_ms: 0
    fill_with_bots_after_ms: 100
  - {id: casual, name: not rated, rules: {id: baishan_kele}}
"""


def test_who_wins_a_hand_rises_and_who_pays_most_falls_most() -> None:
    first, second, third, fourth = rated([Skill()] * 4, [30, -5, -5, -20])
    assert first.mu > 25 > second.mu == third.mu > fourth.mu
    assert all(one.sigma < Skill().sigma for one in (first, second, third, fourth))
    assert first.hands == 1


def test_a_draw_between_equals_says_nothing_of_their_order() -> None:
    assert len({one.mu for one in rated([Skill()] * 4, [0, 0, 0, 0])}) == 1


def test_to_beat_the_better_counts_for_more() -> None:
    weak, strong = Skill(mu=20), Skill(mu=35)
    surprise = rated([weak, strong, weak, weak], [3, -3, 0, 0])[0].mu - weak.mu
    expected = rated([strong, weak, weak, weak], [3, -3, 0, 0])[0].mu - strong.mu
    assert surprise > expected > 0


@pytest.fixture
async def world(stopped_world: World) -> World:
    (stopped_world.folder / "pools.yaml").write_text(RANKED, "utf-8")
    await stopped_world.start()
    return stopped_world


async def skills(world: World) -> dict[str, Skill]:
    store = await open_sqlite(Path(world.folder / "matchmaking.db"))
    try:
        return {f"p{n}": await store.skill(f"p{n}", "baishan_kele") for n in range(4)}
    finally:
        await store.close()


async def noted(world: World, cursor: str) -> None:
    """Waits until the hands up to a cursor were looked at."""
    store = await open_sqlite(Path(world.folder / "matchmaking.db"))

    async def there() -> bool:
        return await store.cursor() == cursor

    try:
        await eventually(there)
    finally:
        await store.close()


async def test_every_hand_counts_once_also_after_a_restart(world: World) -> None:
    players = await world.players(4)
    for player in players:
        await player.join("ranked")
    await players[0].outcome()
    (table,) = world.tables.open_tables
    nets = [30 if seat.player_id == "p0" else -10 for seat in table.seats]
    world.records.finish(table, 1, nets)
    world.records.finish(table, 1, nets)  # at least once, it says
    world.records.finish(table, 2, nets, dissolved=True)
    await noted(world, "3")
    once = rated([Skill()] * 4, nets)
    by_player = {seat.player_id: skill for seat, skill in zip(table.seats, once, strict=True)}
    assert await skills(world) == by_player
    await world.restart()
    world.records.finish(table, 3, nets)
    await noted(world, "4")
    assert world.records.cursors[-1] == "3"
    assert (await skills(world))["p0"].hands == 2


async def test_only_hands_of_ranked_pools_without_bots_count(world: World) -> None:
    players = await world.players(4)
    for player in players:
        await player.join("casual")
    casual = (await players[0].outcome()).table_id
    world.records.finish(world.tables.tables[casual], 1, [3, -1, -1, -1])
    world.tables.close(casual)
    bots = [await world.player(f"bot{number}", "bot") for number in range(3)]
    for bot in bots:
        await bot.join("ranked", standby=True)
    await players[0].join("ranked", "again")
    filled = (await players[0].outcome()).table_id
    world.records.finish(world.tables.tables[filled], 1, [3, -1, -1, -1])
    await noted(world, "2")
    assert set((await skills(world)).values()) == {Skill()}


async def test_players_are_matched_by_their_skill(world: World) -> None:
    players = await world.players(4)
    for player in players:
        await player.join("ranked")
    table = world.tables.tables[(await players[0].outcome()).table_id]
    for number in range(1, 6):
        nets = [30 if seat.player_id == "p0" else -10 for seat in table.seats]
        world.records.finish(table, number, nets)
    await noted(world, "5")
    world.tables.close(table.table_id)
    for player in players:
        await player.join("ranked", "again")
    assert world.wallet.calls == {}, "where nothing is staked no wallet is asked"
    await world.settled("casual")
    assert [(await player.now()).state for player in players] == [pb.TICKET_STATE_WAITING] * 4
