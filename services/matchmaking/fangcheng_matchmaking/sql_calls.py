"""How every store in SQL is called: one thread, which takes turns with other processes.

All calls go through the thread. What waits there is done in one transaction with one COMMIT, each
call in a savepoint of its own, so that a refused call takes nothing with it and many calls share
the price of the disk. A transaction that writes begins with a lock that all processes share: they
write one after the other, so that changes are numbered in the order in which they can be seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from fangcheng_kit.batching import Batcher, in_thread

from .records import Db
from .store import (
    StoreUnavailable,
)

T = TypeVar("T")

_LARGEST_BATCH = 256


@dataclass(frozen=True, slots=True)
class _Call:
    do: Callable[[Db], Any]
    writes: bool


class SqlCalls:
    """Calls to a database; `close` it at the end."""

    def __init__(self, db: Db, thread: ThreadPoolExecutor) -> None:
        """`db` was opened in the thread, and is used there alone."""
        self._db = db
        self._thread = thread
        self._calls: Batcher[_Call, Any] = Batcher(
            in_thread(self._commit_together, thread), most_items=_LARGEST_BATCH
        )

    async def close(self) -> None:
        """Waits for what was begun and closes the database."""
        await self._calls.close()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._db.close)
        self._thread.shutdown()

    async def _wipe(self) -> None:
        """See `records.Db`."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._db.wipe)

    async def _read(self, call: Callable[[Db], T]) -> T:
        result: T = await self._calls.submit(_Call(call, writes=False))
        return result

    async def _write(self, call: Callable[[Db], T]) -> T:
        result: T = await self._calls.submit(_Call(call, writes=True))
        return result

    def _commit_together(self, calls: Sequence[_Call]) -> list[Any]:
        answers: list[Any] = []
        db = self._db
        try:
            db.begin(writes=any(call.writes for call in calls))
            for call in calls:
                db.rows("SAVEPOINT before_call")
                try:
                    answers.append(call.do(db))
                except StoreUnavailable:
                    raise
                except Exception as error:  # that call's own; the others go on
                    db.rows("ROLLBACK TO SAVEPOINT before_call")
                    answers.append(error)
                db.rows("RELEASE SAVEPOINT before_call")
            db.commit()
        except BaseException:
            db.rollback()
            raise
        return answers
