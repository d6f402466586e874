"""Checks of holds: all or none, once, never more than there is, and how they end."""

from __future__ import annotations

import asyncio

import grpc

from fangcheng.wallet.v1 import settlement_pb2 as wire

from .checks import Checks
from .trial import HAS, Trial, expect

_check = Checks()

_POLL_SECONDS = 0.1


@_check
async def hold_sets_aside(trial: Trial) -> None:
    """A hold sets money aside that was available."""
    holds = await trial.place(dict.fromkeys(range(4), 300))
    expect(
        [hold.player_id for hold in holds] == list(trial.players),
        "the holds are not in the order of the request",
    )
    for hold in holds:
        expect(
            (hold.amount, hold.remaining, hold.state) == (300, 300, wire.HOLD_STATE_OPEN),
            f"the hold is not open with 300 of 300: {hold}",
        )
        expect(hold.HasField("expires"), "the hold does not say when it expires")
    await trial.expect_has(*[HAS - 300] * 4)


@_check
async def holds_all_or_none(trial: Trial) -> None:
    """Where one player has too little, nobody's buy-in is held, and the refusal names him."""
    request = trial.holds_request({0: 300, 1: 300, 2: HAS + 1, 3: 300})
    problem = await trial.refused(
        trial.place_as(request), grpc.StatusCode.FAILED_PRECONDITION, "INSUFFICIENT_BALANCE"
    )
    named = problem.metadata.get("player_ids")
    expect(named == trial.players[2], f"the metadata player_ids is {named!r}")
    await trial.expect_has(HAS, HAS, HAS, HAS)


@_check
async def holds_replayed(trial: Trial) -> None:
    """The same request id and body answer the first answer again, with `replayed`."""
    request = trial.holds_request({0: 300, 1: 200})
    first = await trial.place_as(request)
    again = await trial.place_as(request)
    expect(not first.replayed and again.replayed, "`replayed` is not set on the second alone")
    expect(list(again.holds) == list(first.holds), "the second answer has other holds")
    await trial.expect_has(HAS - 300, HAS - 200, HAS, HAS)


@_check
async def holds_id_reused(trial: Trial) -> None:
    """The same request id with another body is refused, and the refusal names the difference."""
    request = trial.holds_request({0: 300, 1: 200})
    await trial.place_as(request)
    request.holds[1].amount = 201
    problem = await trial.refused(
        trial.place_as(request), grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED"
    )
    differs = problem.metadata.get("differs")
    expect(differs == "holds[1].amount", f"the metadata differs is {differs!r}")
    await trial.expect_has(HAS - 300, HAS - 200, HAS, HAS)


@_check
async def refused_holds_keep_their_id(trial: Trial) -> None:
    """A refused request does not use its request id up."""
    request = trial.holds_request({0: HAS + 1})
    await trial.refused(trial.place_as(request), grpc.StatusCode.FAILED_PRECONDITION)
    await trial.settle(trial.pay(1, 0, 1))
    answer = await trial.place_as(request)
    expect(not answer.replayed, "it was taken for a repeat")
    await trial.expect_has(0, HAS - 1, HAS, HAS)


@_check
async def malformed_holds(trial: Trial) -> None:
    """A buy-in without a wallet, of nothing, or twice for one player is refused."""
    stranger = trial.holds_request({0: 1})
    stranger.holds[0].player_id = trial.new_id("nobody")
    await trial.refused(trial.place_as(stranger), grpc.StatusCode.NOT_FOUND, "UNKNOWN_WALLET")
    coin = trial.holds_request({0: 1})
    coin.holds[0].currency = "no-such-currency"
    await trial.refused(trial.place_as(coin), grpc.StatusCode.NOT_FOUND, "UNKNOWN_CURRENCY")
    twice = trial.holds_request({0: 1})
    twice.holds.append(twice.holds[0])
    await trial.refused(trial.place_as(twice), grpc.StatusCode.INVALID_ARGUMENT, "DUPLICATE_HOLD")
    for amount in (0, -5, 2**53 + 1):
        await trial.refused(
            trial.place_as(trial.holds_request({1: amount})), grpc.StatusCode.INVALID_ARGUMENT
        )
    await trial.expect_has(HAS, HAS, HAS, HAS)


@_check
async def released_once(trial: Trial) -> None:
    """Released holds give back what is left, once."""
    holds = await trial.place({0: 300, 1: 200})
    hold_ids = [hold.hold_id for hold in holds]
    await trial.settle(trial.pay(0, 2, 100), holds={0: hold_ids[:1]})
    first = await trial.release(*hold_ids)
    again = await trial.release(*hold_ids)
    expect(
        [hold.remaining for hold in first] == [200, 200],
        f"{[hold.remaining for hold in first]} was given back instead of [200, 200]",
    )
    states = {hold.state for hold in (*first, *again)}
    expect(states == {wire.HOLD_STATE_RELEASED}, "released holds are not told to be released")
    await trial.expect_has(HAS - 100, HAS, HAS + 100, HAS)


