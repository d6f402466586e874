"""The store in SQL, for every database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from . import records
from .core import Match, MatchState, NewTicket, Problem, Ticket, TicketState
from .records import LIVE_STATES, Db
from .rooms import parted
from .sql_privacy import SqlPrivacy
from .sql_shared import SqlShared
from .store import (
    UNREADABLE_VERSION,
    Changes,
    Ended,
    Joined,
    NotWaiting,
    SeatOffered,
    SomebodyLeaves,
    UnderWay,
)


class SqlStore(SqlShared, SqlPrivacy):
    """`Store` in a database; `close` it at the end."""

    async def join(self, new: NewTicket) -> Joined:
        """See `Store.join`."""

        def call(db: Db) -> Joined:
            first = records.read_replayed(db, new)
            if first is not None:
                return Joined(first, replayed=True)
            return Joined(records.insert_ticket(db, new), replayed=False)

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
            # First: what is changed from here on comes again the next time, rather than never.
            head = records.newest_change(db)
            tickets = records.read_tickets(db, "change > ? ORDER BY change", after)
            rooms = records.read_rooms(db, "change > ? ORDER BY change", after)
            return Changes(tickets, head, rooms)

        return await self._read(call)

    async def match(self, match_id: str) -> Match:
        """See `Store.match`."""
        return await self._read(lambda db: records.read_match(db, match_id))

    async def unfinished_matches(self) -> list[Match]:
        """See `Store.unfinished_matches`."""

        def call(db: Db) -> list[Match]:
            return records.read_matches(db, "state NOT IN ('seated', 'returned')")

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
            unreadable = ticket.version == UNREADABLE_VERSION
            if ticket.state is TicketState.WAITING or unreadable:
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
            if match.seat is not None and records.read_matches(
                db, "table_id = ? AND state NOT IN ('seated', 'returned')", match.table_id
            ):
                raise SeatOffered(match.table_id)
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

    async def seated(self, match_id: str, table_id: str, endpoint: str) -> Ended:
        """See `Store.seated`."""

        def call(db: Db) -> Ended:
            match = records.read_match(db, match_id)
            tickets = [records.read_ticket(db, ticket_id) for ticket_id in match.ticket_ids]
            if match.state is MatchState.SEATED:
                return Ended(tickets, replayed=True)
            records.expect(match, MatchState.ASKED)
            records.save_match(db, replace(match, state=MatchState.SEATED, table_id=table_id))
            records.note_met(db, match)
            seated = [
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
            return Ended(seated, replayed=False)

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

    async def returned(self, match_id: str) -> Ended:
        """See `Store.returned`."""

        def call(db: Db) -> Ended:
            match = records.read_match(db, match_id)
            tickets = [records.read_ticket(db, ticket_id) for ticket_id in match.ticket_ids]
            if match.state is MatchState.RETURNED:
                return Ended(tickets, replayed=True)
            records.expect(match, MatchState.RETURNING)
            records.save_match(db, replace(match, state=MatchState.RETURNED))
            out = [records.save_ticket(db, records.out_of(match, ticket)) for ticket in tickets]
            return Ended(out, replayed=False)

        return await self._write(call)

    async def at_table(self, table_id: str) -> list[Ticket]:
        """See `Store.at_table`."""
        return await self._read(lambda db: records.read_at_table(db, table_id))

    async def under_way(self, table_id: str) -> UnderWay | None:
        """See `Store.under_way`."""

        def call(db: Db) -> UnderWay | None:
            matches = records.read_matches(db, "table_id = ? AND state = 'seated'", table_id)
            if not matches:
                return None
            return UnderWay(
                pool_id=matches[0].pool_id,
                terms=matches[0].terms,
                tickets=records.read_at_table(db, table_id),
                sat=frozenset(seat.player_id for match in matches for seat in match.seats),
            )

        return await self._read(call)

    async def parted(self, table_id: str, player_ids: Collection[str]) -> list[Ticket]:
        """See `Store.parted`."""

        def call(db: Db) -> list[Ticket]:
            ended = []
            for ticket in records.read_at_table(db, table_id):
                for player_id in ticket.player_ids:
                    if player_id in player_ids:
                        records.free(db, player_id, ticket)
                if not records.players_of(db, ticket):
                    ended.append(
                        records.save_ticket(db, replace(ticket, state=TicketState.ENDED), parted)
                    )
            return ended

        return await self._write(call)

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
                f"DELETE FROM tickets WHERE queued_ms < ?"  # noqa: S608 # nosec B608 # a constant
                f" AND state NOT IN {LIVE_STATES} RETURNING number",
                before_ms,
            )
            db.rows(
                "DELETE FROM matches WHERE formed_ms < ? AND state IN ('seated', 'returned')"
                " AND NOT EXISTS (SELECT 1 FROM tickets WHERE tickets.match_id = matches.match_id)",
                before_ms,
            )
            db.rows("DELETE FROM met WHERE time_ms < ?", before_ms)
            db.rows("DELETE FROM losses WHERE (day + 2) * 86400000 < ?", before_ms)
            db.rows("DELETE FROM rooms WHERE state = 'closed' AND expires_ms < ?", before_ms)
            db.rows(
                "DELETE FROM rated_tables WHERE NOT EXISTS"
                " (SELECT 1 FROM matches WHERE matches.table_id = rated_tables.table_id)"
            )
            return len(gone)

        return await self._write(call)
