"""Ledgers for the tests: how each storage is opened, and requests that are quick to write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from fangcheng_kit.errors import ServiceError
from fangcheng_wallet.ledger import (
    Currency,
    Deposit,
    Done,
    Hold,
    HoldRequest,
    Party,
    PlaceHolds,
    ReleaseHolds,
    Settle,
    Settlement,
    StatementQuery,
    Transfer,
    Withdraw,
)
from fangcheng_wallet.sqlite import open_sqlite
from fangcheng_wallet.store import Page, Store
from tests.wallet.postgres import open_postgres_in

T = TypeVar("T")

SILVER = Currency("silver")
POINTS = Currency("points", books=True, floor=None)
COINS = Currency("coins", floor=-100, most=1_000)
CURRENCIES = (SILVER, POINTS, COINS)

PLAYERS = ("amy", "bo", "cao", "dan")


class OpenStore(Protocol):
    """Opens a storage in a folder; again in the same folder: the same ledger."""

    def __call__(
        self,
        folder: Path,
        currencies: Sequence[Currency] = CURRENCIES,
        *,
        clock: Callable[[], int] = ...,
        on_commit: Callable[[Any], None] = ...,
    ) -> AbstractAsyncContextManager[Store]: ...


def open_sqlite_in(
    folder: Path, currencies: Sequence[Currency] = CURRENCIES, **options: Any
) -> AbstractAsyncContextManager[Store]:
    return open_sqlite(folder / "wallet.db", currencies, **options)


def open_postgres_of(
    folder: Path, currencies: Sequence[Currency] = CURRENCIES, **options: Any
) -> AbstractAsyncContextManager[Store]:
    return open_postgres_in(folder, currencies, **options)


STORES: dict[str, OpenStore] = {"postgres": open_postgres_of, "sqlite": open_sqlite_in}


def deposit(request_id: str, player: str, amount: int, currency: str = "silver") -> Deposit:
    return Deposit(request_id, player, currency, "book" if currency == "points" else "", amount)


def withdraw(request_id: str, player: str, amount: int, currency: str = "silver") -> Withdraw:
    return Withdraw(request_id, player, currency, "book" if currency == "points" else "", amount)


def silver(payer: int | None, payee: int | None, amount: int, reason: str = "win") -> Transfer:
    return Transfer("silver", "", payer, payee, amount, reason)


def points(payer: int | None, payee: int | None, amount: int, book: str = "book") -> Transfer:
    return Transfer("points", book, payer, payee, amount, "win")


def settle(
    key: str, *transfers: Transfer, holds: Mapping[str, Sequence[str]] | None = None, **labels: str
) -> Settle:
    """A settlement of the four players, amy the dealer."""
    held: Mapping[str, Sequence[str]] = holds or {}
    parties = tuple(Party(player, tuple(held.get(player, ()))) for player in PLAYERS)
    return Settle(key, parties, transfers, labels)


async def open_four(store: Store, silver_each: int = 0) -> None:
    """Open the wallets of the four players."""
    for player in PLAYERS:
        await store.open_wallet(player)
        if silver_each:
            await store.deposit(deposit(f"first of {player}", player, silver_each))


async def hold_each(store: Store, amount: int, request_id: str = "buy-in") -> dict[str, list[str]]:
    """Hold silver of each of the four; the hold ids by player."""
    wanted = tuple(HoldRequest(player, "silver", "", amount) for player in PLAYERS)
    done = await store.place_holds(PlaceHolds(request_id, wanted))
    return {hold.player_id: [hold.hold_id] for hold in done.answer}


async def hold_one(store: Store, request_id: str, player: str, amount: int) -> Hold:
    """Hold silver of one player."""
    wanted = (HoldRequest(player, "silver", "", amount),)
    return (await store.place_holds(PlaceHolds(request_id, wanted))).answer[0]


async def entries(
    store: Store,
    player: str,
    limit: int,
    currency: str | None = None,
    *,
    before: int | None = None,
    **query: Any,
) -> Page:
    """A page of a player's statement."""
    return await store.entries(StatementQuery(player, currency, **query), before, limit)


async def release(store: Store, *hold_ids: str) -> list[int]:
    """Release holds; what each gave back."""
    return [hold.remaining for hold in await store.release_holds(ReleaseHolds(hold_ids))]


async def has(store: Store, player: str, currency: str = "silver") -> tuple[int, int]:
    """What a player has, available and held, in a currency of one book."""
    for balance in await store.balances(player):
        if balance.currency == currency:
            return balance.available, balance.held
    return 0, 0


async def all_have(store: Store) -> list[tuple[int, int]]:
    """The silver of the four."""
    return [await has(store, player) for player in PLAYERS]


async def together(*calls: Awaitable[T]) -> list[T | BaseException]:
    """Start calls in the same turn of the loop, so that they wait together."""
    return list(await asyncio.gather(*calls, return_exceptions=True))


def paid(done: Done[Settlement]) -> list[int]:
    return list(done.answer.outcome.paid)


async def refused(call: Awaitable[object], kind: type[ServiceError]) -> tuple[str, str | None]:
    with pytest.raises(kind) as caught:
        await call
    return caught.value.reason, caught.value.field