@_check
async def release_all_or_none(trial: Trial) -> None:
    """Where one of the holds does not exist, none is released."""
    (hold,) = await trial.place({0: 300})
    await trial.refused(
        trial.release(hold.hold_id, trial.new_id("hold")),
        grpc.StatusCode.NOT_FOUND,
        "UNKNOWN_HOLD",
    )
    await trial.expect_has(HAS - 300, HAS, HAS, HAS)


@_check
async def handed_over(trial: Trial) -> None:
    """Holds are handed over to one table; the same again is answered, another is refused."""
    holds = await trial.place({0: 300, 1: 300})
    request = wire.HandOverHoldsRequest(
        hold_ids=[hold.hold_id for hold in holds],
        table_id=trial.new_id("table"),
        lifetime_seconds=1_200,
    )
    for _ in range(2):
        answer = await trial.table.HandOverHolds(request)
        expect(
            {hold.table_id for hold in answer.holds} == {request.table_id},
            f"the holds are the table's {[hold.table_id for hold in answer.holds]}",
        )
    expect(
        all(
            after.expires.seconds > before.expires.seconds
            for before, after in zip(holds, answer.holds, strict=True)
        ),
        "they do not live longer",
    )
    request.table_id = trial.new_id("table")
    problem = await trial.refused(
        trial.table.HandOverHolds(request), grpc.StatusCode.FAILED_PRECONDITION, "HOLD_TAKEN"
    )
    named = problem.metadata.get("hold_ids", "").split(",")
    expect(named == list(request.hold_ids), f"the metadata hold_ids is {named}")


@_check
async def extended(trial: Trial) -> None:
    """Holds are extended and never shortened, all or none."""
    (hold,) = await trial.place({0: 300})
    longer = await trial.table.ExtendHolds(
        wire.ExtendHoldsRequest(hold_ids=[hold.hold_id], lifetime_seconds=3_600)
    )
    expires = longer.holds[0].expires.seconds
    expect(expires - hold.expires.seconds > 2_000, "an hour is not longer than ten minutes")
    shorter = await trial.table.ExtendHolds(
        wire.ExtendHoldsRequest(hold_ids=[hold.hold_id], lifetime_seconds=60)
    )
    expect(shorter.holds[0].expires.seconds >= expires, "the hold was shortened")
    (over,) = await trial.place({1: 300})
    await trial.release(over.hold_id)
    await trial.refused(
        trial.table.ExtendHolds(
            wire.ExtendHoldsRequest(hold_ids=[hold.hold_id, over.hold_id], lifetime_seconds=86_400)
        ),
        grpc.StatusCode.FAILED_PRECONDITION,
        "HOLD_NOT_OPEN",
    )
    after = await trial.hold(hold.hold_id)
    expect(after.expires.seconds == expires, "one of them was extended all the same")


@_check
async def topped_up(trial: Trial) -> None:
    """A hold is topped up once for each request id, out of what is available."""
    (hold,) = await trial.place({0: 300})
    request = wire.TopUpHoldRequest(
        request_id=trial.new_id("top-up"), hold_id=hold.hold_id, amount=200
    )
    first = await trial.matchmaking.TopUpHold(request)
    again = await trial.matchmaking.TopUpHold(request)
    expect(not first.replayed and again.replayed, "`replayed` is not set on the second alone")
    expect(
        (first.hold.amount, first.hold.remaining) == (500, 500),
        f"the hold has {first.hold.remaining} of {first.hold.amount} instead of 500 of 500",
    )
    request.request_id, request.amount = trial.new_id("top-up"), HAS
    await trial.refused(
        trial.matchmaking.TopUpHold(request),
        grpc.StatusCode.FAILED_PRECONDITION,
        "INSUFFICIENT_BALANCE",
    )
    await trial.expect_has(HAS - 500, HAS, HAS, HAS)


@_check
async def expired(trial: Trial) -> None:
    """A hold expires by itself and gives back what is left; it never refuses a settlement."""
    (hold,) = await trial.place({0: 300}, lifetime_seconds=1)
    stands = hold
    while stands.state == wire.HOLD_STATE_OPEN:
        await asyncio.sleep(_POLL_SECONDS)
        stands = await trial.hold(hold.hold_id)
    expect(
        stands.state == wire.HOLD_STATE_EXPIRED and stands.remaining == 0,
        f"the hold stands so: {stands}",
    )
    await trial.expect_has(HAS, HAS, HAS, HAS)
    answer = await trial.settle(trial.pay(0, 1, 250), holds={0: [hold.hold_id]})
    paid = answer.settlement.transfers[0].paid
    expect(paid == 250, f"{paid} was paid out of what is available instead of 250")


@_check
async def released_hold_settles(trial: Trial) -> None:
    """A settlement that names a released hold is settled out of what is available."""
    (hold,) = await trial.place({0: 300})
    await trial.release(hold.hold_id)
    answer = await trial.settle(trial.pay(0, 1, 250), holds={0: [hold.hold_id]})
    paid = answer.settlement.transfers[0].paid
    expect(paid == 250, f"{paid} was paid instead of 250")
    await trial.expect_has(HAS - 250, HAS + 250, HAS, HAS)


CHECKS = tuple(_check.all)
