"""The verbs of a storage, all of which come down to one: have a command done."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

from fangcheng_kit.errors import ServiceError
from fangcheng_wallet.ledger import (
    Collect,
    Collected,
    Command,
    Deposit,
    Done,
    Entry,
    ExtendHolds,
    Freeze,
    HandOver,
    Hold,
    OpenWallet,
    PlaceHolds,
    Player,
    ReleaseHolds,
    Reversal,
    Reverse,
    Settle,
    Settled,
    Settlement,
    TopUpHold,
    Withdraw,
)

Answer = TypeVar("Answer")


class Verbs(ABC):
    """The half of ``store.Store`` that changes something."""

    @abstractmethod
    async def do(self, command: Command[Any]) -> Done[Any]:
        """Have a command done; the answer of its decision."""

    async def open_wallet(self, player_id: str, *, is_bot: bool = False) -> bool:
        """See ``store.Store``."""
        done: Done[bool] = await self.do(OpenWallet(player_id, is_bot))
        return done.answer

    async def freeze(self, command: Freeze) -> Done[Player]:
        """See ``store.Store``."""
        return await self.do(command)

    async def deposit(self, command: Deposit) -> Done[Entry]:
        """See ``store.Store``."""
        return await self.do(command)

    async def withdraw(self, command: Withdraw) -> Done[Entry]:
        """See ``store.Store``."""
        return await self.do(command)

    async def collect(self, command: Collect) -> Done[Collected]:
        """See ``store.Store``."""
        return await self.do(command)

    async def place_holds(self, command: PlaceHolds) -> Done[tuple[Hold, ...]]:
        """See ``store.Store``."""
        return await self.do(command)

    async def hand_over(self, command: HandOver) -> tuple[Hold, ...]:
        """See ``store.Store``."""
        done: Done[tuple[Hold, ...]] = await self.do(command)
        return done.answer

    async def extend_holds(self, command: ExtendHolds) -> tuple[Hold, ...]:
        """See ``store.Store``."""
        done: Done[tuple[Hold, ...]] = await self.do(command)
        return done.answer

    async def top_up_hold(self, command: TopUpHold) -> Done[Hold]:
        """See ``store.Store``."""
        return await self.do(command)

    async def release_holds(self, command: ReleaseHolds) -> tuple[Hold, ...]:
        """See ``store.Store``."""
        done: Done[tuple[Hold, ...]] = await self.do(command)
        return done.answer

    async def settle(self, command: Settle) -> Done[Settlement]:
        """See ``store.Store``."""
        done: Done[Settled] = await self.do(command)
        return Done(Settlement(command, done.answer), done.replayed)

    async def settle_all(
        self, commands: Sequence[Settle]
    ) -> Sequence[Done[Settlement] | Exception]:
        """See ``store.Store``."""

        async def one(command: Settle) -> Done[Settlement] | Exception:
            try:
                return await self.settle(command)
            except ServiceError as error:
                return error

        return await asyncio.gather(*map(one, commands))

    async def reverse(self, command: Reverse) -> Done[Reversal]:
        """See ``store.Store``."""
        return await self.do(command)
