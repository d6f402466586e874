"""One evening for all tests of this folder."""

from __future__ import annotations

import asyncio

import pytest

from tests.suite.whole import KEY

from . import callers
from .evening import Evening, spend


@pytest.fixture(scope="session")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    folder, keys = tmp_path_factory.mktemp("security"), callers.Keys(KEY)
    jwks = str(keys.publish(folder / "jwks.json"))
    return asyncio.run(spend(folder, callers.everybody(keys), jwks=jwks))
