"""Game clients of the gateway, and tables that do as they are told."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from studio_gateway.settings import Settings
from tests.client.test_many import said
from tests.client.test_streams import Scripted

SIGN_IN = Ed25519PrivateKey.generate()
"""The key of the studio's sign-in."""


def token(player_id: str, seconds: float = 600.0, key: Any = SIGN_IN, **more: Any) -> str:
    """What the sign-in gives a player."""
    claims = {"sub": player_id, "aud": "gateway", "exp": time.time() + seconds, **more}
    kept = {name: claim for name, claim in claims.items() if claim is not None}
    return jwt.encode(kept, key, "EdDSA")


def key_file(folder: Path) -> str:
    """The file with the sign-in's public key."""
    path = folder / "sign-in.pem"
    public = SIGN_IN.public_key()
    path.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return str(path)


def settings(folder: Path, gateway_token: str, **more: Any) -> Settings:
    """Of a gateway in this process."""
    path = folder / "gateway.token"
    path.write_text(gateway_token, "utf-8")
    given = {"port": 0, "metrics_port": 0, "drain_seconds": 0.0, **more}
    return Settings(player_key=key_file(folder), token_file=str(path), **given)


class Tables(Scripted):
    """Tables whose one stream tells what is put into ``out``, or ends with it."""

    def __init__(self) -> None:
        self.out: asyncio.Queue[Any] = asyncio.Queue()
        self.asked: list[str] = []
        self.streams = 0

    async def AttendMany(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        self.streams += 1
        listening = asyncio.create_task(self._listen(requests))
        try:
            while True:
                step = await self.out.get()
                if isinstance(step, Exception):
                    raise step
                yield step
        finally:
            listening.cancel()

    async def _listen(self, requests: Any) -> None:
        async for request in requests:
            self.asked.append(said(request))


class Phone:
    """A game client."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, **frame: Any) -> None:
        """Send a frame."""
        await self.socket.send(json.dumps(frame))

    async def hears(self, kind: str = "") -> dict[str, Any]:
        """The next frame, or the next of this kind; heartbeats are answered."""
        async with asyncio.timeout(60):
            while True:
                frame: dict[str, Any] = json.loads(await self.socket.recv())
                if "heartbeat" in frame and kind != "heartbeat":
                    await self.say(heartbeat={})
                elif not kind or kind in frame:
                    return frame

    async def end(self) -> tuple[int, str]:
        """Wait until it is closed: the code and the reason."""
        async with asyncio.timeout(60):
            try:
                while True:
                    await self.socket.recv()
            except ConnectionClosed as closed:
                if closed.rcvd is None:
                    raise AssertionError("it was cut off without a word") from closed
                return closed.rcvd.code, closed.rcvd.reason


@asynccontextmanager
async def phone(port: int, player_id: str, **more: Any) -> AsyncIterator[Phone]:
    """A client that was let in."""
    async with dialled(port) as client:
        await client.say(hello={"token": token(player_id, **more)})
        welcome = await client.hears("welcome")
        assert welcome["welcome"]["playerId"] == player_id
        yield client


@asynccontextmanager
async def dialled(port: int) -> AsyncIterator[Phone]:
    """A client that has said nothing yet."""
    async with connect(f"ws://127.0.0.1:{port}/v1", max_size=None) as socket:
        yield Phone(socket)
