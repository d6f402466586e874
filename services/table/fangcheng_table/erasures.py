"""Erasures in a journal, whichever database is below."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence

from fangcheng_kit.privacy import Erasure

from . import personal
from .errors import RequestIdReused
from .reads import Query, Reads
from .store import Rewriting

_ACTIONS = 500
_SET_REASON = "UPDATE operator_actions SET reason = ? WHERE place = ?"
_SET_DETAIL = "UPDATE operator_actions SET detail = ? WHERE place = ?"


class Erasures(Reads):
    """The part of `store.Journal` about personal data."""

    @abstractmethod
    async def _execute(self, queries: Sequence[Query]) -> None:
        """Executes statements in one transaction."""

    @abstractmethod
    async def _wipe(self) -> None:
        """Leaves nothing on disk of what was changed, as far as the database can."""

    @abstractmethod
    async def rewrite(self, table_id: str, change: Rewriting) -> int | None:
        """See `store.Journal`."""

    async def begin_erasure(self, erasure: Erasure) -> bool:
        """See `store.Journal`."""
        find = Query(
            "SELECT player_id, labels, keep_texts, reason, finished FROM erasures"
            " WHERE request_id = ?",
            (erasure.request_id,),
        )
        asked = (
            erasure.player_id,
            erasure.labels_digest,
            int(erasure.keep_texts),
            erasure.reason,
        )
        add = "INSERT INTO erasures VALUES (?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING"
        now_ms = time.time_ns() // 1_000_000
        await self._execute([Query(add, (erasure.request_id, *asked, now_ms))])
        (*before, finished) = (await self._fetch(find))[0]
        if tuple(before) != asked:
            raise RequestIdReused(erasure.request_id)
        return bool(finished)

    async def end_erasure(self, request_id: str) -> None:
        """See `store.Journal`."""
        await self._wipe()
        end = Query("UPDATE erasures SET finished = 1 WHERE request_id = ?", (request_id,))
        await self._execute([end])

    async def erasures(self) -> int:
        """See `store.Journal`."""
        rows = await self._fetch(
            Query("SELECT count(*) + coalesce(sum(finished), 0) FROM erasures", ())
        )
        return int(rows[0][0])

    async def erasures_of(self, player_id: str) -> Sequence[tuple[str, str, int]]:
        """See `store.Journal`."""
        rows = await self._fetch(
            Query(
                "SELECT request_id, reason, time_ms FROM erasures"
                " WHERE player_id = ? AND finished = 1 ORDER BY time_ms, request_id",
                (player_id,),
            )
        )
        return [(row[0], row[1], row[2]) for row in rows]

    async def erase_at(self, table_id: str, erasure: Erasure) -> bool:
        """See `store.Journal`."""
        changed = await self.rewrite(table_id, personal.rewriting(erasure))
        before: int | None = None
        while found := await self.operator_actions(table_id, before, _ACTIONS):
            before = found[-1].place
            # Only what goes is written: somebody else may be erased at this moment, elsewhere.
            queries = []
            for place, was in ((one.place, one.action) for one in found):
                action = personal.action_without(was, erasure)
                if action.reason != was.reason:
                    queries.append(Query(_SET_REASON, (action.reason, place)))
                if action.detail != was.detail:
                    queries.append(Query(_SET_DETAIL, (action.detail, place)))
            await self._execute(queries)
        return changed is not None
