"""Ledgers in PostgreSQL, a database for each folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fangcheng_wallet.ledger import Currency
from fangcheng_wallet.migrations import LEDGER
from fangcheng_wallet.postgres import open_postgres
from fangcheng_wallet.store import Store
from tests import postgres


async def database_of(folder: Path) -> str:
    """The ledger's database of a folder, made where there is none; its address."""
    return await postgres.database_of(folder, LEDGER)


@asynccontextmanager
async def open_postgres_in(
    folder: Path, currencies: Sequence[Currency], **options: Any
) -> AsyncIterator[Store]:
    """The ledger of a folder."""
    address = await database_of(folder)
    async with open_postgres(address, currencies, **options) as store:
        yield store
