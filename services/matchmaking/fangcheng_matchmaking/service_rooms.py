"""The calls of private rooms."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from fangcheng.matchmaking.v1 import rooms_pb2 as wire
from fangcheng.matchmaking.v1 import rooms_pb2_grpc
from fangcheng_kit import principal
from fangcheng_kit.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    ServiceError,
    Unavailable,
)

from . import codes, convert, lobby, refusals, rooms
from .admission import NotAdmitted
from .joining import CannotJoin
from .matchmaker import Matchmaker
from .partners import Unanswered
from .store import NoCode

ROOMS = "fangcheng.matchmaking.v1.RoomService"


class Rooms(rooms_pb2_grpc.RoomServiceServicer):
    """`RoomService`; what each call promises stands in its proto."""

    def __init__(self, matchmaker: Matchmaker) -> None:
        self._lobby = matchmaker.lobby

    async def ListRoomTemplates(
        self, request: wire.ListRoomTemplatesRequest, context: Any
    ) -> wire.ListRoomTemplatesResponse:
        """See the proto."""
        templates = [convert.room_template(one) for one in self._lobby.templates.values()]
        return wire.ListRoomTemplatesResponse(templates=templates)

    async def OpenRoom(self, request: wire.OpenRoomRequest, context: Any) -> wire.OpenRoomResponse:
        """See the proto."""
        with _told():
            room = await self._lobby.open(
                principal.current().id,
                request.request_id,
                request.template_id,
                {name: convert.option_value(value) for name, value in request.options.items()},
                request.profile,
                dict(request.labels),
            )
        return wire.OpenRoomResponse(room=convert.room(room))

    async def EnterRoom(
        self, request: wire.EnterRoomRequest, context: Any
    ) -> wire.EnterRoomResponse:
        """See the proto."""
        with _told("code"):
            caller = principal.current()
            room = await self._lobby.enter(caller.id, caller.via, request.code, request.profile)
        return wire.EnterRoomResponse(room=convert.room(room))

    async def LeaveRoom(
        self, request: wire.LeaveRoomRequest, context: Any
    ) -> wire.LeaveRoomResponse:
        """See the proto."""
        with _told():
            await self._lobby.go(principal.current().id, request.room_id)
        return wire.LeaveRoomResponse()

    async def ChooseSeat(
        self, request: wire.ChooseSeatRequest, context: Any
    ) -> wire.ChooseSeatResponse:
        """See the proto."""
        with _told():
            room = await self._lobby.sit(principal.current().id, request.room_id, request.seat)
        return wire.ChooseSeatResponse(room=convert.room(room))

    async def SetReady(self, request: wire.SetReadyRequest, context: Any) -> wire.SetReadyResponse:
        """See the proto."""
        with _told():
            caller = principal.current().id
            room = await self._lobby.say_ready(caller, request.room_id, request.ready)
        return wire.SetReadyResponse(room=convert.room(room))

    async def TurnOut(self, request: wire.TurnOutRequest, context: Any) -> wire.TurnOutResponse:
        """See the proto."""
        with _told():
            caller = principal.current().id
            room = await self._lobby.turn_out(caller, request.room_id, request.player_id)
        return wire.TurnOutResponse(room=convert.room(room))

    async def StartRoom(
        self, request: wire.StartRoomRequest, context: Any
    ) -> wire.StartRoomResponse:
        """See the proto."""
        with _told():
            room = await self._lobby.start(principal.current().id, request.room_id)
        return wire.StartRoomResponse(room=convert.room(room))

    async def WatchRoom(
        self, request: wire.WatchRoomRequest, context: Any
    ) -> AsyncIterator[wire.WatchRoomResponse]:
        """See the proto."""
        with _told():
            watch = self._lobby.watch(principal.current().id, request.room_id)
            async with aclosing(watch) as changes:
                async for room in changes:
                    yield wire.WatchRoomResponse(room=convert.room(room))


@contextmanager
def _told(room_field: str = "room_id") -> Iterator[None]:
    """What cannot be done becomes a status; `room_field` of the request tells which room it is."""
    try:
        yield
    except rooms.RoomRefusal as error:
        raise _refusal(error, room_field) from None
    except CannotJoin as error:
        raise refusals.of(error) from None
    except NotAdmitted as error:
        raise refusals.not_admitted(error) from None
    except NoCode:
        raise Unavailable("NO_CODE", "Too many rooms are open now; try again later.") from None
    except Unanswered:
        raise refusals.unanswered() from None


def _refusal(error: rooms.RoomRefusal, room_field: str) -> ServiceError:
    match error:
        case lobby.UnknownTemplate():
            return NotFound("UNKNOWN_TEMPLATE", f"There is no {error}.", field="template_id")
        case rooms.NoChoice():
            return InvalidArgument(
                "NO_CHOICE", f"The option {error} cannot be chosen so here.", field="options"
            )
        case rooms.UnknownRoom(field=field):
            return NotFound("UNKNOWN_ROOM", "There is no such room for you.", field=field)
        case codes.TooManyCodes(retry_after_seconds=seconds):
            return ResourceExhausted(
                "TOO_MANY_CODES",
                f"Too many codes were wrong; the next one may be tried in {seconds:.0f} s.",
                room_field,
                retry_after_seconds=seconds,
            )
        case rooms.TurnedOut():
            return PermissionDenied(
                "TURNED_OUT", "The owner of the room has turned you out.", room_field
            )
        case rooms.RoomFull():
            return FailedPrecondition("ROOM_FULL", "Four are in the room.", room_field)
        case rooms.RoomStarted():
            return FailedPrecondition(
                "ROOM_STARTED", "The room has started, or is closed.", room_field
            )
        case rooms.SeatTaken():
            return FailedPrecondition("SEAT_TAKEN", "Another sits there.", field="seat")
        case rooms.NotTheOwner():
            return PermissionDenied(
                "NOT_THE_OWNER", "Only the owner of the room may do that.", room_field
            )
        case rooms.NotReady():
            return FailedPrecondition(
                "NOT_READY",
                "Four have to be in the room, and the other three be ready.",
                room_field,
            )
    raise AssertionError(f"no status for {error!r}")
