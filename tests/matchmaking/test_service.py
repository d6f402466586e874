"""The promises of `MatchmakingService`, over gRPC."""

from __future__ import annotations

import asyncio
import sqlite3
import urllib.request
from collections.abc import Awaitable
from contextlib import closing

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng.matchmaking.v1 import matchmaking_pb2_grpc as pb_grpc
from fangcheng.matchmaking.v1 import operations_pb2
from fangcheng.table.v1 import state_pb2, table_pb2
from fangcheng_client import Problem, connect, explain
from fangcheng_kit.errors import NotFound, ResourceExhausted, Unavailable
from fangcheng_kit.tokens import mint_token
from fangcheng_matchmaking import service
from tests.matchmaking.clients import Player
from tests.matchmaking.faults import refused
from tests.matchmaking.world import KEY, World, eventually

WAITING = pb.TICKET_STATE_WAITING
MATCHED = pb.TICKET_STATE_MATCHED
ASSIGNED = pb.TICKET_STATE_ASSIGNED
LEFT = pb.TICKET_STATE_LEFT
FAILED = pb.TICKET_STATE_FAILED


async def problem(call: Awaitable[object]) -> Problem:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return explain(error.value)


async def test_pools_are_listed_with_their_terms(world: World) -> None:
    operator = await world.stub("operator")
    await (await world.player("p0")).join("silver")
    pools = (await operator.ListPools(pb.ListPoolsRequest())).pools
    assert [pool.pool_id for pool in pools] == ["silver", "free", "practice"]
    silver, _, practice = pools
    assert silver.rules.id == "baishan_kele"
    assert silver.rules.options["cap"].integer == 0
    assert silver.rules.options["piao"].WhichOneof("value") == "boolean"
    assert [(one.currency, one.book, one.per_unit, one.buy_in) for one in silver.stakes] == [
        ("silver", "", 10, 1_000),
        ("points", "baishan_kele", 1, 0),
    ]
    assert (silver.hands, silver.least_client_version, silver.waiting) == (8, 3, 1)
    assert practice.fill_with_bots_after_ms == 200


async def test_four_players_go_from_the_queue_to_their_seats(world: World) -> None:
    players = await world.players(4)
    watches = []
    for number, player in enumerate(players):
        ticket = await player.join("silver", profile=bytes([number]))
        assert ticket.player_id == player.player_id
        if number < 3:
            assert (ticket.state, ticket.position) == (WAITING, number + 1)
        watches.append(asyncio.create_task(player.watch()))
    outcomes = [told[-1] for told in await asyncio.gather(*watches)]
    assert [one.state for one in outcomes] == [ASSIGNED] * 4
    assert {one.seat for one in outcomes} == {0, 1, 2, 3}
    (table,) = world.tables.open_tables
    assert {(one.table_id, one.endpoint) for one in outcomes} == {(table.table_id, table.endpoint)}
    for one in outcomes:
        assert table.seats[one.seat].player_id == one.player_id

    request = world.tables.requests[table.table_id]
    assert [(one.currency, one.book, one.per_unit) for one in request.stakes] == [
        ("silver", "", 10),
        ("points", "baishan_kele", 1),
    ]
    assert request.hands == 8
    assert request.rules.options["cap"].integer == 0
    assert (request.timing.turn_ms, request.timing.claim_window_ms) == (3_000, 0)
    assert (request.timing.vote_ms, request.rounds) == (5_000, 2)
    assert request.timing.away == state_pb2.AWAY_POLICY_TRUSTEE_TO_END
    assert not request.timing.HasField("between_hands_ms")
    for seat in request.seats:
        assert seat.profile == bytes([int(seat.player_id[1:])])
        assert [world.wallet.holds[hold].player_id for hold in seat.hold_ids] == [seat.player_id]
        assert not seat.is_bot
    assert world.wallet.silver["p0"] == 9_000
    world.check()


async def test_a_watch_tells_the_state_now_then_each_change_and_ends(world: World) -> None:
    players = await world.players(4)
    await players[0].join("free")
    watch = players[0].stub.WatchTicket(
        pb.WatchTicketRequest(ticket_id=players[0].ticket.ticket_id)
    )
    told = aiter(watch)
    states = [(await anext(told)).ticket.state]
    assert states == [WAITING]
    for player in players[1:]:
        await player.join("free")
    states += [answer.ticket.state async for answer in told]
    assert states[-1] == ASSIGNED
    assert states == sorted(states)
    late = await players[0].watch()
    assert [ticket.state for ticket in late] == [ASSIGNED]


