"""Checks of repeats: the same key settles once, whatever happens to calls and answers."""

from __future__ import annotations

import asyncio
import random

import grpc
import grpc.aio

from fangcheng.wallet.v1 import settlement_pb2 as wire

from .checks import Checks
from .trial import HAS, Trial, expect

_check = Checks()

_CUT_CALLS = 60
_LONGEST_CUT_SECONDS = 0.03


@_check
async def settlement_replayed(trial: Trial) -> None:
    """The same key and body answer the first answer again, with `replayed`."""
    request = trial.settlement(trial.pay(0, 1, 100), labels={"club": "north", "app": "x"})
    first = await trial.table.Settle(request)
    await trial.settle(trial.pay(2, 0, 5))
    again = await trial.table.Settle(request)
    expect(not first.replayed and again.replayed, "`replayed` is not set on the second alone")
    expect(first.settlement == again.settlement, "the second answer differs from the first")
    await trial.expect_has(HAS - 95, HAS + 100, HAS - 5, HAS)


@_check
async def bytes_are_not_compared(trial: Trial) -> None:
    """The same body in other bytes is the same body."""
    request = trial.settlement(trial.pay(0, 1, 100), labels={f"label{n}": "x" for n in range(8)})
    await trial.table.Settle(request)
    rest = wire.SettleRequest()
    rest.CopyFrom(request)
    rest.ClearField("labels")
    # The order of fields and of a map's entries is nobody's promise.
    one_by_one = [
        wire.SettleRequest(labels={key: request.labels[key]}).SerializeToString()
        for key in sorted(request.labels, reverse=True)
    ]
    other = b"".join(one_by_one) + rest.SerializeToString(deterministic=True)
    raw = trial.target.table[0].unary_unary(
        "/fangcheng.wallet.v1.SettlementService/Settle",
        request_serializer=lambda sent: sent,
        response_deserializer=wire.SettleResponse.FromString,
    )
    answer = await raw(other)
    expect(answer.replayed, "it was settled a second time")


@_check
async def settlement_key_reused(trial: Trial) -> None:
    """The same key with another body is refused, and the refusal names the difference."""
    request = trial.settlement(trial.pay(0, 1, 100), trial.pay(2, 1, 10))
    await trial.table.Settle(request)
    request.transfers[1].amount = 11
    problem = await trial.refused(
        trial.table.Settle(request), grpc.StatusCode.ALREADY_EXISTS, "SETTLEMENT_KEY_REUSED"
    )
    differs = problem.metadata.get("differs")
    expect(differs == "transfers[1].amount", f"the metadata differs is {differs!r}")
    await trial.expect_has(HAS - 100, HAS + 110, HAS - 10, HAS)


@_check
async def refused_settlement_keeps_its_key(trial: Trial) -> None:
    """A refused settlement does not use its key up."""
    key = trial.new_id("hand")
    bad = trial.settlement(trial.pay(0, 1, 100), key=key, holds={0: [trial.new_id("hold")]})
    await trial.refused(trial.table.Settle(bad), grpc.StatusCode.NOT_FOUND)
    await trial.refused(
        trial.table.GetSettlement(wire.GetSettlementRequest(key=key)),
        grpc.StatusCode.NOT_FOUND,
        "UNKNOWN_SETTLEMENT",
    )
    answer = await trial.settle(trial.pay(0, 1, 100), key=key)
    expect(not answer.replayed, "it was taken for a repeat")
    await trial.expect_has(HAS - 100, HAS + 100, HAS, HAS)


@_check
async def found_by_key(trial: Trial) -> None:
    """A settlement is found under its key as it was answered."""
    (hold,) = await trial.place({0: 300})
    answer = await trial.settle(
        trial.pay(0, 1, 100), holds={0: [hold.hold_id]}, fees=[trial.fee(2, 5)]
    )
    found = await trial.table.GetSettlement(wire.GetSettlementRequest(key=answer.settlement.key))
    expect(found.settlement == answer.settlement, "it is told otherwise")


@_check
async def batch(trial: Trial) -> None:
    """In a batch one bad settlement is refused alone, and a twin key is a repeat."""
    first = trial.settlement(trial.pay(0, 1, 100))
    broken = trial.settlement(trial.pay(1, 1, 5))
    limits = trial.settlement(trial.pay(1, 0, -5))
    unknown = trial.settlement(trial.pay(1, 0, 5), holds={1: [trial.new_id("hold")]})
    other = trial.settlement(trial.pay(0, 1, 101), key=first.key)
    last = trial.settlement(trial.pay(2, 3, 7))
    sent = [first, broken, first, limits, unknown, other, last]
    request = wire.SettleBatchRequest(settlements=sent)
    for again in (False, True):
        results = (await trial.table.SettleBatch(request)).results
        expect(
            [one.key for one in results] == [one.key for one in sent],
            "the results are not in the order of the request",
        )
        seen = [
            one.settled.replayed if one.HasField("settled") else one.refused.reason
            for one in results
        ]
        wanted = [again, "SELF_TRANSFER", True, "INVALID_REQUEST", "UNKNOWN_HOLD",
                  "SETTLEMENT_KEY_REUSED", again]  # fmt: skip
        expect(seen == wanted, f"the results are {seen} instead of {wanted}")
        codes = [one.refused.code for one in results if one.HasField("refused")]
        expect(codes == [3, 3, 5, 6], f"the codes of the refusals are {codes} not [3, 3, 5, 6]")
        await trial.expect_has(HAS - 100, HAS + 100, HAS - 7, HAS + 7)


@_check
async def cut_off(trial: Trial) -> None:
    """Calls that were cut off are settled once when they are repeated, or not at all."""
    chance = random.Random(1)  # noqa: S311 # nosec B311 # moments, not secrets
    requests = [trial.settlement(trial.pay(0, 1, 3)) for _ in range(_CUT_CALLS)]

    async def cut(request: wire.SettleRequest) -> None:
        call = trial.table.Settle(request)
        await asyncio.sleep(chance.uniform(0, _LONGEST_CUT_SECONDS))
        call.cancel()
        try:
            await call
        except (asyncio.CancelledError, grpc.aio.AioRpcError):
            return

    async with asyncio.TaskGroup() as group:
        for request in requests:
            group.create_task(cut(request))
    for request in requests:
        answer = await trial.sure(lambda request=request: trial.table.Settle(request))
        found = await trial.table.GetSettlement(wire.GetSettlementRequest(key=request.key))
        expect(found.settlement == answer.settlement, "a repeat is answered otherwise than before")
    await trial.expect_has(HAS - 3 * _CUT_CALLS, HAS + 3 * _CUT_CALLS, HAS, HAS)


CHECKS = tuple(_check.all)
