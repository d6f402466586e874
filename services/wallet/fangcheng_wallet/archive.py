"""The postings of a month that is over, moved out of a PostgreSQL ledger into a file.

What stays is how every account stood at the end of the month, and the head of the chain: the audit
and the chain go on from there. Operations stay too, so a key is good for one body for ever. The
file is gzipped JSON, a line for each posting between a line about the month and one with the
closing balances. Nothing is dropped before the file, read again, was compared with the chain.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import asyncpg

from fangcheng_kit.files import keep
from fangcheng_wallet.chain import DIGEST, digest_of
from fangcheng_wallet.masks import may_lack_memo
from fangcheng_wallet.postgres_reads import archived
from fangcheng_wallet.postgres_writer import month_of

_FORM = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_AT_ONCE = 5_000

_POSTINGS = """
SELECT postings.id, kind, owner, currency, book, postings.version, operation, amount,
    balance_after, reason, reference, memo, time_us
FROM postings JOIN accounts ON accounts.id = account
WHERE postings.id > $1 AND postings.id <= $2 ORDER BY postings.id LIMIT $3
"""

_CLOSING = """
SELECT accounts.id, last.version, last.balance_after FROM accounts
JOIN LATERAL (
    SELECT version, balance_after FROM postings
    WHERE account = accounts.id AND postings.id <= $1 ORDER BY postings.id DESC LIMIT 1
) AS last ON true
"""


_DIGESTS = """
SELECT operation, verb, first_posting, digests, erased.operation IS NOT NULL AS is_erased
FROM links JOIN operations ON id = operation LEFT JOIN erased USING (operation)
WHERE operation BETWEEN $1 AND $2
"""

OnProgress = Callable[[str, int, int], None]
"""What is being done, to how many entries, and of how many."""


class ArchiveFailed(Exception):
    """A month was not archived; nothing has changed, and no file is left."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A month that was archived."""

    month: str
    postings: int
    last_operation: int
    last_posting: int
    head: str
    """Of the chain, after the last operation of the month, in hex."""


async def archive(
    database: str,
    month: str,
    target: Path,
    on_progress: OnProgress = lambda what, done, total: None,
) -> Archive:
    """Move the postings of a month (``2026-01``, UTC) to a file that is not there yet.

    Nothing is written to the ledger meanwhile; callers wait, and then go on. The months before must
    have been archived, the month must be over, and the chain must have come to its end.
    Raises ``ArchiveFailed``.
    """
    form = _FORM.fullmatch(month)
    if form is None or not 1 <= int(form[2]) <= 12:
        raise ArchiveFailed(f"{month} is no month, such as 2026-01")
    fresh = target.with_name(target.name + ".part")
    if await asyncio.to_thread(target.exists):
        raise ArchiveFailed(f"{target} is there already")
    try:
        db = await asyncpg.connect(database)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError) as error:
        raise ArchiveFailed(f"the database cannot be used: {error}") from None
    try:
        async with db.transaction():
            # Nobody writes until the month is gone.
            await db.execute("SELECT FROM head FOR UPDATE")
            done, closing, until_us = await _close(db, month, int(form[1]), int(form[2]))
            await _write(db, fresh, done, closing, on_progress)
            await _verify(db, fresh, done, on_progress)
            await db.execute(
                "INSERT INTO archives VALUES ($1, $2, $3, $4, $5, $6::jsonb)",
                *(month, until_us, done.last_operation, done.last_posting),
                *(bytes.fromhex(done.head), json.dumps(closing)),
            )
            table = f"postings_{month.replace('-', '_')}"
            await db.execute(f"ALTER TABLE postings DETACH PARTITION {table}")
            await db.execute(f"DROP TABLE {table}")
            # The file first: a month may be in both places, never in none.
            await asyncio.to_thread(keep, fresh, target)
    except (asyncpg.PostgresError, OSError) as error:
        raise ArchiveFailed(str(error)) from error
    finally:
        fresh.unlink(missing_ok=True)
        await db.close()
    return done


