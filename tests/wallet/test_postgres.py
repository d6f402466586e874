"""The PostgreSQL ledger: what the database itself refuses, several wallets on it, faults, chain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from fangcheng_kit.migrations import BadDatabase
from fangcheng_kit.postgres import upgrade
from fangcheng_wallet import postgres_reads as reads
from fangcheng_wallet.chain import extend
from fangcheng_wallet.errors import PlayerFrozen, WalletContended, WalletUnavailable
from fangcheng_wallet.keeper import tend
from fangcheng_wallet.ledger import (
    LARGEST,
    Collect,
    Currency,
    Done,
    Freeze,
    HoldRequest,
    PlaceHolds,
    Reverse,
)
from fangcheng_wallet.migrations import LEDGER
from fangcheng_wallet.postgres import PostgresStore, open_postgres
from fangcheng_wallet.postgres_rows import array
from fangcheng_wallet.postgres_writer import add_links
from tests.postgres import execute, new_database
from tests.wallet.ledgers import (
    CURRENCIES,
    PLAYERS,
    POINTS,
    all_have,
    deposit,
    has,
    hold_each,
    hold_one,
    open_four,
    points,
    release,
    settle,
    silver,
    together,
    withdraw,
)
from tests.wallet.postgres import database_of

WAITS_FOR_A_LOCK = """
SELECT EXISTS (
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
)
"""


@pytest.fixture
async def address(tmp_path: Path) -> str:
    """A ledger that has seen some of everything, closed."""
    address = await database_of(tmp_path)
    async with open_postgres(address, CURRENCIES) as store:
        await open_four(store, 1_000)
        holds = await hold_each(store, 500)
        await store.settle(settle("t/1", silver(1, 0, 700), points(1, 0, 7), holds=holds))
        await release(store, *holds["cao"])
        await store.withdraw(withdraw("w", "dan", 100))
        assert (await store.audit()).findings == ()
        await tend(store)
    return address


@pytest.fixture
async def db(address: str) -> AsyncIterator[asyncpg.Connection]:
    db = await asyncpg.connect(address)
    yield db
    await db.close()


AMY = "(SELECT id FROM accounts WHERE owner = 'amy' AND currency = 'silver')"
BO = "(SELECT id FROM accounts WHERE owner = 'bo' AND currency = 'silver')"


def operation(*postings: tuple[str, int], **changed: str) -> str:
    """A statement that writes an operation with postings to accounts; some columns changed."""
    time = changed.get("time_us", "head.time_us")
    rows = " UNION ALL ".join(
        f"SELECT {changed.get('posting', 'head.posting')} + {number}, a.id,"
        f" {changed.get('version', 'a.version + 1')}, head.operation + 1, {amount}::bigint,"
        f" {changed.get('after', f'a.balance + {amount}')}, 'x', 'x', '',"
        f" {changed.get('posting_us', 'head.time_us')} FROM head, accounts AS a WHERE a.id = {who}"
        for number, (who, amount) in enumerate(postings, 1)
    )
    count = changed.get("count", str(len(postings)))
    return (
        "WITH one AS (INSERT INTO operations"
        f" SELECT {changed.get('id', 'operation + 1')}, 'deposit', 'x', {time}, '{{}}', '{{}}',"
        f" posting + 1, posting + {count}, NULL FROM head)"
        f" INSERT INTO postings {rows}"
    )


@pytest.mark.parametrize(
    ("statement", "because"),
    [
        ("UPDATE postings SET amount = amount + 1 WHERE id = 1", "postings.* never changed"),
        ("DELETE FROM postings WHERE id = 1", "postings.* never deleted"),
        ("TRUNCATE postings", "postings are never"),
        ("UPDATE operations SET answer = ''", "operations are never changed"),
        ("DELETE FROM operations", "operations are never deleted"),
        ("TRUNCATE operations", "operations are never"),
        ("DELETE FROM accounts", "accounts are never deleted"),
        ("UPDATE accounts SET owner = 'eve' WHERE owner = 'amy'", "accounts are never changed"),
        ("UPDATE accounts SET balance = balance + 1", "accounts follow the postings"),
        ("UPDATE head SET operation = 0", "head follow the postings"),
        ("DELETE FROM head", "head are never deleted"),
        ("INSERT INTO accounts VALUES (99, 'player', 'eve', 'eve', 'silver', '', 0, 5, 0)",
         "begins at nothing"),
        ("INSERT INTO accounts VALUES (99, 'house', 'eve', 'eve', 'silver', '', 0, 0, 0)",
         "check constraint"),
        ("UPDATE players SET opened_us = 0", "players are never changed"),
        ("DELETE FROM players", "players are never deleted"),
        ("DELETE FROM holds", "holds are never deleted"),
        ("UPDATE holds SET state = 'open', changed_by = 99 WHERE player_id = 'cao'",
         "only what it gave back"),
        ("UPDATE holds SET state = 'released', changed_by = 7 WHERE player_id = 'dan'",
         "over is empty"),
        ("UPDATE holds SET amount = 1, changed_by = 7 WHERE player_id = 'dan'", "keeps its owner"),
        ("UPDATE links SET head = '\\x00'", "links are never changed"),
        ("DELETE FROM links", "links are never deleted"),
        ("INSERT INTO links VALUES (99, '', decode(repeat('00', 32), 'hex'))", "must follow"),
        (operation((AMY, 5), (BO, -5), version="a.version + 2"), "must continue its account"),
        (operation((AMY, 5), (BO, -5), version="a.version"), "must continue its account"),
        (operation((AMY, 5), (BO, -5), after="a.balance"), "must continue its account"),
        (operation((AMY, 0), (BO, 0)), "check constraint"),
        (operation((AMY, LARGEST), (BO, -LARGEST)), "check constraint"),
        (operation((AMY, 301), (BO, -301)), "within its bounds"),
        (operation((AMY, 5), (BO, -4)), "must add up to zero"),
        (operation((AMY, 5), (BO, -5), count="1"), "lies in its operation|must have its postings"),
        (operation((AMY, 5), (BO, -5), count="3"), "must have its postings"),
        (operation((AMY, 5), (BO, -5), id="operation + 2"), "lies in its operation|must follow"),
        (operation((AMY, 5), (BO, -5), time_us="head.time_us - 1",
                   posting_us="head.time_us - 1"), "time must not go back"),
        (operation((AMY, 5), (BO, -5), posting_us="head.time_us - 1"), "has its time"),
    ],
)  # fmt: skip
async def test_the_database_refuses(db: asyncpg.Connection, statement: str, because: str) -> None:
    before = await db.fetch("SELECT * FROM accounts ORDER BY id")
    with pytest.raises(asyncpg.PostgresError, match=because):
        await db.execute(statement)
    assert await db.fetch("SELECT * FROM accounts ORDER BY id") == before


async def test_the_database_takes_what_is_right(db: asyncpg.Connection) -> None:
    await db.execute(operation((AMY, 5), (BO, -5)))


# Opening.


async def test_a_database_of_another_kind_is_not_opened(tmp_path: Path) -> None:
    other = await new_database(f"other-{tmp_path.name}")
    db = await asyncpg.connect(other)
    await db.execute("CREATE TABLE wallets (id int)")
    await db.close()
    with pytest.raises(BadDatabase, match="other tables"):
        async with open_postgres(other):
            pass
    with pytest.raises(BadDatabase, match="cannot be used"):
        async with open_postgres(f"{other}-that-is-not-there"):
            pass


async def test_a_ledger_of_a_later_version_is_not_opened(
    address: str, db: asyncpg.Connection
) -> None:
    await db.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(BadDatabase, match="revision 9999"):
        async with open_postgres(address):
            pass


async def test_a_ledger_of_the_first_revision_is_brought_up_to_date(tmp_path: Path) -> None:
    old = await new_database(f"old-{tmp_path.name}")
    await upgrade(lambda: asyncpg.connect(old), LEDGER, "0001")
    # Two wallets start at once, and one of them waits for the other.
    async with open_postgres(old) as store, open_postgres(old) as second:
        await open_four(store, 10)
        await store.settle(settle("t/1", silver(1, 0, 10)))
        await store.withdraw(withdraw("w", "amy", 20))
        await store.reverse(Reverse("t/1", "cut off"))
        # A verb that the first revision did not have.
        await store.collect(Collect("c", "amy", "silver", "", 10, "agreed", write_off=True))
        await tend(second)
        assert (await store.verify()).operations == 8
    db = await asyncpg.connect(old)
    assert await db.fetchval("SELECT version_num FROM alembic_version") == LEDGER.head
    await db.close()


async def test_a_server_that_may_lose_commits_is_refused(tmp_path: Path) -> None:
    name = f"weak-{tmp_path.name}"
    address = await new_database(name)
    async with open_postgres(address) as store:
        # Whatever the server does by default, the wallet's own sessions wait for the disk.
        await execute("postgres", f'ALTER DATABASE "{name}" SET synchronous_commit = off')
        await store.open_wallet("amy")
    async with open_postgres(address) as store:
        await store.open_wallet("bo")
        db = store._writer._db
        assert db is not None
        assert await db.fetchval("SHOW synchronous_commit") == "on"
    await execute("postgres", "ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()")
    try:
        with pytest.raises(BadDatabase, match="full_page_writes off"):
            await open_for_ever(address)
    finally:
        await execute("postgres", "ALTER SYSTEM RESET full_page_writes", "SELECT pg_reload_conf()")


async def open_for_ever(address: str) -> None:
    """Until the server has read its new settings."""
    while True:
        async with open_postgres(address) as store:
            await store.pulse()


async def test_a_configured_floor_holds_for_accounts_that_are_there(address: str) -> None:
    lower = (Currency("silver", floor=-50), POINTS)
    async with open_postgres(address, lower) as store:
        await store.withdraw(withdraw("more", "bo", 350))
        assert await has(store, "bo") == (-50, 0)
    with pytest.raises(BadDatabase, match="the floor of silver cannot be 0"):
        async with open_postgres(address, CURRENCIES):
            pass


# Several wallets on one database.


@pytest.fixture
async def two(address: str) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    async with (
        open_postgres(address, CURRENCIES) as first,
        open_postgres(address, CURRENCIES) as second,
    ):
        yield first, second
        assert (await first.audit()).findings == ()


async def test_fifty_calls_with_one_key_over_two_wallets_settle_once(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    """getlago/lago-api#3618: the same payment was settled twice within milliseconds."""
    before = await all_have(two[0])
    command = settle("t/2", silver(2, 3, 10))
    answers = await together(*(two[n % 2].settle(command) for n in range(50)))
    done = [answer for answer in answers if isinstance(answer, Done)]
    assert len(done) == 50
    assert [one.replayed for one in done].count(False) == 1
    assert all(one.answer == done[0].answer for one in done)
    after = await all_have(two[1])
    assert (before[2][0] - after[2][0], after[3][0] - before[3][0]) == (10, 10)


