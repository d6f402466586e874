"""Calls that no honest client makes: found by asking the services what they have, made from a seed.

The messages are made from the examples of the contracts, from ids that the suite has told, and from
nothing at all; then some are changed, and some are no messages any more.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, MethodOptions
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from fangcheng.access.v1 import access_pb2
from fangcheng_kit.errors import DETAILS_KEY
from fangcheng_kit.tokens import mint_token
from tests.fuzz.mutations import Mutator, places
from tests.system.processes import KEY

HANG_SECONDS = 60.0
"""A single call that is not answered after so long will never be."""
GLANCE_SECONDS = 0.02
"""How long a stream is listened to."""
OF_GRPC = frozenset({"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"})
OF_STUDIOS = frozenset({"AdmissionService"})
"""Services that the suite calls, and does not have."""
_WROTE_TOO_LATE = "Internal error from Core"
"""What gRPC's client itself says where it was writing when the server ended a stream."""
_MOST_ANSWERS = 5
_OTHER_KEY = "another key, of nobody in this suite"
_PLAYER = "player"
_SUBJECTS = (
    *("operator", "operator:mei", "viewer:wang", "service:table", "service:matchmaking"),
    *("service:wallet", "service:console", "service:gateway", _PLAYER),
)
_ODD_TOKENS = ("", "Bearer", "Bearer ", "Bearer x.y.z", "Basic YTpi", "Bearer " + "e" * 4_000)
_ODD_METADATA: tuple[tuple[str, str | bytes], ...] = (
    ("x-request-id", "a b;c"),
    ("x-request-id", "r" * 2_000),
    ("x-request-id", ""),
    ("traceparent", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"),
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ("traceparent", "ff-zz"),
    ("tracestate", "a=" + "b" * 600),
    ("fangcheng-act-as", "ann"),
    ("fangcheng-act-as", "x" * 300),
    ("fangcheng-act-as", ""),
    ("fangcheng-act-as-bin", b"\xff\xfe"),
    ("fangcheng-act-as-bin", "方".encode()),
    ("fangcheng-caller-bin", b'{"sub": "operator"}'),
    ("fangcheng-caller-bin", b"[" * 2_000),
    ("grpc-previous-rpc-attempts", "7"),
    ("x-anything-bin", bytes(range(256))),
    ("authorization", "Bearer twice"),
)


@dataclass(frozen=True, slots=True)
class Method:
    """A call that a service says it has."""

    service: str
    """The process: `wallet`, `table`, …"""
    path: str
    request: Descriptor = field(repr=False)
    answer: Descriptor = field(repr=False)
    takes_stream: bool
    gives_stream: bool
    changes: bool
    """It may change something; the contract does not say that it has no side effects."""
    callers: tuple[str, ...]
    """Subjects that the contract admits; `player` stands for any player."""
    scope: str


@dataclass(frozen=True, slots=True)
class Input:
    """One call, to be repeated as it is."""

    method: Method
    messages: Sequence[bytes]
    metadata: Sequence[tuple[str, str | bytes]] = field(repr=False)
    caller: str
    timeout_seconds: float
    gzip: bool
    cut: bool
    """The client goes away in the middle of a stream."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call."""

    code: grpc.StatusCode
    details: str = ""
    is_explained: bool = False
    """The status carries details, as every refusal of ours does."""
    answers: Sequence[bytes] = ()


def reflected(service: str, address: str) -> list[Method]:
    """The calls of a running process, from its reflection; blocks."""
    with grpc.insecure_channel(address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        pool = DescriptorPool(database)
        names = [name for name in database.get_services() if name not in OF_GRPC]
        return [
            _method(service, method)
            for name in sorted(names)
            for method in pool.FindServiceByName(name).methods
        ]


def _method(service: str, told: MethodDescriptor) -> Method:
    # Extensions are known to the default pool alone.
    options = MethodOptions.FromString(told.GetOptions().SerializeToString())
    access = options.Extensions[access_pb2.access]
    callers = []
    for role in access.roles:
        if role == access_pb2.ROLE_PLAYER:
            callers.append(_PLAYER)
        elif role == access_pb2.ROLE_OPERATOR:
            callers += ["operator", "operator:mei"]
        else:
            callers += [f"service:{name}" for name in access.services or ["gateway"]]
    return Method(
        service=service,
        path=f"/{told.containing_service.full_name}/{told.name}",
        request=told.input_type,
        answer=told.output_type,
        takes_stream=told.client_streaming,
        gives_stream=told.server_streaming,
        changes=options.idempotency_level != MethodOptions.NO_SIDE_EFFECTS,
        callers=tuple(callers),
        scope=access.scope,
    )


def described(files: Sequence[FileDescriptorProto]) -> set[str]:
    """The paths of all calls in the contracts that the suite itself serves."""
    return {
        f"/{file.package}.{service.name}/{method.name}"
        for file in files
        for service in file.service
        if service.name not in OF_STUDIOS
        for method in service.method
    }


class Maker:
    """Makes inputs."""

    def __init__(
        self,
        rng: random.Random,
        methods: Sequence[Method],
        examples: Mapping[str, Sequence[str]],
        known: Mapping[str, Sequence[Any]],
        acts: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """`acts`: what players are offered, as `ActRequest`."""
        self._rng = rng
        self._methods = methods
        # A glance at a stream takes as long as ten other calls.
        self._weights = [0.3 if method.gives_stream else 1.0 for method in methods]
        self._examples = examples
        self._mutator = Mutator(rng, known)
        self._acts = acts
        self._tokens: dict[str, str] = {}
        self._number = 0

    def one(self) -> Input:
        """The next input."""
        rng = self._rng
        self._number += 1
        (method,) = rng.choices(self._methods, self._weights)
        caller, metadata = self._caller(method)
        count = rng.choice((0, 1, 1, 2, 5, 20)) if method.takes_stream else 1
        messages = [self._message(method) for _ in range(count)]
        if method.path.endswith("/Act") and self._acts and rng.random() < 0.5:
            player, offered = rng.choice(self._acts)
            caller, metadata = f"player:{player}", []
            metadata.append(("authorization", "Bearer " + self._token(caller, [])))
            messages = [offered if rng.random() < 0.5 else self._mutator.broken(offered)]
        return Input(
            method=method,
            messages=messages,
            metadata=metadata,
            caller=caller,
            timeout_seconds=rng.choice((0.0, 0.001, 0.005)) if rng.random() < 0.02 else 0.0,
            gzip=rng.random() < 0.03,
            cut=rng.random() < 0.3,
        )

    def _message(self, method: Method) -> bytes:
        rng = self._rng
        message = self._template(method.request)
        for _ in range(rng.choice((0, 0, 1, 1, 2, 4))):
            self._mutator.mutate(message)
        # Texts that are no UTF-8 and the like are made of the bytes.
        data = message.SerializeToString()
        return self._mutator.broken(data) if rng.random() < 0.15 else data

    def _template(self, descriptor: Descriptor) -> Message:
        """An example with ids that mean something, or anything that the type can hold."""
        rng = self._rng
        texts = self._examples.get(descriptor.full_name, ())
        if rng.random() < 0.2 or not texts:
            return self._mutator.made(descriptor)
        message: Message = GetMessageClass(descriptor)()
        text_format.Parse(rng.choice(texts)[1:-1], message)
        for owner, part in list(places(message)):
            if part.name == "request_id":
                # Now and then one that was used before.
                number = self._number if rng.random() < 0.9 else rng.randrange(1, self._number + 1)
                setattr(owner, part.name, f"fuzz-{number}")
            elif part.message_type is None and part.name in self._mutator.known:
                if part.is_repeated:
                    kept: Any = getattr(owner, part.name)
                    kept[:] = [self._mutator.scalar(part) for _ in kept]
                elif part.containing_oneof is None:
                    setattr(owner, part.name, self._mutator.scalar(part))
        return message

    def _caller(self, method: Method) -> tuple[str, list[tuple[str, str | bytes]]]:
        rng = self._rng
        caller = rng.choice(method.callers if rng.random() < 0.8 else _SUBJECTS)
        if caller == _PLAYER:
            # Mostly one of those at the tables.
            other = f"fuzz-{rng.randrange(10_000)}"
            known = rng.choice(self._mutator.known["player_id"])
            caller = f"player:{known if rng.random() < 0.8 and known else other}"
        scopes = [method.scope] if method.scope else []
        if rng.random() < 0.1:
            scopes.append("act_as")
        metadata: list[tuple[str, str | bytes]] = []
        if rng.random() < 0.95:
            metadata.append(("authorization", "Bearer " + self._token(caller, scopes)))
        else:
            metadata.append(("authorization", rng.choice(_ODD_TOKENS)))
        if rng.random() < 0.1:
            metadata += rng.sample(_ODD_METADATA, rng.randrange(1, 4))
        return caller, metadata

    def _token(self, caller: str, scopes: Sequence[str]) -> str:
        if self._rng.random() < 0.01:
            return mint_token(_OTHER_KEY, caller, scopes)
        if self._rng.random() < 0.01:
            return mint_token(KEY, caller, scopes, ttl_seconds=-3_600)
        name = f"{caller} {scopes}"
        if name not in self._tokens:
            self._tokens[name] = mint_token(KEY, caller, scopes, ttl_seconds=86_400)
        return self._tokens[name]


async def sent(channel: grpc.aio.Channel, given: Input) -> Outcome:
    """Make a call, and wait for what becomes of it."""
    method = given.method
    takes, gives = (
        "stream" if streams else "unary" for streams in (method.takes_stream, method.gives_stream)
    )
    make: Any = getattr(channel, f"{takes}_{gives}")(method.path)
    usual = GLANCE_SECONDS if method.gives_stream else HANG_SECONDS
    call = make(
        *([] if method.takes_stream else given.messages),
        metadata=tuple(given.metadata),
        timeout=given.timeout_seconds or usual,
        compression=grpc.Compression.Gzip if given.gzip else None,
    )
    answers = []
    try:
        if method.takes_stream:
            await _write(call, given)
        if method.gives_stream:
            async for answer in call:
                answers.append(answer)
                if given.cut or len(answers) == _MOST_ANSWERS:
                    call.cancel()
                    return Outcome(grpc.StatusCode.CANCELLED, answers=answers)
        else:
            answers.append(await call)
    except grpc.aio.AioRpcError:
        pass
    if await call.details() == _WROTE_TOO_LATE:
        return Outcome(grpc.StatusCode.CANCELLED, answers=answers)
    trailers = dict(await call.trailing_metadata() or ())
    details = await call.details() or ""
    return Outcome(await call.code(), details, DETAILS_KEY in trailers, answers)


async def _write(call: Any, given: Input) -> None:
    """Send a stream's messages, as far as the server takes them."""
    try:
        for message in given.messages:
            await call.write(message)
        if not given.cut:
            await call.done_writing()
    except (asyncio.InvalidStateError, grpc.aio.InternalError):
        pass  # it has ended already


def answer_of(given: Input, data: bytes) -> Message:
    """An answer, read."""
    message: Message = GetMessageClass(given.method.answer)()
    message.ParseFromString(data)
    return message
