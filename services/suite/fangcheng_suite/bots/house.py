"""Money for a studio's bots: the house's, as much as a table needs, and back when it is over."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

import grpc.aio

from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_suite.access import Access
from fangcheng_suite.errors import SuiteError

from .player import attempts, is_lost

HELD_SECONDS = 30.0
"""How long a table may take to give a buy-in back before its bot does without."""
PAUSE_SECONDS = 0.2


async def pools_with_bots(
    access: Access, pool_ids: Sequence[str]
) -> dict[str, matchmaking_pb2.Pool]:
    """Pools by their ids; raises SuiteError for one that bots do not fill up."""
    async with access.channel("matchmaking") as channel:
        stub = matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
        answer = await stub.ListPools(matchmaking_pb2.ListPoolsRequest())
    known = {pool.pool_id: pool for pool in answer.pools}
    for pool_id in pool_ids:
        if pool_id not in known:
            raise SuiteError(f"there is no pool {pool_id}", f"There are: {', '.join(known)}.")
        if not known[pool_id].fill_with_bots_after_ms:
            raise SuiteError(
                f"the pool {pool_id} is never filled with bots",
                "Set fill_with_bots_after_ms for it, and bots_where_silver_is_staked if silver is.",
            )
    return {pool_id: known[pool_id] for pool_id in pool_ids}


@dataclass(slots=True)
class House:
    """Lends bots what they stake. A bot's wallet is funded by the house alone: see OpenWallet."""

    access: Access
    _limited: set[str] = field(default_factory=set)
    """The currencies that a player can run out of; nothing needs to be lent of others."""

    async def fund(self, player_id: str, pool: matchmaking_pb2.Pool) -> None:
        """Open a bot's wallet, and bring it to what the pool asks for. Raises AioRpcError."""
        async with self.access.channel("wallet") as channel:
            stub = wallet_pb2_grpc.WalletServiceStub(channel)
            await stub.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=player_id, is_bot=True))
            balances = await self._balances(stub, player_id)
            for stake in pool.stakes:
                if stake.currency not in self._limited:
                    continue
                has = balances.get((stake.currency, stake.book))
                missing = max(stake.buy_in, stake.entry_minimum) - (has.available if has else 0)
                if missing > 0:
                    request = wallet_pb2.DepositRequest(
                        request_id=uuid.uuid4().hex,
                        player_id=player_id,
                        currency=stake.currency,
                        book=stake.book,
                        amount=missing,
                        memo=f"for {pool.pool_id}",
                    )
                    async for _ in attempts():  # the same request until its outcome is known
                        try:
                            await stub.Deposit(request)
                        except grpc.aio.AioRpcError as error:
                            if is_lost(error):
                                continue
                            raise
                        break

    async def give_back(self, player_id: str) -> int:
        """Take back whatever a bot has, once nothing of it is held; what is still held after a
        while, and stays the bot's until it is funded again. Raises AioRpcError.
        """
        async with self.access.channel("wallet") as channel:
            stub = wallet_pb2_grpc.WalletServiceStub(channel)
            waited = 0.0
            while True:
                balances = await self._balances(stub, player_id)
                held = sum(balance.held for balance in balances.values())
                if not held or waited >= HELD_SECONDS:
                    break
                await asyncio.sleep(PAUSE_SECONDS)
                waited += PAUSE_SECONDS
            for balance in balances.values():
                if balance.currency in self._limited and balance.available > 0:
                    request = wallet_pb2.WithdrawRequest(
                        request_id=uuid.uuid4().hex,
                        player_id=player_id,
                        currency=balance.currency,
                        book=balance.book,
                        amount=balance.available,
                        memo="what was left",
                    )
                    async for _ in attempts():
                        try:
                            await stub.Withdraw(request)
                        except grpc.aio.AioRpcError as error:
                            if is_lost(error):
                                continue
                            raise
                        break
        return held

    async def _balances(
        self, stub: wallet_pb2_grpc.WalletServiceAsyncStub, player_id: str
    ) -> dict[tuple[str, str], wallet_pb2.Balance]:
        if not self._limited:
            listed = await stub.ListCurrencies(wallet_pb2.ListCurrenciesRequest())
            self._limited = {one.currency for one in listed.currencies if one.HasField("floor")}
        answer = await stub.GetBalances(wallet_pb2.GetBalancesRequest(player_id=player_id))
        return {(one.currency, one.book): one for one in answer.balances}
