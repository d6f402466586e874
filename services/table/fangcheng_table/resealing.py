"""Everything in a journal sealed with its first key: what was plain, and what older keys sealed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from .reads import MOST_SEQUENCE, Query, Reads
from .sealing import event_place, opening_place
from .store import Resealed

AT_ONCE = 2_000
"""Events in a transaction."""
_TABLES_AT_ONCE = 500


class Resealing(Reads):
    """The part of a journal that seals anew.

    Services may go on meanwhile: an event that is stored changes its form only, and where it was
    rewritten since it was read, as an opening may have been, nothing is done.
    """

    SET_BODY = "UPDATE events SET body = ? WHERE place = ? AND sequence = ? AND body = ?"
    """Values: body, place, sequence, and the body before."""

    @abstractmethod
    async def _execute(self, queries: Sequence[Query]) -> None:
        """All in one transaction."""

    async def reseal(self) -> Resealed:
        """See `store.Journal`."""
        done = await self._pass()
        more = await self._pass()  # what was being written meanwhile
        if more:
            return Resealed(done + more, (), in_use=True)
        rows = await self._fetch(
            Query("SELECT key_id FROM journal_keys WHERE key_id <> ?", (self._keys.first,))
        )
        gone = tuple(row[0] for row in rows)
        await self._execute(
            [Query("DELETE FROM journal_keys WHERE key_id = ?", (one,)) for one in gone]
        )
        return Resealed(done, gone, in_use=False)

    async def _pass(self) -> int:
        done, place = 0, 0
        while tables := await self._fetch(
            Query(
                "SELECT place, table_id FROM tables WHERE place > ? ORDER BY place LIMIT ?",
                (place, _TABLES_AT_ONCE),
            )
        ):
            for place, table_id in tables:
                queries = await self._stale(place, table_id)
                for first in range(0, len(queries), AT_ONCE):
                    some = queries[first : first + AT_ONCE]
                    await self._execute(some)
                    done += len(some)
        return done

    async def _stale(self, place: int, table_id: str) -> list[Query]:
        """What has to be written of a table."""
        keys, queries = self._keys, []
        events = await self._fetch(Query(self.EVENTS, (table_id, 0, MOST_SEQUENCE)))
        for sequence, _, body in events:
            if not keys.is_current(body):
                what = event_place(sequence)
                again = keys.seal(table_id, what, keys.open(table_id, what, body))
                queries.append(Query(self.SET_BODY, (again, place, sequence, body)))
        openings = await self._fetch(
            Query("SELECT sequence, state FROM openings WHERE place = ?", (place,))
        )
        for sequence, state in openings:
            if not keys.is_current(state):
                what = opening_place(sequence)
                again = keys.seal(table_id, what, keys.open(table_id, what, state))
                queries.append(Query(_SET_OPENING, (again, place, sequence, state)))
        return queries


_SET_OPENING = "UPDATE openings SET state = ? WHERE place = ? AND sequence = ? AND state = ?"
