"""The ledger in a SQLite file: WAL, every commit synced, one writer that alone checkpoints.

The writer is a thread. It takes everything that waits, up to a limit, into one transaction, and
answers when the commit is on disk. Reads have connections of their own, which see the last commit.
No other process may have the file open to write.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from fangcheng_kit import Batcher
from fangcheng_kit.batching import in_thread
from fangcheng_kit.ids import new_id
from fangcheng_kit.sqlite import open_reader
from fangcheng_wallet import sqlite_reads as reads
from fangcheng_wallet.audit import Audit, Findings, examine
from fangcheng_wallet.batch import Terms
from fangcheng_wallet.chain import Link, extend, verify
from fangcheng_wallet.desk import DAY_SECONDS
from fangcheng_wallet.erasing import Erasing
from fangcheng_wallet.errors import WalletUnavailable
from fangcheng_wallet.keeper import kept
from fangcheng_wallet.ledger import (
    DEFAULT_CURRENCIES,
    Command,
    Currency,
    Done,
)
from fangcheng_wallet.sqlite_writer import Journal, now_us
from fangcheng_wallet.store import ChainReport, OnCommit

_READERS = 2
_log = logging.getLogger(__name__)

T = TypeVar("T")


@asynccontextmanager
async def open_sqlite(
    path: Path,
    currencies: Sequence[Currency] = DEFAULT_CURRENCIES,
    *,
    most_items: int = 200,
    hold_seconds: int = DAY_SECONDS,
    clock: Callable[[], int] = now_us,
    on_commit: OnCommit = lambda commit: None,
) -> AsyncIterator[SqliteStore]:
    """Open a ledger file, made where there is none; ``BadDatabase`` where it is of another kind.

    ``most_items``: of one commit. ``hold_seconds``: how long a hold lives that is placed without a
    lifetime. ``clock``: microseconds since 1970.
    """
    writer = ThreadPoolExecutor(1, thread_name_prefix="wallet-writer")
    loop = asyncio.get_running_loop()
    terms = Terms({currency.id: currency for currency in currencies}, hold_seconds, new_id)
    try:
        journal = await loop.run_in_executor(writer, Journal, path, terms, clock, on_commit)
    except BaseException:
        writer.shutdown(wait=False)
        raise
    store = SqliteStore(path, journal, writer, most_items, terms, clock)
    try:
        async with kept(store):
            yield store
    finally:
        await asyncio.shield(store.close())


class SqliteStore(Erasing):
    """A ``Store`` in a SQLite file. Made by ``open_sqlite``."""

    reads: ClassVar[Any] = reads

    def __init__(
        self,
        path: Path,
        journal: Journal,
        writer: ThreadPoolExecutor,
        most_items: int,
        terms: Terms,
        clock: Callable[[], int],
    ) -> None:
        self._path = path
        self._journal = journal
        self._writer = writer
        super().__init__(terms.currencies)
        self._clock = clock
        self._batcher: Batcher[Command[Any] | Sequence[Link], Any] = Batcher(
            in_thread(journal.commit, writer), most_items=most_items
        )
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="wallet-reader")
        self._local = threading.local()
        self._open_readers: list[sqlite3.Connection] = []
        self._closed = False
        self._linking = asyncio.Lock()

    async def do(self, command: Command[Any]) -> Done[Any]:
        """Have a command done; the answer of its decision."""
        done: Done[Any] = await self._batcher.submit(command)
        return done

    async def audit(self) -> Audit:
        """See ``store.Store``."""

        def read() -> Audit:
            findings = Findings()
            try:
                with closing(open_reader(self._path)) as db:
                    db.execute("BEGIN")
                    for (problem,) in db.execute("PRAGMA integrity_check(20)"):
                        if problem != "ok":
                            findings.add(f"The database file is damaged: {problem}.")
                    return examine(reads.Records(db), findings)
            except sqlite3.DatabaseError as error:
                findings.add(f"The database file cannot be read to its end: {error}.")
                return Audit(findings=findings.sentences())

        return await asyncio.to_thread(read)

    async def verify(self, operations: int = 0, head: str = "") -> ChainReport:
        """See ``store.Store``."""
        noted = (operations, bytes.fromhex(head)) if operations else None

        def read() -> ChainReport:
            with closing(open_reader(self._path)) as db:
                db.execute("BEGIN")
                waiting = reads.last_operation(db)[0] - reads.last_link(db)[0]
                return verify(
                    reads.linked(db),
                    noted=noted,
                    unchained=waiting,
                    masks=reads.masks_waiting(db),
                )

        try:
            return await asyncio.to_thread(read)
        except sqlite3.Error as error:
            _log.error("the ledger cannot be read: %s", error)
            raise WalletUnavailable from error

    async def due_holds(self, limit: int) -> Sequence[str]:
        """See ``keeper.Kept``."""
        due: Sequence[str] = await self.read(reads.due_holds, self._clock(), limit)
        return due

    async def link(self, limit: int) -> int:
        """See ``keeper.Kept``."""
        # One after the other: of two that began at the same end the second would fail its batch.
        async with self._linking:
            head, operations = await self.read(reads.unlinked, limit)
            if operations:
                links = await asyncio.to_thread(extend, head, operations)
                await self._batcher.submit(links)
            return len(operations)

    async def wipe(self) -> None:
        """See ``erasing.Erasing``."""
        try:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._writer, self._journal.wipe)
        except sqlite3.Error as error:
            _log.error("the ledger cannot be written anew: %s", error)
            raise WalletUnavailable from error

    async def close(self) -> None:
        """Finish what waits, and let the file go."""
        if self._closed:
            return
        self._closed = True
        await self._batcher.close()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._readers.shutdown)
        for reader in self._open_readers:
            reader.close()
        await loop.run_in_executor(self._writer, self._journal.close)
        self._writer.shutdown(wait=False)

    async def read(self, function: Callable[..., T], *wanted: Any) -> T:
        """See ``reading.Reading``."""

        def run() -> T:
            db: sqlite3.Connection | None = getattr(self._local, "db", None)
            if db is None:
                db = self._local.db = open_reader(self._path)
                self._open_readers.append(db)
            db.execute("BEGIN")  # one snapshot for all that is read
            try:
                return function(db, *wanted)
            finally:
                db.execute("ROLLBACK")

        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, run)
        except sqlite3.Error as error:
            _log.error("the ledger cannot be read: %s", error)
            raise WalletUnavailable from error
