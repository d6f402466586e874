"""The lobby: what its viewers have is what the table service tells, however slowly they read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import grpc.aio
from google.protobuf.timestamp_pb2 import Timestamp

from fangcheng.table.v1 import state_pb2, table_pb2, table_pb2_grpc
from fangcheng_console import lobby
from fangcheng_console.figures import Figures
from fangcheng_console.lobby import KEPT_CHANGES, Picture, Tables, row
from fangcheng_console.names import name_of
from fangcheng_console.scrape import Scraper
from fangcheng_console.shown import PHASES
from tests.system.running import free_port
from tests.table.world import PLAYERS, play_all, request, until, until_attended, world

UNSAID = lobby._UNSAID


class Page:
    """Keeps the tables as the page does, from what it is sent."""

    def __init__(self, picture: Picture) -> None:
        self.messages: AsyncIterator[bytes] = picture.messages(picture.version)
        self.tables: dict[int, dict[str, Any]] = {}
        self.state: dict[str, Any] = {}
        self.fulls = 0
        self.bytes = 0

    async def read(self) -> dict[str, Any]:
        """One message."""
        data = await anext(self.messages)
        self.bytes = len(data)
        _, _, told = data.partition(b"\ndata: ")
        message: dict[str, Any] = json.loads(told)
        if message.get("full"):
            self.fulls += 1
            self.tables.clear()
        for change in message["tables"]:
            known = self.tables.setdefault(change["n"], dict(UNSAID))
            known.update(change)
        for number in message.get("gone", []):
            del self.tables[number]
        self.state |= {name: message[name] for name in ("away", "missing") if name in message}
        return message

    def by_id(self) -> dict[str, dict[str, Any]]:
        """The tables without their numbers."""
        return {
            table["id"]: {name: value for name, value in table.items() if name != "n"}
            for table in self.tables.values()
        }


def summary(table_id: str, **more: Any) -> table_pb2.TableSummary:
    """A table of four in its third hand."""
    known: dict[str, Any] = {
        "table_id": table_id,
        "rule_set": "baishan_kele",
        "phase": state_pb2.TABLE_PHASE_PLAYING,
        "hand_number": 3,
        "wall_tiles": 41,
        "seats": [
            table_pb2.SeatSummary(player_id=player, connected=True, standing=0)
            for player in PLAYERS
        ],
        "created": Timestamp(seconds=1_767_225_600),
    }
    return table_pb2.TableSummary(**(known | more))


def a_lobby() -> tuple[Tables, Picture]:
    """One that hears what the test tells it."""
    tables = Tables(grpc.aio.insecure_channel("127.0.0.1:1"))
    return tables, Picture(tables, Figures(Scraper([]), lambda: len(tables.live)))


def test_a_row_says_what_the_summary_says() -> None:
    seats = [
        table_pb2.SeatSummary(player_id="ann", profile=b"Ann", connected=True, standing=-12),
        table_pb2.SeatSummary(player_id="bob", trustee=True, standing=12),
        table_pb2.SeatSummary(player_id="cat", connected=True, is_bot=True),
        table_pb2.SeatSummary(),
    ]
    trouble = table_pb2.TableTrouble(
        kind=table_pb2.TABLE_TROUBLE_KIND_PARKED, since=Timestamp(seconds=1_767_225_700)
    )
    told = summary(
        "t1",
        seats=seats,
        labels={"club": "17"},
        pool_id="silver",
        mode=table_pb2.TABLE_MODE_RANKED,
        troubles=[trouble],
        hands=8,
        dealer=2,
        spectators=5,
    )
    assert row(told) == {
        "id": "t1",
        "rule_set": "baishan_kele",
        "pool": "silver",
        "mode": "ranked",
        "labels": {"club": "17"},
        "phase": "playing",
        "hand": 3,
        "hands": 8,
        "dealer": 2,
        "wall": 41,
        "spectators": 5,
        "created": 1_767_225_600_000,
        "closed": "",
        "troubles": {"parked": 1_767_225_700_000},
        "players": ["ann", "bob", "cat", ""],
        "names": ["Ann", "bob", "cat", ""],
        "standings": [-12, 12, 0, 0],
        "away": [1],
        "trustees": [1],
        "bots": [2],
    }


def test_every_phase_mode_and_trouble_has_its_name() -> None:
    assert set(PHASES) == set(state_pb2.TablePhase.values()) - {0}
    assert set(lobby._MODES) == set(table_pb2.TableMode.values()) - {0}
    assert set(lobby._TROUBLES) == set(table_pb2.TableTroubleKind.values()) - {0}


def test_a_name_is_read_out_of_a_profile_or_is_the_id() -> None:
    for profile, name in (
        (b"", "p1"),
        (b" Ming ", "Ming"),
        ("小明".encode(), "小明"),
        (b'{"nickname": "Lan", "level": 3}', "Lan"),
        (b'{"level": 3}', "p1"),
        (b'{"name": "a\\u0007b"}', "ab"),
        (b"{", "p1"),
        (b"\xff\x00", "p1"),
        (b"x" * 100, "p1"),
    ):
        assert name_of(profile, "p1") == name


async def test_a_viewer_has_everything_first_and_then_only_what_changed() -> None:
    tables, picture = a_lobby()
    tables.hear(summary("t1"), summary("t2", pool_id="silver"))
    page = Page(picture)
    await page.read()
    assert page.by_id() == {one: row(tables.live[one]) for one in ("t1", "t2")}

    tables.hear(summary("t1", wall_tiles=40), summary("t2", pool_id="silver"))
    picture.tell()
    change = await page.read()
    (number,) = (n for n, table in page.tables.items() if table["id"] == "t1")
    assert change["tables"] == [{"n": number, "wall": 40}]

    tables.hear(summary("t3"), gone=("t2",))
    picture.tell()
    await page.read()
    assert set(page.by_id()) == {"t1", "t3"}
    assert page.fulls == 1


async def test_a_table_that_comes_and_goes_between_two_looks_is_never_told_of() -> None:
    tables, picture = a_lobby()
    page = Page(picture)
    await page.read()
    tables.hear(summary("t1"))
    tables.hear(gone=("t1", "t2"))
    picture.tell()
    change = await page.read()
    assert (change["tables"], change["gone"]) == ([], [])


async def test_tables_that_come_and_go_while_nobody_looks_leave_nothing_behind() -> None:
    tables, picture = a_lobby()
    tables.hear(summary("t0"))
    await Page(picture).read()
    for number in range(1, 100):
        tables.hear(summary(f"t{number}"))
        tables.hear(gone=(f"t{number - 1}",))
    assert tables.touched == {"t0", "t99"}
    page = Page(picture)
    picture.tell()
    await page.read()
    assert set(page.by_id()) == {"t99"}


async def test_a_field_that_is_as_usual_again_is_told() -> None:
    tables, picture = a_lobby()
    page = Page(picture)
    stuck = table_pb2.TableTrouble(kind=table_pb2.TABLE_TROUBLE_KIND_STUCK)
    tables.hear(summary("t1", troubles=[stuck], spectators=3))
    await page.read()
    assert page.by_id()["t1"]["troubles"] == {"stuck": 0}
    tables.hear(summary("t1"))
    picture.tell()
    await page.read()
    assert page.by_id()["t1"] == row(tables.live["t1"])


async def test_who_reads_too_slowly_is_sent_everything_again() -> None:
    tables, picture = a_lobby()
    quick, slow = Page(picture), Page(picture)
    for page in (quick, slow):
        await page.read()
    for wall in range(KEPT_CHANGES):
        tables.hear(summary("t1", wall_tiles=wall))
        picture.tell()
        await quick.read()
    # As much as is kept it still gets, one after the other.
    await slow.read()
    assert slow.by_id()["t1"]["wall"] == 0
    for wall in range(KEPT_CHANGES, 2 * KEPT_CHANGES):
        tables.hear(summary("t1", wall_tiles=wall))
        picture.tell()
        await quick.read()
    await slow.read()
    assert (quick.fulls, slow.fulls) == (1, 2)
    assert quick.by_id() == slow.by_id() == {"t1": row(tables.live["t1"])}


async def test_all_viewers_are_sent_the_same_bytes() -> None:
    tables, picture = a_lobby()
    tables.hear(*(summary(f"t{n}") for n in range(100)))
    async with (
        aclosing(picture.messages(0)) as first,
        aclosing(picture.messages(0)) as second,
    ):
        assert await anext(first) is await anext(second)
        tables.hear(summary("t1", hand_number=4))
        picture.tell()
        assert await anext(first) is await anext(second)


async def test_a_table_that_bots_play_is_followed(tmp_path: Path) -> None:
    async with world(tmp_path, summary_seconds=0.02) as service:
        operator = service.stub("operator")
        tables = Tables(service.channel("service:console"))
        picture = Picture(tables, Figures(Scraper([]), lambda: len(tables.live)))
        page = Page(picture)

        async def read_until(condition: Callable[[], bool]) -> None:
            async with asyncio.timeout(60):
                while not condition():
                    picture.tell()
                    await page.read()
                    await asyncio.sleep(0.01)

        async with tables.running():
            await page.read()
            await read_until(lambda: page.state["away"] is None)
            table_id = (await operator.CreateTable(request(hands=2))).table.table_id
            await read_until(lambda: table_id in page.by_id())
            players = asyncio.create_task(play_all(service, table_id))
            await read_until(lambda: page.by_id()[table_id]["phase"] == "playing")
            wall = page.by_id()[table_id]["wall"]
            await read_until(lambda: page.by_id()[table_id]["wall"] < wall)
            await read_until(lambda: page.by_id()[table_id]["hand"] == 2)
            assert page.by_id()[table_id]["players"] == list(PLAYERS)
            assert page.by_id()[table_id]["away"] == []
            await read_until(lambda: table_id not in page.by_id())
            await players
            assert page.fulls == 1


async def test_tables_stay_while_the_service_is_away_and_those_that_are_over_go_then(
    tmp_path: Path,
) -> None:
    port = free_port()
    async with world(tmp_path, summary_seconds=0.02, listen=f"127.0.0.1:{port}") as service:
        operator = service.stub("operator")
        tables = Tables(service.channel("service:console"))
        async with tables.running():
            kept = (await operator.CreateTable(request("kept"))).table.table_id
            await until_attended(service, kept, "ann")
            await until(lambda: kept in tables.live)
            tables.hear(summary("of a process that is gone"))
            await service.stop()
            await until(lambda: tables.away_since is not None)
            assert tables.trouble
            assert set(tables.live) == {kept, "of a process that is gone"}
            await service.start()
            await until(lambda: set(tables.live) == {kept})
            assert tables.away_since is None


async def test_tables_that_went_between_two_streams_are_gone_though_the_first_ended_in_order() -> (
    None
):
    class Ending(table_pb2_grpc.TableServiceServicer):
        """Ends its first stream as a service that has nothing more to say."""

        streams = 0

        async def WatchTables(
            self, request: table_pb2.WatchTablesRequest, context: Any
        ) -> AsyncIterator[table_pb2.WatchTablesResponse]:
            self.streams += 1
            there = ("kept", "over") if self.streams == 1 else ("kept",)
            changes = table_pb2.TableChanges(tables=map(summary, there), complete=True)
            yield table_pb2.WatchTablesResponse(changes=changes)
            if self.streams > 1:
                await asyncio.Event().wait()

    server = grpc.aio.server()
    table_pb2_grpc.add_TableServiceServicer_to_server(Ending(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            tables = Tables(channel)
            async with tables.running():
                await until(lambda: set(tables.live) == {"kept", "over"})
                await until(lambda: set(tables.live) == {"kept"})
                assert tables.away_since is None
    finally:
        await server.stop(None)
