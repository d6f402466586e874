"""The store in a SQLite file: every commit synced. Several processes of one host may share it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from fangcheng_kit.sqlite import open_file, wipe

from .migrations import QUEUES
from .sql import SqlStore
from .store import StoreUnavailable


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def open_sqlite(path: Path | str, *, clock: Callable[[], int] = _now_ms) -> SqlStore:
    """Opens the file, creating it where needed; BadDatabase where it is of another kind.

    `clock`: milliseconds since 1970, for the leases.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="matchmaking-store")
    try:
        db = await asyncio.get_running_loop().run_in_executor(thread, _SqliteDb, path, clock)
    except BaseException:
        thread.shutdown()
        raise
    return SqlStore(db, thread)


class _SqliteDb:
    """See `sql.Db`."""

    def __init__(self, path: Path | str, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._db = open_file(Path(path), QUEUES)

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise StoreUnavailable from error

    def begin(self, *, writes: bool) -> None:
        self.rows("BEGIN IMMEDIATE" if writes else "BEGIN")

    def commit(self) -> None:
        self.rows("COMMIT")

    def rollback(self) -> None:
        if self._db.in_transaction:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")

    def wipe(self) -> None:
        try:
            wipe(self._db)
        except sqlite3.Error as error:
            raise StoreUnavailable from error

    def now_ms(self) -> int:
        return self._clock()

    def close(self) -> None:
        self._db.close()
