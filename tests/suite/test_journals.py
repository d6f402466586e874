"""What `fangcheng journal` tells of a journal in PostgreSQL."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from fangcheng_suite.errors import SuiteError
from fangcheng_suite.journals import (
    archive_journal,
    journal_keys_of,
    list_months,
    print_archive,
    reseal_journal,
)
from fangcheng_table import postgres
from fangcheng_table.archive import readable
from fangcheng_table.journals import open_journal
from fangcheng_table.migrations import JOURNAL
from fangcheng_table.postgres import open_postgres
from fangcheng_table.sealing import JournalKeys, new_key
from fangcheng_table.store import NewTable
from tests.postgres import database_of
from tests.table.tables import PLAYERS, Drive, at_random, created


async def with_a_table_of_january(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a journal with a table that was played to its end in January."""
    address = await database_of(folder, JOURNAL)
    drive = Drive.of(replace(created(root=b"j" * 32), labels={"mood": ":smile:"}))
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


async def test_an_archive_that_is_sealed_is_printed_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = await with_a_table_of_january(tmp_path, monkeypatch)
    out = io.StringIO()
    console, file = Console(file=out, width=200), tmp_path / "january.json.gz"
    keys = JournalKeys.parse(new_key("2026-02"))
    await archive_journal(address, "2026-01", file, console, keys)
    assert "sealed with the key 2026-02: keep that as long as the file" in out.getvalue()
    out.truncate(0)
    print_archive(file, console, keys)
    assert '"event": {"table_created": {"table_id": "t1"' in out.getvalue()
    assert out.getvalue().lstrip("\0").splitlines() == list(readable(file, keys))
    assert '": ":smile:"' in out.getvalue()
    with pytest.raises(SuiteError, match="sealed with the key 2026-02, which"):
        print_archive(file, console, JournalKeys.parse(new_key("other")))


async def test_a_journal_is_sealed_anew_whichever_is_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = await with_a_table_of_january(tmp_path, monkeypatch)
    await (await open_journal(str(tmp_path / "table.db"))).close()
    older, newer = new_key("2026-01"), new_key("2026-02")
    for database, count in ((address, True), (str(tmp_path / "table.db"), False)):
        out = io.StringIO()
        console = Console(file=out, width=200)
        await reseal_journal(database, console, JournalKeys.parse(older))
        assert out.getvalue().startswith("0 ") != count
        await reseal_journal(database, console, JournalKeys.parse(f"{newer},{older}"))
        assert "does not need the key 2026-01 any more" in out.getvalue()
        await reseal_journal(database, console, JournalKeys.parse(newer))
        with pytest.raises(SuiteError, match="written with the key 2026-02, which"):
            await reseal_journal(database, console, JournalKeys.parse(older))
    with pytest.raises(SuiteError, match="no key to seal with"):
        await reseal_journal(address, console, JournalKeys.parse(""))
    with pytest.raises(SuiteError, match="there is no journal"):
        await reseal_journal(str(tmp_path / "none.db"), console, JournalKeys.parse(newer))


def test_the_environment_has_the_keys_or_else_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FANGCHENG_TABLE_JOURNAL_KEYS", raising=False)
    assert not journal_keys_of(tmp_path)
    (tmp_path / "journal.keys").write_text(new_key("kept") + "\n")
    assert journal_keys_of(tmp_path).first == "kept"
    monkeypatch.setenv("FANGCHENG_TABLE_JOURNAL_KEYS", new_key("given"))
    assert journal_keys_of(tmp_path).first == "given"
    monkeypatch.setenv("FANGCHENG_TABLE_JOURNAL_KEYS", "given:YWFh")
    with pytest.raises(SuiteError, match="key given has 3 bytes"):
        journal_keys_of(tmp_path)


async def test_only_postgresql_has_months(tmp_path: Path) -> None:
    console = Console(file=io.StringIO())
    for command in (
        list_months("table.db", console),
        archive_journal("table.db", "2026-01", tmp_path / "new.json.gz", console),
    ):
        with pytest.raises(SuiteError, match="only a journal in PostgreSQL"):
            await command
