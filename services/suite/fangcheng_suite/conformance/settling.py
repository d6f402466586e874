"""Checks of settlements: who pays what, and what is refused."""

from __future__ import annotations

import grpc

from fangcheng.wallet.v1 import settlement_pb2 as wire

from .checks import Checks
from .trial import HAS, Trial, expect

_check = Checks()


def _paid(answer: wire.SettleResponse) -> list[int]:
    return [one.paid for one in answer.settlement.transfers]


@_check
async def pays(trial: Trial) -> None:
    """All transfers of a hand are paid, between the seats and the house."""
    answer = await trial.settle(
        trial.pay(1, 0, 120),
        trial.pay(2, 0, 60),
        trial.pay(3, None, 30, "service"),
        trial.pay(None, 1, 10, "gift"),
        labels={"club": "north"},
    )
    expect(_paid(answer) == [120, 60, 30, 10], f"paid was {_paid(answer)}")
    expect(dict(answer.settlement.labels) == {"club": "north"}, "the labels are not kept")
    await trial.expect_has(HAS + 180, HAS - 110, HAS - 60, HAS - 30)


@_check
async def holds_first(trial: Trial) -> None:
    """A payer pays from its holds first, then from what is available."""
    (hold,) = await trial.place({1: 300})
    answer = await trial.settle(trial.pay(1, 0, 200), holds={1: [hold.hold_id]})
    told = {one.party: (one.available, one.held) for one in answer.settlement.balances}
    expect(told.get(1) == (HAS - 300, 100), f"the payer has {told.get(1)} instead of (700, 100)")
    answer = await trial.settle(trial.pay(1, 0, 200), holds={1: [hold.hold_id]})
    told = {one.party: (one.available, one.held) for one in answer.settlement.balances}
    expect(told.get(1) == (HAS - 400, 0), f"the payer has {told.get(1)} instead of (600, 0)")


@_check
async def pays_on(trial: Trial) -> None:
    """What is paid to a seat in a settlement it can pay on in the same one."""
    await trial.give(HAS, 0, HAS, HAS)
    answer = await trial.settle(trial.pay(1, 2, 80), trial.pay(0, 1, 100))
    expect(_paid(answer) == [80, 100], f"paid was {_paid(answer)} instead of [80, 100]")
    await trial.expect_has(HAS - 100, 20, HAS + 80, HAS)


@_check
async def shortfall(trial: Trial) -> None:
    """Who has too little pays all there is, pro rata: largest remainder first, then turn order."""
    await trial.give(HAS, HAS, HAS, 10)
    answer = await trial.settle(trial.pay(3, 0, 7), trial.pay(3, 1, 7), trial.pay(3, 2, 7))
    expect(_paid(answer) == [4, 3, 3], f"of 10 coins [4, 3, 3] are due, paid was {_paid(answer)}")
    await trial.expect_has(HAS + 4, HAS + 3, HAS + 3, 0)
    await trial.give(HAS, HAS, HAS, 10)
    answer = await trial.settle(trial.pay(3, 0, 100), trial.pay(3, 1, 50), trial.pay(3, 2, 1))
    expect(_paid(answer) == [7, 3, 0], f"of 10 coins [7, 3, 0] are due, paid was {_paid(answer)}")


@_check
async def house_last(trial: Trial) -> None:
    """Among equal remainders the house comes last."""
    await trial.give(HAS, HAS, HAS, 5)
    answer = await trial.settle(trial.pay(3, None, 3), trial.pay(3, 2, 3))
    expect(_paid(answer) == [2, 3], f"of 5 coins [2, 3] are due, paid was {_paid(answer)}")


@_check
async def hold_only(trial: Trial) -> None:
    """With `hold_only` a payer pays no more than its holds and what it is paid."""
    (hold,) = await trial.place({1: 100})
    answer = await trial.settle(
        trial.pay(1, 0, 300), trial.pay(2, 1, 50), holds={1: [hold.hold_id]}, hold_only=True
    )
    expect(_paid(answer) == [100, 0], f"paid was {_paid(answer)} instead of [100, 0]")
    await trial.expect_has(HAS + 100, HAS - 100, HAS, HAS)


@_check
async def capped_losses(trial: Trial) -> None:
    """With a cap a payer pays no more than the cap and what it is paid, its fee aside."""
    answer = await trial.settle(
        trial.pay(1, 0, 60),
        trial.pay(1, 2, 30),
        trial.pay(3, 1, 10),
        fees=[trial.fee(1, 5)],
        caps=[trial.cap(50)],
    )
    expect(_paid(answer) == [40, 20, 10], f"paid was {_paid(answer)} instead of [40, 20, 10]")
    await trial.expect_has(HAS + 40, HAS - 55, HAS + 20, HAS - 10)


@_check
async def fees_first(trial: Trial) -> None:
    """Fees are paid to the house before the transfers, from holds first."""
    (hold,) = await trial.place({1: 100})
    answer = await trial.settle(
        trial.pay(1, 0, 300), holds={1: [hold.hold_id]}, fees=[trial.fee(1, 30)], hold_only=True
    )
    fees = [one.paid for one in answer.settlement.fees]
    expect(fees == [30], f"the fee was paid with {fees} instead of [30]")
    expect(_paid(answer) == [70], f"paid was {_paid(answer)} instead of [70]")
    await trial.expect_has(HAS + 70, HAS - 100, HAS, HAS)


