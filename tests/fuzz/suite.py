"""A suite in processes with something in it that hostile calls can hit, and what is watched."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from fangcheng.matchmaking.v1 import operations_pb2
from fangcheng.matchmaking.v1.operations_pb2_grpc import MatchmakingOperationsServiceStub
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import state_pb2, table_pb2
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import settlement_pb2, wallet_pb2
from fangcheng.wallet.v1.settlement_pb2_grpc import SettlementServiceStub
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import attend
from tests.fuzz.mutations import is_map
from tests.system.processes import Processes

POOLS = """
pools:
  - {id: silver, name: for silver, rules: {id: baishan_kele}, hands: 4,
     stakes: [{currency: silver, per_unit: 10, buy_in: 100}]}
  - {id: free, name: for nothing, rules: {id: jintan}, hands: 1}
rooms:
  - {id: friends, name: with friends, rules: {id: shandong}, hands: 2}
"""
_KEPT = 12
"""Of each kind of id, the last that were told."""
_STATE = {
    "wallet": (
        "SELECT MAX(id) FROM operations",
        "SELECT MAX(id) FROM postings",
        "SELECT * FROM players",
        "SELECT * FROM accounts",
        "SELECT * FROM holds",
    ),
    # Of the tables that were there before: a new one plays by itself.
    "table": (
        "SELECT MAX(place) FROM tables",
        "SELECT MAX(place) FROM operator_actions",
        "SELECT closed, player_ids, labels FROM tables WHERE place <= :places",
        "SELECT place, MAX(sequence) FROM events WHERE place <= :places GROUP BY place",
    ),
    "matchmaking": (
        "SELECT MAX(number) FROM tickets",
        "SELECT COUNT(*) FROM rooms",
        "SELECT * FROM pauses",
        "SELECT * FROM apart",
        "SELECT * FROM losses",
    ),
}
"""What only calls change, by service."""


class Suite(Processes):
    """Four services, tables that wait for their players, and the ids of all."""

    def __init__(self, folder: Path) -> None:
        # Limits would hide what lies behind them.
        super().__init__(folder, POOLS, GRACE_SECONDS="0.5", PLAYER_CALLS_PER_SECOND="0")
        self._folder = folder
        self.known: dict[str, deque[Any]] = {
            "player_id": deque(["eve", "nobody"], maxlen=_KEPT),
            "currency": deque(["silver", "points"]),
            "book": deque(["", "jintan"]),
            "pool_id": deque(["silver", "free"]),
            "template_id": deque(["friends"]),
            "hand_number": deque([1, 1, 2]),
            "seat": deque(range(4)),
            "amount": deque([1, 10, 100]),
            "layout": deque([1]),
        }
        """By the field that names them."""
        self.acts: deque[tuple[str, bytes]] = deque(maxlen=_KEPT)
        """What players were offered: who, and the `ActRequest` of it."""
        self._readers: dict[str, sqlite3.Connection] = {}
        self._places = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """They serve, and their databases can be read."""
        async with super().running():
            for name in _STATE:
                path = self._folder / f"{name}.db"
                self._readers[name] = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            yield
        for reader in self._readers.values():
            reader.close()

    async def new_table(self, number: int) -> str:
        """A table for silver whose first hand has begun, and at which four may think long.

        The queues are open again, whatever was done to them.
        """
        names = [f"{name}-{number}" for name in ("ann", "bob", "cat", "dan")]
        self.known["player_id"].extend(names)
        async with AsyncExitStack() as stack:
            queues = stub(stack, self, MatchmakingOperationsServiceStub, "matchmaking", "operator")
            for pool in ("silver", "free"):
                await queues.ResumePool(operations_pb2.ResumePoolRequest(pool_id=pool))
            wallet = stub(stack, self, WalletServiceStub, "wallet", "operator")
            for name in names:
                await wallet.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=name))
                await wallet.Deposit(
                    wallet_pb2.DepositRequest(
                        request_id=f"for {name}", player_id=name, currency="silver", amount=100_000
                    )
                )
            holds = await stub(
                stack, self, SettlementServiceStub, "wallet", "service:matchmaking"
            ).PlaceHolds(
                settlement_pb2.PlaceHoldsRequest(
                    request_id=f"holds {number}",
                    holds=[
                        settlement_pb2.HoldRequest(player_id=name, currency="silver", amount=100)
                        for name in names
                    ],
                )
            )
            self.learn(holds)
            made = await stub(
                stack, self, TableServiceStub, "table", "service:matchmaking"
            ).CreateTable(
                table_pb2.CreateTableRequest(
                    request_id=f"table {number}",
                    rules=rules_pb2.RuleSetChoice(id="baishan_kele"),
                    seats=[
                        table_pb2.SeatAssignment(player_id=name, hold_ids=[hold.hold_id])
                        for name, hold in zip(names, holds.holds, strict=True)
                    ],
                    stakes=[state_pb2.Stake(currency="silver", per_unit=10)],
                    hands=4,
                    timing=state_pb2.Timing(
                        turn_ms=600_000,
                        claim_ms=600_000,
                        away_grace_ms=3_600_000,
                        before_deal_ms=1,
                        claim_window_ms=0,
                    ),
                )
            )
            self.learn(made)
            table_id = str(made.table.table_id)
            await asyncio.gather(*(self._sit(stack, name, table_id) for name in names))
        (self._places,) = self._readers["table"].execute("SELECT MAX(place) FROM tables").fetchone()
        return table_id

    async def _sit(self, stack: AsyncExitStack, player: str, table_id: str) -> None:
        """Attend until a prompt or a tile is seen."""
        channel = await stack.enter_async_context(self.channel("table", f"player:{player}"))
        async for event in attend(channel, table_id):
            self.learn(event)
            for action in event.prompt.actions:
                act = table_pb2.ActRequest(
                    table_id=table_id, decision_id=event.prompt.decision_id, action=action
                )
                self.acts.append((player, act.SerializeToString()))
            if event.HasField("dealt") or event.HasField("prompt"):
                return

    def learn(self, message: Message) -> None:
        """Keep the ids that an answer tells."""
        for field, value in message.ListFields():
            if field.message_type is not None:
                if not is_map(field):
                    for part in value if field.is_repeated else [value]:
                        self.learn(part)
            elif field.name.endswith(("_id", "_ids", "code", "cursor", "page_token")):
                kept = self.known.setdefault(field.name, deque(maxlen=_KEPT))
                if kept.maxlen:
                    kept.extend(value if field.is_repeated else [value])
                if field.name == "hold_id":
                    self.known["hold_ids"] = kept

    def versions(self) -> tuple[int, ...]:
        """Changes whenever a service has written anything."""
        return tuple(
            reader.execute("PRAGMA data_version").fetchone()[0] for reader in self._readers.values()
        )

    def state(self) -> dict[str, Any]:
        """What the services keep, as far as only calls change it; by query."""
        return {
            query: self._readers[name].execute(query, {"places": self._places}).fetchall()
            for name, queries in _STATE.items()
            for query in queries
        }


def stub(stack: AsyncExitStack, suite: Suite, make: Any, service: str, subject: str) -> Any:
    """The calls of a service, made by `subject`; closed with the stack."""
    channel = suite.channel(service, subject)
    stack.push_async_callback(channel.close)
    return make(channel)
