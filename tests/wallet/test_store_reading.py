"""Reversals, statements, balances of then, leaderboards and the stream, for every storage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from pathlib import Path

import pytest

from fangcheng_wallet.errors import (
    InsufficientBalance,
    InvalidBook,
    NotOwed,
    RequestIdReused,
    SettlementReversed,
    UnknownCurrency,
    UnknownSettlement,
    UnknownWallet,
)
from fangcheng_wallet.ledger import (
    Balance,
    Collect,
    Done,
    Kind,
    LeaderboardQuery,
    PartyReversal,
    Place,
    Reversal,
    Reverse,
)
from fangcheng_wallet.store import Store
from tests.wallet.ledgers import (
    PLAYERS,
    SILVER,
    OpenStore,
    all_have,
    deposit,
    entries,
    has,
    hold_each,
    hold_one,
    open_four,
    points,
    refused,
    settle,
    silver,
    together,
    withdraw,
)

# Reversals.


async def test_a_reversal_gives_everybody_back_what_the_hand_took(store: Store) -> None:
    await open_four(store, 1_000)
    holds = await hold_each(store, 100)
    await store.settle(
        settle("t/1", silver(1, 0, 60), silver(0, None, 9, "fee"), points(2, 0, 7), holds=holds)
    )
    done = await store.reverse(Reverse("t/1", "cut off", "case 8"))
    reversal = done.answer
    assert (reversal.key, reversal.reason, reversal.case_id) == ("t/1", "cut off", "case 8")
    assert reversal.parties == (
        PartyReversal(0, "points", "book", -7, 0, 0),
        PartyReversal(2, "points", "book", 7, 0, 0),
        PartyReversal(0, "silver", "", -51, 0, 909),
        PartyReversal(1, "silver", "", 60, 0, 960),
    )
    assert await all_have(store) == [(909, 91), (960, 40), (900, 100), (900, 100)]
    (entry,) = (await entries(store, "bo", 1, "silver")).entries
    assert (entry.reason, entry.amount, entry.reference) == ("reverse", 60, "t/1")
    assert entry.memo == "cut off"
    assert (await store.settlement("t/1")).reversal == reversal


async def test_what_cannot_be_given_back_is_owed(store: Store) -> None:
    await open_four(store, 100)
    await store.settle(settle("t/1", silver(1, 0, 80), silver(2, 0, 30)))
    await store.withdraw(withdraw("w", "amy", 150))
    done = await store.reverse(Reverse("t/1", "cut off"))
    assert done.answer.parties[0] == PartyReversal(0, "silver", "", -60, 50, 0)
    assert await store.balances("amy") == [Balance("silver", "", 0, 0, owed=50)]
    assert [await has(store, player) for player in ("bo", "cao")] == [(100, 0), (100, 0)]
    kinds = {e.account.kind: e.entry.amount for e in (await store.stream(0, 100))[-4:]}
    assert kinds[Kind.RECEIVABLE] == -50


async def test_what_is_owed_is_collected_or_written_off(store: Store) -> None:
    await open_four(store, 100)
    await store.settle(settle("t/1", silver(1, 0, 80), silver(2, 0, 30)))
    await store.withdraw(withdraw("w", "amy", 150))
    await store.reverse(Reverse("t/1", "cut off"))  # amy owes 50
    command = Collect("c1", "amy", "silver", "", 20, "agreed", "case 8")
    # Nothing is taken that is not there, and nothing more than is owed.
    await refused(store.collect(command), InsufficientBalance)
    await store.deposit(deposit("d", "amy", 60))
    assert await refused(store.collect(replace(command, amount=51)), NotOwed) == (
        "NOT_OWED",
        "amount",
    )
    done = await store.collect(command)
    assert (done.answer.owed, done.answer.available, done.replayed) == (30, 40, False)
    assert await store.collect(command) == Done(done.answer, replayed=True)
    await refused(store.collect(replace(command, write_off=True)), RequestIdReused)
    (entry,) = (await entries(store, "amy", 1, "silver")).entries
    assert (entry.reason, entry.amount, entry.reference, entry.memo) == (
        *("collect", -20, "c1", "agreed"),
    )
    off = await store.collect(replace(command, request_id="c2", amount=30, write_off=True))
    assert (off.answer.owed, off.answer.available) == (0, 40)
    assert await store.balances("amy") == [Balance("silver", "", 40, 0)]
    house, receivable = (await store.stream(0, 100))[-2:]
    assert (house.account.kind, house.entry.amount) == (Kind.HOUSE, -30)
    assert (receivable.account.kind, receivable.entry.balance_after) == (Kind.RECEIVABLE, 0)
    await refused(store.collect(replace(command, request_id="c3", amount=1)), NotOwed)


async def test_a_settlement_is_reversed_once(store: Store) -> None:
    await open_four(store, 100)
    await store.settle(settle("t/1", silver(1, 0, 80)))
    command = Reverse("t/1", "cut off", "case 8")
    answers = await together(*(store.reverse(command) for _ in range(20)))
    done = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(done) == 20
    assert [one.replayed for one in done].count(False) == 1
    assert all(one.answer == done[0].answer for one in done)
    with pytest.raises(SettlementReversed) as caught:
        await store.reverse(replace(command, reason="another"))
    assert caught.value.metadata == {"differs": "reason"}
    assert await all_have(store) == [(100, 0)] * 4


async def test_a_settlement_is_settled_and_reversed_in_one_breath(store: Store) -> None:
    await open_four(store, 100)
    await store.settle(settle("t/0", silver(1, 0, 80)))
    await store.withdraw(withdraw("w", "amy", 180))
    await store.reverse(Reverse("t/0", "first"))  # amy owes 80
    answers = await together(
        store.settle(settle("t/1", silver(1, 0, 100))),
        store.reverse(Reverse("t/1", "at once")),
    )
    assert not [answer for answer in answers if isinstance(answer, BaseException)]
    assert await store.balances("amy") == [Balance("silver", "", 0, 0, owed=80)]
    assert await has(store, "bo") == (100, 0)


async def test_what_was_not_settled_is_not_reversed(store: Store) -> None:
    await refused(store.reverse(Reverse("t/1", "cut off")), UnknownSettlement)
    await store.settle(settle("t/1"))
    assert (await store.reverse(Reverse("t/1", "cut off"))).answer.parties == ()
    repeat = await store.settle(settle("t/1"))
    assert (repeat.replayed, repeat.answer.reversal) == (True, None)
    assert isinstance((await store.settlement("t/1")).reversal, Reversal)


async def test_a_currency_that_is_no_more_is_not_reversed(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with open_store(tmp_path) as store:
        await open_four(store)
        await store.settle(settle("t/1", points(1, 0, 7)))
    async with open_store(tmp_path, [SILVER]) as store:
        refusal, answer = await together(
            store.reverse(Reverse("t/1", "cut off")), store.deposit(deposit("d", "amy", 1))
        )
        assert isinstance(refusal, UnknownCurrency)
        assert refusal.field == "key"
        assert isinstance(answer, Done)
    async with open_store(tmp_path) as store:
        await store.reverse(Reverse("t/1", "cut off"))
        assert await has(store, "amy", "points") == (0, 0)


# What was.


@pytest.fixture
async def history(open_store: OpenStore, tmp_path: Path) -> AsyncIterator[Store]:
    """Something every second from the hundredth on, in two clubs."""
    now = [99]
    async with open_store(tmp_path, clock=lambda: now[0] * 1_000_000) as store:
        await open_four(store)

        async def then(call: Awaitable[object]) -> None:
            now[0] += 1
            await call

        await then(store.deposit(deposit("d", "amy", 500)))  # 100
        await then(store.deposit(deposit("e", "bo", 500)))
        await then(hold_one(store, "h", "amy", 50))  # 102
        await then(store.settle(settle("t/1", silver(1, 0, 70), points(1, 0, 7), club="north")))
        await then(store.settle(settle("t/2", silver(0, 1, 20), points(0, 2, 2), club="south")))
        await then(
            store.settle(settle("t/3", points(2, 0, 5), points(3, 1, 7), club="north", app="x"))
        )
        await then(store.withdraw(withdraw("w", "amy", 100)))  # 106
        yield store
        assert (await store.audit()).findings == ()


def at(second: float) -> int:
    return int(second * 1_000_000)


async def test_balances_are_told_as_they_were(history: Store) -> None:
    async def silver_at(second: float) -> list[tuple[int, int]]:
        balances = await history.balances("amy", at(second))
        return [(b.available, b.held) for b in balances if b.currency == "silver"]

    assert await silver_at(99) == []
    assert await silver_at(100) == [(500, 0)]
    assert await silver_at(101.9) == [(500, 0)]
    assert await silver_at(102) == [(450, 50)]
    assert await silver_at(103) == [(520, 50)]
    assert await silver_at(105) == [(500, 50)]
    assert await history.balances("amy", at(106)) == await history.balances("amy")
    await refused(history.balances("nobody", at(100)), UnknownWallet)


async def test_a_statement_is_filtered(history: Store) -> None:
    async def references(**query: object) -> list[str]:
        page = await entries(history, "amy", 50, **query)
        return [f"{entry.reference} {entry.currency}" for entry in page.entries]

    assert await references(labels={"club": "north"}) == ["t/3 points", "t/1 points", "t/1 silver"]
    assert await references(labels={"club": "north", "app": "x"}) == ["t/3 points"]
    assert await references(labels={"club": "west"}) == []
    assert await references(reasons=("deposit", "withdraw")) == ["w silver", "d silver"]
    assert await references(reference="t/2") == ["t/2 points", "t/2 silver"]
    assert await references(book="book") == ["t/3 points", "t/2 points", "t/1 points"]
    assert await references(since_us=at(105)) == ["w silver", "t/3 points"]
    assert await references(until_us=at(102)) == ["d silver"]
    assert await references(since_us=at(103), until_us=at(104)) == ["t/1 points", "t/1 silver"]
    assert await references(since_us=at(200)) == []
    first = await entries(history, "amy", 1, labels={"club": "north"})
    assert first.rest is not None
    assert first.entries[0].labels == {"club": "north", "app": "x"}
    rest = await entries(history, "amy", 5, labels={"club": "north"}, before=first.rest)
    assert [entry.reference for entry in rest.entries] == ["t/1", "t/1"]


async def test_the_stream_tells_every_entry_once_in_order(history: Store) -> None:
    whole = await history.stream(0, 500)
    assert [one.number for one in whole] == list(range(1, len(whole) + 1))
    assert [one.operation for one in whole] == sorted(one.operation for one in whole)
    assert sum(one.entry.amount for one in whole if one.entry.currency == "silver") == 0
    pieces = []
    cursor = 0
    while part := await history.stream(cursor, 3):
        pieces += part
        cursor = part[-1].number
    assert pieces == list(whole)
    hold = next(one for one in whole if one.account.kind is Kind.HOLD)
    assert (hold.verb, hold.entry.amount) == ("place_holds", 50)
    won = next(one for one in whole if one.entry.reference == "t/1")
    assert won.entry.labels == {"club": "north"}


async def test_the_stream_is_complete_while_it_is_written(store: Store) -> None:
    await open_four(store, 1_000)
    writing = asyncio.gather(
        *(store.settle(settle(f"t/{n}", silver(n % 4, (n + 1) % 4, 3))) for n in range(300))
    )
    seen = []
    while not writing.done() or await store.stream(len(seen), 1):
        seen += await store.stream(len(seen), 40)
        assert [one.number for one in seen[-40:]] == list(
            range(max(1, len(seen) - 39), len(seen) + 1)
        )
    await writing
    assert len(seen) == 8 + 600


# Leaderboards.


async def test_a_leaderboard_ranks_what_settlements_brought(history: Store) -> None:
    query = LeaderboardQuery("points", "book", player_id="cao", neighbours=1)
    board = await history.leaderboard(query)
    assert board.places == (
        Place(1, "amy", 10, 3),
        Place(2, "bo", 0, 2),
        Place(3, "cao", -3, 2),
        Place(4, "dan", -7, 1),
    )
    assert board.own == Place(3, "cao", -3, 2)
    assert board.around == board.places[1:]
    assert (board.more, board.closed) == (False, False)
    nobody = await history.leaderboard(replace(query, player_id="nobody", limit=2, skip=1))
    assert (nobody.own, nobody.around) == (None, ())
    assert (nobody.places, nobody.more) == (board.places[1:3], True)


async def test_a_leaderboard_counts_a_period_and_labels(history: Store) -> None:
    async def scores(**query: object) -> dict[str, int]:
        wanted = replace(LeaderboardQuery("points", "book"), **query)
        board = await history.leaderboard(wanted)
        return {place.player_id: place.score for place in board.places}

    north = {"amy": 12, "bo": 0, "cao": -5, "dan": -7}
    assert await scores(labels={"club": "north"}) == north
    assert await scores(labels={"club": "north", "app": "x"}) == {
        "amy": 5, "bo": 7, "cao": -5, "dan": -7,
    }  # fmt: skip
    assert await scores(since_us=at(104), until_us=at(105)) == {"cao": 2, "amy": -2}
    assert await scores(since_us=at(200)) == {}
    silver_board = await history.leaderboard(LeaderboardQuery("silver", ""))
    assert {p.player_id: p.score for p in silver_board.places} == {"amy": 50, "bo": -50}
    await refused(history.leaderboard(LeaderboardQuery("gold", "")), UnknownCurrency)
    await refused(history.leaderboard(LeaderboardQuery("points", "")), InvalidBook)


async def test_equal_scores_share_a_rank(store: Store) -> None:
    await store.settle(settle("t/1", points(0, 2, 5), points(3, 1, 5)))
    board = await store.leaderboard(LeaderboardQuery("points", "book"))
    assert [(p.rank, p.player_id) for p in board.places] == [
        (1, "bo"), (1, "cao"), (3, "amy"), (3, "dan"),
    ]  # fmt: skip


async def test_a_closed_period_never_changes(history: Store) -> None:
    query = LeaderboardQuery("points", "book", since_us=at(103), until_us=at(106))
    board = await history.leaderboard(query)
    assert board.closed
    assert not (await history.leaderboard(replace(query, until_us=at(107)))).closed
    await history.settle(settle("t/9", points(3, 0, 100)))
    await history.reverse(Reverse("t/1", "late"))
    later = await history.leaderboard(query)
    assert (later.places, later.closed) == (board.places, True)


async def test_the_pages_of_a_leaderboard_show_one_moment(store: Store) -> None:
    for number, player in enumerate(PLAYERS[1:], 1):
        await store.settle(settle(f"t/{number}", points(0, PLAYERS.index(player), number)))
    first = await store.leaderboard(LeaderboardQuery("points", "book", limit=2))
    assert [p.player_id for p in first.places] == ["dan", "cao"]
    await store.settle(settle("t/9", points(3, 0, 50)))
    second = await store.leaderboard(
        LeaderboardQuery("points", "book", skip=2, limit=2, horizon=first.horizon)
    )
    assert [(p.player_id, p.score) for p in second.places] == [("bo", 1), ("amy", -6)]
    anew = await store.leaderboard(LeaderboardQuery("points", "book", limit=1))
    assert anew.places[0].player_id == "amy"


async def test_a_page_is_closed_only_if_its_own_moment_is_after_the_period(
    open_store: OpenStore, tmp_path: Path
) -> None:
    now = [100]
    async with open_store(tmp_path, clock=lambda: now[0] * 1_000_000) as store:
        await open_four(store)
        await store.settle(settle("t/1", points(0, 1, 5)))
        query = LeaderboardQuery("points", "book", until_us=at(110), limit=1)
        first = await store.leaderboard(query)
        now[0] = 105
        await store.settle(settle("t/2", points(0, 1, 5)))
        now[0] = 110
        assert not (await store.leaderboard(query)).closed
        await store.deposit(deposit("d", "amy", 1))
        again = await store.leaderboard(query)
        assert (again.closed, again.places[0].score) == (True, 10)
        # The listing that began within the period goes on with what was so then.
        second = await store.leaderboard(replace(query, skip=1, horizon=first.horizon))
        assert (second.closed, second.places) == (False, (Place(2, "amy", -5, 1),))
        # Nobody has to have been told of an operation to name it.
        ahead = await store.leaderboard(replace(query, horizon=10_000))
        assert (ahead.closed, ahead.horizon) == (True, again.horizon)


async def test_a_reversal_is_taken_off_the_board(store: Store) -> None:
    await open_four(store, 100)
    await store.settle(settle("t/1", silver(1, 0, 60)))
    await store.settle(settle("t/2", silver(1, 2, 10)))
    await store.withdraw(withdraw("w", "amy", 160))
    await store.reverse(Reverse("t/1", "cut off"))
    board = await store.leaderboard(LeaderboardQuery("silver", ""))
    assert board.places == (
        Place(1, "cao", 10, 1),
        Place(2, "amy", 0, 0),
        Place(3, "bo", -10, 1),
    )
