"""Private rooms as they run: what `rooms` decides is checked, stored and shown to its guests."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from functools import partial

from fangcheng_kit.trace_context import traceparent

from . import codes, rooms
from .core import Match, Member, NewTicket, OptionValue, Problem, Ticket
from .joining import CannotJoin, Joining, occupied
from .rooms import Room, RoomState, Template, UnknownRoom
from .store import LiveTicket, Store


class UnknownTemplate(rooms.RoomRefusal):
    """No such kind of room."""


class Lobby:
    """The rooms, for the calls of players."""

    def __init__(
        self,
        store: Store,
        joining: Joining,
        *,
        wrong_codes: codes.WrongCodes,
        chance: random.Random,
        clock_ms: Callable[[], int],
        lifetime_ms: int,
        drive: Callable[[Match], None],
        show: Callable[[Iterable[Ticket]], None],
        leave: Callable[[str], Awaitable[Ticket]],
    ) -> None:
        """`drive` takes a match to its table; `show` puts tickets on the board; `leave` takes one
        out, and returns it when its outcome is known."""
        self.templates: Mapping[str, Template] = {}
        self._store = store
        self._joining = joining
        self._wrong_codes = wrong_codes
        self._chance = chance
        self._clock_ms = clock_ms
        self._lifetime_ms = lifetime_ms
        self._drive = drive
        self._show = show
        self._leave = leave
        self._watches: dict[str, set[asyncio.Event]] = {}

    async def open(
        self,
        player_id: str,
        request_id: str,
        template_id: str,
        options: Mapping[str, OptionValue],
        profile: bytes,
        labels: Mapping[str, str],
    ) -> Room:
        """Opens a room. Raises UnknownTemplate, NoChoice, NoCode and what `Joining` does."""
        opened = await self._store.opened_room(player_id, request_id)
        if opened is not None:
            return opened
        template = self.templates.get(template_id)
        if template is None:
            raise UnknownTemplate(template_id)
        now_ms = self._clock_ms()
        room = Room(
            room_id="r-" + secrets.token_hex(12),
            code="",
            request_id=request_id,
            opener_id=player_id,
            template_id=template_id,
            terms=template.chosen(options),
            labels=dict(labels),
            expires_ms=now_ms + self._lifetime_ms,
        )
        room = rooms.come(room, player_id, profile)
        try:
            await self._joining.check_guest(player_id, room.terms, room.labels)
        except CannotJoin:  # for the same request, which was under way, perhaps
            opened = await self._store.opened_room(player_id, request_id)
            if opened is None:
                raise
            return opened
        drawn, ticket = codes.drawn(self._chance), self._ticket(room, player_id)
        return await self._told(self._store.open_room(room, drawn, ticket))

    async def enter(self, player_id: str, via: str | None, code: str, profile: bytes) -> Room:
        """Enters the room of a code; `via` is the player's gateway, if he has one.

        Raises UnknownRoom, TooManyCodes, RoomStarted, RoomFull, TurnedOut, and what `Joining` does.
        """
        with self._wrong_codes.trying(player_id, via):
            room = await self._store.room_of_code(code)
        if room.guest(player_id) is not None:
            return room
        rooms.come(room, player_id, profile)
        await self._joining.check_guest(player_id, room.terms, room.labels)
        return await self._told(
            self._store.change_room(
                room.room_id,
                partial(rooms.come, player_id=player_id, profile=profile),
                self._ticket(room, player_id),
            )
        )

    async def sit(self, player_id: str, room_id: str, seat: int) -> Room:
        """See `rooms.sit`."""
        change = partial(rooms.sit, player_id=player_id, seat=seat)
        return await self._store.change_room(room_id, change)

    async def say_ready(self, player_id: str, room_id: str, ready: bool) -> Room:
        """See `rooms.say_ready`."""
        change = partial(rooms.say_ready, player_id=player_id, ready=ready)
        return await self._store.change_room(room_id, change)

    async def start(self, player_id: str, room_id: str) -> Room:
        """See `rooms.start`. Its table comes, or the room is open again."""
        match_id = "m-" + secrets.token_hex(12)
        room, match = await self._store.start_room(room_id, player_id, match_id, self._clock_ms())
        self._drive(match)
        return room

    async def turn_out(self, owner_id: str, room_id: str, player_id: str) -> Room:
        """See `rooms.turn_out`."""
        change = partial(rooms.turn_out, owner_id=owner_id, player_id=player_id)
        room = await self._store.change_room(room_id, change)
        if room.guest(player_id) is not None:
            await self._take_out(
                room, player_id, Problem("TURNED_OUT", "The owner turned you out.")
            )
        return await self._store.room(room_id)

    async def go(self, player_id: str, room_id: str) -> None:
        """Leaves a room; raises UnknownRoom, and RoomStarted where its table was asked for."""
        room = await self._store.room(room_id)
        if room.guest(player_id) is None:
            return
        ticket = await self._store.live_ticket(player_id)
        if ticket is not None and ticket.room_id == room_id:
            ticket = await self._leave(ticket.ticket_id)
            if ticket.is_live:
                raise rooms.RoomStarted(room_id)

    async def watch(self, player_id: str, room_id: str) -> AsyncGenerator[Room, None]:
        """The room now, then as it changes, until it closes or the player is not in it.

        Raises UnknownRoom where he is not in it at first.
        """
        news = asyncio.Event()
        self._watches.setdefault(room_id, set()).add(news)
        try:
            room = await self._store.room(room_id)
            if room.guest(player_id) is None:
                raise UnknownRoom(room_id)
            while True:
                yield room
                version = room.version
                if room.state is RoomState.CLOSED or room.guest(player_id) is None:
                    return
                while room.version == version:
                    await news.wait()
                    news.clear()
                    room = await self._store.room(room_id)
        finally:
            self._watches[room_id].discard(news)
            if not self._watches[room_id]:
                del self._watches[room_id]

    def note(self, changed: Iterable[Room]) -> None:
        """Tells watchers of rooms that have changed."""
        for room in changed:
            for news in self._watches.get(room.room_id, ()):
                news.set()

    async def close_expired(self) -> None:
        """Closes the rooms whose time is over."""
        problem = Problem("ROOM_EXPIRED", "The room was open for too long without a start.")
        for room in await self._store.expired_rooms(self._clock_ms()):
            for guest in room.guests:
                await self._take_out(room, guest.player_id, problem)

    async def _take_out(self, room: Room, player_id: str, problem: Problem) -> None:
        ticket = await self._store.live_ticket(player_id)
        if ticket is not None and ticket.room_id == room.room_id:
            self._show([await self._store.fail(ticket.ticket_id, problem)])

    async def _told(self, stored: Awaitable[Room]) -> Room:
        try:
            return await stored
        except LiveTicket as other:  # another request of the player was quicker
            raise occupied(other.player_id, other.ticket) from None

    def _ticket(self, room: Room, player_id: str) -> NewTicket:
        ticket_id = "k-" + secrets.token_hex(12)
        return NewTicket(
            ticket_id=ticket_id,
            request_id=f"room {ticket_id}",
            members=(Member(player_id=player_id),),
            pool_id="",
            room_id=room.room_id,
            labels=room.labels,
            queued_ms=self._clock_ms(),
            trace=traceparent(),
        )
