"""Tables that are over can be made to forget what names a person; nothing else changes."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from fangcheng_table.errors import TableNotOver, UnknownTable
from fangcheng_table.events import Event, TableCreated
from fangcheng_table.sqlite import SqliteJournal
from fangcheng_table.store import Filter, HandFilter, NewTable, Rewriting

from .journals import FIRST, finish, hand, new, some

LABELS = {"club": "17", "name": "Ann"}


def nameless(event: Event) -> Event:
    if not isinstance(event, TableCreated):
        return event
    return replace(event, seats=tuple(replace(seat, profile=b"") for seat in event.seats))


def unlabelled(table: NewTable) -> NewTable:
    labels = {key: value for key, value in table.labels.items() if key != "name"}
    return replace(table, labels={**labels, "erased": "yes"}, request="erased")


FORGET = Rewriting(nameless, unlabelled, lambda summary: summary.replace(b"Ann", b"-"))


async def over(journal, number=1):
    table = new(number, labels=LABELS)
    await journal.create(table, [FIRST], "me")
    await finish(journal, hand(table, 1), 2)
    await journal.append(table.table_id, some(3, 2), epoch=1, closed=b"sum of Ann", done=True)
    return table


async def test_what_is_to_be_forgotten_goes_and_the_rest_stays(journal):
    table, other = await over(journal), await over(journal, 2)
    assert await journal.rewrite("t1", FORGET) == 1
    forgotten = replace(FIRST, event=nameless(FIRST.event))
    assert forgotten != FIRST
    assert await journal.read("t1") == [forgotten, *some(2), *some(3, 2)]
    assert await journal.by_request("r1") == replace(
        table, request="erased", labels={"club": "17", "erased": "yes"}
    )
    anybody = Filter(include_closed=True)
    assert [one.summary for one in await journal.find(anybody, None, 9)] == [
        b"sum of Ann",
        b"sum of -",
    ]
    for labels, found in (({"name": "Ann"}, ["t2"]), ({"erased": "yes"}, ["t1"])):
        tables = await journal.find(replace(anybody, labels=labels), None, 9)
        hands = await journal.hands(HandFilter(labels=labels), None, 9)
        assert [one.table_id for one in tables] == found
        assert [one.entry.table_id for one in hands] == found
    assert await journal.by_request("r2") == other
    # Once more is nothing more.
    assert await journal.rewrite("t1", FORGET) == 0


def without(number: int) -> Rewriting:
    """Forgets the profile at a seat."""

    def change(event: Event) -> Event:
        if not isinstance(event, TableCreated):
            return event
        seats = list(event.seats)
        seats[number] = replace(seats[number], profile=b"")
        return replace(event, seats=tuple(seats))

    return Rewriting(change, lambda table: table, lambda summary: summary)


async def test_many_at_once_all_stay(journal):
    """Each forgets something else of the same table."""
    await over(journal)
    await asyncio.gather(*(journal.rewrite("t1", without(number)) for number in range(4)))
    assert (await journal.read("t1"))[0] == replace(FIRST, event=nameless(FIRST.event))


async def test_two_processes_undo_nothing_of_one_another_in_a_file(tmp_path):
    one, other = (SqliteJournal(tmp_path / "table.db") for _ in range(2))
    has_read, may_go_on = threading.Event(), threading.Event()
    first = without(0)

    def slowly(event: Event) -> Event:
        has_read.set()
        may_go_on.wait()
        return first.event(event)

    try:
        await over(one)
        rewriting = asyncio.create_task(one.rewrite("t1", replace(first, event=slowly)))
        await asyncio.to_thread(has_read.wait)
        assert await other.rewrite("t1", FORGET) == 1
        may_go_on.set()
        assert await rewriting == 0, "what it was to forget is forgotten"
        assert (await one.read("t1"))[0] == replace(FIRST, event=nameless(FIRST.event))
        assert (await one.by_request("r1")).request == "erased"
    finally:
        may_go_on.set()
        await one.close()
        await other.close()


async def test_a_table_that_goes_on_is_left_alone(journal):
    await journal.create(new(labels=LABELS), [FIRST], "me")
    await journal.append("t1", some(2), epoch=1, closed=b"sum")
    with pytest.raises(TableNotOver):
        await journal.rewrite("t1", FORGET)
    with pytest.raises(UnknownTable):
        await journal.rewrite("t9", FORGET)
    assert await journal.read("t1") == [FIRST, *some(2)]


async def test_where_it_fails_nothing_has_changed(journal):
    table = await over(journal)

    def fails(summary: bytes) -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await journal.rewrite("t1", replace(FORGET, summary=fails))
    assert await journal.read("t1") == [FIRST, *some(2), *some(3, 2)]
    assert await journal.by_request("r1") == table
