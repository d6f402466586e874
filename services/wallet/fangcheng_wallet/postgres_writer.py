"""The writer of a PostgreSQL ledger: what waits is written by one statement and one COMMIT.

The ledger has one end, and whoever writes continues it: the next operation has the next number, or
the database refuses it. So writers take turns, in one process or in several, and nothing is decided
on what another one is about to change.

- A writer that has written last knows how the accounts stand that it has seen. It decides on that
  and writes with a single statement, without having read or locked anything. If another process was
  quicker, its numbers are taken, and the statement is refused as a whole.
- Then, and at the start, it locks the end of the ledger (the row of ``head``), reads what the
  commands name, decides, writes and commits.

Either way the first lock that two writers could both want is the end of the ledger, so there are no
two orders of locks, and waiting for a turn costs little: whoever has it takes everything along that
waits, and nearly every settlement would have to wait for the house anyway.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import asyncpg

from fangcheng_kit.postgres import CONTENDED, GONE, Connect
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
from fangcheng_wallet.chain import Link, LinkedOperation
from fangcheng_wallet.core import Names
from fangcheng_wallet.errors import WalletContended, WalletUnavailable
from fangcheng_wallet.ledger import (
    Account,
    AccountKey,
    Command,
    Done,
    Mask,
    Player,
    Reverse,
)
from fangcheng_wallet.masks import Masked
from fangcheng_wallet.postgres_reads import PLAYERS, written
from fangcheng_wallet.postgres_rows import WRITE, Rows, array
from fangcheng_wallet.rows import HOLDS, hold
from fangcheng_wallet.store import Commit, OnCommit

MOST_TRIES = 6
"""Of one batch. The pauses between them grow to about a second in all."""

_MOST_KNOWN = 200_000
"""Players, holds and accounts that are remembered; then it begins anew."""
_MOST_KEYS = 20_000
_MOST_UNLINKED = 10_000
_WARY_BATCHES = 50

_log = logging.getLogger(__name__)

_LINK = """
INSERT INTO links
SELECT operation, decode(digests, 'hex'), decode(head, 'hex')
FROM unnest($1::text::bigint[], $2::text::text[], $3::text::text[])
    AS one (operation, digests, head)
