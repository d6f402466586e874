"""What is read of a PostgreSQL ledger: each function within one snapshot."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from heapq import merge
from itertools import islice
from typing import Any

import asyncpg

from fangcheng_wallet.boards import Boards, Score
from fangcheng_wallet.canonical import loads
from fangcheng_wallet.chain import START, LinkedOperation
from fangcheng_wallet.errors import (
    TimeArchived,
    UnknownHold,
    UnknownSettlement,
    UnknownWallet,
)
from fangcheng_wallet.ledger import (
    Account,
    Balance,
    Entry,
    Hold,
    Leaderboard,
    LeaderboardQuery,
    Player,
    Reversal,
    Settle,
    Settled,
    Settlement,
    StatementQuery,
    StreamedEntry,
)
from fangcheng_wallet.masks import SAYING, Written
from fangcheng_wallet.rows import (
    ALL_HOLDS,
    HOLDS,
    balances_of,
    entry,
    hold,
    mention,
    streamed,
    with_postings,
)
from fangcheng_wallet.store import Page, Pulse, Standing

PLAYERS = "SELECT player_id, frozen, reason, case_id, changed_us, is_bot FROM players"
_LABELS = " AND operations.labels @> ${}::jsonb"


async def settlement(db: asyncpg.Connection, key: str) -> Settlement:
    """See ``store.Store``."""
    rows = await db.fetch(
        "SELECT verb, body, answer FROM operations"
        " WHERE key = $1 AND verb IN ('settle', 'reverse')",
        key,
    )
    found = {verb: (body, answer) for verb, body, answer in rows}
    if "settle" not in found:
        raise UnknownSettlement(key)
    body, answer = found["settle"]
    reversal = loads(found["reverse"][1], Reversal) if "reverse" in found else None
    return Settlement(loads(body, Settle), loads(answer, Settled), reversal)


async def holds(db: asyncpg.Connection, hold_ids: Sequence[str]) -> Sequence[Hold]:
    """See ``store.Store``."""
    rows = await db.fetch(HOLDS + " WHERE hold_id = ANY($1)", list(hold_ids))
    found = {row[0]: hold(row) for row in rows}
    for number, hold_id in enumerate(hold_ids):
        if hold_id not in found:
            raise UnknownHold(hold_id, f"hold_ids[{number}]")
    return [found[hold_id] for hold_id in hold_ids]


async def open_holds(db: asyncpg.Connection, player_id: str) -> Sequence[Hold]:
    """See ``store.Store``."""
    await wallet(db, player_id)
    rows = await db.fetch(
        HOLDS + " WHERE holds.player_id = $1 AND state = 'open' ORDER BY placed_by, accounts.id",
        player_id,
    )
    return list(map(hold, rows))


async def due_holds(db: asyncpg.Connection, time_us: int, limit: int) -> Sequence[str]:
    """Open holds whose time is over, the oldest first."""
    rows = await db.fetch(
        "SELECT hold_id FROM holds WHERE state = 'open' AND expires_at_us <= $1"
        " ORDER BY expires_at_us LIMIT $2",
        time_us,
        limit,
    )
    return [hold_id for (hold_id,) in rows]


async def wallet(db: asyncpg.Connection, player_id: str) -> Player:
    """A player; ``UnknownWallet``."""
    row = await db.fetchrow(PLAYERS + " WHERE player_id = $1", player_id)
    if row is None:
        raise UnknownWallet(player_id, "player_id")
    return Player(*row)


async def standing(db: asyncpg.Connection, player_id: str, at_us: int | None) -> Standing:
    """See ``store.Store``."""
    return Standing(await wallet(db, player_id), await _balances(db, player_id, at_us))


async def _balances(db: asyncpg.Connection, player_id: str, at_us: int | None) -> Sequence[Balance]:
    if at_us is None:
        return balances_of(
            await db.fetch(
                "SELECT kind, currency, book, balance FROM accounts WHERE player_id = $1",
                player_id,
            )
        )
    opening = await archived(db)
    if opening is not None and at_us < opening["until_us"] - 1:
        raise TimeArchived(opening["last_posting"] + 1, "at")
    last = await db.fetchval(
        "SELECT last_posting FROM operations WHERE time_us <= $1 ORDER BY time_us DESC, id DESC"
        " LIMIT 1",
        at_us,
    )
    rows = await db.fetch(
        "SELECT accounts.id, kind, currency, book, had.balance_after FROM accounts"
        " LEFT JOIN LATERAL (SELECT balance_after FROM postings"
        " WHERE account = accounts.id AND postings.id <= $1 ORDER BY postings.id DESC LIMIT 1)"
        " AS had ON true WHERE player_id = $2",
        last or 0,
        player_id,
    )
    before = {} if opening is None else await closing(db)
    return balances_of(
        (kind, currency, book, before[number].balance if balance is None else balance)
        for number, kind, currency, book, balance in rows
        if balance is not None or number in before
    )


async def entries(
    db: asyncpg.Connection, query: StatementQuery, before: int | None, limit: int
) -> Page:
    """See ``store.Store``."""
    await wallet(db, query.player_id)
    accounts = await db.fetch(
        "SELECT id, currency, book FROM accounts WHERE player_id = $1 AND kind = 'player'"
        " AND currency = coalesce($2, currency) AND book = coalesce($3, book)",
        query.player_id,
        query.currency,
        query.book,
    )
    streams = [
        await _newest(db, number, unit, query, before, limit + 1) for number, *unit in accounts
    ]
    newest = merge(*streams, key=lambda row: row[0], reverse=True)
    rows = list(islice(newest, limit + 1))
    shown = [one for _, one in rows[:limit]]
    if len(rows) > limit:
        return Page(shown, rows[limit - 1][0])
    opening = await archived(db)
    if opening is None or (query.since_us or 0) >= opening["until_us"]:
        return Page(shown, None)
    return Page(shown, None, opening["until_us"])


async def _newest(
    db: asyncpg.Connection,
    account: int,
    unit: list[str],
    query: StatementQuery,
    before: int | None,
    limit: int,
) -> list[tuple[int, Entry]]:
    """The last entries of one account with their numbers, newest first."""
    wanted: list[Any] = [account]
    sql = (
        "SELECT postings.id, version, amount, balance_after, reason, reference, memo,"
        " postings.time_us, labels FROM postings JOIN operations ON operations.id = operation"
        " WHERE account = $1"
    )

    def add(condition: str, value: Any) -> None:
        nonlocal sql
        wanted.append(value)
        sql += condition.format(len(wanted))

    if before is not None:
        add(" AND postings.id < ${}", before)
    if query.until_us is not None:
        add(" AND postings.time_us < ${}", query.until_us)
        # Time never goes back, so a time is a number, and numbers have an index.
        add(" AND postings.id < ${}", await _first_posting_at(db, query.until_us))
    if query.since_us is not None:
        add(" AND postings.time_us >= ${}", query.since_us)
        add(" AND postings.id >= ${}", await _first_posting_at(db, query.since_us))
    if query.reasons:
        add(" AND reason = ANY(${})", list(query.reasons))
    if query.reference is not None:
        add(" AND reference = ${}", query.reference)
    if query.labels:
        add(_LABELS, json.dumps(query.labels))
    add(" ORDER BY postings.id DESC LIMIT ${}", limit)
    return [
        (row[0], entry(row[1], unit, row[2:-1], row[-1])) for row in await db.fetch(sql, *wanted)
    ]


async def _first_posting_at(db: asyncpg.Connection, time_us: int) -> int:
    """The first posting that was written at a time or later; what comes next if there is none."""
    number: int = await db.fetchval(
        "SELECT coalesce((SELECT first_posting FROM operations WHERE time_us >= $1"
        " ORDER BY time_us, id LIMIT 1), (SELECT posting + 1 FROM head))",
        time_us,
    )
    return number


async def stream(db: asyncpg.Connection, after: int, limit: int) -> Sequence[StreamedEntry]:
    """See ``store.Store``."""
    opening = await archived(db)
    if opening is not None and after < opening["last_posting"]:
        raise TimeArchived(opening["last_posting"] + 1, "cursor")
    rows = await db.fetch(
        "SELECT postings.id, kind, owner, currency, book, postings.version, amount, balance_after,"
        " reason, reference, memo, postings.time_us, labels, verb, operation"
        " FROM postings JOIN accounts ON accounts.id = account"
        " JOIN operations ON operations.id = operation"
        " WHERE postings.id > $1 AND postings.id <= $2 ORDER BY postings.id",
        after,
        after + limit,
    )
    return list(map(streamed, rows))


async def last_operation(db: asyncpg.Connection, horizon: int | None = None) -> tuple[int, int]:
    """Number and time of the last operation, up to a ``horizon``; 0, 0: there is none."""
    if horizon is None:
        row = await db.fetchrow("SELECT operation, time_us FROM head")
    else:
        row = await db.fetchrow(
            "SELECT id, time_us FROM operations WHERE id <= $1 ORDER BY id DESC LIMIT 1", horizon
        )
    return (0, 0) if row is None else (row[0], row[1])


async def scores(db: asyncpg.Connection, query: LeaderboardQuery, horizon: int) -> list[Score]:
    """What settlements up to an operation have brought each player."""
    opening = await archived(db)
    if opening is not None and (query.since_us is None or query.since_us < opening["until_us"]):
        raise TimeArchived(opening["last_posting"] + 1, "period")
    wanted: list[Any] = [
        *(query.currency, query.book, horizon),
        -1 if query.since_us is None else query.since_us,
        2**63 - 1 if query.until_us is None else query.until_us,
    ]
    counted = (
        "SELECT player_id, verb, sum(amount) AS gain FROM operations"
        " JOIN postings ON postings.operation = operations.id"
        " AND postings.id BETWEEN first_posting AND last_posting"
        " AND postings.time_us = operations.time_us"
        " JOIN accounts ON accounts.id = account"
        " WHERE currency = $1 AND book = $2 AND operations.id <= $3"
        " AND operations.time_us >= $4 AND operations.time_us < $5"
        " AND postings.time_us >= $4 AND postings.time_us < $5"
        " AND verb IN ('settle', 'reverse') AND player_id <> ''"
    )
    if query.labels:
        wanted.append(json.dumps(query.labels))
        counted += _LABELS.format(len(wanted))
    sql = (
        "SELECT player_id, sum(gain), sum(CASE WHEN gain = 0 THEN 0 WHEN verb = 'settle' THEN 1"
        " ELSE -1 END) FROM ("
    )
    rows = await db.fetch(
        sql + counted + " GROUP BY player_id, operations.id, verb) AS one GROUP BY player_id",
        *wanted,
    )
    return [Score(who, int(gain), int(hands)) for who, gain, hands in rows]


async def leaderboard(
    db: asyncpg.Connection, query: LeaderboardQuery, boards: Boards
) -> Leaderboard:
    """See ``store.Store``."""
    asked = boards.ask(query, *await last_operation(db, query.horizon))
    return asked.answer(() if asked.is_kept else await scores(db, query, asked.horizon))


async def pulse(db: asyncpg.Connection) -> Pulse:
    """See ``store.Store``."""
    sums = await db.fetch("SELECT currency, sum(balance) FROM accounts GROUP BY currency")
    count, oldest_us = await db.fetchrow(
        "SELECT count, time_us FROM"
        " (SELECT count(*) AS count, min(placed_by) AS oldest FROM holds WHERE state = 'open')"
        " AS holds LEFT JOIN operations ON id = oldest"
    )
    last, _ = await last_operation(db)
    return Pulse(
        {currency: int(total) for currency, total in sums},
        count,
        last - (await last_link(db))[0],
        oldest_us,
    )


async def last_link(db: asyncpg.Connection) -> tuple[int, bytes]:
    """The last operation that has a link, and its head."""
    row = await db.fetchrow("SELECT operation, head FROM links ORDER BY operation DESC LIMIT 1")
    return (0, START) if row is None else (row[0], row[1])


OPERATIONS = (
    "SELECT id, verb, key, time_us, body, answer FROM operations"
    " WHERE id > $1 AND id <= $2 ORDER BY id"
)
POSTINGS = (
    "SELECT operation, postings.id, kind, owner, currency, book, postings.version, amount,"
    " balance_after, reason, reference, memo, time_us"
    " FROM postings JOIN accounts ON accounts.id = account"
    " WHERE operation > $1 AND operation <= $2"
    " AND postings.id BETWEEN (SELECT min(first_posting) FROM operations WHERE id = $1 + 1)"
    " AND (SELECT max(last_posting) FROM operations WHERE id <= $2) ORDER BY postings.id"
)


_SAYING = """
SELECT id FROM operations
WHERE id > $2 AND id <= $3 AND verb = ANY($5::text[])
    AND (strpos(body, $1) > 0 OR verb = 'reverse' AND EXISTS (
        SELECT FROM operations AS reversed
        WHERE reversed.key = operations.key AND reversed.verb = 'settle'
            AND strpos(reversed.body, $1) > 0
    ))
