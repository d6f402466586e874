"""Calls about tables that another replica plays are passed on to it, for whoever made them.

The replicas tell one another who calls; nobody's token leaves the one that has checked it. The
owner's answer or refusal goes back as it is. A call that was passed on once is not passed on again:
if the table has moved meanwhile, the caller is told to repeat it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import wraps
from typing import Any, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from fangcheng.table.v1 import table_pb2
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_client import explain
from fangcheng_kit import Kit, errors, identities, principal

from .errors import PlayedElsewhere
from .relays import OpenStream
from .store import Owner

FORWARDED_KEY = "fangcheng-forwarded"
HEIR_SECONDS = 2.0
"""How long a replica of a newer version may take to make a table before an older one does."""

_SILENT = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
_LACKS_RULES = frozenset({"UNKNOWN_RULE_SET", "UNKNOWN_REVISION"})

Request = TypeVar("Request", bound=Message)
Answer = TypeVar("Answer", bound=Message)
Unary = Callable[[Any, Request, Any], Awaitable[Answer]]
Stream = Callable[[Any, Request, Any], AsyncIterator[Answer]]


class Peers:
    """The other replicas, by their endpoints."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        # One for each endpoint that there has been: no more than replicas that were started since.
        self._channels: dict[str, grpc.aio.Channel] = {}

    def stub(self, kind: Callable[[Any], Any], endpoint: str) -> Any:
        """A stub for a replica; untyped, as stubs of aio are."""
        channel = self._channels.get(endpoint)
        if channel is None:
            # One that drains still answers for its tables; and who asked us repeats by itself.
            channel = self._channels[endpoint] = self._kit.connect(
                endpoint,
                server_name="table",  # the endpoint is an address, of which its certificate is not
                options=[("grpc.service_config", "{}")],
            )
        return kind(channel)

    def many_seats(self) -> OpenStream:
        """Opens a stream of many seats at a replica, for the caller of this one."""
        metadata = passed_on()

        def open_stream(endpoint: str, requests: AsyncIterator[table_pb2.AttendManyRequest]) -> Any:
            return self.stub(TableServiceStub, endpoint).AttendMany(requests, metadata=metadata)

        return open_stream

    def lobby(self, request: table_pb2.WatchTablesRequest) -> Callable[[str], Any]:
        """Opens the same stream of summaries at a replica, for the caller of this one."""
        metadata = passed_on()
        return lambda endpoint: self.stub(TableServiceStub, endpoint).WatchTables(
            request, metadata=metadata
        )


def passed_on() -> list[tuple[str, str | bytes]]:
    """The metadata with which the call that is being handled is passed on."""
    return [identities.passed_on(principal.current()), (FORWARDED_KEY, "1")]


def was_passed_on(context: Any) -> bool:
    """Whether another replica has passed this call on."""
    return any(key == FORWARDED_KEY for key, _ in context.invocation_metadata() or ())


async def made_by_heir(
    peers: Peers, heirs: Sequence[Owner], request: table_pb2.CreateTableRequest
) -> table_pb2.CreateTableResponse | None:
    """The answer of the first of the `heirs` that is there and has the table's rule set; None: none
    is. One that is too slow may have made the table: who makes it next finds it in the journal.
    """
    for heir in heirs:
        stub = peers.stub(TableServiceStub, heir.endpoint)
        try:
            answer: table_pb2.CreateTableResponse = await stub.CreateTable(
                request, metadata=passed_on(), timeout=HEIR_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            problem = explain(error)
            if problem.code not in _SILENT and problem.reason not in _LACKS_RULES:
                raise errors.passed_on(error) from error
        else:
            return answer
    return None


async def relayed(answer: Awaitable[Any]) -> Any:
    """An answer of another replica; its refusals are raised as our own."""
    try:
        return await answer
    except grpc.aio.AioRpcError as error:
        raise errors.passed_on(error) from error


def forwarded(stub: Callable[[Any], Any]) -> Callable[[Unary[Any, Any]], Unary[Any, Any]]:
    """Decorates a handler of a single answer, in a servicer that has `peers`."""

    def decorate(handler: Unary[Any, Any]) -> Unary[Any, Any]:
        @wraps(handler)
        async def handle(self: Any, request: Any, context: Any) -> Any:
            try:
                return await handler(self, request, context)
            except PlayedElsewhere as elsewhere:
                if was_passed_on(context):
                    raise
                call = getattr(self.peers.stub(stub, elsewhere.endpoint), handler.__name__)
                return await relayed(call(request, metadata=passed_on()))

        return handle

    return decorate


def forwarded_stream(
    stub: Callable[[Any], Any],
) -> Callable[[Stream[Any, Any]], Stream[Any, Any]]:
    """Decorates a handler that answers a request with a stream."""

    def decorate(handler: Stream[Any, Any]) -> Stream[Any, Any]:
        @wraps(handler)
        async def handle(self: Any, request: Any, context: Any) -> AsyncIterator[Any]:
            answers: Any = handler(self, request, context)
            try:
                async with aclosing(answers):
                    async for answer in answers:
                        yield answer
                return
            except PlayedElsewhere as error:
                elsewhere = error
                if was_passed_on(context):
                    raise
            call = getattr(self.peers.stub(stub, elsewhere.endpoint), handler.__name__)
            stream = call(request, metadata=passed_on())
            try:
                while (answer := await relayed(stream.read())) is not grpc.aio.EOF:
                    yield answer
            finally:
                stream.cancel()

        return handle

    return decorate
