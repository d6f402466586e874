"""Calls that come together: one commit, one outcome each, for every storage."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fangcheng_wallet.errors import (
    SettlementKeyReused,
)
from fangcheng_wallet.keeper import tend
from fangcheng_wallet.ledger import (
    Done,
)
from fangcheng_wallet.store import Commit, Store
from tests.wallet.ledgers import (
    PLAYERS,
    OpenStore,
    all_have,
    deposit,
    has,
    hold_one,
    open_four,
    paid,
    settle,
    silver,
    together,
)


async def test_fifty_calls_with_one_key_settle_once(store: Store) -> None:
    """getlago/lago-api#3618: the same payment was settled twice within milliseconds."""
    await open_four(store, 1_000)
    command = settle("t/1", silver(1, 0, 10))
    answers = await together(*(store.settle(command) for _ in range(50)))
    done = [answer for answer in answers if isinstance(answer, Done)]
    assert len(done) == 50
    assert sum(not answer.replayed for answer in done) == 1
    assert len({repr(answer.answer) for answer in done}) == 1
    assert await all_have(store) == [(1_010, 0), (990, 0), (1_000, 0), (1_000, 0)]


async def test_links_that_several_write_at_once_are_one_chain(
    store: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """None of them fails, nor a call that comes meanwhile; each goes on until all is linked."""
    for lot in range(5):
        await together(*(store.deposit(deposit(f"d {lot}/{n}", "amy", 1)) for n in range(40)))
        linked = await together(*(store.link(limit) for limit in (7, 100, 7, 30)))
        assert all(isinstance(count, int) for count in linked), linked
        more = [store.deposit(deposit(f"e {lot}/{n}", "bo", 1)) for n in range(20)]
        done = await together(tend(store), *more, tend(store))
        assert not [one for one in done if isinstance(one, BaseException)]
        await together(*(tend(store) for _ in range(3)))
        report = await store.verify()
        assert (report.finding, report.unchained) == ("", 0)
    assert not [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


async def test_whoever_tends_is_done_when_all_that_there_was_is_linked(store: Any) -> None:
    """Though another is at it, as the keeper of each storage always may be."""
    await together(*(store.deposit(deposit(f"d {n}", "amy", 1)) for n in range(300)))
    other = asyncio.create_task(tend(store))
    await tend(store)
    assert (await store.verify()).unchained == 0
    await other


async def test_a_key_twice_in_one_commit_is_settled_once_and_replayed(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """formancehq/stack#1633: the same key twice in a batch broke the batch."""
    commits: list[Commit] = []
    async with open_store(tmp_path, on_commit=commits.append) as store:
        await open_four(store, 1_000)
        commits.clear()
        twin, other = settle("t/1", silver(1, 0, 10)), settle("t/2", silver(2, 0, 10))
        conflict = settle("t/1", silver(1, 0, 11))
        calls = [store.settle(command) for command in (twin, other, twin, conflict)]
        first, second, again, differing = await together(*calls)
        assert sum(commit.items for commit in commits) == 4
        assert len(commits) <= 2
        assert isinstance(first, Done)
        assert again == Done(first.answer, replayed=True)
        assert isinstance(second, Done)
        assert not second.replayed
        assert isinstance(differing, SettlementKeyReused)
        assert await has(store, "amy") == (1_020, 0)


async def test_one_bad_item_is_refused_alone(open_store: OpenStore, tmp_path: Path) -> None:
    commits: list[Commit] = []
    async with open_store(tmp_path, on_commit=commits.append) as store:
        await open_four(store, 1_000)
        commits.clear()
        answers = await together(
            *(
                store.settle(settle(f"t/{n}", silver(1, 0, 1), silver(1, 9 if n == 25 else 2, 1)))
                for n in range(50)
            )
        )
        assert sum(commit.items for commit in commits) == 50
        assert len(commits) <= 2
        assert [n for n, answer in enumerate(answers) if not isinstance(answer, Done)] == [25]
        assert await all_have(store) == [(1_049, 0), (902, 0), (1_049, 0), (1_000, 0)]


async def test_a_fault_of_ours_in_one_item_is_not_the_others(store: Store) -> None:
    amount: Any = "many"  # what no decision is made for
    answers = await together(
        *(store.deposit(deposit(f"a{n}", "amy", 1)) for n in range(3)),
        store.deposit(deposit("b", "amy", amount)),
        *(store.deposit(deposit(f"c{n}", "amy", 1)) for n in range(3)),
    )
    assert [n for n, answer in enumerate(answers) if not isinstance(answer, Done)] == [3]
    assert await has(store, "amy") == (6, 0)


async def test_players_who_pay_each_other_at_once_do_not_block(store: Store) -> None:
    await open_four(store, 1_000)
    answers = await together(
        *(
            store.settle(settle(f"t/{n}", silver(n % 4, (n + 1 + n % 3) % 4, 1 + n % 7)))
            for n in range(200)
        ),
    )
    holds = await together(*(hold_one(store, f"h{n}", PLAYERS[n % 4], 5) for n in range(40)))
    assert all(isinstance(answer, Done) for answer in answers)
    assert not [hold for hold in holds if isinstance(hold, BaseException)]
    assert sum(available + held for available, held in await all_have(store)) == 4_000


async def test_a_cancelled_call_does_not_tear_a_commit_apart(store: Store) -> None:
    await open_four(store, 10_000)
    commands = [settle(f"t/{n}", silver(1, 0, 1), silver(2, 0, 1)) for n in range(200)]
    for turns, command in enumerate(commands):
        call = asyncio.create_task(store.settle(command))
        neighbour = asyncio.create_task(store.settle(replace(command, key=f"other/{turns}")))
        for _ in range(turns % 7 + 1):
            await asyncio.sleep(0)
        call.cancel()
        assert not (await neighbour).replayed
    done = [await store.settle(command) for command in commands]
    # What was cancelled after it was taken has happened; the rest happens now. Nothing twice.
    assert any(answer.replayed for answer in done)
    assert await all_have(store) == [(10_800, 0), (9_600, 0), (9_600, 0), (10_000, 0)]
    assert [paid(answer) for answer in done] == [[1, 1]] * 200


async def test_every_read_sees_whole_operations(store: Store) -> None:
    """While money moves in circles, each audit adds up to what there was."""
    await open_four(store, 1_000)
    writing = asyncio.gather(
        *(
            store.settle(settle(f"t/{n}", silver(n % 4, (n + 1) % 4, 30), silver(n % 4, None, 1)))
            for n in range(400)
        )
    )
    reads = 0
    while not writing.done():
        audit = await store.audit()
        assert audit.findings == ()
        assert audit.sums == {"silver": 0}
        reads += 1
    await writing
    assert reads
