"""What the operator log promises, in every database."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from fangcheng_console.migrations import LOG
from fangcheng_console.oplog import Ended, Entry, LogUnavailable, OpLog, RequestUsed, Sought, Target
from fangcheng_console.postgres import open_postgres
from fangcheng_console.sqlite import open_sqlite
from fangcheng_kit.migrations import BadDatabase
from tests.postgres import database_of

Open = Callable[[], Awaitable[OpLog]]
TABLE = Target(table_id="t1", hand_number=3)


@pytest.fixture(params=["sqlite", "postgres"])
async def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens the log anew each time it is called, as a process that was restarted would."""
    opened: list[OpLog] = []

    async def open_log() -> OpLog:
        while opened:
            await opened.pop().close()
        if request.param == "sqlite":
            opened.append(await open_sqlite(tmp_path / "console.db"))
        else:
            opened.append(await open_postgres(await database_of(tmp_path, LOG)))
        return opened[-1]

    yield open_log
    while opened:
        await opened.pop().close()


@pytest.fixture
async def log(reopen: Open) -> OpLog:
    return await reopen()


async def began(log: OpLog, request_id: str = "r1", **more: object) -> Entry:
    fields: dict[str, object] = {"reason": "the line was cut", "case_id": "case-7", **more}
    verb = str(fields.pop("verb", "void_hand"))
    target = fields.pop("target", TABLE)
    assert isinstance(target, Target)
    person = str(fields.pop("person", "ann"))
    return await log.begin(person, verb, target, request_id=request_id, **fields)


async def found(log: OpLog, **sought: object) -> list[str]:
    stories = await log.find(Sought(**sought), 50)
    return [one.entry.request_id or one.entry.verb for one in stories]


async def test_a_line_is_kept_as_it_was_written(reopen: Open) -> None:
    log = await reopen()
    log.clock = lambda: 1_767_225_600_000_001
    whole = Target(
        table_id="台", hand_number=2**40, player_id="ming", other_id="lan", pool_id="p",
        settlement="t/1", link_id="l",
    )  # fmt: skip
    detail = {"request": {"amount": -(2**53)}, "said": ["阿", None, 0.5, True, "\x00"]}
    act = await began(log, target=whole, detail=detail, reason="理由 'x' ?")
    assert act == Entry(
        number=act.number, time_us=1_767_225_600_000_001, kind="act", act=0, person="ann",
        verb="void_hand", target=whole, reason="理由 'x' ?", case_id="case-7", request_id="r1",
        status=None, detail=detail,
    )  # fmt: skip
    story = await (await reopen()).story("r1")
    assert story is not None
    assert (story.entry, story.later, story.status) == (act, [], "unknown")


async def test_a_request_id_is_one_act_s_for_ever(reopen: Open) -> None:
    log = await reopen()
    act = await began(log)
    log = await reopen()
    with pytest.raises(RequestUsed) as used:
        await began(log, verb="close_table", person="bo")
    assert used.value.story.entry == act
    assert await found(log) == ["r1"]


async def test_of_many_at_once_one_begins(log: OpLog) -> None:
    tries = await asyncio.gather(*(began(log) for _ in range(20)), return_exceptions=True)
    assert sorted(type(one).__name__ for one in tries) == ["Entry", *["RequestUsed"] * 19]
    assert await found(log) == ["r1"]


async def test_what_came_of_an_act_stands_behind_it(log: OpLog) -> None:
    act, other = await began(log), await began(log, "r2")
    await log.end(other, "ann", "refused", {"reason": "STALE_HAND"})
    await log.end(act, "ann", "done", {"replayed": False})
    story = await log.story("r1")
    assert story is not None
    assert story.status == "done"
    assert [(one.kind, one.act, one.status, one.target) for one in story.later] == [
        ("outcome", act.number, "done", TABLE)
    ]
    assert story.later[0].detail == {"replayed": False}
    assert await found(log, status="refused") == ["r2"]


async def test_an_act_that_was_cut_short_is_unknown_until_it_is_repeated(reopen: Open) -> None:
    await began(await reopen())
    log = await reopen()  # the process died before it knew
    assert await found(log, status="unknown") == ["r1"]
    story = await log.story("r1")
    assert story is not None
    await log.repeat(story.entry, "bo")
    await log.end(story.entry, "bo", "unknown", {"reason": "UNAVAILABLE"})
    assert await found(log, status="unknown") == ["r1"]
    await log.repeat(story.entry, "cat")
    await log.end(story.entry, "cat", "done")
    told = await log.story("r1")
    assert told is not None
    assert told.status == "done"
    assert [(one.kind, one.person, one.status) for one in told.later] == [
        ("repeat", "bo", None), ("outcome", "bo", "unknown"),
        ("repeat", "cat", None), ("outcome", "cat", "done"),
    ]  # fmt: skip
    assert await found(log, status="unknown") == []


async def test_an_act_has_one_last_outcome(log: OpLog) -> None:
    act = await began(log)
    ends = await asyncio.gather(*(log.end(act, "ann", "done", {"n": n}) for n in range(8)))
    assert sum(one is not None for one in ends) == 1
    assert await log.end(act, "bo", "refused") is None
    with pytest.raises(Ended):
        await log.repeat(act, "bo")
    story = await log.story("r1")
    assert story is not None
    assert len(story.later) == 1


