"""What the players of a load stake: the house's money, and back when the load is over."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial

import grpc.aio

from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_suite.access import Access
from fangcheng_suite.errors import SuiteError, from_call
from fangcheng_suite.progress import progress

TOGETHER = 32
"""Wallets that are seen to at the same time."""
BUY_INS = 20
"""What a player is given, so that luck does not end his evening."""
MEMO = "fangcheng load"


async def pools_of(access: Access, pool_ids: Collection[str]) -> dict[str, matchmaking_pb2.Pool]:
    """Pools by their ids; raises SuiteError for one where nobody can queue."""
    async with access.channel("matchmaking") as channel:
        stub = matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
        try:
            answer = await stub.ListPools(matchmaking_pb2.ListPoolsRequest())
        except grpc.aio.AioRpcError as error:
            raise from_call(error, "asking for the pools") from error
    known = {pool.pool_id: pool for pool in answer.pools}
    for pool_id in pool_ids:
        if pool_id not in known:
            raise SuiteError(f"there is no pool {pool_id}", f"There are: {', '.join(known)}.")
        if known[pool_id].closed or known[pool_id].paused:
            raise SuiteError(f"nobody may queue in the pool {pool_id} now", "Name another --pool.")
    return {pool_id: known[pool_id] for pool_id in pool_ids}


class Money:
    """The wallets of a load's players. An async context manager."""

    def __init__(self, access: Access) -> None:
        self._channel = access.channel("wallet")
        self._stub = wallet_pb2_grpc.WalletServiceStub(self._channel)
        self._limited: set[str] = set()

    async def __aenter__(self) -> Money:
        listed = await self._stub.ListCurrencies(wallet_pb2.ListCurrenciesRequest())
        self._limited = {one.currency for one in listed.currencies if one.HasField("floor")}
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._channel.close()

    def staked(self, pool: matchmaking_pb2.Pool) -> list[matchmaking_pb2.PoolStake]:
        """What a pool stakes that a player can run out of."""
        return [stake for stake in pool.stakes if stake.currency in self._limited]

    async def give(
        self, players: Sequence[tuple[str, str]], pools: Mapping[str, matchmaking_pb2.Pool]
    ) -> None:
        """Open a wallet for each player, with so much in it that he can play in his pool."""

        async def one(player_id: str, pool_id: str) -> None:
            await self._stub.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=player_id))
            for stake in self.staked(pools[pool_id]):
                amount = BUY_INS * max(stake.buy_in, stake.entry_minimum, stake.per_unit)
                await self._stub.Deposit(
                    wallet_pb2.DepositRequest(
                        request_id=secrets.token_hex(16),
                        player_id=player_id,
                        currency=stake.currency,
                        book=stake.book,
                        amount=amount,
                        memo=MEMO,
                    )
                )

        await _all("Filling wallets", [partial(one, *player) for player in players])

    async def take_back(self, players: Sequence[tuple[str, str]]) -> None:
        """Take what players have; what a table holds still stays theirs."""

        async def one(player_id: str) -> None:
            request = wallet_pb2.GetBalancesRequest(player_id=player_id)
            for balance in (await self._stub.GetBalances(request)).balances:
                if balance.currency in self._limited and balance.available > 0:
                    await self._stub.Withdraw(
                        wallet_pb2.WithdrawRequest(
                            request_id=secrets.token_hex(16),
                            player_id=player_id,
                            currency=balance.currency,
                            book=balance.book,
                            amount=balance.available,
                            memo=MEMO,
                        )
                    )

        await _all(
            "Emptying wallets",
            [partial(one, player_id) for player_id, _ in players],
        )


async def _all(what: str, works: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Do many things, some at a time; raises SuiteError for the first that goes wrong."""
    room = asyncio.Semaphore(TOGETHER)
    with progress(what, total=len(works), unit="players") as bar:

        async def one(work: Callable[[], Awaitable[None]]) -> None:
            async with room:
                await work()
            bar.advance()

        try:
            async with asyncio.TaskGroup() as group:
                for work in works:
                    group.create_task(one(work))
        except* grpc.aio.AioRpcError as errors:
            first = next(one for one in errors.exceptions if isinstance(one, grpc.RpcError))
            raise from_call(first, what.lower()) from first
