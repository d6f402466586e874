"""Tickets and matches as rows, read and written within a transaction of the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import msgspec

from .core import LIVE, Match, MatchState, Member, NewTicket, Ticket, TicketState
from .losses import Losses, Unit
from .rooms import Room, UnknownRoom, after
from .skill import Skill
from .store import (
    UNREADABLE,
    UNREADABLE_VERSION,
    Apart,
    FinishedHand,
    LiveTicket,
    RequestReused,
    UnknownMatch,
    UnknownTicket,
    WrongStep,
)

LIVE_STATES = "('waiting', 'matched', 'assigned')"


class Db(Protocol):
    """A connection, used by one thread. A failure of the database raises StoreUnavailable."""

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Executes a statement, its parameters marked `?`; the rows that it returns."""

    def begin(self, *, writes: bool) -> None:
        """Begins a transaction. One that writes keeps all others from writing."""

    def commit(self) -> None:
        """When it returns, everything is on disk."""

    def rollback(self) -> None:
        """Undoes the transaction, if there is one; never fails."""

    def wipe(self) -> None:
        """Leaves nothing on disk of what was changed, as far as the database can."""

    def now_ms(self) -> int:
        """The clock of the database, the same for all processes; milliseconds since 1970."""

    def close(self) -> None:
        """Closes the connection."""


def count_up(db: Db, name: str) -> int:
    """The next number of a kind, `change` or `number`."""
    ((value,),) = db.rows(f"UPDATE heads SET {name} = {name} + 1 RETURNING {name}")  # noqa: S608 # nosec B608 # a constant
    return int(value)


def newest_change(db: Db) -> int:
    """The number of the last change."""
    ((value,),) = db.rows("SELECT change FROM heads")
    return int(value)


def read_ticket(db: Db, ticket_id: str) -> Ticket:
    """The ticket; raises UnknownTicket."""
    found = read_tickets(db, "ticket_id = ?", ticket_id)
    if not found:
        raise UnknownTicket(ticket_id)
    return found[0]


def read_replayed(db: Db, new: NewTicket) -> Ticket | None:
    """The ticket of the same request, if it was made before; raises RequestReused."""
    found = read_tickets(db, "player_id = ? AND request_id = ?", new.player_id, new.request_id)
    if not found:
        return None
    if not found[0].asks_the_same(new):
        raise RequestReused(found[0])
    return found[0]


def read_live(db: Db, player_id: str) -> Ticket | None:
    """The player's live ticket."""
    found = read_tickets(
        db, "number = (SELECT number FROM queued_players WHERE player_id = ?)", player_id
    )
    return found[0] if found else None


def read_at_table(db: Db, table_id: str) -> list[Ticket]:
    """The table's assigned tickets, the oldest first."""
    return read_tickets(db, "table_id = ? AND state = 'assigned' ORDER BY number", table_id)


def read_tickets(db: Db, where: str, *values: object) -> list[Ticket]:
    """The tickets that a condition selects."""
    rows = db.rows(f"SELECT {_COLUMNS} FROM tickets WHERE {where}", *values)  # noqa: S608 # nosec B608 # written here
    return [_read(*row) for row in rows]


_COLUMNS = "number, ticket_id, player_id, request_id, pool_id, queued_ms, record"


def _read(
    number: int,
    ticket_id: str,
    player_id: str,
    request_id: str,
    pool_id: str,
    queued_ms: int,
    record: str,
) -> Ticket:
    """The ticket of a row. One that nobody can read keeps no other waiting: it has failed."""
    try:
        return msgspec.json.decode(record, type=Ticket)
    except msgspec.DecodeError:
        return Ticket(
            ticket_id=ticket_id,
            request_id=request_id,
            members=(Member(player_id=player_id),),
            pool_id=pool_id,
            queued_ms=queued_ms,
            number=number,
            version=UNREADABLE_VERSION,
            state=TicketState.FAILED,
            problem=UNREADABLE,
        )


def save_ticket(
    db: Db, ticket: Ticket, change_room: Callable[[Room, Ticket], Room] = after
) -> Ticket:
    """Stores a ticket that has changed, and what becomes of its room; one version newer."""
    newer = replace(ticket, version=ticket.version + 1)
    db.rows(
        "UPDATE tickets SET state = ?, match_id = ?, table_id = ?, change = ?, record = ?"
        " WHERE number = ?",
        newer.state.value,
        newer.match_id,
        newer.table_id,
        count_up(db, "change"),
        encoded(newer),
        newer.number,
    )
    if newer.state not in LIVE:
        db.rows("DELETE FROM queued_players WHERE number = ?", newer.number)
    if newer.room_id:
        room = read_room(db, newer.room_id)
        save_room(db, room, change_room(room, newer))
    return newer


def free(db: Db, player_id: str, ticket: Ticket) -> None:
    """A player may queue again, whatever becomes of the ticket."""
    db.rows(
        "DELETE FROM queued_players WHERE player_id = ? AND number = ?", player_id, ticket.number
    )


