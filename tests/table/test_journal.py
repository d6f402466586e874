"""What every journal promises of tables and their events (`store.Journal`), whatever is below."""

from __future__ import annotations

import asyncio

import pytest

from fangcheng_table.events import TableClosed
from fangcheng_table.store import (
    Census,
    Filter,
    JournalError,
    Opening,
    Record,
    SequenceConflict,
)

from .journals import FIRST, LEASE_MS, ME, PLAYS, new, some


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
