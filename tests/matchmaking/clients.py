"""Clients of players over real gRPC: `Player` in queues, `Guest` in private rooms."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc.aio

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng.matchmaking.v1 import matchmaking_pb2_grpc, rooms_pb2, rooms_pb2_grpc


class Player:
    """A player's client."""

    def __init__(
        self, player_id: str, stub: matchmaking_pb2_grpc.MatchmakingServiceAsyncStub
    ) -> None:
        self.player_id = player_id
        self.stub = stub
        self.ticket = pb.Ticket()

    async def join(self, pool_id: str, request_id: str = "r", **more: Any) -> pb.Ticket:
        request = pb.JoinQueueRequest(
            request_id=request_id, pool_id=pool_id, client_version=3, **more
        )
        self.ticket = (await self.stub.JoinQueue(request)).ticket
        return self.ticket

    async def leave(self) -> pb.Ticket:
        request = pb.LeaveQueueRequest(ticket_id=self.ticket.ticket_id)
        return (await self.stub.LeaveQueue(request)).ticket

    async def watch(self) -> list[pb.Ticket]:
        """All that the ticket's stream tells, to its end."""
        request = pb.WatchTicketRequest(ticket_id=self.ticket.ticket_id)
        return [answer.ticket async for answer in self.stub.WatchTicket(request)]

    async def outcome(self) -> pb.Ticket:
        async with asyncio.timeout(60):
            return (await self.watch())[-1]

    async def now(self) -> pb.Ticket:
        request = pb.WatchTicketRequest(ticket_id=self.ticket.ticket_id)
        call = self.stub.WatchTicket(request)
        answer = await call.read()
        call.cancel()
        assert not isinstance(answer, type(grpc.aio.EOF))
        return answer.ticket

    async def status(self) -> pb.GetPlayerStatusResponse:
        return await self.stub.GetPlayerStatus(pb.GetPlayerStatusRequest())


class Guest:
    """A client of a player in a private room."""

    def __init__(
        self,
        player_id: str,
        stub: rooms_pb2_grpc.RoomServiceAsyncStub,
        queues: matchmaking_pb2_grpc.MatchmakingServiceAsyncStub,
    ) -> None:
        self.player_id = player_id
        self.stub = stub
        self.room = rooms_pb2.Room()
        self._queues = queues

    async def open(self, template_id: str, request_id: str = "r", **more: Any) -> rooms_pb2.Room:
        request = rooms_pb2.OpenRoomRequest(request_id=request_id, template_id=template_id, **more)
        self.room = (await self.stub.OpenRoom(request)).room
        return self.room

    async def enter(self, code: str) -> rooms_pb2.Room:
        self.room = (await self.stub.EnterRoom(rooms_pb2.EnterRoomRequest(code=code))).room
        return self.room

    async def leave(self) -> None:
        await self.stub.LeaveRoom(rooms_pb2.LeaveRoomRequest(room_id=self.room.room_id))

    async def sit(self, seat: int) -> rooms_pb2.Room:
        request = rooms_pb2.ChooseSeatRequest(room_id=self.room.room_id, seat=seat)
        return (await self.stub.ChooseSeat(request)).room

    async def ready(self, ready: bool = True) -> rooms_pb2.Room:
        request = rooms_pb2.SetReadyRequest(room_id=self.room.room_id, ready=ready)
        return (await self.stub.SetReady(request)).room

    async def start(self) -> rooms_pb2.Room:
        request = rooms_pb2.StartRoomRequest(room_id=self.room.room_id)
        return (await self.stub.StartRoom(request)).room

    async def turn_out(self, player_id: str) -> rooms_pb2.Room:
        request = rooms_pb2.TurnOutRequest(room_id=self.room.room_id, player_id=player_id)
        return (await self.stub.TurnOut(request)).room

    async def watch_until(self, condition: Callable[[rooms_pb2.Room], bool]) -> rooms_pb2.Room:
        """The first state of the room, from now on, of which something is true."""
        request = rooms_pb2.WatchRoomRequest(room_id=self.room.room_id)
        async with asyncio.timeout(60):
            call = self.stub.WatchRoom(request)
            async for answer in call:
                if condition(answer.room):
                    call.cancel()
                    return answer.room
        raise AssertionError("the stream has ended before")

    async def watch_to(self, state: rooms_pb2.RoomState.ValueType) -> rooms_pb2.Room:
        return await self.watch_until(lambda room: room.state == state)

    async def now(self) -> rooms_pb2.Room:
        return await self.watch_until(lambda room: True)

    async def status(self) -> pb.GetPlayerStatusResponse:
        return await self._queues.GetPlayerStatus(pb.GetPlayerStatusRequest())
