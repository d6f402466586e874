"""A small world around matchmaking: partners that keep their promises, the real service, players.

==================== =================================================================
`world`              `World`: partners that run, the service started and stopped at will
`clients`            `Player` and `Guest`: what players call, over real gRPC
`partners`, `wallet` what matchmaking calls: tables, finished hands, evaluators, wallet
`faults`             what a test can have befall a call to a partner
`fake_time`          a loop whose time nobody waits for, and partners without a network, for races
`admission_server`   a studio's AdmissionService, which is an example for studios too
==================== =================================================================
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio

from fangcheng.matchmaking.v1 import (
    matchmaking_pb2_grpc,
    operations_pb2_grpc,
    privacy_pb2_grpc,
    rooms_pb2_grpc,
)
from fangcheng_client import connect
from fangcheng_kit import Kit, Running, Servicer, Settings, serving
from fangcheng_kit.tokens import mint_token
from fangcheng_matchmaking.service import open_service
from fangcheng_matchmaking.settings import MatchmakingSettings
from tests.matchmaking.clients import Guest, Player
from tests.matchmaking.partners import FakeEvaluators, FakeRecords, FakeTables, servicers
from tests.matchmaking.wallet import FakeWallet

KEY = "a development key of the tests, long enough"

POOLS = """
pools:
  - id: silver
    name: for silver
    rules: {id: baishan_kele, options: {cap: 0, piao: false}}
    stakes:
      - {currency: silver, per_unit: 10, buy_in: 1000}
      - {currency: points, book: baishan_kele, per_unit: 1}
    hands: 8
    rounds: 2
    timing: {turn_ms: 3000, claim_window_ms: 0, vote_ms: 5000, away: trustee_to_end}
    least_client_version: 3
  - id: free
    name: for nothing
    rules: {id: baishan_kele}
  - id: practice
    name: with bots
    rules: {id: baishan_kele}
    stakes: [{currency: points, book: baishan_kele, per_unit: 1}]
    fill_with_bots_after_ms: 200
