"""What a storage of the ledger promises, for every storage; see ``store.Store``."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from fangcheng_kit.errors import ServiceError
from fangcheng_wallet.errors import (
    BalanceOutOfRange,
    DuplicateHold,
    InsufficientBalance,
    InvalidAmount,
    InvalidBook,
    RequestIdReused,
    TooManyPlayers,
    UnknownCurrency,
    UnknownHold,
    UnknownWallet,
    WalletDiffers,
)
from fangcheng_wallet.ledger import (
    LARGEST,
    Balance,
    Deposit,
    Done,
    Freeze,
    HoldRequest,
    HoldState,
    Kind,
    Party,
    PlaceHolds,
    ReleaseHolds,
    Settle,
    Transfer,
)
from fangcheng_wallet.store import Store
from tests.wallet.ledgers import (
    PLAYERS,
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
    release,
    settle,
    silver,
    together,
    withdraw,
)

# Wallets, deposits, withdrawals, statements.


async def test_a_wallet_is_opened_once(store: Store) -> None:
    assert await store.open_wallet("eve")
    assert not await store.open_wallet("eve")
    assert await store.balances("eve") == []


async def test_a_deposit_comes_from_outside_and_goes_back_there(store: Store) -> None:
    first = await store.deposit(replace(deposit("d1", "amy", 700), memo="a gift"))
    second = await store.withdraw(withdraw("w1", "amy", 300))
    assert (first.answer.version, first.answer.amount, first.answer.balance_after) == (1, 700, 700)
    assert (first.answer.reason, first.answer.reference) == ("deposit", "d1")
    assert first.answer.memo == "a gift"
    assert (second.answer.version, second.answer.amount) == (2, -300)
    assert (second.answer.balance_after, second.answer.reason) == (400, "withdraw")
    assert await store.balances("amy") == [Balance("silver", "", 400, 0)]
    page = await entries(store, "amy", 10)
    assert page.entries == [second.answer, first.answer]
    assert page.rest is None


async def test_a_bot_plays_with_the_money_of_the_house(store: Store) -> None:
    # In one batch: whose the wallet is, it is told by the very first command.
    opened, funded, _ = await asyncio.gather(
        store.open_wallet("robo", is_bot=True),
        store.deposit(deposit("f1", "robo", 500)),
        store.deposit(deposit("d1", "amy", 100)),
    )
    assert opened
    assert (funded.answer.reason, funded.answer.balance_after) == ("fund", 500)
    parties = (Party("robo"), Party("amy"))
    await store.settle(Settle("t/1", parties, (silver(0, 1, 120), silver(1, 0, 40))))
    back = await store.withdraw(withdraw("g1", "robo", 420))
    assert (back.answer.reason, back.answer.balance_after) == ("give_back", 0)
    told = await store.stream(0, 100)
    sides = {
        kind: sum(one.entry.amount for one in told if one.account.kind is kind)
        for kind in (Kind.HOUSE, Kind.EXTERNAL)
    }
    # Amy has won 80 of the house; nothing but her own deposit came from outside.
    assert sides == {Kind.HOUSE: -80, Kind.EXTERNAL: -100}


async def test_a_wallet_is_a_bots_or_a_persons_for_ever(store: Store) -> None:
    await store.open_wallet("robo", is_bot=True)
    assert not await store.open_wallet("robo", is_bot=True)
    for player, is_bot in (("robo", False), ("amy", True)):
        with pytest.raises(WalletDiffers) as refused:
            await store.open_wallet(player, is_bot=is_bot)
        assert refused.value.field == "is_bot"
    await store.freeze(Freeze("f", "robo", True, "a fault", "case 1"))
    assert (await store.standing("robo")).player.is_bot
    assert not (await store.standing("amy")).player.is_bot
    await store.deposit(deposit("d", "amy", 10))
    (entry,) = (await entries(store, "amy", 10)).entries
    assert entry.reason == "deposit"


@pytest.mark.parametrize(
    ("command", "kind", "field"),
    [
        (deposit("r", "nobody", 1), UnknownWallet, "player_id"),
        (Deposit("r", "amy", "gold", "", 1), UnknownCurrency, "currency"),
        (Deposit("r", "amy", "silver", "book", 1), InvalidBook, "book"),
        (Deposit("r", "amy", "points", "", 1), InvalidBook, "book"),
        (deposit("r", "amy", 0), InvalidAmount, "amount"),
        (deposit("r", "amy", -5), InvalidAmount, "amount"),
        (deposit("r", "amy", LARGEST + 1), InvalidAmount, "amount"),
        (deposit("r", "amy", 1_001, "coins"), InvalidAmount, "amount"),
    ],
)
async def test_a_deposit_that_cannot_be_is_refused(
    store: Store, command: Deposit, kind: type[ServiceError], field: str
) -> None:
    assert (await refused(store.deposit(command), kind))[1] == field
    assert await store.balances("amy") == []


async def test_no_more_than_is_available_can_be_withdrawn(store: Store) -> None:
    await store.deposit(deposit("d", "amy", 500))
    await hold_one(store, "h", "amy", 200)
    with pytest.raises(InsufficientBalance) as caught:
        await store.withdraw(withdraw("w", "amy", 301))
    assert (caught.value.field, caught.value.metadata) == ("amount", {"player_ids": "amy"})
    assert (await store.withdraw(withdraw("w", "amy", 300))).answer.balance_after == 0


async def test_a_floor_below_zero_is_credit(store: Store) -> None:
    done = await store.withdraw(withdraw("w1", "amy", 100, "coins"))
    assert done.answer.balance_after == -100
    await refused(store.withdraw(withdraw("w2", "amy", 1, "coins")), InsufficientBalance)


async def test_no_balance_leaves_the_range_of_amounts(store: Store) -> None:
    await store.deposit(deposit("d1", "amy", LARGEST))
    assert await refused(store.deposit(deposit("d2", "amy", 1)), BalanceOutOfRange) == (
        "BALANCE_OUT_OF_RANGE",
        "amount",
    )
    await store.withdraw(withdraw("w1", "bo", LARGEST, "points"))
    await refused(store.withdraw(withdraw("w2", "bo", 1, "points")), BalanceOutOfRange)
    hold = PlaceHolds("h", (HoldRequest("bo", "points", "book", 1),))
    await refused(store.place_holds(hold), BalanceOutOfRange)
    await refused(store.settle(settle("t/1", points(1, 0, 1))), BalanceOutOfRange)
    await store.deposit(deposit("c1", "cao", 1_000, "coins"))
    await refused(store.deposit(deposit("c2", "cao", 1, "coins")), BalanceOutOfRange)
    assert await store.balances("bo") == [Balance("points", "book", -LARGEST, 0)]


async def test_sums_of_the_largest_amounts_do_not_overflow(store: Store) -> None:
    """Two thousand of the largest amounts are more than 64 bits hold."""
    await asyncio.gather(*(store.open_wallet(f"p{number}") for number in range(2_050)))
    await asyncio.gather(
        *(
            store.settle(
                Settle(
                    f"t/{number}",
                    (Party(f"p{number}"), Party(f"p{number + 1}")),
                    (points(0, 1, LARGEST),),
                )
            )
            for number in range(0, 2_050, 2)
        )
    )
    audit = await store.audit()
    assert (audit.sums, audit.findings) == ({"points": 0}, ())
    assert (await store.pulse()).imbalance == {"points": 0}


async def test_a_statement_comes_in_pages_that_new_entries_do_not_shift(store: Store) -> None:
    for number in range(1, 8):
        await store.deposit(deposit(f"s{number}", "amy", number))
        await store.deposit(deposit(f"p{number}", "amy", number, "points"))
    first = await entries(store, "amy", 5)
    assert [entry.reference for entry in first.entries] == ["p7", "s7", "p6", "s6", "p5"]
    await store.deposit(deposit("later", "amy", 1))
    second = await entries(store, "amy", 5, before=first.rest)
    assert [entry.reference for entry in second.entries] == ["s5", "p4", "s4", "p3", "s3"]
    third = await entries(store, "amy", 4, before=second.rest)
    assert [entry.reference for entry in third.entries] == ["p2", "s2", "p1", "s1"]
    assert third.rest is None
    page = await entries(store, "amy", 7, "points")
    assert [entry.version for entry in page.entries] == [7, 6, 5, 4, 3, 2, 1]
    assert page.rest is None
    assert (await entries(store, "amy", 5, "coins")).entries == []
    await refused(entries(store, "nobody", 5), UnknownWallet)


async def test_times_never_go_back(open_store: OpenStore, tmp_path: Path) -> None:
    now = [1_000]
    async with open_store(tmp_path, clock=lambda: now[0]) as store:
        await open_four(store)
        times = []
        for number, clock in enumerate([1_000, 500, 2_000, 1_999]):
            now[0] = clock
            times.append((await store.deposit(deposit(f"{number}", "amy", 1))).answer.time_us)
    assert times == [1_000, 1_000, 2_000, 2_000]
    async with open_store(tmp_path, clock=lambda: 3) as store:
        assert (await store.deposit(deposit("next", "amy", 1))).answer.time_us == 2_000
        assert (await store.audit()).findings == ()


# The same again.


async def test_a_repeat_answers_the_first_answer(store: Store) -> None:
    first = await store.deposit(deposit("r", "amy", 100))
    await store.withdraw(withdraw("other", "amy", 60))
    again = await store.deposit(deposit("r", "amy", 100))
    assert (first.replayed, again.replayed) == (False, True)
    assert again.answer == first.answer
    assert await has(store, "amy") == (40, 0)


async def test_a_repeat_with_another_body_names_what_differs(store: Store) -> None:
    await store.deposit(deposit("r", "amy", 100))
    with pytest.raises(RequestIdReused) as caught:
        await store.deposit(Deposit("r", "bo", "silver", "", 101))
    assert caught.value.metadata == {"differs": "amount,player_id"}
    assert caught.value.field == "request_id"
    assert await has(store, "bo") == (0, 0)


async def test_what_could_not_be_done_now_is_still_answered_as_it_was_done(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with open_store(tmp_path) as store:
        await open_four(store, 100)
        first = await store.withdraw(withdraw("r", "amy", 100))
        held = await hold_one(store, "h", "bo", 100)
        assert await store.withdraw(withdraw("r", "amy", 100)) == Done(first.answer, replayed=True)
    async with open_store(tmp_path) as store:
        await store.deposit(deposit("d", "cao", 1))
        await refused(store.withdraw(withdraw("other", "amy", 100)), InsufficientBalance)
        assert await store.withdraw(withdraw("r", "amy", 100)) == Done(first.answer, replayed=True)
        assert await hold_one(store, "h", "bo", 100) == held


async def test_each_verb_has_request_ids_of_its_own(store: Store) -> None:
    await store.deposit(deposit("r", "amy", 100))
    assert not (await store.withdraw(withdraw("r", "amy", 100))).replayed
    await store.deposit(deposit("r2", "amy", 100))
    await hold_one(store, "r", "amy", 100)
    assert not (await store.settle(settle("r"))).replayed


async def test_a_refusal_does_not_use_an_id_up(store: Store) -> None:
    await refused(store.withdraw(withdraw("r", "amy", 100)), InsufficientBalance)
    await store.deposit(deposit("d", "amy", 100))
    assert not (await store.withdraw(withdraw("r", "amy", 100))).replayed
    await refused(store.settle(settle("t/1", Transfer("gold", "", 0, 1, 1, "x"))), UnknownCurrency)
    assert not (await store.settle(settle("t/1", silver(0, 1, 1)))).replayed


async def test_ids_that_the_wallet_made_are_no_part_of_what_is_compared(store: Store) -> None:
    """formancehq/wallets#109: a retry was refused because of the server's own ids."""
    await store.deposit(deposit("d", "amy", 100))
    wanted = PlaceHolds("h", (HoldRequest("amy", "silver", "", 70),))
    first = await store.place_holds(wanted)
    await release(store, first.answer[0].hold_id)
    again = await store.place_holds(wanted)
    assert again == Done(first.answer, replayed=True)
    assert await has(store, "amy") == (100, 0)


