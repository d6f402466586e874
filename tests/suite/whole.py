"""The four services in this process, each as it is, and four players who sit down at a table."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fangcheng.matchmaking.v1 import matchmaking_pb2
from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.table.v1 import table_pb2
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import wallet_pb2
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import attend, connect
from fangcheng_evaluation import service as evaluation
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_kit import Running, serving
from fangcheng_kit.tokens import mint_token
from fangcheng_matchmaking import service as matchmaking
from fangcheng_matchmaking.settings import MatchmakingSettings
from fangcheng_table import service as table
from fangcheng_table.sealing import new_key
from fangcheng_table.settings import TableSettings
from fangcheng_wallet import service as wallet
from fangcheng_wallet.settings import WalletSettings
from tests.table.world import simple

KEY = "a development key of the tests, long enough"
JOURNAL_KEYS = new_key("tests")
PLAYERS = ("ann", "bob", "cat", "dan")
POOLS = """
pools:
  - id: silver
    name: for silver
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 10, buy_in: 100}]
    hands: 1
    timing: {claim_window_ms: 0, between_hands_ms: 0}
"""


class Suite:
    """The services, and ways to call them."""

    def __init__(self, folder: Path, settings: dict[str, Any], pools: str = POOLS) -> None:
        self.running: dict[str, Running] = {}
        self._folder = folder
        self._pools = pools
        self._settings = settings
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Serve everything; all are ready."""
        (self._folder / "pools.yaml").write_text(self._pools, "utf-8")
        await self._serve("wallet", wallet.open_service, WalletSettings)
        await self._serve("evaluation", evaluation.open_service, EvaluationSettings)
        others = {name: running.address for name, running in self.running.items()}
        table_settings = {"start_grace_seconds": 600, "journal_keys": JOURNAL_KEYS}
        await self._serve("table", table.open_service, TableSettings, **table_settings, **others)
        others["table"] = self.running["table"].address
        await self._serve(
            "matchmaking",
            matchmaking.open_service,
            MatchmakingSettings,
            pools=self._folder / "pools.yaml",
            **others,
        )

    async def _serve(self, name: str, open_service: Any, settings: Any, **more: Any) -> None:
        if name != "evaluation":
            more["database"] = str(self._folder / f"{name}.db")
        common = {
            "dev_key": KEY,
            "grace_seconds": 0.1,
            "drain_seconds": 0,
            "player_calls_per_second": 0,  # players answer here at the speed of a machine
            **self._settings,
        }
        context = serving(name, settings(**common, **more), open_service)
        running = await self._stack.enter_async_context(context)
        self.running[name] = running
        async with self.bare(name) as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            async for told in watch:
                if told.status == health_pb2.HealthCheckResponse.SERVING:
                    return

    async def stop(self) -> None:
        """End everything, the last that was started first."""
        await self._stack.aclose()

    def bare(self, service: str) -> grpc.aio.Channel:
        """A channel on which nobody in particular calls."""
        return grpc.aio.insecure_channel(self.running[service].address)

    def channel(self, service: str, subject: str, **more: Any) -> grpc.aio.Channel:
        return connect(self.running[service].address, mint_token(KEY, subject), **more)

    async def fund(self) -> None:
        """Silver for all four."""
        async with self.channel("wallet", "operator") as channel:
            stub: Any = WalletServiceStub(channel)
            for player in PLAYERS:
                await stub.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=player))
                deposit = wallet_pb2.DepositRequest(
                    request_id=f"for {player}", player_id=player, currency="silver", amount=1_000
                )
                await stub.Deposit(deposit)

    async def queue(self, player: str, request_id: str = "q", **headers: str) -> str:
        """Queue a player; his ticket."""
        async with self.channel("matchmaking", f"player:{player}") as channel:
            stub: Any = MatchmakingServiceStub(channel)
            request = matchmaking_pb2.JoinQueueRequest(request_id=request_id, pool_id="silver")
            joined = await stub.JoinQueue(request, metadata=list(headers.items()))
            return str(joined.ticket.ticket_id)

    async def seat(self, player: str, ticket_id: str) -> str:
        """Wait until a ticket has its table."""
        async with self.channel("matchmaking", f"player:{player}") as channel:
            stub: Any = MatchmakingServiceStub(channel)
            request = matchmaking_pb2.WatchTicketRequest(ticket_id=ticket_id)
            async for answer in stub.WatchTicket(request):
                if answer.ticket.table_id:
                    return str(answer.ticket.table_id)
        raise AssertionError("the ticket has led to no table")

    async def play(
        self, player: str, table_id: str, header: Callable[[], dict[str, str]] = dict
    ) -> None:
        """Answer every prompt until the table has closed. `header`: metadata of each act."""
        async with self.channel("table", f"player:{player}") as channel:
            stub: Any = TableServiceStub(channel)
            async for event in attend(channel, table_id, entropy=b"entropy of " + player.encode()):
                if event.HasField("prompt"):
                    act = table_pb2.ActRequest(
                        table_id=table_id,
                        decision_id=event.prompt.decision_id,
                        action=simple(event.prompt),
                    )
                    await stub.Act(act, timeout=60, metadata=list(header().items()))

    async def evening(self, *first: dict[str, str]) -> str:
        """Fund, queue, seat and play all four to the end of their table; its id. `first`: metadata
        of JoinQueue of the first players."""
        await self.fund()
        headers = [*first, *({} for _ in PLAYERS[len(first) :])]
        tickets = [
            await self.queue(player, **more) for player, more in zip(PLAYERS, headers, strict=True)
        ]
        table_id = await self.seat(PLAYERS[0], tickets[0])
        await asyncio.gather(*(self.play(player, table_id) for player in PLAYERS))
        return table_id


@asynccontextmanager
async def whole(folder: Path, pools: str = POOLS, **settings: Any) -> AsyncIterator[Suite]:
    """The suite; `settings`: of every service."""
    suite = Suite(folder, settings, pools)
    try:
        await suite.start()
        yield suite
    finally:
        await suite.stop()


async def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait for a condition, a minute at most."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, f"it did not come to be: {what}"
        await asyncio.sleep(0.01)
