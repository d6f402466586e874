"""The drill: a wallet is backed up while tables are played, lost, restored, and told by the tables'
journal what it has missed."""

from __future__ import annotations

import asyncio
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fangcheng.table.v1 import state_pb2
from fangcheng.wallet.v1 import settlement_pb2 as settling
from fangcheng.wallet.v1 import wallet_pb2 as wallet
from fangcheng_suite.access import Access
from fangcheng_suite.errors import SuiteError
from fangcheng_suite.restoring import back_up, replay, restore_ledger
from tests.table.world import DEV_KEY, PLAYERS, play_all, request, until, world
from tests.wallet.wire import CURRENCIES, KEY, Served, served

ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)


def told() -> Console:
    return Console(file=io.StringIO(), width=10_000, color_system=None)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def everything(bank: Served) -> dict[str, int]:
    """The silver of each player, held or not."""
    found = {}
    for player in PLAYERS:
        answer = await bank.operator.wallet.GetBalances(wallet.GetBalancesRequest(player_id=player))
        found[player] = sum(one.available + one.held for one in answer.balances)
    return found


async def play(service: Any, bank: Served, name: str) -> None:
    """A table of four hands for silver, from its buy-ins to its end."""
    held = await bank.matchmaking.settlement.PlaceHolds(
        settling.PlaceHoldsRequest(
            request_id=name,
            holds=[
                settling.HoldRequest(player_id=player, currency="silver", amount=500)
                for player in PLAYERS
            ],
        )
    )
    message = request(
        name,
        hands=4,
        stakes=[state_pb2.Stake(currency="silver", per_unit=10)],
        fees=[state_pb2.TableFee(currency="silver", amount=3)],
        labels={"club": "17"},
    )
    for seat, hold in zip(message.seats, held.holds, strict=True):
        seat.hold_ids.append(hold.hold_id)
    made = await service.stub("service:matchmaking").CreateTable(message)
    await play_all(service, made.table.table_id)


async def test_the_drill(tmp_path: Path) -> None:
    assert DEV_KEY == KEY
    lost, found = tmp_path / "lost", tmp_path / "found"
    lost.mkdir()
    found.mkdir()
    (found / "currencies.yaml").write_text(CURRENCIES)
    kele = {"rule_set": "baishan_kele", "phase": "closed"}
    async with served(lost) as bank:
        async with world(tmp_path, wallet=bank.running.address) as service:
            for player in PLAYERS:
                await bank.operator.wallet.OpenWallet(wallet.OpenWalletRequest(player_id=player))
                await bank.operator.wallet.Deposit(
                    wallet.DepositRequest(
                        request_id=player, player_id=player, currency="silver", amount=10_000
                    )
                )
            await play(service, bank, "before")
            playing = asyncio.create_task(play(service, bank, "meanwhile"))
            await until(lambda: bank.metric("settlements_total", outcome="paid") >= 5)
            await back_up(str(lost / "wallet.db"), tmp_path / "backup", told())
            await playing
            await play(service, bank, "after")
            await until(lambda: not service.value("fangcheng_tables", **kele))
        expected = await everything(bank)
        settled = (await bank.operator.wallet.AuditLedger(wallet.AuditLedgerRequest())).settlements
        assert settled == 12

    console = told()
    await restore_ledger(
        tmp_path / "backup", str(found / "wallet.db"), found / "currencies.yaml", console
    )
    assert "every entry is as it was written" in text(console)
    async with served(found) as bank:
        assert await everything(bank) != expected
        access = Access(lambda service: bank.running.address, KEY)
        for summary in ("settled now", "12 known, 0 settled now"):
            console = told()
            await replay(access, str(tmp_path / "table.db"), ALWAYS, console)
            assert "12 settlements told" in text(console)
            assert summary in text(console)
            assert "0 paid otherwise than before, 0 refused" in text(console)
        assert await everything(bank) == expected
        audit = await bank.operator.wallet.AuditLedger(wallet.AuditLedgerRequest())
        assert list(audit.findings) == []
        assert audit.settlements == 12
        console = told()
        await replay(access, str(tmp_path / "table.db"), datetime.now(UTC), console)
        assert "0 settlements told" in text(console)
        with pytest.raises(SuiteError, match="there is no journal"):
            await replay(access, str(tmp_path / "none.db"), ALWAYS, told())
