"""What happens around every handler."""

from __future__ import annotations

import asyncio
import gc
import types
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import BadRequest
from google.rpc.status_pb2 import Status

from fangcheng_client import Problem, connect, explain
from fangcheng_kit import Kit, Running, Servicer, Settings, serving
from fangcheng_kit.contract import ContractError
from fangcheng_kit.errors import DETAILS_KEY
from fangcheng_kit.tokens import mint_token
from tests.kit.conftest import Eventually
from tests.kit.echo import (
    KEY,
    SERVICE,
    Echo,
    EchoRequest,
    Stub,
    connected,
    serving_echo,
)

KINDS = ["Unary", "Split", "Join", "Chat"]


async def call(stub: Stub, kind: str, *texts: str, tags: tuple[str, ...] = ()) -> list[Any]:
    """The answers to a call of any kind; one request of ``texts`` where it takes one."""
    requests = [EchoRequest(text=text, tags=tags) for text in texts]

    async def stream() -> AsyncIterator[Any]:
        for request in requests:
            yield request

    method = getattr(stub, kind)
    if kind == "Unary":
        return [await method(requests[0])]
    if kind == "Split":
        return [answer async for answer in method(requests[0])]
    if kind == "Join":
        return [await method(stream())]
    return [answer async for answer in method(stream())]


async def refused(awaitable: Any) -> Problem:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await awaitable
    return explain(caught.value)


