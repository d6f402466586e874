"""From four tickets to a table, all or nothing: lost answers, refusals, restarts, races."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import grpc
import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng_client import explain
from fangcheng_kit.errors import FailedPrecondition, InvalidArgument, NotFound
from fangcheng_matchmaking import convert
from fangcheng_matchmaking.core import (
    Match,
    MatchSeat,
    Member,
    NewTicket,
    Problem,
    Ticket,
    TicketState,
)
from fangcheng_matchmaking.pools import parse_pools
from fangcheng_matchmaking.sql import SqlStore
from fangcheng_matchmaking.sqlite import open_sqlite
from tests.matchmaking.clients import Player
from tests.matchmaking.faults import Fault, Halt, dropped, lost, refused
from tests.matchmaking.world import POOLS, World, eventually
from tests.studio_wallet import StudioWallet, serving

WAITING = pb.TICKET_STATE_WAITING
MATCHED = pb.TICKET_STATE_MATCHED
ASSIGNED = pb.TICKET_STATE_ASSIGNED
LEFT = pb.TICKET_STATE_LEFT
FAILED = pb.TICKET_STATE_FAILED


async def join_all(players: Sequence[Player], pool_id: str = "silver") -> None:
    for player in players:
        await player.join(pool_id)


async def outcomes(players: Sequence[Player]) -> list[pb.Ticket]:
    return list(await asyncio.gather(*(player.outcome() for player in players)))


async def states(players: Sequence[Player]) -> list[int]:
    return [(await player.now()).state for player in players]


@pytest.mark.parametrize("fault", [lost, dropped])
@pytest.mark.parametrize("call", ["PlaceHolds", "CreateTable"])
async def test_a_call_without_an_answer_is_repeated_with_its_key(
    world: World, call: str, fault: Fault
) -> None:
    partner = world.wallet if call == "PlaceHolds" else world.tables
    partner.faults[call].extend([fault, fault])
    players = await world.players(4)
    await join_all(players)
    assert [one.state for one in await outcomes(players)] == [ASSIGNED] * 4
    assert partner.calls[call] == 3
    assert len(world.tables.tables) == 1
    assert len(world.wallet.holds) == 4
    world.check()


async def test_a_lost_release_is_repeated_until_the_holds_are_free(world: World) -> None:
    world.tables.faults["CreateTable"].append(refused(NotFound("UNKNOWN_RULE_SET", "none such")))
    world.wallet.faults["ReleaseHolds"].extend([lost, dropped, lost])
    players = await world.players(4)
    await join_all(players)
    # The pool tries again after a pause, and then it goes well.
    assert [one.state for one in await outcomes(players)] == [ASSIGNED] * 4
    assert len(world.wallet.holds) - len(world.wallet.open_holds) == 4
    world.check()


async def test_a_player_who_was_frozen_while_he_waited_falls_out_alone(world: World) -> None:
    players = await world.players(5)
    await join_all(players[:3])
    world.wallet.frozen.add("p1")
    await join_all(players[3:])
    told = await outcomes(players)
    assert [one.state for one in told] == [ASSIGNED, FAILED, ASSIGNED, ASSIGNED, ASSIGNED]
    assert told[1].problem.reason == "PLAYER_FROZEN"
    world.check()


async def test_matches_are_made_with_a_studios_own_wallet(stopped_world: World) -> None:
    """All that matchmaking needs is in the contract of `SettlementService`."""
    world = stopped_world
    studio = StudioWallet(["p0", "p1", "p2", "p3"], silver=10_000)
    async with serving(studio) as address:
        await world.start(wallet=address)
        players = await world.players(4)
        await join_all(players)
        assert [one.state for one in await outcomes(players)] == [ASSIGNED] * 4
        assert [studio.available(player.player_id) for player in players] == [9_000] * 4
        (table,) = world.tables.requests.values()
        held = {hold.player_id: hold_id for hold_id, hold in studio.holds.items()}
        for seat in table.seats:
            assert list(seat.hold_ids) == [held[seat.player_id]]
        await world.stop()


async def test_a_player_with_too_little_falls_out_alone(world: World) -> None:
    players = await world.players(5)
    await join_all(players[:3])
    queued = [player.ticket.queued for player in players[:3]]
    watches = [asyncio.create_task(player.watch()) for player in players[:3]]
    world.wallet.silver["p1"] = 0  # spent since it queued
    await players[3].join("silver")
    failed = await players[1].outcome()
    assert (failed.state, failed.problem.reason) == (FAILED, "INSUFFICIENT_BALANCE")
    rest = [players[0], players[2], players[3]]
    await eventually(lambda: _all(states(rest), WAITING))
    assert [(await player.now()).position for player in rest] == [1, 2, 3]
    await players[4].join("silver")
    assert [one.state for one in await outcomes([*rest, players[4]])] == [ASSIGNED] * 4
    assert [(await player.now()).queued for player in players[:3]] == queued
    for told in await asyncio.gather(*watches):
        assert told[0].state == WAITING
        assert told[-1].state in (ASSIGNED, FAILED)
    world.check()
    assert (await players[1].status()).ticket.ticket_id == ""


async def test_everybody_with_too_little_falls_out_at_once(world: World) -> None:
    players = await world.players(4)
    await join_all(players[:3])
    world.wallet.silver["p0"] = world.wallet.silver["p2"] = 0
    await players[3].join("silver")
    fallen = await outcomes([players[0], players[2]])
    assert [one.state for one in fallen] == [FAILED] * 2
    # They have never met: neither is told that the other has too little.
    assert {one.problem.message for one in fallen} == {"Less is available than the buy-in."}
    await eventually(lambda: _all(states([players[1], players[3]]), WAITING))
    world.check()


async def test_a_player_without_a_wallet_falls_out_alone(world: World) -> None:
    players = await world.players(4)
    await join_all(players[:3])
    del world.wallet.silver["p2"]
    await players[3].join("silver")
    failed = await players[2].outcome()
    assert (failed.state, failed.problem.reason) == (FAILED, "UNKNOWN_WALLET")
    await eventually(lambda: _all(states([players[0], players[1], players[3]]), WAITING))


async def test_a_wallet_that_names_nobody_fails_the_four_rather_than_keep_them(
    world: World,
) -> None:
    world.wallet.faults["PlaceHolds"].append(
        refused(FailedPrecondition("INSUFFICIENT_BALANCE", "somebody has too little"))
    )
    players = await world.players(4)
    await join_all(players)
    assert [one.state for one in await outcomes(players)] == [FAILED] * 4


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("PlaceHolds", NotFound("UNKNOWN_CURRENCY", "no such currency")),
        ("CreateTable", InvalidArgument("INVALID_OPTION", "no such option")),
    ],
)
async def test_a_match_refused_for_the_pools_sake_gives_all_back_and_is_tried_again(
    world: World, call: str, error: InvalidArgument | NotFound
) -> None:
    partner = world.wallet if call == "PlaceHolds" else world.tables
    partner.faults[call].extend([refused(error)] * 3)
    players = await world.players(4)
    await join_all(players)
    assert [one.state for one in await outcomes(players)] == [ASSIGNED] * 4
    assert partner.calls[call] == 4
    world.check()


async def test_a_pool_that_is_refused_its_tables_pauses_longer_each_time(world: World) -> None:
    times: list[float] = []

    async def refuse(do: Callable[[], object]) -> object:
        times.append(time.monotonic())
        raise InvalidArgument("INVALID_OPTION", "no such option")

    world.tables.faults["CreateTable"].extend([refuse] * 6)
    players = await world.players(4)
    await join_all(players, "free")
    assert [one.state for one in await outcomes(players)] == [ASSIGNED] * 4
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # 50 ms at first, doubled up to 100 ms (the world's longest), and at least half of it by chance.
    assert gaps[0] >= 0.025
    assert all(gap >= 0.05 for gap in gaps[1:])


@pytest.mark.parametrize("call", ["PlaceHolds", "CreateTable", "ReleaseHolds"])
@pytest.mark.parametrize("done", [False, True])
async def test_a_restart_in_the_middle_of_a_call_leaves_nothing_behind(
    world: World, call: str, done: bool
) -> None:
    if call == "ReleaseHolds":
        world.tables.faults["CreateTable"].append(refused(NotFound("UNKNOWN_RULE_SET", "none")))
    partner = world.tables if call == "CreateTable" else world.wallet
    halt = Halt(done=done)
    partner.faults[call].append(halt)
    players = await world.players(4)
    await join_all(players)
    await halt.reached.wait()
    assert await states(players) == [MATCHED] * 4
    tickets = [player.ticket.ticket_id for player in players]
    await world.restart()
    halt.go_on.set()
    players = await world.players(4)
    for player, ticket_id in zip(players, tickets, strict=True):
        player.ticket.ticket_id = ticket_id
    assert [one.state for one in await outcomes(players)] == [ASSIGNED] * 4
    assert len(world.tables.open_tables) == 1
    world.check()


async def test_a_restart_loses_no_ticket_and_no_place(world: World) -> None:
    players = await world.players(3)
    await join_all(players)
    before = [await player.now() for player in players]
    await world.restart()
    again = await world.players(4)
    for player, ticket in zip(again, before, strict=False):
        player.ticket = ticket
    assert [await player.now() for player in again[:3]] == before
    assert (await again[0].join("silver")).ticket_id == before[0].ticket_id, "a replay"
    await again[3].join("silver")
    assert [one.state for one in await outcomes(again)] == [ASSIGNED] * 4
    world.check()


async def test_a_restart_fills_with_bots_at_the_time_that_was_due(world: World) -> None:
    bots = [await world.player(f"b{number}", "bot") for number in range(3)]
    for bot in bots:
        await bot.join("practice", standby=True)
    player = await world.player("p0")
    ticket = await player.join("practice")
    await world.restart()
    player = await world.player("p0")
    player.ticket = ticket
    assert (await player.outcome()).state == ASSIGNED


async def test_tickets_of_a_pool_that_was_taken_away_fail(world: World) -> None:
    players = await world.players(2)
    await players[0].join("free")
    await players[1].join("silver")
    pools = world.folder / "pools.yaml"
    pools.write_text(POOLS.replace("id: free", "id: other"), "utf-8")
    await world.restart()
    again = await world.players(2)
    for player, before in zip(again, players, strict=True):
        player.ticket = before.ticket
    failed = await again[0].outcome()
    assert (failed.state, failed.problem.reason) == (FAILED, "UNKNOWN_POOL")
    assert (await again[1].now()).state == WAITING
    assert (await again[0].join("silver", "again")).state == WAITING


Prepare = Callable[[World, SqlStore, Match], Awaitable[None]]


async def _formed(world: World, store: SqlStore, match: Match) -> None:
    await store.form(match)


async def _held(world: World, store: SqlStore, match: Match) -> None:
    await _formed(world, store, match)
    placed = await world.wallet.PlaceHolds(convert.holds_request(match), None)
    holds = [[hold.hold_id] for hold in placed.holds]
    await store.held(match.match_id, holds)


async def _asked(world: World, store: SqlStore, match: Match) -> None:
    await _held(world, store, match)
    await store.ask(match.match_id)


async def _created(world: World, store: SqlStore, match: Match) -> None:
    await _asked(world, store, match)
    world.tables.create(convert.table_request(await store.match(match.match_id)))


async def _given_up(world: World, store: SqlStore, match: Match) -> None:
    await _asked(world, store, match)
    await store.give_up(match.match_id, {})


async def _given_up_with_a_failure(world: World, store: SqlStore, match: Match) -> None:
    await _held(world, store, match)
    await store.give_up(match.match_id, {"k-p3": Problem("UNKNOWN_WALLET", "none")})


async def _left_while_held(world: World, store: SqlStore, match: Match) -> None:
    await _held(world, store, match)
    await store.leave("k-p3")


async def _left_while_formed(world: World, store: SqlStore, match: Match) -> None:
    await _formed(world, store, match)
    await store.leave("k-p3")


async def _left_too_late(world: World, store: SqlStore, match: Match) -> None:
    await _created(world, store, match)
    await store.leave("k-p3")


@pytest.mark.parametrize(
    ("prepare", "last"),
    [
        (_formed, ASSIGNED),
        (_held, ASSIGNED),
        (_asked, ASSIGNED),
        (_created, ASSIGNED),
        (_given_up, ASSIGNED),
        (_given_up_with_a_failure, FAILED),
        (_left_while_held, LEFT),
        (_left_while_formed, LEFT),
        (_left_too_late, ASSIGNED),
    ],
)
async def test_a_match_is_taken_up_wherever_the_process_before_ended(
    stopped_world: World, prepare: Prepare, last: int
) -> None:
    """`last` is what becomes of p3's ticket; the other three are seated or wait with their age."""
    world = stopped_world
    store = await open_sqlite(world.folder / "matchmaking.db")
    match = await _stored_match(world, store)
    await prepare(world, store, match)
    await store.close()

    await world.start()
    players = await world.players(4)
    for player in players:
        player.ticket.ticket_id = f"k-{player.player_id}"
    assert (await players[3].outcome()).state == last
    others = WAITING if last in (LEFT, FAILED) else ASSIGNED
    await eventually(lambda: _all(states(players[:3]), others))
    assert [(await player.now()).queued.ToMilliseconds() for player in players] == [
        *(1_000 + number for number in range(4))
    ]
    assert len(world.tables.tables) == (1 if last == ASSIGNED else 0)
    world.check()


