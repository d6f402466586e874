"""What is read of a SQLite ledger: each function within one snapshot."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any

from fangcheng_wallet.audit import AccountRow, HoldRow, Opening, OperationRow, PostingRow
from fangcheng_wallet.boards import Boards, Score
from fangcheng_wallet.canonical import loads
from fangcheng_wallet.chain import START, Link, Linked, LinkedOperation
from fangcheng_wallet.errors import UnknownHold, UnknownSettlement, UnknownWallet
from fangcheng_wallet.ledger import (
    AccountKey,
    Balance,
    Entry,
    Hold,
    Kind,
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
    player,
    streamed,
    with_postings,
)
from fangcheng_wallet.store import Page, Pulse, Standing

_LABELS = (
    " AND NOT EXISTS (SELECT 1 FROM json_each(:labels) AS wanted WHERE NOT EXISTS ("
    "SELECT 1 FROM json_each(operations.labels) AS has"
    " WHERE has.key = wanted.key AND has.value = wanted.value))"
)


def settlement(db: sqlite3.Connection, key: str) -> Settlement:
    """See ``store.Store``."""
    rows = db.execute(
        "SELECT verb, body, answer FROM operations WHERE key = ? AND verb IN ('settle', 'reverse')",
        (key,),
    )
    found = {verb: (body, answer) for verb, body, answer in rows}
    if "settle" not in found:
        raise UnknownSettlement(key)
    body, answer = found["settle"]
    reversal = loads(found["reverse"][1], Reversal) if "reverse" in found else None
    return Settlement(loads(body, Settle), loads(answer, Settled), reversal)


def holds(db: sqlite3.Connection, hold_ids: Sequence[str]) -> Sequence[Hold]:
    """See ``store.Store``."""
    found = []
    for number, hold_id in enumerate(hold_ids):
        row = db.execute(HOLDS + " WHERE hold_id = ?", (hold_id,)).fetchone()
        if row is None:
            raise UnknownHold(hold_id, f"hold_ids[{number}]")
        found.append(hold(row))
    return found


def open_holds(db: sqlite3.Connection, player_id: str) -> Sequence[Hold]:
    """See ``store.Store``."""
    wallet(db, player_id)
    rows = db.execute(
        HOLDS + " WHERE holds.player_id = ? AND state = 'open' ORDER BY placed_by, accounts.id",
        (player_id,),
    )
    return [hold(row) for row in rows]


def due_holds(db: sqlite3.Connection, time_us: int, limit: int) -> Sequence[str]:
    """Open holds whose time is over, the oldest first."""
    rows = db.execute(
        "SELECT hold_id FROM holds WHERE state = 'open' AND expires_at_us <= ?"
        " ORDER BY expires_at_us LIMIT ?",
        (time_us, limit),
    )
    return [hold_id for (hold_id,) in rows]


def wallet(db: sqlite3.Connection, player_id: str) -> Player:
    """A player; ``UnknownWallet``."""
    row = db.execute(
        "SELECT player_id, frozen, reason, case_id, changed_us, is_bot FROM players"
        " WHERE player_id = ?",
        (player_id,),
    ).fetchone()
    if row is None:
        raise UnknownWallet(player_id, "player_id")
    return player(row)


def standing(db: sqlite3.Connection, player_id: str, at_us: int | None) -> Standing:
    """See ``store.Store``."""
    return Standing(wallet(db, player_id), _balances(db, player_id, at_us))


def _balances(db: sqlite3.Connection, player_id: str, at_us: int | None) -> Sequence[Balance]:
    if at_us is None:
        rows = db.execute(
            "SELECT kind, currency, book, balance FROM accounts WHERE player_id = ?", (player_id,)
        )
    else:
        (last,) = db.execute(
            "SELECT COALESCE(MAX(last_posting), 0) FROM (SELECT last_posting FROM operations"
            " WHERE time_us <= ? ORDER BY time_us DESC, id DESC LIMIT 1)",
            (at_us,),
        ).fetchone()
        rows = db.execute(
            "SELECT kind, currency, book, (SELECT balance_after FROM postings"
            " WHERE account = accounts.id AND postings.id <= ? ORDER BY postings.id DESC LIMIT 1)"
            " AS then_had FROM accounts WHERE player_id = ? AND then_had IS NOT NULL",
            (last, player_id),
        )
    return balances_of(rows)


def entries(db: sqlite3.Connection, query: StatementQuery, before: int | None, limit: int) -> Page:
    """See ``store.Store``."""
    wallet(db, query.player_id)
    accounts = db.execute(
        "SELECT id, currency, book FROM accounts WHERE player_id = :player AND kind = 'player'"
        " AND currency = COALESCE(:currency, currency) AND book = COALESCE(:book, book)",
        {"player": query.player_id, "currency": query.currency, "book": query.book},
    ).fetchall()
    streams = [_newest(db, number, unit, query, before, limit + 1) for number, *unit in accounts]
    newest = merge(*streams, key=lambda row: row[0], reverse=True)
    rows = list(islice(newest, limit + 1))
    shown = [entry for _, entry in rows[:limit]]
    return Page(shown, rows[limit - 1][0] if len(rows) > limit else None)


def _newest(
    db: sqlite3.Connection,
    account: int,
    unit: list[str],
    query: StatementQuery,
    before: int | None,
    limit: int,
) -> Iterator[tuple[int, Entry]]:
    """The last entries of one account with their numbers, newest first."""
    wanted: dict[str, Any] = {"account": account, "limit": limit}
    sql = (
        "SELECT postings.id, version, amount, balance_after, reason, reference, memo,"
        " postings.time_us, labels FROM postings JOIN operations ON operations.id = operation"
        " WHERE account = :account"
    )
    if before is not None:
        sql, wanted["before"] = sql + " AND postings.id < :before", before
    if query.until_us is not None:
        # Time never goes back, so a time is a number, and numbers have an index.
        wanted["until"] = _first_posting_at(db, query.until_us)
        sql += " AND postings.id < :until"
    if query.since_us is not None:
        wanted["since"] = _first_posting_at(db, query.since_us)
        sql += " AND postings.id >= :since"
    if query.reasons:
        wanted["reasons"] = json.dumps(query.reasons)
        sql += " AND reason IN (SELECT value FROM json_each(:reasons))"
    if query.reference is not None:
        sql, wanted["reference"] = sql + " AND reference = :reference", query.reference
    if query.labels:
        sql, wanted["labels"] = sql + _LABELS, json.dumps(query.labels)
    sql += " ORDER BY postings.id DESC LIMIT :limit"
    for row in db.execute(sql, wanted).fetchall():
        yield row[0], entry(row[1], unit, row[2:-1], row[-1])


def _first_posting_at(db: sqlite3.Connection, time_us: int) -> int:
    """The first posting that was written at a time or later; what comes next if there is none."""
    row = db.execute(
        "SELECT first_posting FROM operations WHERE time_us >= ? ORDER BY time_us, id LIMIT 1",
        (time_us,),
    ).fetchone()
    if row is None:
        row = db.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM postings").fetchone()
    first: int = row[0]
    return first


def stream(db: sqlite3.Connection, after: int, limit: int) -> Sequence[StreamedEntry]:
    """See ``store.Store``."""
    rows = db.execute(
        "SELECT postings.id, kind, owner, currency, book, postings.version, amount, balance_after,"
        " reason, reference, memo, postings.time_us, labels, verb, operation"
        " FROM postings JOIN accounts ON accounts.id = account"
        " JOIN operations ON operations.id = operation"
        " WHERE postings.id > ? ORDER BY postings.id LIMIT ?",
        (after, limit),
    )
    return list(map(streamed, rows))


def last_operation(db: sqlite3.Connection, horizon: int | None = None) -> tuple[int, int]:
    """Number and time of the last operation, up to a ``horizon``; 0, 0: there is none."""
    row = db.execute(
        "SELECT id, time_us FROM operations WHERE id <= ? ORDER BY id DESC LIMIT 1",
        (2**63 - 1 if horizon is None else horizon,),
    ).fetchone()
    return row or (0, 0)


def scores(db: sqlite3.Connection, query: LeaderboardQuery, horizon: int) -> list[Score]:
    """What settlements up to an operation have brought each player."""
    wanted: dict[str, Any] = {
        "currency": query.currency,
        "book": query.book,
        "horizon": horizon,
        "since": -1 if query.since_us is None else query.since_us,
        "until": 2**63 - 1 if query.until_us is None else query.until_us,
    }
    if query.labels:
        wanted["labels"] = json.dumps(query.labels)
    # Halves of the numbers are summed: whole ones could overflow 64 bits.
    counted = (
        "SELECT player_id, verb, SUM(amount >> 26) AS high,"
        " SUM(amount & 0x3ffffff) AS low FROM operations"
        " JOIN postings ON postings.id BETWEEN first_posting AND last_posting"
        " JOIN accounts ON accounts.id = account"
        " WHERE verb IN ('settle', 'reverse') AND operations.id <= :horizon"
        " AND operations.time_us >= :since AND operations.time_us < :until"
        " AND currency = :currency AND book = :book AND player_id <> ''"
    )
    counted += (_LABELS if query.labels else "") + " GROUP BY player_id, operations.id"
    sql = (
        "SELECT player_id, SUM(high), SUM(low),"
        " SUM((high <> 0 OR low <> 0) * CASE verb WHEN 'settle' THEN 1 ELSE -1 END) FROM ("
    )
    rows = db.execute(sql + counted + ") GROUP BY player_id", wanted)
    return [Score(who, (high << 26) + low, hands) for who, high, low, hands in rows]


def leaderboard(db: sqlite3.Connection, query: LeaderboardQuery, boards: Boards) -> Leaderboard:
    """See ``store.Store``."""
    asked = boards.ask(query, *last_operation(db, query.horizon))
    return asked.answer(() if asked.is_kept else scores(db, query, asked.horizon))


def pulse(db: sqlite3.Connection) -> Pulse:
    """See ``store.Store``."""
    # Halves of the numbers are summed: whole ones could overflow 64 bits.
    sums = db.execute(
        "SELECT currency, SUM(balance >> 26), SUM(balance & 0x3ffffff) FROM accounts"
        " GROUP BY currency"
    )
    imbalance = {currency: (high << 26) + low for currency, high, low in sums}
    count, oldest_us = db.execute(
        "SELECT count, time_us FROM"
        " (SELECT COUNT(*) AS count, MIN(placed_by) AS oldest FROM holds WHERE state = 'open')"
        " LEFT JOIN operations ON id = oldest"
    ).fetchone()
    return Pulse(imbalance, count, last_operation(db)[0] - last_link(db)[0], oldest_us)


def last_link(db: sqlite3.Connection) -> tuple[int, bytes]:
    """The last operation that has a link, and its head."""
    row = db.execute("SELECT operation, head FROM links ORDER BY operation DESC LIMIT 1").fetchone()
    return row or (0, START)


_SAYING = f"""
SELECT id FROM operations
WHERE id > :after AND id <= :last AND verb IN ({", ".join(map(repr, SAYING))})
    AND (instr(body, :who) > 0 OR verb = 'reverse' AND EXISTS (
    SELECT 1 FROM operations AS reversed
    WHERE reversed.key = operations.key AND reversed.verb = 'settle'
        AND instr(reversed.body, :who) > 0
)) ORDER BY id LIMIT :limit
"""  # noqa: S608 # nosec B608 # constants


def saying(
    db: sqlite3.Connection, player_id: str, after: int, last: int, limit: int
) -> Sequence[int]:
    """Numbers of the operations that may have texts or labels about a player."""
    rows = db.execute(
        _SAYING,
        {"who": mention(player_id), "after": after, "last": last, "limit": limit},
    )
    return [number for (number,) in rows]


def notes(
    db: sqlite3.Connection, player_id: str, after: int, limit: int
) -> Sequence[tuple[int, str, int, str]]:
    """When a player was frozen or erased: number, verb, time and body."""
    return db.execute(
        "SELECT id, verb, time_us, body FROM operations"
        " WHERE id > ? AND verb IN ('freeze', 'erase') AND instr(body, ?) > 0 ORDER BY id LIMIT ?",
        (after, mention(player_id), limit),
    ).fetchall()


def was_erased(db: sqlite3.Connection, request_id: str) -> bool:
    """Whether an erasure was done under an id."""
    sql = "SELECT 1 FROM operations WHERE key = ? AND verb = 'erase'"
    return db.execute(sql, (request_id,)).fetchone() is not None


def all_holds(
    db: sqlite3.Connection, player_id: str, after: int, limit: int
) -> Sequence[tuple[int, Hold]]:
    """A player's holds, open or not, each with the number of its account, by it."""
    rows = db.execute(
        ALL_HOLDS + " WHERE accounts.player_id = ? AND kind = 'hold' AND accounts.id > ?"
        " ORDER BY accounts.id LIMIT ?",
        (player_id, after, limit),
    )
    return [(row[0], hold(row[1:])) for row in rows]