def players_of(db: Db, ticket: Ticket) -> list[str]:
    """The players of whom it is the live ticket: not those who have left its table."""
    return [
        player_id
        for player_id in ticket.player_ids
        if db.rows(
            "SELECT 1 FROM queued_players WHERE player_id = ? AND number = ?",
            player_id,
            ticket.number,
        )
    ]


def insert_ticket(db: Db, new: NewTicket) -> Ticket:
    """Stores a new ticket, WAITING; raises LiveTicket."""
    for player_id in new.player_ids:
        live = read_live(db, player_id)
        if live is not None:
            raise LiveTicket(player_id, live)
    fields = {name: getattr(new, name) for name in NewTicket.__dataclass_fields__}
    ticket = Ticket(
        **fields,
        number=count_up(db, "number"),
        met=read_met(db, new.player_ids),
        apart=read_kept_from(db, new.player_ids),
    )
    for player_id in new.player_ids:
        db.rows(
            # Whoever is in there has no live ticket: it is gone from the database.
            "INSERT INTO queued_players VALUES (?, ?) ON CONFLICT (player_id)"
            " DO UPDATE SET number = excluded.number",
            player_id,
            ticket.number,
        )
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
        count_up(db, "change"),
        encoded(ticket),
    )
    return ticket


def read_rooms(db: Db, where: str, *values: object) -> list[Room]:
    """The rooms that a condition selects."""
    rows = db.rows(f"SELECT record FROM rooms WHERE {where}", *values)  # noqa: S608 # nosec B608 # written here
    return [msgspec.json.decode(record, type=Room) for (record,) in rows]


def read_room(db: Db, room_id: str) -> Room:
    """The room; raises UnknownRoom."""
    found = read_rooms(db, "room_id = ?", room_id)
    if not found:
        raise UnknownRoom(room_id)
    return found[0]


def read_opened(db: Db, opener_id: str, request_id: str) -> Room | None:
    """The room that a request has opened, if it was made before."""
    found = read_rooms(db, "opener_id = ? AND request_id = ?", opener_id, request_id)
    return found[0] if found else None


def insert_room(db: Db, room: Room) -> None:
    """Stores a new room."""
    db.rows(
        "INSERT INTO rooms VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        room.room_id,
        room.code,
        room.opener_id,
        room.request_id,
        room.state.value,
        room.expires_ms,
        count_up(db, "change"),
        encoded(room),
    )


def save_room(db: Db, before: Room, room: Room) -> Room:
    """Stores a room that may have changed; as it is now."""
    if room == before:
        return before
    room = replace(room, version=before.version + 1)
    db.rows(
        "UPDATE rooms SET state = ?, expires_ms = ?, change = ?, record = ? WHERE room_id = ?",
        room.state.value,
        room.expires_ms,
        count_up(db, "change"),
        encoded(room),
        room.room_id,
    )
    return room


def seated_members(ticket: Ticket, match: Match) -> tuple[Member, ...]:
    """The members of a ticket with their seats and holds in a match."""
    first = match.seat or 0
    seats = {one.player_id: (seat, one.hold_ids) for seat, one in enumerate(match.seats, first)}
    return tuple(
        replace(member, seat=seats[member.player_id][0], hold_ids=seats[member.player_id][1])
        for member in ticket.members
    )


def out_of(match: Match, ticket: Ticket) -> Ticket:
    """A ticket as it is when its match has fallen through."""
    problem = match.failed.get(ticket.ticket_id)
    if problem is not None:
        state = TicketState.FAILED
    else:
        state = TicketState.LEFT if ticket.leaving else TicketState.WAITING
    return replace(
        ticket,
        state=state,
        problem=problem,
        leaving=False,
        match_id=None,
        members=tuple(replace(one, seat=None, hold_ids=()) for one in ticket.members),
    )


def read_match(db: Db, match_id: str) -> Match:
    """The match; raises UnknownMatch."""
    rows = db.rows("SELECT record FROM matches WHERE match_id = ?", match_id)
    if not rows:
        raise UnknownMatch(match_id)
    return msgspec.json.decode(rows[0][0], type=Match)


def read_matches(db: Db, where: str, *values: object) -> list[Match]:
    """The matches that a condition selects, the oldest first."""
    rows = db.rows(
        f"SELECT record FROM matches WHERE {where} ORDER BY formed_ms, match_id",  # noqa: S608 # nosec B608 # written here
        *values,
    )
    return [msgspec.json.decode(record, type=Match) for (record,) in rows]


def save_match(db: Db, match: Match) -> Match:
    """Stores a match, new or changed."""
    db.rows(
        "INSERT INTO matches (match_id, pool_id, state, formed_ms, table_id, record)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (match_id) DO UPDATE SET state = excluded.state,"
        " table_id = excluded.table_id, record = excluded.record",
        match.match_id,
        match.pool_id,
        match.state.value,
        match.formed_ms,
        match.table_id,
        encoded(match),
    )
    return match


