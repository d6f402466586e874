"""What a settlement pays and what it refuses, for every storage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fangcheng_kit.errors import ServiceError
from fangcheng_wallet.errors import (
    DuplicateParty,
    InvalidAmount,
    InvalidBook,
    SelfTransfer,
    SettlementKeyReused,
    UnknownCurrency,
    UnknownHold,
    UnknownParty,
    UnknownSettlement,
    UnknownWallet,
)
from fangcheng_wallet.ledger import (
    Done,
    Party,
    Settle,
    Transfer,
)
from fangcheng_wallet.store import Store
from tests.wallet.ledgers import (
    PLAYERS,
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
)


async def test_a_hand_is_paid_in_all_its_currencies(store: Store) -> None:
    await open_four(store, 1_000)
    done = await store.settle(
        settle(
            "t/1",
            *(silver(loser, 0, 60) for loser in (1, 2, 3)),
            silver(0, None, 9, "fee"),
            *(points(loser, 0, 6) for loser in (1, 2, 3)),
            club="north",
        )
    )
    assert paid(done) == [60, 60, 60, 9, 6, 6, 6]
    assert await all_have(store) == [(1_171, 0), (940, 0), (940, 0), (940, 0)]
    assert [await has(store, player, "points") for player in PLAYERS] == [
        (18, 0),
        (-6, 0),
        (-6, 0),
        (-6, 0),
    ]
    shown = (await entries(store, "amy", 2, "silver")).entries
    assert [(e.reason, e.amount, e.reference) for e in shown] == [
        ("fee", -9, "t/1"),
        ("win", 180, "t/1"),
    ]
    assert await store.settlement("t/1") == done.answer
    assert done.answer.request.labels == {"club": "north"}


async def test_holds_pay_before_what_is_available(store: Store) -> None:
    await open_four(store, 1_000)
    holds = await hold_each(store, 400)
    done = await store.settle(
        settle("t/1", silver(1, 0, 300), silver(1, 2, 300), silver(3, 0, 50), holds=holds)
    )
    assert paid(done) == [300, 300, 50]
    assert await all_have(store) == [(950, 400), (400, 0), (900, 400), (600, 350)]
    balances = {b.party: (b.available, b.held) for b in done.answer.outcome.balances}
    assert balances == {0: (950, 400), 1: (400, 0), 2: (900, 400), 3: (600, 350)}


async def test_several_holds_pay_in_their_order(store: Store) -> None:
    await open_four(store, 1_000)
    first = await hold_one(store, "h1", "bo", 100)
    second = await hold_one(store, "h2", "bo", 100)
    order = {"bo": [second.hold_id, first.hold_id]}
    await store.settle(settle("t/1", silver(1, 0, 150), holds=order))
    assert await release(store, first.hold_id, second.hold_id) == [50, 0]
    assert await all_have(store) == [(1_150, 0), (850, 0), (1_000, 0), (1_000, 0)]


async def test_a_hold_that_is_not_named_is_not_touched(store: Store) -> None:
    await open_four(store, 1_000)
    await hold_one(store, "another table", "bo", 600)
    done = await store.settle(settle("t/1", silver(1, 0, 700)))
    assert paid(done) == [400]
    assert await has(store, "bo") == (0, 600)


async def test_a_released_hold_never_refuses_a_settlement(store: Store) -> None:
    await open_four(store, 1_000)
    holds = await hold_each(store, 400)
    await release(store, *holds["bo"])
    done = await store.settle(settle("t/1", silver(1, 0, 500), holds=holds))
    assert paid(done) == [500]
    assert await has(store, "bo") == (500, 0)


async def test_a_hold_is_captured_once(store: Store) -> None:
    """blnkfinance/blnk#171: a hold was committed twice."""
    await open_four(store, 1_000)
    holds = await hold_each(store, 400)
    commands = [settle(f"t/{n}", silver(1, 0, 400), holds=holds) for n in range(20)]
    answers = await together(*(store.settle(command) for command in commands))
    assert sorted(done.answer.outcome.paid[0] for done in answers if isinstance(done, Done)) == [
        *[0] * 17,
        *(200, 400, 400),
    ]
    assert await has(store, "bo") == (0, 0)
    assert await has(store, "amy") == (1_600, 400)


async def test_who_has_too_little_pays_all_there_is(store: Store) -> None:
    await open_four(store)
    await store.deposit(deposit("d", "dan", 10))
    done = await store.settle(
        settle("t/1", silver(3, 0, 30), silver(3, 1, 15), silver(3, None, 15), points(3, 0, 60))
    )
    # 5, 2½ and 2½: the coin left over goes to the first in turn order.
    assert paid(done) == [5, 3, 2, 60]
    assert await all_have(store) == [(5, 0), (3, 0), (0, 0), (0, 0)]


