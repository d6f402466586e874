"""The bots of a running suite: who they are, their play money, and keeping them at it."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc
import grpc.aio

from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_rules.players import STRENGTH
from fangcheng_suite.access import Access
from fangcheng_suite.errors import SuiteError, from_call

from .player import Bot, Place

NAMES = ("Mei", "Lan", "Zhu", "Ju", "Chun", "Xia", "Qiu", "Dong")
"""Plum, orchid, bamboo, chrysanthemum and the seasons: the eight flower tiles."""

CURRENCY = "silver"
PLAY_MONEY = 100_000
"""What a bot is given, and given again when it has less than a tenth of it."""

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 10.0

Report = Callable[[str], None]


def bot_id(number: int) -> str:
    """The player id of a bot, counted from 0: `bot-mei`, later `bot-mei-2`."""
    turn, place = divmod(number, len(NAMES))
    return f"bot-{NAMES[place].lower()}" + (f"-{turn + 1}" if turn else "")


def bot_name(number: int) -> str:
    """The name that the bot shows, counted from 0."""
    turn, place = divmod(number, len(NAMES))
    return NAMES[place] + (f" {turn + 1}" if turn else "")


def make_bots(
    numbers: Sequence[int],
    access: Access,
    turn_seconds: float = 0.0,
    seed: int | None = None,
    *,
    strength: str = STRENGTH,
) -> list[Bot]:
    """Bots by their numbers; the seed makes their choices by chance repeatable."""
    chance = random.Random(seed)  # noqa: S311 # nosec B311 # no secret
    return [
        Bot(
            player_id=bot_id(number),
            name=bot_name(number),
            access=access,
            strength=strength,
            turn_seconds=turn_seconds,
            chance=random.Random(chance.random()),  # noqa: S311 # nosec B311 # no secret
        )
        for number in numbers
    ]


@dataclass(slots=True)
class Bank:
    """Opens the bots' wallets and fills them with the house's money."""

    access: Access

    async def give(self, player_id: str, amount: int = PLAY_MONEY) -> int:
        """Open a wallet and bring it to `amount`, if less than a tenth of it is available.

        Answers what was paid in. Raises SuiteError.
        """
        try:
            async with self.access.channel("wallet") as channel:
                stub = wallet_pb2_grpc.WalletServiceStub(channel)
                await stub.OpenWallet(
                    wallet_pb2.OpenWalletRequest(player_id=player_id, is_bot=True)
                )
                available = await self._available(stub, player_id)
                if available * 10 >= amount:
                    return 0
                await stub.Deposit(
                    wallet_pb2.DepositRequest(
                        request_id=uuid.uuid4().hex,
                        player_id=player_id,
                        currency=CURRENCY,
                        amount=amount - available,
                        memo="play money",
                    )
                )
                return amount - available
        except grpc.aio.AioRpcError as error:
            raise from_call(error, f"filling the wallet of {player_id}") from error

    async def balance(self, player_id: str) -> tuple[int, int]:
        """What a player has in the bots' currency: available and held."""
        async with self.access.channel("wallet") as channel:
            stub = wallet_pb2_grpc.WalletServiceStub(channel)
            answer = await stub.GetBalances(wallet_pb2.GetBalancesRequest(player_id=player_id))
        for balance in answer.balances:
            if balance.currency == CURRENCY:
                return balance.available, balance.held
        return 0, 0

    async def _available(self, stub: wallet_pb2_grpc.WalletServiceAsyncStub, player_id: str) -> int:
        answer = await stub.GetBalances(wallet_pb2.GetBalancesRequest(player_id=player_id))
        return sum(balance.available for balance in answer.balances if balance.currency == CURRENCY)


async def keep_playing(
    bot: Bot,
    pool_id: str,
    bank: Bank,
    *,
    standby: bool = False,
    report: Report = lambda text: None,
    on_seated: Callable[[Place], None] | None = None,
) -> None:
    """Play one table after the other until cancelled.

    What goes wrong is tried again; it is told once for as long as it stays the same.
    """
    pause_seconds = FIRST_PAUSE_SECONDS
    told = ""
    if on_seated is not None:
        bot.on_seated = on_seated
    while True:
        try:
            await bank.give(bot.player_id)
            await bot.play(pool_id, standby=standby)
        except grpc.aio.AioRpcError as error:
            trouble = str(from_call(error, bot.player_id))
        except SuiteError as error:
            trouble = error.message
        else:
            pause_seconds = FIRST_PAUSE_SECONDS
            told = ""
            continue
        if trouble != told:
            report(trouble)
        told = trouble
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
