"""Channels: who calls, deadlines, replicas, what is repeated, what stays on this host."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import grpc
import grpc.aio
import pytest

from fangcheng_client import SERVICE_CONFIG, connect, explain
from fangcheng_kit.errors import Unavailable
from fangcheng_kit.tokens import mint_token
from tests.kit.echo import KEY, Echo, EchoRequest, Stub, serving_echo

TOKEN = mint_token(KEY, "operator")


class Named(Echo):
    """Answers its name; fails as often as it is told."""

    failures = 0

    async def Unary(self, request: Any, context: Any) -> Any:
        self.calls += 1
        if self.failures:
            self.failures -= 1
            raise Unavailable("NOT_YET", "Soon.")
        answer = await self._answer(request, context)
        answer.text = self.name
        return answer


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + 60
    while not await condition():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.02)


async def test_calls_spread_over_replicas_and_leave_out_one_that_is_not_serving() -> None:
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(serving_echo(Named(name))) for name in ("east", "west")
        ]
        target = "ipv4:" + ",".join(server.address for server in servers)
        channel = await stack.enter_async_context(connect(target, token=TOKEN))
        stub = Stub(channel)

        async def answered(count: int = 20) -> Counter[str]:
            names = [(await stub.Unary(EchoRequest(text="a"))).text for _ in range(count)]
            return Counter(names)

        async def both() -> bool:
            return len(await answered(2)) == 2

        async def only_west() -> bool:
            return await answered(4) == {"west": 4}

        await until(both)
        assert await answered() == {"east": 10, "west": 10}
        servers[0].kit.health(False, "tired")
        await until(only_west)
        assert await answered() == {"west": 20}
        servers[0].kit.health(True)
        await until(both)


async def test_no_call_fails_while_a_replica_drains_and_stops() -> None:
    async with AsyncExitStack() as stack:
        stays = await stack.enter_async_context(serving_echo(Named("stays")))
        leaving = AsyncExitStack()
        leaves = await leaving.enter_async_context(serving_echo(Named("leaves"), drain_seconds=0.5))
        channel = await stack.enter_async_context(
            connect(f"ipv4:{stays.address},{leaves.address}", token=TOKEN)
        )
        stub = Stub(channel)
        names: list[str] = []
        over = asyncio.Event()

        async def keep_calling() -> None:
            while not over.is_set():
                names.append((await stub.Unary(EchoRequest(text="a"))).text)

        callers = [asyncio.create_task(keep_calling()) for _ in range(4)]

        async def both_answered() -> bool:
            return set(names) == {"stays", "leaves"}

        await until(both_answered)
        await leaves.drain()
        await leaving.aclose()
        count = len(names)

        async def goes_on() -> bool:
            return len(names) > count + 50

        await until(goes_on)
        over.set()
        await asyncio.gather(*callers)
        assert set(names[-20:]) == {"stays"}


async def test_a_call_that_is_unavailable_is_repeated() -> None:
    echo = Named("east")
    echo.failures = 2
    async with serving_echo(echo) as server, connect(server.address, token=TOKEN) as channel:
        assert (await Stub(channel).Unary(EchoRequest(text="a"))).text == "east"
    assert echo.calls == 3


async def test_a_call_that_is_refused_is_not_repeated() -> None:
    echo = Named("east")
    async with serving_echo(echo) as server, connect(server.address, token=TOKEN) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await Stub(channel).Unary(EchoRequest(text="fail"))
    assert echo.calls == 1


class Timed(Echo):
    """Notes how much time a call leaves it."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    async def Unary(self, request: Any, context: Any) -> Any:
        self.seconds.append(context.time_remaining())
        return await super().Unary(request, context)


