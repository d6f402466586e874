"""The example of a gateway: frames to and fro, who is let in, and how connections end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.exceptions import InvalidStatus

from fangcheng.table.v1 import events_pb2, table_pb2
from fangcheng_client import many, streams
from fangcheng_kit import errors
from fangcheng_kit.tokens import mint_token
from studio_gateway import hub
from studio_gateway.server import Gateway
from studio_gateway.settings import Settings
from tests.client.test_many import done, events, problem
from tests.client.test_streams import AWAY, KEY, connected
from tests.suite.whole import eventually

from .phones import Phone, Tables, dialled, phone, settings, token

ACT = {"tableId": "t1", "decisionId": "1-1", "action": {"kind": "pass"}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(streams, "LONGEST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(many, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(hub, "AGAIN_SECONDS", 0.01)


@asynccontextmanager
async def relaying(tables: Tables, folder: Path, **more: Any) -> AsyncIterator[Gateway]:
    """A gateway to these tables."""
    async with connected(tables, subject="service:gateway", scopes=["act_as"]) as channel:
        gateway = Gateway(settings(folder, "", **more), channel, channel)
        async with gateway.running():
            yield gateway


async def asked(tables: Tables, *what: str) -> None:
    """Wait until the tables were asked this, and nothing else."""
    await eventually(lambda: len(tables.asked) >= len(what), f"asked {what}, not {tables.asked}")
    assert tables.asked == [*what]


def closed(gateway: Gateway, reason: str) -> Callable[[], bool]:
    """Whether a connection was closed for a reason."""
    sample = {"reason": reason}
    return lambda: bool(gateway.metrics.registry.get_sample_value("gateway_closed_total", sample))


async def test_a_seat_is_followed_and_acts_are_answered(tmp_path: Path) -> None:
    tables = Tables()
    async with relaying(tables, tmp_path) as gateway, phone(gateway.port, "ming") as ming:
        await ming.say(attend={"tableId": "t1", "fromNumber": "40", "muted": [2]})
        await asked(tables, "add ming 40 not 2")
        tables.out.put_nowait(events(("ming", 41)))
        event = (await ming.hears())["event"]
        drawn = {"seat": 1, "tile": 0, "origin": "", "wallTiles": 0}
        assert event == {"tableId": "t1", "event": {"number": "41", "drawn": drawn}}
        await ming.say(id=7, act=ACT)
        await ming.say(id="second", act={**ACT, "decisionId": "1-2"})
        await asked(tables, "add ming 40 not 2", "act ming 1-1", "act ming 1-2")
        tables.out.put_nowait(events(("ming", 42), acted="ming 1-1"))
        assert "event" in await ming.hears()
        assert await ming.hears() == {"id": 7, "acted": {"tableId": "t1", "decisionId": "1-1"}}
        tables.out.put_nowait(problem("ming", "STALE_DECISION", "1-2"))
        told = {"reason": "STALE_DECISION", "message": "", "field": ""}
        said = {"tableId": "t1", "decisionId": "1-2", "problem": told}
        assert await ming.hears() == {"id": "second", "problem": said}
        talk = table_pb2.SeatTalk(player_id="ming", table_id="t1", talk={"phrase": "hello"})
        tables.out.put_nowait(table_pb2.AttendManyResponse(talk=talk))
        assert (await ming.hears())["talk"]["talk"] == {"seat": 0, "phrase": "hello"}
        tables.out.put_nowait(done("ming"))
        assert await ming.hears() == {"done": {"tableId": "t1"}}
        await ming.say(id=8, act=ACT)  # not there any more: answered here
        assert (await ming.hears())["problem"]["problem"]["reason"] == "NOT_ADDED"
    count = gateway.metrics.registry.get_sample_value
    assert count("gateway_frames_total", {"kind": "event"}) == 2
    assert count("gateway_act_seconds_count") == 2
    assert count("gateway_connections") == count("gateway_seats") == 0


async def test_each_hears_of_his_own_seat_whoever_he_says_he_is(tmp_path: Path) -> None:
    tables = Tables()
    async with (
        relaying(tables, tmp_path) as gateway,
        phone(gateway.port, "ming") as ming,
        phone(gateway.port, "兰") as lan,
    ):
        await ming.say(attend={"tableId": "t1", "playerId": "兰"})
        await asked(tables, "add ming 0")
        await lan.say(attend={"tableId": "t1"})
        await asked(tables, "add ming 0", "add 兰 0")
        tables.out.put_nowait(events(("兰", 1), ("ming", 1), ("兰", 2), ("zhu", 1)))
        tables.out.put_nowait(done("ming"))
        assert [next(iter(await ming.hears())) for _ in range(2)] == ["event", "done"]
        numbers = [(await lan.hears())["event"]["event"]["number"] for _ in range(2)]
        assert numbers == ["1", "2"]
        await ming.say(id="last", detach={})
        assert (await ming.hears())["id"] == "last"  # there was nothing else


NOBODY = Ed25519PrivateKey.generate()
UNSIGNED = jwt.encode({"sub": "ming", "aud": "gateway", "exp": 2**40}, None, "none")
SHARED = jwt.encode({"sub": "ming", "aud": "gateway", "exp": 2**40}, "k" * 32, "HS256")


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ({"hello": {"token": token("ming", key=NOBODY)}}, "TOKEN_INVALID"),
        ({"hello": {"token": UNSIGNED}}, "TOKEN_INVALID"),
        ({"hello": {"token": SHARED}}, "TOKEN_INVALID"),
        ({"hello": {"token": token("ming", aud="fangcheng")}}, "TOKEN_INVALID"),
        ({"hello": {"token": token("ming", sub=None)}}, "TOKEN_INVALID"),
        ({"hello": {"token": token("ming", exp=None)}}, "TOKEN_INVALID"),
        ({"hello": {"token": token("")}}, "TOKEN_INVALID"),
        ({"hello": {"token": token("m" * 129)}}, "TOKEN_INVALID"),
        ({"hello": {"token": token("\ud800")}}, "TOKEN_INVALID"),
        ({"hello": {"token": 7}}, "TOKEN_INVALID"),
        ({"hello": {"playerId": "ming"}}, "TOKEN_INVALID"),
        ({"hello": {"token": token("ming", seconds=-60)}}, "TOKEN_EXPIRED"),
        ({"attend": {"tableId": "t1"}}, "HELLO_MISSING"),
        ({}, "HELLO_MISSING"),
        (None, "HELLO_MISSING"),
    ],
)
async def test_who_has_no_good_token_is_not_let_in(
    first: dict[str, Any] | None, reason: str, tmp_path: Path
) -> None:
    tables = Tables()
    more = {"hello_seconds": 0.1} if first is None else {}
    async with relaying(tables, tmp_path, **more) as gateway, dialled(gateway.port) as client:
        if first is not None:
            await client.say(**first)
        assert await client.end() == (4401, reason)
    assert tables.asked == []


LONG = "d" * 65


@pytest.mark.parametrize(
    ("text", "frame_id"),
    [
        ("{", None),
        ("[" * 10_000, None),
        ("7", None),
        ('{"id": 1}', 1),
        ('{"id": true, "detach": {"tableId": "t1"}}', None),
        ('{"id": [1], "detach": {"tableId": "t1"}}', None),
        ('{"id": "\\ud800", "detach": {"tableId": "t1"}}', None),
        ('{"id": 2, "attend": {"tableId": "t1"}, "act": {}}', 2),
        ('{"id": 3, "shout": {}}', 3),
        ('{"id": 4, "hello": "ming"}', 4),
        ('{"id": 5, "attend": {"tableId": "t1", "from": 7}}', 5),
        ('{"id": 6, "attend": {"tableId": "t1", "fromNumber": -1}}', 6),
        ('{"id": 7, "attend": {"tableId": "\\ud800"}}', 7),
        ('{"id": 8, "attend": {"tableId": "t1", "muted": [9]}}', 8),
        ('{"id": 9, "attend": {}}', 9),
        ('{"id": "a", "act": {"tableId": "t1", "decisionId": "' + LONG + '", "action": {}}}', "a"),
        ('{"id": "b", "act": {"tableId": "t1", "decisionId": "1-1"}}', "b"),
        ('{"id": "c", "act": 7}', "c"),
        ('{"id": "d", "Say": {"tableId": "t1"}}', "d"),
        ('{"id": "e", "CreateTable": {}}', "e"),
        ('{"id": "f", "Say": {"\\ud800": 1}}', "f"),
    ],
)
async def test_a_frame_against_the_contract_is_refused_alone(
    text: str, frame_id: Any, tmp_path: Path
) -> None:
    tables = Tables()
    async with relaying(tables, tmp_path) as gateway, phone(gateway.port, "ming") as ming:
        await ming.socket.send(text)
        told = await ming.hears()
        assert told["problem"]["problem"]["reason"] == "INVALID_FRAME"
        assert told.get("id") == frame_id
        await ming.say(attend={"tableId": "t2"})
        await asked(tables, "add ming 0")


async def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    async with relaying(Tables(), tmp_path) as gateway, phone(gateway.port, "ming") as ming:
        await ming.socket.send("x" * 20_000)
        assert (await ming.end())[0] == 1009


async def test_a_second_connection_replaces_the_first_and_goes_on_from_its_own_number(
    tmp_path: Path,
) -> None:
    tables = Tables()
    async with (
        relaying(tables, tmp_path) as gateway,
        phone(gateway.port, "ming") as first,
    ):
        await first.say(attend={"tableId": "t1"})
        await asked(tables, "add ming 0")
        tables.out.put_nowait(events(*(("ming", number) for number in range(1, 5))))
        await first.hears("event")
        async with phone(gateway.port, "ming") as second:
            assert await first.end() == (4409, "REPLACED")
            await second.say(attend={"tableId": "t1", "fromNumber": 2})
            await asked(tables, "add ming 0", "remove ming", "add ming 2")
            # 5 was on its way to the first already; 3 is what the second asked for.
            tables.out.put_nowait(events(("ming", 5)))
            tables.out.put_nowait(events(("ming", 3), ("ming", 4), ("ming", 5)))
            heard = [(await second.hears())["event"]["event"]["number"] for _ in range(3)]
            assert heard == ["3", "4", "5"]
            tables.out.put_nowait(problem("ming", "ATTENDED_ELSEWHERE"))
            assert await second.end() == (4409, "REPLACED")
    assert tables.streams == 1


async def test_a_break_above_is_not_noticed_below(tmp_path: Path) -> None:
    tables = Tables()
    async with relaying(tables, tmp_path) as gateway, phone(gateway.port, "ming") as ming:
        await ming.say(attend={"tableId": "t1"})
        tables.out.put_nowait(events(("ming", 1)))
        await ming.hears("event")
        await ming.say(id=1, act=ACT)
        await asked(tables, "add ming 0", "act ming 1-1")
        tables.out.put_nowait(AWAY)
        await asked(tables, "add ming 0", "act ming 1-1", "add ming 1", "act ming 1-1")
        tables.out.put_nowait(events(("ming", 1), ("ming", 2), acted="ming 1-1"))
        assert (await ming.hears())["event"]["event"]["number"] == "2"
        assert (await ming.hears())["id"] == 1


async def test_what_is_given_up_above_ends_the_connections_and_is_begun_anew(
    tmp_path: Path,
) -> None:
    tables = Tables()
    async with relaying(tables, tmp_path) as gateway:
        async with phone(gateway.port, "ming") as ming:
            await ming.say(attend={"tableId": "t1"})
            await asked(tables, "add ming 0")
            tables.out.put_nowait(errors.PermissionDenied("CALLER_NOT_ALLOWED", "No."))
            assert await ming.end() == (1013, "UPSTREAM_LOST")
        await eventually(lambda: tables.streams == 2, "another stream is opened")
        async with phone(gateway.port, "ming") as ming:
            await ming.say(attend={"tableId": "t1", "fromNumber": 1})
            tables.out.put_nowait(events(("ming", 2)))
            assert (await ming.hears())["event"]["event"]["number"] == "2"


async def test_a_token_of_its_own_that_cannot_be_read_is_waited_for(tmp_path: Path) -> None:
    tables, mine = Tables(), tmp_path / "mine"
    async with connected(tables, token=lambda: mine.read_text("utf-8")) as channel:
        gateway = Gateway(settings(tmp_path, ""), channel, channel)
        async with gateway.running(), phone(gateway.port, "ming") as ming:
            await ming.say(id=1, GetPlayerStatus={})
            assert (await ming.hears())["problem"]["problem"]["reason"] == "UPSTREAM_LOST"
            mine.write_text(mint_token(KEY, "service:gateway", ["act_as"]), "utf-8")
            await eventually(lambda: tables.streams == 1, "a stream is opened")


async def test_heartbeats_go_both_ways(tmp_path: Path) -> None:
    beats = {"heartbeat_seconds": 0.02, "silence_seconds": 0.5}
    async with relaying(Tables(), tmp_path, **beats) as gateway:
        async with phone(gateway.port, "ming") as ming:
            assert (await ming.hears("heartbeat"))["heartbeat"]["serverTimeMs"] > 0
            assert await ming.end() == (4408, "SILENT")  # read, but not answered
        assert closed(gateway, "SILENT")()


async def test_a_connection_ends_with_its_token_unless_it_shows_another(tmp_path: Path) -> None:
    async with relaying(Tables(), tmp_path) as gateway, phone(gateway.port, "ming") as ming:
        await ming.say(id=1, hello={"token": token("ming")})
        assert (await ming.hears())["id"] == 1
        await ming.say(hello={"token": token("ming", seconds=-8.5)})  # the clocks may differ by 10
        assert await ming.end() == (4401, "TOKEN_EXPIRED")
        async with phone(gateway.port, "ming") as again:
            await again.say(hello={"token": token("lan")})
            assert await again.end() == (4401, "TOKEN_INVALID")


async def test_a_client_that_does_not_read_is_cut_off_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio_gateway.server.CLOSE_SECONDS", 0.1)
    tables = Tables()
    large = events_pb2.TableOpened()
    large.table.table_id = "x" * 100_000
    async with (
        relaying(tables, tmp_path, behind_bytes=300_000) as gateway,
        phone(gateway.port, "slow") as slow,
        phone(gateway.port, "quick") as quick_one,
    ):
        for client in (slow, quick_one):
            await client.say(attend={"tableId": "t1"})
        await eventually(lambda: len(tables.asked) == 2, "both attend")
        slow.socket.transport.pause_reading()
        number = 0
        while not closed(gateway, "READER_TOO_SLOW")():
            number += 1
            event = events_pb2.TableEvent(number=number, table_opened=large)
            tables.out.put_nowait(events(("slow", event), ("quick", event)))
            heard = await quick_one.hears()
            assert heard["event"]["event"]["number"] == str(number)
        assert number > 2
        await eventually(lambda: "remove slow" in tables.asked, "its seat is let go")
        slow.socket.transport.abort()


async def test_too_many_frames_wait_and_too_many_acts_are_refused(tmp_path: Path) -> None:
    tables = Tables()
    async with relaying(tables, tmp_path) as gateway, phone(gateway.port, "ming") as ming:
        await ming.say(attend={"tableId": "t1"})
        for number in range(17):
            await ming.say(id=number, act={**ACT, "decisionId": f"1-{number}"})
        told = await ming.hears()
        assert (told["id"], told["problem"]["problem"]["reason"]) == (16, "TOO_MANY_CALLS")
        await eventually(lambda: len(tables.asked) == 17, "the others were given")


async def test_the_end_of_a_process_sends_its_clients_to_another(tmp_path: Path) -> None:
    tables = Tables()
    async with dialled_during(tables, tmp_path) as (gateway, ming):
        url = f"http://127.0.0.1:{gateway.port}"
        async with httpx.AsyncClient() as web:
            assert (await web.get(f"{url}/healthz")).status_code == 200
            assert (await web.get(f"{url}/else")).status_code == 404
    assert await ming.end() == (1012, "RESTARTING")


@asynccontextmanager
async def dialled_during(tables: Tables, folder: Path) -> AsyncIterator[tuple[Gateway, Phone]]:
    """A client that lives longer than its gateway."""
    async with relaying(tables, folder) as gateway:
        dial = phone(gateway.port, "ming")
        ming = await dial.__aenter__()
        yield gateway, ming


async def test_a_full_gateway_says_so(tmp_path: Path) -> None:
    async with relaying(Tables(), tmp_path, connections=1) as gateway, phone(gateway.port, "ming"):
        with pytest.raises(InvalidStatus) as caught:
            async with phone(gateway.port, "lan"):
                pass
        assert caught.value.response.status_code == 503


def test_settings_come_from_the_environment() -> None:
    given = {"GATEWAY_PLAYER_KEY": "k", "GATEWAY_TOKEN_FILE": "t", "GATEWAY_PORT": "9"}
    assert Settings.of({**given, "GATEWAY_SILENCE_SECONDS": "2.5"}).silence_seconds == 2.5
    assert Settings.of(given).port == 9
    with pytest.raises(SystemExit, match="GATEWAY_PLAYER_KEY is not set"):
        Settings.of({})
    with pytest.raises(SystemExit, match="GATEWAY_PORT"):
        Settings.of({**given, "GATEWAY_PORT": "x"})