ORDER BY id LIMIT $4
"""


async def saying(
    db: asyncpg.Connection, player_id: str, after: int, last: int, limit: int
) -> Sequence[int]:
    """Numbers of the operations that may have texts or labels about a player."""
    rows = await db.fetch(
        _SAYING,
        *(mention(player_id), after, last, limit, list(SAYING)),
    )
    return [row[0] for row in rows]


async def notes(
    db: asyncpg.Connection, player_id: str, after: int, limit: int
) -> Sequence[asyncpg.Record]:
    """When a player was frozen or erased: number, verb, time and body."""
    rows: Sequence[asyncpg.Record] = await db.fetch(
        "SELECT id, verb, time_us, body FROM operations WHERE id > $2"
        " AND verb IN ('freeze', 'erase') AND strpos(body, $1) > 0 ORDER BY id LIMIT $3",
        *(mention(player_id), after, limit),
    )
    return rows


async def was_erased(db: asyncpg.Connection, request_id: str) -> bool:
    """Whether an erasure was done under an id."""
    sql = "SELECT EXISTS (SELECT FROM operations WHERE key = $1 AND verb = 'erase')"
    return bool(await db.fetchval(sql, request_id))


async def all_holds(
    db: asyncpg.Connection, player_id: str, after: int, limit: int
) -> Sequence[tuple[int, Hold]]:
    """A player's holds, open or not, each with the number of its account, by it."""
    rows = await db.fetch(
        ALL_HOLDS + " WHERE accounts.player_id = $1 AND kind = 'hold' AND accounts.id > $2"
        " ORDER BY accounts.id LIMIT $3",
        *(player_id, after, limit),
    )
    return [(row[0], hold(row[1:])) for row in map(tuple, rows)]


