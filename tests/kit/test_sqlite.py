"""Files that services keep what they know in: what has to be so before one is written to."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fangcheng_kit import sqlite as sqlite_kit
from fangcheng_kit.migrations import BadDatabase
from fangcheng_kit.sqlite import open_file, open_reader
from fangcheng_matchmaking.migrations import QUEUES
from fangcheng_table.migrations import JOURNAL
from fangcheng_wallet.migrations import LEDGER


@pytest.mark.parametrize("migrations", [JOURNAL, LEDGER, QUEUES], ids=lambda one: one.what)
def test_a_file_is_made_with_its_tables_and_keeps_what_it_commits(tmp_path, migrations):
    with closing(open_file(tmp_path / "new.db", migrations, foreign_keys=1)) as db:
        settings = [
            db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
        assert settings == ["wal", 2, 1]
        assert not migrations.is_due_in_sqlite(db)
    with closing(open_file(tmp_path / "new.db", migrations)) as db:
        assert not migrations.is_due_in_sqlite(db)


def test_a_file_that_does_not_take_the_settings_is_refused():
    with pytest.raises(BadDatabase, match=":memory: cannot be used: it has journal_mode memory"):
        open_file(Path(":memory:"), QUEUES)


def test_an_sqlite_that_is_too_old_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_kit, "OLDEST_SQLITE", (99, 0, 0))
    with pytest.raises(BadDatabase, match="too old"):
        open_file(tmp_path / "new.db", QUEUES)
    assert not (tmp_path / "new.db").exists()


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "other.db"
    open_file(path, QUEUES).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE alembic_version")
    with pytest.raises(BadDatabase, match=r"other\.db cannot be used: .* other tables"):
        open_file(path, QUEUES)


def test_a_reader_sees_what_was_committed_and_writes_nothing(tmp_path):
    path = tmp_path / "new.db"
    with closing(open_file(path, QUEUES)) as db, closing(open_reader(path)) as reader:
        db.execute("INSERT INTO leases VALUES ('p', 'me', 1)")
        assert reader.execute("SELECT owner FROM leases").fetchall() == [("me",)]
        with pytest.raises(sqlite3.OperationalError):
            reader.execute("DELETE FROM leases")
