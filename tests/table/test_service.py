"""The calls of `TableService` over gRPC: what they answer, and every refusal of the contract."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import grpc.aio
import pytest

from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng.table.v1 import records_pb2, state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.tiles import code, from_code
from fangcheng_rules.wall import derive, follows
from fangcheng_table.live import LiveTable

from .world import (
    PLAYERS,
    first_prompt,
    play_all,
    refused,
    request,
    timeless,
    until,
    until_attended,
    world,
)

MATCHMAKING = "service:matchmaking"


# CreateTable.


async def test_a_new_table_is_told_in_full(service):
    made = await service.stub(MATCHMAKING).CreateTable(
        request(
            labels={"club": "17"},
            stakes=[state_pb2.Stake(currency="silver", per_unit=10)],
        )
    )
    table = made.table
    assert not made.replayed
    assert table.rules.revision == rule_set("baishan_kele").revision
    assert table.rules.options["cap"].integer == 50
    assert table.rules.options["piao"].boolean is True
    assert [seat.player_id for seat in table.seats] == list(PLAYERS)
    assert table.phase == state_pb2.TABLE_PHASE_BETWEEN_HANDS
    assert table.endpoint == service.address
    assert len(table.commitment) == 32
    assert table.timing == state_pb2.Timing(
        turn_ms=15_000,
        claim_ms=8_000,
        before_deal_ms=10_000,
        claim_window_ms=0,
        between_hands_ms=0,
        away_grace_ms=180_000,
        ready_ms=30_000,
        vote_ms=60_000,
        away=state_pb2.AWAY_POLICY_ESCAPE,
    )
    assert dict(table.labels) == {"club": "17"}
    assert table.created.seconds > 0


@pytest.mark.parametrize(("bots", "window_ms"), [(0, 1_000), (3, 1_000), (4, 0)])
async def test_the_claim_window_is_a_second_unless_only_bots_play(service, bots, window_ms):
    message = request()
    message.ClearField("timing")
    for seat in message.seats[:bots]:
        seat.is_bot = True
    made = await service.stub("operator").CreateTable(message)
    assert made.table.timing.claim_window_ms == window_ms
    assert made.table.timing.between_hands_ms == 5_000


async def test_the_same_request_makes_one_table(service):
    stub = service.stub("operator")
    made = await asyncio.gather(*(stub.CreateTable(request()) for _ in range(20)))
    assert len({answer.table.table_id for answer in made}) == 1
    assert sum(not answer.replayed for answer in made) == 1
    assert len((await stub.ListTables(wire.ListTablesRequest())).tables) == 1


async def test_a_repeated_request_is_answered_after_a_restart_and_without_an_evaluator(service):
    made = await service.stub("operator").CreateTable(request())
    await service.restart()
    service.evaluator.switch.code = grpc.StatusCode.UNAVAILABLE
    again = await service.stub("operator").CreateTable(request())
    assert again.replayed
    assert again.table.table_id == made.table.table_id


async def test_a_request_id_belongs_to_one_body(service):
    stub = service.stub("operator")
    await stub.CreateTable(request())
    other = request(hands=2)
    assert await refused(stub.CreateTable(other)) == (
        "ALREADY_EXISTS",
        "REQUEST_ID_REUSED",
        "request_id",
    )


def bad(**changes: Any) -> wire.CreateTableRequest:
    message = request()
    for field in changes:
        message.ClearField(field)
    message.MergeFrom(wire.CreateTableRequest(**changes))
    return message


def kele(**options: rules.OptionValue) -> rules.RuleSetChoice:
    return rules.RuleSetChoice(id="baishan_kele", options=options)


def seats(*names: str, holds: tuple[str, ...] = ("", "", "", "")) -> list[wire.SeatAssignment]:
    return [
        wire.SeatAssignment(player_id=name, hold_ids=[hold] if hold else [])
        for name, hold in zip(names, holds, strict=True)
    ]


BAD_TABLES = [
    (bad(rules=rules.RuleSetChoice(id="mars")), "NOT_FOUND", "UNKNOWN_RULE_SET", "rules.id"),
    (
        bad(rules=rules.RuleSetChoice(id="baishan_kele", revision=99)),
        *("FAILED_PRECONDITION", "UNKNOWN_REVISION", "rules.revision"),
    ),
    (
        bad(rules=kele(colour=rules.OptionValue(text="red"))),
        *("INVALID_ARGUMENT", "INVALID_OPTION", "rules.options.colour"),
    ),
    (
        bad(rules=kele(cap=rules.OptionValue(integer=-1))),
        *("INVALID_ARGUMENT", "INVALID_OPTION", "rules.options.cap"),
    ),
    (
        bad(rules=kele(piao=rules.OptionValue(integer=1))),
        *("INVALID_ARGUMENT", "INVALID_OPTION", "rules.options.piao"),
    ),
    (
        bad(seats=seats("ann", "bob", "ann", "dan")),
        *("INVALID_ARGUMENT", "DUPLICATE_PLAYER", "seats[2].player_id"),
    ),
    (
        bad(seats=seats("ann", "bob", "cat", "dan", holds=("", "h1", "", "h1"))),
        *("INVALID_ARGUMENT", "DUPLICATE_PLAYER", "seats[3].hold_ids"),
    ),
    (
        bad(seats=seats("ann", "bob", "cat", "")),
        "INVALID_ARGUMENT",
        "INVALID_REQUEST",
        "seats[3].player_id",
    ),
    (
        bad(stakes=[state_pb2.Stake(currency="silver", per_unit=-5)]),
        "INVALID_ARGUMENT",
        "INVALID_REQUEST",
        "stakes[0].per_unit",
    ),
    (bad(hands=1_001), "INVALID_ARGUMENT", "INVALID_REQUEST", "hands"),
    (bad(request_id=""), "INVALID_ARGUMENT", "INVALID_REQUEST", "request_id"),
    (bad(labels={f"k{n}": "v" for n in range(9)}), "INVALID_ARGUMENT", "INVALID_REQUEST", "labels"),
]


@pytest.mark.parametrize(("message", "status", "reason", "field"), BAD_TABLES)
async def test_a_table_that_cannot_be_is_refused_and_not_made(
    service, message, status, reason, field
):
    stub = service.stub("operator")
    assert await refused(stub.CreateTable(message)) == (status, reason, field)
    assert not (await stub.ListTables(wire.ListTablesRequest(include_closed=True))).tables


async def test_three_seats_are_no_table(service):
    message = request()
    del message.seats[3]
    assert (await refused(service.stub("operator").CreateTable(message)))[:2] == (
        "INVALID_ARGUMENT",
        "INVALID_REQUEST",
    )


async def test_no_table_is_made_while_no_evaluator_answers(service):
    stub: Any = TableServiceStub(service.channel("operator", options=[("grpc.enable_retries", 0)]))
    service.evaluator.switch.code = grpc.StatusCode.UNAVAILABLE
    assert (await refused(stub.CreateTable(request())))[:2] == (
        "UNAVAILABLE",
        "EVALUATOR_UNAVAILABLE",
    )
    service.evaluator.switch.code = None
    assert not (await stub.CreateTable(request())).replayed


async def test_a_message_of_five_megabytes_is_refused(service):
    message = request(labels={"club": "x"})
    message.seats[0].profile = b"x" * 5_000_000
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await service.stub("operator").CreateTable(message)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("subject", ["player:ann", "service:wallet"])
async def test_only_operators_and_matchmaking_make_tables(service, subject):
    status, _, _ = await refused(service.stub(subject).CreateTable(request()))
    assert status == "PERMISSION_DENIED"


# A whole table.


async def test_four_players_play_a_table_to_its_end(service):
    stub = service.stub("operator")
    made = await stub.CreateTable(
        request(hands=2, stakes=[state_pb2.Stake(currency="silver", per_unit=10)])
    )
    table_id = made.table.table_id
    players = await play_all(service, table_id)
    for seat, player in enumerate(players):
        numbers = [event.number for event in player.events]
        assert numbers == list(range(1, len(numbers) + 1))
        assert player.events[0].table_opened.seat == seat
        assert player.events[-1].table_closed.reason == "hands_played"
        kinds = [event.WhichOneof("kind") for event in player.events]
        assert kinds.count("hand_ended") == kinds.count("hand_settled") == 2
        assert not player.refused
    table = (await stub.GetTable(wire.GetTableRequest(table_id=table_id))).table
    assert table.phase == state_pb2.TABLE_PHASE_CLOSED
    assert table.closed_reason == "hands_played"
    assert [seat.standing for seat in table.seats] == list(
        players[0].events[-1].table_closed.standings
    )
    # A closed table is read from the journal, and tells the same, as far back as it goes.
    second = next(e.number for e in players[0].events if e.hand_started.hand_number == 2)
    again = [
        m.event
        async for m in service.player("ann").Attend(
            wire.AttendRequest(table_id=table_id, from_number=second)
        )
    ]
    assert timeless(again) == timeless(players[0].events[second:])


async def test_a_settlement_is_what_the_hand_paid(service):
    made = await service.stub("operator").CreateTable(
        request(
            stakes=[
                state_pb2.Stake(currency="silver", per_unit=10),
                state_pb2.Stake(currency="points", book="b", per_unit=1),
            ],
            labels={"club": "17"},
        )
    )
    players = await play_all(service, made.table.table_id)
    (settled,) = service.wallet.settled.values()
    assert settled.key == f"{made.table.table_id}/1"
    assert dict(settled.labels) == {"club": "17"}
    events = players[2].events
    (ended,) = [event.hand_ended for event in events if event.HasField("hand_ended")]
    (told,) = [event.hand_settled for event in events if event.HasField("hand_settled")]
    dealer = ended.hand.dealer
    parties = [party.player_id for party in settled.parties]
    assert parties == [PLAYERS[(dealer + step) % 4] for step in range(4)]
    for currency, worth in (("silver", 10), ("points", 1)):
        net = [0, 0, 0, 0]
        for payment in told.payments:
            assert payment.due == payment.paid > 0
            if payment.currency == currency:
                if payment.HasField("from_seat"):
                    net[payment.from_seat] -= payment.paid
                if payment.HasField("to_seat"):
                    net[payment.to_seat] += payment.paid
        assert net == [worth * units for units in ended.net]


async def test_the_record_of_a_hand_checks_against_its_commitment(service):
    stub = service.stub("operator")
    made = await stub.CreateTable(request(hands=2))
    table_id = made.table.table_id
    await play_all(service, table_id)
    records = [
        (
            await service.records("operator").GetHandRecord(
                records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=n)
            )
        ).record
        for n in (1, 2)
    ]
    assert follows(records[0].secret, made.table.commitment)
    assert follows(records[1].secret, records[0].secret)
    for number, record in enumerate(records, 1):
        assert record.table_commitment == made.table.commitment
        assert list(record.player_ids) == list(PLAYERS)
        tiles = rule_set("baishan_kele").wall_tiles
        wall, dice = derive(
            record.secret,
            list(record.entropy),
            table_id,
            number,
            tiles=tiles,
            dice=len(record.dice),
        )
        assert [from_code(tile) for tile in record.wall] == list(wall)
        assert list(record.dice) == list(dice)
        assert [event.number for event in record.events] == list(range(1, len(record.events) + 1))
        kinds = [event.WhichOneof("kind") for event in record.events]
        assert kinds[0] == "hand_started"
        assert kinds[-1] == "hand_ended"
        drawn = [event.drawn.tile for event in record.events if event.HasField("drawn")]
        front = [e.drawn for e in record.events if e.drawn.origin in ("front", "dealt_out")]
        assert all(drawn)
        assert [d.tile for d in front] == [code(tile) for tile in wall[53 : 53 + len(front)]]


async def test_no_two_tables_have_the_same_walls(service):
    """The wall was predictable."""
    stub = service.stub("operator")
    tables = [(await stub.CreateTable(request(f"r{n}"))).table for n in range(3)]
    for table in tables:
        await play_all(service, table.table_id)
    records = [
        (
            await service.records("operator").GetHandRecord(
                records_pb2.GetHandRecordRequest(table_id=table.table_id, hand_number=1)
            )
        ).record
        for table in tables
    ]
    assert len({table.commitment for table in tables}) == 3
    assert len({tuple(record.wall) for record in records}) == 3
    # Nor does a wall follow from what was told before the hand.
    for table, record in zip(tables, records, strict=True):
        tiles = rule_set("baishan_kele").wall_tiles
        guess, _ = derive(
            table.commitment, list(record.entropy), table.table_id, 1, tiles=tiles, dice=2
        )
        assert [code(tile) for tile in guess] != list(record.wall)


# Who may see what.


async def test_bots_are_told_to_operators_and_services_alone(service):
    message = request()
    message.seats[1].is_bot = True
    made = await service.stub("operator").CreateTable(message)
    get = wire.GetTableRequest(table_id=made.table.table_id)
    for subject, told in (("operator", True), (MATCHMAKING, True), ("player:ann", False)):
        stub = service.stub(subject)
        tables = [
            (await stub.GetTable(get)).table,
            *(await stub.ListTables(wire.ListTablesRequest())).tables,
        ]
        for table in tables:
            assert [seat.is_bot for seat in table.seats] == [False, told, False, False]


async def test_a_seat_is_its_players_alone(service):
    made = await service.stub("operator").CreateTable(request())
    table_id = made.table.table_id
    stranger = service.player("eve")

    async def attended() -> None:
        async for _ in stranger.Attend(wire.AttendRequest(table_id=table_id)):
            pass

    act = wire.ActRequest(
        table_id=table_id, decision_id="1-1", action=state_pb2.Action(kind="pass")
    )
    leave = wire.LeaveTableRequest(table_id=table_id, mode=wire.LEAVE_MODE_NOW)
    record = records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=1)
    for call in (
        attended(),
        stranger.Act(act),
        stranger.LeaveTable(leave),
        service.records("player:eve").GetHandRecord(record),
    ):
        assert await refused(call) == ("PERMISSION_DENIED", "NOT_SEATED", "table_id")


async def test_an_unknown_table_is_told_so_by_every_call(service):
    stub, operator = service.player("ann"), service.stub("operator")

    async def read(call: Any) -> None:
        async for _ in call:
            pass

    act = wire.ActRequest(table_id="t", decision_id="1-1", action=state_pb2.Action(kind="pass"))
    for call in (
        operator.GetTable(wire.GetTableRequest(table_id="t")),
        read(stub.Attend(wire.AttendRequest(table_id="t"))),
        read(stub.Watch(wire.WatchRequest(table_id="t"))),
        stub.Act(act),
        stub.LeaveTable(wire.LeaveTableRequest(table_id="t", mode=wire.LEAVE_MODE_NOW)),
        service.records("operator").GetHandRecord(
            records_pb2.GetHandRecordRequest(table_id="t", hand_number=1)
        ),
    ):
        assert await refused(call) == ("NOT_FOUND", "UNKNOWN_TABLE", "table_id")


# GetHandRecord.


async def test_a_hand_has_no_record_before_it_has_ended(service):
    made = await service.stub("operator").CreateTable(request())
    table_id = made.table.table_id
    keeper = service.records("player:ann")

    def record(number: int) -> Any:
        return keeper.GetHandRecord(
            records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=number)
        )

    assert await refused(record(1)) == ("NOT_FOUND", "UNKNOWN_HAND", "hand_number")
    streams = [await until_attended(service, table_id, name) for name in PLAYERS]
    await first_prompt(service, table_id, "ann")
    assert await refused(record(1)) == (
        "FAILED_PRECONDITION",
        "HAND_NOT_FINISHED",
        "hand_number",
    )
    assert await refused(record(2)) == ("NOT_FOUND", "UNKNOWN_HAND", "hand_number")
    assert (await refused(record(0)))[:2] == ("INVALID_ARGUMENT", "INVALID_REQUEST")
    for stream in streams:
        stream.cancel()


# ListTables.


async def test_tables_are_listed_in_pages_newest_first(service):
    stub = service.stub("operator")
    made = [
        (await stub.CreateTable(request(f"r{n}", labels={"club": str(n % 2)}))).table.table_id
        for n in range(7)
    ]
    listed, token = [], ""
    while True:
        page = await stub.ListTables(wire.ListTablesRequest(page_size=3, page_token=token))
        listed.append([table.table_id for table in page.tables])
        token = page.next_page_token
        if not token:
            break
    newest = made[::-1]
    assert listed == [newest[:3], newest[3:6], newest[6:]]
    odd = await stub.ListTables(wire.ListTablesRequest(labels={"club": "1"}))
    assert [table.table_id for table in odd.tables] == [made[5], made[3], made[1]]
    assert not (await stub.ListTables(wire.ListTablesRequest(player_id="eve"))).tables
    assert len((await stub.ListTables(wire.ListTablesRequest(player_id="ann"))).tables) == 7
    assert not (await stub.ListTables(wire.ListTablesRequest(rule_set="shandong"))).tables


async def test_a_page_token_is_good_for_its_own_list_alone(service):
    stub = service.stub("operator")
    for n in range(2):
        await stub.CreateTable(request(f"r{n}"))
    page = await stub.ListTables(wire.ListTablesRequest(page_size=1))
    for wrong in (
        wire.ListTablesRequest(page_size=1, page_token="x"),
        wire.ListTablesRequest(page_token=page.next_page_token, include_closed=True),
    ):
        assert await refused(stub.ListTables(wrong)) == (
            "INVALID_ARGUMENT",
            "INVALID_PAGE_TOKEN",
            "page_token",
        )


async def test_closed_tables_are_listed_when_asked_for(service):
    stub = service.stub("operator")
    closed = (await stub.CreateTable(request("r1"))).table.table_id
    await play_all(service, closed)
    is_open = (await stub.CreateTable(request("r2"))).table.table_id
    tables = (await stub.ListTables(wire.ListTablesRequest())).tables
    assert [table.table_id for table in tables] == [is_open]
    tables = (await stub.ListTables(wire.ListTablesRequest(include_closed=True))).tables
    assert [table.table_id for table in tables] == [is_open, closed]
    assert tables[1].closed_reason == "hands_played"
    assert tables[1].endpoint == service.address


async def test_closed_tables_that_memory_has_let_go_are_read_from_the_journal(tmp_path):
    async with world(tmp_path, archived_tables=1) as service:
        stub = service.stub("operator")
        made = [(await stub.CreateTable(request(f"r{n}"))).table.table_id for n in range(3)]
        played = [await play_all(service, table_id) for table_id in made]
        for table_id, players in zip(made, played, strict=True):
            got = (await stub.GetTable(wire.GetTableRequest(table_id=table_id))).table
            assert got.closed_reason == "hands_played"
            watch = service.player("dan").Attend(wire.AttendRequest(table_id=table_id))
            again = [message.event async for message in watch]
            assert timeless(again) == timeless(players[3].events)


# What is measured.


async def test_the_life_of_tables_is_measured(service):
    stub = service.stub("operator")
    made = await stub.CreateTable(request(stakes=[state_pb2.Stake(currency="silver", per_unit=1)]))
    kele = "baishan_kele"
    value = service.value
    await until(lambda: value("fangcheng_tables", rule_set=kele, phase="between_hands") == 1)
    players = await play_all(service, made.table.table_id)
    await until(lambda: not value("fangcheng_tables", rule_set=kele, phase="closed"))
    for phase in ("before_deal", "playing", "between_hands"):
        assert value("fangcheng_tables", rule_set=kele, phase=phase) == 0
    endings = ("win", "draw")
    assert sum(value("fangcheng_table_hands_total", rule_set=kele, ending=e) for e in endings) == 1
    acts = sum(event.HasField("prompt") for player in players for event in player.events)
    assert value("fangcheng_table_act_seconds_count") == acts
    assert value("fangcheng_table_settlements_total") == 1
    assert value("fangcheng_table_outbox", kind="settle") == 0
    assert value("fangcheng_table_evaluator_questions") == 0
    assert value("fangcheng_table_evaluator_wait_seconds_count", kind="score") == 1
    assert value("fangcheng_table_journal_commit_seconds_count") > acts / 2
    await until(lambda: value("fangcheng_table_streams", kind="seat") == 0)


# Memory.


async def test_tables_that_are_over_go_without_the_garbage_collector(tmp_path):
    """It looks through all that is kept only seldom, since that takes long where there is much."""

    def kept() -> int:
        return sum(isinstance(one, LiveTable) for one in gc.get_objects())

    async with world(tmp_path, archived_tables=1) as service:
        gc.collect()
        before = kept()
        gc.disable()
        try:
            for number in range(3):
                made = await service.stub("operator").CreateTable(request(f"over-{number}"))
                await play_all(service, made.table.table_id)
            await until(lambda: kept() <= before + 1)
        finally:
            gc.enable()
