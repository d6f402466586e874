"""The one writer of a SQLite ledger: many items in one transaction, each with its own savepoint."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from fangcheng_kit.ids import new_id
from fangcheng_wallet import core
from fangcheng_wallet.canonical import differences, dumps, loads
from fangcheng_wallet.core import Desk
from fangcheng_wallet.errors import RequestIdReused, SettlementKeyReused, WalletUnavailable
from fangcheng_wallet.ledger import (
    Account,
    AccountKey,
    Command,
    Currency,
    Decision,
    Deposit,
    Done,
    Entry,
    Hold,
    Kind,
    PlaceHolds,
    ReleaseHolds,
    Settle,
    Settled,
    Withdraw,
)
from fangcheng_wallet.store import Commit, OnCommit

SCHEMA_VERSION = 1
OLDEST_SQLITE = (3, 37, 0)
"""The first with STRICT tables."""

BUSY_MS = 5_000
"""How long a connection waits for a lock that another one has."""

_log = logging.getLogger(__name__)


class BadDatabase(Exception):
    """The file cannot be used as a ledger; the message says why."""


def now_us() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


class OpenWallet(str):
    """The player whose wallet is to be opened."""

    __slots__ = ()


class Journal:
    """The writer: whoever uses it uses it from one thread."""

    def __init__(
        self,
        path: Path,
        currencies: Sequence[Currency],
        clock: Callable[[], int],
        on_commit: OnCommit,
    ) -> None:
        self._db = _connect_writer(path)
        self._currencies = {currency.id: currency for currency in currencies}
        self._clock = clock
        self._on_commit = on_commit
        try:
            _prepare(self._db)
            self._follow_floors()
        except BaseException:
            self._db.close()
            raise
        row = self._db.execute("SELECT time_us FROM operations ORDER BY id DESC LIMIT 1").fetchone()
        self._last_us: int = row[0] if row else 0

    def close(self) -> None:
        """Close the file; SQLite moves what is in the WAL into it."""
        self._db.close()

    def commit(self, items: Sequence[Command | OpenWallet]) -> Sequence[Any]:
        """Do items in order in one transaction; an answer or an error for each."""
        began = time.perf_counter()
        postings = 0
        results: list[Any] = []
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for item in items:
                result, count = self._alone(item)
                results.append(result)
                postings += count
            self._db.execute("COMMIT")
            failed = False
        except sqlite3.Error as error:
            _log.error("a commit failed: %s", error)
            failed, postings = True, 0
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            results = [WalletUnavailable() for _ in items]
        self._on_commit(Commit(len(items), postings, time.perf_counter() - began, failed))
        return results

    def _alone(self, item: Command | OpenWallet) -> tuple[Any, int]:
        """Do one item so that its failure takes back nothing but its own."""
        self._db.execute("SAVEPOINT item")
        try:
            if isinstance(item, OpenWallet):
                result: tuple[Any, int] = (self._open_wallet(item), 0)
            else:
                result = self._do(item)
        except sqlite3.OperationalError:
            raise  # a full disk and the like: nothing of the batch can be trusted
        except Exception as error:
            self._db.execute("ROLLBACK TO item")
            result = (error, 0)
        self._db.execute("RELEASE item")
        return result

    def _open_wallet(self, player_id: str) -> bool:
        cursor = self._db.execute(
            "INSERT INTO wallets VALUES (?, ?) ON CONFLICT DO NOTHING",
            (str(player_id), self._time_us()),
        )
        return cursor.rowcount == 1

    def _do(self, command: Command) -> tuple[Done[Any], int]:
        verb, key, answer_type = _identity(command)
        first = self._replay(verb, key, command, answer_type)
        if first is not None:
            return Done(first, replayed=True), 0
        ledger = _Ledger(self._db)
        desk = Desk(ledger, self._currencies, self._time_us())
        decision = core.decide(command, desk, new_id)
        if decision.postings or decision.released or key is not None:
            self._write(verb, key, command, decision, ledger, desk)
        return Done(decision.answer, replayed=False), len(decision.postings)

    def _replay(self, verb: str, key: str | None, command: Command, answer_type: Any) -> Any:
        """The first answer under this key; ``None`` if there is none yet."""
        if key is None:
            return None
        row = self._db.execute(
            "SELECT body, answer FROM operations WHERE key = ? AND verb = ?", (key, verb)
        ).fetchone()
        if row is None:
            return None
        body, answer = row
        if body != dumps(command):
            differs = differences(loads(body, type(command)), command)
            if differs:
                reused = SettlementKeyReused if verb == "settle" else RequestIdReused
                raise reused(key, differs)
        return loads(answer, answer_type)

    def _write(
        self,
        verb: str,
        key: str | None,
        command: Command,
        decision: Decision[Any],
        ledger: _Ledger,
        desk: Desk,
    ) -> None:
        (last_operation,) = self._db.execute(
            "SELECT COALESCE(MAX(id), 0) FROM operations"
        ).fetchone()
        (last_posting,) = self._db.execute("SELECT COALESCE(MAX(id), 0) FROM postings").fetchone()
        operation = last_operation + 1
        for number, one in enumerate(decision.postings, last_posting + 1):
            account = ledger.number(one.account, desk.bounds(one.account)[0])
            self._db.execute(
                "INSERT INTO postings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(number, account, one.version, operation, one.amount, one.balance_after),
                    *(one.reason, one.reference, one.memo),
                ),
            )
        self._db.execute(
            "INSERT INTO operations VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(operation, verb, key, desk.time_us, dumps(command), dumps(decision.answer)),
                *(last_posting + 1, last_posting + len(decision.postings)),
            ),
        )
        for hold in decision.placed:
            self._db.execute(
                "INSERT INTO holds VALUES (?, ?, ?, ?, ?, NULL)",
                (
                    *(hold.hold_id, ledger.number(hold.account, 0), hold.player_id, hold.amount),
                    operation,
                ),
            )
        for hold_id in decision.released:
            self._db.execute(
                "UPDATE holds SET released_by = ? WHERE hold_id = ?", (operation, hold_id)
            )

    def _time_us(self) -> int:
        self._last_us = max(self._last_us, self._clock())
        return self._last_us

    def _follow_floors(self) -> None:
        """Put the configured floors on accounts that were opened under others."""
        for currency in self._currencies.values():
            floor = core.bounds(AccountKey(Kind.PLAYER, "", currency.id, ""), self._currencies)[0]
            try:
                self._db.execute(
                    "UPDATE accounts SET floor = :floor"
                    " WHERE kind = 'player' AND currency = :currency AND floor <> :floor",
                    {"floor": floor, "currency": currency.id},
                )
            except sqlite3.IntegrityError:
                raise BadDatabase(
                    f"the floor of {currency.id} cannot be {floor}: a player has less"
                ) from None


class _Ledger:
    """The ledger as one item of a transaction sees it: a ``core.View``."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._numbers: dict[AccountKey, int] = {}

    def has_wallet(self, player_id: str) -> bool:
        row = self._db.execute("SELECT 1 FROM wallets WHERE player_id = ?", (player_id,))
        return row.fetchone() is not None

    def account(self, key: AccountKey) -> Account:
        row = self._db.execute(
            "SELECT id, balance, version FROM accounts"
            " WHERE owner = ? AND kind = ? AND currency = ? AND book = ?",
            (key.owner, key.kind.value, key.currency, key.book),
        ).fetchone()
        if row is None:
            return Account()
        self._numbers[key] = row[0]
        return Account(row[1], row[2])

    def hold(self, hold_id: str) -> Hold | None:
        row = self._db.execute(
            "SELECT player_id, currency, book, amount, balance, released_by IS NOT NULL"
            " FROM holds JOIN accounts ON accounts.id = account WHERE hold_id = ?",
            (hold_id,),
        ).fetchone()
        if row is None:
            return None
        player_id, currency, book, amount, remaining, released = row
        return Hold(hold_id, player_id, currency, book, amount, remaining, bool(released))

    def number(self, key: AccountKey, floor: int) -> int:
        """The row of an account that was read here; it is made where there is none."""
        number = self._numbers.get(key)
        if number is None:
            cursor = self._db.execute(
                "INSERT INTO accounts (kind, owner, currency, book, floor) VALUES (?, ?, ?, ?, ?)",
                (key.kind.value, key.owner, key.currency, key.book, floor),
            )
            number = cursor.lastrowid
            assert number is not None  # noqa: S101  # an INSERT that succeeded has one
            self._numbers[key] = number
        return number


