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
    scopes = {"gateway": frozenset({"act_as"})}
    everybody = callers.everybody(keys)
    return asyncio.run(spend(folder, everybody, jwks=jwks, certificate_scopes=scopes))