async def test_watchers_are_told_when_they_move_up(world: World) -> None:
    players = await world.players(3)
    for player in players:
        await player.join("free")
    call = players[2].stub.WatchTicket(pb.WatchTicketRequest(ticket_id=players[2].ticket.ticket_id))
    told = aiter(call)
    assert (await anext(told)).ticket.position == 3
    await players[0].leave()
    while (position := (await anext(told)).ticket.position) != 2:
        assert position == 3
    call.cancel()


async def test_joining_again_with_the_same_request_id_is_answered_with_the_ticket(
    world: World,
) -> None:
    (player,) = await world.players(1)
    first = await player.join("free")
    again = await player.stub.JoinQueue(
        pb.JoinQueueRequest(request_id="r", pool_id="free", client_version=3)
    )
    assert again.replayed
    assert again.ticket == first
    left = await player.leave()
    assert left.state == LEFT
    late = await player.stub.JoinQueue(
        pb.JoinQueueRequest(request_id="r", pool_id="free", client_version=3)
    )
    assert late.replayed
    assert late.ticket.state == LEFT
    assert (await player.join("free", "another")).state == WAITING


async def test_one_request_that_comes_ten_times_at_once_is_answered_with_its_ticket(
    world: World,
) -> None:
    (player,) = await world.players(1)
    tickets = await asyncio.gather(*(player.join("free") for _ in range(10)))
    assert len({ticket.ticket_id for ticket in tickets}) == 1


async def test_what_cannot_join_is_told_why(world: World) -> None:
    (player,) = await world.players(1)

    unknown = await problem(player.join("none"))
    assert (unknown.code, unknown.reason, unknown.field) == (
        grpc.StatusCode.NOT_FOUND,
        "UNKNOWN_POOL",
        "pool_id",
    )
    no_bot = await problem(player.join("practice", standby=True))
    assert (no_bot.code, no_bot.reason) == (grpc.StatusCode.PERMISSION_DENIED, "NOT_A_BOT")
    bot = await world.player("bot", "bot")
    not_filled = await problem(bot.join("free", standby=True))
    assert (not_filled.code, not_filled.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "POOL_NOT_FILLED",
    )
    old = await problem(
        player.stub.JoinQueue(
            pb.JoinQueueRequest(request_id="r", pool_id="silver", client_version=2)
        )
    )
    assert (old.code, old.reason, old.field) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "CLIENT_TOO_OLD",
        "client_version",
    )
    assert old.metadata["least_client_version"] == "3"
    world.wallet.silver["p0"] = 999
    poor = await problem(player.join("silver"))
    assert (poor.code, poor.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "INSUFFICIENT_BALANCE",
    )
    del world.wallet.silver["p0"]
    no_wallet = await problem(player.join("practice"))
    assert (no_wallet.code, no_wallet.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "UNKNOWN_WALLET",
    )
    world.wallet.silver["p0"] = 10_000
    world.wallet.frozen.add("p0")
    frozen = await problem(player.join("silver"))
    assert (frozen.code, frozen.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "PLAYER_FROZEN",
    )
    world.wallet.frozen.clear()
    # None of the refusals has used up the request id or left a ticket.
    ticket = await player.join("free")
    queued = await problem(player.join("free", "second"))
    assert (queued.code, queued.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_QUEUED")
    assert queued.metadata == {
        "player_id": "p0",
        "ticket_id": ticket.ticket_id,
        "pool_id": "free",
    }
    reused = await problem(player.join("practice"))
    assert (reused.code, reused.reason, reused.field) == (
        grpc.StatusCode.ALREADY_EXISTS,
        "REQUEST_ID_REUSED",
        "request_id",
    )


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.JoinQueueRequest(pool_id="free"), "request_id"),
        (pb.JoinQueueRequest(request_id="r"), "pool_id"),
        (pb.JoinQueueRequest(request_id="r", pool_id="free", profile=b"x" * 1025), "profile"),
        (
            pb.JoinQueueRequest(
                request_id="r", pool_id="free", labels={str(n): "" for n in range(9)}
            ),
            "labels",
        ),
    ],
)
async def test_limits_of_the_contract_are_enforced(
    world: World, request_: pb.JoinQueueRequest, field: str
) -> None:
    (player,) = await world.players(1)
    told = await problem(player.stub.JoinQueue(request_))
    assert (told.code, told.field) == (grpc.StatusCode.INVALID_ARGUMENT, field)


async def test_calls_are_for_those_that_the_contract_names(world: World) -> None:
    operator = await world.stub("operator")
    told = await problem(operator.JoinQueue(pb.JoinQueueRequest(request_id="r", pool_id="free")))
    assert told.code is grpc.StatusCode.PERMISSION_DENIED


