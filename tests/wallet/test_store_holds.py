"""The life of holds, fees, hold-only settlements and frozen players, for every storage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from fangcheng_wallet.errors import (
    BalanceOutOfRange,
    DuplicateCap,
    DuplicateFee,
    HoldNotOpen,
    HoldTaken,
    InsufficientBalance,
    InvalidAmount,
    PlayerFrozen,
    RequestIdReused,
    UnknownCurrency,
    UnknownHold,
    UnknownParty,
    UnknownWallet,
)
from fangcheng_wallet.keeper import tend
from fangcheng_wallet.ledger import (
    LARGEST,
    ExpireHold,
    ExtendHolds,
    Fee,
    Freeze,
    HandOver,
    Hold,
    HoldRequest,
    HoldState,
    LossCap,
    PlaceHolds,
    Player,
    ReleaseHolds,
    Settle,
    TopUpHold,
)
from fangcheng_wallet.store import Store
from tests.wallet.ledgers import (
    OpenStore,
    all_have,
    deposit,
    entries,
    has,
    hold_each,
    hold_one,
    open_four,
    paid,
    points,
    refused,
    release,
    settle,
    silver,
    together,
    withdraw,
)

SECOND = 1_000_000


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_us = 1_000 * SECOND

    def __call__(self) -> int:
        return self.now_us

    def pass_seconds(self, seconds: int) -> None:
        self.now_us += seconds * SECOND


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def timed(open_store: OpenStore, tmp_path: Path, clock: Clock) -> AsyncIterator[Store]:
    """A ledger whose clock is set by hand; each of the four has 1,000."""
    async with open_store(tmp_path, clock=clock) as store:
        await open_four(store, 1_000)
        yield store
        audit = await store.audit()
    assert audit.findings == ()


async def placed(store: Store, player: str, amount: int, lifetime_seconds: int = 0) -> Hold:
    wanted = (HoldRequest(player, "silver", "", amount),)
    command = PlaceHolds(f"{player} {amount} {lifetime_seconds}", wanted, lifetime_seconds)
    return (await store.place_holds(command)).answer[0]


async def one(store: Store, hold_id: str) -> Hold:
    (hold,) = await store.holds([hold_id])
    return hold


# Time.


async def test_a_hold_is_given_back_when_its_time_is_over(timed: Store, clock: Clock) -> None:
    hold = await placed(timed, "amy", 300, lifetime_seconds=60)
    assert hold.expires_at_us == clock.now_us + 60 * SECOND
    clock.pass_seconds(59)
    await tend(timed)
    assert await has(timed, "amy") == (700, 300)
    clock.pass_seconds(1)
    while (await one(timed, hold.hold_id)).state is HoldState.OPEN:  # noqa: ASYNC110
        await asyncio.sleep(0.01)  # the storage does it by itself
    assert await one(timed, hold.hold_id) == structs.replace(
        hold, remaining=0, state=HoldState.EXPIRED, given_back=300
    )
    assert await has(timed, "amy") == (1_000, 0)
    (entry,) = (await entries(timed, "amy", 1)).entries
    assert (entry.reason, entry.amount, entry.reference) == ("expire", 300, hold.hold_id)


async def test_a_hold_without_a_lifetime_has_the_configured_one(timed: Store, clock: Clock) -> None:
    hold = await placed(timed, "amy", 300)
    assert hold.expires_at_us == clock.now_us + 86_400 * SECOND


async def test_what_is_not_over_does_not_expire(timed: Store, clock: Clock) -> None:
    hold = await placed(timed, "amy", 300, lifetime_seconds=60)
    done = await timed.do(ExpireHold(hold.hold_id))
    assert (done.answer, done.replayed) == (hold, False)
    assert await has(timed, "amy") == (700, 300)


async def test_a_hold_is_extended_and_never_shortened(timed: Store, clock: Clock) -> None:
    hold = await placed(timed, "amy", 300, lifetime_seconds=60)
    (longer,) = await timed.extend_holds(ExtendHolds((hold.hold_id,), 100))
    assert longer.expires_at_us == clock.now_us + 100 * SECOND
    (same,) = await timed.extend_holds(ExtendHolds((hold.hold_id,), 30))
    assert same == longer == await one(timed, hold.hold_id)
    clock.pass_seconds(80)
    await tend(timed)
    assert (await one(timed, hold.hold_id)).state is HoldState.OPEN


async def test_what_is_over_is_not_extended(timed: Store, clock: Clock) -> None:
    first = await placed(timed, "amy", 300, lifetime_seconds=600)
    second = await placed(timed, "bo", 300, lifetime_seconds=60)
    await release(timed, first.hold_id)
    with pytest.raises(HoldNotOpen) as caught:
        await timed.extend_holds(ExtendHolds((second.hold_id, first.hold_id), 100))
    assert caught.value.metadata == {"hold_ids": first.hold_id}
    clock.pass_seconds(61)  # given back by now, or about to be
    with pytest.raises(HoldNotOpen) as caught:
        await timed.extend_holds(ExtendHolds((first.hold_id, second.hold_id), 100))
    assert caught.value.metadata == {"hold_ids": f"{first.hold_id},{second.hold_id}"}
    await refused(timed.extend_holds(ExtendHolds(("no such hold",))), UnknownHold)


# Tables.


async def test_holds_are_handed_over_to_a_table_once(timed: Store, clock: Clock) -> None:
    ids = [(await placed(timed, player, 100, 60)).hold_id for player in ("amy", "bo")]
    over = await timed.hand_over(HandOver(tuple(ids), "t1", 500))
    assert [hold.table_id for hold in over] == ["t1", "t1"]
    assert {hold.expires_at_us for hold in over} == {clock.now_us + 500 * SECOND}
    assert await timed.hand_over(HandOver(tuple(ids), "t1", 10)) == over
    free = await placed(timed, "cao", 100, 60)
    with pytest.raises(HoldTaken) as caught:
        await timed.hand_over(HandOver((free.hold_id, ids[1]), "t2"))
    assert caught.value.metadata == {"hold_ids": ids[1]}
    assert (await one(timed, free.hold_id)).table_id == ""


async def test_the_table_of_a_hold_is_there_after_a_restart(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with open_store(tmp_path) as store:
        await open_four(store, 1_000)
        hold = await placed(store, "amy", 100, 600)
        (over,) = await store.hand_over(HandOver((hold.hold_id,), "t1", 900))
    async with open_store(tmp_path) as store:
        assert await store.holds([hold.hold_id]) == [over]
        assert list(await store.open_holds("amy")) == [over]
        await release(store, hold.hold_id)
        assert list(await store.open_holds("amy")) == []


async def test_a_hold_is_placed_handed_over_and_released_in_one_breath(store: Store) -> None:
    """All of it may end up in one commit."""
    await open_four(store, 1_000)
    hold = await placed(store, "amy", 100)
    first, second, third, fourth = await together(
        store.hand_over(HandOver((hold.hold_id,), "t1")),
        store.settle(settle("t1/1", silver(0, 1, 40), holds={"amy": [hold.hold_id]})),
        store.release_holds(ReleaseHolds((hold.hold_id,))),
        store.place_holds(PlaceHolds("next", (HoldRequest("amy", "silver", "", 900),))),
    )
    assert [type(answer) for answer in (first, third)] == [tuple, tuple]
    assert not isinstance(second, BaseException)
    assert not isinstance(fourth, BaseException)
    assert await has(store, "amy") == (60, 900)
    assert (await one(store, hold.hold_id)).given_back == 60


async def test_a_player_who_comes_and_is_frozen_in_one_breath(store: Store) -> None:
    answers = await together(
        store.open_wallet("eve"),
        store.freeze(Freeze("f", "eve", frozen=True, reason="r")),
        store.deposit(deposit("d", "eve", 5)),
    )
    assert not [answer for answer in answers if isinstance(answer, BaseException)]
    assert (await store.player("eve")).frozen


# More.


async def test_a_hold_is_topped_up(timed: Store) -> None:
    hold = await placed(timed, "amy", 300)
    command = TopUpHold("more", hold.hold_id, 200)
    done = await timed.top_up_hold(command)
    assert done.answer == structs.replace(hold, amount=500, remaining=500)
    assert await timed.top_up_hold(command) == type(done)(done.answer, replayed=True)
    await refused(timed.top_up_hold(replace(command, amount=1)), RequestIdReused)
    assert await has(timed, "amy") == (500, 500)
    with pytest.raises(InsufficientBalance) as caught:
        await timed.top_up_hold(TopUpHold("too much", hold.hold_id, 501))
    assert caught.value.field == "amount"
    await refused(timed.top_up_hold(TopUpHold("none", hold.hold_id, 0)), InvalidAmount)
    await refused(timed.top_up_hold(TopUpHold("who", "no such hold", 1)), UnknownHold)
    await release(timed, hold.hold_id)
    await refused(timed.top_up_hold(TopUpHold("late", hold.hold_id, 1)), HoldNotOpen)
    assert await has(timed, "amy") == (1_000, 0)


async def test_all_that_is_ever_set_aside_in_a_hold_is_within_the_range_of_amounts(
    timed: Store,
) -> None:
    wanted = (HoldRequest("amy", "points", "book", LARGEST),)
    (hold,) = (await timed.place_holds(PlaceHolds("h", wanted))).answer
    await timed.settle(settle("t/1", points(0, 1, LARGEST), holds={"amy": [hold.hold_id]}))
    await timed.settle(settle("t/2", points(1, 0, LARGEST)))
    # Nothing is left in it, and there is no floor; but what it tells would be no amount.
    command = TopUpHold("more", hold.hold_id, 1)
    assert await refused(timed.top_up_hold(command), BalanceOutOfRange) == (
        "BALANCE_OUT_OF_RANGE",
        "amount",
    )


async def test_holds_that_are_asked_for_come_in_order(timed: Store) -> None:
    first, second = await placed(timed, "amy", 1), await placed(timed, "bo", 2)
    assert await timed.holds([second.hold_id, first.hold_id]) == [second, first]
    assert await refused(timed.holds([first.hold_id, "no such hold"]), UnknownHold) == (
        "UNKNOWN_HOLD",
        "hold_ids[1]",
    )
    await refused(timed.open_holds("nobody"), UnknownWallet)


# Settlements beside them.


async def test_an_expired_hold_never_refuses_a_settlement(timed: Store, clock: Clock) -> None:
    hold = await placed(timed, "bo", 400, lifetime_seconds=60)
    clock.pass_seconds(61)
    await tend(timed)
    assert (await one(timed, hold.hold_id)).state is HoldState.EXPIRED
    done = await timed.settle(settle("t/1", silver(1, 0, 500), holds={"bo": [hold.hold_id]}))
    assert paid(done) == [500]
    assert await has(timed, "bo") == (500, 0)


async def test_hold_only_pays_no_more_than_is_in_the_holds(timed: Store) -> None:
    holds = await hold_each(timed, 100)
    command = settle("t/1", silver(1, 0, 250), silver(0, 2, 150), points(1, 0, 9), holds=holds)
    done = await timed.settle(replace(command, hold_only=True))
    # What comes in can be paid on: amy has 100 and gets 100. Points have no floor to reach.
    assert paid(done) == [100, 150, 9]
    assert await all_have(timed) == [(950, 0), (900, 0), (1_050, 100), (900, 100)]


async def test_a_cap_is_the_most_that_a_hand_takes_from_anybody(timed: Store) -> None:
    holds = await hold_each(timed, 100)
    command = replace(
        settle(
            "t/1",
            silver(1, 0, 300),
            silver(1, 3, 100),
            silver(0, 2, 300),
            points(2, 0, 9),
            holds=holds,
        ),
        fees=(Fee(1, "silver", "", 20),),
        caps=(LossCap("silver", "", 120),),
    )
    done = await timed.settle(command)
    # Of the 400 that bo owes he pays 120, and his fee besides; amy pays what comes in and 120.
    assert paid(done) == [90, 30, 210, 9]
    assert await all_have(timed) == [(880, 0), (860, 0), (1_110, 100), (930, 100)]
    assert await timed.settle(command) == type(done)(done.answer, replayed=True)


async def test_a_cap_holds_where_a_balance_has_no_floor(timed: Store) -> None:
    command = replace(settle("t/1", points(1, 0, 300)), caps=(LossCap("points", "book", 50),))
    assert paid(await timed.settle(command)) == [50]


async def test_caps_that_cannot_be_are_refused(timed: Store) -> None:
    cap = LossCap("silver", "", 5)
    twice: Settle = replace(settle("t/1"), caps=(cap, cap))
    assert (await refused(timed.settle(twice), DuplicateCap))[1] == "caps[1].currency"
    unknown: Settle = replace(settle("t/1"), caps=(replace(cap, currency="gold"),))
    assert (await refused(timed.settle(unknown), UnknownCurrency))[1] == "caps[0].currency"


async def test_hold_only_does_not_let_off_whose_hold_is_over(timed: Store, clock: Clock) -> None:
    hold = await placed(timed, "bo", 100, lifetime_seconds=60)
    clock.pass_seconds(61)
    await tend(timed)
    command = settle("t/1", silver(1, 0, 250), holds={"bo": [hold.hold_id]})
    assert paid(await timed.settle(replace(command, hold_only=True))) == [100]
    assert await has(timed, "bo") == (900, 0)
    # Once, not at every hand.
    again = replace(command, key="t/2", hold_only=True)
    assert paid(await timed.settle(again)) == [0]
    assert (await one(timed, hold.hold_id)).given_back == 0


async def test_what_a_hold_gave_back_may_be_gone(timed: Store, clock: Clock) -> None:
    hold = await placed(timed, "bo", 100, lifetime_seconds=60)
    clock.pass_seconds(61)
    await tend(timed)
    await timed.withdraw(withdraw("w", "bo", 970))
    command = settle("t/1", silver(1, 0, 250), holds={"bo": [hold.hold_id]})
    assert paid(await timed.settle(replace(command, hold_only=True))) == [30]
    assert (await one(timed, hold.hold_id)).given_back == 70


async def test_fees_are_paid_to_the_house_before_the_hand(timed: Store) -> None:
    holds = await hold_each(timed, 100)
    await timed.withdraw(withdraw("w", "bo", 850))
    command = replace(
        settle("t/1", silver(1, 0, 500), holds=holds),
        fees=(Fee(0, "silver", "", 30), Fee(1, "silver", "", 40)),
    )
    done = await timed.settle(command)
    assert done.answer.outcome.fees_paid == (30, 40)
    assert paid(done) == [110]
    assert await has(timed, "amy") == (1_010, 70)
    assert await has(timed, "bo") == (0, 0)
    streamed = await timed.stream(0, 500)
    house = [e.entry.amount for e in streamed if e.account.kind == "house"]
    assert house == [30, 40]
    assert await timed.settle(command) == type(done)(done.answer, replayed=True)


async def test_who_cannot_pay_a_fee_pays_what_there_is(timed: Store) -> None:
    await timed.withdraw(withdraw("w", "bo", 990))
    command = replace(settle("t/1", silver(1, 0, 5)), fees=(Fee(1, "silver", "", 40),))
    done = await timed.settle(command)
    assert (done.answer.outcome.fees_paid, paid(done)) == ((10,), [0])


async def test_no_fee_is_charged_where_no_hand_is_settled(timed: Store) -> None:
    holds = await hold_each(timed, 100)
    await release(timed, *(hold_id for ids in holds.values() for hold_id in ids))
    assert await all_have(timed) == [(1_000, 0)] * 4


async def test_fees_that_cannot_be_are_refused(timed: Store) -> None:
    fee = Fee(0, "silver", "", 5)
    twice: Settle = replace(settle("t/1"), fees=(fee, fee))
    assert (await refused(timed.settle(twice), DuplicateFee))[1] == "fees[1].party"
    nobody: Settle = replace(settle("t/1"), fees=(replace(fee, party=4),))
    assert (await refused(timed.settle(nobody), UnknownParty))[1] == "fees[0].party"
    nothing: Settle = replace(settle("t/1"), fees=(replace(fee, amount=0),))
    assert (await refused(timed.settle(nothing), InvalidAmount))[1] == "fees[0].amount"


# Frozen players.


async def test_a_frozen_player_stakes_and_withdraws_nothing_but_plays_out(timed: Store) -> None:
    hold = await hold_one(timed, "h", "amy", 300)
    frozen = await timed.freeze(Freeze("f1", "amy", frozen=True, reason="asked", case_id="7"))
    assert frozen.answer == Player("amy", True, "asked", "7", frozen.answer.time_us)
    assert await timed.player("amy") == frozen.answer
    with pytest.raises(PlayerFrozen) as caught:
        await hold_each(timed, 1, "all")
    assert caught.value.metadata == {"player_ids": "amy"}
    assert caught.value.field == "holds[0].player_id"
    await refused(timed.withdraw(withdraw("w", "amy", 1)), PlayerFrozen)
    await refused(timed.top_up_hold(TopUpHold("t", hold.hold_id, 1)), PlayerFrozen)
    await timed.deposit(deposit("d", "amy", 5))
    assert paid(
        await timed.settle(settle("t/1", silver(0, 1, 350), holds={"amy": [hold.hold_id]}))
    ) == [350]
    assert await release(timed, hold.hold_id) == [0]
    assert await has(timed, "amy") == (655, 0)
    await timed.freeze(Freeze("f2", "amy", frozen=False, reason="nothing found"))
    assert not (await timed.withdraw(withdraw("w", "amy", 1))).replayed


async def test_a_freeze_is_done_once(timed: Store) -> None:
    command = Freeze("f", "amy", frozen=True, reason="asked")
    first = await timed.freeze(command)
    await timed.freeze(Freeze("g", "amy", frozen=False, reason="nothing found"))
    assert await timed.freeze(command) == type(first)(first.answer, replayed=True)
    assert not (await timed.player("amy")).frozen
    await refused(timed.freeze(replace(command, frozen=False)), RequestIdReused)
    await refused(timed.freeze(Freeze("h", "nobody", frozen=True, reason="r")), UnknownWallet)