WHERE operation > (SELECT coalesce(max(operation), 0) FROM links)
"""


@dataclass(slots=True)
class _Memory:
    """What a writer knows of the ledger, as of the last operation it has written, or is writing."""

    ledger: Ledger = field(default_factory=Ledger)
    numbers: dict[AccountKey, int] = field(default_factory=dict)
    """Rows of accounts. An account that is in the ledger and not here has none yet."""
    head: Head = field(default_factory=Head)
    last_account: int = 0

    def trim(self) -> bool:
        """Make room; whether it may still be used."""
        ledger = self.ledger
        if len(ledger.operations) > _MOST_KEYS:
            # A key that is forgotten and comes again is found by the database. The last ones may
            # not be there yet.
            for key in list(islice(ledger.operations, _MOST_KEYS // 2)):
                del ledger.operations[key]
        return len(ledger.accounts) + len(ledger.players) + len(ledger.holds) < _MOST_KNOWN


@dataclass(slots=True)
class _Prepared:
    """A batch that was decided on what is known, ahead of the database."""

    memory: _Memory
    before: Head
    batch: Batch
    rows: Rows


class Writer:
    """Writes through one connection, which is made anew when it is lost.

    Two batches may be under way: while the database writes one, the next is decided on the
    assumption that it will be written. If it is not, the next is decided anew.
    """

    def __init__(
        self,
        connect: Connect,
        readers: asyncpg.Pool,
        terms: Terms,
        clock: Callable[[], int],
        on_commit: OnCommit,
    ) -> None:
        self._connect = connect
        self._readers = readers
        self._terms = terms
        self._clock = clock
        self._on_commit = on_commit
        self._db: asyncpg.Connection | None = None
        self._months: set[str] = set()
        self._memory: _Memory | None = None
        self._wary = 0
        """Batches for which keys are looked up beforehand, since one was found used lately."""
        self._preparing = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._unlinked: deque[Step] = deque()

    async def close(self) -> None:
        """Let the connection go."""
        if self._db is not None:
            await self._db.close()
            self._db = None

    async def commit(self, commands: Sequence[Command[Any]]) -> Sequence[Done[Any] | Exception]:
        """Do commands in order in one transaction; an answer or an error for each."""
        began = time.perf_counter()
        postings, failed, expired = 0, False, 0
        outcomes: Sequence[Done[Any] | Exception]
        try:
            batch = await self._do(commands)
            outcomes, postings, expired = batch.outcomes, batch.postings, batch.expired
        except CONTENDED as error:
            _log.error("a commit gave way %s times: %s", MOST_TRIES, error)
            failed, outcomes = True, [WalletContended() for _ in commands]
        except (asyncpg.PostgresError, *GONE) as error:
            if len(commands) > 1 and not isinstance(error, GONE):
                # The database refuses what a decision allowed. The others must not suffer from it.
                _log.error("one of %s items is refused by the database: %s", len(commands), error)
                return [(await self.commit([command]))[0] for command in commands]
            _log.error("a commit failed: %s", error)
            failed, outcomes = True, [WalletUnavailable() for _ in commands]
        seconds = time.perf_counter() - began
        self._on_commit(Commit(len(commands), postings, seconds, failed, expired))
        return outcomes

    async def _do(self, commands: Sequence[Command[Any]]) -> Batch:
        async with self._preparing:
            prepared = await self._prepare(commands)
            # Who prepares first writes first.
            await self._writing.acquire()
        try:
            if prepared is not None and await self._write_prepared(prepared):
                batch = prepared.batch
            else:
                batch = await self._insist(commands)
            self._remember(batch)
            return batch
        finally:
            self._writing.release()

    def _remember(self, batch: Batch) -> None:
        """Keep what the chain has to link: reading it back would cost more than writing it did."""
        self._unlinked.extend(step for step in batch.steps if step.operation is not None)
        if len(self._unlinked) > _MOST_UNLINKED:
            self._unlinked.clear()

    # On what is known.

    async def _prepare(self, commands: Sequence[Command[Any]]) -> _Prepared | None:
        """Decide on what is known, and what can be read beside; ``None``: it must be done anew."""
        memory = self._memory
        if memory is None or not memory.trim():
            return None
        if any(isinstance(command, Reverse | Mask) for command in commands):
            return None  # what it reverses or masks is not known
        try:
            # Nobody but this writer changes what is missing, or its numbers are taken.
            await self._learn(memory, commands)
        except (asyncpg.PostgresError, *GONE) as error:
            _log.warning("nothing can be read ahead: %s", error)
            return None
        if memory is not self._memory:
            return None
        before = memory.head
        time_us = max(before.time_us, self._clock())
        batch = decide_all(commands, memory.ledger, before, self._terms, time_us)
        memory.head = batch.head
        if not _is_one_statement(batch.steps) or await self._was_done(memory, commands, batch):
            self._memory = None
            return None
        rows = Rows(memory.numbers, self._terms, memory.last_account)
        for step in batch.steps:
            rows.add(step)
        memory.last_account = rows.last_account
        return _Prepared(memory, before, batch, rows)

    async def _learn(self, memory: _Memory, commands: Sequence[Command[Any]]) -> None:
        ledger = memory.ledger
        names = names_of(commands)
        # Not with ``-``, which would go through all that is known.
        names.players = {one for one in names.players if one not in ledger.players}
        names.holds = {one for one in names.holds if one not in ledger.holds}
        if self._wary:
            self._wary -= 1
            names.operations = {one for one in names.operations if one not in ledger.operations}
        else:
            names.operations.clear()
        if names.players or names.holds or names.operations:
            async with self._readers.acquire() as db:
                await _read_names(db, ledger, names)
        keys = [key for key in accounts_of(commands, ledger) if key not in ledger.accounts]
        if keys:
            async with self._readers.acquire() as db:
                await _read_accounts(db, memory, keys)

    async def _was_done(
        self, memory: _Memory, commands: Sequence[Command[Any]], batch: Batch
    ) -> bool:
        """Whether something that is refused now was done before under its key.

        What is done again meets its key when it is written; what is refused would never.
        """
        names = Names()
        for command, outcome in zip(commands, batch.outcomes, strict=True):
            if isinstance(outcome, Exception):
                names.add(command)
        known = memory.ledger.operations
        names.operations = {one for one in names.operations if one not in known}
        if not names.operations:
            return False
        kept = Ledger()
        try:
            async with self._readers.acquire() as db:
                await _read_names(db, kept, Names(operations=names.operations))
        except (asyncpg.PostgresError, *GONE) as error:
            _log.warning("nothing can be read ahead: %s", error)
            return True
        return bool(kept.operations)

    async def _write_prepared(self, prepared: _Prepared) -> bool:
        """Write what was prepared; whether that could be done. If not, it surely was not done,
        unless the connection was lost, and the keys find out."""
        if prepared.memory is not self._memory:
            return False
        try:
            db = await self._connected()
            number = prepared.before.operation
            if prepared.batch.head == prepared.before:
                # No number is taken, so none can be taken already: is what was refused, or answered
                # before, still right?
                number = await db.fetchval("SELECT operation FROM head")
            if number == prepared.before.operation:
                if prepared.batch.steps:
                    await self._make_month(db, prepared.batch)
                    await db.execute(WRITE, *prepared.rows.columns(self._clock()))
                return True
        except asyncpg.UniqueViolationError:
            self._wary = _WARY_BATCHES
        except (asyncpg.PostgresError, *GONE) as error:
            _log.warning("a commit is done anew: %s", error)
            if isinstance(error, GONE):
                await self._give_up()
        self._memory = None
        self._unlinked.clear()
        return False

    # Anew.

    async def _insist(self, commands: Sequence[Command[Any]]) -> Batch:
        """Try again where that may help: the keys find out what was done already."""
        attempt = 0
        while True:
            try:
                return await self._begin_anew(commands)
            except (*CONTENDED, *GONE) as error:
                _log.warning("a commit is tried again: %s", error)
                await self._give_up()
                attempt += 1
                if attempt == MOST_TRIES:
                    raise
                await asyncio.sleep(0.02 * 2**attempt)

    async def _begin_anew(self, commands: Sequence[Command[Any]]) -> Batch:
        self._memory = None
        db = await self._connected()
        try:
            await db.execute("BEGIN; SELECT FROM head FOR UPDATE")
            memory = _Memory()
            row = await db.fetchrow(
                "SELECT operation, posting, time_us, (SELECT coalesce(max(id), 0) FROM accounts)"
                " FROM head"
            )
            memory.head, memory.last_account = Head(*row[:3]), row[3]
            await _read_names(db, memory.ledger, names_of(commands))
            await _read_accounts(db, memory, accounts_of(commands, memory.ledger))
            time_us = max(memory.head.time_us, self._clock())
            batch = decide_all(commands, memory.ledger, memory.head, self._terms, time_us)
            await self._make_month(db, batch)
            for chunk in _statements(batch.steps):
                rows = Rows(memory.numbers, self._terms, memory.last_account)
                for step in chunk:
                    rows.add(step)
                memory.last_account = rows.last_account
                await db.execute(WRITE, *rows.columns(self._clock()))
                for masked in (one for step in chunk for one in step.masked):
                    await _mask(db, masked)
            await db.execute("COMMIT")
        except asyncpg.PostgresError:
            if not db.is_closed():
                await db.execute("ROLLBACK")
            self._months.clear()
            raise
        memory.head = batch.head
        self._memory = memory
        return batch

    async def _make_month(self, db: asyncpg.Connection, batch: Batch) -> None:
        """Make the partition that a batch falls into, if it is not there."""
        if not batch.postings:
            return
        month, first_us, next_us = month_of(batch.head.time_us)
        if month not in self._months:
            await db.execute(
                f"CREATE TABLE IF NOT EXISTS postings_{month} PARTITION OF postings"
                f" FOR VALUES FROM ({first_us}) TO ({next_us})"
            )
            self._months.add(month)

    async def _connected(self) -> asyncpg.Connection:
        if self._db is None or self._db.is_closed():
            self._db = await self._connect()
        return self._db

    async def _give_up(self) -> None:
        """Let a connection go that may be in any state."""
        db, self._db = self._db, None
        if db is not None:
            db.terminate()

    # The chain.

    def unlinked(self, after: int, limit: int) -> list[LinkedOperation]:
        """Operations that follow this one, up to the first that was not lately written here."""
        while self._unlinked and _number(self._unlinked[0]) <= after:
            self._unlinked.popleft()
        steps: list[Step] = []
        while (
            len(steps) < limit
            and self._unlinked
            and _number(self._unlinked[0]) == after + 1 + len(steps)
        ):
            steps.append(self._unlinked.popleft())
        return list(map(_linked, steps))


async def add_links(db: asyncpg.Connection, links: Sequence[Link]) -> None:
    """Write links of the chain; another process may have been quicker, and its are the same."""
    await db.execute(
        _LINK,
        array(link.operation for link in links),
        array(link.digests.hex() for link in links),
        array(link.head.hex() for link in links),
    )


def _number(step: Step) -> int:
    return step.operation.number if step.operation else 0


def _linked(step: Step) -> LinkedOperation:
    one = step.operation
    assert one is not None  # noqa: S101 # nosec B101 # only such are kept
    return LinkedOperation(
        *(one.number, one.verb, one.key, one.time_us, one.body, one.answer),
        postings=[
            (number, *posting.account, *posting[1:], one.time_us)
            for number, posting in enumerate(step.postings, one.first_posting)
        ],
    )


def _is_one_statement(steps: Sequence[Step]) -> bool:
    """Whether no row is made and changed: one statement cannot do both."""
    made: set[str] = set()
    for step in steps:
        made.update(placed.hold_id for placed in step.placed)
        if step.opened is not None:
            made.add(step.opened.player_id)
        if any(changed.hold_id in made for changed in step.changed):
            return False
        if step.player is not None and step.player.player_id in made:
            return False
    return True


def _statements(steps: Sequence[Step]) -> Iterable[Sequence[Step]]:
    """The steps of each statement."""
    if _is_one_statement(steps):
        return [steps] if steps else []
    return [[step] for step in steps]


async def _read_names(db: asyncpg.Connection, ledger: Ledger, names: Names) -> None:
    owners: set[str] = set()
    if names.holds:
        for row in await db.fetch(
            HOLDS + " WHERE hold_id = ANY($1::text::text[])", array(names.holds)
        ):
            found = hold(row)
            ledger.holds[found.hold_id] = found
            owners.add(found.player_id)
    # Whoever has a hold may be asked to put more into it.
    players = names.players | owners
    # What is known may be newer than what can be read.
    players = {one for one in players if one not in ledger.players}
    if players:
        for row in await db.fetch(
            PLAYERS + " WHERE player_id = ANY($1::text::text[])", array(players)
        ):
            ledger.players[row[0]] = Player(*row)
    if names.operations:
        verbs, keys = zip(*names.operations, strict=True)
        for verb, key, body, answer in await db.fetch(
            "SELECT verb, key, body, answer"
            " FROM unnest($1::text::text[], $2::text::text[]) AS one (verb, key)"
            " JOIN operations USING (verb, key)",
            array(verbs),
            array(keys),
        ):
            ledger.operations[verb, key] = Kept(body, answer)
    for one in await written(db, names.written):
        ledger.numbered[one.number] = one


async def _mask(db: asyncpg.Connection, masked: Masked) -> None:
    """Take texts and labels out of an operation; nothing else may change, and see the triggers."""
    await db.execute(
        "INSERT INTO erased VALUES ($1, $2) ON CONFLICT DO NOTHING", masked.number, masked.own
    )
    await db.execute(
        "UPDATE operations SET body = $2, answer = $3, labels = $4::jsonb WHERE id = $1",
        masked.number,
        masked.body,
        masked.answer,
        json.dumps(masked.labels) if masked.labels else None,
    )
    await db.execute(
        "UPDATE postings SET memo = '' FROM operations WHERE operations.id = $1"
        " AND postings.id = ANY($2::bigint[]) AND postings.time_us = operations.time_us",
        masked.number,
        list(masked.memos),
    )


async def _read_accounts(
    db: asyncpg.Connection, memory: _Memory, keys: Iterable[AccountKey]
) -> None:
    wanted = list(keys)
    if not wanted:
        return
    kinds, owners, currencies, books = zip(*wanted, strict=True)
    memory.ledger.accounts.update(dict.fromkeys(wanted, Account()))
    for number, place, balance, version in await db.fetch(
        "SELECT id, place, balance, version FROM unnest("
        "$1::text::text[], $2::text::text[], $3::text::text[], $4::text::text[]"
        ") WITH ORDINALITY AS one (kind, owner, currency, book, place)"
        " JOIN accounts USING (owner, kind, currency, book)",
        *map(array, (kinds, owners, currencies, books)),
    ):
        key = wanted[place - 1]
        memory.numbers[key] = number
        memory.ledger.accounts[key] = Account(balance, version)


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
