"""A running table service, or a journal of each engine, for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fangcheng_table.store import Journal

from .journals import ENGINES, OpenJournal
from .world import World, world


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[World]:
    """The table service with a true evaluator and a wallet that obeys."""
    async with world(tmp_path) as it:
        yield it


@pytest.fixture(params=sorted(ENGINES))
def open_journal(request: pytest.FixtureRequest, tmp_path: Path) -> OpenJournal:
    """Opens the same journal again and again."""
    return lambda: ENGINES[request.param](tmp_path)


@pytest.fixture
async def journal(open_journal: OpenJournal) -> AsyncIterator[Journal]:
    opened = await open_journal()
    yield opened
    await opened.close()