async def test_leaving_while_holds_are_placed_stops_the_match(world: World) -> None:
    halt = Halt(done=True)
    world.wallet.faults["PlaceHolds"].append(halt)
    players = await world.players(4)
    await join_all(players)
    await halt.reached.wait()
    leaving = asyncio.create_task(players[2].leave())
    # The answer waits for the outcome: the wallet's is not known yet.
    await eventually(lambda: _leaves(world, players[2].ticket.ticket_id))
    assert not leaving.done()
    halt.go_on.set()
    assert (await leaving).state == LEFT
    rest = [players[0], players[1], players[3]]
    await eventually(lambda: _all(states(rest), WAITING))
    assert not world.tables.tables
    world.check()


async def test_leaving_while_the_table_is_created_is_too_late(world: World) -> None:
    halt = Halt(done=False)
    world.tables.faults["CreateTable"].append(halt)
    players = await world.players(4)
    await join_all(players)
    await halt.reached.wait()
    leaving = asyncio.create_task(players[2].leave())
    await eventually(lambda: _leaves(world, players[2].ticket.ticket_id))
    halt.go_on.set()
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await leaving
    assert explain(error.value).reason == "ALREADY_SEATED"
    assert [one.state for one in await outcomes(players)] == [ASSIGNED] * 4


