"""The calls of ``WalletService``, and how the wallet is opened. Their promises: the proto."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from fangcheng.wallet.v1 import privacy_pb2_grpc, settlement_pb2_grpc, wallet_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2 as wire
from fangcheng_kit import Kit, Servicer, pages, principal, running
from fangcheng_kit.app import StartFailed
from fangcheng_kit.migrations import BadDatabase
from fangcheng_wallet import convert
from fangcheng_wallet.convert_settlement import hold_to_wire
from fangcheng_wallet.currencies import BadCurrencies, load_currencies
from fangcheng_wallet.errors import InvalidCursor, NotYourWallet, PlayerRequired, WalletUnavailable
from fangcheng_wallet.ledger import Currency, LeaderboardQuery
from fangcheng_wallet.metrics import WalletMetrics
from fangcheng_wallet.periods import bounds_us
from fangcheng_wallet.service_privacy import PRIVACY, Privacy
from fangcheng_wallet.service_settlement import SETTLEMENT, Settlements
from fangcheng_wallet.settings import WalletSettings
from fangcheng_wallet.sqlite import open_sqlite
from fangcheng_wallet.store import OnCommit, Store

WALLET = "fangcheng.wallet.v1.WalletService"

STREAM_ENTRIES = 500
"""Entries of a message of a stream, at most."""
STREAM_SIGN_SECONDS = 10.0
"""Silence after which a stream that follows tells that it lives."""

_CURSOR = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)


class Wallet(wallet_pb2_grpc.WalletServiceServicer):
    """``WalletService``."""

    def __init__(
        self, store: Store, currencies: Sequence[Currency], settings: WalletSettings
    ) -> None:
        self._store = store
        self._currencies = currencies
        self._offset_minutes = settings.calendar_offset_minutes
        self._pause_seconds = settings.stream_pause_seconds

    async def ListCurrencies(
        self, request: wire.ListCurrenciesRequest, context: Any
    ) -> wire.ListCurrenciesResponse:
        """See the proto."""
        return wire.ListCurrenciesResponse(
            currencies=map(convert.currency_to_wire, self._currencies)
        )

    async def OpenWallet(
        self, request: wire.OpenWalletRequest, context: Any
    ) -> wire.OpenWalletResponse:
        """See the proto."""
        created = await self._store.open_wallet(request.player_id, is_bot=request.is_bot)
        return wire.OpenWalletResponse(created=created)

    async def GetBalances(
        self, request: wire.GetBalancesRequest, context: Any
    ) -> wire.GetBalancesResponse:
        """See the proto."""
        player_id = _asked_player(request.player_id)
        player, balances = await self._store.standing(player_id, convert.time_us(request, "at"))
        return wire.GetBalancesResponse(
            player_id=player_id,
            balances=map(convert.balance_to_wire, balances),
            player=convert.player_to_wire(player, whole=principal.current().kind != "player"),
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
        query = convert.statement(request, _asked_player(request.player_id))
        filters = _filters(request, query.player_id)
        after = pages.after(request.page_token, [int], filters)
        page = await self._store.entries(
            query,
            None if after is None else int(after[0]),
            pages.page_size(request.page_size),
        )
        return wire.ListEntriesResponse(
            entries=map(convert.entry_to_wire, page.entries),
            next_page_token="" if page.rest is None else pages.page_token([page.rest], filters),
            archived_before=(
                None if page.archived_us is None else convert.time_to_wire(page.archived_us)
            ),
        )

    async def ListHolds(
        self, request: wire.ListHoldsRequest, context: Any
    ) -> wire.ListHoldsResponse:
        """See the proto."""
        player_id = _asked_player(request.player_id)
        holds = await self._store.open_holds(player_id)
        return wire.ListHoldsResponse(player_id=player_id, holds=map(hold_to_wire, holds))

    async def GetLeaderboard(
        self, request: wire.GetLeaderboardRequest, context: Any
    ) -> wire.GetLeaderboardResponse:
        """See the proto."""
        since_us, until_us = bounds_us(request.period, self._offset_minutes)
        caller = principal.current()
        own = request.player_id or (caller.id if caller.kind == "player" else "")
        filters = _filters(request)
        after = pages.after(request.page_token, [int, int], filters)
        skip, horizon = (0, None) if after is None else map(int, after)
        board = await self._store.leaderboard(
            LeaderboardQuery(
                request.currency,
                request.book,
                since_us,
                until_us,
                dict(request.labels),
                skip,
                pages.page_size(request.page_size),
                horizon,
                own or None,
                request.neighbours,
            )
        )
        rest = [skip + len(board.places), board.horizon]
        return wire.GetLeaderboardResponse(
            standings=map(convert.place_to_wire, board.places),
            next_page_token=pages.page_token(rest, filters) if board.more else "",
            own=None if board.own is None else convert.place_to_wire(board.own),
            neighbours=map(convert.place_to_wire, board.around),
            closed=board.closed,
            **{
                field: convert.time_to_wire(us)
                for field, us in (("from", since_us), ("until", until_us))
                if us is not None
            },
        )

    async def StreamEntries(
        self, request: wire.StreamEntriesRequest, context: Any
    ) -> AsyncIterator[wire.StreamEntriesResponse]:
        """See the proto."""
        if request.cursor and not _CURSOR.fullmatch(request.cursor):
            raise InvalidCursor(request.cursor)
        number = int(request.cursor or 0)
        told = time.monotonic()
        while True:
            streamed = await self._store.stream(number, STREAM_ENTRIES)
            if streamed:
                number = streamed[-1].number
            entries = [
                convert.streamed_to_wire(one)
                for one in streamed
                if request.currency in ("", one.account.currency)
            ]
            at_end = len(streamed) < STREAM_ENTRIES
            silent = time.monotonic() - told >= STREAM_SIGN_SECONDS
            if entries or silent or (at_end and not request.follow):
                yield wire.StreamEntriesResponse(entries=entries, cursor=str(number))
                told = time.monotonic()
            if at_end and not request.follow:
                return
            if at_end:
                await asyncio.sleep(self._pause_seconds)

    async def FreezePlayer(
        self, request: wire.FreezePlayerRequest, context: Any
    ) -> wire.FreezePlayerResponse:
        """See the proto."""
        done = await self._store.freeze(convert.freeze(request, frozen=True))
        return wire.FreezePlayerResponse(
            player=convert.player_to_wire(done.answer), replayed=done.replayed
        )

    async def UnfreezePlayer(
        self, request: wire.UnfreezePlayerRequest, context: Any
    ) -> wire.UnfreezePlayerResponse:
        """See the proto."""
        done = await self._store.freeze(convert.freeze(request, frozen=False))
        return wire.UnfreezePlayerResponse(
            player=convert.player_to_wire(done.answer), replayed=done.replayed
        )

    async def CollectReceivable(
        self, request: wire.CollectReceivableRequest, context: Any
    ) -> wire.CollectReceivableResponse:
        """See the proto."""
        done = await self._store.collect(convert.collect(request))
        return wire.CollectReceivableResponse(
            owed=done.answer.owed,
            available=done.answer.available,
            time=convert.time_to_wire(done.answer.time_us),
            replayed=done.replayed,
        )

    async def AuditLedger(
        self, request: wire.AuditLedgerRequest, context: Any
    ) -> wire.AuditLedgerResponse:
        """See the proto."""
        return convert.audit_to_wire(await self._store.audit())

    async def VerifyLedger(
        self, request: wire.VerifyLedgerRequest, context: Any
    ) -> wire.VerifyLedgerResponse:
        """See the proto."""
        report = await self._store.verify(request.operations, convert.noted_head(request))
        return convert.chain_to_wire(report)


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


def _filters(request: Message, player_id: str = "") -> object:
    """What a page token is good for: the same request, however many entries it asks for."""
    same = type(request).FromString(request.SerializeToString())
    for field in ("page_token", "page_size"):
        same.ClearField(field)
    return [player_id, same.SerializeToString(deterministic=True).hex()]


async def _watch(store: Store, kit: Kit, metrics: WalletMetrics, seconds: float) -> None:
    """Keep gauges and health up to date."""
    while True:
        try:
            metrics.saw(await store.pulse())
            kit.health(True)
        except WalletUnavailable:
            kit.health(False, "the ledger cannot be reached")
        await asyncio.sleep(seconds)


def open_store(
    settings: WalletSettings,
    currencies: Sequence[Currency],
    on_commit: OnCommit = lambda commit: None,
) -> AbstractAsyncContextManager[Store]:
    """The ledger that the settings name; entering it raises ``BadDatabase``."""
    if settings.is_postgres:
        # Here, and not above: a wallet on SQLite needs nothing of it.
        from fangcheng_wallet.postgres import open_postgres

        return open_postgres(
            settings.database,
            currencies,
            most_items=settings.most_commit_items,
            hold_seconds=settings.hold_seconds,
            on_commit=on_commit,
        )
    return open_sqlite(
        Path(settings.database),
        currencies,
        most_items=settings.most_commit_items,
        hold_seconds=settings.hold_seconds,
        on_commit=on_commit,
    )


@asynccontextmanager
async def open_service(settings: WalletSettings, kit: Kit) -> AsyncIterator[list[Servicer]]:
    """Open the ledger, serve it, and close it when every call has ended."""
    try:
        currencies = load_currencies(settings.currencies)
    except BadCurrencies as error:
        raise StartFailed(str(error)) from error
    metrics = WalletMetrics(kit.registry, [currency.id for currency in currencies])
    async with AsyncExitStack() as stack:
        try:
            store = await stack.enter_async_context(
                open_store(settings, currencies, metrics.committed)
            )
        except BadDatabase as error:
            raise StartFailed(str(error)) from error
        await stack.enter_async_context(
            running(_watch(store, kit, metrics, settings.pulse_seconds))
        )
        yield [
            Servicer(
                wallet_pb2_grpc.add_WalletServiceServicer_to_server,
                Wallet(store, currencies, settings),
                WALLET,
            ),
            Servicer(
                settlement_pb2_grpc.add_SettlementServiceServicer_to_server,
                Settlements(store, metrics),
                SETTLEMENT,
            ),
            Servicer(
                privacy_pb2_grpc.add_PrivacyServiceServicer_to_server,
                Privacy(store, kit.log),
                PRIVACY,
            ),
        ]
