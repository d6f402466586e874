"""Proxies between a client and a service that break connections: at an answer, or when told to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

_FRAME_HEADER_BYTES = 9
_HEADERS = 1
"""The type of the HTTP/2 frame with which an answer begins; before it the call may be under way."""


class CuttingProxy:
    """Forwards connections; cuts one where an answer begins, when it is told to."""

    def __init__(self, target: str, cut: Callable[[], bool]) -> None:
        """`cut`: asked at each answer whether it is to be swallowed."""
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._cut = cut
        self.address = ""
        self.swallowed = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[CuttingProxy]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        async with server:
            yield self

    async def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            wallet, forth = await asyncio.open_connection(self._host, self._port)
        except OSError:  # the wallet is down
            back.close()
            return
        there = asyncio.create_task(_forward(client, forth))
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._answer(wallet, back)
        finally:
            there.cancel()
            for writer in (forth, back):
                writer.close()

    async def _answer(self, wallet: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Forward frame by frame until one is to be swallowed."""
        streams: set[bytes] = set()
        while True:
            header = await wallet.readexactly(_FRAME_HEADER_BYTES)
            frame = header + await wallet.readexactly(int.from_bytes(header[:3]))
            stream = header[5:]
            # An answer's first frame; its trailers are frames of the same kind.
            if header[3] == _HEADERS and stream not in streams:
                streams.add(stream)
                if self._cut():
                    self.swallowed += 1
                    return
            back.write(frame)
            await back.drain()


class Cable:
    """Forwards connections, whatever is said on them, until it is pulled out and put back."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._writers: set[asyncio.StreamWriter] = set()
        self.address = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Cable]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        async with server:
            yield self
            self.pull()

    def pull(self) -> None:
        """Break every connection that there is; others may be made."""
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        service, forth = await asyncio.open_connection(self._host, self._port)
        self._writers |= {back, forth}
        try:
            there = asyncio.create_task(_forward(client, forth))
            await _forward(service, back)
            there.cancel()
        finally:
            self._writers -= {back, forth}
            for writer in (back, forth):
                writer.close()


async def _forward(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