"""


class World:
    """Partners that run, and matchmaking that is started and stopped at will."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.folder = folder
        self.wallet = FakeWallet()
        self.tables = FakeTables(self.wallet)
        self.records = FakeRecords()
        self.evaluators = FakeEvaluators()
        self.running: Running | None = None
        self._stack = stack
        self._service = AsyncExitStack()
        self._targets: dict[str, str] = {}
        self._channels = AsyncExitStack()
        self._probes = 0

    async def open(self) -> None:
        partners = servicers(self.wallet, self.tables, self.records, self.evaluators)
        for name, served in partners.items():
            running = await self._stack.enter_async_context(
                serving(name, Settings(dev_key=KEY, grace_seconds=0.1), _opens(served))
            )
            self._targets[name] = running.address
        (self.folder / "pools.yaml").write_text(POOLS, "utf-8")

    def target(self, name: str) -> str:
        """Where a partner listens."""
        return self._targets[name]

    def settings(self, **more: Any) -> MatchmakingSettings:
        fields: dict[str, Any] = {
            "dev_key": KEY,
            "grace_seconds": 0.1,
            "player_calls_per_second": 0,  # players act here at the speed of a machine
            "database": str(self.folder / "matchmaking.db"),
            "pools": self.folder / "pools.yaml",
            "table": self._targets["table"],
            "wallet": self._targets["wallet"],
            "evaluation": self._targets["evaluation"],
            "table_check_seconds": 0.05,
            "longest_backoff_seconds": 0.1,
            **more,
        }
        return MatchmakingSettings(**fields)

    async def start(self, **settings: Any) -> None:
        self.running = await self._service.enter_async_context(
            serving("matchmaking", self.settings(**settings), open_service)
        )

    async def stop(self) -> None:
        """As a crash would: nothing is written at a stop that was not written before."""
        await self._channels.aclose()
        await self._service.aclose()
        self.running = None

    async def restart(self, **settings: Any) -> None:
        await self.stop()
        await self.start(**settings)

    async def stub(
        self, subject: str, *scopes: str
    ) -> matchmaking_pb2_grpc.MatchmakingServiceAsyncStub:
        return matchmaking_pb2_grpc.MatchmakingServiceStub(await self._channel(subject, *scopes))

    async def gateway(self, player_id: str) -> matchmaking_pb2_grpc.MatchmakingServiceAsyncStub:
        """The stub of a gateway that acts for a player."""
        self.wallet.silver.setdefault(player_id, 10_000)
        channel = await self._channel("service:gateway", "act_as", act_as=player_id)
        return matchmaking_pb2_grpc.MatchmakingServiceStub(channel)

    async def operations(
        self,
    ) -> operations_pb2_grpc.MatchmakingOperationsServiceAsyncStub:
        """The stub of an operator."""
        channel = await self._channel("operator")
        return operations_pb2_grpc.MatchmakingOperationsServiceStub(channel)

    async def privacy(self, subject: str = "operator") -> privacy_pb2_grpc.PrivacyServiceAsyncStub:
        return privacy_pb2_grpc.PrivacyServiceStub(await self._channel(subject))

    async def _channel(
        self, subject: str, *scopes: str, act_as: str | None = None
    ) -> grpc.aio.Channel:
        assert self.running is not None
        return await self._channels.enter_async_context(
            connect(self.running.address, token=mint_token(KEY, subject, scopes), act_as=act_as)
        )

    async def reload(self) -> None:
        """Has the service read its pools anew, and waits until it has."""

        name = "fangcheng_matchmaking_pool_reloads_total"
        before = await self.metric(name)
        os.kill(os.getpid(), signal.SIGHUP)

        async def reloaded() -> bool:
            return await self.metric(name) > before

        await eventually(reloaded)

    async def metric(self, name: str, label: str = "") -> float:
        """The sum of a metric of the service over its labels, or over those with this one."""
        assert self.running is not None
        url = f"http://{self.running.metrics_address}/metrics"
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
        return sum(
            float(line.rpartition(" ")[2])
            for line in page.splitlines()
            if line.startswith(name) and label in line
        )

    async def settled(self, last: str = "probe") -> None:
        """Waits until whoever may be matched now has been: four others in the last pool are.

        Pools are gone through in their order, so that by then the others have had their turn.
        """
        self._probes += 1
        probes = [await self.player(f"probe{self._probes}.{seat}") for seat in range(4)]
        for probe in probes:
            await probe.join(last)
        self.tables.close((await probes[0].outcome()).table_id)

    async def player(self, player_id: str, *scopes: str) -> Player:
        self.wallet.silver.setdefault(player_id, 10_000)
        return Player(player_id, await self.stub(f"player:{player_id}", *scopes))

    async def guest(self, player_id: str, via: str = "") -> Guest:
        """A player who wants into rooms; `via`: the name of a gateway that acts for him."""
        self.wallet.silver.setdefault(player_id, 10_000)
        if via:
            channel = await self._channel(f"service:{via}", "act_as", act_as=player_id)
        else:
            channel = await self._channel(f"player:{player_id}")
        return Guest(
            player_id,
            rooms_pb2_grpc.RoomServiceStub(channel),
            matchmaking_pb2_grpc.MatchmakingServiceStub(channel),
        )

    @asynccontextmanager
    async def client(self, address: str, player_id: str) -> AsyncIterator[Player]:
        """A player who calls a service that the world has not started: a replica, or a process."""
        self.wallet.silver.setdefault(player_id, 10_000)
        async with connect(address, token=mint_token(KEY, f"player:{player_id}")) as channel:
            yield Player(player_id, matchmaking_pb2_grpc.MatchmakingServiceStub(channel))

    async def players(self, count: int) -> list[Player]:
        return [await self.player(f"p{number}") for number in range(count)]

    def check(self) -> None:
        """What must hold whenever nothing is under way: nobody twice, nothing left over."""
        seated = Counter(
            seat.player_id
            for table in self.tables.open_tables
            for seat in table.seats
            if seat.player_id
        )
        assert all(times == 1 for times in seated.values()), f"seated twice: {seated}"
        for table in self.tables.tables.values():
            assert len({seat.player_id for seat in table.seats}) == 4
        at_tables = {
            hold_id
            for table in self.tables.open_tables
            for hold_ids in self.tables.held[table.table_id].values()
            for hold_id in hold_ids
        }
        assert set(self.wallet.open_holds) == at_tables


def _opens(servicers: Sequence[Servicer]) -> Any:
    @asynccontextmanager
    async def opened(settings: Settings, kit: Kit) -> AsyncIterator[Sequence[Servicer]]:
        yield servicers

    return opened


async def eventually(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 60) -> None:
    """Waits until something is so; fails when it takes longer than it may."""
    deadline = time.monotonic() + seconds
    while True:
        met = condition()
        if met if isinstance(met, bool) else await met:
            return
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.005)
