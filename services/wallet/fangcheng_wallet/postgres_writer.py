"""The writer of a PostgreSQL ledger: what waits is written by one statement and one COMMIT.

Every writer locks the end of the ledger (the row of ``head``) before it reads anything, so writers
take turns, in one process or in several: nobody decides on what another one is about to change,
operations and postings are numbered in the order of their commits, and there are no two locks that
could be taken in different orders. Waiting for a turn costs little, since whoever has it takes
everything along that waits, and nearly every settlement would have to wait for the house anyway.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import asyncpg
import msgspec

from fangcheng_wallet import core
from fangcheng_wallet.batch import (
    Batch,
    Head,
    Kept,
    Ledger,
    Step,
    Terms,
    accounts_of,
    decide_all,
    names_of,
)
from fangcheng_wallet.chain import Link
from fangcheng_wallet.desk import bounds
from fangcheng_wallet.errors import WalletContended, WalletUnavailable
from fangcheng_wallet.ledger import (
    Account,
    AccountKey,
    Command,
    Done,
    Hold,
    HoldState,
    Kind,
    Player,
)
from fangcheng_wallet.store import Commit, OnCommit

MOST_TRIES = 6
"""Of one batch. The pauses between them grow to about a second in all."""

CONTENDED = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
)
"""Others were in the way; surely nothing was done."""

GONE = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    OSError,
)
"""The connection is lost, or there is none to be had; whether a COMMIT was done is not known."""

HOLDS = (
    "SELECT hold_id, holds.player_id, currency, book, amount, balance, state, table_id,"
    " expires_at_us, given_back FROM holds JOIN accounts ON accounts.id = account"
)
PLAYERS = "SELECT player_id, frozen, reason, case_id, changed_us FROM players"

_encode = msgspec.json.Encoder(order="sorted").encode
_log = logging.getLogger(__name__)

_WRITE = """
WITH
opened AS (
    INSERT INTO players (player_id, opened_us) SELECT one, $2 FROM unnest($1::text[]) AS one
),
frozen AS (
    UPDATE players SET frozen = one.frozen, reason = one.reason, case_id = one.case_id,
        changed_us = one.changed_us
    FROM unnest($3::text[], $4::boolean[], $5::text[], $6::text[], $7::bigint[])
        AS one (player_id, frozen, reason, case_id, changed_us)
    WHERE players.player_id = one.player_id
),
accounted AS (
    INSERT INTO accounts (id, kind, owner, player_id, currency, book, floor)
    SELECT * FROM unnest(
        $8::bigint[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[]
    )
),
operated AS (
    INSERT INTO operations SELECT * FROM unnest(
        $15::bigint[], $16::text[], $17::text[], $18::bigint[], $19::text[], $20::text[],
        $21::bigint[], $22::bigint[], $23::jsonb[]
    )
),
placed AS (
    INSERT INTO holds
    SELECT hold_id, account, player_id, amount, state, table_id, expires_at_us, given_back,
        operation, operation
    FROM unnest(
        $24::text[], $25::bigint[], $26::text[], $27::bigint[], $28::text[], $29::text[],
        $30::bigint[], $31::bigint[], $32::bigint[]
    ) AS one (
        hold_id, account, player_id, amount, state, table_id, expires_at_us, given_back, operation
    )
),
changed AS (
    UPDATE holds SET amount = one.amount, state = one.state, table_id = one.table_id,
        expires_at_us = one.expires_at_us, given_back = one.given_back, changed_by = one.operation
    FROM unnest(
        $33::text[], $34::bigint[], $35::text[], $36::text[], $37::bigint[], $38::bigint[],
        $39::bigint[]
    ) AS one (hold_id, amount, state, table_id, expires_at_us, given_back, operation)
    WHERE holds.hold_id = one.hold_id
)
INSERT INTO postings SELECT * FROM unnest(
    $40::bigint[], $41::bigint[], $42::bigint[], $43::bigint[], $44::bigint[], $45::bigint[],
    $46::text[], $47::text[], $48::text[], $49::bigint[]
)
"""


class Writer:
    """Writes through one connection, which is made anew when it is lost."""

    def __init__(
        self,
        connect: Callable[[], Any],
        terms: Terms,
        clock: Callable[[], int],
        on_commit: OnCommit,
    ) -> None:
        self._connect = connect
        self._terms = terms
        self._clock = clock
        self._on_commit = on_commit
        self._db: asyncpg.Connection | None = None
        self._months: set[str] = set()

    async def close(self) -> None:
        """Let the connection go."""
        if self._db is not None:
            await self._db.close()
            self._db = None

    async def commit(self, items: Sequence[Command[Any] | Sequence[Link]]) -> Sequence[Any]:
        """Do items in order in one transaction; an answer or an error for each.

        Links of the chain are no commands, and are answered with ``None``.
        """
        links = [item for item in items if not isinstance(item, Command)]
        commands = [item for item in items if isinstance(item, Command)]
        outcomes = iter(await self._commit(commands, links))
        return [next(outcomes) if isinstance(item, Command) else None for item in items]

    async def _commit(
        self, commands: Sequence[Command[Any]], links: Sequence[Sequence[Link]]
    ) -> Sequence[Done[Any] | Exception]:
        began = time.perf_counter()
        postings, failed = 0, False
        outcomes: Sequence[Done[Any] | Exception]
        try:
            batch = await self._insist(commands, links)
            outcomes, postings = batch.outcomes, batch.postings
        except CONTENDED as error:
            _log.error("a commit gave way %s times: %s", MOST_TRIES, error)
            failed, outcomes = True, [WalletContended() for _ in commands]
        except (asyncpg.PostgresError, *GONE) as error:
            if len(commands) > 1 and isinstance(error, asyncpg.IntegrityConstraintViolationError):
                # The database refuses what a decision allowed. The others must not suffer from it.
                _log.error("one of %s items is refused by the database: %s", len(commands), error)
                return [(await self._commit([command], ()))[0] for command in commands]
            _log.error("a commit failed: %s", error)
            failed, outcomes = True, [WalletUnavailable() for _ in commands]
        if commands:
            seconds = time.perf_counter() - began
            self._on_commit(Commit(len(commands), postings, seconds, failed))
        return outcomes

    async def _insist(
        self, commands: Sequence[Command[Any]], links: Sequence[Sequence[Link]]
    ) -> Batch:
        """Try again where that may help: the keys find out what was done already."""
        for attempt in range(1, MOST_TRIES + 1):
            try:
                return await self._try(commands, links)
            except (*CONTENDED, *GONE) as error:
                _log.warning("a commit is tried again: %s", error)
                await self._give_up()
                if attempt == MOST_TRIES:
                    raise
                await asyncio.sleep(0.02 * 2**attempt)
        raise AssertionError("unreachable")

    async def _try(
        self, commands: Sequence[Command[Any]], links: Sequence[Sequence[Link]]
    ) -> Batch:
        db = self._db
        if db is None:
            db = self._db = await self._connect()
        try:
            await db.execute("BEGIN; SELECT FROM head FOR UPDATE")
            batch = await self._decide(db, commands)
            if batch.steps:
                await self._write(db, batch)
            for link in links:
                await _write_links(db, link)
            await db.execute("COMMIT")
        except asyncpg.PostgresError:
            if not db.is_closed():
                await db.execute("ROLLBACK")
            self._months.clear()
            raise
        return batch

    async def _give_up(self) -> None:
        """Let a connection go that may be in any state."""
        db, self._db = self._db, None
        if db is not None:
            db.terminate()

    async def _decide(self, db: asyncpg.Connection, commands: Sequence[Command[Any]]) -> Batch:
        ledger = Ledger()
        names = names_of(commands)
        operation, posting, last_us = await db.fetchrow(
            "SELECT operation, posting, time_us FROM head"
        )
        await _read_names(db, ledger, names)
        self._numbers = await _read_accounts(db, ledger, accounts_of(commands, ledger))
        time_us = max(last_us, self._clock())
        return decide_all(commands, ledger, Head(operation, posting, last_us), self._terms, time_us)

    async def _write(self, db: asyncpg.Connection, batch: Batch) -> None:
        rows = _Rows(self._numbers, self._terms, await _last_account(db, batch, self._numbers))
        for step in batch.steps:
            rows.add(step)
        if batch.postings:
            await self._make_month(db, batch.head.time_us)
        await db.execute(_WRITE, *rows.columns(self._clock()))

    async def _make_month(self, db: asyncpg.Connection, time_us: int) -> None:
        """Make the partition that a time falls into, if it is not there."""
        month, first_us, next_us = month_of(time_us)
        if month in self._months:
            return
        await db.execute(
            f"CREATE TABLE IF NOT EXISTS postings_{month} PARTITION OF postings"
            f" FOR VALUES FROM ({first_us}) TO ({next_us})"
        )
        self._months.add(month)


class _Rows:
    """What a batch puts on disk, as the columns of ``_WRITE``."""

    def __init__(self, numbers: dict[AccountKey, int], terms: Terms, last_account: int) -> None:
        self._numbers = numbers
        self._terms = terms
        self._last_account = last_account
        self._opened: list[str] = []
        self._frozen: list[tuple[Any, ...]] = []
        self._accounts: list[tuple[Any, ...]] = []
        self._operations: list[tuple[Any, ...]] = []
        self._placed: list[tuple[Any, ...]] = []
        self._changed: dict[str, tuple[Any, ...]] = {}
        self._postings: list[tuple[Any, ...]] = []

    def add(self, step: Step) -> None:
        """Add what one command puts on disk."""
        if step.opened is not None:
            self._opened.append(step.opened)
        one = step.operation
        if one is None:
            return
        players = {hold.account: hold.player_id for hold in step.placed}
        labels = _encode(one.labels).decode() if one.labels else None
        self._operations.append(
            (
                *(one.number, one.verb, one.key, one.time_us, one.body, one.answer),
                *(one.first_posting, one.last_posting, labels),
            )
        )
        number = one.first_posting
        for posting in step.postings:
            account = self._numbers.get(posting.account)
            if account is None:
                account = self._open(posting.account, players)
            self._postings.append(
                (
                    *(number, account, posting.version, one.number, posting.amount),
                    *(posting.balance_after, posting.reason, posting.reference, posting.memo),
                    one.time_us,
                )
            )
            number += 1
        for hold in step.placed:
            self._placed.append(
                (
                    *(hold.hold_id, self._numbers[hold.account], hold.player_id, hold.amount),
                    *(hold.state.value, hold.table_id, hold.expires_at_us, hold.given_back),
                    one.number,
                )
            )
        for hold in step.changed:
            self._changed[hold.hold_id] = (
                *(hold.hold_id, hold.amount, hold.state.value, hold.table_id),
                *(hold.expires_at_us, hold.given_back, one.number),
            )
        if step.player is not None:
            player = step.player
            self._frozen.append(
                (player.player_id, player.frozen, player.reason, player.case_id, player.time_us)
            )

    def _open(self, key: AccountKey, players: Mapping[AccountKey, str]) -> int:
        number = self._last_account = self._last_account + 1
        self._numbers[key] = number
        floor = bounds(key, self._terms.currencies)[0]
        owner = players.get(key, key.owner)
        self._accounts.append(
            (number, key.kind.value, key.owner, owner, key.currency, key.book, floor)
        )
        return number

    def columns(self, opened_us: int) -> Iterable[Any]:
        """The parameters."""
        yield self._opened
        yield opened_us
        # Of a player who is frozen twice the last one counts.
        yield from _columns(list({row[0]: row for row in self._frozen}.values()), 5)
        yield from _columns(self._accounts, 7)
        yield from _columns(self._operations, 9)
        yield from _columns(self._placed, 9)
        yield from _columns(list(self._changed.values()), 7)
        yield from _columns(self._postings, 10)


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> Iterable[Sequence[Any]]:
    return zip(*rows, strict=True) if rows else ((),) * width


async def _read_names(db: asyncpg.Connection, ledger: Ledger, names: core.Names) -> None:
    if names.players:
        for row in await db.fetch(PLAYERS + " WHERE player_id = ANY($1)", list(names.players)):
            ledger.players[row[0]] = Player(*row)
    if names.holds:
        for row in await db.fetch(HOLDS + " WHERE hold_id = ANY($1)", list(names.holds)):
            ledger.holds[row[0]] = hold(row)
    if names.operations:
        verbs, keys = zip(*names.operations, strict=True)
        for verb, key, body, answer in await db.fetch(
            "SELECT verb, key, body, answer FROM unnest($1::text[], $2::text[]) AS one (verb, key)"
            " JOIN operations USING (verb, key)",
            verbs,
            keys,
        ):
            ledger.operations[verb, key] = Kept(body, answer)


async def _read_accounts(
    db: asyncpg.Connection, ledger: Ledger, keys: Iterable[AccountKey]
) -> dict[AccountKey, int]:
    """Put accounts into the ledger; the numbers of their rows."""
    numbers: dict[AccountKey, int] = {}
    wanted = list(keys)
    if not wanted:
        return numbers
    kinds, owners, currencies, books = zip(*wanted, strict=True)
    ledger.accounts.update(dict.fromkeys(wanted, Account()))
    for number, place, balance, version in await db.fetch(
        "SELECT id, place, balance, version"
        " FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])"
        " WITH ORDINALITY AS one (kind, owner, currency, book, place)"
        " JOIN accounts USING (owner, kind, currency, book)",
        *(kinds, owners, currencies, books),
    ):
        key = wanted[place - 1]
        numbers[key] = number
        ledger.accounts[key] = Account(balance, version)
    return numbers


async def _last_account(
    db: asyncpg.Connection, batch: Batch, numbers: Mapping[AccountKey, int]
) -> int:
    """The last account there is, if new ones follow."""
    if all(one.account in numbers for step in batch.steps for one in step.postings):
        return 0
    last: int = await db.fetchval("SELECT coalesce(max(id), 0) FROM accounts")
    return last


async def _write_links(db: asyncpg.Connection, links: Sequence[Link]) -> None:
    # Another process may have been quicker; its links are the same.
    await db.execute(
        "INSERT INTO links SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])"
        " AS one (operation) WHERE operation > (SELECT coalesce(max(operation), 0) FROM links)",
        *zip(*links, strict=True),
    )


def hold(row: Sequence[Any]) -> Hold:
    """A hold from a row of ``HOLDS``."""
    (hold_id, player_id, currency, book, amount, remaining, state, *rest) = row
    return Hold(hold_id, player_id, currency, book, amount, remaining, HoldState(state), *rest)


def month_of(time_us: int) -> tuple[str, int, int]:
    """The month of a time (UTC) as ``2026_01``, its first moment and the first after it."""
    first = datetime.fromtimestamp(time_us / 1_000_000, UTC).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    after = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    return (
        first.strftime("%Y_%m"),
        int(first.timestamp()) * 1_000_000,
        int(after.timestamp()) * 1_000_000,
    )


def floors(terms: Terms) -> Iterable[tuple[str, int]]:
    """The floor of players' accounts in each currency."""
    for currency in terms.currencies:
        yield currency, bounds(AccountKey(Kind.PLAYER, "", currency, ""), terms.currencies)[0]
