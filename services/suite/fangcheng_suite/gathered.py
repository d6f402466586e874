"""The facts of finished hands in a file, with the cursor behind the last one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path

from .errors import SuiteError
from .integrity.facts import HandFacts

VERSION = 1
"""Of what is kept of a hand; a file with another one is read anew from the service."""

_TABLES = """
CREATE TABLE IF NOT EXISTS hands (
    table_id TEXT NOT NULL,
    hand_number INTEGER NOT NULL,
    rule_set TEXT NOT NULL,
    ended_ms INTEGER NOT NULL,
    facts TEXT NOT NULL,
    PRIMARY KEY (table_id, hand_number)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS position (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    cursor TEXT NOT NULL,
    last TEXT NOT NULL,
    mute INTEGER NOT NULL
) STRICT;
INSERT OR IGNORE INTO position VALUES (1, '', '', 0);
"""


class Gathered:
    """What was gathered so far. Hands and cursor are written together: none is lost or doubled."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @classmethod
    @contextmanager
    def in_file(cls, path: Path) -> Iterator[Gathered]:
        """The file, which is made where there is none; raises SuiteError."""
        hint = "It can be deleted: the next report reads all hands anew."
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(path, isolation_level=None)) as db:
                (version,) = db.execute("PRAGMA user_version").fetchone()
                if version not in (0, VERSION):
                    raise SuiteError(f"{path} is of version {version}, not {VERSION}", hint)
                db.executescript(_TABLES)
                db.execute(f"PRAGMA user_version = {VERSION}")
                path.chmod(0o600)  # it tells who played with whom
                yield cls(db)
        except (OSError, sqlite3.Error) as error:
            raise SuiteError(f"cannot use {path}: {error}", hint) from error

    @property
    def cursor(self) -> str:
        """Behind the last hand; empty: none was gathered."""
        return str(self._position("cursor"))

    @property
    def last(self) -> str:
        """Table and number of the last hand."""
        return str(self._position("last"))

    @property
    def mute(self) -> int:
        """Hands that tell nothing: dissolved, or archived before they were gathered."""
        return int(str(self._position("mute")))

    def _position(self, column: str) -> object:
        (found,) = self._db.execute(f"SELECT {column} FROM position").fetchone()  # noqa: S608 # nosec B608 # a column's name, of ours
        return found

    def add(self, facts: Iterable[HandFacts], mute: int, cursor: str, last: str) -> None:
        """Keep hands and the cursor behind them."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(
                "INSERT OR IGNORE INTO hands VALUES (?, ?, ?, ?, ?)",
                [
                    (
                        hand.table_id,
                        hand.hand_number,
                        hand.rule_set,
                        hand.ended_ms,
                        json.dumps(asdict(hand), ensure_ascii=False, separators=(",", ":")),
                    )
                    for hand in facts
                ],
            )
            self._db.execute(
                "UPDATE position SET cursor = ?, last = ?, mute = mute + ?", (cursor, last, mute)
            )
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def hands(self) -> list[HandFacts]:
        """All of them, those of a table in their order."""
        rows = self._db.execute("SELECT facts FROM hands ORDER BY table_id, hand_number")
        return [_facts(text) for (text,) in rows]


def _facts(text: str) -> HandFacts:
    told = json.loads(text)
    players = told["players"]
    return HandFacts(
        table_id=told["table_id"],
        hand_number=told["hand_number"],
        rule_set=told["rule_set"],
        variant=told["variant"],
        ended_ms=told["ended_ms"],
        players=(players[0], players[1], players[2], players[3]),
        dealer=told["dealer"],
        deal_ins=tuple((one, other) for one, other in told["deal_ins"]),
        claims=tuple((one, other) for one, other in told["claims"]),
        paid=tuple((one, other, units) for one, other, units in told["paid"]),
        away=tuple(told["away"]),
    )
