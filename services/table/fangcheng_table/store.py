"""The journal's promise.

Every table has one sequence of events, numbered 1, 2, 3, … without a gap. What `create` and
`append` have returned for is on disk and survives the process; what failed has left nothing. An
event is stored once and never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .events import Event


@dataclass(frozen=True, slots=True)
class Record:
    """One event in its place."""

    sequence: int
    """Counts from 1 within its table."""
    time_ms: int
    """When it was handed over for storing: milliseconds since 1970; never falls within a table."""
    event: Event


@dataclass(frozen=True, slots=True)
class NewTable:
    """What is kept of a table beside its events, to find it by."""

    table_id: str
    request_id: str
    request: str
    """What the caller of CreateTable sent, in a canonical form."""
    rule_set: str
    player_ids: tuple[str, ...]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tables `find` is after."""

    include_closed: bool = False
    rule_set: str = ""
    labels: Mapping[str, str] | None = None
    player_id: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A table that `find` has found."""

    place: int
    """Where it stands in the order of creation; counts up."""
    table_id: str
    summary: bytes | None
    """Kept when it closed; None while it is open."""


class JournalError(Exception):
    """The journal did not take it; nothing was stored, unless it says so."""


class SequenceConflict(JournalError):
    """Another event stands in that place, or the one before it is missing: somebody else has
    written to this table, or an earlier append of ours has reached the disk after all.
    """


class Journal(Protocol):
    """Stores the events of tables."""

    async def create(self, table: NewTable, records: Sequence[Record]) -> NewTable:
        """Make a table with its first events.

        Answers the table that has this request id: `table` itself, or the one that was there
        before, and then nothing is stored.
        """

    async def append(
        self,
        table_id: str,
        records: Sequence[Record],
        *,
        closed: bytes | None = None,
        done: bool = False,
    ) -> None:
        """Add events to a table, all or none.

        The first record's sequence follows the table's last one, or this is a `SequenceConflict`.
        `closed`: the table has closed; its summary for `find`. `done`: nothing is left to do for
        it, it need not be loaded at the next start.
        """

    async def read(self, table_id: str) -> list[Record]:
        """All events of a table in their order; empty for an unknown table."""

    async def by_request(self, request_id: str) -> NewTable | None:
        """The table that was made by a request."""

    async def unfinished(self) -> list[str]:
        """Ids of the tables that are not done, oldest first."""

    async def find(self, wanted: Filter, before: int | None, limit: int) -> list[Found]:
        """Tables, newest first, `limit` at most, only those with a place below `before`."""

    async def check(self) -> None:
        """Write something, without effect; raises `JournalError` where nothing can be written."""

    async def close(self) -> None:
        """Write what was handed over, then let go of the database. Twice is once."""
