"""Private rooms: their decisions, and their way to a table."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

import grpc
import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2 as queue
from fangcheng.matchmaking.v1 import rooms_pb2 as wire
from fangcheng.rules.v1 import rules_pb2
from fangcheng_client import explain
from fangcheng_kit.errors import InvalidArgument
from fangcheng_matchmaking import rooms
from fangcheng_matchmaking.core import Terms
from fangcheng_matchmaking.pools import parse_pools, unplayable
from tests.matchmaking.clients import Guest
from tests.matchmaking.faults import refused
from tests.matchmaking.test_pools import LISTED
from tests.matchmaking.world import World, eventually

ROOMS = """
pools:
  - {id: probe, name: probe, rules: {id: baishan_kele}}
rooms:
  - id: free
    name: free
    rules: {id: baishan_kele}
    choices: {cap: [0, 50], piao: [true]}
    hands: 8
    rounds: 2
    starting_chips: 100
  - id: silver
    name: for silver
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 10, buy_in: 1000}]
    fees:
      - {currency: silver, amount: 50, paid_by: owner}
      - {currency: points, book: baishan_kele, amount: 1}
    hold_only: true
"""
DECIDED = {wire.ROOM_STATE_OPEN, wire.ROOM_STATE_PLAYING}
ROOM = rooms.Room(
    room_id="r",
    code="04821377",
    request_id="q",
    opener_id="a",
    template_id="free",
    terms=Terms(rule_set="baishan_kele"),
)


def with_guests(*player_ids: str) -> rooms.Room:
    room = ROOM
    for player_id in player_ids:
        room = rooms.come(room, player_id, b"")
    return room


def test_who_comes_takes_the_first_empty_seat_and_the_first_is_the_owner() -> None:
    room = rooms.sit(with_guests("a", "b"), "a", 3)
    room = rooms.come(room, "c", b"")
    assert {one.player_id: one.seat for one in room.guests} == {"a": 3, "b": 1, "c": 0}
    assert room.owner_id == "a"
    assert rooms.come(room, "a", b"") == room
    with pytest.raises(rooms.RoomFull):
        rooms.come(rooms.come(room, "d", b""), "e", b"")


def test_seats_are_taken_once_and_changing_one_takes_readiness_back() -> None:
    room = rooms.say_ready(with_guests("a", "b"), "b", True)
    with pytest.raises(rooms.SeatTaken):
        rooms.sit(room, "b", 0)
    assert rooms.sit(room, "b", 1) == room
    moved = rooms.sit(room, "b", 2).guest("b")
    assert moved is not None
    assert (moved.seat, moved.ready) == (2, False)


def test_only_the_owner_starts_and_only_with_four_of_whom_three_are_ready() -> None:
    room = with_guests("a", "b", "c", "d")
    for player in ("b", "c"):
        room = rooms.say_ready(room, player, True)
    with pytest.raises(rooms.NotReady):
        rooms.start(room, "a", "m")
    room = rooms.say_ready(room, "d", True)
    with pytest.raises(rooms.NotTheOwner):
        rooms.start(room, "b", "m")
    with pytest.raises(rooms.UnknownRoom):
        rooms.start(room, "e", "m")
    started = rooms.start(room, "a", "m")
    assert started.state is rooms.RoomState.STARTING
    for change in (
        lambda: rooms.sit(started, "a", 1),
        lambda: rooms.say_ready(started, "b", False),
        lambda: rooms.come(started, "e", b""),
        lambda: rooms.turn_out(started, "a", "b"),
        lambda: rooms.start(started, "a", "m2"),
    ):
        with pytest.raises(rooms.RoomStarted):
            change()
    with pytest.raises(rooms.NotReady):
        rooms.start(with_guests("a", "b", "c"), "a", "m")


def test_who_was_turned_out_does_not_come_back() -> None:
    room = rooms.turn_out(with_guests("a", "b"), "a", "b")
    left = rooms.Room(**{**_fields(room), "guests": room.guests[:1]})
    with pytest.raises(rooms.TurnedOut):
        rooms.come(left, "b", b"")
    with pytest.raises(rooms.NotTheOwner):
        rooms.turn_out(with_guests("a", "b"), "b", "a")
    with pytest.raises(rooms.NotTheOwner):
        rooms.turn_out(room, "a", "a")


def _fields(room: rooms.Room) -> dict[str, object]:
    return {name: getattr(room, name) for name in rooms.Room.__dataclass_fields__}


def test_only_what_the_template_offers_can_be_chosen() -> None:
    free = parse_pools(ROOMS).rooms["free"]
    assert free.chosen({"cap": 50}).options == {"cap": 50}
    for options in ({"cap": 7}, {"cap": False}, {"piao": 1}, {"end": "word"}):
        with pytest.raises(rooms.NoChoice):
            free.chosen(options)


def test_choices_that_no_evaluator_plays_are_told() -> None:
    assert unplayable(parse_pools(ROOMS), LISTED) == []
    wrong = parse_pools(ROOMS.replace("[0, 50]", "[0, -1]"))
    assert unplayable(wrong, LISTED) == ["room free: the option cap of baishan_kele cannot be -1"]


@pytest.fixture
async def world(stopped_world: World) -> World:
    (stopped_world.folder / "pools.yaml").write_text(ROOMS, "utf-8")
    await stopped_world.start()
    return stopped_world


async def reason(call: Awaitable[object]) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return explain(error.value).reason


async def gathered(world: World, template_id: str, *player_ids: str) -> list[Guest]:
    """Players in a room that the first has opened, all of them ready."""
    guests = [await world.guest(player_id) for player_id in player_ids]
    room = await guests[0].open(template_id)
    for guest in guests[1:]:
        await guest.enter(room.code)
        await guest.ready()
    return guests


async def test_friends_meet_by_a_code_and_sit_where_they_want(world: World) -> None:
    ming, lan, ju, zhu = await gathered(world, "free", "ming", "lan", "ju", "zhu")
    assert len(ming.room.code) == 8
    await lan.sit(1)
    room = await zhu.now()
    assert (room.owner_id, [one.player_id for one in room.guests]) == (
        "ming",
        ["ming", "lan", "ju", "zhu"],
    )
    await ming.start()
    for guest in (ming, lan, ju, zhu):
        assert (await guest.watch_to(wire.ROOM_STATE_PLAYING)).table_id == "table-0"
    table = world.tables.tables["table-0"]
    assert [seat.player_id for seat in table.seats] == ["ming", "lan", "ju", "zhu"]
    assert world.wallet.calls == {}, "a free room asks no wallet"
    status = await ju.status()
    assert (status.room_id, status.table_id, status.seat) == (ming.room.room_id, "table-0", 2)
    assert not status.HasField("ticket")
    world.tables.close("table-0")
    last = await ming.watch_to(wire.ROOM_STATE_CLOSED)
    assert last.state == wire.ROOM_STATE_CLOSED
    again = await (await world.guest("ming")).open("free", "second")
    assert again.state == wire.ROOM_STATE_OPEN


async def test_opening_entering_and_starting_can_be_repeated(world: World) -> None:
    guests = await gathered(world, "free", "a", "b", "c", "d")
    first = guests[0].room
    assert (await guests[0].open("free")).room_id == first.room_id
    assert (await guests[1].enter(first.code)).room_id == first.room_id
    answers = await asyncio.gather(*(guests[0].start() for _ in range(5)))
    assert {one.room_id for one in answers} == {first.room_id}
    await guests[0].watch_to(wire.ROOM_STATE_PLAYING)
    await guests[0].start()
    assert len(world.tables.tables) == 1


async def test_one_request_is_answered_with_its_room_at_once_and_whatever_came_of_it(
    world: World,
) -> None:
    guest = await world.guest("a")
    opened = await asyncio.gather(*(guest.open("free") for _ in range(10)))
    assert len({room.room_id for room in opened}) == 1
    await guest.leave()
    await (await world.player("a")).join("probe")
    late = await guest.open("free")
    assert (late.room_id, late.state) == (opened[0].room_id, wire.ROOM_STATE_CLOSED)


async def test_a_room_that_has_started_is_answered_to_its_owner_until_it_closes(
    world: World,
) -> None:
    guests = await gathered(world, "free", "a", "b", "c", "d")
    await guests[0].start()
    playing = await guests[0].watch_to(wire.ROOM_STATE_PLAYING)
    assert (await guests[0].start()).table_id == playing.table_id
    assert await reason(guests[1].start()) == "NOT_THE_OWNER"
    world.tables.close(playing.table_id)
    await guests[0].watch_to(wire.ROOM_STATE_CLOSED)
    assert await reason(guests[0].start()) == "ROOM_STARTED"


async def test_kinds_of_rooms_are_listed_with_what_may_be_chosen(world: World) -> None:
    guest = await world.guest("a")
    free, silver = (await guest.stub.ListRoomTemplates(wire.ListRoomTemplatesRequest())).templates
    rules = rules_pb2.RuleSetChoice(id="baishan_kele")
    values = {
        "cap": [rules_pb2.OptionValue(integer=0), rules_pb2.OptionValue(integer=50)],
        "piao": [rules_pb2.OptionValue(boolean=True)],
    }
    assert free == wire.RoomTemplate(
        template_id="free",
        name="free",
        rules=rules,
        hands=8,
        rounds=2,
        starting_chips=100,
        choices=[wire.RoomChoice(option=one, values=values[one]) for one in values],
    )
    assert silver == wire.RoomTemplate(
        template_id="silver",
        name="for silver",
        rules=rules,
        stakes=[queue.PoolStake(currency="silver", per_unit=10, buy_in=1_000)],
        fees=[queue.PoolFee(currency="points", book="baishan_kele", amount=1)],
        owner_fees=[queue.PoolFee(currency="silver", amount=50)],
        hold_only=True,
    )


async def test_what_is_chosen_and_said_at_the_opening_goes_to_the_others_and_to_the_table(
    world: World,
) -> None:
    ming = await world.guest("ming")
    before = time.time()
    room = await ming.open(
        "free",
        options={"cap": rules_pb2.OptionValue(integer=50)},
        profile=b"m",
        labels={"club": "17"},
    )
    assert room.rules.options["cap"].integer == 50
    assert before + 3_600 - 1 < room.expires.seconds <= time.time() + 3_600
    for player_id in ("lan", "ju", "zhu"):
        guest = await world.guest(player_id)
        room = await guest.enter(room.code)
        await guest.ready()
    await guest.ready(False)
    room = await ming.now()
    assert [(one.profile, one.ready) for one in room.guests] == [
        (b"m", False),
        (b"", True),
        (b"", True),
        (b"", False),
    ]
    assert dict(room.labels) == {"club": "17"}
    assert await reason(ming.start()) == "NOT_READY"
    await guest.ready()
    await ming.start()
    room = await ming.watch_to(wire.ROOM_STATE_PLAYING)
    request = world.tables.requests[room.table_id]
    assert (dict(request.labels), request.rules) == ({"club": "17"}, room.rules)
    assert (request.hands, request.rounds, request.starting_chips) == (8, 2, 100)
    assert request.seats[0].profile == b"m"
    assert room.endpoint == world.tables.tables[room.table_id].endpoint


async def test_what_is_staked_is_held_and_the_owner_pays_the_fee(world: World) -> None:
    guests = await gathered(world, "silver", "a", "b", "c", "d")
    await guests[0].start()
    await guests[0].watch_to(wire.ROOM_STATE_PLAYING)
    request = world.tables.requests["table-0"]
    assert [(fee.HasField("seat"), fee.seat, fee.amount) for fee in request.fees] == [
        (True, 0, 50),
        (False, 0, 1),
    ]
    assert request.hold_only
    assert request.pool_id == ""
    assert len(world.wallet.open_holds) == 4
    world.check()


async def test_a_room_whose_table_cannot_be_had_is_open_again_without_who_is_at_fault(
    world: World,
) -> None:
    guests = await gathered(world, "silver", "a", "b", "c", "d")
    world.wallet.silver["c"] = 0
    await guests[0].start()
    room = await guests[0].watch_until(lambda room: len(room.guests) == 3)
    room = await guests[0].watch_to(wire.ROOM_STATE_OPEN)
    assert [(one.player_id, one.ready) for one in room.guests] == [
        ("a", False),
        ("b", False),
        ("d", False),
    ]
    assert world.wallet.open_holds == {}
    world.wallet.silver["c"] = 10_000
    await guests[2].enter(room.code)
    for guest in guests[1:]:
        await guest.ready()
    world.tables.faults["CreateTable"].append(refused(InvalidArgument("INVALID_OPTION", "no")))
    await guests[0].start()
    await guests[0].watch_until(lambda room: not any(one.ready for one in room.guests))
    assert world.wallet.open_holds == {}
    world.check()


async def test_the_room_is_handed_over_when_its_owner_leaves_and_closes_with_the_last(
    world: World,
) -> None:
    a, b, c = await gathered(world, "free", "a", "b", "c")
    await a.leave()
    await a.leave()
    room = await c.watch_until(lambda room: len(room.guests) == 2)
    assert room.owner_id == "b"
    assert not (await a.status()).room_id
    await b.turn_out("c")
    assert await reason(c.enter(room.code)) == "TURNED_OUT"
    assert [one.player_id for one in (await b.now()).guests] == ["b"]
    await b.leave()
    assert await reason(c.enter(room.code)) == "UNKNOWN_ROOM"


async def test_nobody_is_in_two_rooms_or_a_room_and_a_queue(world: World) -> None:
    a, b = await gathered(world, "free", "a", "b")
    assert await reason(b.open("free")) == "ALREADY_IN_ROOM"
    other = await (await world.guest("c")).open("free")
    assert await reason(a.enter(other.code)) == "ALREADY_IN_ROOM"
    player = await world.player("a")
    assert await reason(player.join("probe")) == "ALREADY_IN_ROOM"
    d = await world.player("d")
    await d.join("probe")
    assert await reason((await world.guest("d")).enter(other.code)) == "ALREADY_QUEUED"


async def test_rooms_are_for_who_is_in_them(world: World) -> None:
    a, b = await gathered(world, "free", "a", "b")
    stranger = await world.guest("s")
    stranger.room = a.room
    for call in (stranger.sit(3), stranger.ready(), stranger.start(), stranger.turn_out("b")):
        assert await reason(call) == "UNKNOWN_ROOM"
    with pytest.raises(grpc.aio.AioRpcError):
        await stranger.now()
    assert await reason(b.start()) == "NOT_THE_OWNER"
    assert await reason(a.start()) == "NOT_READY"
    assert await reason(a.open("none", "x")) == "UNKNOWN_TEMPLATE"
    options = {"cap": rules_pb2.OptionValue(integer=7)}
    assert await reason(stranger.open("free", options=options)) == "NO_CHOICE"


async def test_what_is_unknown_of_a_room_is_named(world: World) -> None:
    a, b = await gathered(world, "free", "a", "b")
    stranger = await world.guest("s")
    stranger.room = a.room
    for call, field in (
        (stranger.enter("00000000" if a.room.code != "00000000" else "11111111"), "code"),
        (stranger.sit(3), "room_id"),
        (a.turn_out("s"), "player_id"),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call
        assert (explain(error.value).reason, explain(error.value).field) == ("UNKNOWN_ROOM", field)
    assert await reason(b.sit(0)) == "SEAT_TAKEN"
    await (await world.guest("c")).enter(a.room.code)
    await (await world.guest("d")).enter(a.room.code)
    for call, refusal in (
        (stranger.enter(a.room.code), ("ROOM_FULL", "code")),
        (a.start(), ("NOT_READY", "room_id")),
        (b.start(), ("NOT_THE_OWNER", "room_id")),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call
        assert (explain(error.value).reason, explain(error.value).field) == refusal


async def test_codes_cannot_be_tried_one_after_the_other(world: World) -> None:
    guest = await world.guest("a")
    for number in range(10):
        assert await reason(guest.enter(f"{number:06}")) == "UNKNOWN_ROOM"
    assert await reason(guest.enter("000010")) == "TOO_MANY_CODES"


async def test_a_gateway_with_ever_new_players_is_locked_out_and_other_players_are_not(
    world: World,
) -> None:
    await world.restart(wrong_codes_per_minute=20)
    owner = await world.guest("owner")
    await owner.open("free")
    for number in range(10):
        walker = await world.guest(f"w{number}", via="gateway")
        assert await reason(walker.enter(f"{number:06}")) == "UNKNOWN_ROOM"
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await (await world.guest("w11", via="gateway")).enter(owner.room.code)
    problem = explain(error.value)
    assert (problem.reason, problem.field) == ("TOO_MANY_CODES", "code")
    assert problem.retry_after_seconds
    assert 0 < problem.retry_after_seconds <= 60
    await (await world.guest("friend")).enter(owner.room.code)


async def test_who_leaves_a_table_that_goes_on_leaves_its_room(world: World) -> None:
    guests = await gathered(world, "free", "a", "b", "c", "d")
    for guest in guests:
        await guest.ready()
    await guests[0].start()
    room = await guests[1].watch_to(wire.ROOM_STATE_PLAYING)
    world.tables.vacate(room.table_id, "a")
    assert (await guests[0].status()).room_id == ""
    room = await guests[1].now()
    assert (room.state, [one.player_id for one in room.guests]) == (
        wire.ROOM_STATE_PLAYING,
        ["b", "c", "d"],
    )
    await guests[0].open("free", "again")
    world.tables.close(room.table_id)
    assert (await guests[1].watch_to(wire.ROOM_STATE_CLOSED)).room_id == room.room_id


async def test_a_room_that_nobody_starts_expires(stopped_world: World) -> None:
    (stopped_world.folder / "pools.yaml").write_text(ROOMS, "utf-8")
    await stopped_world.start(room_minutes=0.01)
    a, b = await gathered(stopped_world, "free", "a", "b")

    async def free() -> bool:
        return not (await a.status()).room_id and not (await b.status()).room_id

    await eventually(free)


async def test_rooms_outlast_a_restart(world: World) -> None:
    guests = await gathered(world, "free", "a", "b", "c", "d")
    room = guests[0].room
    await world.restart()
    owner = await world.guest("a")
    owner.room = room
    assert len((await owner.now()).guests) == 4
    await owner.start()
    await owner.watch_to(wire.ROOM_STATE_PLAYING)


async def test_leaving_while_the_room_starts_has_one_outcome(world: World) -> None:
    for turn in range(10):
        guests = await gathered(world, "silver", *(f"{turn}.{seat}" for seat in range(4)))
        calls = [guests[0].start(), guests[turn % 4].leave()]
        await asyncio.gather(*calls, return_exceptions=True)
        stays = guests[(turn + 1) % 4]
        room = await stays.watch_until(lambda room: room.state in DECIDED)
        expected = 4 if room.state == wire.ROOM_STATE_PLAYING else 3
        await stays.watch_until(lambda room, count=expected: len(room.guests) == count)
    world.check()
