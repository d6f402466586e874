"""Our own wallet keeps every promise that a studio's is held to."""

from __future__ import annotations

from pathlib import Path

import pytest

from fangcheng.wallet.v1 import wallet_pb2 as wire
from fangcheng_suite.conformance import Target, run_checks
from tests.wallet.ledgers import PLAYERS
from tests.wallet.postgres import database_of
from tests.wallet.wire import served


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_our_wallet_keeps_every_promise(tmp_path: Path, engine: str) -> None:
    database = await database_of(tmp_path) if engine == "postgres" else ""
    async with served(tmp_path, database) as wallet:
        for player in PLAYERS:
            await wallet.operator.wallet.OpenWallet(wire.OpenWalletRequest(player_id=player))
        target = Target([wallet.table.channel], [wallet.matchmaking.channel], PLAYERS)
        broken = {one.check.name: one.saw async for one in run_checks(target) if not one.kept}
        assert broken == {}
        audit = await wallet.operator.wallet.AuditLedger(wire.AuditLedgerRequest())
        assert list(audit.findings) == []