def written(db: sqlite3.Connection, numbers: Collection[int]) -> list[Written]:
    """Whole operations."""
    found = []
    for number in sorted(numbers):
        for operation in _operations(db, number - 1, number):
            sql = "SELECT labels FROM operations WHERE id = ?"
            (labels,) = db.execute(sql, (number,)).fetchone()
            found.append(Written(*operation[:6], json.loads(labels or "{}"), operation.postings))
    return found


def masks_waiting(db: sqlite3.Connection) -> list[str]:
    """Bodies of the operations that mask others and have no link yet."""
    sql = "SELECT body FROM operations WHERE id > ? AND verb = 'mask' ORDER BY id"
    return [body for (body,) in db.execute(sql, (last_link(db)[0],))]


def unlinked(db: sqlite3.Connection, limit: int) -> tuple[bytes, list[LinkedOperation]]:
    """The last head, and the operations that follow it."""
    last, head = last_link(db)
    return head, list(_operations(db, last, last + limit))


def linked(db: sqlite3.Connection) -> Iterator[Linked]:
    """Every link with its operation."""
    links = db.execute(
        "SELECT operation, digests, head, own FROM links LEFT JOIN erased USING (operation)"
        " ORDER BY operation"
    )
    last, _ = last_link(db)
    operations = _operations(db, 0, last)
    following = next(operations, None)
    for *row, own in links:
        link = Link(*row)
        if following is not None and following.number == link.operation:
            yield Linked(link, following, own)
            following = next(operations, None)
        else:
            yield Linked(link, None)


