"""A whole suite with a console, an operator and a viewer at it; tables and money to act upon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import grpc.aio
import httpx

from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.matchmaking.v1.operations_pb2_grpc import MatchmakingOperationsServiceStub
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import state_pb2, table_pb2
from fangcheng.table.v1.operators_pb2_grpc import TableOperationsServiceStub
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import settlement_pb2, wallet_pb2
from fangcheng.wallet.v1.settlement_pb2_grpc import SettlementServiceStub
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import attend
from tests.console.world import Browser, Page, console
from tests.suite.whole import KEY, whole

POOLS = """
pools:
  - {id: silver, name: for silver, rules: {id: baishan_kele}, hands: 4,
     stakes: [{currency: silver, per_unit: 10, buy_in: 100}]}
  - {id: free, name: for nothing, rules: {id: baishan_kele}, hands: 4}
"""
_STUBS = {
    "tables": ("table", TableServiceStub),
    "operations": ("table", TableOperationsServiceStub),
    "wallet": ("wallet", WalletServiceStub),
    "settlements": ("wallet", SettlementServiceStub),
    "matchmaking": ("matchmaking", MatchmakingServiceStub),
    "queue_operations": ("matchmaking", MatchmakingOperationsServiceStub),
}
_numbers = count(1)


class Reachable(Protocol):
    """Services that can be called."""

    def channel(self, service: str, subject: str) -> grpc.aio.Channel:
        """A channel to a service on which `subject` calls."""


@dataclass
class Office:
    """What the tests act upon, and with."""

    suite: Reachable
    page: Page
    operator: Browser
    """Signed in as operator:mei."""
    viewer: Browser
    stack: AsyncExitStack
    stubs: dict[str, Any] = field(default_factory=dict)

    def stub(self, name: str, subject: str = "operator") -> Any:
        """A service's calls, past the console."""
        if (found := self.stubs.get(f"{name} {subject}")) is None:
            service, make = _STUBS[name]
            found = self.stubs[f"{name} {subject}"] = make(self.suite.channel(service, subject))
        return found

    async def players(self, silver: int = 1_000) -> list[str]:
        """Four new players with silver."""
        number = next(_numbers)
        names = [f"{name}{number}" for name in ("ann", "bob", "cat", "dan")]
        for name in names:
            await self.open_wallet(name, silver)
        return names

    async def open_wallet(self, name: str, silver: int) -> None:
        wallet = self.stub("wallet")
        await wallet.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=name))
        if silver:
            deposit = wallet_pb2.DepositRequest(
                request_id=f"for {name}", player_id=name, currency="silver", amount=silver
            )
            await wallet.Deposit(deposit)

    async def hold(self, names: Sequence[str], amount: int) -> list[str]:
        placed = await self.stub("settlements", "service:matchmaking").PlaceHolds(
            settlement_pb2.PlaceHoldsRequest(
                request_id=f"holds {next(_numbers)}",
                holds=[
                    settlement_pb2.HoldRequest(player_id=name, currency="silver", amount=amount)
                    for name in names
                ],
            )
        )
        return [hold.hold_id for hold in placed.holds]

    async def table(
        self, names: Sequence[str] = (), *, buy_in: int = 100, hands: int = 4, playing: bool = True
    ) -> tuple[str, list[str]]:
        """A table in whose first hand everybody thinks for ever; its id and players."""
        names = names or await self.players()
        holds = await self.hold(names, buy_in) if buy_in else [""] * 4
        made = await self.stub("tables", "service:matchmaking").CreateTable(
            table_pb2.CreateTableRequest(
                request_id=f"table {next(_numbers)}",
                rules=rules_pb2.RuleSetChoice(id="baishan_kele"),
                seats=[
                    table_pb2.SeatAssignment(player_id=name, hold_ids=[hold] if hold else [])
                    for name, hold in zip(names, holds, strict=True)
                ],
                stakes=[state_pb2.Stake(currency="silver", per_unit=10)] if buy_in else [],
                hands=hands,
                timing=state_pb2.Timing(
                    turn_ms=600_000, claim_ms=600_000, before_deal_ms=1, claim_window_ms=0
                ),
            )
        )
        table_id: str = made.table.table_id
        for name in names:
            watching = asyncio.create_task(self._sit(name, table_id))
            self.stack.callback(watching.cancel)
        if playing:
            await until(lambda: self.is_played(table_id), "the first hand is played")
        return table_id, list(names)

    async def _sit(self, name: str, table_id: str) -> None:
        async with self.suite.channel("table", f"player:{name}") as channel:
            async for _ in attend(channel, table_id):
                pass

    async def get_table(self, table_id: str) -> state_pb2.Table:
        found = await self.stub("tables").GetTable(table_pb2.GetTableRequest(table_id=table_id))
        table: state_pb2.Table = found.table
        return table

    async def closed_because(self, table_id: str) -> str:
        return str((await self.get_table(table_id)).closed_reason)

    async def silver(self, names: Sequence[str]) -> list[tuple[int, int]]:
        """What each has available, and held."""
        balances = [await self.balance(name) for name in names]
        return [(one.available, one.held) for one in balances]

    async def is_played(self, table_id: str) -> bool:
        return (await self.get_table(table_id)).phase == state_pb2.TABLE_PHASE_PLAYING

    async def settle(
        self, key: str, names: Sequence[str], *transfers: tuple[int, int, int]
    ) -> None:
        """Settle a hand: payer, payee, silver; each pays from what is available."""
        await self.stub("settlements", "service:table").Settle(
            settlement_pb2.SettleRequest(
                key=key,
                parties=[settlement_pb2.SettlementParty(player_id=name) for name in names],
                transfers=[
                    settlement_pb2.SettlementTransfer(
                        currency="silver", from_party=payer, to_party=payee, amount=silver,
                        reason="win",
                    )
                    for payer, payee, silver in transfers
                ],
            )
        )  # fmt: skip

    async def balance(self, name: str) -> wallet_pb2.Balance:
        found = await self.stub("wallet").GetBalances(wallet_pb2.GetBalancesRequest(player_id=name))
        for one in found.balances:
            if one.currency == "silver":
                balance: wallet_pb2.Balance = one
                return balance
        return wallet_pb2.Balance(currency="silver")

    async def has_silver(self, names: Sequence[str], available: int, held: int) -> None:
        """Wait until each has so much."""

        async def have() -> bool:
            return await self.silver(names) == [(available, held)] * len(names)

        await until(have, f"{names} have {available} available and {held} held")

    async def has_closed(self, table_id: str, reason: str) -> None:
        async def closed() -> bool:
            return await self.closed_because(table_id) == reason

        await until(closed, f"the table is closed: {reason}")

    async def frozen(self, name: str) -> bool:
        found = await self.stub("wallet").GetBalances(wallet_pb2.GetBalancesRequest(player_id=name))
        return bool(found.player.frozen)

    async def preview(self, verb: str, **target: object) -> dict[str, Any]:
        answer = await self.operator.client.get(
            "/api/operate/preview", params={"verb": verb, **target}
        )
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def body(self, preview: dict[str, Any], **more: object) -> dict[str, Any]:
        """The act of a preview, as the dialog sends it."""
        return {
            "verb": preview["verb"],
            "target": preview["target"],
            "seen": preview["seen"],
            "reason": "the line was cut",
            "case_id": "case-7",
            "request_id": f"dialog-{next(_numbers):06}",
            **more,
        }

    async def story(self, request_id: str) -> dict[str, Any] | None:
        """What the log has of an act."""
        answer = await self.operator.get("/api/log")
        stories = answer.json()["stories"]
        return next((one for one in stories if one["request_id"] == request_id), None)

    async def act(self, preview: dict[str, Any], **more: object) -> httpx.Response:
        return await self.operator.post("/api/operate", self.body(preview, **more))


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait for a condition, a minute at most."""
    deadline = time.monotonic() + 60
    while not await holds():
        assert time.monotonic() < deadline, f"it did not come to be: {what}"
        await asyncio.sleep(0.02)


def said(told: dict[str, Any], kind: str = "says") -> dict[str, Any]:
    """What a preview or an outcome says, by key."""
    return {one["key"]: one["params"] for one in told[kind]}


def reason(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["reason"]


async def signed_in(stack: AsyncExitStack, page: Page, subject: str) -> Browser:
    browser = await stack.enter_async_context(page.browser())
    answer = await browser.post("/api/session", {"token": page.token(subject, key=KEY)})
    assert answer.status_code == 200, answer.text
    return browser


@asynccontextmanager
async def office(folder: Path, **settings: Any) -> AsyncIterator[Office]:
    """Everything in this process. `settings`: of the console."""
    async with AsyncExitStack() as stack:
        suite = await stack.enter_async_context(whole(folder, POOLS))
        targets = {name: running.address for name, running in suite.running.items()}
        world = await stack.enter_async_context(
            console(folder, **{**targets, "dev_key": KEY, **settings})
        )
        yield await opened(stack, suite, world)


async def opened(stack: AsyncExitStack, suite: Reachable, page: Page) -> Office:
    """The office at a page; it closes with the stack."""
    inner = await stack.enter_async_context(AsyncExitStack())
    return Office(
        suite=suite,
        page=page,
        operator=await signed_in(inner, page, "operator:mei"),
        viewer=await signed_in(inner, page, "viewer:wang"),
        stack=inner,
    )
