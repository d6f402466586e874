"""What replicas share in SQL besides: rooms, skills, pairs kept apart, leases, pauses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from . import records
from .core import Match, NewTicket, Ticket, TicketState
from .losses import Losses, reached
from .records import Db
from .rooms import NotReady, Room, UnknownRoom, match_of, start
from .skill import Skill, rated
from .sql_calls import SqlCalls
from .store import (
    Apart,
    FinishedHand,
    NoCode,
    Pause,
)


class SqlShared(SqlCalls):
    """The part of `Store` that is not about tickets and matches."""

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

    async def open_room(self, room: Room, codes: Sequence[str], new: NewTicket) -> Room:
        """See `Store.open_room`."""

        def call(db: Db) -> Room:
            opened = records.read_opened(db, room.opener_id, room.request_id)
            if opened is not None:
                return opened
            for code in codes:
                if not db.rows("SELECT 1 FROM rooms WHERE code = ? AND state <> 'closed'", code):
                    break
            else:
                raise NoCode
            opened = replace(room, code=code)
            records.insert_room(db, opened)
            records.insert_ticket(db, new)
            return opened

        return await self._write(call)

    async def opened_room(self, opener_id: str, request_id: str) -> Room | None:
        """See `Store.opened_room`."""
        return await self._read(lambda db: records.read_opened(db, opener_id, request_id))

    async def room(self, room_id: str) -> Room:
        """See `Store.room`."""
        return await self._read(lambda db: records.read_room(db, room_id))

    async def room_of_code(self, code: str) -> Room:
        """See `Store.room_of_code`."""

        def call(db: Db) -> Room:
            found = records.read_rooms(db, "code = ? AND state <> 'closed'", code)
            if not found:
                raise UnknownRoom(code, "code")
            return found[0]

        return await self._read(call)

    async def change_room(
        self, room_id: str, change: Callable[[Room], Room], new: NewTicket | None = None
    ) -> Room:
        """See `Store.change_room`."""

        def call(db: Db) -> Room:
            room = records.read_room(db, room_id)
            changed = change(room)
            if new is not None and len(changed.guests) > len(room.guests):
                records.insert_ticket(db, new)
            return records.save_room(db, room, changed)

        return await self._write(call)

    async def start_room(
        self, room_id: str, owner_id: str, match_id: str, now_ms: int
    ) -> tuple[Room, Match]:
        """See `Store.start_room`."""

        def call(db: Db) -> tuple[Room, Match]:
            room = records.read_room(db, room_id)
            if room.has_started and room.match_id is not None and room.owner_id == owner_id:
                return room, records.read_match(db, room.match_id)
            started = records.save_room(db, room, start(room, owner_id, match_id))
            tickets = {}
            for guest in started.guests:
                ticket = records.read_live(db, guest.player_id)
                if ticket is None or ticket.room_id != room_id:
                    raise NotReady(guest.player_id)
                tickets[guest.player_id] = ticket
            match = match_of(started, tickets, now_ms)
            records.save_match(db, match)
            for ticket in tickets.values():
                matched = replace(
                    ticket,
                    state=TicketState.MATCHED,
                    match_id=match_id,
                    members=records.seated_members(ticket, match),
                )
                records.save_ticket(db, matched)
            return started, match

        return await self._write(call)

    async def expired_rooms(self, now_ms: int) -> list[Room]:
        """See `Store.expired_rooms`."""
        return await self._read(
            lambda db: records.read_rooms(db, "state = 'open' AND expires_ms <= ?", now_ms)
        )

    async def skill(self, player_id: str, rule_set: str) -> Skill:
        """See `Store.skill`."""
        return await self._read(lambda db: records.read_skill(db, player_id, rule_set))

    async def cursor(self) -> str:
        """See `Store.cursor`."""

        def call(db: Db) -> str:
            ((cursor,),) = db.rows("SELECT place FROM finished_hands")
            return str(cursor)

        return await self._read(call)

    async def note(self, hand: FinishedHand, day: int) -> frozenset[str]:
        """See `Store.note`."""

        def call(db: Db) -> frozenset[str]:
            db.rows("UPDATE finished_hands SET place = ?", hand.cursor)
            matches = records.read_played(db, hand)
            if not matches:
                return frozenset()
            match = matches[0]
            bots = {seat.player_id for one in matches for seat in one.seats if seat.is_bot}
            bots.intersection_update(hand.player_ids)
            if match.rated and hand.nets and not bots:
                before = [records.read_skill(db, one, hand.rule_set) for one in hand.player_ids]
                for player_id, skill in zip(hand.player_ids, rated(before, hand.nets), strict=True):
                    records.save_skill(db, player_id, hand.rule_set, skill)
            capped = {
                (stake.currency, stake.book)
                for stake in match.terms.stakes
                if stake.loss_cap_per_day
            }
            for player_id, currency, book, amount in hand.lost:
                if (currency, book) in capped and player_id not in bots:
                    records.add_loss(db, player_id, day, (currency, book), amount)
            return frozenset(
                player_id
                for player_id in (hand.player_ids if capped else ())
                if player_id not in bots
                and reached(match.terms.stakes, records.read_losses(db, player_id, day))
            )

        return await self._write(call)

    async def losses(self, player_id: str, day: int) -> Losses:
        """See `Store.losses`."""
        return await self._read(lambda db: records.read_losses(db, player_id, day))

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
