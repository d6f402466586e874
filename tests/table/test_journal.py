"""What every journal promises (`store.Journal`), whichever database is below."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from fangcheng_table.events import ConnectionChanged, TableClosed
from fangcheng_table.sqlite import Commit, SqliteJournal
from fangcheng_table.store import Filter, Journal, JournalError, NewTable, Record, SequenceConflict

from .tables import created

OpenJournal = Callable[[], Journal]


@pytest.fixture(params=["sqlite"])
def open_journal(request: pytest.FixtureRequest, tmp_path: Path) -> OpenJournal:
    """Opens the same journal again and again."""
    return lambda: SqliteJournal(tmp_path / "folder" / "table.db")


@pytest.fixture
async def journal(open_journal: OpenJournal) -> AsyncIterator[Journal]:
    opened = open_journal()
    yield opened
    await opened.close()


def new(number: int = 1, **more: object) -> NewTable:
    fields: dict = {
        "table_id": f"t{number}",
        "request_id": f"r{number}",
        "request": f"body {number}",
        "rule_set": "baishan_kele",
        "player_ids": ("ann", "bob", "cat", "dan"),
        "labels": {},
    }
    return NewTable(**{**fields, **more})


FIRST = Record(1, 1_000, created())


def some(first: int, count: int = 1, seat: int = 0) -> list[Record]:
    return [Record(first + n, 2_000 + n, ConnectionChanged(seat, True)) for n in range(count)]


async def test_what_was_stored_is_read_back_in_order(journal):
    assert await journal.create(new(), [FIRST]) == new()
    await journal.append("t1", some(2, 3))
    await journal.append("t1", some(5))
    assert await journal.read("t1") == [FIRST, *some(2, 3), *some(5)]


async def test_an_unknown_table_has_no_events_and_takes_none(journal):
    assert await journal.read("t9") == []
    with pytest.raises(JournalError):
        await journal.append("t9", some(1))


async def test_a_request_makes_one_table(journal):
    await journal.create(new(), [FIRST])
    again = new(table_id="t2", request="another body")
    assert await journal.create(again, [FIRST]) == new()
    assert await journal.read("t2") == []
    assert await journal.by_request("r1") == new()
    assert await journal.by_request("r2") is None


async def test_of_fifty_equal_requests_at_once_one_makes_the_table(journal):
    made = await asyncio.gather(
        *(journal.create(new(table_id=f"t{n}"), [FIRST]) for n in range(50))
    )
    assert len({table.table_id for table in made}) == 1
    assert len(await journal.find(Filter(), None, 100)) == 1


@pytest.mark.parametrize("first", [1, 2, 4, 5])
async def test_an_append_that_does_not_follow_is_a_conflict_and_leaves_nothing(journal, first):
    await journal.create(new(), [FIRST])
    await journal.append("t1", some(2))
    with pytest.raises(SequenceConflict):
        await journal.append("t1", some(first, 3, seat=3), closed=b"x", done=True)
    assert await journal.read("t1") == [FIRST, *some(2)]
    assert await journal.unfinished() == ["t1"]
    assert [found.summary for found in await journal.find(Filter(), None, 9)] == [None]


async def test_of_two_writers_of_one_place_one_is_refused(open_journal):
    one, other = open_journal(), open_journal()
    try:
        await one.create(new(), [FIRST])
        outcomes = await asyncio.gather(
            one.append("t1", some(2, seat=1)),
            other.append("t1", some(2, seat=2)),
            return_exceptions=True,
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == [
            "NoneType",
            "SequenceConflict",
        ]
        assert len(await one.read("t1")) == 2
    finally:
        await one.close()
        await other.close()


async def test_one_bad_append_does_not_fail_those_that_share_its_commit(journal):
    for number in range(20):
        await journal.create(new(number), [FIRST])
    outcomes = await asyncio.gather(
        *(journal.append(f"t{n}", some(3 if n == 7 else 2)) for n in range(20)),
        return_exceptions=True,
    )
    assert [n for n, outcome in enumerate(outcomes) if outcome is not None] == [7]
    for number in range(20):
        assert len(await journal.read(f"t{number}")) == (1 if number == 7 else 2)


async def test_a_caller_that_is_cancelled_does_not_tear_an_append_apart(journal):
    await journal.create(new(), [FIRST])
    task = asyncio.create_task(journal.append("t1", some(2, 50)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await journal.append("t1", some(52))
    assert len(await journal.read("t1")) == 52


async def test_what_was_stored_outlives_the_process(open_journal):
    first = open_journal()
    await first.create(new(), [FIRST])
    # Handed over, not waited for: closing writes it.
    handed = [asyncio.create_task(first.append("t1", some(2 + n))) for n in range(10)]
    await asyncio.sleep(0)
    await first.close()
    await first.close()
    await asyncio.gather(*handed)
    second = open_journal()
    try:
        assert len(await second.read("t1")) == 11
    finally:
        await second.close()


async def test_a_closed_journal_takes_and_tells_nothing(open_journal):
    journal = open_journal()
    await journal.close()
    with pytest.raises(JournalError):
        await journal.create(new(), [FIRST])
    with pytest.raises(JournalError):
        await journal.read("t1")


async def test_tables_are_unfinished_until_they_are_done(journal):
    for number in (1, 2, 3):
        await journal.create(new(number), [FIRST])
    await journal.append("t2", some(2), closed=b"summary", done=True)
    await journal.append("t3", [Record(2, 3_000, TableClosed("escape"))], closed=b"three")
    assert await journal.unfinished() == ["t1", "t3"]
    await journal.append("t3", some(3), done=True)
    assert await journal.unfinished() == ["t1"]


async def test_tables_are_found_newest_first_by_all_that_is_asked_for(journal):
    await journal.create(new(1, labels={"club": "a", "season": "1"}), [FIRST])
    await journal.create(new(2, labels={"club": "a"}, player_ids=("eve", "b", "c", "d")), [FIRST])
    await journal.create(new(3, rule_set="shandong"), [FIRST])
    await journal.append("t1", some(2), closed=b"sum of t1")

    async def ids(wanted: Filter, before: int | None = None, limit: int = 10) -> list[str]:
        return [found.table_id for found in await journal.find(wanted, before, limit)]

    assert await ids(Filter()) == ["t3", "t2"]
    everything = Filter(include_closed=True)
    assert await ids(everything) == ["t3", "t2", "t1"]
    assert await ids(Filter(include_closed=True, labels={"club": "a"})) == ["t2", "t1"]
    assert await ids(Filter(include_closed=True, labels={"club": "a", "season": "1"})) == ["t1"]
    assert await ids(Filter(labels={"club": "a"})) == ["t2"]
    assert await ids(Filter(player_id="eve")) == ["t2"]
    assert await ids(Filter(rule_set="shandong")) == ["t3"]
    assert await ids(Filter(rule_set="jintan")) == []
    first, second = await journal.find(everything, None, 2)
    assert await ids(everything, before=second.place) == ["t1"]
    assert first.summary is None
    assert (await journal.find(everything, second.place, 2))[0].summary == b"sum of t1"


# What only SQLite has.


async def test_appends_that_wait_share_a_commit(tmp_path):
    commits: list[Commit] = []
    journal = SqliteJournal(tmp_path / "table.db", commits.append)
    try:
        for number in range(100):
            await journal.create(new(number), [FIRST])
        commits.clear()
        await asyncio.gather(*(journal.append(f"t{n}", some(2)) for n in range(100)))
        assert sum(commit.appends for commit in commits) == 100
        assert len(commits) < 50
    finally:
        await journal.close()


async def test_a_file_of_another_version_is_refused(tmp_path):
    path = tmp_path / "table.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(JournalError, match="version 99"):
        SqliteJournal(path)


async def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "table.db"
    path.write_bytes(b"not a database, only some text that is long enough" * 20)
    with pytest.raises(JournalError, match=r"table\.db"):
        SqliteJournal(path)


async def test_every_commit_is_on_disk_before_it_is_told(tmp_path):
    journal = SqliteJournal(tmp_path / "table.db")
    try:
        modes = await journal._run(
            lambda db: (
                db.execute("PRAGMA journal_mode").fetchone()[0],
                db.execute("PRAGMA synchronous").fetchone()[0],
            )
        )
        assert modes == ("wal", 2)
    finally:
        await journal.close()