async def test_leaving_while_a_table_is_refused_is_in_time_after_all(world: World) -> None:
    halt = Halt(done=False)
    world.tables.faults["CreateTable"].append(halt)
    players = await world.players(4)
    await join_all(players)
    await halt.reached.wait()
    leaving = asyncio.create_task(players[2].leave())
    await eventually(lambda: _leaves(world, players[2].ticket.ticket_id))

    def refuse() -> None:
        raise NotFound("UNKNOWN_RULE_SET", "none")

    world.tables.create = lambda request: refuse()
    halt.go_on.set()
    assert (await leaving).state == LEFT
    world.check()


async def test_a_client_that_gives_up_waiting_still_leaves(world: World) -> None:
    halt = Halt(done=True)
    world.wallet.faults["PlaceHolds"].append(halt)
    players = await world.players(4)
    await join_all(players)
    await halt.reached.wait()
    ticket_id = players[0].ticket.ticket_id
    call = players[0].stub.LeaveQueue(pb.LeaveQueueRequest(ticket_id=ticket_id))
    await eventually(lambda: _leaves(world, ticket_id))
    call.cancel()
    halt.go_on.set()
    assert (await players[0].outcome()).state == LEFT
    world.check()


async def test_leavers_and_matches_race_to_one_outcome(world: World) -> None:
    """Rounds of eight players of whom some leave at any moment: seated, or out, never both."""
    players = await world.players(8)
    told: set[int] = set()
    turn = 0
    # Forty rounds, and more where the machine lets one side win every race: they linger longer.
    while turn < 40 or (told != {LEFT, ASSIGNED} and turn < 400):
        turn += 1
        linger = turn % 4 if turn <= 40 else turn
        request_id = f"round {turn}"
        leavers = [player for number, player in enumerate(players) if (turn >> number % 3) & 1]

        async def queue(player: Player, request_id: str = request_id) -> None:
            await player.join("silver", request_id)

        async def queue_and_leave(
            player: Player, request_id: str = request_id, calls_between: int = linger
        ) -> None:
            await player.join("silver", request_id)
            for _ in range(calls_between):
                await player.status()
            assert await _try_to_leave(player) in ("", "ALREADY_SEATED")

        await asyncio.gather(
            *(queue_and_leave(one) if one in leavers else queue(one) for one in players)
        )
        last = await outcomes(leavers)
        told.update(one.state for one in last)
        assert all(one.state in (LEFT, ASSIGNED) for one in last)
        for one, player in zip(last, leavers, strict=True):
            seated = [one.table_id] if one.state == ASSIGNED else []
            assert _seated(world, player.player_id) == seated
        # Those who still wait leave too, so that the next round begins with nobody.
        await asyncio.gather(*(_try_to_leave(one) for one in players if one not in leavers))
        world.check()
        for table in world.tables.open_tables:
            world.tables.close(table.table_id)
    assert told == {LEFT, ASSIGNED}