def expect(match: Match, *states: MatchState) -> None:
    """Raises WrongStep unless the match is in one of these states."""
    if match.state not in states:
        raise WrongStep(f"match {match.match_id} is {match.state}")


def note_met(db: Db, match: Match) -> None:
    """The players of a match have met, and who sat at its table; bots are met by nobody."""
    now_ms = db.now_ms()
    newcomers = {seat.player_id for seat in match.seats if not seat.is_bot}
    there: set[str] = set()
    if match.seat is not None:
        for ticket in read_at_table(db, match.table_id or ""):
            there.update(() if ticket.is_bot else players_of(db, ticket))
    for player_id in sorted(newcomers | there):
        # Whom those met who sat there before them is what they remember of the same table.
        before = read_met(db, [player_id]) if player_id in there else set[str]()
        others = before | newcomers | (there if player_id in newcomers else set())
        db.rows(
            "INSERT INTO met VALUES (?, ?, ?) ON CONFLICT (player_id) DO UPDATE"
            " SET player_ids = excluded.player_ids, time_ms = excluded.time_ms",
            player_id,
            encoded(sorted(others - {player_id})),
            now_ms,
        )


def read_skill(db: Db, player_id: str, rule_set: str) -> Skill:
    """A player's skill; a beginner's where nothing is known."""
    rows = db.rows(
        "SELECT mu, sigma, hands FROM skills WHERE player_id = ? AND rule_set = ?",
        player_id,
        rule_set,
    )
    return Skill(*rows[0]) if rows else Skill()


def read_played(db: Db, hand: FinishedHand) -> list[Match]:
    """The matches by which players came to the table of a hand; none: it is not ours, or was noted.

    The first had the table made.
    """
    matches = read_matches(db, "table_id = ? AND state = 'seated'", hand.table_id)
    is_new = matches and db.rows(
        "INSERT INTO rated_tables VALUES (?, ?) ON CONFLICT (table_id) DO UPDATE"
        " SET hand_number = excluded.hand_number"
        " WHERE rated_tables.hand_number < excluded.hand_number RETURNING table_id",
        hand.table_id,
        hand.number,
    )
    return matches if is_new else []


def add_loss(db: Db, player_id: str, day: int, unit: Unit, amount: int) -> None:
    """Adds to what a player has lost on a day."""
    db.rows(
        "INSERT INTO losses VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (player_id, day, currency, book) DO UPDATE"
        " SET lost = losses.lost + excluded.lost",
        player_id,
        day,
        *unit,
        amount,
    )


def read_losses(db: Db, player_id: str, day: int) -> Losses:
    """What a player has lost on a day."""
    rows = db.rows(
        "SELECT currency, book, lost FROM losses WHERE player_id = ? AND day = ?", player_id, day
    )
    return {(currency, book): int(lost) for currency, book, lost in rows}


def save_skill(db: Db, player_id: str, rule_set: str, skill: Skill) -> None:
    """Stores a player's skill."""
    db.rows(
        "INSERT INTO skills VALUES (?, ?, ?, ?, ?) ON CONFLICT (player_id, rule_set) DO UPDATE"
        " SET mu = excluded.mu, sigma = excluded.sigma, hands = excluded.hands",
        player_id,
        rule_set,
        skill.mu,
        skill.sigma,
        skill.hands,
    )


def read_met(db: Db, player_ids: Sequence[str]) -> frozenset[str]:
    """Whom these players met at their last tables, but for each other."""
    met: set[str] = set()
    for player_id in player_ids:
        for (others,) in db.rows("SELECT player_ids FROM met WHERE player_id = ?", player_id):
            met.update(msgspec.json.decode(others, type=list[str]))
    return frozenset(met.difference(player_ids))


def read_kept_from(db: Db, player_ids: Sequence[str]) -> frozenset[str]:
    """From whom these players are kept apart, but for each other."""
    apart: set[str] = set()
    for player_id in player_ids:
        rows = db.rows("SELECT other_id FROM apart WHERE player_id = ?", player_id)
        apart.update(other for (other,) in rows)
    return frozenset(apart.difference(player_ids))


def directions(pair: Apart) -> list[tuple[str, str]]:
    """Who is kept from whom."""
    one, other = pair.player_id, pair.other_id
    return [(one, other)] if pair.origin == "player" else [(one, other), (other, one)]


def reconsider(db: Db, pair: Apart) -> list[Ticket]:
    """Notes on live tickets who is kept apart now: also where another may come to their table."""
    changed = []
    for player_id in (pair.player_id, pair.other_id):
        ticket = read_live(db, player_id)
        if ticket is None or ticket.room_id:
            continue
        apart = read_kept_from(db, ticket.player_ids)
        if apart != ticket.apart:
            changed.append(save_ticket(db, replace(ticket, apart=apart)))
    return changed


def encoded(value: object) -> str:
    """A value as JSON."""
    # Sets in one order, so that what is equal is stored the same.
    return msgspec.json.encode(value, order="deterministic").decode()
