"""A month is moved out of the ledger, and everything else goes on."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest
from rich.console import Console

from fangcheng_kit.privacy import Erasure
from fangcheng_suite.archiving import archive_month
from fangcheng_suite.errors import SuiteError
from fangcheng_wallet.archive import ArchiveFailed, archive
from fangcheng_wallet.errors import TimeArchived
from fangcheng_wallet.keeper import tend
from fangcheng_wallet.ledger import Done, LeaderboardQuery
from fangcheng_wallet.postgres import PostgresStore, open_postgres
from tests.wallet.ledgers import (
    CURRENCIES,
    all_have,
    deposit,
    entries,
    has,
    hold_one,
    open_four,
    points,
    refused,
    release,
    settle,
    silver,
    withdraw,
)
from tests.wallet.postgres import database_of

JANUARY_US = 1_767_225_600_000_000
FEBRUARY_US = 1_769_904_000_000_000
MARCH_US = 1_772_323_200_000_000


class Years:
    """A ledger with something in January, February and March 2026."""

    def __init__(self, address: str, store: PostgresStore, hold_id: str) -> None:
        self.address = address
        self.store = store
        self.hold_id = hold_id


@pytest.fixture
async def years(tmp_path: Path) -> AsyncIterator[Years]:
    address = await database_of(tmp_path)
    now = [JANUARY_US]
    async with open_postgres(
        address, CURRENCIES, clock=lambda: now[0], hold_seconds=90 * 86_400
    ) as store:
        await open_four(store, 1_000)
        hold = await hold_one(store, "h", "amy", 300)
        await store.settle(settle("t/1", silver(1, 0, 100), points(1, 0, 7)))
        now[0] = FEBRUARY_US
        await store.settle(settle("t/2", silver(2, 0, 50), points(2, 0, 5)))
        now[0] = MARCH_US
        await store.settle(settle("t/3", silver(0, 3, 10)))
        await tend(store)
        yield Years(address, store, hold.hold_id)
        assert (await store.audit()).findings == ()
        assert (await store.verify()).finding == ""


async def test_a_month_moves_to_a_file_and_the_ledger_goes_on(years: Years, tmp_path: Path) -> None:
    store = years.store
    before = [await store.balances(player) for player in ("amy", "bo")]
    length, head = (report := await store.verify()).operations, report.head
    file = tmp_path / "january.json.gz"
    done = await archive(years.address, "2026-01", file)
    assert (done.month, done.postings, done.last_posting) == ("2026-01", 14, 14)
    with gzip.open(file, "rt", encoding="utf-8") as text:
        first, *postings, last = map(json.loads, text)
    assert first["head"] == done.head
    assert [one["id"] for one in postings] == list(range(1, 15))
    assert postings[-1]["reference"] == "t/1"
    assert len(last["closing"]) == 8
    assert [await store.balances(player) for player in ("amy", "bo")] == before
    # The chain goes on from the head of the archive, and still leads to what was noted.
    assert (await store.verify(length, head)).finding == ""
    audit = await store.audit()
    assert (audit.findings, audit.entries, audit.settlements) == ((), 6, 3)
    assert audit.sums == {"points": 0, "silver": 0}
    assert (await store.settle(settle("t/1", silver(1, 0, 100), points(1, 0, 7)))).replayed
    assert isinstance(await store.settle(settle("t/4", silver(1, 0, 1))), Done)
    assert await release(store, years.hold_id) == [300]
    await store.withdraw(withdraw("w", "amy", 1_141))
    assert await has(store, "amy") == (0, 0)


async def test_what_was_archived_is_told_of_no_more(years: Years, tmp_path: Path) -> None:
    store = years.store
    await archive(years.address, "2026-01", tmp_path / "january.json.gz")
    assert (await refused(store.stream(0, 10), TimeArchived))[0] == "TIME_ARCHIVED"
    assert [one.number for one in await store.stream(14, 2)] == [15, 16]
    await refused(store.balances("amy", JANUARY_US), TimeArchived)
    then = await store.balances("bo", FEBRUARY_US - 1)
    assert [(one.currency, one.available) for one in then] == [("points", -7), ("silver", 900)]
    board = LeaderboardQuery("points", "book")
    await refused(store.leaderboard(board), TimeArchived)
    february = LeaderboardQuery("points", "book", since_us=FEBRUARY_US, until_us=MARCH_US)
    shown = await store.leaderboard(february)
    assert [(one.player_id, one.score) for one in shown.places] == [("amy", 5), ("cao", -5)]
    statement = (await entries(store, "amy", 10, "silver")).entries
    assert [one.reference for one in statement] == ["t/3", "t/2"]
    # A statement that ends where the archive begins says so; one that asks for less does not.
    assert (await entries(store, "amy", 10)).archived_us == FEBRUARY_US
    assert (await entries(store, "amy", 10, since_us=FEBRUARY_US)).archived_us is None
    first = await entries(store, "amy", 1)
    assert (first.rest is not None, first.archived_us) == (True, None)


async def test_what_is_not_as_the_chain_has_it_is_not_archived(
    years: Years, tmp_path: Path
) -> None:
    db = await asyncpg.connect(years.address)
    tamper = (
        "ALTER TABLE {0} DISABLE TRIGGER ALL; UPDATE {0} SET memo = '{1}' WHERE id = 7;"
        " ALTER TABLE {0} ENABLE TRIGGER ALL"
    )
    await db.execute(tamper.format("postings_2026_01", "a gift"))
    with pytest.raises(ArchiveFailed, match="entry 7 is not what the hash chain says"):
        await archive(years.address, "2026-01", tmp_path / "january.json.gz")
    assert not any("january" in name for name in os.listdir(tmp_path))
    assert await db.fetchval("SELECT count(*) FROM postings_2026_01") == 14
    await db.execute(tamper.format("postings_2026_01", ""))
    await db.close()


async def test_the_command_tells_what_went(years: Years, tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=200)
    file = tmp_path / "january.json.gz"
    await archive_month(years.address, "2026-01", file, console)
    told = console.file.getvalue()
    assert "14 entries of 2026-01, up to entry 14" in told
    assert "Head of the chain after 2026-01: 6:" in told
    with pytest.raises(SuiteError, match="is there already"):
        await archive_month(years.address, "2026-02", file, console)
    with pytest.raises(SuiteError, match="only a ledger in PostgreSQL"):
        await archive_month("wallet.db", "2026-02", tmp_path / "new.json.gz", console)


async def test_months_are_archived_in_order_and_when_they_are_over(
    years: Years, tmp_path: Path
) -> None:
    async def because(month: str, name: str = "new.json.gz") -> str:
        with pytest.raises(ArchiveFailed) as caught:
            await archive(years.address, month, tmp_path / name)
        return str(caught.value)

    assert "come first" in await because("2026-02")
    assert "is not over" in await because("2026-03")
    assert "there is nothing" in await because("2025-12")
    assert "is no month" in await because("2026-13")
    before = await all_have(years.store)
    await archive(years.address, "2026-01", tmp_path / "january.json.gz")
    assert "is there already" in await because("2026-02", "january.json.gz")
    done = await archive(years.address, "2026-02", tmp_path / "february.json.gz")
    assert (done.postings, done.last_posting) == (4, 18)
    assert await all_have(years.store) == before
    assert not (tmp_path / "new.json.gz").exists()
    db = await asyncpg.connect(years.address)
    assert await db.fetchval("SELECT count(*) FROM archives") == 2
    with pytest.raises(asyncpg.PostgresError, match="never changed"):
        await db.execute("UPDATE archives SET head = head")
    await db.close()


async def test_who_was_erased_stays_so_in_an_archive_and_may_be_erased_after_it(
    tmp_path: Path,
) -> None:
    address, now, file = await database_of(tmp_path), [JANUARY_US], tmp_path / "january.json.gz"
    async with open_postgres(address, CURRENCIES, clock=lambda: now[0]) as store:
        await open_four(store, 1_000)
        for player in ("amy", "bo"):
            await store.deposit(replace(deposit(player, player, 5), memo=f"of {player}'s aunt"))
        now[0] = FEBRUARY_US
        await store.deposit(deposit("later", "amy", 5))
        await tend(store)
        await store.erase(Erasure(request_id="e1", player_id="amy", reason="case 1"))
        await archive(address, "2026-01", file)
        kept = gzip.decompress(file.read_bytes())
        assert (b"amy's aunt" in kept, b"bo's aunt" in kept) == (False, True)
        done = await store.erase(Erasure(request_id="e2", player_id="bo", reason="case 2"))
        assert done.answer == 1, "the operation is here, its postings are in the file"
        assert ((await store.audit()).findings, (await store.verify()).finding) == ((), "")
