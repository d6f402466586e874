"""A running table service for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .world import World, world


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[World]:
    """The table service with a true evaluator and a wallet that obeys."""
    async with world(tmp_path) as it:
        yield it