async def _close(
    db: asyncpg.Connection, month: str, year: int, number: int
) -> tuple[Archive, list[list[int]], int]:
    """What a month comes to; the closing balances, and the first moment after it."""
    middle = datetime(year, number, 15, tzinfo=UTC)
    name, first_us, until_us = month_of(int(middle.timestamp()) * 1_000_000)
    if await db.fetchval("SELECT time_us FROM head") < until_us:
        raise ArchiveFailed(f"{month} is not over, or nothing was written since")
    if await db.fetchval("SELECT to_regclass($1)", f"postings_{name}") is None:
        raise ArchiveFailed(f"there is nothing of {month}")
    if await db.fetchval("SELECT EXISTS (SELECT FROM postings WHERE time_us < $1)", first_us):
        raise ArchiveFailed(f"the months before {month} come first")
    last_operation, last_posting = await db.fetchrow(
        "SELECT id, last_posting FROM operations WHERE time_us < $1 ORDER BY id DESC LIMIT 1",
        until_us,
    )
    head = await db.fetchval("SELECT head FROM links WHERE operation = $1", last_operation)
    if head is None:
        raise ArchiveFailed(f"the chain has not come to the end of {month} yet")
    before = await archived(db)
    closing: dict[int, list[int]] = {}
    if before is not None:
        text = await db.fetchval("SELECT closing FROM archives ORDER BY until_us DESC LIMIT 1")
        closing = {row[0]: row for row in json.loads(text)}
    closing |= {row[0]: list(row) for row in await db.fetch(_CLOSING, last_posting)}
    count = await db.fetchval(f"SELECT count(*) FROM postings_{name}")  # noqa: S608 # nosec B608 # digits
    done = Archive(month, count, last_operation, last_posting, head.hex())
    return done, sorted(closing.values()), until_us


async def _write(
    db: asyncpg.Connection,
    fresh: Path,
    done: Archive,
    closing: Iterable[list[int]],
    on_progress: OnProgress,
) -> None:
    with gzip.open(fresh, "wt", encoding="utf-8") as file:
        file.write(json.dumps(asdict(done)) + "\n")
        after = first = done.last_posting - done.postings
        # No cursor: the table could not be dropped beside it.
        while rows := await db.fetch(_POSTINGS, after, done.last_posting, _AT_ONCE):
            file.writelines(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)
            after = rows[-1]["id"]
            on_progress("written", after - first, done.postings)
        file.write(json.dumps({"closing": list(closing)}) + "\n")


async def _verify(
    db: asyncpg.Connection, fresh: Path, done: Archive, on_progress: OnProgress
) -> None:
    """Compare what the file says with the chain of hashes."""
    number = first = done.last_posting - done.postings
    with gzip.open(fresh, "rt", encoding="utf-8") as file:
        next(file)
        while number < done.last_posting:
            wanted = min(_AT_ONCE, done.last_posting - number)
            postings = list(map(json.loads, islice(file, wanted)))
            operations = [one.get("operation", 0) for one in postings]
            rows = await db.fetch(_DIGESTS, min(operations), max(operations))
            links = {row["operation"]: row for row in rows}
            for one, operation in zip(postings, operations, strict=True):
                number += 1
                if one.get("id") != number or not _is_linked(one, links.get(operation)):
                    raise ArchiveFailed(
                        f"entry {number} is not what the hash chain says; see `ledger verify`"
                    )
            on_progress("verified", number - first, done.postings)


def _is_linked(posting: dict[str, Any], link: asyncpg.Record | None) -> bool:
    if link is None:
        return False
    at = (posting["id"] - link["first_posting"]) * DIGEST
    # The columns of the file are those that the chain covers, and the operation.
    covered = [value for name, value in posting.items() if name != "operation"]
    if link["is_erased"] and may_lack_memo(link["verb"], covered):
        return True  # what is left of it is compared where the whole chain is
    return bool(link["digests"][at : at + DIGEST] == digest_of(covered))