async def test_everything_is_there_after_a_restart(open_store: OpenStore, tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        await open_four(store, 1_000)
        holds = await hold_each(store, 500)
        request = settle("t/1", silver(1, 0, 700), holds=holds, club="north")
        first = await store.settle(request)
        before = await all_have(store)
    async with open_store(tmp_path) as store:
        assert await all_have(store) == before == [(1_200, 500), (300, 0), (500, 500), (500, 500)]
        assert await store.settlement("t/1") == first.answer
        assert await store.settle(request) == Done(first.answer, replayed=True)
        assert await release(store, *holds["bo"], *holds["cao"]) == [0, 500]
        assert (await store.audit()).findings == ()


# Holds.


async def test_a_hold_sets_money_aside_and_a_release_gives_it_back(store: Store) -> None:
    await store.deposit(deposit("d", "amy", 1_000))
    hold = await hold_one(store, "h", "amy", 300)
    assert (hold.amount, hold.remaining, hold.released) == (300, 300, False)
    assert await has(store, "amy") == (700, 300)
    assert (await store.pulse()).open_holds == 1
    (released,) = await store.release_holds(ReleaseHolds((hold.hold_id,)))
    assert released == structs.replace(hold, state=HoldState.RELEASED, given_back=300)
    assert await has(store, "amy") == (1_000, 0)
    assert (await store.pulse()).open_holds == 0
    shown = (await entries(store, "amy", 3)).entries
    assert [(e.reason, e.amount, e.reference) for e in shown] == [
        ("release", 300, hold.hold_id),
        ("hold", -300, hold.hold_id),
        ("deposit", 1_000, "d"),
    ]


async def test_a_hold_is_released_once(store: Store) -> None:
    """blnkfinance/blnk#41: a hold was released twice."""
    await store.deposit(deposit("d", "amy", 1_000))
    hold = await hold_one(store, "h", "amy", 300)
    assert await release(store, hold.hold_id) == [300]
    assert await release(store, hold.hold_id) == [0]
    answers = await together(*(release(store, hold.hold_id) for _ in range(20)))
    assert answers == [[0]] * 20
    assert await has(store, "amy") == (1_000, 0)


async def test_an_unknown_hold_releases_none(store: Store) -> None:
    await store.deposit(deposit("d", "amy", 1_000))
    hold = await hold_one(store, "h", "amy", 300)
    call = release(store, hold.hold_id, "no such hold")
    assert await refused(call, UnknownHold) == ("UNKNOWN_HOLD", "hold_ids[1]")
    assert await has(store, "amy") == (700, 300)


async def test_buy_ins_are_held_for_all_or_none(store: Store) -> None:
    await open_four(store, 1_000)
    await store.withdraw(withdraw("w1", "bo", 600))
    await store.withdraw(withdraw("w2", "dan", 501))
    with pytest.raises(InsufficientBalance) as caught:
        await hold_each(store, 500)
    assert caught.value.metadata == {"player_ids": "bo,dan"}
    assert caught.value.field == "holds[1].amount"
    assert await all_have(store) == [(1_000, 0), (400, 0), (1_000, 0), (499, 0)]


async def test_two_hundred_holds_at_once_take_no_more_than_there_is(store: Store) -> None:
    """blnkfinance/blnk#181: holds were left out of the balance check."""
    await store.deposit(deposit("d", "amy", 5_000))
    answers = await together(*(hold_one(store, f"h{n}", "amy", 1_000) for n in range(200)))
    assert sum(isinstance(answer, InsufficientBalance) for answer in answers) == 195
    assert await has(store, "amy") == (0, 5_000)


@pytest.mark.parametrize(
    ("holds", "kind", "field"),
    [
        ([("amy", "silver", "", 1), ("nobody", "silver", "", 1)], UnknownWallet,
         "holds[1].player_id"),
        ([("amy", "gold", "", 1)], UnknownCurrency, "holds[0].currency"),
        ([("amy", "silver", "x", 1)], InvalidBook, "holds[0].book"),
        ([("amy", "silver", "", 0)], InvalidAmount, "holds[0].amount"),
        ([("amy", "silver", "", 1), ("amy", "silver", "", 1)], DuplicateHold, "holds[1]"),
        ([(player, "silver", "", 1) for player in (*PLAYERS, "eve")], TooManyPlayers,
         "holds[4].player_id"),
    ],
)  # fmt: skip
async def test_buy_ins_that_cannot_be_are_refused(
    store: Store,
    holds: list[tuple[str, str, str, int]],
    kind: type[ServiceError],
    field: str,
) -> None:
    await store.open_wallet("eve")
    command = PlaceHolds("h", tuple(HoldRequest(*hold) for hold in holds))
    assert (await refused(store.place_holds(command), kind))[1] == field
