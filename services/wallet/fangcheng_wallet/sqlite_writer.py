"""The one writer of a SQLite ledger: what waits is decided together and written in one commit."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fangcheng_kit.migrations import BadDatabase
from fangcheng_kit.sqlite import open_file, wipe
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
from fangcheng_wallet.errors import WalletUnavailable
from fangcheng_wallet.ledger import (
    Account,
    AccountKey,
    Command,
    Done,
)
from fangcheng_wallet.masks import Masked
from fangcheng_wallet.migrations import LEDGER
from fangcheng_wallet.rows import HOLDS, hold, player
from fangcheng_wallet.sqlite_reads import written
from fangcheng_wallet.store import Commit, OnCommit

_AMONG = " WHERE hold_id IN (SELECT value FROM json_each(?))"

_encode = msgspec.json.Encoder(order="sorted").encode
_log = logging.getLogger(__name__)


def now_us() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


class Journal:
    """The writer: whoever uses it uses it from one thread."""

    def __init__(
        self, path: Path, terms: Terms, clock: Callable[[], int], on_commit: OnCommit
    ) -> None:
        self._lock = _lock(path)
        self._terms = terms
        self._clock = clock
        self._on_commit = on_commit
        try:
            # So that REPLACE meets the triggers that forbid DELETE.
            self._db = open_file(path, LEDGER, foreign_keys=1, recursive_triggers=1)
            try:
                self._follow_floors()
                self._numbers: dict[AccountKey, int] = {}
                self._recall()
            except BaseException:
                self._db.close()
                raise
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Close the file; SQLite moves what is in the WAL into it."""
        self._db.close()
        os.close(self._lock)

    def wipe(self) -> None:
        """Write the file anew; see ``fangcheng_kit.sqlite.wipe``."""
        wipe(self._db)

    def commit(self, items: Sequence[Command[Any] | Sequence[Link]]) -> Sequence[Any]:
        """Do items in order in one transaction; an answer or an error for each.

        Links of the chain are no commands, and are answered with ``None`` once they are written.
        """
        links = [item for item in items if not isinstance(item, Command)]
        commands = [item for item in items if isinstance(item, Command)]
        outcomes, linked = self._commit(commands, links)
        answers = iter(outcomes)
        return [next(answers) if isinstance(item, Command) else linked for item in items]

    def _commit(
        self, commands: Sequence[Command[Any]], links: Sequence[Sequence[Link]]
    ) -> tuple[Sequence[Done[Any] | Exception], Exception | None]:
        """The outcomes of the commands, and that of the links."""
        began = time.perf_counter()
        postings, failed, expired = 0, False, 0
        linked: Exception | None = None
        outcomes: Sequence[Done[Any] | Exception]
        try:
            self._db.execute("BEGIN IMMEDIATE")
            batch = self._decide(commands)
            self._write(batch.steps)
            for link in links:
                self._db.executemany("INSERT INTO links VALUES (?, ?, ?)", link)
            self._db.execute("COMMIT")
            outcomes, postings, self._head = batch.outcomes, batch.postings, batch.head
            expired = batch.expired
        except Exception as error:
            self._roll_back()
            items = len(commands) + len(links)
            if commands and items > 1 and isinstance(error, sqlite3.IntegrityError):
                # The database refuses what a decision allowed. The others must not suffer from it,
                # and the links are made anew.
                _log.error("one of %s items is refused by the database: %s", items, error)
                alone = [self._commit([command], ())[0][0] for command in commands]
                return alone, WalletUnavailable()
            _log.error("a commit failed: %s", error)
            if not isinstance(error, sqlite3.Error):
                raise
            failed, linked = True, WalletUnavailable()
            outcomes = [WalletUnavailable() for _ in commands]
        if commands:
            seconds = time.perf_counter() - began
            self._on_commit(Commit(len(commands), postings, seconds, failed, expired))
        return outcomes, linked

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._recall()

    def _recall(self) -> None:
        """Forget what a commit that failed may have left in memory."""
        self._numbers.clear()
        (self._last_account,) = self._db.execute(
            "SELECT COALESCE(MAX(id), 0) FROM accounts"
        ).fetchone()
        row = self._db.execute(
            "SELECT id, last_posting, time_us FROM operations ORDER BY id DESC LIMIT 1"
        ).fetchone()
        self._head = Head(*row) if row else Head()

    def _decide(self, commands: Sequence[Command[Any]]) -> Batch:
        ledger = Ledger()
        self._read_names(ledger, names_of(commands))
        self._read_accounts(ledger, accounts_of(commands, ledger))
        time_us = max(self._head.time_us, self._clock())
        return decide_all(commands, ledger, self._head, self._terms, time_us)

    def _read_names(self, ledger: Ledger, names: core.Names) -> None:
        if names.holds:
            for row in self._db.execute(
                HOLDS + _AMONG,
                (_encode(names.holds).decode(),),
            ):
                ledger.holds[row[0]] = hold(row)
        # Whoever has a hold may be asked to put more into it.
        players = names.players | {one.player_id for one in ledger.holds.values()}
        for row in self._db.execute(
            "SELECT player_id, frozen, reason, case_id, changed_us, is_bot"
            " FROM json_each(?) AS one"
            " CROSS JOIN players ON player_id = one.value",
            (_encode(players).decode(),),
        ):
            ledger.players[row[0]] = player(row)
        for verb, key, body, answer in self._db.execute(
            "SELECT verb, kept.key, body, answer FROM json_each(?) AS one"
            " CROSS JOIN operations AS kept ON kept.key = json_extract(one.value, '$[1]')"
            " AND verb = json_extract(one.value, '$[0]')",
            (_encode(names.operations).decode(),),
        ):
            ledger.operations[verb, key] = Kept(body, answer)
        ledger.numbered.update((one.number, one) for one in written(self._db, names.written))

    def _read_accounts(self, ledger: Ledger, keys: Iterable[AccountKey]) -> None:
        self._numbers.clear()
        for key in keys:
            row = self._db.execute(
                "SELECT id, balance, version FROM accounts"
                " WHERE owner = ? AND kind = ? AND currency = ? AND book = ?",
                (key.owner, key.kind.value, key.currency, key.book),
            ).fetchone()
            if row is None:
                ledger.accounts[key] = Account()
            else:
                self._numbers[key] = row[0]
                ledger.accounts[key] = Account(row[1], row[2])

    def _write(self, steps: Iterable[Step]) -> None:
        # An operation seals the postings before it, so each is written before the next begins.
        for step in steps:
            if step.opened is not None:
                self._db.execute(
                    "INSERT INTO players (player_id, is_bot, opened_us) VALUES (?, ?, ?)",
                    (step.opened.player_id, step.opened.is_bot, self._clock()),
                )
            if step.operation is not None:
                self._write_operation(step)

    def _write_operation(self, step: Step) -> None:
        one = step.operation
        assert one is not None  # noqa: S101 # nosec B101 # checked by the caller
        players = {hold.account: hold.player_id for hold in step.placed}
        self._db.executemany(
            "INSERT INTO postings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    number,
                    self._number(posting.account, players),
                    posting.version,
                    one.number,
                    posting.amount,
                    posting.balance_after,
                    posting.reason,
                    posting.reference,
                    posting.memo,
                    one.time_us,
                )
                for number, posting in enumerate(step.postings, one.first_posting)
            ],
        )
        labels = _encode(one.labels).decode() if one.labels else None
        self._db.execute(
            "INSERT INTO operations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(one.number, one.verb, one.key, one.time_us, one.body, one.answer),
                *(one.first_posting, one.last_posting, labels),
            ),
        )
        for placed in step.placed:
            self._db.execute(
                "INSERT INTO holds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(
                        placed.hold_id,
                        self._numbers[placed.account],
                        placed.player_id,
                        placed.amount,
                    ),
                    *(placed.state.value, placed.table_id, placed.expires_at_us, placed.given_back),
                    *(one.number, one.number),
                ),
            )
        for changed in step.changed:
            self._db.execute(
                "UPDATE holds SET amount = ?, state = ?, table_id = ?, expires_at_us = ?,"
                " given_back = ?, changed_by = ? WHERE hold_id = ?",
                (
                    *(changed.amount, changed.state.value, changed.table_id, changed.expires_at_us),
                    *(changed.given_back, one.number, changed.hold_id),
                ),
            )
        for masked in step.masked:
            self._mask(masked)
        if step.player is not None:
            self._db.execute(
                "UPDATE players SET frozen = ?, reason = ?, case_id = ?, changed_us = ?"
                " WHERE player_id = ?",
                (
                    *(step.player.frozen, step.player.reason, step.player.case_id),
                    *(step.player.time_us, step.player.player_id),
                ),
            )

    def _mask(self, masked: Masked) -> None:
        self._db.execute(
            "INSERT INTO erased VALUES (?, ?) ON CONFLICT DO NOTHING", (masked.number, masked.own)
        )
        labels = _encode(masked.labels).decode() if masked.labels else None
        self._db.execute(
            "UPDATE operations SET body = ?, answer = ?, labels = ? WHERE id = ?",
            (masked.body, masked.answer, labels, masked.number),
        )
        self._db.executemany(
            "UPDATE postings SET memo = '' WHERE id = ?", [(number,) for number in masked.memos]
        )

    def _number(self, key: AccountKey, players: Mapping[AccountKey, str]) -> int:
        """The row of an account; it is made where there is none."""
        number = self._numbers.get(key)
        if number is None:
            number = self._last_account = self._last_account + 1
            self._db.execute(
                "INSERT INTO accounts (id, kind, owner, player_id, currency, book, floor)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    *(number, key.kind.value, key.owner, players.get(key, key.owner)),
                    *(key.currency, key.book, bounds(key, self._terms.currencies)[0]),
                ),
            )
            self._numbers[key] = number
        return number

    def _follow_floors(self) -> None:
        """Put the configured floors on accounts that were opened under others."""
        for currency, floor in self._terms.floors():
            try:
                self._db.execute(
                    "UPDATE accounts SET floor = :floor"
                    " WHERE kind = 'player' AND currency = :currency AND floor <> :floor",
                    {"floor": floor, "currency": currency},
                )
            except sqlite3.IntegrityError:
                raise BadDatabase(
                    f"the floor of {currency} cannot be {floor}: a player has less"
                ) from None


def _lock(path: Path) -> int:
    """Keep other processes off the file for as long as the lock's descriptor is open."""
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise BadDatabase(f"{path} cannot be opened: {error}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise BadDatabase(f"{path}: another process has the ledger open") from None
    return lock