async def test_calls_with_one_answer_have_a_deadline_and_streams_have_none() -> None:
    echo = Timed()
    async with (
        serving_echo(echo) as server,
        connect(server.address, token=TOKEN, timeout_seconds=0.3) as channel,
    ):
        stub = Stub(channel)
        stream = stub.Split(EchoRequest(text="a", tags=["hang"]))
        assert (await stream.read()).text == "a"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Unary(EchoRequest(text="hang"))
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        # A little more is left than was given at times: gRPC rounds it up on its way.
        assert all(seconds < 1 for seconds in echo.seconds)
        assert not stream.done()
        stream.cancel()

        async def hanging() -> AsyncIterator[Any]:
            await asyncio.Event().wait()
            yield EchoRequest()

        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Join(hanging())
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_calls_own_deadline_wins() -> None:
    async with serving_echo() as server, connect(server.address, token=TOKEN) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await Stub(channel).Unary(EchoRequest(text="hang"), timeout=0.1)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_token_is_asked_for_at_every_call() -> None:
    subjects = iter(["player:a", "player:b"])
    async with (
        serving_echo() as server,
        connect(server.address, token=lambda: mint_token(KEY, next(subjects))) as channel,
    ):
        stub = Stub(channel)
        callers = [(await stub.Unary(EchoRequest(text="a"))).caller for _ in range(2)]
    assert callers == ["player:a", "player:b"]


async def test_a_service_that_is_not_there_is_unavailable() -> None:
    async with connect("127.0.0.1:1", token=TOKEN) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await Stub(channel).Unary(EchoRequest(text="a"))
    assert explain(caught.value).reason == "UNAVAILABLE"


async def test_a_slow_line_is_waited_for() -> None:
    """A hundred milliseconds, gRPC's least pause between attempts, is less than TLS takes over a
    line to another continent: a connection that is broken off then never comes to stand."""
    connections = 0

    async with serving_echo() as server:
        host, _, port = server.address.rpartition(":")

        async def far_away(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            there, forth = await asyncio.open_connection(host, int(port))
            async with asyncio.TaskGroup() as group:
                group.create_task(passed(client, forth))
                await asyncio.sleep(0.3)
                group.create_task(passed(there, back))

        async def passed(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(65_536):
                    target.write(data)
            target.close()

        async with await asyncio.start_server(far_away, "127.0.0.1", 0) as line:
            address = "{}:{}".format(*line.sockets[0].getsockname())
            async with connect(address, token=TOKEN) as channel:
                answer = await Stub(channel).Unary(EchoRequest(text="a"))
    assert answer.text == "a"
    assert connections == 1


@pytest.mark.parametrize(
    "target",
    [
        "example.org:443",
        "10.0.0.1:7100",
        "dns:///example.org:443",
        "ipv4:127.0.0.1:1,10.0.0.1:1",
        "[2001:db8::1]:7100",
        "127.0.0.1.example.org:7100",
    ],
)
async def test_a_token_does_not_leave_this_host_in_plain_text(target: str) -> None:
    with pytest.raises(ValueError, match="plain text"):
        connect(target, token=TOKEN)
    await connect(target).close()
    await connect(target, token=TOKEN, plaintext=True).close()
    await connect(target, token=TOKEN, credentials=grpc.ssl_channel_credentials()).close()


@pytest.mark.parametrize(
    "target",
    [
        "127.0.0.1:1",
        "localhost:1",
        "[::1]:1",
        "ipv4:127.0.0.1:1,127.0.0.2:1",
        "ipv6:[::1]:1",
        "dns:///localhost:1",
        "unix:/tmp/socket",
    ],
)
async def test_a_token_may_travel_within_this_host(target: str) -> None:
    await connect(target, token=TOKEN).close()


def test_the_shipped_service_config_says_what_is_promised() -> None:
    config = json.loads(SERVICE_CONFIG)
    assert config["loadBalancingConfig"] == [{"round_robin": {}}]
    assert config["healthCheckConfig"] == {"serviceName": ""}
    (default,) = config["methodConfig"]
    assert default["name"] == [{}]
    assert default["retryPolicy"]["retryableStatusCodes"] == ["UNAVAILABLE", "CANCELLED"]
