"""Erasures in a journal, whichever database is below."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Sequence

from fangcheng_kit.privacy import Erasure

from . import personal
from .errors import RequestIdReused, TableArchived
from .reads import Query, Reads, new_table
from .rewriting import DELETE_LABEL, TABLE, UPDATE_TABLE
from .store import Rewriting
from .writes import ADD_LABEL

_ACTIONS = 500


class Erasures(Reads):
    """The part of `store.Journal` about personal data."""

    @abstractmethod
    async def _execute(self, queries: Sequence[Query]) -> None:
        """Executes statements in one transaction."""

    @abstractmethod
    async def _wipe(self) -> None:
        """Leaves nothing on disk of what was changed, as far as the database can."""

    @abstractmethod
    async def rewrite(self, table_id: str, change: Rewriting) -> int:
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
        change = personal.rewriting(erasure)
        try:
            await self.rewrite(table_id, change)
            archived = False
        except TableArchived:
            await self._execute(await self._kept_beside(table_id, change))
            archived = True
        before: int | None = None
        while found := await self.operator_actions(table_id, before, _ACTIONS):
            before = found[-1].place
            masked = [(one, personal.action_without(one.action, erasure)) for one in found]
            await self._execute(
                [
                    Query(
                        "UPDATE operator_actions SET reason = ?, detail = ? WHERE place = ?",
                        (action.reason, action.detail, one.place),
                    )
                    for one, action in masked
                    if action != one.action
                ]
            )
        return not archived

    async def _kept_beside(self, table_id: str, change: Rewriting) -> list[Query]:
        """What changes of a table whose events are in an archive."""
        rows = await self._fetch(
            Query("SELECT place, summary FROM tables WHERE table_id = ?", (table_id,))
        )
        place, summary = rows[0]
        old = new_table((await self._fetch(Query(TABLE, (place,))))[0])
        new = change.table(old)
        gone = set(old.labels.items()) - set(new.labels.items())
        added = set(new.labels.items()) - set(old.labels.items())
        shown = None if summary is None else change.summary(summary)
        return [
            Query(UPDATE_TABLE, (new.request, json.dumps(dict(new.labels)), shown, place)),
            *(Query(DELETE_LABEL, (*label, place)) for label in sorted(gone)),
            *(Query(ADD_LABEL, (*label, place)) for label in sorted(added)),
        ]
