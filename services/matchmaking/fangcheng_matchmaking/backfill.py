"""Seats left at tables that go on, and who of the queue gets them.

The table service tells of the tables at which a seat waits (WatchTables), all of them whenever the
stream begins. That is only a hint: each of them is looked at, and again when an offer of ours has
ended, so that what is known here comes from the table and no lost message loses a seat. A table has
one offer at a time, so that two newcomers are chosen with regard to each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import grpc.aio

from fangcheng_client import explain

from .board import Board
from .core import Match, Pool, Problem, Terms, Ticket, Vacancy
from .matches import Backoff
from .matching import STEP_MS, Queue
from .partners import TableNow, Tables
from .store import Store

LOOK_SECONDS = 0.5
"""How often a replica looks whether it has pools whose tables are filled up."""

_SEAT_IS_GONE = frozenset({"SEAT_TAKEN", "TABLE_CLOSED", "UNKNOWN_TABLE"})


@dataclass(slots=True)
class _Waiting:
    """A seat that waits, and how far it was offered."""

    pool_id: str
    terms: Terms
    vacancy: Vacancy
    again_ms: int = 0
    """When it is offered again."""
    last: tuple[int, int] | None = None
    """Up to whom the line was looked at."""
    refused: set[str] = field(default_factory=set)
    """Players whom the table has refused."""


class Backfill:
    """The seats that wait, as this replica knows them. `watch` and `look` run beside each other."""

    def __init__(
        self,
        store: Store,
        board: Board,
        tables: Tables,
        *,
        free_players: Callable[[str], Awaitable[TableNow | None]],
        is_wanted: Callable[[], bool],
        clock_ms: Callable[[], int],
        backoff: Callable[[], Backoff],
        log: Any,
    ) -> None:
        """`free_players`: see `matches`; `is_wanted`: pools of this replica are filled up."""
        self._store = store
        self._board = board
        self._tables = tables
        self._free_players = free_players
        self._is_wanted = is_wanted
        self._clock_ms = clock_ms
        self._backoff = backoff
        self._log = log
        self._waiting: dict[str, _Waiting] = {}
        """By table."""
        self._busy: set[str] = set()
        """Tables that have an offer under way."""
        self._hinted: set[str] = set()
        """Tables that are to be looked at."""
        self._hint = asyncio.Event()

    async def watch(self) -> None:
        """Follows what the tables tell, until cancelled."""
        backoff = self._backoff()
        while True:
            seconds = LOOK_SECONDS
            try:
                if self._is_wanted():
                    async with aclosing(self._tables.vacancies()) as told:
                        async for changes in told:
                            backoff.reset()
                            self._note(changes)
                            if not self._is_wanted():
                                break
            except grpc.aio.AioRpcError as error:
                if not explain(error).ended_with_token:
                    self._log.warning("cannot watch for vacancies", problem=str(error))
                    seconds = backoff.next_seconds()
            # Of seats that are filled while no stream is open nobody tells.
            self._waiting.clear()
            await asyncio.sleep(seconds)

    async def look(self) -> None:
        """Looks at tables that have been hinted at, until cancelled."""
        backoff = self._backoff()
        while True:
            await self._hint.wait()
            self._hint.clear()
            for table_id in list(self._hinted):
                self._hinted.discard(table_id)
                try:
                    await self._look(table_id)
                    backoff.reset()
                except Exception as error:  # table, wallet or store; it is looked at again
                    self._look_at(table_id)
                    self._log.warning("cannot look at a vacancy", problem=str(error))
                    await asyncio.sleep(backoff.next_seconds())

    def take(self, queue: Queue, now_ms: int) -> list[tuple[Vacancy, Ticket]]:
        """Takes tickets out of a queue for seats that wait. Their tables are busy from then on."""
        taken = []
        for table_id, waiting in self._waiting.items():
            if now_ms < waiting.again_ms or not self._is_offered(table_id, waiting, queue.pool):
                continue
            if not len(queue) and not queue.standby:
                continue
            waiting.again_ms = now_ms + STEP_MS
            # Whom those who sit there avoid may have changed since.
            vacancy = replace(
                waiting.vacancy,
                tickets=tuple(self._board.newest(one) for one in waiting.vacancy.tickets),
                sat=waiting.vacancy.sat | waiting.refused,
            )
            ticket, waiting.last = queue.fill(vacancy, now_ms, waiting.last)
            if ticket is not None:
                self._busy.add(table_id)
                taken.append((vacancy, ticket))
        return taken

    def next_ms(self, queue: Queue) -> int | None:
        """When seats should be offered again to those who wait; None: to nobody now."""
        if not len(queue) and not queue.standby:
            return None
        due = [
            waiting.again_ms
            for table_id, waiting in self._waiting.items()
            if self._is_offered(table_id, waiting, queue.pool)
        ]
        return min(due, default=None)

    def not_formed(self, match: Match) -> None:
        """No offer came of a ticket that was taken; the seat is offered to others."""
        if match.seat is not None:
            self._busy.discard(match.table_id or "")

    def begun(self, match: Match) -> None:
        """A match is under way; with an offer of a seat its table is busy."""
        if match.seat is not None:
            self._busy.add(match.table_id or "")

    def refused(self, match: Match, problem: Problem) -> None:
        """The table has refused a player."""
        waiting = self._waiting.get(match.table_id or "")
        if waiting is not None and problem.reason not in _SEAT_IS_GONE:
            waiting.refused.update(seat.player_id for seat in match.seats)

    def ended(self, match: Match) -> None:
        """A match has ended, whichever way; of an offer the table is looked at before the next."""
        if match.seat is not None:
            self._look_at(match.table_id or "")
            self._busy.discard(match.table_id or "")

    def _is_offered(self, table_id: str, waiting: _Waiting, pool: Pool) -> bool:
        """Whether players of a pool, who have asked for just such a table, get its seat now."""
        if table_id in self._busy or table_id in self._hinted:
            return False
        return pool.backfill and (pool.pool_id, pool.terms) == (waiting.pool_id, waiting.terms)

    def _note(self, changes: Mapping[str, bool]) -> None:
        self._look_at(
            *(one for one, is_vacant in changes.items() if is_vacant or one in self._waiting)
        )

    def _look_at(self, *table_ids: str) -> None:
        """What has to be looked at: what is known of it may be wrong by now."""
        if table_ids:
            self._hinted.update(table_ids)
            self._hint.set()

    async def _look(self, table_id: str) -> None:
        table = await self._free_players(table_id)
        known = None if table is None else await self._store.under_way(table_id)
        if table_id in self._hinted:
            return  # it has changed meanwhile
        before = self._waiting.pop(table_id, None)
        if table is None or known is None or all(table.player_ids):
            return
        vacancy = Vacancy(
            table_id=table_id,
            seat=table.player_ids.index(""),
            player_ids=frozenset(table.player_ids),
            tickets=tuple(known.tickets),
            sat=known.sat,
            since_ms=self._clock_ms() if before is None else before.vacancy.since_ms,
        )
        self._waiting[table_id] = _Waiting(
            known.pool_id,
            known.terms,
            vacancy,
            refused=set() if before is None else before.refused,
        )
        self._board.changed.set()