def counted(running: Running, name: str = "grpc_server_handled_total", **labels: str) -> float:
    """The sum of a metric over all children with these labels."""
    return sum(
        sample.value
        for metric in running.kit.registry.collect()
        for sample in metric.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_of_any_kind_is_answered_and_its_handler_knows_the_caller(
    stub: Stub, kind: str
) -> None:
    answers = await call(stub, kind, "ab")
    assert "".join(answer.text for answer in answers) == "ab"
    assert {answer.caller for answer in answers} == {"operator"}
    assert all(len(answer.request_id) == 32 for answer in answers)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_beyond_its_limits_is_refused_with_the_field(
    stub: Stub, echo: Echo, kind: str
) -> None:
    problem = await refused(call(stub, kind, "far too long a text"))
    assert problem.code is grpc.StatusCode.INVALID_ARGUMENT
    assert problem.reason == "INVALID_REQUEST"
    assert problem.field == "text"
    assert "8 characters" in problem.message
    assert echo.calls == 0


@pytest.mark.parametrize("kind", ["Join", "Chat"])
async def test_every_request_of_a_stream_is_checked(stub: Stub, kind: str) -> None:
    problem = await refused(call(stub, kind, "good", "far too long a text"))
    assert problem.reason == "INVALID_REQUEST"


async def test_all_violations_are_named_with_their_paths(stub: Stub) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Unary(EchoRequest(text="far too long", tags=["a", ""]))
    trailing = dict(list(caught.value.trailing_metadata() or ()))
    bad = BadRequest()
    status = Status.FromString(trailing[DETAILS_KEY])
    assert any(detail.Unpack(bad) for detail in status.details)
    assert [violation.field for violation in bad.field_violations] == ["text", "tags[1]"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_text_with_nul_is_refused_with_the_field(stub: Stub, echo: Echo, kind: str) -> None:
    problem = await refused(call(stub, kind, "a\0b", tags=("c\0",)))
    assert problem.code is grpc.StatusCode.INVALID_ARGUMENT
    assert (problem.reason, problem.field) == ("INVALID_REQUEST", "text")
    assert echo.calls == 0
    problem = await refused(call(stub, kind, "ab", tags=("c", "c\0")))
    assert problem.field == "tags[1]"


async def test_bytes_may_have_nul(stub: Stub) -> None:
    assert (await stub.Unary(EchoRequest(text="a", data=b"\0\0"))).text == "a"


@pytest.mark.parametrize("kind", ["Unary", "Chat"])
async def test_an_error_that_is_meant_reaches_the_caller_with_reason_and_metadata(
    stub: Stub, kind: str
) -> None:
    problem = await refused(call(stub, kind, "fail"))
    assert problem == Problem(
        grpc.StatusCode.FAILED_PRECONDITION,
        "NOT_NOW",
        "The echo sleeps.",
        "text",
        {"until": "dawn"},
    )


async def test_a_stream_that_fails_at_its_end_has_delivered_what_came_before(stub: Stub) -> None:
    stream = stub.Split(EchoRequest(text="ab", tags=["fail"]))
    assert [(await stream.read()).text, (await stream.read()).text] == ["a", "b"]
    assert (await refused(stream.read())).reason == "NO_SUCH_ECHO"


@pytest.mark.parametrize("text", ["crash", "wrong"])
async def test_a_fault_of_ours_is_internal_and_leaks_nothing(stub: Stub, text: str) -> None:
    problem = await refused(call(stub, "Unary", text))
    assert problem.code is grpc.StatusCode.INTERNAL
    assert problem.reason == "INTERNAL"
    assert "secret" not in problem.message
    assert "Error" not in problem.message


async def test_bytes_that_are_no_request_are_refused_as_malformed(running: Running) -> None:
    async with connected(running) as channel:
        raw = channel.unary_unary(f"/{SERVICE}/Unary")
        problem = await refused(raw(b"\xff\xff\xff"))
    assert problem.code is grpc.StatusCode.INVALID_ARGUMENT
    assert problem.reason == "MALFORMED_REQUEST"


async def test_a_message_of_five_megabytes_is_refused_with_a_clear_status(
    stub: Stub, echo: Echo, running: Running, eventually: Eventually
) -> None:
    problem = await refused(stub.Unary(EchoRequest(data=bytes(5_000_000))))
    assert problem.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert problem.reason == "MESSAGE_TOO_LARGE"
    assert problem.metadata["max_message_bytes"] == str(4 * 1024 * 1024)
    assert int(problem.metadata["bytes"]) > 5_000_000
    assert echo.calls == 0
    await eventually(
        lambda: counted(running, grpc_method="Unary", grpc_code="RESOURCE_EXHAUSTED") == 1
    )


async def test_a_message_that_grpc_itself_refuses_has_the_same_reason(
    stub: Stub, echo: Echo
) -> None:
    problem = await refused(stub.Unary(EchoRequest(data=bytes(10_000_000))))
    assert problem.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert problem.reason == "MESSAGE_TOO_LARGE"
    assert echo.calls == 0


async def test_a_call_that_does_not_exist_is_unimplemented_and_counted_under_one_name(
    running: Running, eventually: Eventually
) -> None:
    async with connected(running) as channel:
        for name in ("One", "Two"):
            problem = await refused(channel.unary_unary(f"/{SERVICE}/{name}")(b""))
            # What gRPC itself answers for a call that there is not: no gap, and to stay so.
            assert problem.code is grpc.StatusCode.UNIMPLEMENTED
    await eventually(
        lambda: (
            counted(running, grpc_method="unknown", grpc_code="UNIMPLEMENTED") == 2
            and counted(running, grpc_method="One") == 0
        )
    )


# Who is calling, and who may.


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_without_a_token_is_refused(running: Running, kind: str) -> None:
    async with connect(running.address) as channel:
        problem = await refused(call(Stub(channel), kind, "a"))
    assert (problem.code, problem.reason) == (grpc.StatusCode.UNAUTHENTICATED, "TOKEN_MISSING")


@pytest.mark.parametrize("metadata", [[], [("authorization", "Bearer x.y.z")]])
@pytest.mark.parametrize("kind", KINDS)
async def test_who_is_not_known_is_refused_before_his_request_is_received(
    running: Running, kind: str, metadata: list[tuple[str, str]]
) -> None:
    async def never() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async with grpc.aio.insecure_channel(running.address) as channel:
        request: Any = channel.stream_unary(f"/{SERVICE}/{kind}")
        problem = await refused(request(never(), metadata=metadata, timeout=60))
    assert problem.code is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (mint_token(KEY, "operator", ttl_seconds=-60), "TOKEN_EXPIRED"),
        (mint_token("another key, which is as long as ours", "operator"), "TOKEN_INVALID"),
        ("gibberish", "TOKEN_INVALID"),
    ],
)
async def test_a_bad_token_is_refused(running: Running, token: str, reason: str) -> None:
    async with connect(running.address, token=token) as channel:
        problem = await refused(call(Stub(channel), "Unary", "a"))
    assert (problem.code, problem.reason) == (grpc.StatusCode.UNAUTHENTICATED, reason)


@pytest.mark.parametrize(
    ("method", "subject", "scopes", "reason"),
    [
        ("ForTable", "service:table", (), None),
        ("ForTable", "service:wallet", (), "CALLER_NOT_ALLOWED"),
        ("ForTable", "operator", (), "CALLER_NOT_ALLOWED"),
        ("ForTable", "player:table", (), "CALLER_NOT_ALLOWED"),
        ("ForTable", "viewer:table", (), "CALLER_NOT_ALLOWED"),
        ("Unary", "operator:mei", (), None),
        ("Unary", "viewer:wang", (), "CALLER_NOT_ALLOWED"),
        ("Unary", "viewer:wang", ("act_as",), "CALLER_NOT_ALLOWED"),
        ("ForGateways", "service:any", ("act_as",), None),
        ("ForGateways", "service:any", (), "SCOPE_MISSING"),
    ],
)
async def test_a_call_is_open_only_to_those_its_proto_names(
    running: Running, method: str, subject: str, scopes: tuple[str, ...], reason: str | None
) -> None:
    async with connected(running, subject, *scopes) as channel:
        made = getattr(Stub(channel), method)(EchoRequest(text="a"))
        if reason is None:
            assert (await made).caller == subject
        else:
            problem = await refused(made)
            assert problem.code is grpc.StatusCode.PERMISSION_DENIED
            assert problem.reason == reason


