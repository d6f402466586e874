"""The tables of a journal in SQLite."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from .store import JournalError

SCHEMA_VERSION = 2

_SCHEMA = """
CREATE TABLE tables (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    table_id TEXT NOT NULL UNIQUE,
    request_id TEXT NOT NULL UNIQUE,
    request TEXT NOT NULL,
    rule_set TEXT NOT NULL,
    revision INTEGER NOT NULL,
    player_ids TEXT NOT NULL,
    labels TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    closed INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    summary BLOB
) STRICT;
CREATE INDEX tables_open ON tables (place) WHERE closed = 0;
CREATE INDEX tables_unfinished ON tables (place) WHERE done = 0;
CREATE TABLE players (
    player_id TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (player_id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE labels (
    key TEXT NOT NULL, value TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (key, value, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    place INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (place, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE openings (
    place INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, state BLOB NOT NULL
) STRICT;
CREATE TABLE hands (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    table_place INTEGER NOT NULL,
    hand_number INTEGER NOT NULL,
    player_ids TEXT NOT NULL,
    ended_ms INTEGER NOT NULL,
    ending TEXT NOT NULL,
    first_sequence INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    UNIQUE (table_place, hand_number)
) STRICT;
CREATE INDEX hands_ended ON hands (ended_ms);
CREATE TABLE hand_players (
    player_id TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (player_id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE operator_actions (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    action_id TEXT NOT NULL UNIQUE,
    table_place INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    operator TEXT NOT NULL,
    verb TEXT NOT NULL,
    reason TEXT NOT NULL,
    case_id TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX operator_actions_of_table ON operator_actions (table_place, place);
CREATE TRIGGER operator_actions_stay BEFORE UPDATE ON operator_actions
BEGIN SELECT RAISE(ABORT, 'the log of operators is append-only'); END;
CREATE TRIGGER operator_actions_remain BEFORE DELETE ON operator_actions
BEGIN SELECT RAISE(ABORT, 'the log of operators is append-only'); END;
CREATE TABLE owners (
    owner_id TEXT PRIMARY KEY, endpoint TEXT NOT NULL, until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""


def connect(path: Path) -> sqlite3.Connection:
    """A connection whose commits are on disk when they return."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db


def prepare(path: Path) -> None:
    """Make the tables where there are none; raises `JournalError` for another version's."""
    try:
        with closing(connect(path)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                db.executescript(
                    f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version = {SCHEMA_VERSION};COMMIT;"
                )
            elif version != SCHEMA_VERSION:
                raise JournalError(f"{path} has schema version {version}, not {SCHEMA_VERSION}")
    except sqlite3.Error as error:
        raise JournalError(f"{path}: {error}") from error
