"""A replica that has lost its lease, does not know it, and goes on with a match of another's.

The other is played by the store, in which it has given the match up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng_kit.errors import Aborted
from fangcheng_matchmaking.sqlite import open_sqlite
from tests.matchmaking.faults import Halt
from tests.matchmaking.world import World, eventually


async def given_up(world: World) -> str:
    """The other replica was refused the table of the match under way; the match."""
    store = await open_sqlite(world.folder / "matchmaking.db")
    try:
        (match,) = await store.unfinished_matches()
        await store.give_up(match.match_id, {})
        await store.returned(match.match_id)
    finally:
        await store.close()
    return match.match_id


async def test_a_table_of_a_match_that_was_given_up_meanwhile_is_left_by_all(world: World) -> None:
    halt = Halt(done=False)
    world.tables.faults["CreateTable"].append(halt)
    players = await world.players(4)
    for player in players:
        await player.join("free")
    await halt.reached.wait()
    match_id = await given_up(world)
    halt.go_on.set()
    outcomes = await asyncio.gather(*(player.outcome() for player in players))
    assert {one.state for one in outcomes} == {pb.TICKET_STATE_ASSIGNED}
    (orphan,) = [
        one for one, table in world.tables.requests.items() if table.request_id == match_id
    ]
    assert orphan not in {one.table_id for one in outcomes}
    everybody = [(orphan, f"p{number}") for number in range(4)]
    await eventually(lambda: sorted(world.tables.left) == everybody)


async def test_a_call_is_not_repeated_for_a_match_that_was_given_up_meanwhile(
    world: World,
) -> None:
    match_ids: list[str] = []

    async def lost(do: Callable[[], Any]) -> Any:
        match_ids.append(await given_up(world))
        raise Aborted("LOST", "the call was lost")

    world.tables.faults["CreateTable"].append(lost)
    players = await world.players(4)
    for player in players:
        await player.join("free")
    outcomes = await asyncio.gather(*(player.outcome() for player in players))
    assert {one.state for one in outcomes} == {pb.TICKET_STATE_ASSIGNED}
    (table,) = world.tables.requests.values()
    assert table.request_id not in match_ids


async def test_a_match_that_another_replica_has_seated_is_not_counted_again(world: World) -> None:
    halt = Halt(done=True)
    world.tables.faults["CreateTable"].append(halt)
    players = await world.players(4)
    for player in players:
        await player.join("free")
    await halt.reached.wait()
    store = await open_sqlite(world.folder / "matchmaking.db")
    try:
        (match,) = await store.unfinished_matches()
        await store.seated(match.match_id, "table-0", "127.0.0.1:7999")
    finally:
        await store.close()
    assert (await players[0].outcome()).table_id == "table-0"
    halt.go_on.set()
    await world.settled("free")
    assert await world.metric("fangcheng_matchmaking_matches_total", 'outcome="seated"') == 1
