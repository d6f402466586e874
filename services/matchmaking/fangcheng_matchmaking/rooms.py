"""Private rooms: four who know each other meet by a code, choose their seats, and start.

Pure: a room and what somebody wants go in, the room as it is then comes out, or a refusal. Whoever
is in a room has a live ticket of the room, so that nobody is in a room and a queue, or in two
rooms, at once; and what brings four tickets of a queue to a table brings those of a room there.

::

    OPEN ──start──► STARTING ──► PLAYING ──► CLOSED (its table closed)
      ▲                │
      └────────────────┘ the table could not be had: whoever it failed for is out, nobody is ready
    OPEN ──everybody left, or its time is over──► CLOSED
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from .core import SEATS, Match, MatchSeat, OptionValue, Terms, Ticket, TicketState


class RoomState(StrEnum):
    """Where a room stands."""

    OPEN = "open"
    STARTING = "starting"
    PLAYING = "playing"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A kind of room that players may open."""

    template_id: str
    name: str
    terms: Terms
    choices: Mapping[str, tuple[OptionValue, ...]] = field(default_factory=dict)
    """Options that whoever opens a room may choose, and among what."""

    def chosen(self, options: Mapping[str, OptionValue]) -> Terms:
        """The terms with these options; raises NoChoice."""
        for name, value in options.items():
            offered = [(type(one), one) for one in self.choices.get(name, ())]
            if (type(value), value) not in offered:
                raise NoChoice(name)
        return replace(self.terms, options={**self.terms.options, **options})


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A player in a room."""

    player_id: str
    profile: bytes = b""
    seat: int
    ready: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A private room."""

    room_id: str
    code: str
    """Eight digits; another room may have them once this one is closed."""
    request_id: str
    """Of whoever opened it; a repeat is answered with the room."""
    opener_id: str
    template_id: str
    terms: Terms
    labels: Mapping[str, str] = field(default_factory=dict)
    guests: tuple[Guest, ...] = ()
    """In the order in which they came; the first is the owner."""
    turned_out: frozenset[str] = frozenset()
    """Players who were turned out: they do not come back."""
    state: RoomState = RoomState.OPEN
    match_id: str | None = None
    table_id: str | None = None
    endpoint: str | None = None
    expires_ms: int = 0
    """When it closes, unless it has started."""
    version: int = 1
    """Counts its changes."""

    @property
    def owner_id(self) -> str:
        """Who may start it and turn others out; empty: nobody is left."""
        return self.guests[0].player_id if self.guests else ""

    @property
    def has_started(self) -> bool:
        """It is on its way to its table, or its players are there."""
        return self.state in (RoomState.STARTING, RoomState.PLAYING)

    def guest(self, player_id: str) -> Guest | None:
        """The player, if he is in the room."""
        return next((one for one in self.guests if one.player_id == player_id), None)


class RoomRefusal(Exception):
    """The root of what cannot be done in a room now."""


class NoChoice(RoomRefusal):
    """The option is not the players' to choose, or not so."""


class UnknownRoom(RoomRefusal):
    """No such room, or not for this player."""

    def __init__(self, what: str, field: str = "room_id") -> None:
        super().__init__(what)
        self.field = field
        """Of the request, which says what is unknown."""


class RoomStarted(RoomRefusal):
    """The room has started, or is closed."""


class RoomFull(RoomRefusal):
    """Four are in it."""


class SeatTaken(RoomRefusal):
    """Another sits there."""


class TurnedOut(RoomRefusal):
    """The owner has turned this player out."""


class NotTheOwner(RoomRefusal):
    """Only the owner may do that."""


class NotReady(RoomRefusal):
    """A seat is empty, or a player is not ready."""


def come(room: Room, player_id: str, profile: bytes) -> Room:
    """The player takes the first empty seat; who is in the room stays where he is."""
    if room.guest(player_id) is not None:
        return room
    _expect_open(room)
    if player_id in room.turned_out:
        raise TurnedOut(player_id)
    empty = sorted(set(range(SEATS)) - {one.seat for one in room.guests})
    if not empty:
        raise RoomFull(room.room_id)
    guest = Guest(player_id=player_id, profile=profile, seat=empty[0])
    return replace(room, guests=(*room.guests, guest))


