"""What the tests of matchmaking share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.matchmaking.world import World


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
