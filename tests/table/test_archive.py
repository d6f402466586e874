"""Months of a journal that are over move to files, and nothing else changes."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from fangcheng_table import postgres
from fangcheng_table.archive import (
    Archive,
    ArchiveFailed,
    Month,
    archive,
    archived_records,
    months,
    readable,
)
from fangcheng_table.codec import UnknownEvent
from fangcheng_table.errors import TableArchived
from fangcheng_table.migrations import JOURNAL
from fangcheng_table.postgres import PostgresJournal, open_postgres
from fangcheng_table.records import Records
from fangcheng_table.sealing import JournalKeys
from fangcheng_table.store import Filter, HandFilter, NewTable, Record
from tests.postgres import database_of

from .journals import hand
from .tables import PLAYERS, Drive, Stake, at_random, created

PLACE = {"table_id", "sequence", "time_ms"}


def new(number: int) -> NewTable:
    return NewTable(f"t{number}", f"r{number}", "", "baishan_kele", 1, PLAYERS, {"club": "17"})


def whole_table(seed: int) -> list[Record]:
    """The journal of a table that was played to its end."""
    drive = Drive.of(created(root=bytes([seed]) * 32, stakes=[Stake("silver", "", 3)]))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(seed))
    return drive.records


class Years:
    """A journal with two tables of January, one of February, one of March that goes on."""

    def __init__(self, address: str, journal: PostgresJournal) -> None:
        self.address = address
        self.journal = journal
        self.records: dict[str, list[Record]] = {}

    async def play(self, number: int, *, whole: bool = True) -> None:
        table, records = new(number), whole_table(number)
        await self.journal.create(table, records[:1], "me")
        rest = records[1:] if whole else records[1:40]
        hands = [hand(table, 1, last_sequence=len(records))] if whole else []
        await self.journal.append(
            table.table_id,
            rest,
            epoch=1,
            done=whole,
            closed=b"sum" if whole else None,
            hands=hands,
        )
        self.records[table.table_id] = [records[0], *rest]


@pytest.fixture
async def years(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Years]:
    address = await database_of(tmp_path, JOURNAL)
    journal = await open_postgres(address)
    it = Years(address, journal)
    for month, numbers in ((202601, (1, 2)), (202602, (3,)), (202603, ())):
        monkeypatch.setattr(postgres, "month_now", lambda month=month: month)
        for number in numbers:
            await it.play(number)
    await it.play(4, whole=False)
    yield it
    await journal.close()


async def test_a_month_moves_to_a_file_and_the_journal_goes_on(years, tmp_path):
    journal, file = years.journal, tmp_path / "january.json.gz"
    listed = await journal.find(Filter(include_closed=True), None, 9)
    finished = await journal.finished(0, 9)
    count = sum(len(years.records[table]) for table in ("t1", "t2"))
    assert await months(years.address) == [
        Month("2026-01", 2, 0, count, False),
        Month("2026-02", 1, 0, len(years.records["t3"]), False),
        Month("2026-03", 1, 1, len(years.records["t4"]), False),
    ]
    told: list[tuple[str, int, int]] = []
    done, digest = await archive(
        years.address, "2026-01", file, lambda *progress: told.append(progress)
    )
    assert done == Archive("2026-01", 2, count)
    assert told[-1] == ("verified", count, count)
    assert (await months(years.address))[0] == Month("2026-01", 2, 0, count, True)
    # The file has everything, to be read by a person too.
    by_table: dict[str, list[Record]] = {}
    for table_id, record in archived_records(file):
        by_table.setdefault(table_id, []).append(record)
    assert by_table == {table: years.records[table] for table in ("t1", "t2")}
    with gzip.open(file, "rt", encoding="utf-8") as text:
        assert json.loads(next(text)) == {"month": "2026-01", "tables": 2, "events": count}
        assert json.loads(next(text))["event"]["table_created"]["rule_set"] == "baishan_kele"
    assert not file.with_name(file.name + ".part").exists()
    # Lists and cursors are as before; the events are gone, and are not taken for an empty table.
    assert await journal.find(Filter(include_closed=True), None, 9) == listed
    assert await journal.finished(0, 9) == finished
    assert await journal.hands(HandFilter(table_id="t1"), None, 9) == [finished[0]]
    assert await journal.create(new(1), [Record(1, 1, created())], "me") == new(1)
    with pytest.raises(TableArchived):
        await journal.read("t1")
    assert await journal.read("t3") == years.records["t3"]
    # What goes on goes on.
    await years.play(5)
    assert await journal.read("t5") == years.records["t5"]
    row = await journal._read(lambda db: db.fetchrow("SELECT * FROM archives"))
    assert tuple(row) == (202601, 2, count, digest)


async def test_with_a_key_the_file_tells_nobody_a_hand(years, tmp_path):
    """Neither what was plain in the database nor what was sealed; and with the key it tells all."""
    keys, file = JournalKeys({"new": b"n" * 32}), tmp_path / "january.json.gz"
    await archive(years.address, "2026-01", file, keys=keys)
    by_table: dict[str, list[Record]] = {}
    for table_id, record in archived_records(file, keys):
        by_table.setdefault(table_id, []).append(record)
    assert by_table == {table: years.records[table] for table in ("t1", "t2")}
    with gzip.open(file, "rt", encoding="utf-8") as text:
        next(text)
        assert all(set(json.loads(line)) == {*PLACE, "sealed"} for line in text)
    read = [json.loads(line) for line in readable(file, keys)]
    assert len(read) == sum(map(len, by_table.values()))
    assert all(set(line) == {*PLACE, "event"} for line in read)
    with pytest.raises(UnknownEvent, match="event 1 of table t1 is sealed with the key new"):
        next(archived_records(file))


async def test_a_hand_of_an_archived_table_is_told_to_be_archived_even_if_there_never_was_one(
    years, tmp_path
):
    await archive(years.address, "2026-01", tmp_path / "january.json.gz")
    for hand_number in (1, 999):
        with pytest.raises(TableArchived):
            await Records(years.journal).record("t1", hand_number)


async def test_who_follows_finished_hands_passes_those_that_were_archived(years, tmp_path):
    await archive(years.address, "2026-01", tmp_path / "january.json.gz")
    found = await years.journal.finished(0, 9)
    shown = [await Records(years.journal)._shown(one, with_records=True) for one in found]
    assert [(one.entry.table_id, one.HasField("record")) for one in shown] == [
        ("t1", False),
        ("t2", False),
        ("t3", True),
    ]


@pytest.mark.parametrize(
    ("month", "why"),
    [
        ("2026-13", "no month"),
        ("january", "no month"),
        ("2026-03", "not over"),
        ("2025-12", "nothing of"),
    ],
)
async def test_a_month_that_cannot_go_is_left_alone(years, tmp_path, month, why):
    with pytest.raises(ArchiveFailed, match=why):
        await archive(years.address, month, tmp_path / "file.gz")
    assert list(tmp_path.glob("file*")) == []
    assert all(not one.archived for one in await months(years.address))


async def test_a_month_with_a_table_that_goes_on_is_left_alone(years, tmp_path, monkeypatch):
    monkeypatch.setattr(postgres, "month_now", lambda: 202604)
    with pytest.raises(ArchiveFailed, match="1 tables of 2026-03 are not over"):
        await archive(years.address, "2026-03", tmp_path / "march.gz")
    assert await years.journal.read("t4") == years.records["t4"]


async def test_a_month_goes_once_and_over_no_file(years, tmp_path):
    file = tmp_path / "january.json.gz"
    await archive(years.address, "2026-01", file)
    with pytest.raises(ArchiveFailed, match="there already"):
        await archive(years.address, "2026-02", file)
    with pytest.raises(ArchiveFailed, match="nothing of"):
        await archive(years.address, "2026-01", tmp_path / "again.json.gz")


async def test_nothing_is_dropped_where_the_file_does_not_say_what_the_journal_does(
    years, tmp_path, monkeypatch
):
    def wrong(file: Path, keys: JournalKeys) -> object:
        records = list(archived_records(file, keys))
        return iter([*records[:50], *records[51:]])

    monkeypatch.setattr("fangcheng_table.archive.archived_records", wrong)
    with pytest.raises(ArchiveFailed, match="is not in the file"):
        await archive(years.address, "2026-01", tmp_path / "january.json.gz")
    assert await years.journal.read("t1") == years.records["t1"]
    assert list(tmp_path.glob("january*")) == []


async def test_a_journal_that_lost_events_is_not_archived(years, tmp_path):
    db = await asyncpg.connect(years.address)
    await db.execute("DELETE FROM events WHERE sequence = 7 AND month = 202601")
    await db.close()
    with pytest.raises(ArchiveFailed, match="should be there"):
        await archive(years.address, "2026-01", tmp_path / "january.json.gz")


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    file = tmp_path / "file.gz"
    file.write_bytes(b"no archive")
    with pytest.raises(UnknownEvent):
        list(archived_records(file))
