"""Connections that do nothing, or read nothing, on the wire."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fangcheng_console import connections, problems, service, web
from fangcheng_console.features import FEATURES
from fangcheng_console.session import Person, viewer
from fangcheng_console.web import Console, Part
from tests.console.world import World, console

Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]
written = 0
over = asyncio.Event()


async def flood() -> AsyncIterator[str]:
    global written
    while True:
        written += 1
        yield "x" * 65_536
        await asyncio.sleep(0)


class Flood(EventSourceResponse):
    """A stream without a limit of its own to how long a client may take."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            over.set()


def feature(of: Console) -> Part:
    """More than any client reads."""

    @viewer
    async def events(request: Request, person: Person) -> Response:
        return Flood(flood())

    return Part([Route("/api/flood/events", events)])


@asynccontextmanager
async def connected(
    world: World,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, port = world.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


def head(world: World, method: str, path: str, **headers: str) -> bytes:
    host = world.address.removeprefix("http://")
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("begun", [b"", b"GET /api/session HT"])
async def test_who_asks_nothing_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, begun: bytes
) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.2)
    async with (
        console(tmp_path) as world,
        connected(world) as (reader, writer),
        asyncio.timeout(60),
    ):
        for _ in range(before):
            writer.write(head(world, "GET", "/api/session"))
            assert b"200" in await reader.readuntil(b"}")
        writer.write(begun)
        assert await reader.read() == b""


async def test_a_body_that_does_not_come_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "BODY_SECONDS", 0.2)
    async with (
        console(tmp_path) as world,
        connected(world) as (reader, writer),
        asyncio.timeout(60),
    ):
        more = {"content_type": "application/json", "content_length": "20"}
        origin = {"origin": world.address, "x_fangcheng_console": "1"}
        writer.write(head(world, "POST", "/api/session", **more, **origin) + b'{"token": ')
        assert b"TOO_SLOW" in await reader.readuntil(b"}}")


async def test_who_reads_nothing_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALLED_SECONDS", 0.5)
    monkeypatch.setattr(service, "FEATURES", (*FEATURES, feature))
    async with console(tmp_path) as world, world.browser("viewer:wang") as browser:
        host, port = world.address.removeprefix("http://").split(":")
        cookie = "; ".join(f"{name}={value}" for name, value in browser.client.cookies.items())
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.connect((host, int(port)))
            client.sendall(head(world, "GET", "/api/flood/events", cookie=cookie))
            async with asyncio.timeout(60):
                await over.wait()
        assert 0 < written * 65_536 < 2 * 1_024 * 1_024  # what it was not sent was not made


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/api/tables/t1", "/api/tables/t1"),
        ("/api/r/eyJhbGciOi.x.y/analysis", "/api/r/…"),
        ("/" + "x" * 300, "/" + "x" * 199 + "…"),
    ],
)
def test_no_link_stands_in_the_process_s_log(path: str, told: str) -> None:
    request = Request({"type": "http", "path": path, "headers": [], "query_string": b""})
    assert problems.told_path(request) == told