def _operations(db: sqlite3.Connection, after: int, last: int) -> Iterator[LinkedOperation]:
    """Operations with their postings, as the chain covers them."""
    operations = db.execute(
        "SELECT id, verb, key, time_us, body, answer FROM operations"
        " WHERE id > ? AND id <= ? ORDER BY id",
        (after, last),
    )
    postings = db.execute(
        "SELECT operation, postings.id, kind, owner, currency, book, postings.version, amount,"
        " balance_after, reason, reference, memo, time_us"
        " FROM postings JOIN accounts ON accounts.id = account"
        " WHERE operation > ? AND operation <= ? ORDER BY operation, postings.id",
        (after, last),
    )
    return with_postings(operations, postings)


class Records:
    """Everything in the file, for the audit."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def opening(self) -> Opening:
        """See ``audit.Records``: nothing is ever archived here."""
        return Opening()

    def accounts(self) -> Iterable[AccountRow]:
        """See ``audit.Records``."""
        for number, kind, owner, currency, book, *rest in self._db.execute(
            "SELECT id, kind, owner, currency, book, floor, balance, version FROM accounts"
        ):
            yield AccountRow(number, AccountKey(Kind(kind), owner, currency, book), *rest)

    def postings(self) -> Iterable[PostingRow]:
        """See ``audit.Records``."""
        return map(
            PostingRow._make,
            self._db.execute(
                "SELECT id, account, version, operation, amount, balance_after FROM postings"
                " ORDER BY id"
            ),
        )

    def operations(self) -> Iterable[OperationRow]:
        """See ``audit.Records``."""
        return map(
            OperationRow._make,
            self._db.execute(
                "SELECT id, verb, key, time_us, body, answer, first_posting, last_posting"
                " FROM operations ORDER BY id"
            ),
        )

    def holds(self) -> Iterable[HoldRow]:
        """See ``audit.Records``."""
        return map(
            HoldRow._make,
            self._db.execute("SELECT hold_id, account, player_id, amount, state FROM holds"),
        )

    def bots(self) -> Iterable[str]:
        """See ``audit.Records``."""
        for (player_id,) in self._db.execute("SELECT player_id FROM players WHERE is_bot"):
            yield player_id