async def test_two_wallets_write_beside_each_other(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    for store in two:  # so that both believe to know how things stand
        await store.deposit(deposit(f"d of {id(store)}", "amy", 1_000))
    answers = await together(
        *(
            two[n % 2].settle(settle(f"t2/{n}", silver(n % 4, (n + 1 + n % 3) % 4, 1)))
            for n in range(200)
        ),
        *(hold_one(two[n % 2], f"h{n}", "amy", 1) for n in range(40)),
        *(two[n % 2].open_wallet(f"p{n // 2}") for n in range(40)),
    )
    assert not [answer for answer in answers if isinstance(answer, BaseException)]
    assert sum(answer is True for answer in answers) == 20


async def test_two_wallets_that_take_turns_link_what_both_have_written(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    await tend(two[0])
    for number in range(6):
        await two[number % 2].deposit(deposit(f"turn {number}", "amy", 1))
    while await two[0].link(100):
        pass
    report = await two[1].verify()
    assert (report.finding, report.unchained) == ("", 0)


async def test_two_wallets_that_link_at_once_write_one_chain(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    """Their keepers do, every half second; whoever is done, all that there was is linked."""
    for lot in range(5):
        await together(*(two[n % 2].deposit(deposit(f"l {lot}/{n}", "amy", 1)) for n in range(60)))
        linked = await together(*(two[n % 2].link(limit) for n, limit in enumerate((7, 50, 50, 7))))
        assert all(isinstance(count, int) for count in linked), linked
        others = [asyncio.create_task(tend(store)) for store in (*two, *two)]
        await tend(two[lot % 2])
        report = await two[1].verify()
        assert (report.finding, report.unchained) == ("", 0)
        await asyncio.gather(*others)


async def test_who_finds_another_linking_goes_on_with_what_is_left(
    address: str, db: asyncpg.Connection
) -> None:
    async with open_postgres(address, CURRENCIES) as store:
        await tend(store)
        async with store._linking:  # so that its keeper does not
            await together(*(store.deposit(deposit(f"l {n}", "amy", 1)) for n in range(30)))
            async with db.transaction():
                # Another wallet links the first of them; who would link them too waits for it.
                head, operations = await reads.unlinked(db, 10)
                await add_links(db, extend(head, operations))
                linking = asyncio.create_task(store._link(20))
                while not await db.fetchval(WAITS_FOR_A_LOCK):
                    pass
            assert await linking > 0
        await tend(store)
        report = await store.verify()
        assert (report.finding, report.unchained) == ("", 0)


async def test_a_refusal_is_never_founded_on_what_another_wallet_has_changed(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = two
    await first.open_wallet("eve")
    await first.deposit(deposit("d1", "eve", 5))
    for number in range(20):
        await second.deposit(deposit(f"more {number}", "eve", 10))
        assert not (await first.withdraw(withdraw(f"w {number}", "eve", 10))).replayed


async def test_a_wallet_that_is_opened_beside_it_makes_no_stale_refusal_good(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    """A batch that opens a wallet takes no number, which others could have."""
    first, second = two
    await first.open_wallet("eve")
    await first.deposit(deposit("d1", "eve", 5))
    for number in range(20):
        await second.deposit(deposit(f"more {number}", "eve", 10))
        withdrawn, *opened = await together(
            first.withdraw(withdraw(f"w {number}", "eve", 10)),
            first.open_wallet(f"new {number}"),  # in the same batch
            first.open_wallet(f"newer {number}"),
        )
        assert isinstance(withdrawn, Done)
        assert opened == [True, True]


async def test_what_is_read_ahead_does_not_undo_what_is_being_written(
    address: str, db: asyncpg.Connection
) -> None:
    """A player is frozen; before that is on disk a batch is decided that has read the database."""
    async with open_postgres(address, CURRENCIES) as store:
        await hold_one(store, "h", "bo", 1)
        async with db.transaction():
            await db.execute("SELECT FROM head FOR UPDATE")
            freezing = asyncio.create_task(store.freeze(Freeze("f", "bo", True, "why")))
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while not await db.fetchval(waits):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            buy_ins = (HoldRequest("bo", "silver", "", 1), HoldRequest("amy", "silver", "", 1))
            placing = asyncio.create_task(store.place_holds(PlaceHolds("h2", buy_ins)))
            memory = store._writer._memory
            assert memory is not None
            while "amy" not in memory.ledger.players:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert (await freezing).answer.frozen
        with pytest.raises(PlayerFrozen):
            await placing


# Faults.


async def test_a_lost_connection_is_overcome(address: str, db: asyncpg.Connection) -> None:
    async with open_postgres(address, CURRENCIES) as store:
        await store.deposit(deposit("d", "amy", 1))
        commands = [settle(f"t2/{n}", silver(3, 0, 1)) for n in range(100)]
        for number, command in enumerate(commands):
            settling = asyncio.create_task(store.settle(command))
            await asyncio.sleep(0.0005 * (number % 8))
            await db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'fangcheng-wallet' AND pid <> pg_backend_pid()"
            )
            try:
                await settling
            except WalletUnavailable:
                assert (await store.settle(command)).answer.outcome.paid == (1,)
        assert (await store.audit()).findings == ()
        done = [await store.settle(command) for command in commands]
        assert all(one.replayed for one in done)


async def test_who_holds_the_ledger_too_long_makes_the_wallet_give_up(
    address: str, db: asyncpg.Connection
) -> None:
    async with open_postgres(address, CURRENCIES) as store:
        writer = await store._writer._connected()
        await writer.execute("SET lock_timeout = '20ms'")
        before = await all_have(store)
        command = settle("t/2", silver(3, 0, 1))
        async with db.transaction():
            await db.execute("SELECT FROM head FOR UPDATE")
            store._writer._give_up = nothing
            with pytest.raises(WalletContended):
                await store.settle(command)
        assert await all_have(store) == before
        assert not (await store.settle(command)).replayed


async def nothing() -> None:
    """Do nothing."""


async def test_a_deadlock_is_overcome_by_trying_again(address: str, db: asyncpg.Connection) -> None:
    """Somebody else locks an account and then wants the end of the ledger: A→B with B→A."""
    async with open_postgres(address, CURRENCIES) as store:
        await store.deposit(deposit("d", "amy", 1))
        store._writer._memory = None  # so that it locks the end of the ledger first
        async with db.transaction():
            await db.execute("SET LOCAL deadlock_timeout = '30s'")  # the wallet is to be the victim
            await db.execute(f"SELECT FROM accounts WHERE id = {AMY} FOR UPDATE")
            settling = asyncio.create_task(store.settle(settle("t/2", silver(3, 0, 1))))
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while not await db.fetchval(waits):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            await db.execute("SELECT FROM head FOR UPDATE")
        done = await settling
        assert (done.replayed, done.answer.outcome.paid) == (False, (1,))
        assert (await store.audit()).findings == ()


async def test_who_waits_for_the_end_of_the_ledger_stands_in_nobodys_way(
    address: str, db: asyncpg.Connection
) -> None:
    """What was decided ahead of the database takes no number before it is its turn."""
    async with open_postgres(address, CURRENCIES) as store:
        await store.deposit(deposit("d", "amy", 1))
        async with db.transaction():
            await db.execute("SET LOCAL deadlock_timeout = '10ms'")  # it would be the victim
            await db.execute("SELECT FROM head FOR UPDATE")
            depositing = asyncio.create_task(store.deposit(deposit("e", "amy", 1, "points")))
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while not await db.fetchval(waits):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            await db.execute(
                "INSERT INTO accounts (id, kind, owner, player_id, currency, book, floor)"
                " SELECT max(id) + 1, 'house', '', '', 'coins', '', 0 FROM accounts"
            )
        assert not (await depositing).replayed
        assert (await store.audit()).findings == ()


async def test_one_item_that_the_database_cannot_take_is_refused_alone(address: str) -> None:
    async with open_postgres(address, CURRENCIES) as store:
        good = [store.settle(settle(f"t2/{n}", silver(3, 0, 1))) for n in range(6)]
        bad = store.deposit(deposit("nul\0", "amy", 1))
        *answers, refusal = await together(*good, bad)
        assert all(isinstance(answer, Done) for answer in answers)
        assert isinstance(refusal, Exception)
        assert (await store.audit()).findings == ()


@pytest.mark.parametrize("text", ["", '"', "\\", "\n\t\x01", "{,}", "NULL", "方城", "a\\nb", "🀄"])
async def test_texts_are_stored_as_they_are(address: str, text: str) -> None:
    async with open_postgres(address, CURRENCIES) as store:
        await store.deposit(type(deposit("", "", 1))("r" + text, "amy", "silver", "", 1, text))
        page = await store.stream(0, 500)
        assert (page[-2].entry.memo, page[-2].entry.reference) == (text, "r" + text)
        labels = {"club": text, "k" + text: "x"}
        await store.settle(settle("l" + text, silver(1, 0, 1), **labels))
        assert (await store.stream(len(page), 1))[0].entry.labels == labels
    assert array([text, None]).startswith("{")


# The chain.


async def tampered(db: asyncpg.Connection, statement: str) -> None:
    """Do what the triggers forbid, as somebody who owns the database can."""
    async with db.transaction():
        await db.execute("SET LOCAL session_replication_role = replica")
        assert int((await db.execute(statement)).split()[-1]) > 0


@pytest.mark.parametrize(
    ("statement", "posting", "finding"),
    [
        ("UPDATE postings SET amount = amount + 1 WHERE id = 3", 3, "Posting 3 of operation 2"),
        ("UPDATE postings SET memo = 'x' WHERE id = 4", 4, "Posting 4 of operation 2"),
        ("UPDATE operations SET answer = replace(answer, '700', '701') WHERE verb = 'settle'",
         None, "Operation 6, or its link"),
        ("DELETE FROM postings WHERE id = 4", 4, "Operation 2 has lost postings"),
        ("DELETE FROM operations WHERE id = 3", None, "Operation 3 is missing"),
        ("UPDATE links SET head = decode(repeat('00', 32), 'hex') WHERE operation = 2", None,
         "Operation 2, or its link"),
        ("UPDATE accounts SET owner = 'eve', player_id = 'eve' WHERE owner = 'bo'", 3,
         "Posting 3 of operation 2"),
    ],
)  # fmt: skip
async def test_the_chain_names_the_first_thing_that_was_tampered_with(
    address: str, db: asyncpg.Connection, statement: str, posting: int | None, finding: str
) -> None:
    async with open_postgres(address, CURRENCIES) as store:
        assert (await store.verify()).finding == ""
        await tampered(db, statement)
        report = await store.verify()
    assert report.posting == posting
    assert finding in report.finding


async def test_an_audit_finds_what_was_tampered_with(address: str, db: asyncpg.Connection) -> None:
    await tampered(db, "UPDATE postings SET amount = amount + 1 WHERE id = 3")
    async with open_postgres(address, CURRENCIES) as store:
        findings = (await store.audit()).findings
    assert "Account player:bo:silver: its entry 1 leaves 1001 and says 1000." in findings


async def test_postings_lie_in_the_partition_of_their_month(tmp_path: Path) -> None:
    address = await database_of(tmp_path)
    now = [1_796_083_199_999_999]  # the last moment of November 2026
    async with open_postgres(address, CURRENCIES, clock=lambda: now[0]) as store:
        await open_four(store, 10)
        now[0] += 1
        await store.place_holds(PlaceHolds("h", (HoldRequest(PLAYERS[0], "silver", "", 5),)))
        assert (await store.audit()).findings == ()
    db: Any = await asyncpg.connect(address)
    counts = {
        month: await db.fetchval(f"SELECT count(*) FROM postings_{month}")
        for month in ("2026_11", "2026_12")
    }
    await db.close()
    assert counts == {"2026_11": 8, "2026_12": 2}