def sit(room: Room, player_id: str, seat: int) -> Room:
    """The player takes another seat, and has to say anew that he is ready."""
    guest = _guest(room, player_id)
    if guest.seat == seat:
        return room
    _expect_open(room)
    if any(one.seat == seat for one in room.guests):
        raise SeatTaken(str(seat))
    return _with(room, replace(guest, seat=seat, ready=False))


def say_ready(room: Room, player_id: str, ready: bool) -> Room:
    """The player is ready, or is not any more."""
    guest = _guest(room, player_id)
    if guest.ready == ready:
        return room
    _expect_open(room)
    return _with(room, replace(guest, ready=ready))


def turn_out(room: Room, owner_id: str, player_id: str) -> Room:
    """The owner does not want the player, who does not come back. His ticket takes him out."""
    _guest(room, owner_id)
    if owner_id != room.owner_id or player_id == owner_id:
        raise NotTheOwner(owner_id)
    if player_id in room.turned_out:
        return room
    if room.guest(player_id) is None:
        raise UnknownRoom(room.room_id, "player_id")
    _expect_open(room)
    return replace(room, turned_out=room.turned_out | {player_id})


def start(room: Room, owner_id: str, match_id: str) -> Room:
    """The owner starts the room with its four, who are ready; the owner is so by starting."""
    _guest(room, owner_id)
    if owner_id != room.owner_id:
        raise NotTheOwner(owner_id)
    _expect_open(room)
    if len(room.guests) < SEATS or not all(one.ready for one in room.guests[1:]):
        raise NotReady(room.room_id)
    return replace(room, state=RoomState.STARTING, match_id=match_id)


def match_of(room: Room, tickets: Mapping[str, Ticket], now_ms: int) -> Match:
    """The match of a room that starts: everybody sits where he has chosen to."""
    guests = sorted(room.guests, key=lambda one: one.seat)
    owner_seat = room.guests[0].seat
    fees = tuple(replace(fee, seat=owner_seat) if fee.by_owner else fee for fee in room.terms.fees)
    return Match(
        match_id=room.match_id or "",
        pool_id="",
        terms=replace(room.terms, fees=fees),
        labels=room.labels,
        formed_ms=now_ms,
        seats=tuple(
            MatchSeat(
                ticket_id=tickets[one.player_id].ticket_id,
                player_id=one.player_id,
                profile=one.profile,
            )
            for one in guests
        ),
    )


def after(room: Room, ticket: Ticket) -> Room:
    """The room after a change of one of its tickets."""
    if ticket.state in (TicketState.LEFT, TicketState.FAILED):
        guests = tuple(one for one in room.guests if one.player_id != ticket.player_id)
        return replace(room, guests=guests, state=room.state if guests else RoomState.CLOSED)
    if ticket.state is TicketState.ASSIGNED:
        return replace(
            room, state=RoomState.PLAYING, table_id=ticket.table_id, endpoint=ticket.endpoint
        )
    if ticket.state is TicketState.ENDED:
        return replace(room, state=RoomState.CLOSED)
    if ticket.state is TicketState.WAITING and room.state is RoomState.STARTING:
        guests = tuple(replace(one, ready=False) for one in room.guests)
        return replace(room, state=RoomState.OPEN, match_id=None, guests=guests)
    return room


def parted(room: Room, ticket: Ticket) -> Room:
    """The room after a guest has left its table, which goes on."""
    return after(room, replace(ticket, state=TicketState.LEFT))


def _guest(room: Room, player_id: str) -> Guest:
    guest = room.guest(player_id)
    if guest is None:
        raise UnknownRoom(room.room_id)
    return guest


def _expect_open(room: Room) -> None:
    if room.state is not RoomState.OPEN:
        raise RoomStarted(room.room_id)


def _with(room: Room, guest: Guest) -> Room:
    guests = tuple(guest if one.player_id == guest.player_id else one for one in room.guests)
    return replace(room, guests=guests)
