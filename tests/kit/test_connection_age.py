"""Connections that are closed by their age: new calls move on, streams may end what they began."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest

from fangcheng_client import connect
from fangcheng_kit.tokens import mint_token
from tests.kit.echo import KEY, Echo, EchoRequest, Stub, serving_echo

TOKEN = mint_token(KEY, "operator")


class Peers(Echo):
    """Notes over which connections it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.peers: set[str] = set()

    async def Unary(self, request: Any, context: Any) -> Any:
        self.peers.add(context.peer())
        return await super().Unary(request, context)


async def aged(stub: Stub, echo: Peers, connections: int) -> None:
    """Call, one after the other, until so many connections have been used; no call may fail."""
    async with asyncio.timeout(60):
        while len(echo.peers) < connections:
            await stub.Unary(EchoRequest(text="a"))


async def test_calls_move_to_a_new_connection_and_a_stream_stays_on_the_old_one() -> None:
    echo = Peers()
    async with (
        serving_echo(echo, max_connection_age_seconds=0.2) as server,
        connect(server.address, token=TOKEN) as channel,
    ):
        stub = Stub(channel)
        stream = stub.Split(EchoRequest(text="a", tags=["hang"]))
        assert (await stream.read()).text == "a"
        await aged(stub, echo, 8)
        assert not stream.done()
        stream.cancel()


async def read_on(stream: Any) -> None:
    """On a slow machine a stream may end before its first message."""
    while True:
        assert (await stream.read()).text == "a"


async def test_a_stream_ends_with_its_connections_grace() -> None:
    echo = Peers()
    async with (
        serving_echo(echo, max_connection_age_seconds=0.2, connection_grace_seconds=0.2) as server,
        connect(server.address, token=TOKEN) as channel,
    ):
        stream = Stub(channel).Split(EchoRequest(text="a", tags=["hang"]))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await asyncio.wait_for(read_on(stream), 60)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_without_an_age_a_connection_stays() -> None:
    echo = Peers()
    async with serving_echo(echo) as server, connect(server.address, token=TOKEN) as channel:
        for _ in range(50):
            await Stub(channel).Unary(EchoRequest(text="a"))
    assert len(echo.peers) == 1