@pytest.mark.parametrize("player", ["ming", "小明", "a b"])
async def test_a_gateway_acts_for_its_players(running: Running, player: str) -> None:
    async with connected(running, "service:gateway", "act_as", act_as=player) as channel:
        answer = await Stub(channel).Unary(EchoRequest(text="a"))
    assert answer.caller == f"player:{player} via service:gateway"


async def test_acting_for_a_player_needs_the_scope(running: Running) -> None:
    async with connected(running, "service:gateway", act_as="ming") as channel:
        problem = await refused(call(Stub(channel), "Unary", "a"))
    assert problem.reason == "ACT_AS_NOT_ALLOWED"


async def test_a_gateway_that_acts_for_a_player_has_no_rights_of_a_service(
    running: Running,
) -> None:
    async with connected(running, "service:table", "act_as", act_as="ming") as channel:
        problem = await refused(Stub(channel).ForTable(EchoRequest(text="a")))
    assert problem.reason == "CALLER_NOT_ALLOWED"


# What a proto and a servicer must have.


async def test_a_service_whose_call_does_not_say_who_may_make_it_is_not_served() -> None:
    @asynccontextmanager
    async def open_service(settings: Settings, kit: Kit) -> AsyncIterator[list[Servicer]]:
        yield [Servicer(lambda *_: None, Echo(), "fangcheng.test.v1.BareService")]

    with pytest.raises(ContractError, match=r"BareService.Unary does not say who may call it"):
        async with serving("echo", Settings(dev_key=KEY), open_service):
            pass


async def test_a_servicer_that_blocks_or_lacks_a_call_is_not_served() -> None:
    class Blocking(Echo):
        def Unary(self, request: Any, context: Any) -> Any:
            return None

    with pytest.raises(ContractError, match=r"Blocking\.Unary is not there or not async"):
        async with serving_echo(Blocking()):
            pass


# Every outcome is counted.


@pytest.mark.parametrize(
    ("kind", "text", "code"),
    [(kind, "a", "OK") for kind in KINDS]
    + [(kind, "far too long", "INVALID_ARGUMENT") for kind in KINDS]
    + [
        ("Unary", "fail", "FAILED_PRECONDITION"),
        ("Unary", "abort", "OUT_OF_RANGE"),
        ("Chat", "abort", "OUT_OF_RANGE"),
        ("Unary", "crash", "INTERNAL"),
    ],
)
async def test_a_call_is_counted_with_its_outcome(
    running: Running, stub: Stub, eventually: Eventually, kind: str, text: str, code: str
) -> None:
    try:
        await call(stub, kind, text)
    except grpc.aio.AioRpcError as error:
        assert error.code().name == code  # noqa: PT017 (with OK there is no error)
    else:
        assert code == "OK"
    names = {
        "Unary": "unary",
        "Split": "server_stream",
        "Join": "client_stream",
        "Chat": "bidi_stream",
    }
    labels = {"grpc_service": SERVICE, "grpc_method": kind, "grpc_type": names[kind]}
    await eventually(lambda: counted(running, grpc_code=code, **labels) == 1)
    assert counted(running, **labels) == 1
    assert counted(running, "grpc_server_started_total", **labels) == 1
    assert counted(running, "grpc_server_handling_seconds_count", **labels) == 1


@pytest.mark.parametrize("kind", ["Unary", "Split", "Chat"])
async def test_a_call_that_its_client_cancels_is_counted_and_its_handler_cleans_up(
    running: Running, stub: Stub, echo: Echo, eventually: Eventually, kind: str
) -> None:
    if kind == "Split":
        # Cancelled by itself: a task that is cancelled before it reads leaves its stream to the
        # garbage collector.
        made = stub.Split(EchoRequest(text="a", tags=["hang"]))
        await made.read()
    else:
        made = asyncio.create_task(call(stub, kind, "hang"))
    await eventually(lambda: counted(running, "grpc_server_started_total", grpc_method=kind) == 1)
    if kind != "Chat":
        await echo.entered.wait()
    made.cancel()
    await eventually(lambda: counted(running, grpc_method=kind, grpc_code="CANCELLED") == 1)
    if kind == "Split":
        await asyncio.wait_for(echo.cleaned.wait(), 60)


