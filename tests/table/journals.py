"""Journals of both engines, and what the tests of them put in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fangcheng_table.events import ConnectionChanged
from fangcheng_table.migrations import JOURNAL
from fangcheng_table.postgres import open_postgres
from fangcheng_table.sealing import JournalKeys
from fangcheng_table.sqlite import SqliteJournal
from fangcheng_table.store import (
    Claim,
    HandEntry,
    Journal,
    NewTable,
    OperatorAction,
    Owner,
    Record,
)
from tests.postgres import database_of

from .tables import created

OpenJournal = Callable[[], Awaitable[Journal]]


KEYS = JournalKeys({"2026-01": b"k" * 32})


async def open_sqlite(folder: Path) -> Journal:
    return SqliteJournal(folder / "folder" / "table.db", keys=KEYS)


async def open_postgres_of(folder: Path) -> Journal:
    return await open_postgres(await database_of(folder, JOURNAL), keys=KEYS)


ENGINES: dict[str, Callable[[Path], Awaitable[Journal]]] = {
    "postgres": open_postgres_of,
    "sqlite": open_sqlite,
}
LEASE_MS = 600_000
ME, OTHER = Owner("me", "127.0.0.1:1"), Owner("other", "127.0.0.1:2")
PLAYS = [("baishan_kele", 1), ("shandong", 1)]


def new(number: int = 1, **more: object) -> NewTable:
    fields: dict = {
        "table_id": f"t{number}",
        "request_id": f"r{number}",
        "request": f"body {number}",
        "rule_set": "baishan_kele",
        "revision": 1,
        "player_ids": ("ann", "bob", "cat", "dan"),
        "labels": {},
    }
    return NewTable(**{**fields, **more})


FIRST = Record(1, 1_000, created())


def some(first: int, count: int = 1, seat: int = 0) -> list[Record]:
    return [Record(first + n, 2_000 + n, ConnectionChanged(seat, True)) for n in range(count)]


def hand(table: NewTable, number: int, **more: object) -> HandEntry:
    fields: dict = {
        "table_id": table.table_id,
        "hand_number": number,
        "rule_set": table.rule_set,
        "player_ids": table.player_ids,
        "labels": table.labels,
        "ended_ms": 1_000 * number,
        "ending": "win",
        "first_sequence": number,
        "last_sequence": number + 1,
    }
    return HandEntry(**{**fields, **more})


async def finish(journal: Journal, entry: HandEntry, sequence: int) -> None:
    await journal.append(entry.table_id, some(sequence), epoch=1, hands=[entry])


def action(number: int, table_id: str = "t1") -> OperatorAction:
    return OperatorAction(
        *(f"a{number}", table_id, 1_000 * number, "operator", "void_hand"),
        *("a tile was dropped", f"case {number}", "hand 3"),
    )


async def claimed(journal: Journal, owner: Owner, limit: int = 99, **more: Any) -> list[Claim]:
    return await journal.claim(owner.owner_id, PLAYS, limit, **more)
