"""The ledger in PostgreSQL, for production: any number of wallets on one database.

Writes go through ``postgres_writer``. Reads have connections of their own, and see one snapshot.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, TypeVar

import asyncpg

from fangcheng_kit import Batcher
from fangcheng_kit.ids import new_id
from fangcheng_kit.migrations import BadDatabase
from fangcheng_kit.postgres import GONE, connector, pool, prepared, session
from fangcheng_wallet import postgres_reads as reads
from fangcheng_wallet.audit import (
    AccountRow,
    Audit,
    Findings,
    HoldRow,
    Opening,
    OperationRow,
    PostingRow,
    examine,
)
from fangcheng_wallet.batch import Terms
from fangcheng_wallet.chain import START, Link, Linked, extend, verify
from fangcheng_wallet.desk import DAY_SECONDS
from fangcheng_wallet.erasing import Erasing
from fangcheng_wallet.errors import WalletUnavailable
from fangcheng_wallet.keeper import kept
from fangcheng_wallet.ledger import (
    DEFAULT_CURRENCIES,
    AccountKey,
    Command,
    Currency,
    Done,
    Kind,
)
from fangcheng_wallet.migrations import LEDGER
from fangcheng_wallet.postgres_writer import Writer, add_links
from fangcheng_wallet.rows import with_postings
from fangcheng_wallet.sqlite_writer import now_us
from fangcheng_wallet.store import ChainReport, OnCommit

_READERS = 8
_PULLED = 2_000
_log = logging.getLogger(__name__)

T = TypeVar("T")


@asynccontextmanager
async def open_postgres(
    database: str,
    currencies: Sequence[Currency] = DEFAULT_CURRENCIES,
    *,
    most_items: int = 200,
    hold_seconds: int = DAY_SECONDS,
    clock: Callable[[], int] = now_us,
    on_commit: OnCommit = lambda commit: None,
) -> AsyncIterator[PostgresStore]:
    """Open the ledger in a database, its tables made where there are none; ``BadDatabase``.

    ``database``: ``postgresql://user:password@host/name``. ``most_items``: of one commit.
    ``hold_seconds``: how long a hold lives that is placed without a lifetime. ``clock``:
    microseconds since 1970.
    """
    terms = Terms({currency.id: currency for currency in currencies}, hold_seconds, new_id)

    settings = session("fangcheng-wallet")
    connect = connector(database, settings)
    async with prepared(connect, LEDGER) as db:
        async with db.transaction():
            await _follow_floors(db, terms)
        readers = await pool(database, settings, _READERS, read_only=True)
    store = PostgresStore(
        Writer(connect, readers, terms, clock, on_commit), readers, most_items, terms, clock
    )
    try:
        async with kept(store):
            yield store
    finally:
        await asyncio.shield(store.close())


class PostgresStore(Erasing):
    """A ``Store`` in a PostgreSQL database. Made by ``open_postgres``."""

    reads: ClassVar[Any] = reads

    def __init__(
        self,
        writer: Writer,
        readers: asyncpg.Pool,
        most_items: int,
        terms: Terms,
        clock: Callable[[], int],
    ) -> None:
        self._writer = writer
        self._readers = readers
        super().__init__(terms.currencies)
        self._clock = clock
        # The next batch is decided while the database writes the one before.
        self._batcher: Batcher[Command[Any], Any] = Batcher(
            writer.commit, most_items=most_items, most_running=2, spread=True
        )
        self._last_link: tuple[int, bytes] | None = None
        self._linking = asyncio.Lock()
        self._closed = False

    async def do(self, command: Command[Any]) -> Done[Any]:
        """Have a command done; the answer of its decision."""
        done: Done[Any] = await self._batcher.submit(command)
        return done

    async def audit(self) -> Audit:
        """See ``store.Store``."""
        findings = Findings()

        async def read(db: asyncpg.Connection) -> Audit:
            opening = await _opening(db)
            records = _Records(db, asyncio.get_running_loop(), opening)
            return await asyncio.to_thread(examine, records, findings)

        try:
            return await self.read(read)
        except WalletUnavailable as error:
            if isinstance(error.__cause__, asyncpg.DataError | asyncpg.InternalServerError):
                findings.add(f"The database cannot be read to its end: {error.__cause__}.")
                return Audit(findings=findings.sentences())
            raise

    async def verify(self, operations: int = 0, head: str = "") -> ChainReport:
        """See ``store.Store``."""
        noted = (operations, bytes.fromhex(head)) if operations else None

        async def read(db: asyncpg.Connection) -> ChainReport:
            opening = await reads.archived(db)
            after, start = (0, START) if opening is None else (opening[1], opening[3])
            last, _ = await reads.last_link(db)
            (newest, _) = await reads.last_operation(db)
            masks = await reads.masks_waiting(db)
            chain = _linked(db, asyncio.get_running_loop(), after, last)
            return await asyncio.to_thread(
                lambda: verify(
                    chain,
                    start=start,
                    begins_at=after,
                    noted=noted,
                    unchained=newest - last,
                    masks=masks,
                )
            )

        return await self.read(read)

    async def due_holds(self, limit: int) -> Sequence[str]:
        """See ``keeper.Kept``."""
        due: Sequence[str] = await self.read(reads.due_holds, self._clock(), limit)
        return due

    async def link(self, limit: int) -> int:
        """See ``keeper.Kept``."""
        # One after the other: of two the second would read back what the first is about to link.
        async with self._linking:
            return await self._link(limit)

    async def _link(self, limit: int) -> int:
        if self._last_link is None:
            self._last_link = await self.read(reads.last_link)
        last, head = self._last_link
        operations = self._writer.unlinked(last, limit)
        if not operations:
            head, operations = await self.read(reads.unlinked, limit)
        if not operations:
            return 0
        links = await asyncio.to_thread(extend, head, operations)
        self._last_link = None
        try:
            async with self._readers.acquire() as db, db.transaction():
                await db.execute("SET TRANSACTION READ WRITE")
                await add_links(db, links)
        except asyncpg.UniqueViolationError:
            # Another process was quicker; its links are the same, and there may be more to link.
            return len(operations)
        except (asyncpg.PostgresError, *GONE) as error:
            raise WalletUnavailable from error
        self._last_link = links[-1].operation, links[-1].head
        return len(operations)

    async def wipe(self) -> None:
        """See ``erasing.Erasing``: old rows are the server's to take away, by its VACUUM."""

    async def close(self) -> None:
        """Finish what waits, and let the database go."""
        if self._closed:
            return
        self._closed = True
        await self._batcher.close()
        await self._writer.close()
        await self._readers.close()

    async def read(self, function: Callable[..., Awaitable[T]], *wanted: Any) -> T:
        """See ``reading.Reading``."""
        tries = 0
        while True:
            tries += 1
            try:
                async with (
                    self._readers.acquire() as db,
                    db.transaction(isolation="repeatable_read", readonly=True),
                ):
                    return await function(db, *wanted)
            except (asyncpg.PostgresError, *GONE) as error:
                # Every connection of the pool may be one that was lost meanwhile.
                if isinstance(error, GONE) and tries <= _READERS:
                    continue
                _log.error("the ledger cannot be read: %s", error)
                raise WalletUnavailable from error


