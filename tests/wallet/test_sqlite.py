"""The SQLite file: what the database itself refuses, what cannot be opened, what an audit finds."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fangcheng_kit.migrations import BadDatabase
from fangcheng_wallet.chain import Link
from fangcheng_wallet.errors import WalletUnavailable
from fangcheng_wallet.keeper import tend
from fangcheng_wallet.ledger import LARGEST, Collect, Currency, Done, Reverse
from fangcheng_wallet.migrations import LEDGER
from fangcheng_wallet.sqlite import SqliteStore, open_sqlite
from fangcheng_wallet.store import Commit
from tests.wallet.ledgers import (
    CURRENCIES,
    POINTS,
    all_have,
    deposit,
    has,
    hold_each,
    open_four,
    points,
    release,
    settle,
    silver,
    together,
    withdraw,
)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A ledger that has seen some of everything, closed."""
    path = tmp_path / "wallet.db"
    async with open_sqlite(path, CURRENCIES) as store:
        await open_four(store, 1_000)
        holds = await hold_each(store, 500)
        await store.settle(settle("t/1", silver(1, 0, 700), points(1, 0, 7), holds=holds))
        await release(store, *holds["cao"])
        await store.withdraw(withdraw("w", "dan", 100))
        assert (await store.audit()).findings == ()
        await tend(store)
    return path


