"""What only one of the engines of a journal has."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from types import NoneType

import asyncpg
import pytest

from fangcheng_kit import postgres as postgres_kit
from fangcheng_table.migrations import JOURNAL
from fangcheng_table.postgres import open_postgres
from fangcheng_table.sqlite import SqliteJournal
from fangcheng_table.store import (
    Census,
    Claim,
    Commit,
    JournalError,
    SequenceConflict,
    Superseded,
)
from tests.postgres import database_of, execute

from .journals import (
    FIRST,
    LEASE_MS,
    ME,
    OTHER,
    action,
    claimed,
    hand,
    new,
    open_postgres_of,
    open_sqlite,
    some,
)

# What only PostgreSQL has.


async def test_what_shares_a_commit_is_stored_whatever_else_is_in_it(tmp_path):
    """Plain appends, with hands, of tables that closed, twice of one table; one by one refused."""
    commits: list[Commit] = []
    journal = await open_postgres(await database_of(tmp_path, JOURNAL), commits.append)
    try:
        tables = [new(number) for number in range(8)]
        for table in tables:
            await journal.create(table, [FIRST], "me")
        outcomes = await asyncio.gather(
            journal.append("t0", some(2), epoch=1),
            journal.append("t0", some(3), epoch=1),
            journal.append("t1", some(2), epoch=1, hands=[hand(tables[1], 1)]),
            journal.append("t2", some(2), epoch=1, closed=b"sum", done=True),
            journal.append("t3", some(2), epoch=7),
            journal.append("t4", some(2), epoch=1, actions=[action(1, "t4")]),
            journal.append("t5", some(2), epoch=1, actions=[action(1, "t5")]),
            journal.append("t6", some(3), epoch=1),
            journal.append("t7", [], epoch=1, closed=b"sum"),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [
            *(NoneType, NoneType, NoneType, NoneType),
            *(Superseded, NoneType, SequenceConflict, SequenceConflict, NoneType),
        ]
        lengths = [len(await journal.read(table.table_id)) for table in tables]
        assert lengths == [3, 2, 2, 1, 2, 1, 1, 1]
        assert len(await journal.finished(0, 9)) == 1
        assert await journal.census() == Census({}, 7)
        # Together at first; then each on its own, since the action was logged already.
        assert [commit.appends for commit in commits] == [9] or len(commits) == 9
    finally:
        await journal.close()


async def test_a_database_of_something_else_is_refused(tmp_path):
    address = await database_of(tmp_path, JOURNAL)
    db = await asyncpg.connect(address)
    await db.execute("DROP TABLE alembic_version")
    await db.close()
    with pytest.raises(JournalError, match="other tables"):
        await open_postgres(address)
    with pytest.raises(JournalError, match="cannot be used"):
        await open_postgres(f"{address}-that-is-not-there")


async def test_a_server_that_may_forget_what_it_commits_keeps_no_journal(tmp_path, monkeypatch):
    address = await database_of(tmp_path, JOURNAL)
    monkeypatch.setitem(postgres_kit._DURABLE, "full_page_writes", {"always"})
    with pytest.raises(JournalError, match="full_page_writes on"):
        await open_postgres(address)


async def test_a_lost_connection_is_made_anew(tmp_path):
    journal = await open_postgres_of(tmp_path)
    try:
        await journal.create(new(), [FIRST], "me")
        await journal.append("t1", some(2), epoch=1)
        await execute(
            "postgres",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'fangcheng-table'",
        )
        stored = False
        while not stored:
            try:
                await journal.append("t1", some(3), epoch=1)
            except SequenceConflict:
                stored = True  # by the one before, whose answer was lost
            except JournalError:
                await asyncio.sleep(0)
            else:
                stored = True
        # A reader's connection as well; ended for certain, so that nothing is asked while it ends.
        await execute(
            "postgres",
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE application_name = 'fangcheng-table'",
        )
        assert len(await journal.read("t1")) == 3
    finally:
        await journal.close()


async def test_the_events_of_a_table_are_in_the_partition_of_its_month(tmp_path):
    journal = await open_postgres(await database_of(tmp_path, JOURNAL))
    try:
        await journal.create(new(), [FIRST], "me")
        rows = await journal._read(
            lambda db: db.fetch(
                "SELECT e.tableoid::regclass::text, t.month"
                " FROM events e JOIN tables t USING (place)"
            )
        )
        assert [tuple(row) for row in rows] == [(f"events_{rows[0][1]}", rows[0][1])]
    finally:
        await journal.close()


async def test_a_month_whose_first_table_was_given_up_is_made_by_the_next_one(tmp_path):
    address = await database_of(tmp_path, JOURNAL)
    journal = await open_postgres(address)
    other = await asyncpg.connect(address)
    try:
        async with other.transaction():
            await other.execute("LOCK TABLE tables IN EXCLUSIVE MODE")
            making = asyncio.create_task(journal.create(new(1), [FIRST], "me"))
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = $1::regclass"
            while not await other.fetchval(waiting, "tables"):
                assert not making.done()
            making.cancel()
            await asyncio.wait([making])
        assert await journal.create(new(2), [FIRST], "me") == new(2)
        assert await journal.read("t1") == []
    finally:
        await other.close()
        await journal.close()


# What only SQLite has.


async def test_the_process_that_has_opened_the_file_last_is_its_only_owner(tmp_path):
    journal = await open_sqlite(tmp_path)
    try:
        await journal.join(OTHER, LEASE_MS)
        await journal.create(new(), [FIRST], "other")
        await journal.join(ME, LEASE_MS)
        assert await journal.owners() == [ME]
        assert not await journal.renew("other", LEASE_MS)
        assert await claimed(journal, ME) == [Claim("t1", 2)]
        with pytest.raises(Superseded):
            await journal.append("t1", some(2), epoch=1)
    finally:
        await journal.close()


async def test_the_log_of_operators_cannot_be_changed(tmp_path):
    journal = await open_sqlite(tmp_path)
    await journal.create(new(), [FIRST], "me")
    await journal.append("t1", some(2), epoch=1, actions=[action(1)])
    await journal.close()
    with closing(sqlite3.connect(tmp_path / "folder" / "table.db")) as db:
        for change in (
            "UPDATE operator_actions SET reason = 'another'",
            "UPDATE operator_actions SET operator = ''",
            "DELETE FROM operator_actions",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                db.execute(change)


async def test_appends_that_wait_share_a_commit(tmp_path):
    commits: list[Commit] = []
    journal = SqliteJournal(tmp_path / "table.db", commits.append)
    try:
        for number in range(100):
            await journal.create(new(number), [FIRST], "me")
        commits.clear()
        await asyncio.gather(*(journal.append(f"t{n}", some(2), epoch=1) for n in range(100)))
        assert sum(commit.appends for commit in commits) == 100
        assert len(commits) < 50
    finally:
        await journal.close()


async def test_a_file_of_another_version_is_refused(tmp_path):
    path = tmp_path / "table.db"
    await SqliteJournal(path).close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
    db.close()
    with pytest.raises(JournalError, match="revision 9999"):
        SqliteJournal(path)


async def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "table.db"
    path.write_bytes(b"not a database, only some text that is long enough" * 20)
    with pytest.raises(JournalError, match=r"table\.db"):
        SqliteJournal(path)


async def test_every_commit_is_on_disk_before_it_is_told(tmp_path):
    journal = SqliteJournal(tmp_path / "table.db")
    try:
        modes = await journal._write(
            lambda db: (
                db.execute("PRAGMA journal_mode").fetchone()[0],
                db.execute("PRAGMA synchronous").fetchone()[0],
            )
        )
        assert modes == ("wal", 2)
    finally:
        await journal.close()
