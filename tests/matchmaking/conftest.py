"""What the tests of matchmaking share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from fangcheng_matchmaking.migrations import QUEUES
from fangcheng_matchmaking.postgres import open_postgres
from fangcheng_matchmaking.sqlite import open_sqlite
from fangcheng_matchmaking.store import Store
from tests.matchmaking.world import World
from tests.postgres import database_of

Open = Callable[[], Awaitable[Store]]


@pytest.fixture
async def stopped_world(tmp_path: Path) -> AsyncIterator[World]:
    """Wallet and tables run; matchmaking does not yet."""
    async with AsyncExitStack() as stack:
        world = World(tmp_path, stack)
        await world.open()
        yield world
        await world.stop()


@pytest.fixture
async def world(stopped_world: World) -> World:
    await stopped_world.start()
    return stopped_world


@pytest.fixture(params=["sqlite", "postgres"])
async def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens the store anew each time it is called, as a process that was restarted would."""
    opened: list[Store] = []

    async def open_store() -> Store:
        while opened:
            await opened.pop().close()
        if request.param == "sqlite":
            opened.append(await open_sqlite(tmp_path / "matchmaking.db"))
        else:
            opened.append(await open_postgres(await database_of(tmp_path, QUEUES)))
        return opened[-1]

    yield open_store
    while opened:
        await opened.pop().close()


@pytest.fixture
async def store(reopen: Open) -> Store:
    return await reopen()
