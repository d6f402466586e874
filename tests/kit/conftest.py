"""What the tests of the kit share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from fangcheng_kit import Running
from tests.kit.echo import Echo, Stub, connected, serving_echo


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
async def running(echo: Echo) -> AsyncIterator[Running]:
    async with serving_echo(echo) as server:
        yield server


@pytest.fixture
async def stub(running: Running) -> AsyncIterator[Stub]:
    async with connected(running) as channel:
        yield Stub(channel)


Eventually = Callable[[Callable[[], bool]], Awaitable[None]]


@pytest.fixture
def eventually() -> Eventually:
    """Wait until a condition holds; fail after a minute."""

    async def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "it did not come true"
            await asyncio.sleep(0.01)

    return wait
