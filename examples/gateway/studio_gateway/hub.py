"""The one stream to the tables, and whose frames are whose."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Protocol

import grpc.aio

from fangcheng.table.v1 import table_pb2 as tables
from fangcheng_client import ManySeats, explain
from fangcheng_client.many import SeatNews
from fangcheng_client.streams import MissingEvent
from studio_gateway.ending import Ended, replaced, upstream_lost
from studio_gateway.metrics import Metrics

AGAIN_SECONDS = 1.0
"""Before the stream is begun anew after it was given up."""

log = logging.getLogger(__name__)


class Client(Protocol):
    """A player's connection."""

    @property
    def player_id(self) -> str:
        """Whose."""

    def tell(self, news: SeatNews) -> None:
        """Pass on what happened at one of his seats."""

    def end(self, why: Ended) -> None:
        """Close it."""


class Hub:
    """Attends and acts for everybody who is connected here, on one stream."""

    def __init__(self, open_seats: Callable[..., ManySeats], metrics: Metrics) -> None:
        self._open_seats = open_seats
        self._metrics = metrics
        self._clients: dict[str, Client] = {}
        self._attended: dict[str, set[str]] = {}
        """The tables of each player that are attended."""
        self._seats: ManySeats | None = None
        self.is_connected = True
        """Not while the stream is broken."""

    async def run(self) -> None:
        """Pass on what the tables tell until cancelled.

        ``ManySeats`` goes on after a break by itself. What it gives up on is for everybody: the
        connections are closed, and clients come back with their last numbers.
        """
        while True:
            seats = self._open_seats(
                on_break=self._broken, on_heartbeat=lambda _: self._told(), give_up_seconds=30.0
            )
            try:
                async with aclosing(seats):
                    self._seats = seats
                    async for news in seats:
                        self._told()
                        self._pass_on(news)
                log.error("the stream to the tables has ended")
            except (grpc.aio.AioRpcError, OSError, MissingEvent) as error:
                # OSError: it was silent (TimeoutError), or the token's file cannot be read.
                why = explain(error) if isinstance(error, grpc.aio.AioRpcError) else repr(error)
                log.error("the stream to the tables is lost: %s", why)
            finally:
                self._seats = None
                self.is_connected = False
            for client in list(self._clients.values()):
                client.end(upstream_lost())
                self.leave(client)
            await asyncio.sleep(AGAIN_SECONDS)

    def join(self, client: Client) -> None:
        """A player has connected; an older connection of his is replaced."""
        older = self._clients.get(client.player_id)
        if older is not None:
            older.end(replaced())
            self.leave(older)
        self._clients[client.player_id] = client

    def leave(self, client: Client) -> None:
        """A connection is over: its seats count as disconnected, unless attended again soon."""
        if self._clients.get(client.player_id) is not client:
            return
        for table_id in self._attended.get(client.player_id, set()).copy():
            self.detach(client, table_id)
        del self._clients[client.player_id]

    def attend(self, client: Client, add: tables.AddSeat) -> None:
        """Follow a seat after a number, be it one that was passed on already."""
        seats = self._stream(client)
        seats.remove(client.player_id, add.table_id)
        seats.add(
            client.player_id,
            add.table_id,
            add.from_number,
            entropy=add.entropy,
            muted=add.muted,
            snapshot=add.snapshot,
        )
        self._attended.setdefault(client.player_id, set()).add(add.table_id)
        self._count()

    def detach(self, client: Client, table_id: str) -> None:
        """Follow a seat no longer."""
        if self._clients.get(client.player_id) is client and self._seats is not None:
            self._seats.remove(client.player_id, table_id)
        self._forget(client.player_id, table_id)

    def act(self, client: Client, act: tables.ActRequest) -> None:
        """Answer a prompt; the client is told what comes of it."""
        self._stream(client).act(client.player_id, act.table_id, act.decision_id, act.action)

    def is_attended(self, client: Client, table_id: str) -> bool:
        """Whether a client follows its seat at a table."""
        return table_id in self._attended.get(client.player_id, ())

    def _stream(self, client: Client) -> ManySeats:
        if self._clients.get(client.player_id) is not client:
            raise replaced()
        if self._seats is None:
            raise upstream_lost()
        return self._seats

    def _pass_on(self, news: SeatNews) -> None:
        client = self._clients.get(news.player_id)
        if client is None:
            return
        match news:
            case tables.SeatProblem(problem=problem) if problem.reason == "ATTENDED_ELSEWHERE":
                # Through another process of the gateway.
                client.end(replaced())
                self.leave(client)
                return
            case tables.SeatDone():
                self._forget(news.player_id, news.table_id)
            case tables.SeatProblem(decision_id=""):
                self._forget(news.player_id, news.table_id)
        client.tell(news)

    def _forget(self, player_id: str, table_id: str) -> None:
        tables_of = self._attended.get(player_id, set())
        tables_of.discard(table_id)
        if not tables_of:
            self._attended.pop(player_id, None)
        self._count()

    def _count(self) -> None:
        self._metrics.seats.set(sum(map(len, self._attended.values())))

    def _told(self) -> None:
        self.is_connected = True

    def _broken(self, error: BaseException) -> None:
        self.is_connected = False
        self._metrics.breaks.inc()
        log.warning("the stream to the tables broke, and is opened again: %r", error)
