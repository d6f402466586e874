"""Takes matches through their steps, each repeated until its outcome is known.

    FORMED ──place holds──► HELD ──may nobody leave any more?──► ASKED ──create table──► SEATED
       │ refused              │ somebody leaves                   │ refused
       └──────────────────────┴───────────────► RETURNING ◄───────┘
                                                    └──release holds──► RETURNED

The step is stored before the next one begins, and every call carries the match's id as its key: a
process that was killed anywhere resumes with the step that is stored, and what it may have done
already is answered again. While a match is ASKED its table may exist, so that nobody can leave.

Two replicas may drive a match for a while, when one has lost its lease and does not know it yet.
The store lets one of them take each step. The other looks at the match before it repeats a call,
and gives back what it was given for a match that was given up meanwhile.

A match that offers a seat at a table under way takes the same steps; that table is asked for the
seat instead (SeatPlayer).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import grpc.aio

from fangcheng_kit import logs
from fangcheng_kit.tracing import OFF, Tracing

from .board import Board
from .core import Match, MatchState, Problem, TicketState
from .metrics import Metrics
from .partners import Refused, TableNow, Tables, Unanswered, Wallet
from .spans import driven
from .store import SomebodyLeaves, Store, StoreUnavailable, WrongStep

FIRST_BACKOFF_SECONDS = 0.05


class Backoff:
    """Pauses that grow while something fails, spread by chance so that not all return at once."""

    def __init__(self, longest_seconds: float, chance: random.Random) -> None:
        self._longest_seconds = longest_seconds
        self._chance = chance
        self._seconds = 0.0

    def next_seconds(self) -> float:
        """The next pause."""
        self._seconds = min(max(2 * self._seconds, FIRST_BACKOFF_SECONDS), self._longest_seconds)
        return self._seconds * self._chance.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It went well."""
        self._seconds = 0.0


