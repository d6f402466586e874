"""The operator log in an SQLite file: every line synced. One process has it at a time."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fangcheng_kit.sqlite import open_file

from .migrations import LOG
from .oplog import LogUnavailable, OpLog


async def open_sqlite(path: Path | str) -> OpLog:
    """Opens the file, creating it where needed; BadDatabase where it is of another kind."""
    thread = ThreadPoolExecutor(1, thread_name_prefix="operator-log")
    try:
        db = await asyncio.get_running_loop().run_in_executor(thread, open_file, Path(path), LOG)
    except BaseException:
        thread.shutdown()
        raise
    return OpLog(_SqliteDb(db, thread))


class _SqliteDb:
    """See `oplog.Db`."""

    def __init__(self, db: sqlite3.Connection, thread: ThreadPoolExecutor) -> None:
        self._db = db
        self._thread = thread

    async def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._rows, sql, values
        )

    def _rows(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise LogUnavailable(str(error)) from error

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._db.close)
        self._thread.shutdown()