async def _stored_match(world: World, store: SqlStore) -> Match:
    pool = parse_pools(POOLS).pools["silver"].pool
    seats = []
    for number in range(4):
        world.wallet.silver[f"p{number}"] = 10_000
        ticket = NewTicket(
            ticket_id=f"k-p{number}",
            request_id="r",
            members=(Member(player_id=f"p{number}"),),
            pool_id="silver",
            client_version=3,
            queued_ms=1_000 + number,
        )
        await store.join(ticket)
        seats.append(MatchSeat(ticket_id=ticket.ticket_id, player_id=ticket.player_id))
    terms = replace(pool.terms, hands=4)  # those that it was formed under, not today's
    return Match(match_id="m-1", pool_id="silver", terms=terms, seats=tuple(seats), formed_ms=2_000)


async def _try_to_leave(player: Player) -> str:
    """Leaves; or why not."""
    try:
        await player.leave()
    except grpc.aio.AioRpcError as error:
        return explain(error).reason
    return ""


def _seated(world: World, player_id: str) -> list[str]:
    return [
        table.table_id
        for table in world.tables.open_tables
        if any(seat.player_id == player_id for seat in table.seats)
    ]


async def _all(found: Awaitable[list[int]], state: int) -> bool:
    return set(await found) == {state}


async def _leaves(world: World, ticket_id: str) -> bool:
    """Whether the store has noted that the ticket's player wants out."""
    store = await open_sqlite(world.folder / "matchmaking.db")
    try:
        ticket: Ticket = await store.ticket(ticket_id)
    finally:
        await store.close()
    return ticket.leaving or ticket.state is not TicketState.MATCHED
