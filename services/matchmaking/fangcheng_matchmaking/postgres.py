"""The store in PostgreSQL, for production: any number of replicas on one database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import asyncpg

from fangcheng_kit.postgres import CONTENDED, GONE, connector, numbered, prepared, session

from .migrations import QUEUES
from .sql import SqlStore
from .store import StoreUnavailable

T = TypeVar("T")


async def open_postgres(database: str) -> SqlStore:
    """Opens `postgresql://user:password@host/name`, its tables made where there are none.

    BadDatabase where it cannot be used.
    """
    connect = connector(database, session("fangcheng-matchmaking"))
    async with prepared(connect, QUEUES):
        pass
    thread = ThreadPoolExecutor(1, thread_name_prefix="matchmaking-store")
    db = await asyncio.get_running_loop().run_in_executor(thread, _PostgresDb, database)
    return SqlStore(db, thread)


class _PostgresDb:
    """See `sql.Db`. Its connection lives in the loop of its thread, and is made anew when lost."""

    def __init__(self, database: str) -> None:
        self._connect = connector(database, session("fangcheng-matchmaking"))
        self._loop = asyncio.new_event_loop()
        self._db: asyncpg.Connection | None = None

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._do(self._fetch(sql, values))]

    def begin(self, *, writes: bool) -> None:
        if self._db is None or self._db.is_closed():
            # Here alone: a transaction that lost its connection must not go on with another.
            self._db = self._do(self._connect())
        self.rows("BEGIN")
        if writes:
            self.rows("SELECT id FROM heads FOR UPDATE")

    def commit(self) -> None:
        self.rows("COMMIT")

    def rollback(self) -> None:
        # A connection of which nobody knows how its transaction stands is not used again.
        self._drop()

    def wipe(self) -> None:
        """Old rows are the server's to take away, by its VACUUM."""

    def now_ms(self) -> int:
        ((now,),) = self.rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        return int(now)

    def close(self) -> None:
        if self._db is not None:
            with suppress(*GONE, TimeoutError):
                self._loop.run_until_complete(self._db.close(timeout=2))
        self._loop.close()

    async def _fetch(self, sql: str, values: tuple[object, ...]) -> list[Any]:
        assert self._db is not None  # noqa: S101 # nosec B101 # `begin` has made it
        rows: list[Any] = await self._db.fetch(numbered(sql), *values)
        return rows

    def _do(self, work: Awaitable[T]) -> T:
        try:
            return self._loop.run_until_complete(work)
        except (asyncpg.PostgresError, *GONE, *CONTENDED) as error:
            raise StoreUnavailable from error

    def _drop(self) -> None:
        if self._db is not None:
            self._db.terminate()
            self._db = None
