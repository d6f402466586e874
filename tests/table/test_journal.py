"""What every journal promises (`store.Journal`), whichever database is below."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from types import NoneType
from typing import Any

import asyncpg
import pytest

from fangcheng_kit import postgres as postgres_kit
from fangcheng_table.events import ConnectionChanged, TableClosed
from fangcheng_table.migrations import JOURNAL
from fangcheng_table.postgres import open_postgres
from fangcheng_table.sqlite import SqliteJournal
from fangcheng_table.store import (
    Census,
    Claim,
    Commit,
    Filter,
    FoundHand,
    HandEntry,
    HandFilter,
    Journal,
    JournalError,
    NewTable,
    Opening,
    OperatorAction,
    Owner,
    Record,
    SequenceConflict,
    Superseded,
)
from tests.postgres import database_of, execute

from .tables import created

OpenJournal = Callable[[], Awaitable[Journal]]


async def open_sqlite(folder: Path) -> Journal:
    return SqliteJournal(folder / "folder" / "table.db")


async def open_postgres_of(folder: Path) -> Journal:
    return await open_postgres(await database_of(folder, JOURNAL))


ENGINES: dict[str, Callable[[Path], Awaitable[Journal]]] = {
    "postgres": open_postgres_of,
    "sqlite": open_sqlite,
}
LEASE_MS = 600_000
ME, OTHER = Owner("me", "127.0.0.1:1"), Owner("other", "127.0.0.1:2")
PLAYS = [("baishan_kele", 1), ("shandong", 1)]


@pytest.fixture(params=sorted(ENGINES))
def open_journal(request: pytest.FixtureRequest, tmp_path: Path) -> OpenJournal:
    """Opens the same journal again and again."""
    return lambda: ENGINES[request.param](tmp_path)


@pytest.fixture
async def journal(open_journal: OpenJournal) -> AsyncIterator[Journal]:
    opened = await open_journal()
    yield opened
    await opened.close()


def new(number: int = 1, **more: object) -> NewTable:
    fields: dict = {
        "table_id": f"t{number}",
        "request_id": f"r{number}",
        "request": f"body {number}",
        "rule_set": "baishan_kele",
        "revision": 1,
        "player_ids": ("ann", "bob", "cat", "dan"),
        "labels": {},
    }
    return NewTable(**{**fields, **more})


FIRST = Record(1, 1_000, created())


def some(first: int, count: int = 1, seat: int = 0) -> list[Record]:
    return [Record(first + n, 2_000 + n, ConnectionChanged(seat, True)) for n in range(count)]


async def test_what_was_stored_is_read_back_in_order(journal):
    assert await journal.create(new(), [FIRST], "me") == new()
    await journal.append("t1", some(2, 3), epoch=1)
    await journal.append("t1", some(5), epoch=1)
    assert await journal.read("t1") == [FIRST, *some(2, 3), *some(5)]


async def test_an_unknown_table_has_no_events_and_takes_none(journal):
    assert await journal.read("t9") == []
    with pytest.raises(JournalError):
        await journal.append("t9", some(1), epoch=1)


async def test_a_request_makes_one_table(journal):
    await journal.create(new(), [FIRST], "me")
    again = new(table_id="t2", request="another body")
    assert await journal.create(again, [FIRST], "me") == new()
    assert await journal.read("t2") == []
    assert await journal.by_request("r1") == new()
    assert await journal.by_request("r2") is None


async def test_of_fifty_equal_requests_at_once_one_makes_the_table(journal):
    made = await asyncio.gather(
        *(journal.create(new(table_id=f"t{n}"), [FIRST], "me") for n in range(50))
    )
    assert len({table.table_id for table in made}) == 1
    assert len(await journal.find(Filter(), None, 100)) == 1


@pytest.mark.parametrize("first", [1, 2, 4, 5])
async def test_an_append_that_does_not_follow_is_a_conflict_and_leaves_nothing(journal, first):
    await journal.create(new(), [FIRST], "me")
    await journal.append("t1", some(2), epoch=1)
    with pytest.raises(SequenceConflict):
        await journal.append("t1", some(first, 3, seat=3), closed=b"x", done=True, epoch=1)
    assert await journal.read("t1") == [FIRST, *some(2)]
    assert await journal.census() == Census({}, 1)
    assert [found.summary for found in await journal.find(Filter(), None, 9)] == [None]


async def test_of_two_writers_of_one_place_one_is_refused(open_journal):
    one, other = await open_journal(), await open_journal()
    try:
        await one.create(new(), [FIRST], "me")
        outcomes = await asyncio.gather(
            one.append("t1", some(2, seat=1), epoch=1),
            other.append("t1", some(2, seat=2), epoch=1),
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
        await journal.create(new(number), [FIRST], "me")
    outcomes = await asyncio.gather(
        *(journal.append(f"t{n}", some(3 if n == 7 else 2), epoch=1) for n in range(20)),
        return_exceptions=True,
    )
    assert [n for n, outcome in enumerate(outcomes) if outcome is not None] == [7]
    for number in range(20):
        assert len(await journal.read(f"t{number}")) == (1 if number == 7 else 2)


async def test_a_caller_that_is_cancelled_does_not_tear_an_append_apart(journal):
    await journal.create(new(), [FIRST], "me")
    task = asyncio.create_task(journal.append("t1", some(2, 50), epoch=1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await journal.append("t1", some(52), epoch=1)
    assert len(await journal.read("t1")) == 52


async def test_what_was_stored_outlives_the_process(open_journal):
    first = await open_journal()
    await first.create(new(), [FIRST], "me")
    # Handed over, not waited for: closing writes it.
    handed = [asyncio.create_task(first.append("t1", some(2 + n), epoch=1)) for n in range(10)]
    await asyncio.sleep(0)
    await first.close()
    await first.close()
    await asyncio.gather(*handed)
    second = await open_journal()
    try:
        assert len(await second.read("t1")) == 11
    finally:
        await second.close()


async def test_a_closed_journal_takes_and_tells_nothing(open_journal):
    journal = await open_journal()
    await journal.close()
    with pytest.raises(JournalError):
        await journal.create(new(), [FIRST], "me")
    with pytest.raises(JournalError):
        await journal.read("t1")


async def test_tables_are_claimed_until_they_are_done(journal):
    async def unfinished() -> list[str]:
        await journal.join(ME, LEASE_MS)
        claims = await journal.claim("me", PLAYS, 10)
        for claim in claims:
            await journal.give_up(claim.table_id, claim.epoch)
        return [claim.table_id for claim in claims]

    for number in (1, 2, 3):
        await journal.create(new(number), [FIRST], "gone")
    await journal.append("t2", some(2), closed=b"summary", done=True, epoch=1)
    await journal.append("t3", [Record(2, 3_000, TableClosed("escape"))], closed=b"three", epoch=1)
    assert await unfinished() == ["t1", "t3"]
    await journal.append("t3", some(3), done=True, epoch=2)
    assert await unfinished() == ["t1"]


async def test_tables_are_found_newest_first_by_all_that_is_asked_for(journal):
    await journal.create(new(1, labels={"club": "a", "season": "1"}), [FIRST], "me")
    await journal.create(
        new(2, labels={"club": "a"}, player_ids=("eve", "b", "c", "d")), [FIRST], "me"
    )
    await journal.create(new(3, rule_set="shandong"), [FIRST], "me")
    await journal.append("t1", some(2), closed=b"sum of t1", epoch=1)

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


async def test_a_table_is_found_by_those_who_take_a_seat_later(journal):
    await journal.create(new(), [FIRST], "me")
    await journal.append("t1", some(2), epoch=1, seated=["eve"])
    await journal.append("t1", some(3), epoch=1, seated=["eve", "ann"])
    for player in ("ann", "dan", "eve"):
        found = await journal.find(Filter(player_id=player), None, 9)
        assert [one.table_id for one in found] == ["t1"]


async def test_a_part_of_a_journal_is_read(journal):
    await journal.create(new(), [FIRST], "me")
    await journal.append("t1", some(2, 8), epoch=1)

    async def sequences(*bounds: int) -> list[int]:
        return [record.sequence for record in await journal.read("t1", *bounds)]

    assert await sequences(6) == [7, 8, 9]
    assert await sequences(2, 4) == [3, 4]
    assert await sequences(0, 1) == [1]
    assert await sequences(9) == []


# Finished hands and what operators did.


def hand(table: NewTable, number: int, **more: object) -> HandEntry:
    fields: dict = {
        "table_id": table.table_id,
        "hand_number": number,
        "rule_set": table.rule_set,
        "player_ids": table.player_ids,
        "labels": table.labels,
        "ended_ms": 1_000 * number,
        "ending": "win",
        "first_sequence": number,
        "last_sequence": number + 1,
    }
    return HandEntry(**{**fields, **more})


async def finish(journal: Journal, entry: HandEntry, sequence: int) -> None:
    await journal.append(entry.table_id, some(sequence), epoch=1, hands=[entry])


async def test_finished_hands_are_found_by_all_that_is_asked_for(journal):
    one = new(1, labels={"club": "a", "season": "1"})
    two = new(2, labels={"club": "a"}, player_ids=("eve", "b", "c", "d"), rule_set="shandong")
    for table in (one, two):
        await journal.create(table, [FIRST], "me")
    replaced = ("ann", "fay", "cat", "dan")
    entries = [
        hand(one, 1),
        hand(one, 2, ending="draw", player_ids=replaced),
        hand(two, 1, ended_ms=5_000),
        hand(one, 3),
    ]
    for entry, sequence in zip(entries, (2, 3, 2, 4), strict=True):
        await finish(journal, entry, sequence)

    async def found(before: int | None = None, limit: int = 9, **wanted: Any) -> list[HandEntry]:
        return [f.entry for f in await journal.hands(HandFilter(**wanted), before, limit)]

    newest_first = entries[::-1]
    assert await found() == newest_first
    assert await found(limit=2) == newest_first[:2]
    assert await found(table_id="t1") == [entries[3], entries[1], entries[0]]
    assert await found(player_id="eve") == [entries[2]]
    assert await found(player_id="fay") == [entries[1]]
    assert await found(player_id="bob") == [entries[3], entries[0]]
    assert await found(rule_set="shandong") == [entries[2]]
    assert await found(labels={"club": "a", "season": "1"}, until_ms=3_000) == entries[1::-1]
    assert await found(since_ms=2_000, until_ms=5_000) == [entries[3], entries[1]]
    assert await found(table_id="t9") == []
    places = [f.place for f in await journal.hands(HandFilter(), None, 9)]
    assert await found(before=places[1]) == newest_first[2:]


async def test_finished_hands_are_told_in_the_order_in_which_they_were_finished(journal):
    table = new()
    await journal.create(table, [FIRST], "me")
    assert await journal.finished(0, 9) == []
    for number in range(1, 6):
        await finish(journal, hand(table, number), number + 1)
    first, second, *_ = all_of_them = await journal.finished(0, 9)
    assert [found.entry.hand_number for found in all_of_them] == [1, 2, 3, 4, 5]
    assert await journal.finished(0, 2) == [first, second]
    assert await journal.finished(second.place, 9) == all_of_them[2:]
    assert await journal.finished(all_of_them[-1].place, 9) == []


async def test_no_finished_hand_appears_behind_one_that_was_told(open_journal):
    """Many tables, two processes, hands that end at the same time, and one that follows them."""
    journals = [await open_journal(), await open_journal()]
    told: list[FoundHand] = []
    try:
        tables = [new(number) for number in range(20)]
        for table in tables:
            await journals[0].create(table, [FIRST], "me")

        async def play(number: int) -> None:
            for turn in range(1, 6):
                entry = hand(tables[number], turn)
                await finish(journals[number % 2], entry, turn + 1)

        playing = asyncio.gather(*map(play, range(20)))
        while len(told) < 100:
            told += await journals[0].finished(told[-1].place if told else 0, 7)
        await playing
        assert told == await journals[0].finished(0, 1_000)
        for table in tables:
            mine = [f.entry.hand_number for f in told if f.entry.table_id == table.table_id]
            assert mine == [1, 2, 3, 4, 5]
    finally:
        for opened in journals:
            await opened.close()


async def test_a_hand_that_is_there_already_is_a_conflict_and_leaves_nothing(journal):
    table = new()
    await journal.create(table, [FIRST], "me")
    await finish(journal, hand(table, 1), 2)
    with pytest.raises(SequenceConflict):
        await finish(journal, hand(table, 1), 3)
    assert len(await journal.read("t1")) == 2
    assert len(await journal.finished(0, 9)) == 1


def action(number: int, table_id: str = "t1") -> OperatorAction:
    return OperatorAction(
        *(f"a{number}", table_id, 1_000 * number, "operator", "void_hand"),
        *("a tile was dropped", f"case {number}", "hand 3"),
    )


async def test_what_operators_did_is_kept_with_its_event(journal):
    for number in (1, 2):
        await journal.create(new(number), [FIRST], "me")
    await journal.append("t1", some(2), epoch=1, actions=[action(1), action(2)])
    await journal.append("t2", some(2), epoch=1, actions=[action(3, "t2")])

    async def found(table_id: str = "", before: int | None = None, limit: int = 9) -> list[str]:
        actions = await journal.operator_actions(table_id, before, limit)
        return [one.action.action_id for one in actions]

    assert await found() == ["a3", "a2", "a1"]
    assert await found("t1") == ["a2", "a1"]
    assert await found(limit=1) == ["a3"]
    newest = (await journal.operator_actions("", None, 1))[0]
    assert newest.action == action(3, "t2")
    assert await found(before=newest.place) == ["a2", "a1"]
    assert await found("t9") == []


async def test_an_action_is_logged_once_and_with_its_event_or_not_at_all(journal):
    await journal.create(new(), [FIRST], "me")
    await journal.append("t1", some(2), epoch=1, actions=[action(1)])
    with pytest.raises(SequenceConflict):
        await journal.append("t1", some(3), epoch=1, actions=[action(1)])
    with pytest.raises(SequenceConflict):
        await journal.append("t1", some(9), epoch=1, actions=[action(2)])
    assert [found.action for found in await journal.operator_actions("t1", None, 9)] == [action(1)]
    assert len(await journal.read("t1")) == 2


# Openings.


async def test_the_newest_opening_is_kept_until_the_table_is_done(journal):
    await journal.create(new(), [FIRST], "me")
    assert await journal.opening("t1") is None
    await journal.append("t1", some(2, 10), epoch=1)
    await journal.save_opening("t1", Opening(4, b"four"))
    await journal.save_opening("t1", Opening(8, b"eight"))
    assert await journal.opening("t1") == Opening(8, b"eight")
    await journal.save_opening("t1", Opening(6, b"late"))
    assert await journal.opening("t1") == Opening(8, b"eight")
    await journal.save_opening("t9", Opening(1, b"of nothing"))
    assert await journal.opening("t9") is None
    await journal.append("t1", some(12), epoch=1, done=True)
    assert await journal.opening("t1") is None


# Who plays which table.


async def claimed(journal: Journal, owner: Owner, limit: int = 99, **more: Any) -> list[Claim]:
    return await journal.claim(owner.owner_id, PLAYS, limit, **more)


async def test_who_makes_a_table_owns_it(journal):
    await journal.join(ME, LEASE_MS)
    await journal.create(new(), [FIRST], "me")
    assert await journal.owner_of("t1") == ME
    assert await journal.owner_of("t9") is None
    assert await journal.held("me") == [Claim("t1", 1)]
    assert await journal.owners() == [ME]
    assert await journal.census() == Census({"me": 1}, 0)
    assert await claimed(journal, ME) == []


async def test_a_table_whose_owner_is_gone_is_claimed_under_the_next_epoch(journal):
    for number in range(1, 5):
        await journal.create(new(number), [FIRST], "gone")
    await journal.join(ME, LEASE_MS)
    assert await journal.owner_of("t1") is None
    assert await journal.census() == Census({"me": 0}, 4)
    assert await claimed(journal, ME, table_id="t3") == [Claim("t3", 2)]
    assert await claimed(journal, ME, 2) == [Claim("t1", 2), Claim("t2", 2)]
    assert await claimed(journal, ME) == [Claim("t4", 2)]
    assert await claimed(journal, ME) == []
    assert await journal.owner_of("t1") == ME
    assert {claim.table_id for claim in await journal.held("me")} == {"t1", "t2", "t3", "t4"}


async def test_an_owner_is_given_only_what_it_can_play(journal):
    await journal.create(new(1), [FIRST], "gone")
    await journal.create(new(2, revision=2), [FIRST], "gone")
    await journal.create(new(3, rule_set="jintan"), [FIRST], "gone")
    await journal.join(ME, LEASE_MS)
    assert await claimed(journal, ME) == [Claim("t1", 2)]
    assert await claimed(journal, ME, table_id="t2") == []
    assert await journal.census() == Census({"me": 1}, 2)
    assert await journal.claim("me", [("jintan", 1)], 9) == [Claim("t3", 2)]


async def test_an_append_under_an_older_epoch_is_refused_and_leaves_nothing(journal):
    await journal.create(new(), [FIRST], "gone")
    await journal.append("t1", some(2), epoch=1)
    await journal.join(ME, LEASE_MS)
    assert await claimed(journal, ME) == [Claim("t1", 2)]
    for epoch in (1, 3):
        with pytest.raises(Superseded):
            await journal.append("t1", some(3), epoch=epoch, done=True)
    await journal.append("t1", some(3, seat=2), epoch=2)
    assert await journal.read("t1") == [FIRST, *some(2), *some(3, seat=2)]


async def test_a_lease_lasts_as_long_as_it_is_renewed(journal):
    await journal.join(ME, LEASE_MS)
    assert await journal.renew("me", LEASE_MS)
    await journal.create(new(), [FIRST], "me")
    assert await journal.renew("me", 0)
    # Now it has run out, and says so when it is renewed; nobody was quicker.
    assert await journal.owners() == []
    assert await journal.owner_of("t1") is None
    assert await claimed(journal, ME) == []
    assert not await journal.renew("me", LEASE_MS)
    assert await journal.held("me") == [Claim("t1", 1)]
    assert await journal.owner_of("t1") == ME
    await journal.append("t1", some(2), epoch=1)


async def test_nobody_owns_the_tables_of_an_owner_that_has_left(journal):
    await journal.join(ME, LEASE_MS)
    await journal.create(new(), [FIRST], "me")
    await journal.leave("me")
    assert await journal.owners() == []
    assert not await journal.renew("me", LEASE_MS)
    assert await claimed(journal, ME) == []
    await journal.join(OTHER, LEASE_MS)
    assert await claimed(journal, OTHER) == [Claim("t1", 2)]


async def test_a_table_that_was_given_up_is_free(journal):
    await journal.join(ME, LEASE_MS)
    for number in (1, 2):
        await journal.create(new(number), [FIRST], "me")
    await journal.give_up("t1", 7)
    assert await journal.owner_of("t1") == ME
    await journal.give_up("t1", 1)
    assert await journal.owner_of("t1") is None
    assert await journal.census() == Census({"me": 1}, 1)
    assert await claimed(journal, ME) == [Claim("t1", 2)]
    # An old owner does not take it from its new one.
    await journal.give_up("t1", 1)
    assert await journal.owner_of("t1") == ME


async def test_a_table_is_claimed_by_one(journal):
    for number in range(30):
        await journal.create(new(number), [FIRST], "gone")
    await journal.join(ME, LEASE_MS)
    claims = await asyncio.gather(*(claimed(journal, ME, 5) for _ in range(10)))
    tables = [claim.table_id for some_claims in claims for claim in some_claims]
    assert sorted(tables) == sorted(f"t{number}" for number in range(30))


async def test_what_is_done_is_owned_by_nobody(journal):
    await journal.join(ME, LEASE_MS)
    await journal.create(new(), [FIRST], "me")
    await journal.append("t1", some(2), epoch=1, closed=b"sum", done=True)
    assert await journal.owner_of("t1") is None
    assert await journal.held("me") == []
    assert await journal.census() == Census({"me": 0}, 0)


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
        for change in ("UPDATE operator_actions SET reason = ''", "DELETE FROM operator_actions"):
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
        modes = await journal._read(
            lambda db: (
                db.execute("PRAGMA journal_mode").fetchone()[0],
                db.execute("PRAGMA synchronous").fetchone()[0],
            )
        )
        assert modes == ("wal", 2)
    finally:
        await journal.close()
