"""The ledger in a SQLite file: WAL, every commit synced, one writer that alone checkpoints.

The writer is a thread. It takes everything that waits, up to a limit, into one transaction, each
item under a savepoint of its own, and answers when the commit is on disk. Reads have connections of
their own, which see the last commit.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from fangcheng_kit import Batcher
from fangcheng_kit.batching import in_thread
from fangcheng_wallet.audit import (
    AccountRow,
    Audit,
    Findings,
    HoldRow,
    OperationRow,
    PostingRow,
    examine,
)
from fangcheng_wallet.canonical import loads
from fangcheng_wallet.errors import UnknownSettlement, UnknownWallet, WalletUnavailable
from fangcheng_wallet.ledger import (
    DEFAULT_CURRENCIES,
    LARGEST,
    AccountKey,
    Balance,
    Command,
    Currency,
    Deposit,
    Done,
    Entry,
    Hold,
    Kind,
    PlaceHolds,
    ReleaseHolds,
    Settle,
    Settled,
    Settlement,
    Withdraw,
)
from fangcheng_wallet.sqlite_writer import BUSY_MS, Journal, OpenWallet, now_us
from fangcheng_wallet.store import OnCommit, Page, Pulse

_READERS = 2
_log = logging.getLogger(__name__)

T = TypeVar("T")


@asynccontextmanager
async def open_sqlite(
    path: Path,
    currencies: Sequence[Currency] = DEFAULT_CURRENCIES,
    *,
    most_items: int = 200,
    clock: Callable[[], int] = now_us,
    on_commit: OnCommit = lambda commit: None,
) -> AsyncIterator[SqliteStore]:
    """Open a ledger file, made where there is none; ``BadDatabase`` where it is of another kind.

    ``most_items``: of one commit. ``clock``: microseconds since 1970.
    """
    writer = ThreadPoolExecutor(1, thread_name_prefix="wallet-writer")
    loop = asyncio.get_running_loop()
    try:
        journal = await loop.run_in_executor(writer, Journal, path, currencies, clock, on_commit)
    except BaseException:
        writer.shutdown(wait=False)
        raise
    store = SqliteStore(path, journal, writer, most_items)
    try:
        yield store
    finally:
        await asyncio.shield(store.close())


class SqliteStore:
    """A ``Store`` in a SQLite file. Made by ``open_sqlite``."""

    def __init__(
        self, path: Path, journal: Journal, writer: ThreadPoolExecutor, most_items: int
    ) -> None:
        self._path = path
        self._journal = journal
        self._writer = writer
        self._batcher: Batcher[Command | OpenWallet, Any] = Batcher(
            in_thread(journal.commit, writer), most_items=most_items
        )
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="wallet-reader")
        self._local = threading.local()
        self._open_readers: list[sqlite3.Connection] = []
        self._closed = False

    async def open_wallet(self, player_id: str) -> bool:
        """Open a wallet; whether this call did, not an earlier one."""
        created: bool = await self._batcher.submit(OpenWallet(player_id))
        return created

    async def deposit(self, command: Deposit) -> Done[Entry]:
        """See ``core.deposit``."""
        done: Done[Entry] = await self._batcher.submit(command)
        return done

    async def withdraw(self, command: Withdraw) -> Done[Entry]:
        """See ``core.withdraw``."""
        done: Done[Entry] = await self._batcher.submit(command)
        return done

    async def place_holds(self, command: PlaceHolds) -> Done[tuple[Hold, ...]]:
        """See ``core.place_holds``."""
        done: Done[tuple[Hold, ...]] = await self._batcher.submit(command)
        return done

    async def release_holds(self, command: ReleaseHolds) -> tuple[Hold, ...]:
        """See ``core.release_holds``."""
        done: Done[tuple[Hold, ...]] = await self._batcher.submit(command)
        return done.answer

    async def settle(self, command: Settle) -> Done[Settlement]:
        """See ``core.settle``."""
        done: Done[Settled] = await self._batcher.submit(command)
        return Done(Settlement(command, done.answer), done.replayed)

    async def settlement(self, key: str) -> Settlement:
        """What was settled under a key; ``UnknownSettlement``."""

        def read(db: sqlite3.Connection) -> Settlement:
            row = db.execute(
                "SELECT body, answer FROM operations WHERE key = ? AND verb = 'settle'", (key,)
            ).fetchone()
            if row is None:
                raise UnknownSettlement(key)
            return Settlement(loads(row[0], Settle), loads(row[1], Settled))

        return await self._read(read)

    async def balances(self, player_id: str) -> Sequence[Balance]:
        """All of a player's balances, by currency and book; ``UnknownWallet``."""

        def read(db: sqlite3.Connection) -> Sequence[Balance]:
            _require_wallet(db, player_id)
            held: dict[tuple[str, str], int] = {}
            for currency, book, balance in db.execute(
                "SELECT currency, book, balance FROM holds JOIN accounts ON accounts.id = account"
                " WHERE player_id = ? AND released_by IS NULL",
                (player_id,),
            ):
                held[currency, book] = held.get((currency, book), 0) + balance
            return [
                Balance(currency, book, balance, held.get((currency, book), 0))
                for currency, book, balance in db.execute(
                    "SELECT currency, book, balance FROM accounts"
                    " WHERE owner = ? AND kind = 'player' ORDER BY currency, book",
                    (player_id,),
                )
            ]

        return await self._read(read)

    async def entries(
        self, player_id: str, currency: str | None, before: int | None, limit: int
    ) -> Page:
        """At most ``limit`` entries of a player, newest first; ``UnknownWallet``."""

        def read(db: sqlite3.Connection) -> Page:
            _require_wallet(db, player_id)
            accounts = db.execute(
                "SELECT id, currency, book FROM accounts WHERE owner = ? AND kind = 'player'"
                " AND currency = COALESCE(?, currency)",
                (player_id, currency),
            ).fetchall()
            rows = list(
                islice(
                    merge(
                        *(
                            _newest(db, number, unit, before, limit + 1)
                            for number, *unit in accounts
                        ),
                        key=lambda row: row[0],
                        reverse=True,
                    ),
                    limit + 1,
                )
            )
            shown = [entry for _, entry in rows[:limit]]
            return Page(shown, rows[limit - 1][0] if len(rows) > limit else None)

        return await self._read(read)

    async def audit(self) -> Audit:
        """Recompute everything from the postings; a damaged file is a finding, no error."""

        def read() -> Audit:
            findings = Findings()
            try:
                db = _connect_reader(self._path)
                try:
                    db.execute("BEGIN")
                    for (problem,) in db.execute("PRAGMA integrity_check(20)"):
                        if problem != "ok":
                            findings.add(f"The database file is damaged: {problem}.")
                    return examine(_Records(db), findings)
                finally:
                    db.close()
            except sqlite3.DatabaseError as error:
                findings.add(f"The database file cannot be read to its end: {error}.")
                return Audit(findings=findings.sentences())

        return await asyncio.to_thread(read)

    async def pulse(self) -> Pulse:
        """Look at sums and holds."""

        def read(db: sqlite3.Connection) -> Pulse:
            # Halves of the numbers are summed: whole ones could overflow 64 bits.
            sums = db.execute(
                "SELECT currency, SUM(balance >> 26), SUM(balance & 0x3ffffff) FROM accounts"
                " GROUP BY currency"
            )
            imbalance = {currency: (high << 26) + low for currency, high, low in sums}
            (count,) = db.execute("SELECT COUNT(*) FROM holds WHERE released_by IS NULL").fetchone()
            return Pulse(imbalance, count)

        return await self._read(read)

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

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            db: sqlite3.Connection | None = getattr(self._local, "db", None)
            if db is None:
                db = self._local.db = _connect_reader(self._path)
                self._open_readers.append(db)
            db.execute("BEGIN")  # one snapshot for all that is read
            try:
                return read(db)
            finally:
                db.execute("ROLLBACK")

        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, run)
        except sqlite3.Error as error:
            _log.error("the ledger cannot be read: %s", error)
            raise WalletUnavailable from error


