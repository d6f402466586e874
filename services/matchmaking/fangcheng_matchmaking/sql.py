"""The store in SQL, for every database: one thread, which takes turns with other processes.

All calls go through the thread. What waits there is done in one transaction with one COMMIT, each
call in a savepoint of its own, so that a refused call takes nothing with it and many calls share
the price of the disk. A transaction that writes begins with a lock that all processes share: they
write one after the other, so that changes are numbered in the order in which they can be seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from fangcheng_kit.batching import Batcher, in_thread

from . import records
from .core import Match, MatchState, NewTicket, Problem, Ticket, TicketState
from .records import LIVE_STATES, Db
from .skill import Skill, rated
from .store import (
    Apart,
    Changes,
    Joined,
    LiveTicket,
    NotWaiting,
    Pause,
    RatedHand,
    SomebodyLeaves,
    StoreUnavailable,
)

T = TypeVar("T")

_LARGEST_BATCH = 256


@dataclass(frozen=True, slots=True)
class _Call:
    do: Callable[[Db], Any]
    writes: bool


class SqlStore:
    """`Store` in a database; `close` it at the end."""

    def __init__(self, db: Db, thread: ThreadPoolExecutor) -> None:
        """`db` was opened in the thread, and is used there alone."""
        self._db = db
        self._thread = thread
        self._calls: Batcher[_Call, Any] = Batcher(
            in_thread(self._commit_together, thread), most_items=_LARGEST_BATCH
        )

    async def close(self) -> None:
        """Waits for what was begun and closes the database."""
        await self._calls.close()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._db.close)
        self._thread.shutdown()

    async def join(self, new: NewTicket) -> Joined:
        """See `Store.join`."""

        def call(db: Db) -> Joined:
            first = records.read_replayed(db, new)
            if first is not None:
                return Joined(first, replayed=True)
            for player_id in new.player_ids:
                live = records.read_live(db, player_id)
                if live is not None:
                    raise LiveTicket(player_id, live)
            fields = {name: getattr(new, name) for name in NewTicket.__dataclass_fields__}
            ticket = Ticket(
                **fields,
                number=records.count_up(db, "number"),
                met=records.read_met(db, new.player_ids),
            )
            ticket = replace(ticket, apart=records.read_kept_from(db, new.player_ids))
            for player_id in new.player_ids:
                db.rows("INSERT INTO queued_players VALUES (?, ?)", player_id, ticket.number)
            db.rows(
                "INSERT INTO tickets (number, ticket_id, player_id, request_id, pool_id, queued_ms,"
                " state, change, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                ticket.number,
                ticket.ticket_id,
                ticket.player_id,
                ticket.request_id,
                ticket.pool_id,
                ticket.queued_ms,
                ticket.state.value,
                records.count_up(db, "change"),
                records.encoded(ticket),
            )
            return Joined(ticket, replayed=False)

        return await self._write(call)

    async def replay(self, new: NewTicket) -> Ticket | None:
        """See `Store.replay`."""
        return await self._read(lambda db: records.read_replayed(db, new))

    async def check(self) -> None:
        """See `Store.check`."""
        await self._write(lambda db: db.rows("SELECT 1 FROM tickets LIMIT 1"))

    async def ticket(self, ticket_id: str) -> Ticket:
        """See `Store.ticket`."""
        return await self._read(lambda db: records.read_ticket(db, ticket_id))

    async def live_ticket(self, player_id: str) -> Ticket | None:
        """See `Store.live_ticket`."""
        return await self._read(lambda db: records.read_live(db, player_id))

    async def live_tickets(self) -> Changes:
        """See `Store.live_tickets`."""

        def call(db: Db) -> Changes:
            tickets = records.read_tickets(db, f"state IN {LIVE_STATES} ORDER BY queued_ms, number")
            return Changes(tickets, records.newest_change(db))

        return await self._write(call)

    async def changes(self, after: int) -> Changes:
        """See `Store.changes`."""

        def call(db: Db) -> Changes:
            rows = db.rows(
                "SELECT change, record FROM tickets WHERE change > ? ORDER BY change", after
            )
            return Changes(
                [records.decoded(record) for _, record in rows], rows[-1][0] if rows else after
            )

        return await self._read(call)

    async def match(self, match_id: str) -> Match:
        """See `Store.match`."""
        return await self._read(lambda db: records.read_match(db, match_id))

    async def unfinished_matches(self) -> list[Match]:
        """See `Store.unfinished_matches`."""

        def call(db: Db) -> list[Match]:
            rows = db.rows(
                "SELECT record FROM matches WHERE state NOT IN ('seated', 'returned')"
                " ORDER BY formed_ms, match_id"
            )
            return [msgspec.json.decode(record, type=Match) for (record,) in rows]

        return await self._read(call)

    async def leave(self, ticket_id: str) -> Ticket:
        """See `Store.leave`."""

        def call(db: Db) -> Ticket:
            ticket = records.read_ticket(db, ticket_id)
            if ticket.state is TicketState.WAITING:
                return records.save_ticket(db, replace(ticket, state=TicketState.LEFT))
            if ticket.state is TicketState.MATCHED and not ticket.leaving:
                return records.save_ticket(db, replace(ticket, leaving=True))
            return ticket

        return await self._write(call)

    async def fail(self, ticket_id: str, problem: Problem) -> Ticket:
        """See `Store.fail`."""

        def call(db: Db) -> Ticket:
            ticket = records.read_ticket(db, ticket_id)
            if ticket.state is TicketState.WAITING:
                return records.save_ticket(
                    db, replace(ticket, state=TicketState.FAILED, problem=problem)
                )
            return ticket

        return await self._write(call)

    async def move(self, ticket_id: str, revision: int) -> Ticket:
        """See `Store.move`."""

        def call(db: Db) -> Ticket:
            ticket = records.read_ticket(db, ticket_id)
            if ticket.state is TicketState.WAITING and ticket.revision != revision:
                return records.save_ticket(db, replace(ticket, revision=revision))
            return ticket

        return await self._write(call)

    async def form(self, match: Match) -> list[Ticket]:
        """See `Store.form`."""

        def call(db: Db) -> list[Ticket]:
            if db.rows("SELECT 1 FROM matches WHERE match_id = ?", match.match_id):
                return records.read_tickets(db, "match_id = ? ORDER BY number", match.match_id)
            tickets = [records.read_ticket(db, ticket_id) for ticket_id in match.ticket_ids]
            elsewhere = [one for one in tickets if one.state is not TicketState.WAITING]
            if elsewhere:
                raise NotWaiting(elsewhere)
            records.save_match(db, replace(match, state=MatchState.FORMED))
            return [
                records.save_ticket(
                    db,
                    replace(
                        ticket,
                        state=TicketState.MATCHED,
                        match_id=match.match_id,
                        members=records.seated_members(ticket, match),
                    ),
                )
                for ticket in tickets
            ]

        return await self._write(call)

    async def held(self, match_id: str, hold_ids: Sequence[Sequence[str]]) -> Match:
        """See `Store.held`."""

        def call(db: Db) -> Match:
            match = records.read_match(db, match_id)
            if match.state is MatchState.HELD:
                return match
            records.expect(match, MatchState.FORMED)
            seats = tuple(
                replace(seat, hold_ids=tuple(ids))
                for seat, ids in zip(match.seats, hold_ids, strict=True)
            )
            match = replace(match, state=MatchState.HELD, seats=seats)
            for ticket_id in match.ticket_ids:
                ticket = records.read_ticket(db, ticket_id)
                records.save_ticket(
                    db, replace(ticket, members=records.seated_members(ticket, match))
                )
            return records.save_match(db, match)

        return await self._write(call)

    async def ask(self, match_id: str) -> Match:
        """See `Store.ask`."""

        def call(db: Db) -> Match:
            match = records.read_match(db, match_id)
            if match.state is MatchState.ASKED:
                return match
            records.expect(match, MatchState.FORMED, MatchState.HELD)
            if any(records.read_ticket(db, ticket_id).leaving for ticket_id in match.ticket_ids):
                raise SomebodyLeaves(match_id)
            return records.save_match(db, replace(match, state=MatchState.ASKED))

        return await self._write(call)

    async def seated(self, match_id: str, table_id: str, endpoint: str) -> list[Ticket]:
        """See `Store.seated`."""

        def call(db: Db) -> list[Ticket]:
            match = records.read_match(db, match_id)
            tickets = [records.read_ticket(db, ticket_id) for ticket_id in match.ticket_ids]
            if match.state is MatchState.SEATED:
                return tickets
            records.expect(match, MatchState.ASKED)
            records.save_match(db, replace(match, state=MatchState.SEATED, table_id=table_id))
            records.note_met(db, match)
            return [
                records.save_ticket(
                    db,
                    replace(
                        ticket,
                        state=TicketState.ASSIGNED,
                        leaving=False,
                        table_id=table_id,
                        endpoint=endpoint,
                    ),
                )
                for ticket in tickets
            ]

        return await self._write(call)

    async def give_up(self, match_id: str, failed: Mapping[str, Problem]) -> Match:
        """See `Store.give_up`."""

        def call(db: Db) -> Match:
            match = records.read_match(db, match_id)
            if match.state is MatchState.RETURNING:
                return match
            records.expect(match, MatchState.FORMED, MatchState.HELD, MatchState.ASKED)
            return records.save_match(
                db, replace(match, state=MatchState.RETURNING, failed=dict(failed))
            )

        return await self._write(call)

    async def returned(self, match_id: str) -> list[Ticket]:
        """See `Store.returned`."""

        def call(db: Db) -> list[Ticket]:
            match = records.read_match(db, match_id)
            tickets = [records.read_ticket(db, ticket_id) for ticket_id in match.ticket_ids]
            if match.state is MatchState.RETURNED:
                return tickets
            records.expect(match, MatchState.RETURNING)
            records.save_match(db, replace(match, state=MatchState.RETURNED))
            return [records.save_ticket(db, records.out_of(match, ticket)) for ticket in tickets]

        return await self._write(call)

    async def at_table(self, table_id: str) -> list[Ticket]:
        """See `Store.at_table`."""
        return await self._read(lambda db: records.read_at_table(db, table_id))

    async def table_closed(self, table_id: str) -> list[Ticket]:
        """See `Store.table_closed`."""

        def call(db: Db) -> list[Ticket]:
            return [
                records.save_ticket(db, replace(ticket, state=TicketState.ENDED))
                for ticket in records.read_at_table(db, table_id)
            ]

        return await self._write(call)

    async def forget(self, before_ms: int) -> int:
        """See `Store.forget`."""

        def call(db: Db) -> int:
            gone = db.rows(
                f"DELETE FROM tickets WHERE queued_ms < ?"  # noqa: S608 - a constant
                f" AND state NOT IN {LIVE_STATES} RETURNING number",
                before_ms,
            )
            db.rows(
                "DELETE FROM matches WHERE formed_ms < ? AND state IN ('seated', 'returned')"
                " AND NOT EXISTS (SELECT 1 FROM tickets WHERE tickets.match_id = matches.match_id)",
                before_ms,
            )
            db.rows("DELETE FROM met WHERE time_ms < ?", before_ms)
            db.rows(
                "DELETE FROM rated_tables WHERE NOT EXISTS"
                " (SELECT 1 FROM matches WHERE matches.table_id = rated_tables.table_id)"
            )
            return len(gone)

        return await self._write(call)

    async def keep_apart(self, pair: Apart) -> list[Ticket]:
        """See `Store.keep_apart`."""

        def call(db: Db) -> list[Ticket]:
            for one, other in records.directions(pair):
                db.rows(
                    "INSERT INTO apart VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    one,
                    other,
                    pair.origin,
                    pair.reason,
                    pair.case_id,
                    pair.time_ms,
                )
            return records.reconsider(db, pair)

        return await self._write(call)

    async def bring_together(self, pair: Apart) -> list[Ticket]:
        """See `Store.bring_together`."""

        def call(db: Db) -> list[Ticket]:
            for one, other in records.directions(pair):
                db.rows(
                    "DELETE FROM apart WHERE player_id = ? AND other_id = ? AND origin = ?",
                    one,
                    other,
                    pair.origin,
                )
            return records.reconsider(db, pair)

        return await self._write(call)

    async def apart(self, player_id: str) -> list[Apart]:
        """See `Store.apart`."""

        def call(db: Db) -> list[Apart]:
            rows = db.rows(
                "SELECT player_id, other_id, origin, reason, case_id, time_ms FROM apart"
                " WHERE player_id = ? ORDER BY other_id, origin",
                player_id,
            )
            names = ("player_id", "other_id", "origin", "reason", "case_id", "time_ms")
            return [Apart(**dict(zip(names, row, strict=True))) for row in rows]

        return await self._read(call)

    async def lease(self, owner: str, pool_ids: Collection[str], lease_ms: int) -> frozenset[str]:
        """See `Store.lease`."""

        def call(db: Db) -> frozenset[str]:
            now_ms = db.now_ms()
            taken = {
                pool_id
                for pool_id, whose, until_ms in db.rows(
                    "SELECT pool_id, owner, until_ms FROM leases"
                )
                if whose != owner and until_ms > now_ms
            }
            mine = frozenset(pool_ids) - taken
            for pool_id in sorted(mine):
                db.rows(
                    "INSERT INTO leases VALUES (?, ?, ?) ON CONFLICT (pool_id)"
                    " DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms",
                    pool_id,
                    owner,
                    now_ms + lease_ms,
                )
            return mine

        return await self._write(call)

    async def give_up_leases(self, owner: str) -> None:
        """See `Store.give_up_leases`."""
        await self._write(lambda db: db.rows("DELETE FROM leases WHERE owner = ?", owner))

    async def skill(self, player_id: str, rule_set: str) -> Skill:
        """See `Store.skill`."""
        return await self._read(lambda db: records.read_skill(db, player_id, rule_set))

    async def cursor(self) -> str:
        """See `Store.cursor`."""

        def call(db: Db) -> str:
            ((cursor,),) = db.rows("SELECT place FROM finished_hands")
            return str(cursor)

        return await self._read(call)

    async def rate(self, hand: RatedHand) -> bool:
        """See `Store.rate`."""

        def call(db: Db) -> bool:
            db.rows("UPDATE finished_hands SET place = ?", hand.cursor)
            if not records.counts(db, hand):
                return False
            before = [records.read_skill(db, one, hand.rule_set) for one in hand.player_ids]
            for player_id, skill in zip(hand.player_ids, rated(before, hand.nets), strict=True):
                records.save_skill(db, player_id, hand.rule_set, skill)
            return True

        return await self._write(call)

    async def pause(self, pool_id: str, pause: Pause | None) -> None:
        """See `Store.pause`."""

        def call(db: Db) -> None:
            db.rows("DELETE FROM pauses WHERE pool_id = ?", pool_id)
            if pause is not None:
                db.rows(
                    "INSERT INTO pauses VALUES (?, ?, ?, ?)",
                    pool_id,
                    int(pause.closed),
                    pause.reason,
                    pause.time_ms,
                )

        await self._write(call)

    async def pauses(self) -> dict[str, Pause]:
        """See `Store.pauses`."""

        def call(db: Db) -> dict[str, Pause]:
            rows = db.rows("SELECT pool_id, closed, reason, time_ms FROM pauses")
            return {
                pool_id: Pause(closed=bool(closed), reason=reason, time_ms=time_ms)
                for pool_id, closed, reason, time_ms in rows
            }

        return await self._read(call)

    async def _read(self, call: Callable[[Db], T]) -> T:
        result: T = await self._calls.submit(_Call(call, writes=False))
        return result

    async def _write(self, call: Callable[[Db], T]) -> T:
        result: T = await self._calls.submit(_Call(call, writes=True))
        return result

    def _commit_together(self, calls: Sequence[_Call]) -> list[Any]:
        answers: list[Any] = []
        db = self._db
        try:
            db.begin(writes=any(call.writes for call in calls))
            for call in calls:
                db.rows("SAVEPOINT before_call")
                try:
                    answers.append(call.do(db))
                except StoreUnavailable:
                    raise
                except Exception as error:  # that call's own; the others go on
                    db.rows("ROLLBACK TO SAVEPOINT before_call")
                    answers.append(error)
                db.rows("RELEASE SAVEPOINT before_call")
            db.commit()
        except BaseException:
            db.rollback()
            raise
        return answers
