"""The calls of the wallet: check who asks, call the store, convert. Their promises: the proto."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fangcheng.wallet.v1 import wallet_pb2 as wire
from fangcheng.wallet.v1 import wallet_pb2_grpc
from fangcheng_kit import Kit, Servicer, pages, principal, running
from fangcheng_kit.app import StartFailed
from fangcheng_kit.errors import ServiceError, Unavailable
from fangcheng_wallet import convert
from fangcheng_wallet.errors import NotYourWallet, PlayerRequired, WalletUnavailable
from fangcheng_wallet.ledger import Done, ReleaseHolds, Settlement
from fangcheng_wallet.metrics import Outcome, WalletMetrics
from fangcheng_wallet.settings import WalletSettings
from fangcheng_wallet.sqlite import open_sqlite
from fangcheng_wallet.sqlite_writer import BadDatabase
from fangcheng_wallet.store import Store

WALLET = "fangcheng.wallet.v1.WalletService"
SETTLEMENT = "fangcheng.wallet.v1.SettlementService"


class Wallet(wallet_pb2_grpc.WalletServiceServicer):
    """``WalletService``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def OpenWallet(  # as in the contract
        self, request: wire.OpenWalletRequest, context: Any
    ) -> wire.OpenWalletResponse:
        """See the proto."""
        created = await self._store.open_wallet(request.player_id)
        return wire.OpenWalletResponse(created=created)

    async def GetBalances(
        self, request: wire.GetBalancesRequest, context: Any
    ) -> wire.GetBalancesResponse:
        """See the proto."""
        player_id = _asked_player(request.player_id)
        balances = await self._store.balances(player_id)
        return wire.GetBalancesResponse(
            player_id=player_id, balances=map(convert.balance_to_wire, balances)
        )

    async def Deposit(self, request: wire.DepositRequest, context: Any) -> wire.DepositResponse:
        """See the proto."""
        done = await self._store.deposit(convert.deposit(request))
        return wire.DepositResponse(
            entry=convert.entry_to_wire(done.answer), replayed=done.replayed
        )

    async def Withdraw(self, request: wire.WithdrawRequest, context: Any) -> wire.WithdrawResponse:
        """See the proto."""
        done = await self._store.withdraw(convert.withdraw(request))
        return wire.WithdrawResponse(
            entry=convert.entry_to_wire(done.answer), replayed=done.replayed
        )

    async def ListEntries(
        self, request: wire.ListEntriesRequest, context: Any
    ) -> wire.ListEntriesResponse:
        """See the proto."""
        player_id = _asked_player(request.player_id)
        filters = [player_id, request.currency]
        after = pages.after(request.page_token, [int], filters)
        page = await self._store.entries(
            player_id,
            request.currency or None,
            None if after is None else int(after[0]),
            pages.page_size(request.page_size),
        )
        return wire.ListEntriesResponse(
            entries=map(convert.entry_to_wire, page.entries),
            next_page_token="" if page.rest is None else pages.page_token([page.rest], filters),
        )

    async def AuditLedger(
        self, request: wire.AuditLedgerRequest, context: Any
    ) -> wire.AuditLedgerResponse:
        """See the proto."""
        return convert.audit_to_wire(await self._store.audit())


class Settlements(wallet_pb2_grpc.SettlementServiceServicer):
    """``SettlementService``."""

    def __init__(self, store: Store, metrics: WalletMetrics) -> None:
        self._store = store
        self._metrics = metrics

    async def PlaceHolds(
        self, request: wire.PlaceHoldsRequest, context: Any
    ) -> wire.PlaceHoldsResponse:
        """See the proto."""
        done = await self._store.place_holds(convert.place_holds(request))
        return wire.PlaceHoldsResponse(
            holds=map(convert.hold_to_wire, done.answer), replayed=done.replayed
        )

    async def ReleaseHolds(
        self, request: wire.ReleaseHoldsRequest, context: Any
    ) -> wire.ReleaseHoldsResponse:
        """See the proto."""
        holds = await self._store.release_holds(ReleaseHolds(tuple(request.hold_ids)))
        return wire.ReleaseHoldsResponse(holds=map(convert.hold_to_wire, holds))

    async def Settle(self, request: wire.SettleRequest, context: Any) -> wire.SettleResponse:
        """See the proto."""
        try:
            done = await self._store.settle(convert.settle(request))
        except ServiceError as error:
            self._metrics.settled("failed" if isinstance(error, Unavailable) else "refused")
            raise
        self._metrics.settled(_outcome(done))
        return wire.SettleResponse(
            settlement=convert.settlement_to_wire(done.answer), replayed=done.replayed
        )

    async def GetSettlement(
        self, request: wire.GetSettlementRequest, context: Any
    ) -> wire.GetSettlementResponse:
        """See the proto."""
        settlement = await self._store.settlement(request.key)
        return wire.GetSettlementResponse(settlement=convert.settlement_to_wire(settlement))


def _asked_player(player_id: str) -> str:
    """Whose wallet is asked for: a player's own, or the one that somebody else names."""
    caller = principal.current()
    if caller.kind != "player":
        if not player_id:
            raise PlayerRequired
        return player_id
    if player_id not in ("", caller.id):
        raise NotYourWallet
    return caller.id


def _outcome(done: Done[Settlement]) -> Outcome:
    if done.replayed:
        return "replayed"
    request, outcome = done.answer.request, done.answer.outcome
    full = all(
        paid == transfer.amount
        for transfer, paid in zip(request.transfers, outcome.paid, strict=True)
    )
    return "paid" if full else "short"


async def _watch(store: Store, kit: Kit, metrics: WalletMetrics, seconds: float) -> None:
    """Keep gauges and health up to date."""
    while True:
        try:
            metrics.saw(await store.pulse())
            kit.health(True)
        except WalletUnavailable:
            kit.health(False, "the ledger cannot be read")
        await asyncio.sleep(seconds)


@asynccontextmanager
async def open_service(settings: WalletSettings, kit: Kit) -> AsyncIterator[list[Servicer]]:
    """Open the ledger, serve it, and close it when every call has ended."""
    currencies = [setting.currency() for setting in settings.currencies]
    metrics = WalletMetrics(kit.registry, [currency.id for currency in currencies])
    async with AsyncExitStack() as stack:
        try:
            store = await stack.enter_async_context(
                open_sqlite(
                    settings.database,
                    currencies,
                    most_items=settings.most_commit_items,
                    on_commit=metrics.committed,
                )
            )
        except BadDatabase as error:
            raise StartFailed(f"{settings.database}: {error}") from error
        await stack.enter_async_context(
            running(_watch(store, kit, metrics, settings.pulse_seconds))
        )
        yield [
            Servicer(wallet_pb2_grpc.add_WalletServiceServicer_to_server, Wallet(store), WALLET),
            Servicer(
                wallet_pb2_grpc.add_SettlementServiceServicer_to_server,
                Settlements(store, metrics),
                SETTLEMENT,
            ),
        ]
