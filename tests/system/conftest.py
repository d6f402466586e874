"""What the tests of the whole suite share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from .browser import chromium
from .running import Running, running


@pytest.fixture(scope="package")
def quiet_suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A suite without bots of its own, for tests that leave it as it was."""
    with running(tmp_path_factory.mktemp("quiet"), "--tables", "0") as suite:
        yield suite


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium of a test file's own."""
    with chromium() as started:
        yield started
