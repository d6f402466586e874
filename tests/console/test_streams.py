"""A stream is somebody's: it ends with the session that it was opened in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fangcheng_console import service, session
from fangcheng_console.features import FEATURES
from fangcheng_console.session import Person, operator, viewer
from fangcheng_console.web import Console, Part
from tests.console.operating import until as eventually
from tests.console.world import World, console
from tests.table.world import until


async def beats() -> AsyncIterator[str]:
    while True:
        yield "on"
        await asyncio.sleep(0.01)


def feature(of: Console) -> Part:
    """A stream for everybody and one for operators, which go on for ever."""

    @viewer
    async def open_to_all(request: Request, person: Person) -> Response:
        return EventSourceResponse(beats())

    @operator
    async def for_operators(request: Request, person: Person) -> Response:
        return EventSourceResponse(beats())

    return Part(
        [Route("/api/all/events", open_to_all), Route("/api/operators/events", for_operators)]
    )


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(service, "FEATURES", (*FEATURES, feature))
    async with console(tmp_path) as served:
        yield served


async def read_to_its_end(stream: httpx.Response, begun: asyncio.Event) -> None:
    async for line in stream.aiter_lines():
        if line:
            begun.set()


async def test_who_has_no_session_or_too_little_gets_no_stream(world: World) -> None:
    async with world.browser() as nobody, world.browser("viewer:wang") as watching:
        for browser, path, expected in (
            (nobody, "/api/all/events", (401, "NOT_SIGNED_IN")),
            (nobody, "/api/operators/events", (401, "NOT_SIGNED_IN")),
            (watching, "/api/operators/events", (403, "OPERATORS_ONLY")),
        ):
            answer = await browser.get(path)
            assert (answer.status_code, answer.json()["error"]["reason"]) == expected


async def test_a_stream_ends_when_its_person_signs_out(world: World) -> None:
    begun = asyncio.Event()
    async with (
        world.browser("operator:mei") as browser,
        browser.client.stream("GET", "/api/operators/events") as stream,
        asyncio.timeout(60),
    ):
        assert stream.headers["content-security-policy"]
        assert "content-encoding" not in stream.headers
        reading = asyncio.create_task(read_to_its_end(stream, begun))
        await begun.wait()
        await browser.post("/api/session", method="DELETE")
        await reading


async def test_a_stream_ends_when_its_session_expires(world: World) -> None:
    begun = asyncio.Event()
    async with world.browser() as browser, asyncio.timeout(60):
        token = world.token("viewer:wang", ttl_seconds=2)
        await browser.post("/api/session", {"token": token})
        async with browser.client.stream("GET", "/api/all/events") as stream:
            await read_to_its_end(stream, begun)
        assert begun.is_set()
        assert (await browser.get("/api/session")).json() == {"person": None}


async def test_a_stream_ends_when_its_browser_signs_in_as_somebody_else(world: World) -> None:
    begun = asyncio.Event()
    async with (
        world.browser("operator:mei") as browser,
        browser.client.stream("GET", "/api/operators/events") as stream,
        asyncio.timeout(60),
    ):
        reading = asyncio.create_task(read_to_its_end(stream, begun))
        await begun.wait()
        answer = await browser.post("/api/session", {"token": world.token("viewer:wang")})
        assert answer.json()["person"] == {"name": "wang", "role": "viewer"}
        await reading


async def test_nobody_has_streams_without_number(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MOST_STREAMS", 1)
    async with (
        world.browser("viewer:wang") as wang,
        world.browser("viewer:wang") as his_other,
        world.browser("viewer:li") as li,
        asyncio.timeout(60),
    ):
        async with wang.client.stream("GET", "/api/all/events"):
            answer = await his_other.get("/api/all/events")
            refusal = answer.status_code, answer.json()["error"]["reason"]
            assert refusal == (429, "TOO_MANY_STREAMS")
            async with li.client.stream("GET", "/api/all/events") as hers:
                assert hers.status_code == 200

        async def may_open() -> bool:
            async with his_other.client.stream("GET", "/api/all/events") as his:
                return his.status_code == 200

        await eventually(may_open, "he may open another one")


@pytest.mark.parametrize("kind", ["lobby", "health"])
async def test_who_follows_something_is_counted_while_it_lasts(world: World, kind: str) -> None:
    def following() -> float | None:
        registry = world.running.kit.registry
        return registry.get_sample_value("fangcheng_console_streams", {"kind": kind})

    async with world.browser("viewer:wang") as browser, asyncio.timeout(60):
        async with browser.client.stream("GET", f"/api/{kind}/events") as stream:
            assert stream.status_code == 200
            assert following() == 1
        await until(lambda: following() == 0)


async def test_an_open_stream_does_not_hold_the_process_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "FEATURES", (*FEATURES, feature))
    begun = asyncio.Event()
    async with httpx.AsyncClient(timeout=60) as client, AsyncExitStack() as process:
        world = await process.enter_async_context(console(tmp_path))
        headers = {"origin": world.address, "x-fangcheng-console": "1"}
        token = {"token": world.token("viewer:wang")}
        await client.post(f"{world.address}/api/session", json=token, headers=headers)
        async with client.stream("GET", f"{world.address}/api/all/events") as stream:
            reading = asyncio.create_task(read_to_its_end(stream, begun))
            await begun.wait()
            async with asyncio.timeout(60):
                await process.aclose()
            with contextlib.suppress(httpx.RemoteProtocolError):  # it was cut
                await reading