def _identity(command: Command) -> tuple[str, str | None, Any]:
    """A command's verb, the key that it is done once for, and the type of its answer."""
    match command:
        case Deposit():
            return "deposit", command.request_id, Entry
        case Withdraw():
            return "withdraw", command.request_id, Entry
        case PlaceHolds():
            return "place_holds", command.request_id, tuple[Hold, ...]
        case ReleaseHolds():
            return "release_holds", None, tuple[Hold, ...]
        case Settle():
            return "settle", command.key, Settled


def _connect_writer(path: Path) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise BadDatabase(f"SQLite {sqlite3.sqlite_version} has no STRICT tables; 3.37 has")
    try:
        db = sqlite3.connect(
            path, timeout=BUSY_MS / 1_000, isolation_level=None, cached_statements=256
        )
    except sqlite3.Error as error:
        raise BadDatabase(f"{path} cannot be opened: {error}") from None
    return db


def _prepare(db: sqlite3.Connection) -> None:
    """Set the writer's connection up, check that it took it, and make tables if there are none."""
    wanted: Mapping[str, Any] = {
        "journal_mode": "wal",
        "synchronous": 2,  # FULL
        "foreign_keys": 1,
        "recursive_triggers": 1,  # so that REPLACE meets the triggers that forbid DELETE
    }
    try:
        for name, value in wanted.items():
            db.execute(f"PRAGMA {name} = {value}")
            (got,) = db.execute(f"PRAGMA {name}").fetchone()
            if got != value:
                raise BadDatabase(f"the database has {name} {got}; the ledger needs {value}")
        db.execute("BEGIN IMMEDIATE")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
        if version == 0 and tables == 0:
            schema = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
            for statement in _statements(schema):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        elif version != SCHEMA_VERSION:
            raise BadDatabase(
                f"the database has schema {version}; this version reads {SCHEMA_VERSION}"
            )
        db.execute("COMMIT")
    except sqlite3.Error as error:
        raise BadDatabase(f"the database cannot be used: {error}") from None


def _statements(script: str) -> Iterable[str]:
    """The statements of a script: ``executescript`` would commit before it."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
