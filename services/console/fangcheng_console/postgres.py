"""The operator log in PostgreSQL, for several consoles on one log."""

from __future__ import annotations

from typing import Any

import asyncpg

from fangcheng_kit import postgres
from fangcheng_kit.postgres import FAILED, connector, numbered, prepared, session

from .migrations import LOG
from .oplog import LogUnavailable, OpLog

_MOST_CONNECTIONS = 4


async def open_postgres(database: str) -> OpLog:
    """Opens `postgresql://user:password@host/name`, its table made where there is none.

    BadDatabase where it cannot be used.
    """
    settings = session("fangcheng-console")
    async with prepared(connector(database, settings), LOG):
        pass
    return OpLog(_PostgresDb(await postgres.pool(database, settings, _MOST_CONNECTIONS)))


class _PostgresDb:
    """See `oplog.Db`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return [tuple(row) for row in await self._pool.fetch(numbered(sql), *values)]
        except (*FAILED, TimeoutError) as error:
            raise LogUnavailable(str(error)) from error

    async def close(self) -> None:
        await self._pool.close()
