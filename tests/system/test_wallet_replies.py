"""Replies that never arrive: what was done is done once, however often it is asked for."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import grpc
import grpc.aio
import pytest

from fangcheng.wallet.v1 import settlement_pb2 as settling
from fangcheng.wallet.v1 import wallet_pb2 as wire
from tests.system.cutting import CuttingProxy
from tests.system.wallets import ENGINES, FIRST, PLAYERS, Caller, ledger

SETTLEMENTS = 200
CALLERS = 4


@pytest.mark.system
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ENGINES)
async def test_two_hundred_settlements_whose_replies_are_swallowed_are_settled_once(
    tmp_path: Path, engine: str
) -> None:
    chance = random.Random(863)  # MahjongPantheon/pantheon#863
    lost: set[str] = set()
    async with ledger(tmp_path, engine, seed=2) as (_, wallet, load):
        proxy = CuttingProxy(wallet.address, lambda: chance.random() < 0.6)
        async with proxy.running():
            callers = [Caller(proxy.address, "service:table") for _ in range(CALLERS)]

            async def settle(caller: Caller, number: int) -> settling.SettleResponse:
                request = settling.SettleRequest(
                    key=f"t/{number}",
                    parties=[settling.SettlementParty(player_id=player) for player in PLAYERS],
                    transfers=[
                        settling.SettlementTransfer(
                            currency="silver", from_party=1, to_party=0, amount=1, reason="win"
                        )
                    ],
                )
                while True:
                    try:
                        answer: settling.SettleResponse = await caller.settlement.Settle(request)
                    except grpc.aio.AioRpcError as error:
                        assert error.code() is grpc.StatusCode.UNAVAILABLE  # noqa: PT017
                        lost.add(request.key)
                    else:
                        return answer

            async def settle_all(place: int) -> list[settling.SettleResponse]:
                return [
                    await settle(callers[place], number)
                    for number in range(place, SETTLEMENTS, CALLERS)
                ]

            answers = [
                answer
                for answers in await asyncio.gather(*map(settle_all, range(CALLERS)))
                for answer in answers
            ]
            for caller in callers:
                await caller.channel.close()
        assert len({answer.settlement.key for answer in answers}) == SETTLEMENTS
        # Whose reply was swallowed was settled before, and is told so.
        repeats = {answer.settlement.key for answer in answers if answer.replayed}
        assert repeats <= lost
        assert len(repeats) > SETTLEMENTS / 4
        audit = await load.operator.wallet.AuditLedger(wire.AuditLedgerRequest())
        assert list(audit.findings) == []
        assert audit.settlements == SETTLEMENTS
        for player, moved in (("amy", SETTLEMENTS), ("bo", -SETTLEMENTS)):
            told = await load.operator.wallet.GetBalances(wire.GetBalancesRequest(player_id=player))
            assert [one.available for one in told.balances] == [FIRST + moved]