async def test_a_note_is_done_when_it_is_written(log: OpLog) -> None:
    link = Target(table_id="t1", hand_number=3, link_id="l1")
    note = await log.note("ann", "make_link", link, reason="for the player", detail={"until": 5})
    await log.note("somebody", "open_link", link)
    await log.note("bo", "revoke_link", link, case_id="case-7")
    await log.note("bo", "sign_in")
    (story,) = await log.find(Sought(verbs=["make_link"]), 50)
    assert (story.entry, story.status) == (note, "done")
    assert await found(log, link_id="l1") == ["revoke_link", "open_link", "make_link"]
    assert await found(log, link_id="l1", verbs=["revoke_link"]) == ["revoke_link"]
    assert await found(log, status="done", person="bo") == ["sign_in", "revoke_link"]
    assert await found(log, status="unknown") == []


async def test_lines_are_found_by_whom_what_whereof_and_when(log: OpLog) -> None:
    times = iter(range(100, 1_000, 100))
    log.clock = lambda: next(times)
    await began(log, "r1")
    await began(log, "r2", verb="freeze", target=Target(player_id="ming"), person="bo")
    await began(log, "r3", verb="bar", target=Target(player_id="lan", other_id="ming"))
    await began(log, "r4", verb="reverse", target=Target(table_id="t1", settlement="t1/3"))
    await began(log, "r5", verb="pause_pool", target=Target(pool_id="kele"), person="bo")
    assert await found(log) == ["r5", "r4", "r3", "r2", "r1"]
    assert await found(log, person="bo") == ["r5", "r2"]
    assert await found(log, verbs=["freeze", "bar"]) == ["r3", "r2"]
    assert await found(log, but=["freeze", "bar"]) == ["r5", "r4", "r1"]
    assert await found(log, target="ming") == ["r3", "r2"]
    assert await found(log, target="t1") == ["r4", "r1"]
    assert await found(log, target="t1/3") == ["r4"]
    assert await found(log, target="kele") == ["r5"]
    assert await found(log, target="min") == []
    assert await found(log, since_us=200, until_us=400) == ["r3", "r2"]
    assert await found(log, person="bo", target="ming", verbs=["freeze"]) == ["r2"]


async def test_pages_have_each_line_once_while_others_are_written(log: OpLog) -> None:
    for number in range(7):
        await began(log, f"r{number}")
    seen: list[str] = []
    before: int | None = None
    while page := await log.find(Sought(person="ann"), 3, before):
        seen += [one.entry.request_id for one in page]
        before = page[-1].entry.number
        await began(log, f"late{len(seen)}")
    assert seen == [f"r{number}" for number in reversed(range(7))]


WRITES = [
    "UPDATE log SET reason = 'another'",
    "UPDATE log SET status = 'done' WHERE kind = 'outcome'",
    "DELETE FROM log",
    "DELETE FROM log WHERE kind = 'outcome'",
]


@pytest.mark.parametrize("statement", WRITES)
async def test_the_database_changes_no_line(log: OpLog, statement: str) -> None:
    await log.end(await began(log), "ann", "unknown")
    before = await log.find(Sought(), 50)
    with pytest.raises(LogUnavailable, match=r"never (changed|deleted)"):
        await log.db.rows(statement)
    assert await log.find(Sought(), 50) == before


async def test_sqlite_replaces_no_line(tmp_path: Path) -> None:
    log = await open_sqlite(tmp_path / "console.db")
    await log.end(await began(log), "ann", "refused")
    before = await log.find(Sought(), 50)
    columns = (
        "time_us, kind, act, person, verb, table_id, hand_number, player_id, other_id, pool_id,"
        " settlement, link_id, reason, case_id, request_id, status, detail"
    )
    for number in ("number", "NULL"):
        for what in ("act", "outcome"):
            statement = (
                f"INSERT OR REPLACE INTO log (number, {columns})"
                f" SELECT {number}, {columns} FROM log WHERE kind = '{what}'"
            )
            if number == "number":
                with pytest.raises(LogUnavailable, match="never replaced"):
                    await log.db.rows(statement)
            else:
                await log.db.rows(statement)
    assert await log.find(Sought(), 50) == before
    await log.close()


async def test_postgres_empties_no_log(tmp_path: Path) -> None:
    log = await open_postgres(await database_of(tmp_path, LOG))
    await began(log)
    with pytest.raises(LogUnavailable, match="never deleted"):
        await log.db.rows("TRUNCATE log")
    assert await found(log) == ["r1"]
    await log.close()


async def test_a_log_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    log = await open_sqlite(tmp_path / "console.db")
    with closing(sqlite3.connect(tmp_path / "console.db", isolation_level=None)) as other:
        other.execute("PRAGMA busy_timeout = 0")
        await log.db.rows("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogUnavailable):
            await began(log)
        other.execute("ROLLBACK")
    await began(log)
    assert await found(log) == ["r1"]
    await log.close()


async def test_a_lost_server_is_told_and_found_again(tmp_path: Path) -> None:
    address = await database_of(tmp_path, LOG)
    log = await open_postgres(address)
    await began(log)
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
    db = await asyncpg.connect(address)
    await log.find(Sought(), 1)
    await db.execute(f"{end}'fangcheng-console' AND datname = current_database()")
    await db.close()
    # The pool notices a lost connection at once, or by the next statement.
    for _ in range(2):
        try:
            await log.find(Sought(), 1)
        except LogUnavailable:
            continue
    assert await found(log) == ["r1"]
    await log.close()


async def test_another_s_database_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE things (id INTEGER)")
    with pytest.raises(BadDatabase, match="other tables than an operator log"):
        await open_sqlite(tmp_path / "other.db")
    address = await database_of(tmp_path, LOG)
    db = await asyncpg.connect(address)
    await db.execute("DROP TABLE alembic_version")
    await db.close()
    with pytest.raises(BadDatabase, match="other tables than an operator log"):
        await open_postgres(address)
