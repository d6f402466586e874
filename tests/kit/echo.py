"""A service of the tests: calls of all four kinds, whose behaviour the request chooses.

Its proto is built here from descriptors, so that the tests need no stub compiler.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import grpc
import grpc.aio
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from buf.validate import validate_pb2
from fangcheng.access.v1 import access_pb2
from fangcheng_client import connect
from fangcheng_kit import Kit, Running, Servicer, Settings, errors, logs, principal, serving
from fangcheng_kit.tokens import mint_token

KEY = "a development key of the tests, long enough"
PACKAGE = "fangcheng.test.v1"
SERVICE = f"{PACKAGE}.EchoService"

_FIELD = descriptor_pb2.FieldDescriptorProto
_ROLES = (access_pb2.ROLE_PLAYER, access_pb2.ROLE_OPERATOR, access_pb2.ROLE_SERVICE)

# name: request is a stream, response is a stream, roles, services, scope
_METHODS: dict[str, tuple[bool, bool, Iterable[int], Iterable[str], str]] = {
    "Unary": (False, False, _ROLES, (), ""),
    "Split": (False, True, _ROLES, (), ""),
    "Join": (True, False, _ROLES, (), ""),
    "Chat": (True, True, _ROLES, (), ""),
    "ForTable": (False, False, (access_pb2.ROLE_SERVICE,), ("table",), ""),
    "ForGateways": (False, False, (access_pb2.ROLE_SERVICE,), (), "act_as"),
    "Seldom": (False, False, _ROLES, (), ""),
}
_PER_MINUTE = {"Seldom": 30}


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="fangcheng/test/v1/echo.proto",
        package=PACKAGE,
        syntax="proto3",
        dependency=["buf/validate/validate.proto", "fangcheng/access/v1/access.proto"],
    )
    request = file.message_type.add(name="EchoRequest")
    text = request.field.add(
        name="text", number=1, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_OPTIONAL
    )
    text.options.Extensions[validate_pb2.field].string.max_len = 8
    tags = request.field.add(
        name="tags", number=2, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_REPEATED
    )
    tags.options.Extensions[validate_pb2.field].repeated.items.string.min_len = 1
    request.field.add(name="data", number=3, type=_FIELD.TYPE_BYTES, label=_FIELD.LABEL_OPTIONAL)
    response = file.message_type.add(name="EchoResponse")
    for number, name in enumerate(("text", "caller", "request_id"), 1):
        response.field.add(
            name=name, number=number, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_OPTIONAL
        )
    service = file.service.add(name="EchoService")
    for name, (stream_in, stream_out, roles, services, scope) in _METHODS.items():
        method = service.method.add(
            name=name,
            input_type=f".{PACKAGE}.EchoRequest",
            output_type=f".{PACKAGE}.EchoResponse",
            client_streaming=stream_in,
            server_streaming=stream_out,
        )
        access = method.options.Extensions[access_pb2.access]
        access.roles.extend(roles)
        access.services.extend(services)
        access.scope = scope
        access.player_calls_per_minute = _PER_MINUTE.get(name, 0)
    bare = file.service.add(name="BareService")
    bare.method.add(
        name="Unary", input_type=f".{PACKAGE}.EchoRequest", output_type=f".{PACKAGE}.EchoResponse"
    )
    return file


_POOL = descriptor_pool.Default()
_POOL.Add(_file())
EchoRequest: Any = message_factory.GetMessageClass(
    _POOL.FindMessageTypeByName(f"{PACKAGE}.EchoRequest")
)
EchoResponse: Any = message_factory.GetMessageClass(
    _POOL.FindMessageTypeByName(f"{PACKAGE}.EchoResponse")
)


def add(servicer: Any, server: Any) -> None:
    """What a generated ``add_EchoServiceServicer_to_server`` does."""
    handlers = {}
    for name, (stream_in, stream_out, *_) in _METHODS.items():
        arity = f"{'stream' if stream_in else 'unary'}_{'stream' if stream_out else 'unary'}"
        handlers[name] = getattr(grpc, f"{arity}_rpc_method_handler")(
            getattr(servicer, name),
            request_deserializer=EchoRequest.FromString,
            response_serializer=EchoResponse.SerializeToString,
        )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))


class Stub:
    """What a generated ``EchoServiceStub`` has."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        for name, (stream_in, stream_out, *_) in _METHODS.items():
            arity = f"{'stream' if stream_in else 'unary'}_{'stream' if stream_out else 'unary'}"
            call = getattr(channel, arity)(
                f"/{SERVICE}/{name}",
                request_serializer=EchoRequest.SerializeToString,
                response_deserializer=EchoResponse.FromString,
            )
            setattr(self, name, call)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Echo:
    """Answers what it was told, or does what it was told to."""

    def __init__(self, name: str = "echo") -> None:
        self.name = name
        self.cleaned = asyncio.Event()
        """A stream's own clean-up has run."""
        self.entered = asyncio.Event()
        """A handler has begun."""
        self.calls = 0
        self.passed_on: grpc.aio.Channel | None = None

    async def Unary(self, request: Any, context: Any) -> Any:
        self.calls += 1
        self.entered.set()
        return await self._answer(request, context)

    async def Split(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self.entered.set()
        try:
            for sign in request.text:
                yield await self._answer(EchoRequest(text=sign), context)
            if "hang" in request.tags:
                await asyncio.Event().wait()
            if "fail" in request.tags:
                raise errors.NotFound("NO_SUCH_ECHO", "There is none.", "text")
        finally:
            await asyncio.sleep(0)
            self.cleaned.set()

    async def Join(self, requests: AsyncIterator[Any], context: Any) -> Any:
        text = "".join([request.text async for request in requests])
        return await self._answer(EchoRequest(text=text), context)

    async def Chat(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        try:
            async for request in requests:
                yield await self._answer(request, context)
        finally:
            self.cleaned.set()

    async def ForTable(self, request: Any, context: Any) -> Any:
        return await self._answer(request, context)

    async def Seldom(self, request: Any, context: Any) -> Any:
        return await self._answer(request, context)

    async def ForGateways(self, request: Any, context: Any) -> Any:
        return await self._answer(request, context)

    async def _answer(self, request: Any, context: Any) -> Any:
        if request.text == "fail":
            raise errors.FailedPrecondition(
                "NOT_NOW", "The echo sleeps.", "text", {"until": "dawn"}
            )
        if request.text == "crash":
            raise ValueError("the secret of the house")
        if request.text == "abort":
            await context.abort(grpc.StatusCode.OUT_OF_RANGE, "by hand")
        if request.text == "wrong":
            return "no message at all"
        if request.text == "hang":
            await asyncio.Event().wait()
        if request.text == "pass on":
            assert self.passed_on is not None
            return await Stub(self.passed_on).Unary(EchoRequest(text="on"))
        caller = principal.current()
        via = f" via {caller.via}" if caller.via else ""
        return EchoResponse(
            text=request.text, caller=caller.subject + via, request_id=logs.request_id.get()
        )


def serving_echo(
    servicer: Any | None = None, **settings: Any
) -> AbstractAsyncContextManager[Running]:
    """Serve an echo in this process."""

    @asynccontextmanager
    async def open_service(settings: Settings, kit: Kit) -> AsyncIterator[list[Servicer]]:
        yield [Servicer(add, servicer or Echo(), SERVICE)]

    values = {"dev_key": KEY, "drain_seconds": 0.0, "grace_seconds": 1.0, **settings}
    return serving("echo", Settings(**values), open_service)


def connected(
    running: Running, subject: str = "operator", *scopes: str, **options: Any
) -> grpc.aio.Channel:
    """A channel to it as ``subject``."""
    return connect(running.address, token=mint_token(KEY, subject, scopes), **options)