@_check
async def empty(trial: Trial) -> None:
    """A settlement without transfers is recorded."""
    request = trial.settlement()
    await trial.table.Settle(request)
    found = await trial.table.GetSettlement(wire.GetSettlementRequest(key=request.key))
    expect(found.settlement.key == request.key, "it is not found under its key")


@_check
async def refused_whole(trial: Trial) -> None:
    """What is wrong with one part refuses the whole settlement, and nothing moves."""
    (others,) = await trial.place({3: 100})
    good = trial.pay(0, 1, 50)
    for request, code, reasons in (
        (trial.settlement(good, trial.pay(1, 1, 5)), "INVALID_ARGUMENT", ["SELF_TRANSFER"]),
        (trial.settlement(good, trial.pay(None, None, 5)), "INVALID_ARGUMENT", ["SELF_TRANSFER"]),
        (trial.settlement(good, trial.pay(0, 1, 0)), "INVALID_ARGUMENT", []),
        (trial.settlement(good, trial.pay(0, 1, -5)), "INVALID_ARGUMENT", []),
        (trial.settlement(good, trial.pay(0, 1, 2**53 + 1)), "INVALID_ARGUMENT", []),
        (trial.settlement(good, holds={0: [others.hold_id]}), "NOT_FOUND", ["UNKNOWN_HOLD"]),
        (trial.settlement(good, holds={0: [trial.new_id("hold")]}), "NOT_FOUND", ["UNKNOWN_HOLD"]),
    ):
        await trial.refused(trial.table.Settle(request), grpc.StatusCode[code], *reasons)
    stranger = trial.settlement(good, trial.pay(2, 1, 5))
    stranger.parties[2].player_id = trial.new_id("nobody")
    await trial.refused(trial.table.Settle(stranger), grpc.StatusCode.NOT_FOUND, "UNKNOWN_WALLET")
    coin = trial.settlement(good, trial.pay(2, 1, 5))
    coin.transfers[1].currency = "no-such-currency"
    await trial.refused(trial.table.Settle(coin), grpc.StatusCode.NOT_FOUND, "UNKNOWN_CURRENCY")
    twice = trial.settlement(good)
    twice.parties[2].player_id = trial.players[1]
    await trial.refused(
        trial.table.Settle(twice), grpc.StatusCode.INVALID_ARGUMENT, "DUPLICATE_PARTY"
    )
    fewer = trial.settlement(good, trial.pay(3, 1, 5))
    del fewer.parties[3]
    await trial.refused(
        trial.table.Settle(fewer), grpc.StatusCode.INVALID_ARGUMENT, "UNKNOWN_PARTY"
    )
    await trial.expect_has(HAS, HAS, HAS, HAS - 100)


@_check
async def reversed_once(trial: Trial) -> None:
    """A settlement is taken back once, entirely, and is told to be."""
    request = trial.settlement(trial.pay(1, 0, 120), trial.pay(2, None, 40))
    await trial.table.Settle(request)
    undo = wire.ReverseSettlementRequest(key=request.key, reason="conformance", case_id="1")
    first = await trial.table.ReverseSettlement(undo)
    again = await trial.table.ReverseSettlement(undo)
    expect(not first.replayed and again.replayed, "`replayed` is not set on the second alone")
    expect(first.reversal == again.reversal, "the second answer differs")
    await trial.expect_has(HAS, HAS, HAS, HAS)
    found = await trial.table.GetSettlement(wire.GetSettlementRequest(key=request.key))
    expect(found.settlement.reversal == first.reversal, "GetSettlement does not tell it")
    undo.reason = "another reason"
    problem = await trial.refused(
        trial.table.ReverseSettlement(undo), grpc.StatusCode.ALREADY_EXISTS, "SETTLEMENT_REVERSED"
    )
    expect(
        problem.metadata.get("differs") == "reason",
        f"the metadata differs is {problem.metadata.get('differs')!r}",
    )
    await trial.refused(
        trial.table.ReverseSettlement(
            wire.ReverseSettlementRequest(key=trial.new_id("hand"), reason="conformance")
        ),
        grpc.StatusCode.NOT_FOUND,
        "UNKNOWN_SETTLEMENT",
    )


@_check
async def reversed_short(trial: Trial) -> None:
    """A reversal takes what is there and books the rest as owed; the losers are paid in full."""
    request = trial.settlement(trial.pay(1, 0, 120))
    await trial.table.Settle(request)
    await trial.give(50, HAS - 120, HAS, HAS)
    answer = await trial.table.ReverseSettlement(
        wire.ReverseSettlementRequest(key=request.key, reason="conformance")
    )
    told = {one.party: (one.amount, one.owed, one.available) for one in answer.reversal.parties}
    expected = {0: (-50, 70, 0), 1: (120, 0, HAS)}
    expect(told == expected, f"by seat (amount, owed, available) are {told}, not {expected}")
    await trial.expect_has(0, HAS, HAS, HAS)


CHECKS = tuple(_check.all)