async def test_without_wallet_or_tables_nobody_is_queued(world: World) -> None:
    (player,) = await world.players(1)
    busy = refused(ResourceExhausted("BUSY", "busy"))
    world.wallet.faults["GetBalances"].extend([busy] * 5)  # the player's client asks five times
    told = await problem(player.join("silver"))
    assert (told.code, told.reason) == (grpc.StatusCode.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE")
    assert not (await player.status()).HasField("ticket")


async def test_a_database_that_fails_is_told_and_overcome(world: World) -> None:
    running = world.running
    assert running is not None
    # Neither repeats calls nor leaves out a service that is not healthy.
    plain = [("grpc.service_config", "{}")]
    async with connect(
        running.address, token=mint_token(KEY, "player:p0"), options=plain
    ) as channel:
        player = Player("p0", pb_grpc.MatchmakingServiceStub(channel))
        health = health_pb2_grpc.HealthStub(channel)

        async def is_told(status: health_pb2.HealthCheckResponse.ServingStatus.ValueType) -> bool:
            request = health_pb2.HealthCheckRequest(service=service.SERVICE)
            return (await health.Check(request)).status == status

        ticket = await player.join("free")
        with closing(sqlite3.connect(world.folder / "matchmaking.db")) as db:
            db.execute("ALTER TABLE tickets RENAME TO lost")
            for call in (lambda: player.join("free"), player.leave, player.status):
                told = await problem(call())
                assert told.code is grpc.StatusCode.UNAVAILABLE
                assert told.reason == "QUEUE_UNAVAILABLE"
            await eventually(lambda: is_told(health_pb2.HealthCheckResponse.NOT_SERVING))
            db.execute("ALTER TABLE lost RENAME TO tickets")
        await eventually(lambda: is_told(health_pb2.HealthCheckResponse.SERVING))
        assert await player.join("free") == ticket
        assert (await player.leave()).state == LEFT


async def test_a_wallet_that_shows_no_balances_is_asked_for_holds_alone(world: World) -> None:
    class Unimplemented(Unavailable):
        """What a studio's wallet answers that serves SettlementService and nothing else."""

        code = grpc.StatusCode.UNIMPLEMENTED

    world.wallet.faults["GetBalances"].extend([refused(Unimplemented("NO", "no"))] * 4)
    players = await world.players(4)
    for player in players:
        await player.join("silver")
    assert [(await player.outcome()).state for player in players] == [ASSIGNED] * 4


async def test_other_players_tickets_are_unknown(world: World) -> None:
    owner, other = await world.players(2)
    ticket = await owner.join("free")
    for ticket_id in (ticket.ticket_id, "none"):
        other.ticket.ticket_id = ticket_id
        for call in (other.leave(), other.watch()):
            told = await problem(call)
            assert (told.code, told.reason, told.field) == (
                grpc.StatusCode.NOT_FOUND,
                "UNKNOWN_TICKET",
                "ticket_id",
            )
    assert (await owner.now()).state == WAITING


async def test_leaving_takes_a_ticket_out_and_can_be_repeated(world: World) -> None:
    players = await world.players(5)
    for player in players[:3]:
        await player.join("free")
    assert (await players[1].leave()).state == LEFT
    assert (await players[1].leave()).state == LEFT
    assert [ticket.state for ticket in await players[1].watch()] == [LEFT]
    for player in players[3:]:
        await player.join("free")
    seated = [players[0], *players[2:]]
    assert [(await player.outcome()).state for player in seated] == [ASSIGNED] * 4
    told = await problem(players[0].leave())
    assert (told.code, told.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_SEATED")
    assert told.metadata == {"table_id": world.tables.open_tables[0].table_id}


async def test_a_seated_player_cannot_queue_until_the_table_has_closed(world: World) -> None:
    players = await world.players(4)
    for player in players:
        await player.join("silver")
    table_id = (await players[0].outcome()).table_id
    told = await problem(players[0].join("free", "again"))
    assert (told.code, told.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_SEATED")
    assert told.metadata == {"player_id": players[0].player_id, "table_id": table_id}
    world.tables.close(table_id)
    assert (await players[0].join("free", "again")).state == WAITING
    world.check()


async def test_a_closed_table_is_noticed_without_a_call(world: World) -> None:
    players = await world.players(12)
    for player in players:
        await player.join("silver")
    tables = [(await player.outcome()).table_id for player in players]
    world.tables.close(tables[0])
    listed = world.tables.calls["ListTables"]
    await eventually(lambda: world.tables.calls["GetTable"] >= 1)
    await eventually(lambda: world.tables.calls["ListTables"] > listed + 2)
    asked = world.tables.calls["GetTable"]
    free = [player for player, table in zip(players, tables, strict=True) if table == tables[0]]
    for player in free:
        assert (await player.join("free", "again")).state in (WAITING, MATCHED, ASSIGNED)
    # Their assignments were over already: nobody had to ask for the table again.
    assert world.tables.calls["GetTable"] == asked
    world.check()


async def test_a_player_seated_by_an_operator_cannot_queue(world: World) -> None:
    players = await world.players(1)
    world.tables.create(
        table_pb2.CreateTableRequest(
            request_id="operator's",
            seats=[table_pb2.SeatAssignment(player_id=f"p{number}") for number in range(4)],
        )
    )
    told = await problem(players[0].join("free"))
    assert told.reason == "ALREADY_SEATED"
    status = await players[0].status()
    assert (status.table_id, status.seat, status.endpoint) == ("table-0", 0, "127.0.0.1:7999")


async def test_a_table_that_nobody_knows_any_more_gives_its_players_and_holds_back(
    world: World,
) -> None:
    players = await world.players(4)
    for player in players:
        await player.join("silver")
    world.tables.forget((await players[0].outcome()).table_id)
    await eventually(lambda: not world.wallet.open_holds)
    assert (await players[0].join("free", "again")).state == WAITING


async def test_the_status_tells_where_a_player_is(world: World) -> None:
    players = await world.players(4)
    operator = await world.stub("operator")

    status = await players[0].status()
    assert status.player_id == "p0"
    assert not status.HasField("ticket")
    assert status.table_id == ""

    ticket = await players[0].join("silver")
    status = await players[0].status()
    assert (status.ticket, status.table_id) == (ticket, "")

    for player in players[1:]:
        await player.join("silver")
    outcome = await players[0].outcome()
    world.tables.tables[outcome.table_id].endpoint = "127.0.0.1:8000"
    status = await operator.GetPlayerStatus(pb.GetPlayerStatusRequest(player_id="p0"))
    assert status.ticket == outcome
    assert (status.table_id, status.seat) == (outcome.table_id, outcome.seat)
    assert status.endpoint == "127.0.0.1:8000", "the owner of a table may change"
    assert [world.wallet.holds[hold].player_id for hold in status.hold_ids] == ["p0"]

    world.tables.close(outcome.table_id)
    status = await players[0].status()
    assert not status.HasField("ticket")
    assert (status.table_id, list(status.hold_ids)) == ("", [])


async def test_the_status_is_told_while_the_table_service_is_away(world: World) -> None:
    players = await world.players(4)
    for player in players:
        await player.join("free")
    outcome = await players[0].outcome()
    world.tables.faults["GetTable"].extend([refused(Unavailable("DOWN", "down"))] * 5)
    status = await players[0].status()
    assert (status.table_id, status.endpoint) == (outcome.table_id, outcome.endpoint)


async def test_a_status_is_the_players_own(world: World) -> None:
    (player,) = await world.players(1)
    told = await problem(player.stub.GetPlayerStatus(pb.GetPlayerStatusRequest(player_id="p1")))
    assert (told.code, told.reason) == (grpc.StatusCode.PERMISSION_DENIED, "NOT_YOUR_STATUS")
    operator = await world.stub("operator")
    told = await problem(operator.GetPlayerStatus(pb.GetPlayerStatusRequest()))
    assert (told.code, told.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "PLAYER_REQUIRED")


async def test_bots_on_standby_fill_a_table_after_a_time(world: World) -> None:
    bots = [await world.player(f"b{number}", "bot") for number in range(4)]
    for bot in bots:
        await bot.join("practice", standby=True)
    assert not world.tables.tables
    (player,) = await world.players(1)
    await player.join("practice", labels={"club": "a"})
    outcome = await player.outcome()
    request = world.tables.requests[outcome.table_id]
    assert [seat.player_id for seat in request.seats if not seat.is_bot] == ["p0"]
    assert {seat.player_id for seat in request.seats if seat.is_bot} == {"b0", "b1", "b2"}
    assert request.labels == {"club": "a"}
    spare = await bots[3].now()
    assert (spare.state, spare.position, spare.standby) == (WAITING, 1, True)


async def test_a_bot_that_queues_as_a_player_is_seated_as_a_bot(world: World) -> None:
    players = [*await world.players(3), await world.player("b", "bot")]
    for player in players:
        await player.join("free", labels={"club": "a", "own": player.player_id})
    request = world.tables.requests[(await players[0].outcome()).table_id]
    assert [seat.player_id for seat in request.seats if seat.is_bot] == ["b"]
    assert request.labels == {"club": "a"}


async def test_a_gateway_queues_its_players(world: World) -> None:
    gateway = await world.stub("service:gateway", "act_as")
    for number in range(4):
        answer = await gateway.JoinQueue(
            pb.JoinQueueRequest(request_id="r", pool_id="free"),
            metadata=(("fangcheng-act-as", f"p{number}"),),
        )
        assert answer.ticket.player_id == f"p{number}"
    await eventually(lambda: len(world.tables.open_tables) == 1)
    assert not any(seat.is_bot for seat in world.tables.requests["table-0"].seats)


async def test_one_player_from_two_connections_has_one_ticket(world: World) -> None:
    devices = [await world.player("p0") for _ in range(2)]
    outcomes = await asyncio.gather(
        *(devices[number % 2].join("free", f"request {number}") for number in range(20)),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, pb.Ticket) for outcome in outcomes) == 1
    for outcome in outcomes:
        if isinstance(outcome, grpc.aio.AioRpcError):
            assert explain(outcome).reason == "ALREADY_QUEUED"


async def test_metrics_tell_of_queues_without_naming_anybody(world: World) -> None:
    players = await world.players(5)
    for player in players:
        await player.join("silver")
    for player in players[:4]:
        await player.outcome()
    assert world.running is not None
    operations = await world.operations()
    await operations.PausePool(operations_pb2.PausePoolRequest(pool_id="free", reason="x"))
    url = f"http://{world.running.metrics_address}/metrics"
    page = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
    lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    name = "fangcheng_matchmaking_"
    assert lines[name + 'paused{pool="free"}'] == "1.0"
    assert lines[name + 'paused{pool="silver"}'] == "0.0"
    assert lines[name + 'fill_after_seconds{pool="practice"}'] == "0.2"
    assert lines[name + 'fill_after_seconds{pool="silver"}'] == "0.0"
    assert lines[name + 'matches_total{outcome="returned",pool="practice"}'] == "0.0"
    assert lines[name + 'waiting_tickets{kind="player",pool="silver"}'] == "1.0"
    assert lines[name + 'waiting_tickets{kind="standby",pool="practice"}'] == "0.0"
    assert float(lines[name + 'oldest_ticket_age_seconds{pool="silver"}']) > 0
    assert lines[name + 'oldest_ticket_age_seconds{pool="free"}'] == "0.0"
    assert lines[name + 'wait_seconds_count{pool="silver"}'] == "4.0"
    assert lines[name + 'matches_total{outcome="seated",pool="silver"}'] == "1.0"
    assert lines[name + "unfinished_matches"] == "0.0"
    for secret in ("p0", players[0].ticket.ticket_id, "table-0"):
        assert f'"{secret}"' not in page


MOST_STREAMS = 16
"""That a player may have at one process."""


async def test_streams_of_vanished_clients_end(world: World) -> None:
    player, other = await world.players(2)
    await player.join("free")
    request = pb.WatchTicketRequest(ticket_id=player.ticket.ticket_id)
    calls = [player.stub.WatchTicket(request) for _ in range(MOST_STREAMS)]
    for call in calls:
        await call.read()
    assert world.running is not None
    registry = world.running.kit.registry

    def open_streams() -> float:
        started = registry.get_sample_value(
            "grpc_server_started_total",
            {
                "grpc_type": "server_stream",
                "grpc_service": "fangcheng.matchmaking.v1.MatchmakingService",
                "grpc_method": "WatchTicket",
            },
        )
        handled = sum(
            sample.value
            for metric in registry.collect()
            for sample in metric.samples
            if sample.name == "grpc_server_handled_total"
            and sample.labels["grpc_method"] == "WatchTicket"
        )
        return (started or 0) - handled

    assert open_streams() == MOST_STREAMS
    for call in calls:
        call.cancel()
    await eventually(lambda: open_streams() == 0)
    assert (await other.join("free")).position == 2


async def test_an_unknown_table_is_no_reason_to_refuse_a_call(world: World) -> None:
    players = await world.players(4)
    for player in players:
        await player.join("free")
    outcome = await players[0].outcome()
    world.tables.faults["GetTable"].append(refused(NotFound("UNKNOWN_TABLE", "gone")))
    world.tables.forget(outcome.table_id)
    assert (await players[0].status()).table_id == ""
