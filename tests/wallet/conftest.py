"""What the tests of the wallet share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fangcheng_wallet.store import Store
from tests.wallet.ledgers import STORES, OpenStore, open_four


@pytest.fixture(params=sorted(STORES))
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    """Each storage: what one promises, all keep."""
    return STORES[request.param]


@pytest.fixture
async def store(open_store: OpenStore, tmp_path: Path) -> AsyncIterator[Store]:
    """A ledger with the wallets of the four players open; audited after every test."""
    async with open_store(tmp_path) as opened:
        await open_four(opened)
        yield opened
        audit = await opened.audit()
    assert audit.findings == ()
    assert set(audit.sums.values()) <= {0}
