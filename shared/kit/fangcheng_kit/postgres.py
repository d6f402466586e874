"""What every store in PostgreSQL needs: a session, what the server must be set to, its tables.

Needs the extra ``databases``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from itertools import count
from typing import Any

import asyncpg

from fangcheng_kit.migrations import BadDatabase, Migrations

OLDEST_POSTGRES = (15,)

CONTENDED = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
)
"""Others were in the way; surely nothing was done."""

GONE = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a driver that lost its connection in the middle of an answer
    asyncpg.OperatorInterventionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    OSError,
)
"""The connection is lost, or there is none to be had; whether a COMMIT was done is not known."""

FAILED = (asyncpg.PostgresError, *GONE)
"""All that a call to the server may fail with."""

Connect = Callable[[], Awaitable[asyncpg.Connection]]

_MIGRATING = 0x66616E67  # a number of our own among the advisory locks
_DURABLE = {
    "fsync": {"on"},
    "full_page_writes": {"on"},
    "synchronous_commit": {"on", "remote_apply"},
}


def session(name: str) -> dict[str, str]:
    """The settings of a session of ours, ``name`` among the server's processes.

    A COMMIT is on disk when it returns, and nobody waits for ever.
    """
    return {
        "application_name": name,
        "synchronous_commit": "on",
        "lock_timeout": "5s",
        "statement_timeout": "60s",
        "idle_in_transaction_session_timeout": "60s",
        "default_transaction_isolation": "read committed",
    }


def connector(database: str, settings: Mapping[str, str]) -> Connect:
    """Makes connections to a database, ``postgresql://user:password@host/name``."""

    async def connect() -> asyncpg.Connection:
        return await asyncpg.connect(database, server_settings=dict(settings), timeout=10)

    return connect


async def pool(
    database: str, settings: Mapping[str, str], most: int, *, read_only: bool = False
) -> asyncpg.Pool:
    """At most so many connections to a database, made as they are needed."""
    if read_only:
        settings = {**settings, "default_transaction_read_only": "on"}
    return await asyncpg.create_pool(
        database, min_size=1, max_size=most, server_settings=dict(settings), timeout=10
    )


@lru_cache(1_000)
def numbered(sql: str) -> str:
    """A statement with PostgreSQL's parameters, ``$1`` for the first ``?``."""
    number = count(1)
    return "".join(f"${next(number)}" if sign == "?" else sign for sign in sql)


@asynccontextmanager
async def prepared(connect: Connect, migrations: Migrations) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a server that keeps what it commits, with the tables as they must be.

    While the ``async with`` lasts no other process is in one. ``BadDatabase`` for a server that is
    too old or set up to forget, for a database that is another's, and where the server fails to do
    what is asked of it meanwhile.
    """
    try:
        async with _prepared(connect, migrations) as db:
            yield db
    except (*FAILED, ValueError) as error:
        raise BadDatabase(f"the database cannot be used: {error}") from None


async def migrate(database: str, migrations: Migrations) -> None:
    """Make a database's tables, or bring them up to date, as the start of a service would."""
    async with prepared(connector(database, session("fangcheng-migrate")), migrations):
        pass


@asynccontextmanager
async def _prepared(connect: Connect, migrations: Migrations) -> AsyncIterator[asyncpg.Connection]:
    db = await connect()
    try:
        await _check_server(db, migrations)
        await db.execute("SET statement_timeout = 0; SET lock_timeout = 0")
        await db.execute("SELECT pg_advisory_lock($1)", _MIGRATING)
        if await _is_due(db, migrations):
            await upgrade(connect, migrations)
        yield db
    finally:
        await db.close()


async def is_due(database: str, migrations: Migrations) -> bool:
    """Whether a database's tables have to be made or brought up to date; changes nothing.

    ``BadDatabase`` as ``prepared``.
    """
    try:
        db = await connector(database, session("fangcheng-look"))()
        try:
            await _check_server(db, migrations)
            return await _is_due(db, migrations)
        finally:
            await db.close()
    except (*FAILED, ValueError) as error:
        raise BadDatabase(f"the database cannot be used: {error}") from None


async def _check_server(db: asyncpg.Connection, migrations: Migrations) -> None:
    """``BadDatabase`` for a server that is too old, or set up to forget what it has committed."""
    if db.get_server_version() < OLDEST_POSTGRES:
        raise BadDatabase(f"PostgreSQL {OLDEST_POSTGRES[0]} is the oldest that will do")
    for name, enough in _DURABLE.items():
        value = await db.fetchval("SELECT current_setting($1)", name)
        if value not in enough:
            needed = " or ".join(sorted(enough))
            raise BadDatabase(f"the server has {name} {value}; {migrations.what} needs {needed}")


async def _is_due(db: asyncpg.Connection, migrations: Migrations) -> bool:
    rows = await db.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    tables = {name for (name,) in rows}
    revision = None
    if "alembic_version" in tables:
        revision = await db.fetchval("SELECT version_num FROM alembic_version")
    return migrations.is_due(tables, revision)


async def upgrade(connect: Connect, migrations: Migrations, revision: str = "") -> None:
    """Bring the tables up to a revision; without one, to that which this program needs."""
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    engine: Any = create_async_engine(
        "postgresql+asyncpg://", async_creator=connect, poolclass=NullPool
    )
    async with engine.begin() as connection:
        await connection.run_sync(migrations.upgrade, revision)
    await engine.dispose()