async def _follow_floors(db: asyncpg.Connection, terms: Terms) -> None:
    """Put the configured floors on accounts that were opened under others."""
    for currency, floor in terms.floors():
        try:
            await db.execute(
                "UPDATE accounts SET floor = $1"
                " WHERE kind = 'player' AND currency = $2 AND floor <> $1",
                floor,
                currency,
            )
        except asyncpg.CheckViolationError:
            raise BadDatabase(
                f"the floor of {currency} cannot be {floor}: a player has less"
            ) from None


async def _opening(db: asyncpg.Connection) -> Opening:
    archive = await reads.archived(db)
    return Opening() if archive is None else Opening(archive[1], await reads.closing(db))


def _pull(
    db: asyncpg.Connection, loop: asyncio.AbstractEventLoop, sql: str, *wanted: Any
) -> Iterator[asyncpg.Record]:
    """Rows for a thread that reads them one by one, while the loop fetches some at a time."""

    def wait(call: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(call, loop).result()

    async def opened() -> Any:
        return await db.cursor(sql, *wanted)

    cursor = wait(opened())
    while rows := wait(cursor.fetch(_PULLED)):
        yield from rows


def _linked(
    db: asyncpg.Connection, loop: asyncio.AbstractEventLoop, after: int, last: int
) -> Iterator[Linked]:
    """Every link with its operation."""
    operations = with_postings(
        _pull(db, loop, reads.OPERATIONS, after, last),
        map(tuple, _pull(db, loop, reads.POSTINGS, after, last)),
    )
    following = next(operations, None)
    for *row, own in _pull(
        db,
        loop,
        "SELECT operation, digests, head, own FROM links LEFT JOIN erased USING (operation)"
        " WHERE operation > $1 ORDER BY operation",
        after,
    ):
        link = Link(*row)
        if following is not None and following.number == link.operation:
            yield Linked(link, following, own)
            following = next(operations, None)
        else:
            yield Linked(link, None)


class _Records:
    """Everything in the database, for the audit, which reads it in a thread."""

    def __init__(
        self, db: asyncpg.Connection, loop: asyncio.AbstractEventLoop, opening: Opening
    ) -> None:
        self._db = db
        self._loop = loop
        self._opening = opening

    def opening(self) -> Opening:
        return self._opening

    def accounts(self) -> Iterable[AccountRow]:
        for number, kind, owner, currency, book, *rest in self._pull(
            "SELECT id, kind, owner, currency, book, floor, balance, version FROM accounts"
        ):
            yield AccountRow(number, AccountKey(Kind(kind), owner, currency, book), *rest)

    def postings(self) -> Iterable[PostingRow]:
        return map(
            PostingRow._make,
            self._pull(
                "SELECT id, account, version, operation, amount, balance_after FROM postings"
                " ORDER BY id"
            ),
        )

    def operations(self) -> Iterable[OperationRow]:
        return map(
            OperationRow._make,
            self._pull(
                "SELECT id, verb, key, time_us, body, answer, first_posting, last_posting"
                " FROM operations ORDER BY id"
            ),
        )

    def holds(self) -> Iterable[HoldRow]:
        return map(
            HoldRow._make,
            self._pull("SELECT hold_id, account, player_id, amount, state FROM holds"),
        )

    def bots(self) -> Iterable[str]:
        for (player_id,) in self._pull("SELECT player_id FROM players WHERE is_bot"):
            yield player_id

    def _pull(self, sql: str) -> Iterator[asyncpg.Record]:
        return _pull(self._db, self._loop, sql)
