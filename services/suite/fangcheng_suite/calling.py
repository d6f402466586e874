"""`fangcheng call`: any call of the suite, its request and its answers as JSON."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator
from typing import Any

import grpc.aio
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from rich.console import Console

from .access import Access, Elsewhere
from .errors import SuiteError

_MODULES = {
    "evaluation": ("evaluation_pb2",),
    "matchmaking": ("matchmaking_pb2", "operations_pb2", "privacy_pb2", "rooms_pb2"),
    "table": ("operators_pb2", "privacy_pb2", "records_pb2", "table_pb2"),
    "wallet": ("privacy_pb2", "settlement_pb2", "wallet_pb2"),
}
"""Where the gRPC services of each service of ours are described."""


async def call(
    access: Access | Elsewhere, subject: str, name: str, request: str, console: Console
) -> None:
    """Make a call and print each answer; raises SuiteError.

    `name`: `TableService/GetTable`; in full, with its package, where several have it. `request`:
    JSON; empty for a request without fields.
    """
    service, method = find(name)
    asked = message_factory.GetMessageClass(method.input_type)()
    try:
        json_format.Parse(request or "{}", asked)
    except json_format.ParseError as error:
        raise SuiteError(
            f"the request is no {method.input_type.name}: {error}",
            "docs/api.md has an example of each.",
        ) from None
    if method.client_streaming:
        raise SuiteError(
            f"{name} takes a stream of requests, which this command does not send",
            "Make it from a program: fangcheng_client has ManySeats for AttendMany, and hands for "
            "StreamHands.",
        )
    async with access.channel(service, subject) as channel:
        kind = channel.unary_stream if method.server_streaming else channel.unary_unary
        make: Any = kind(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=type(asked).SerializeToString,
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )
        try:
            if method.server_streaming:
                async for answer in make(asked):
                    console.print(_shown(answer), markup=False)
            else:
                console.print(_shown(await make(asked)), markup=False)
        except grpc.aio.AioRpcError as error:
            raise access.failed(error, name) from error


def find(name: str) -> tuple[str, MethodDescriptor]:
    """The service of ours that has a call, and the call; raises SuiteError."""
    known = {
        f"{called}/{method.name}": (at, method)
        for at, one in services()
        for called in (one.name, one.full_name)
        for method in one.methods
    }
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise SuiteError(
            f"there is no call {name}",
            f"{near[0]}?" if near else "docs/api.md lists them: TableService/GetTable is one.",
        )
    service, _, _ = name.partition("/")
    several = [one.full_name for _, one in services() if one.name == service]
    if len(several) > 1:
        raise SuiteError(f"there are several {service}", f"Name one in full: {several[0]}.")
    return known[name]


def services() -> Iterator[tuple[str, ServiceDescriptor]]:
    """The gRPC services, each with the service of ours that serves it."""
    for at, modules in _MODULES.items():
        for module in modules:
            described = importlib.import_module(f"fangcheng.{at}.v1.{module}")
            for one in described.DESCRIPTOR.services_by_name.values():
                yield at, one


def _shown(answer: Any) -> str:
    return json_format.MessageToJson(answer, preserving_proto_field_name=True, ensure_ascii=False)
