"""One look at the services, for one preview of an act.

What a service does not tell at the moment is a warning, not a refusal: a table must be closed while
the wallet is away, too. Only what the act itself is about has to be there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
import grpc.aio

from fangcheng.matchmaking.v1 import matchmaking_pb2
from fangcheng.matchmaking.v1 import operations_pb2 as queues
from fangcheng.table.v1 import state_pb2, table_pb2
from fangcheng.wallet.v1 import settlement_pb2, wallet_pb2

from .backend import Backend
from .problems import Refused
from .session import Person
from .verbs import Said, money

R = TypeVar("R")

AWAY = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        # Intended, for good: a studio's own wallet may serve SettlementService alone. What would be
        # read of WalletService is then told as not known, and the act can be previewed without it.
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
GLANCE_SECONDS = 3.0
"""For what is good to know, but not needed."""

Unit = tuple[str, str]
"""A currency and a book."""


@dataclass
class Look:
    """Reads what previews need; `warnings` says what could not be read."""

    backend: Backend
    person: Person
    warnings: list[Said] = field(default_factory=list)

    async def table(self, table_id: str) -> state_pb2.Table:
        """A table; raises where there is none, as all that is not a glance does."""
        request = table_pb2.GetTableRequest(table_id=table_id)
        found = await self.backend.tables.GetTable(request)
        return found.table

    async def holds(self, player_id: str) -> list[settlement_pb2.Hold] | None:
        """A player's open holds; none where he has no wallet."""
        request = wallet_pb2.ListHoldsRequest(player_id=player_id)
        call = self.backend.wallet.ListHolds(request, timeout=GLANCE_SECONDS)
        try:
            found = await self.glance(call, "wallet")
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
            return []  # no wallet, so no hold
        return None if found is None else list(found.holds)

    async def where(self, player_id: str) -> matchmaking_pb2.GetPlayerStatusResponse | None:
        """Where a player is."""
        request = matchmaking_pb2.GetPlayerStatusRequest(player_id=player_id)
        return await self.glance(
            self.backend.matchmaking.GetPlayerStatus(request, timeout=GLANCE_SECONDS), "where"
        )

    async def glance(self, call: Awaitable[R], what: str) -> R | None:
        """What a call tells; None, and a warning, where its service is away."""
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            if error.code() not in AWAY:
                raise
        warning = Said(f"away_{what}")
        if warning not in self.warnings:
            self.warnings.append(warning)
        return None

    async def available(self, players: list[str]) -> dict[tuple[str, Unit], int] | None:
        """What players have available, by player and unit; what is not there is 0."""
        calls = [
            self.backend.wallet.GetBalances(
                wallet_pb2.GetBalancesRequest(player_id=player), timeout=GLANCE_SECONDS
            )
            for player in players
        ]
        found = await asyncio.gather(*(self.glance(call, "wallet") for call in calls))
        available = {}
        for player, balances in zip(players, found, strict=True):
            if balances is None:
                return None
            for one in balances.balances:
                available[player, (one.currency, one.book)] = one.available
        return available

    async def floors(self) -> dict[str, int] | None:
        """The floors of the currencies that have one."""
        found = await self.glance(
            self.backend.wallet.ListCurrencies(
                wallet_pb2.ListCurrenciesRequest(), timeout=GLANCE_SECONDS
            ),
            "wallet",
        )
        if found is None:
            return None
        return {one.currency: one.floor for one in found.currencies if one.HasField("floor")}

    async def barred(self, player_id: str) -> list[queues.BarredPair]:
        """With whom a player is barred."""
        request = queues.ListBarredPairsRequest(player_id=player_id)
        found = await self.backend.queue_operations.ListBarredPairs(
            request, metadata=self.backend.as_operator(self.person)
        )
        return list(found.pairs)

    async def pair(self, player_id: str, other_id: str) -> queues.BarredPair | None:
        """The pair, where it is barred; `Refused` (400) for a player and himself."""
        if player_id == other_id:
            raise Refused(400, "SAME_PLAYER", "A pair has two players.", "other_id")
        for pair in await self.barred(player_id):
            if other_id in (pair.player_id, pair.other_id):
                return pair
        return None


def change(changed: Any) -> dict[str, Any]:
    """Why and when something was done before."""
    return {
        "reason": changed.reason,
        "case": changed.case_id,
        "ms": changed.time.ToMilliseconds(),
    }


def where_words(player_id: str, where: matchmaking_pb2.GetPlayerStatusResponse) -> list[Said]:
    """Where a player is, in words."""
    player = {"player": player_id}
    if where.table_id:
        return [Said("sits_at", {**player, "table": where.table_id})]
    if where.HasField("ticket"):
        return [Said("waits_in", {**player, "pool": where.ticket.pool_id})]
    if where.room_id:
        return [Said("in_room", player)]
    return [Said("is_nowhere", player)]


def sums(held: Mapping[Unit, int]) -> list[dict[str, Any]]:
    """Amounts in a sentence."""
    return [money(*unit, amount) for unit, amount in sorted(held.items())]
