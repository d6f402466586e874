"""The wallet over the wire: served in the test's own loop, called as any client would."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from fangcheng.wallet.v1 import settlement_pb2_grpc, wallet_pb2_grpc
from fangcheng_client import connect
from fangcheng_kit import Running, serving
from fangcheng_kit.tokens import mint_token
from fangcheng_wallet.service import open_service
from fangcheng_wallet.settings import WalletSettings

KEY = "a development key of the tests, long enough"
CURRENCIES = """
currencies:
  - id: silver
    names: {zh: 银子}
  - {id: points, books: true, floor: null}
  - {id: coins, most: 1000, minor_digits: 2}
"""


class Caller:
    """Somebody who calls the wallet."""

    def __init__(self, address: str, subject: str, *, retries: bool = True) -> None:
        self.channel: grpc.aio.Channel = connect(
            address,
            mint_token(KEY, subject),
            # A connection of its own, not one shared with the other callers of this process.
            options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", int(retries))],
        )
        self.wallet: wallet_pb2_grpc.WalletServiceAsyncStub = wallet_pb2_grpc.WalletServiceStub(
            self.channel
        )
        self.settlement: settlement_pb2_grpc.SettlementServiceAsyncStub = (
            settlement_pb2_grpc.SettlementServiceStub(self.channel)
        )


class Served:
    """A wallet that serves, and who calls it."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self._callers: dict[str, Caller] = {}

    def as_(self, subject: str) -> Caller:
        """The wallet as ``operator``, ``player:<id>`` or ``service:<name>`` calls it."""
        if subject not in self._callers:
            self._callers[subject] = Caller(self.running.address, subject)
        return self._callers[subject]

    @property
    def operator(self) -> Caller:
        return self.as_("operator")

    @property
    def table(self) -> Caller:
        return self.as_("service:table")

    @property
    def matchmaking(self) -> Caller:
        return self.as_("service:matchmaking")

    def metric(self, name: str, **labels: str) -> float:
        """The value of a metric, 0 where it has none yet."""
        return self.running.kit.registry.get_sample_value(f"fangcheng_wallet_{name}", labels) or 0

    async def close(self) -> None:
        for caller in self._callers.values():
            await caller.channel.close()


@asynccontextmanager
async def served(folder: Path, database: str = "") -> AsyncIterator[Served]:
    """Serve the ledger in a folder, or in a database elsewhere."""
    currencies = folder / "currencies.yaml"
    currencies.write_text(CURRENCIES)
    settings = WalletSettings(
        dev_key=KEY,
        database=database or str(folder / "wallet.db"),
        currencies=currencies,
        drain_seconds=0,
        pulse_seconds=0.05,
        stream_pause_seconds=0.01,
    )
    async with serving("wallet", settings, open_service) as running:
        wallet = Served(running)
        try:
            yield wallet
        finally:
            await wallet.close()
