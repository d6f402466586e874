"""What `fangcheng journal` tells of a journal in PostgreSQL."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from fangcheng_suite.errors import SuiteError
from fangcheng_suite.journals import archive_journal, list_months
from fangcheng_table import postgres
from fangcheng_table.migrations import JOURNAL
from fangcheng_table.postgres import open_postgres
from fangcheng_table.store import NewTable
from tests.postgres import database_of
from tests.table.tables import PLAYERS, Drive, at_random, created


async def with_a_table_of_january(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a journal with a table that was played to its end in January."""
    address = await database_of(folder, JOURNAL)
    drive = Drive.of(created(root=b"j" * 32))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(1))
    monkeypatch.setattr(postgres, "month_now", lambda: 202601)
    journal = await open_postgres(address)
    await journal.create(
        NewTable("t1", "r1", "", "baishan_kele", 1, PLAYERS, {}), drive.records[:1], "me"
    )
    await journal.append("t1", drive.records[1:], epoch=1, done=True, closed=b"sum")
    await journal.close()
    monkeypatch.setattr(postgres, "month_now", lambda: 202602)
    return address


async def test_months_are_listed_and_archived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = await with_a_table_of_january(tmp_path, monkeypatch)
    out = io.StringIO()
    console = Console(file=out, width=200)
    await list_months(address, console)
    assert "in the database" in out.getvalue()
    file = tmp_path / "january.json.gz"
    await archive_journal(address, "2026-01", file, console)
    assert "events of 1 tables made in 2026-01" in out.getvalue()
    assert "SHA-256: " in out.getvalue()
    await list_months(address, console)
    assert "in its archive" in out.getvalue().splitlines()[-1]
    with pytest.raises(SuiteError, match="is there already"):
        await archive_journal(address, "2026-02", file, console)


async def test_only_postgresql_has_months(tmp_path: Path) -> None:
    console = Console(file=io.StringIO())
    for command in (
        list_months("table.db", console),
        archive_journal("table.db", "2026-01", tmp_path / "new.json.gz", console),
    ):
        with pytest.raises(SuiteError, match="only a journal in PostgreSQL"):
            await command