@pytest.fixture
def db(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as the writer opens it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA recursive_triggers = ON")
        yield db


AMY = "(SELECT id FROM accounts WHERE owner = 'amy' AND currency = 'silver')"
BO = "(SELECT id FROM accounts WHERE owner = 'bo' AND currency = 'silver')"
LAST_POSTING = "(SELECT MAX(id) FROM postings)"
NEXT = "(SELECT MAX(id) + 1 FROM operations)"
LATEST = "(SELECT MAX(time_us) FROM operations)"


def posting(account: str, amount: str, *, version: str = "version + 1", after: str = "") -> str:
    return (
        f"INSERT INTO postings SELECT NULL, id, {version}, {NEXT}, {amount},"
        f" {after or f'balance + {amount}'}, 'x', 'x', '', {LATEST} FROM accounts"
        f" WHERE id = {account}"
    )


def operation(*, time_us: str = "time_us", count: int = 2, id: str = "id + 1") -> str:
    return (
        f"INSERT INTO operations SELECT {id}, 'deposit', 'x', {time_us}, '{{}}', '{{}}',"
        f" last_posting + 1, last_posting + {count}, NULL FROM operations ORDER BY id DESC LIMIT 1"
    )


def execute_and_commit(db: sqlite3.Connection, statement: str) -> None:
    db.execute(statement)
    db.execute("COMMIT")


@pytest.mark.parametrize(
    ("statements", "because"),
    [
        (["UPDATE postings SET amount = amount + 1 WHERE id = 1"], "postings are never changed"),
        (["DELETE FROM postings WHERE id = 1"], "postings are never deleted"),
        (["INSERT OR REPLACE INTO postings SELECT * FROM postings WHERE id = 1"],
         "must continue its account"),
        (["UPDATE operations SET answer = ''"], "operations are never changed"),
        (["DELETE FROM operations"], "operations are never deleted"),
        (["DELETE FROM accounts"], "accounts are never deleted"),
        (["UPDATE accounts SET owner = 'eve' WHERE owner = 'amy'"], "keeps its owner"),
        (["UPDATE accounts SET balance = balance + 1"], "must follow its postings"),
        (["INSERT INTO accounts VALUES (NULL, 'player', 'eve', 'eve', 'silver', '', 0, 5, 0)"],
         "begins at nothing"),
        (["INSERT INTO accounts VALUES (NULL, 'house', 'eve', 'eve', 'silver', '', 0, 0, 0)"],
         "CHECK constraint"),
        (["INSERT INTO accounts VALUES (NULL, 'player', 'eve', 'amy', 'silver', '', 0, 0, 0)"],
         "CHECK constraint"),
        (["UPDATE players SET opened_us = 0"], "a wallet keeps its player"),
        (["DELETE FROM players"], "wallets are never deleted"),
        (["DELETE FROM holds"], "holds are never deleted"),
        (["UPDATE holds SET state = 'open', changed_by = (SELECT MAX(id) FROM operations)"
          " WHERE player_id = 'cao'"], "only what it gave back"),
        (["UPDATE holds SET state = 'released', changed_by = (SELECT MAX(id) FROM operations)"
          " WHERE player_id = 'dan'"], "over is empty"),
        (["UPDATE holds SET table_id = 't' WHERE player_id = 'dan'"], "by the last operation"),
        (["UPDATE holds SET amount = 1, changed_by = (SELECT MAX(id) FROM operations)"
          " WHERE player_id = 'dan'"], "keeps its owner"),
        (["UPDATE links SET head = zeroblob(32)"], "links are never changed"),
        (["DELETE FROM links"], "links are never deleted"),
        (["INSERT INTO links VALUES ((SELECT MAX(id) + 1 FROM operations), x'', zeroblob(32))"],
         "must follow"),
        ([posting(AMY, "5", version="version + 2")], "must continue its account"),
        ([posting(AMY, "5", version="version")], "must continue its account"),
        ([posting(AMY, "5", after="balance")], "must continue its account"),
        ([posting("99", "5", version="1", after="5").replace("WHERE id = 99", "LIMIT 1")],
         "must continue its account"),
        ([posting(AMY, "0")], "CHECK constraint"),
        ([posting(AMY, "0.5")], "cannot store REAL value in INTEGER column"),
        ([posting(AMY, "'five'", after="balance")], "cannot store TEXT value in INTEGER column"),
        ([posting(AMY, str(LARGEST))], "CHECK constraint"),
        ([posting(AMY, "-balance - 1")], "CHECK constraint"),
        ([posting(AMY, "5")], "FOREIGN KEY constraint"),
        ([posting(AMY, "5"), posting(BO, "-4"), operation()], "must add up to zero"),
        ([posting(AMY, "5"), posting(BO, "-5"), operation(count=1)], "must follow the one before"),
        ([posting(AMY, "5"), posting(BO, "-5"), operation(id="id + 2")],
         "must follow the one before"),
        ([posting(AMY, "5"), posting(BO, "-5"), operation(time_us="time_us - 1")],
         "time must not go back"),
        ([posting(AMY, "5").replace(LATEST, "7"), posting(BO, "-5"), operation()],
         "has the time of its operation"),
    ],
)  # fmt: skip
def test_the_database_refuses(db: sqlite3.Connection, statements: list[str], because: str) -> None:
    before = list(db.iterdump())
    db.execute("BEGIN")
    for statement in statements[:-1]:
        db.execute(statement)
    with pytest.raises(sqlite3.IntegrityError, match=because):
        execute_and_commit(db, statements[-1])
    db.execute("ROLLBACK")
    assert list(db.iterdump()) == before


def test_the_database_takes_what_is_right(db: sqlite3.Connection) -> None:
    db.execute("BEGIN")
    for statement in [posting(AMY, "5"), posting(BO, "-5"), operation()]:
        db.execute(statement)
    db.execute("COMMIT")


def tampered(path: Path, *statements: str) -> None:
    """Do what the triggers forbid, as somebody with the file in his hands can."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        triggers = db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            assert db.execute(statement).rowcount > 0, statement


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE postings SET amount = amount + 1 WHERE id = 3",
         "Account player:bo:silver: its entry 1 leaves 1001 and says 1000."),
        ("UPDATE postings SET balance_after = 1 WHERE id = 3",
         "Account player:bo:silver: its entry 1 leaves 1000 and says 1."),
        ("UPDATE postings SET version = 5 WHERE id = 3",
         "Account player:bo:silver: its entry 1 is missing."),
        ("DELETE FROM postings WHERE id = 3",
         "Deposit first of bo does not add up: -1000 are left over in silver."),
        ("UPDATE postings SET operation = 1 WHERE id = 3",
         "Entry 3 lies in operation 2 and names 1."),
        ("UPDATE postings SET account = 99 WHERE id = 3", "Entry 3 belongs to no account."),
        ("UPDATE accounts SET balance = 9 WHERE owner = 'amy'",
         "Account player:amy:silver: the balance says 9 and its entries come to 1200."),
        ("UPDATE accounts SET version = 9 WHERE owner = 'amy' AND currency = 'silver'",
         "Account player:amy:silver: 9 entries are counted and 3 are there."),
        ("UPDATE accounts SET balance = -5 WHERE owner = 'bo' AND currency = 'silver'",
         "Account player:bo:silver: -5 is below its floor, 0."),
        ("DELETE FROM operations WHERE id = 2", "Operations are missing between 1 and 3."),
        ("DELETE FROM operations WHERE id = (SELECT MAX(id) FROM operations)",
         "belongs to no operation."),
        ("UPDATE operations SET time_us = 5 WHERE id = 3",
         "Deposit first of cao is dated before the operation that precedes it."),
        ("UPDATE operations SET answer = replace(answer, '\"paid\":[700', '\"paid\":[701')"
         " WHERE verb = 'settle'",
         "Settle t/1 says 701 silver for amy, and 700 are posted."),
        ("UPDATE operations SET body = 'x' WHERE verb = 'settle'", "Settle t/1 cannot be read."),
        ("UPDATE holds SET state = 'released' WHERE player_id = 'dan'",
         "is released and has 500 left."),
        ("UPDATE holds SET amount = 1 WHERE player_id = 'dan'", "of 1 has 500 left."),
        ("DELETE FROM holds WHERE player_id = 'dan'", "has no hold."),
        ("UPDATE accounts SET owner = owner || 'x' WHERE kind = 'hold'", "has no account."),
    ],
)  # fmt: skip
async def test_an_audit_finds_what_was_tampered_with(
    path: Path, statement: str, finding: str
) -> None:
    tampered(path, statement)
    async with open_sqlite(path, CURRENCIES) as store:
        findings = (await store.audit()).findings
    assert [text for text in findings if finding in text], findings


async def test_an_audit_finds_a_person_whom_the_house_has_funded(path: Path) -> None:
    # He was a bot when it was paid out.
    async with open_sqlite(path, CURRENCIES) as store:
        await store.open_wallet("robo", is_bot=True)
        await store.deposit(deposit("f", "robo", 5))
        assert (await store.audit()).findings == ()
    tampered(path, "UPDATE players SET is_bot = 0 WHERE player_id = 'robo'")
    async with open_sqlite(path, CURRENCIES) as store:
        assert (await store.audit()).findings == (
            "Deposit f of robo does not move money between that account and the one of kind"
            " external.",
        )


async def test_an_audit_finds_money_that_came_from_nowhere(path: Path) -> None:
    """Every balance is right and still there is more than there should be."""
    last = "(SELECT MAX(id) FROM operations)"
    tampered(
        path,
        f"INSERT INTO postings SELECT NULL, id, version + 1, {last}, 5, balance + 5, 'x', 'x', '',"
        " 0 FROM accounts WHERE owner = 'amy' AND currency = 'silver'",
        "UPDATE accounts SET balance = balance + 5, version = version + 1"
        " WHERE owner = 'amy' AND currency = 'silver'",
        f"UPDATE operations SET last_posting = last_posting + 1 WHERE id = {last}",
    )
    async with open_sqlite(path, CURRENCIES) as store:
        audit = await store.audit()
        pulse = await store.pulse()
    assert audit.findings == (
        "Withdraw w does not add up: 5 are left over in silver.",
        "All accounts together come to 5 silver, not to 0.",
    )
    assert audit.sums["silver"] == 5
    assert pulse.imbalance["silver"] == 5


def damage(path: Path) -> None:
    """Overwrite the beginning of every page in the second half of a file."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        for place in range(size // 8192 * 4096, size, 4096):
            file.seek(place)
            file.write(b"\xff" * 64)


async def test_an_audit_finds_a_damaged_file(path: Path) -> None:
    async with open_sqlite(path, CURRENCIES) as store:
        for number in range(500):
            await store.deposit(deposit(f"d{number}", "amy", 1))
    async with open_sqlite(path, CURRENCIES) as store:
        damage(path)
        audit = await store.audit()
    assert audit.findings
    assert "database file" in audit.findings[0]


async def test_an_audit_tells_at_most_a_hundred_findings(path: Path) -> None:
    async with open_sqlite(path, CURRENCIES) as store:
        for number in range(150):
            await store.open_wallet(f"p{number}")
            await store.deposit(deposit(f"d{number}", f"p{number}", 5))
    tampered(path, "UPDATE accounts SET balance = 6 WHERE owner LIKE 'p%'")
    async with open_sqlite(path, CURRENCIES) as store:
        findings = (await store.audit()).findings
    assert len(findings) == 100
    assert findings[-1] == "There are 51 more findings."


# Opening.


async def test_a_file_of_another_kind_is_not_opened(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no database " * 1_000)
    with pytest.raises(BadDatabase, match="cannot be used"):
        async with open_sqlite(text):
            pass
    assert text.read_text().startswith("no database")

    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE wallets (id)")
    with pytest.raises(BadDatabase, match="other tables"):
        async with open_sqlite(other):
            pass

    with pytest.raises(BadDatabase, match="cannot be opened"):
        async with open_sqlite(tmp_path / "no such folder" / "wallet.db"):
            pass


async def test_a_ledger_of_a_later_version_is_not_opened(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
        db.commit()
    with pytest.raises(BadDatabase, match="revision 9999"):
        async with open_sqlite(path):
            pass


async def test_commits_are_synced(path: Path) -> None:
    async with open_sqlite(path) as store:
        writer = store._journal._db

        def read() -> tuple[int, str]:
            (synchronous,) = writer.execute("PRAGMA synchronous").fetchone()
            (journal_mode,) = writer.execute("PRAGMA journal_mode").fetchone()
            return synchronous, journal_mode

        assert await in_writer(store, read) == (2, "wal")


async def test_a_configured_floor_holds_for_accounts_that_are_there(path: Path) -> None:
    lower = (Currency("silver", floor=-50), POINTS)
    async with open_sqlite(path, lower) as store:
        await store.withdraw(withdraw("more", "bo", 350))
        assert await has(store, "bo") == (-50, 0)
    with pytest.raises(BadDatabase, match="the floor of silver cannot be 0"):
        async with open_sqlite(path, CURRENCIES):
            pass
    async with open_sqlite(path, lower) as store:
        await store.deposit(deposit("back", "bo", 50))
    async with open_sqlite(path, CURRENCIES) as store:
        assert (await store.audit()).findings == ()


# A database that fails.


async def in_writer(store: SqliteStore, work: Callable[[], object]) -> object:
    return await asyncio.get_running_loop().run_in_executor(store._writer, work)


async def test_a_full_disk_refuses_the_batch_and_is_overcome_by_the_same_keys(path: Path) -> None:
    commits: list[Commit] = []
    async with open_sqlite(path, CURRENCIES, on_commit=commits.append) as store:
        before = await all_have(store)
        writer = store._journal._db
        await in_writer(store, lambda: writer.execute("PRAGMA max_page_count = 1").fetchone())
        commands = [settle(f"full/{n}", silver(3, 0, 1), note="x" * 128) for n in range(100)]
        answers = await asyncio.gather(
            *(store.settle(command) for command in commands), return_exceptions=True
        )
        assert {type(answer) for answer in answers} == {WalletUnavailable}
        assert commits[-1] == Commit(100, 0, commits[-1].seconds, failed=True)
        assert await all_have(store) == before
        await in_writer(store, lambda: writer.execute("PRAGMA max_page_count = 1000000").fetchone())
        answers = await asyncio.gather(*(store.settle(command) for command in commands))
        assert all(isinstance(answer, Done) and not answer.replayed for answer in answers)
        assert await has(store, "dan") == (before[3][0] - 100, before[3][1])
        assert (await store.audit()).findings == ()


async def test_a_ledger_that_cannot_be_read_says_so(path: Path) -> None:
    async with open_sqlite(path, CURRENCIES) as store:
        await store.pulse()
        await in_writer(store, lambda: store._journal._db.execute("DROP TABLE holds"))
        with pytest.raises(WalletUnavailable):
            await store.pulse()


# Beside others.


async def test_a_second_process_is_kept_off_the_file(path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from fangcheng_wallet.sqlite import open_sqlite\n"
        "async def main():\n"
        "    async with open_sqlite(Path(sys.argv[1])):\n"
        "        print('open')\n"
        "asyncio.run(main())\n"
    )

    async def opened_by_another() -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program, str(path)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode, (out + err).decode()

    async with open_sqlite(path, CURRENCIES):
        code, text = await opened_by_another()
        assert code == 1
        assert "another process has the ledger open" in text
    assert await opened_by_another() == (0, "open\n")


async def test_only_the_writer_checkpoints(path: Path) -> None:
    async with open_sqlite(path, CURRENCIES) as store:
        await store.pulse()
        assert store._open_readers
        for reader in store._open_readers:
            assert reader.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
            assert reader.execute("PRAGMA query_only").fetchone() == (1,)


# Migrations.


async def test_a_ledger_of_the_first_revision_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "wallet.db"
    LEDGER.upgrade_sqlite(path, "0001")
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
        assert not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'links'").fetchone()
    async with open_sqlite(path, CURRENCIES) as store:
        await open_four(store, 10)
        await store.settle(settle("t/1", silver(1, 0, 10)))
        await store.withdraw(withdraw("w", "amy", 20))
        await store.reverse(Reverse("t/1", "cut off"))
        # A verb that the first revision did not have.
        await store.collect(Collect("c", "amy", "silver", "", 10, "agreed", write_off=True))
        await tend(store)
        assert (await store.verify()).operations == 8
        assert (await store.audit()).findings == ()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT version_num FROM alembic_version").fetchone() == (LEDGER.head,)


async def test_links_that_are_refused_fail_no_call_beside_them(path: Path) -> None:
    """They would fail the only call of their commit, and whoever tends would go on for ever."""
    commits: list[Commit] = []
    async with open_sqlite(path, CURRENCIES, on_commit=commits.append) as store:
        await tend(store)
        before = (await has(store, "amy"))[0]
        out_of_order = [Link(10**6, b"", bytes(32))]
        refused, done = await together(
            store._batcher.submit(out_of_order), store.deposit(deposit("beside", "amy", 5))
        )
        assert isinstance(refused, WalletUnavailable)
        assert isinstance(done, Done)
        assert (await has(store, "amy"))[0] == before + 5
        assert not any(commit.failed for commit in commits)
        (alone,) = await together(store._batcher.submit(out_of_order))
        assert isinstance(alone, WalletUnavailable)
        await tend(store)
        report = await store.verify()
        assert (report.finding, report.unchained) == ("", 0)