async def written(db: asyncpg.Connection, numbers: Collection[int]) -> list[Written]:
    """Whole operations."""
    found = []
    for number in sorted(numbers):
        rows = await db.fetch(OPERATIONS, number - 1, number)
        postings = await db.fetch(POSTINGS, number - 1, number)
        labels = await db.fetchval("SELECT labels FROM operations WHERE id = $1", number)
        found += [
            Written(*one[:6], json.loads(labels or "{}"), one.postings)
            for one in with_postings(rows, map(tuple, postings))
        ]
    return found


async def masks_waiting(db: asyncpg.Connection) -> list[str]:
    """Bodies of the operations that mask others and have no link yet."""
    sql = "SELECT body FROM operations WHERE id > $1 AND verb = 'mask' ORDER BY id"
    return [row[0] for row in await db.fetch(sql, (await last_link(db))[0])]


async def unlinked(db: asyncpg.Connection, limit: int) -> tuple[bytes, list[LinkedOperation]]:
    """The last head, and the operations that follow it."""
    last, head = await last_link(db)
    operations = await db.fetch(OPERATIONS, last, last + limit)
    postings = await db.fetch(POSTINGS, last, last + limit) if operations else []
    return head, list(with_postings(operations, map(tuple, postings)))


async def archived(db: asyncpg.Connection) -> asyncpg.Record | None:
    """The last archive; ``None``: nothing was archived."""
    return await db.fetchrow(
        "SELECT until_us, last_operation, last_posting, head FROM archives"
        " ORDER BY until_us DESC LIMIT 1"
    )


async def closing(db: asyncpg.Connection) -> dict[int, Account]:
    """How every account stood when the last archive was made."""
    text = await db.fetchval("SELECT closing FROM archives ORDER BY until_us DESC LIMIT 1")
    return {
        number: Account(balance, version) for number, version, balance in json.loads(text or "[]")
    }
