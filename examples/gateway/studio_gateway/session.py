"""One client's connection: frames in and out, heartbeats, and why it is closed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import grpc.aio
from google.protobuf.message import Message
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from fangcheng.table.v1 import table_pb2 as tables
from fangcheng_client import explain
from fangcheng_client.many import SeatNews
from studio_gateway import frames
from studio_gateway.ending import Ended, not_let_in, silent, too_slow
from studio_gateway.hub import Hub
from studio_gateway.metrics import Metrics
from studio_gateway.players import Players
from studio_gateway.settings import Settings

MOST_CALLS = 4
"""Calls of one client under way at the same time."""
MOST_ACTS = 16
"""Acts of one client that were not answered yet."""
MOST_FRAMES = 50
"""Frames of one client in a second; the rest waits in its connection."""

log = logging.getLogger(__name__)

Call = Callable[[str, Message, str], Awaitable[Message]]
"""Makes one of ``frames.CALLS`` with this request for a player."""


class Session:
    """A connection, from its hello to its end."""

    def __init__(
        self,
        socket: ServerConnection,
        hub: Hub,
        players: Players,
        call: Call,
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        self._socket = socket
        self._hub = hub
        self._players = players
        self._call = call
        self._settings = settings
        self._metrics = metrics
        self.player_id = ""
        self._expiry: asyncio.TimerHandle | None = None
        self._heard = 0.0
        self._out: asyncio.Queue[str] = asyncio.Queue()
        self._behind = 0
        """Characters that wait to be sent."""
        self._acts: dict[tuple[str, str], tuple[str | int | None, float]] = {}
        """Those that were not answered: the id of the frame, and since when."""
        self._calls: set[asyncio.Task[None]] = set()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Serve the connection until it is over, and say why."""
        why = Ended(1011, "INTERNAL")
        try:
            await self._first(self._hello())
            self._hub.join(self)
            self.send("welcome", self._welcome())
            await self._first(self._read(), self._write(), self._beat())
        except Ended as ended:
            why = ended
        except ConnectionClosed:
            why = Ended(1000, "CLIENT_LEFT")
        finally:
            self._hub.leave(self)
            for task in self._calls:
                task.cancel()
            if self._expiry is not None:
                self._expiry.cancel()
            self._ended.cancel()
            self._metrics.closed.labels(why.reason).inc()
            await self._socket.close(why.code, why.reason)

    def end(self, why: Ended) -> None:
        """Close it; the first reason counts."""
        if not self._ended.done():
            self._ended.set_exception(why)

    def tell(self, news: SeatNews) -> None:
        """Pass on what happened at a seat."""
        frame_id = None
        match news:
            case tables.SeatEvent():
                kind = "event"
            case tables.SeatActed(table_id=table_id, decision_id=decision_id):
                kind = "acted"
                frame_id = self._answered(table_id, decision_id)
            case tables.SeatProblem(table_id=table_id, decision_id=decision_id):
                kind = "problem"
                if decision_id:
                    frame_id = self._answered(table_id, decision_id)
                else:
                    self._forget_acts(table_id)
            case tables.SeatDone(table_id=table_id):
                kind = "done"
                self._forget_acts(table_id)
            case _:
                kind = "talk"
        self.send(kind, frames.content(news), frame_id)

    def send(self, kind: str, body: Any, frame_id: str | int | None = None) -> None:
        """Send a frame when the client reads it; one that does not is cut off."""
        text = frames.written(kind, body, frame_id)
        self._behind += len(text)
        if self._behind > self._settings.behind_bytes:
            self.end(too_slow())
            return
        self._metrics.frames.labels(kind).inc()
        self._out.put_nowait(text)

    async def _first(self, *jobs: Coroutine[Any, Any, None]) -> None:
        """Wait for the first of these that is over, or for the end of the connection."""
        waited: list[asyncio.Future[Any]] = [asyncio.ensure_future(job) for job in jobs]
        try:
            done, _ = await asyncio.wait(
                [self._ended, *waited], return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in waited:
                task.cancel()
            await asyncio.wait(waited)
        if self._ended in done:
            self._ended.result()
        for task in done:
            task.result()

    # Who it is.

    async def _hello(self) -> None:
        """The first frame says it, within a time."""
        try:
            async with asyncio.timeout(self._settings.hello_seconds):
                frame = frames.read(await self._socket.recv(), "")
        except (TimeoutError, frames.BadFrame):
            raise not_let_in("HELLO_MISSING") from None
        if frame.kind != "hello":
            raise not_let_in("HELLO_MISSING")
        self._let_in(frame)

    def _let_in(self, frame: frames.Frame) -> None:
        """By a token: the first, or the next before one ends."""
        player = self._players.check(frame.body.get("token"))
        if self.player_id not in ("", player.player_id):
            raise not_let_in("TOKEN_INVALID")
        self.player_id = player.player_id
        if self._expiry is not None:
            self._expiry.cancel()
        left_seconds = max(0.0, player.expires - time.time())
        self._expiry = asyncio.get_running_loop().call_later(
            left_seconds, self.end, not_let_in("TOKEN_EXPIRED")
        )
        self._heard = time.monotonic()

    def _welcome(self) -> dict[str, Any]:
        return {
            "playerId": self.player_id,
            "heartbeatSeconds": self._settings.heartbeat_seconds,
            "silenceSeconds": self._settings.silence_seconds,
        }

    # What goes on while it is open.

    async def _write(self) -> None:
        while True:
            text = await self._out.get()
            await self._socket.send(text)
            self._behind -= len(text)

    async def _beat(self) -> None:
        """Both ways: a client answers each heartbeat, or is taken for lost."""
        pause = min(self._settings.heartbeat_seconds, self._settings.silence_seconds / 2)
        while True:
            await asyncio.sleep(pause)
            if time.monotonic() - self._heard > self._settings.silence_seconds:
                raise silent()
            self.send("heartbeat", {"serverTimeMs": int(time.time() * 1_000)})

    async def _read(self) -> None:
        second, frames_in = time.monotonic(), 0
        while True:
            text = await self._socket.recv()
            now = self._heard = time.monotonic()
            if now - second >= 1.0:
                second, frames_in = now, 0
            frames_in += 1
            if frames_in > MOST_FRAMES:
                await asyncio.sleep(max(0.0, second + 1.0 - now))
            try:
                self._take(frames.read(text, self.player_id))
            except frames.BadFrame as bad:
                self._metrics.bad_frames.inc()
                self.send("problem", frames.problem("INVALID_FRAME", str(bad)), bad.frame_id)

    def _take(self, frame: frames.Frame) -> None:
        match frame.kind:
            case "heartbeat":
                pass
            case "hello":
                self._let_in(frame)
                self.send("welcome", self._welcome(), frame.id)
            case "attend":
                self._forget_acts(frame.body.table_id)
                self._hub.attend(self, frame.body)
            case "detach":
                self._forget_acts(frame.body.table_id)
                self._hub.detach(self, frame.body.table_id)
            case "act":
                self._act(frame.body, frame.id)
            case _ if len(self._calls) >= MOST_CALLS:
                self._refuse("TOO_MANY_CALLS", "Wait for the answers of others.", frame.id)
            case _:
                task = asyncio.create_task(self._answer(frame))
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)

    def _act(self, act: tables.ActRequest, frame_id: str | int | None) -> None:
        place = (act.table_id, act.decision_id)
        if not self._hub.is_attended(self, act.table_id):
            self._refuse("NOT_ADDED", "Attend the table first.", frame_id, *place)
        elif len(self._acts) >= MOST_ACTS and place not in self._acts:
            self._refuse("TOO_MANY_CALLS", "Wait for the answers of others.", frame_id, *place)
        else:
            self._acts[place] = (frame_id, time.monotonic())
            self._hub.act(self, act)

    async def _answer(self, frame: frames.Frame) -> None:
        """Make a call and pass its answer on."""
        try:
            answer = await self._call(frame.kind, frame.body, self.player_id)
        except grpc.aio.AioRpcError as error:
            told = explain(error)
            self._refuse(told.reason, told.message, frame.id)
        except OSError as error:
            log.error("the gateway's own token cannot be read: %s", error)
            self._refuse("UPSTREAM_LOST", "Try again later.", frame.id)
        else:
            self.send("answer", frames.content(answer), frame.id)

    def _refuse(
        self,
        reason: str,
        message: str,
        frame_id: str | int | None,
        table_id: str = "",
        decision_id: str = "",
    ) -> None:
        told = frames.problem(reason, message, table_id, decision_id)
        self.send("problem", told, frame_id)

    def _answered(self, table_id: str, decision_id: str) -> str | int | None:
        """An act is answered: the id of its frame."""
        frame_id, since = self._acts.pop((table_id, decision_id), (None, None))
        if since is not None:
            self._metrics.act_seconds.observe(time.monotonic() - since)
        return frame_id

    def _forget_acts(self, table_id: str) -> None:
        """Nobody will answer them: a client repeats what it still wants."""
        for place in [place for place in self._acts if place[0] == table_id]:
            del self._acts[place]