class _Records:
    """Everything in the file, for the audit."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def accounts(self) -> Iterable[AccountRow]:
        for number, kind, owner, currency, book, *rest in self._db.execute(
            "SELECT id, kind, owner, currency, book, floor, balance, version FROM accounts"
        ):
            yield AccountRow(number, AccountKey(Kind(kind), owner, currency, book), *rest)

    def postings(self) -> Iterable[PostingRow]:
        return map(
            PostingRow._make,
            self._db.execute(
                "SELECT id, account, version, operation, amount, balance_after FROM postings"
                " ORDER BY id"
            ),
        )

    def operations(self) -> Iterable[OperationRow]:
        return map(
            OperationRow._make,
            self._db.execute(
                "SELECT id, verb, key, time_us, body, answer, first_posting, last_posting"
                " FROM operations ORDER BY id"
            ),
        )

    def holds(self) -> Iterable[HoldRow]:
        return map(
            HoldRow._make,
            self._db.execute(
                "SELECT hold_id, account, player_id, amount, placed_by, released_by FROM holds"
            ),
        )


def _require_wallet(db: sqlite3.Connection, player_id: str) -> None:
    found = db.execute("SELECT 1 FROM wallets WHERE player_id = ?", (player_id,)).fetchone()
    if found is None:
        raise UnknownWallet(player_id, "player_id")


def _newest(
    db: sqlite3.Connection, account: int, unit: list[str], before: int | None, limit: int
) -> Iterable[tuple[int, Entry]]:
    """The last entries of one account with their rows' numbers, newest first."""
    rows = db.execute(
        "SELECT postings.id, version, amount, balance_after, reason, reference, memo, time_us"
        " FROM postings JOIN operations ON operations.id = operation"
        " WHERE account = ? AND postings.id < ? ORDER BY postings.id DESC LIMIT ?",
        (account, LARGEST if before is None else before, limit),
    )
    for number, version, *rest in rows.fetchall():
        yield number, Entry(version, unit[0], unit[1], *rest)


def _connect_reader(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        timeout=BUSY_MS / 1_000,
        isolation_level=None,
        check_same_thread=False,  # closed by another thread than the one that reads
    )
    db.execute("PRAGMA query_only = ON")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    return db
