"""What the commands around the ledger and the wallet do, at a wallet that serves."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from pyarrow import parquet
from rich.console import Console

from fangcheng.wallet.v1 import wallet_pb2 as wire
from fangcheng_kit.tokens import mint_token
from fangcheng_suite.access import Access
from fangcheng_suite.conforming import Wallet, check_wallet
from fangcheng_suite.errors import ConformanceFailed, LedgerTampered, SuiteError
from fangcheng_suite.ledgers import COLUMNS, export_ledger, read_head, verify_ledger
from tests.studio_wallet import StudioWallet, serving
from tests.suite.test_conformance import Backwards
from tests.wallet.ledgers import PLAYERS
from tests.wallet.test_service import deposit, pay, settle
from tests.wallet.wire import KEY, Served, served

FANGCHENG = Path(sys.executable).with_name("fangcheng")


class Told(Console):
    """Keeps what is printed."""

    def __init__(self) -> None:
        super().__init__(file=io.StringIO(), width=10_000, color_system=None)

    @property
    def text(self) -> str:
        assert isinstance(self.file, io.StringIO)
        return self.file.getvalue()


@pytest.fixture
async def wallet(tmp_path: Path) -> AsyncIterator[Served]:
    """A wallet with four deposits and a settlement."""
    async with served(tmp_path) as wallet:
        for player in PLAYERS:
            await wallet.operator.wallet.OpenWallet(wire.OpenWalletRequest(player_id=player))
            await wallet.operator.wallet.Deposit(deposit(f"first of {player}", player, 1_000))
        await wallet.table.settlement.Settle(settle("t/1", pay(1, 0, 30), club="north, 一"))
        yield wallet


def access_to(wallet: Served) -> Access:
    return Access(lambda service: wallet.running.address, KEY)


async def chained(wallet: Served) -> None:
    """Wait until the chain has reached the last entry."""
    waiting = 1
    while waiting:
        found = await wallet.operator.wallet.VerifyLedger(wire.VerifyLedgerRequest())
        waiting = found.waiting


# Export.


async def test_the_ledger_is_exported_as_csv_and_gone_on_with(
    wallet: Served, tmp_path: Path
) -> None:
    path, told = tmp_path / "entries.csv", Told()
    await export_ledger(access_to(wallet), told, path, "", "")
    rows = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    assert tuple(rows[0]) == COLUMNS
    assert [int(row["sequence"]) for row in rows] == list(range(1, 11))
    assert sum(int(row["amount"]) for row in rows) == 0
    last = rows[-1]
    assert (last["account"], last["owner"], last["amount"]) == ("player", "bo", "-30")
    assert (last["verb"], last["reference"], last["reason"]) == ("settle", "t/1", "win")
    assert json.loads(last["labels"]) == {"club": "north, 一"}
    assert last["time"].endswith("+00:00")
    assert "--after 10" in told.text
    await wallet.table.settlement.Settle(settle("t/2", pay(1, 0, 5)))
    await export_ledger(access_to(wallet), told, path, "10", "")
    rest = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    assert [row["reference"] for row in rest] == ["t/2", "t/2"]


async def test_parquet_has_numbers_and_times(wallet: Served, tmp_path: Path) -> None:
    path = tmp_path / "entries.parquet"
    await export_ledger(access_to(wallet), Told(), path, "", "silver")
    table = parquet.read_table(path)
    assert tuple(table.column_names) == COLUMNS
    assert str(table.schema.field("amount").type) == "int64"
    assert str(table.schema.field("time").type) == "timestamp[us, tz=UTC]"
    assert table.column("sequence").to_pylist() == list(range(1, 11))


async def test_an_export_that_fails_leaves_no_file(wallet: Served, tmp_path: Path) -> None:
    path = tmp_path / "entries.csv"
    with pytest.raises(SuiteError, match="INVALID_CURSOR"):
        await export_ledger(access_to(wallet), Told(), path, "the third", "")
    with pytest.raises(SuiteError, match="cannot write"):
        await export_ledger(access_to(wallet), Told(), tmp_path / "no" / "e.csv", "", "")
    assert {one.name for one in os.scandir(tmp_path)}.isdisjoint({path.name, path.name + ".part"})


# Verify.


async def test_an_untouched_ledger_is_verified_and_tells_its_head(wallet: Served) -> None:
    await chained(wallet)
    told = Told()
    await verify_ledger(access_to(wallet), told, 0, "")
    assert "5 operations, 10 entries compared" in told.text
    (head,) = [line.split()[1] for line in told.text.splitlines() if "head" in line]
    await verify_ledger(access_to(wallet), told, *read_head(head))


async def test_the_first_entry_that_was_tampered_with_is_named(tmp_path: Path) -> None:
    async with served(tmp_path) as wallet:
        await wallet.operator.wallet.OpenWallet(wire.OpenWalletRequest(player_id="amy"))
        for number in range(4):
            await wallet.operator.wallet.Deposit(deposit(f"d{number}", "amy", 10))
        await chained(wallet)
    with closing(sqlite3.connect(tmp_path / "wallet.db")) as db:
        db.execute("DROP TRIGGER postings_stay")
        db.execute("UPDATE postings SET memo = 'mine' WHERE id IN (3, 5)")
        db.commit()
    async with served(tmp_path) as wallet:
        with pytest.raises(LedgerTampered, match=r"entry 3") as caught:
            await verify_ledger(access_to(wallet), Told(), 0, "")
    assert caught.value.details


@pytest.mark.parametrize("text", ["41870", "41870:", ":9f", "many:9f", "-1:9f"])
def test_what_is_no_head_is_told(text: str) -> None:
    with pytest.raises(SuiteError, match="is no head"):
        read_head(text)


# Conformance.


def wallet_at(address: str, **more: object) -> Wallet:
    fields: dict[str, object] = {
        "targets": [address],
        "players": PLAYERS,
        "currency": "silver",
        "book": "",
        "table_token": None,
        "matchmaking_token": None,
        "operator_token": None,
        **more,
    }
    return Wallet(**fields)


async def test_the_command_tells_which_promise_is_broken() -> None:
    told = Told()
    async with serving(Backwards(PLAYERS)) as address:
        with pytest.raises(ConformanceFailed, match="1 of 2 promises are broken"):
            await check_wallet(wallet_at(address), ["pays", "holds-first"], told)
    assert "kept   pays" in told.text
    assert "BROKEN holds-first" in told.text
    assert "the payer has (500, 300) instead of (700, 100)" in told.text


async def test_the_command_opens_wallets_of_its_own_at_ours(tmp_path: Path) -> None:
    told = Told()
    tokens = {
        f"{name}_token": mint_token(KEY, subject)
        for name, subject in (
            ("table", "service:table"),
            ("matchmaking", "service:matchmaking"),
            ("operator", "operator"),
        )
    }
    async with served(tmp_path) as wallet:
        asked = wallet_at(wallet.running.address, players=[], **tokens)
        await check_wallet(asked, ["pays", "one-key"], told)
    assert "All 2 promises are kept." in told.text


async def test_what_the_command_needs_is_told() -> None:
    async with serving(StudioWallet(PLAYERS)) as address:
        for asked, only, complaint in (
            (wallet_at(address, players=["amy", "bo"]), [], "2 players were named; four"),
            (wallet_at(address, players=[]), [], "does not open wallets itself"),
            (wallet_at(address), ["miracles"], "there is no check miracles"),
            (wallet_at(address, ca_file=Path("none.pem")), [], "cannot read none.pem"),
            (wallet_at("studio.example:9000", table_token="t"), [], "plain text"),
            (wallet_at("127.0.0.1:1"), [], "the wallet does not answer"),
            (wallet_at(address, players=[*PLAYERS[:3], "eve"]), [], "UNKNOWN_WALLET"),
            (wallet_at(address, currency="gold"), [], "UNKNOWN_CURRENCY"),
        ):
            with pytest.raises(SuiteError, match=complaint):
                await check_wallet(asked, only, Told())


async def test_a_token_that_is_not_taken_is_no_broken_promise(wallet: Served) -> None:
    table, told = mint_token(KEY, "service:table"), Told()
    for tokens in (("garbage", table), (table, "garbage"), (None, table)):
        asked = wallet_at(
            wallet.running.address, table_token=tokens[0], matchmaking_token=tokens[1]
        )
        with pytest.raises(SuiteError, match="refuses the caller") as caught:
            await check_wallet(asked, [], told)
        assert "--token" in str(caught.value.hint)
    assert told.text == ""


# Elsewhere.


async def ledger(token: str, *command: str) -> tuple[int | None, str]:
    """Exit code of `fangcheng ledger …`, and what it tells."""
    asked = await asyncio.create_subprocess_exec(
        *(FANGCHENG, "ledger", *command),
        env={**os.environ, "FANGCHENG_TOKEN": token},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await asked.communicate()
    return asked.returncode, told.decode()


async def test_a_wallet_that_no_suite_runs_is_audited_verified_and_exported(
    wallet: Served, tmp_path: Path
) -> None:
    await chained(wallet)
    file = tmp_path / "entries.csv"

    async def ask(token: str, *command: str) -> tuple[int | None, str]:
        return await ledger(token, *command, "--target", wallet.running.address)

    for command, seen in (
        (["audit"], "The ledger is balanced."),
        (["verify"], "Every entry is as it was written."),
        (["export", str(file)], "10 entries in"),
    ):
        code, told = await ask(mint_token(KEY, "operator"), *command)
        assert (code, seen in told) == (0, True), told
        code, told = await ask("garbage", *command)
        assert (code, "TOKEN_INVALID" in told) == (1, True), told
    assert len(file.read_text().splitlines()) == 11


async def test_who_names_a_wallet_elsewhere_is_told_about_that_one() -> None:
    code, told = await ledger("t", "audit", "--target", "127.0.0.1:1")
    assert code == 1
    assert "Does it listen on 127.0.0.1:1?" in told
    assert "fangcheng up" not in told
    # The journal of a suite on this computer is not what a wallet elsewhere is to be told.
    code, told = await ledger("t", "replay", "--target", "127.0.0.1:1")
    assert (code, "--journal" in told) == (1, True), told
