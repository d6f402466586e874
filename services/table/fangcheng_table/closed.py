"""Closed tables in memory: each for as long as nobody is erased after it was read."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import Generic, TypeVar

from .store import Journal, JournalError

Table = TypeVar("Table")


class ClosedTables(Generic[Table]):
    """The tables by their ids; of too many, those that were asked for longest ago go."""

    def __init__(self, journal: Journal, most: int) -> None:
        self._journal = journal
        self._most = most
        self._tables: OrderedDict[str, Table] = OrderedDict()
        self._erasures = 0
        """Of the journal, when the tables were known to have nothing that is erased."""

    async def erasures(self) -> int:
        """The journal's erasures by now, for `put`; where there are new ones, all tables go."""
        with contextlib.suppress(JournalError):  # then what is known is all there is
            erasures = await self._journal.erasures()
            if erasures != self._erasures:
                self._tables.clear()
                self._erasures = erasures
        return self._erasures

    async def get(self, table_id: str) -> Table | None:
        """A table as it may be shown."""
        if table_id not in self._tables:
            return None
        await self.erasures()
        found = self._tables.get(table_id)
        if found is not None:
            self._tables.move_to_end(table_id)
        return found

    def put(self, table_id: str, table: Table, erasures: int | None = None) -> None:
        """Keep a table, unless it may have been read before an erasure.

        `erasures`: as they were before it was read; None: it was played here.
        """
        if erasures is not None and erasures != self._erasures:
            return
        self._tables[table_id] = table
        while len(self._tables) > self._most:
            self._tables.popitem(last=False)
