"""Client and server agree on how often a quiet connection is pinged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from fangcheng_client.keepalive import CLIENT_OPTIONS, SERVER_OPTIONS, Option

FASTER = 100
"""How much faster the test pings than the real thing, on both sides alike."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES = 9
PING, ACK = 6, 1
MORE_THAN_FORGIVEN = 5
"""A server that did not expect pings closes the connection at the third."""


def faster(options: tuple[Option, ...]) -> list[Option]:
    """The options with every interval shortened; the timeout stays, for a busy machine."""
    return [
        (name, int(value) // FASTER)
        if name.endswith("_ms") and "timeout" not in name
        else (name, value)
        for name, value in options
    ]


class PingCounter:
    """Passes a connection on to a server and counts the pings of its client."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.pings = asyncio.Semaphore(0)
        self._links: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._link, "127.0.0.1", 0)
        try:
            host, port = server.sockets[0].getsockname()
            yield f"{host}:{port}"
        finally:
            server.close()
            for link in self._links:
                link.cancel()
            await asyncio.gather(*self._links, return_exceptions=True)

    async def _link(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        server, requests = await asyncio.open_connection("127.0.0.1", self._port)
        self._links += [
            asyncio.create_task(self._forward(client, requests)),
            asyncio.create_task(self._back(server, answers)),
        ]

    async def _forward(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        sink.write(await source.readexactly(len(PREFACE)))
        while True:
            header = await source.readexactly(HEADER_BYTES)
            sink.write(header + await source.readexactly(int.from_bytes(header[:3])))
            if header[3] == PING and not header[4] & ACK:
                self.pings.release()

    async def _back(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
        sink.close()


async def test_a_quiet_stream_outlives_its_pings() -> None:
    talk = asyncio.Event()

    async def quiet(request: bytes, context: Any) -> AsyncIterator[bytes]:
        yield b"here"
        await talk.wait()
        yield b"still here"

    server = grpc.aio.server(options=faster(SERVER_OPTIONS))
    handler: Any = grpc.unary_stream_rpc_method_handler(quiet)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("fangcheng.test.Quiet", {"Watch": handler}),)
    )
    counter = PingCounter(server.add_insecure_port("127.0.0.1:0"))
    await server.start()
    try:
        async with (
            counter.listening() as address,
            grpc.aio.insecure_channel(address, options=faster(CLIENT_OPTIONS)) as channel,
        ):
            watch: Any = channel.unary_stream("/fangcheng.test.Quiet/Watch")
            call = watch(b"")
            assert await call.read() == b"here"
            for _ in range(MORE_THAN_FORGIVEN):
                ping = asyncio.create_task(counter.pings.acquire())
                ended = asyncio.create_task(call.code())
                await asyncio.wait({ping, ended}, return_when=asyncio.FIRST_COMPLETED)
                assert not ended.done(), await call.details()
                ended.cancel()
            talk.set()
            assert await call.read() == b"still here"
    finally:
        await server.stop(None)
