"""A studio that says who may play: asked at queue, room and after each hand."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import admission_pb2
from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng_client import explain
from tests.matchmaking.admission_server import CHINA, StudioAdmission, serve
from tests.matchmaking.world import World, eventually

NIGHT = datetime(2026, 1, 1, 22, 30, tzinfo=CHINA)
ROOMS = """
rooms: [{id: friends, name: friends, rules: {id: baishan_kele}}]
"""


@pytest.fixture
def studio() -> StudioAdmission:
    return StudioAdmission(lambda: NIGHT)


@asynccontextmanager
async def with_admission(
    world: World, studio: StudioAdmission, **settings: object
) -> AsyncIterator[grpc.aio.Server]:
    pools = world.folder / "pools.yaml"
    pools.write_text(pools.read_text("utf-8") + ROOMS, "utf-8")
    server, address = await serve("127.0.0.1:0", studio)
    try:
        await world.start(admission=address, admission_timeout_seconds=2, **settings)
        yield server
    finally:
        await server.stop(None)


async def refused(call: object) -> tuple[str, str, dict[str, str]]:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
    told = explain(error.value)
    return told.reason, told.message, dict(told.metadata)


async def test_who_is_not_admitted_is_told_why_and_until_when(
    stopped_world: World, studio: StudioAdmission
) -> None:
    world = stopped_world
    studio.minors.add("p0")
    studio.banned.add(("17", "p1"))
    async with with_admission(world, studio):
        minor, banned = await world.players(2)
        morning = int(datetime(2026, 1, 2, 0, 0, tzinfo=UTC).timestamp())  # 8 o'clock in China
        assert await refused(minor.join("silver")) == (
            "NOT_ADMITTED",
            "未成年人 22 时至次日 8 时不能游戏",
            {
                "player_id": "p0",
                "admission_reason": "MINOR_AT_NIGHT",
                "until_seconds": str(morning),
            },
        )
        reason, _, metadata = await refused(banned.join("free", labels={"club": "17"}))
        assert (reason, metadata["admission_reason"]) == ("NOT_ADMITTED", "BANNED")
        await banned.join("free", labels={"club": "18"})
        assert [one.pool_id for one in studio.asked] == ["silver", "free", "free"]
        guest = await world.guest("p0")
        assert (await refused(guest.open("friends")))[0] == "NOT_ADMITTED"
        host = await world.guest("host")
        room = await host.open("friends")
        assert (await refused(guest.enter(room.code)))[0] == "NOT_ADMITTED"
        assert studio.asked[-1].place == admission_pb2.ADMISSION_PLACE_ROOM


async def test_who_may_not_go_on_leaves_after_the_hand(
    stopped_world: World, studio: StudioAdmission
) -> None:
    world = stopped_world
    async with with_admission(world, studio):
        players = await world.players(4)
        for player in players:
            await player.join("free")
        table = world.tables.tables[(await players[0].outcome()).table_id]
        world.records.finish(table, 1, [3, -1, -1, -1])
        await eventually(lambda: len(studio.asked) == 8)
        assert world.tables.left == []
        studio.minors.add("p2")
        world.records.finish(table, 2, [3, -1, -1, -1])
        await eventually(lambda: world.tables.left == [(table.table_id, "p2")])
        world.records.finish(table, 2, [3, -1, -1, -1], ended=time.time() - 3_600)
        world.records.finish(table, 3, [3, -1, -1, -1])
        await eventually(lambda: len(world.tables.left) == 2)


async def test_of_a_table_only_its_people_are_asked_about(
    stopped_world: World, studio: StudioAdmission
) -> None:
    world = stopped_world
    async with with_admission(world, studio):
        for number in range(3):
            await (await world.player(f"bot{number}", "bot")).join("practice", standby=True)
        (player,) = await world.players(1)
        await player.join("practice", labels={"club": "17"})
        table = world.tables.tables[(await player.outcome()).table_id]
        studio.asked.clear()
        studio.banned.update(("17", f"bot{number}") for number in range(3))
        for number in (1, 2):
            world.records.finish(table, number, [3, -1, -1, -1], labels={"club": "17"})
        await eventually(lambda: len(studio.asked) == 2)
        for one in studio.asked:
            assert one == admission_pb2.CheckRequest(
                player_id="p0",
                place=admission_pb2.ADMISSION_PLACE_TABLE,
                table_id=table.table_id,
                labels={"club": "17"},
            )
        assert world.tables.left == []


@pytest.mark.parametrize("when_silent", ["allow", "deny"])
async def test_a_studio_that_does_not_answer_counts_as_the_setting_says(
    stopped_world: World, studio: StudioAdmission, when_silent: str
) -> None:
    world = stopped_world
    async with with_admission(world, studio, admission_when_silent=when_silent) as server:
        await server.stop(None)
        (player,) = await world.players(1)
        if when_silent == "allow":
            assert (await player.join("free")).state == pb.TICKET_STATE_WAITING
        else:
            _, _, metadata = await refused(player.join("free"))
            assert metadata["admission_reason"] == "ADMISSION_SILENT"
            assert not (await player.status()).HasField("ticket")
