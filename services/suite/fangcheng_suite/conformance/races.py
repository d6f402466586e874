"""Checks of calls that are made at the same time, of all replicas that were named."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc
import grpc.aio

from fangcheng.wallet.v1 import settlement_pb2 as wire

from .checks import Checks
from .trial import HAS, Trial, expect

_check = Checks()

_AT_ONCE = 50


async def _together(trial: Trial, calls: Sequence[Any]) -> list[Any]:
    """Make calls at once, each repeated until its outcome is known."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(trial.sure(call)) for call in calls]
    return [task.result() for task in tasks]


@_check
async def one_key(trial: Trial) -> None:
    """Fifty calls with one key at the same time settle once and are answered alike."""
    request = trial.settlement(trial.pay(0, 1, 10))
    answers = await _together(trial, [lambda: trial.table.Settle(request)] * _AT_ONCE)
    firsts = sum(not one.replayed for one in answers)
    # One whose answer was lost and which was repeated is told to be a repeat.
    expect(firsts <= 1, f"{firsts} of them were told to be the first")
    different = [one for one in answers if one.settlement != answers[0].settlement]
    expect(not different, f"{len(different)} were answered otherwise than the first")
    await trial.expect_has(HAS - 10, HAS + 10, HAS, HAS)


@_check
async def one_request_id(trial: Trial) -> None:
    """Fifty calls with one request id at the same time hold once and are answered alike."""
    request = trial.holds_request({0: 100})
    answers = await _together(trial, [lambda: trial.place_as(request)] * _AT_ONCE)
    holds = {hold.hold_id for one in answers for hold in one.holds}
    expect(len(holds) == 1, f"there are {len(holds)} holds")
    await trial.expect_has(HAS - 100, HAS, HAS, HAS)


@_check
async def no_more_than_there_is(trial: Trial) -> None:
    """Of many holds at the same time as many succeed as there is money for."""

    async def place(request: wire.PlaceHoldsRequest) -> bool:
        try:
            await trial.sure(trial.place_as, request)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            return False
        return True

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(place(trial.holds_request({0: HAS // 5})))
            for _ in range(4 * _AT_ONCE)
        ]
    placed = sum(task.result() for task in tasks)
    expect(placed == 5, f"{placed} holds of {HAS // 5} were placed on {HAS}")
    await trial.expect_has(0, HAS, HAS, HAS)


@_check
async def released_at_once(trial: Trial) -> None:
    """Fifty releases of a hold at the same time give back once."""
    (hold,) = await trial.place({0: 300})
    await _together(trial, [lambda: trial.release(hold.hold_id)] * _AT_ONCE)
    await trial.expect_has(HAS, HAS, HAS, HAS)


@_check
async def hold_in_a_race(trial: Trial) -> None:
    """A hold pays once, though it is released, topped up and settled at the same time."""
    (hold,) = await trial.place({0: 300})
    settlements = [
        trial.settlement(trial.pay(0, 1, 100), holds={0: [hold.hold_id]}) for _ in range(5)
    ]

    async def top_up(amount: int) -> int:
        request = wire.TopUpHoldRequest(
            request_id=trial.new_id("top-up"), hold_id=hold.hold_id, amount=amount
        )
        try:
            await trial.sure(lambda: trial.matchmaking.TopUpHold(request))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
        return 0

    await _together(
        trial,
        [
            *((lambda request=request: trial.table.Settle(request)) for request in settlements),
            lambda: trial.release(hold.hold_id),
            lambda: top_up(50),
        ],
    )
    await trial.release(hold.hold_id)
    await trial.expect_has(HAS - 500, HAS + 500, HAS, HAS)


@_check
async def no_deadlock(trial: Trial) -> None:
    """Payments to and fro at the same time, single and in batches, with holds: none is stuck."""
    forth = [trial.settlement(trial.pay(0, 1, 1), trial.pay(2, 3, 1)) for _ in range(_AT_ONCE)]
    back = [trial.settlement(trial.pay(1, 0, 1), trial.pay(3, 2, 1)) for _ in range(_AT_ONCE)]
    for request in back:
        # The other way round in the request too.
        parties = list(request.parties)
        del request.parties[:]
        request.parties.extend(parties[::-1])
        for transfer in request.transfers:
            transfer.from_party, transfer.to_party = 3 - transfer.from_party, 3 - transfer.to_party
    batches = [
        wire.SettleBatchRequest(settlements=[pair[0], pair[1]])
        for pair in zip(forth[::2], back[::2], strict=True)
    ]
    holds = [trial.holds_request(dict.fromkeys(order, 5)) for order in ([0, 1], [1, 0], [3, 2])]
    await _together(
        trial,
        [
            *((lambda request=request: trial.table.Settle(request)) for request in forth[1::2]),
            *((lambda request=request: trial.table.Settle(request)) for request in back[1::2]),
            *((lambda request=request: trial.table.SettleBatch(request)) for request in batches),
            *((lambda request=request: trial.place_as(request)) for request in holds),
        ],
    )
    await trial.expect_has(HAS - 10, HAS - 10, HAS - 5, HAS - 5)


CHECKS = tuple(_check.all)