class Matches:
    """The matches under way in this process."""

    def __init__(
        self,
        store: Store,
        board: Board,
        wallet: Wallet,
        tables: Tables,
        metrics: Metrics,
        *,
        clock_ms: Callable[[], int],
        chance: random.Random,
        longest_backoff_seconds: float,
        table_refused: Callable[[str], None],
        table_given: Callable[[str], None],
        seat_refused: Callable[[Match, Problem], None],
        log: Any,
        tracing: Tracing = OFF,
    ) -> None:
        """`table_refused` and `table_given` are told the pool, so that one that fails can pause."""
        self._store = store
        self._board = board
        self._wallet = wallet
        self._tables = tables
        self._metrics = metrics
        self._clock_ms = clock_ms
        self._chance = chance
        self._longest_backoff_seconds = longest_backoff_seconds
        self._table_refused = table_refused
        self._table_given = table_given
        self._seat_refused = seat_refused
        self._log = log
        self._tracing = tracing

    async def drive(self, match: Match) -> None:
        """Takes a match to its end, from wherever it stands."""
        logs.request_id.set(match.match_id)  # for what it calls, and writes
        with driven(self._tracing, match):
            await self._drive(match)

    async def _drive(self, match: Match) -> None:
        log = self._log.bind(match_id=match.match_id, pool_id=match.pool_id)
        backoff = Backoff(self._longest_backoff_seconds, self._chance)
        at: Match | None = match
        with self._metrics.unfinished.track_inprogress():
            while at is not None:
                now = at
                try:
                    at = await self._step(now)
                    backoff.reset()
                    continue
                except WrongStep:  # another replica was quicker
                    at = await self._now(now)
                    continue
                except Unanswered as error:
                    log.warning("no answer", problem=str(error))
                except Exception:  # a fault of ours in one match must not stop the others
                    log.exception("a step of a match failed")
                self._metrics.repeated()
                await asyncio.sleep(backoff.next_seconds())
                at = await self._now(now)  # another replica may have given it up meanwhile

    async def _now(self, match: Match) -> Match:
        try:
            return await self._store.match(match.match_id)
        except StoreUnavailable:
            return match  # its next step is refused again, or fails as the store does

    async def _step(self, match: Match) -> Match | None:
        """The next step; the match after it, or None where it has ended."""
        if match.state is MatchState.FORMED and match.terms.buy_ins:
            return await self._hold(match)
        if match.state in (MatchState.FORMED, MatchState.HELD):
            try:
                return await self._store.ask(match.match_id)
            except SomebodyLeaves:
                return await self._store.give_up(match.match_id, {})
        if match.state is MatchState.ASKED:
            return await self._seat(match)
        if match.state is MatchState.RETURNING:
            await self._return(match)
        return None

    async def _hold(self, match: Match) -> Match:
        try:
            holds = await self._wallet.place_holds(match)
        except Refused as refused:
            if not refused.ticket_ids:
                self._refused(match, refused.problem)
            failed = dict.fromkeys(refused.ticket_ids, refused.problem)
            return await self._store.give_up(match.match_id, failed)
        try:
            return await self._store.held(match.match_id, holds)
        except WrongStep:
            # Another replica drives the match too. If it has given up before these were placed,
            # nobody else knows of them.
            now = await self._store.match(match.match_id)
            if now.state in (MatchState.RETURNING, MatchState.RETURNED):
                for hold_id in {hold for seat in holds for hold in seat} - set(now.hold_ids):
                    await self._wallet.release(hold_id)
            raise

    async def _seat(self, match: Match) -> Match | None:
        give = self._tables.create if match.seat is None else self._tables.seat
        try:
            table_id, endpoint = await give(match)
        except Refused as refused:
            if match.seat is None:
                self._refused(match, refused.problem)
            else:
                self._seat_refused(match, refused.problem)
            return await self._store.give_up(match.match_id, {})
        try:
            ended = await self._store.seated(match.match_id, table_id, endpoint)
        except WrongStep:
            # Another replica was refused before this one was not, and has given the match up.
            await self._clear(match, table_id)
            raise
        self._board.put(*ended.tickets)
        self._table_given(match.pool_id)
        if ended.replayed:
            return None
        now_ms = self._clock_ms()
        players = [one for one in ended.tickets if not one.standby]
        waits = [(now_ms - one.queued_ms) / 1_000 for one in players for _ in one.members]
        self._board.note_seated(match.pool_id, now_ms, len(waits))
        self._metrics.seated(match.pool_id, waits, filled=match.filled)
        if match.seat is not None:
            self._metrics.backfilled(match.pool_id)
        self._log.info("seated", match_id=match.match_id, table_id=table_id, pool_id=match.pool_id)
        return None

    async def _clear(self, match: Match, table_id: str) -> None:
        """Has the players leave a table that none of them was told of."""
        self._log.warning("a table for nobody", match_id=match.match_id, table_id=table_id)
        for seat in match.seats:
            try:
                await self._tables.leave(table_id, seat.player_id)
            except grpc.aio.AioRpcError as error:  # then it closes as one that nobody comes to
                self._log.warning("cannot leave a table", table_id=table_id, problem=str(error))

    async def _return(self, match: Match) -> None:
        for hold_id in match.hold_ids:
            await self._wallet.release(hold_id)
        ended = await self._store.returned(match.match_id)
        self._board.put(*ended.tickets)
        if ended.replayed:
            return
        self._metrics.returned(match.pool_id)
        for ticket in ended.tickets:
            if ticket.state is TicketState.FAILED and ticket.problem is not None:
                self._metrics.failed(ticket.pool_id, ticket.problem.reason)
        self._log.info(
            "returned", match_id=match.match_id, pool_id=match.pool_id, failed=len(match.failed)
        )

    def _refused(self, match: Match, problem: Problem) -> None:
        # No ticket is at fault: the pool's terms are, or what the others make of them.
        self._table_refused(match.pool_id)
        self._log.error(
            "match refused",
            match_id=match.match_id,
            pool_id=match.pool_id,
            reason=problem.reason,
            problem=problem.message,
        )


async def free_players(
    table_id: str, tables: Tables, wallet: Wallet, store: Store, board: Board
) -> TableNow | None:
    """Frees players who do not sit at a table any longer, all of them where it has closed.

    The table as it goes on; None: it does not. Raises AioRpcError, Unanswered.

    A table releases holds by itself. Of a table that nobody knows we do it.
    """
    # First the tickets: whoever is assigned to the table by now sits there, or has.
    tickets = await store.at_table(table_id)
    table = await tables.look(table_id)
    if table is not None and table.is_open:
        seated = {one for ticket in tickets for one in ticket.player_ids}
        gone = seated.difference(table.player_ids)
        if gone:
            board.put(*await store.parted(table_id, gone))
        return table
    if table is None:
        for ticket in tickets:
            for member in ticket.members:
                for hold_id in member.hold_ids:
                    await wallet.release(hold_id)
    board.put(*await store.table_closed(table_id))
    return None