async def test_a_call_over_its_deadline_is_counted_as_that(running: Running) -> None:
    # On a slow machine it is over before the server hears of the call.
    async with asyncio.timeout(60), connected(running, timeout_seconds=0.2) as channel:
        while not counted(running, grpc_method="Unary", grpc_code="DEADLINE_EXCEEDED"):
            problem = await refused(Stub(channel).Unary(EchoRequest(text="hang")))
            assert problem.code is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_the_metrics_are_served_over_http(running: Running, stub: Stub) -> None:
    await call(stub, "Unary", "a")

    def fetch() -> str:
        with urllib.request.urlopen(f"http://{running.metrics_address}/metrics") as response:
            text: str = response.read().decode()
            return text

    text = await asyncio.to_thread(fetch)
    assert "grpc_server_handled_total" in text
    assert "process_resident_memory_bytes" in text
    assert "operator" not in text


# One request id from end to end.


async def test_the_callers_request_id_is_kept_and_passed_on(
    running: Running, stub: Stub, echo: Echo
) -> None:
    echo.passed_on = running.kit.connect(running.address)
    answer = await stub.Unary(EchoRequest(text="pass on"), metadata=(("x-request-id", "abc-1"),))
    assert answer.request_id == "abc-1"
    assert answer.caller == "service:echo"


async def test_a_request_id_that_is_none_is_replaced(stub: Stub) -> None:
    answer = await stub.Unary(EchoRequest(text="a"), metadata=(("x-request-id", "no good" * 50),))
    assert len(answer.request_id) == 32


async def test_a_service_that_does_not_answer_makes_its_caller_unavailable(
    running: Running, stub: Stub, echo: Echo
) -> None:
    echo.passed_on = running.kit.connect("127.0.0.1:1", timeout_seconds=0.3)
    problem = await refused(stub.Unary(EchoRequest(text="pass on")))
    assert problem.code is grpc.StatusCode.UNAVAILABLE
    assert problem.reason == "DEPENDENCY_UNAVAILABLE"


# The end.


class Slow(Echo):
    """Answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()
        self.release = asyncio.Event()

    async def Unary(self, request: Any, context: Any) -> Any:
        self.began.set()
        await self.release.wait()
        return await self._answer(request, context)


async def test_open_streams_end_with_unavailable_when_the_server_stops() -> None:
    slow = Slow()
    async with serving_echo(slow, grace_seconds=30.0) as running:
        channel = connected(running)
        stream = Stub(channel).Split(EchoRequest(text="a", tags=["hang"]))
        assert (await stream.read()).text == "a"
        # The server is there until the stream was told: of what it has not sent yet as it goes,
        # gRPC drops some, one time in a thousand.
        made = asyncio.ensure_future(Stub(channel).Unary(EchoRequest(text="b")))
        await slow.began.wait()
        told = asyncio.ensure_future(refused(stream.read()))
        told.add_done_callback(lambda _: slow.release.set())
    # The server has stopped, long before its grace was over, and the handler has cleaned up.
    assert slow.cleaned.is_set()
    problem = await told
    assert (problem.code, problem.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
    assert (await made).text == "b"
    await channel.close()


async def test_calls_in_flight_are_finished_when_the_server_stops() -> None:
    slow = Slow()
    async with serving_echo(slow, grace_seconds=30.0) as running:
        channel = connected(running)
        made = asyncio.ensure_future(Stub(channel).Unary(EchoRequest(text="a")))
        await slow.began.wait()
        asyncio.get_running_loop().call_later(0.05, slow.release.set)
    assert (await made).text == "a"
    await channel.close()


async def test_a_thousand_streams_that_are_cancelled_leave_nothing_behind(
    running: Running, stub: Stub, eventually: Eventually
) -> None:
    async def watch_and_leave() -> None:
        stream = stub.Split(EchoRequest(text="a", tags=["hang"]))
        await stream.read()
        stream.cancel()

    def generators() -> int:
        gc.collect()
        return sum(isinstance(thing, types.AsyncGeneratorType) for thing in gc.get_objects())

    await watch_and_leave()
    await eventually(lambda: counted(running, grpc_method="Split", grpc_code="CANCELLED") == 1)
    tasks, before = len(asyncio.all_tasks()), generators()
    for _ in range(20):
        await asyncio.gather(*(watch_and_leave() for _ in range(50)))
    await eventually(lambda: counted(running, grpc_method="Split", grpc_code="CANCELLED") == 1001)
    await eventually(lambda: len(asyncio.all_tasks()) <= tasks)
    await eventually(lambda: generators() <= before)
