"""What every journal promises of finished hands, and of what operators did."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fangcheng_table.store import (
    FoundHand,
    HandEntry,
    HandFilter,
    SequenceConflict,
)

from .journals import FIRST, action, finish, hand, new, some


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