async def test_what_comes_in_pays_what_goes_out(store: Store) -> None:
    done = await store.settle(
        settle("t/1", silver(0, 1, 5), silver(1, 2, 5), silver(2, 0, 5), silver(None, 3, 7))
    )
    assert paid(done) == [5, 5, 5, 7]
    assert await all_have(store) == [(0, 0), (0, 0), (0, 0), (7, 0)]


async def test_a_settlement_without_payments_is_recorded(store: Store) -> None:
    done = await store.settle(settle("t/1", season="3"))
    assert paid(done) == []
    assert await store.settlement("t/1") == done.answer
    assert (await store.settle(settle("t/1", season="3"))).replayed
    await refused(store.settlement("t/2"), UnknownSettlement)


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"transfers": (silver(1, 0, 5), silver(2, 0, 7))}, "transfers[1].amount"),
        ({"transfers": (silver(1, 0, 5),)}, "transfers"),
        ({"transfers": (silver(3, 0, 5, "kong"), silver(2, 0, 6))},
         "transfers[0].from_party,transfers[0].reason"),
        ({"labels": {"club": "south", "app": "b"}}, 'labels["app"],labels["club"]'),
        ({"parties": tuple(Party(player) for player in reversed(PLAYERS))},
         "parties[0].player_id,parties[1].player_id,parties[2].player_id,parties[3].player_id"),
    ],
)  # fmt: skip
async def test_a_settlement_key_is_good_for_one_body(
    store: Store, changed: dict[str, object], differs: str
) -> None:
    await open_four(store, 100)
    first = settle("t/1", silver(1, 0, 5), silver(2, 0, 6), club="north")
    done = await store.settle(first)
    with pytest.raises(SettlementKeyReused) as caught:
        await store.settle(replace(first, **changed))
    assert caught.value.metadata == {"differs": differs}
    assert caught.value.field == "key"
    assert await store.settle(first) == Done(done.answer, replayed=True)
    assert await has(store, "amy") == (111, 0)


@pytest.mark.parametrize(
    ("command", "kind", "field"),
    [
        (Settle("t/1", (Party("amy"), Party("amy"))), DuplicateParty, "parties[1].player_id"),
        (settle("t/1", Transfer("gold", "", 0, 1, 1, "x")), UnknownCurrency,
         "transfers[0].currency"),
        (settle("t/1", points(0, 1, 1, "")), InvalidBook, "transfers[0].book"),
        (settle("t/1", silver(1, 0, 5), silver(0, 1, 0)), InvalidAmount, "transfers[1].amount"),
        (settle("t/1", silver(1, 0, 5), silver(4, 1, 1)), UnknownParty,
         "transfers[1].from_party"),
        (settle("t/1", silver(1, 0, 5), silver(1, -1, 1)), UnknownParty, "transfers[1].to_party"),
        (settle("t/1", silver(1, 0, 5), silver(1, 1, 1)), SelfTransfer, "transfers[1].to_party"),
        (settle("t/1", silver(None, None, 1)), SelfTransfer, "transfers[0].to_party"),
        (Settle("t/1", (Party("amy"), Party("nobody")), (silver(0, 1, 5),)), UnknownWallet,
         "parties[1].player_id"),
        (Settle("t/1", (Party("amy", ("no such",)), Party("bo")), (silver(1, 0, 5),)), UnknownHold,
         "parties[0].hold_ids[0]"),
    ],
)  # fmt: skip
async def test_a_malformed_settlement_settles_nothing(
    store: Store, command: Settle, kind: type[ServiceError], field: str
) -> None:
    """Nakama skipped an unknown member of a transfer in silence."""
    await open_four(store, 100)
    assert (await refused(store.settle(command), kind))[1] == field
    assert await all_have(store) == [(100, 0)] * 4
    await refused(store.settlement("t/1"), UnknownSettlement)


async def test_the_hold_of_another_player_is_no_hold_of_this_one(store: Store) -> None:
    await open_four(store, 100)
    holds = await hold_each(store, 50)
    stolen = settle("t/1", silver(0, 2, 60), holds={"amy": holds["bo"]})
    assert await refused(store.settle(stolen), UnknownHold) == (
        "UNKNOWN_HOLD",
        "parties[0].hold_ids[0]",
    )
    assert await all_have(store) == [(50, 50)] * 4


async def test_a_settlement_adds_up_to_zero_with_the_house(store: Store) -> None:
    """pantheon#967: left-over stakes made settlements that did not."""
    await open_four(store, 100)
    holds = await hold_each(store, 70)
    await store.settle(
        settle(
            "t/1",
            *(
                silver(1, 0, 300),
                silver(0, 2, 250),
                silver(2, 3, 40),
                silver(None, 3, 7, "jackpot"),
            ),
            *(silver(3, None, 500, "fee"), points(3, 1, 5, "a"), points(None, 2, 9, "b")),
            holds=holds,
        )
    )
    audit = await store.audit()
    assert audit.sums == {"silver": 0, "points": 0}
