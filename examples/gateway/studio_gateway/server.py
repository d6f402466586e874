"""Listens for clients, and ends everything in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import grpc.aio
from google.protobuf.message import Message
from prometheus_client import start_http_server
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_client import ManySeats, connect
from studio_gateway.ending import restarting
from studio_gateway.hub import Hub
from studio_gateway.metrics import Metrics
from studio_gateway.players import Players
from studio_gateway.session import Session
from studio_gateway.settings import Settings

PATH = "/v1"
MOST_FRAME_BYTES = 16_384
CLOSE_SECONDS = 3.0
"""For a client's answer to the close of its connection."""

log = logging.getLogger(__name__)


class Gateway:
    """What serves the clients of one process."""

    def __init__(
        self, settings: Settings, table: grpc.aio.Channel, matchmaking: grpc.aio.Channel
    ) -> None:
        self.metrics = Metrics()
        self.hub = Hub(partial(ManySeats, table), self.metrics)
        self.port = 0
        self._settings = settings
        self._stubs: list[Any] = [TableServiceStub(table), MatchmakingServiceStub(matchmaking)]
        key = Path(settings.player_key).read_text("utf-8")
        self._players = Players(key, settings.player_algorithm, settings.player_audience)
        self._sessions: set[Session] = set()
        self._is_draining = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve from the beginning of the block to its end; then the clients are sent elsewhere."""
        hub = asyncio.create_task(self.hub.run())
        try:
            async with serve(
                self._serve,
                self._settings.host,
                self._settings.port,
                process_request=self._admit,
                open_timeout=self._settings.hello_seconds,
                close_timeout=CLOSE_SECONDS,
                max_size=MOST_FRAME_BYTES,
                ping_interval=None,  # heartbeats are frames: a browser's program sees no pings
                compression=None,  # costs more memory for each client than everything else
            ) as server:
                self.port = next(iter(server.sockets)).getsockname()[1]
                yield
                await self._drain(server)
        finally:
            hub.cancel()
            await asyncio.gather(hub, return_exceptions=True)

    async def _drain(self, server: Server) -> None:
        self._is_draining = True
        await asyncio.sleep(self._settings.drain_seconds)
        server.close(close_connections=False)
        for session in self._sessions:
            session.end(restarting())
        await server.wait_closed()

    def _admit(self, socket: ServerConnection, request: Request) -> Response | None:
        """Health for load balancers; otherwise a client, if there is room."""
        if request.path == "/healthz":
            if self._is_draining or not self.hub.is_connected:
                return socket.respond(HTTPStatus.SERVICE_UNAVAILABLE, "not serving\n")
            return socket.respond(HTTPStatus.OK, "serving\n")
        if request.path != PATH:
            return socket.respond(HTTPStatus.NOT_FOUND, f"clients connect to {PATH}\n")
        if len(self._sessions) >= self._settings.connections:
            return socket.respond(HTTPStatus.SERVICE_UNAVAILABLE, "full\n")
        return None

    async def _serve(self, socket: ServerConnection) -> None:
        session = Session(socket, self.hub, self._players, self._call, self._settings, self.metrics)
        self._sessions.add(session)
        self.metrics.connections.inc()
        try:
            await session.run()
        finally:
            self._sessions.discard(session)
            self.metrics.connections.dec()

    async def _call(self, name: str, request: Message, player_id: str) -> Message:
        """A call for a player: the metadata names him, the token lets us do that."""
        stub = next(stub for stub in self._stubs if hasattr(stub, name))
        metadata = [("fangcheng-act-as-bin", player_id.encode())]
        answer: Message = await getattr(stub, name)(request, metadata=metadata)
        return answer


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Gateway]:
    """A gateway, from the beginning of the block to its end."""
    credentials = settings.credentials()
    async with (
        connect(settings.table, settings.token, credentials=credentials) as table,
        connect(settings.matchmaking, settings.token, credentials=credentials) as matchmaking,
    ):
        gateway = Gateway(settings, table, matchmaking)
        metrics, thread = start_http_server(
            settings.metrics_port, settings.metrics_host, gateway.metrics.registry
        )
        try:
            async with gateway.running():
                log.info("clients connect to ws://%s:%s%s", settings.host, gateway.port, PATH)
                yield gateway
        finally:
            metrics.shutdown()
            metrics.server_close()
            thread.join()
