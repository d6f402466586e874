"""What happens around every handler, in one interceptor.

In this order: the call is counted and gets its request id and its span; the caller is identified,
must not be asking for more than his share, and be allowed; the request is read and checked against
the contract's limits; the handler runs; what it raises becomes a status. At the end, however it
came, the call is counted and logged.

gRPC lets an interceptor replace the handler for each call. Ours makes the replacement once for each
method, so that a call costs a few dictionary look-ups.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import structlog
from google.protobuf.message import DecodeError, Message

from fangcheng_kit import errors, ids, logs, principal, trace_context
from fangcheng_kit.contract import Method
from fangcheng_kit.identities import Identities
from fangcheng_kit.limits import CallerLimits, Held, Rates
from fangcheng_kit.metrics import CallMetrics, MethodMetrics
from fangcheng_kit.tokens import ExpiredToken, InvalidToken, Verified
from fangcheng_kit.trace_context import PARENT_KEY, STATE_KEY, Trace
from fangcheng_kit.tracing import OFF, Span, Tracing
from fangcheng_kit.validation import Limits

REQUEST_ID_KEY = "x-request-id"
_GOOD_REQUEST_ID = re.compile(r"[\w.:/-]{1,64}", re.ASCII)

# Faults of the service or its surroundings, as against those of its callers.
_OUR_FAULT = {
    grpc.StatusCode.INTERNAL: "error",
    grpc.StatusCode.UNKNOWN: "error",
    grpc.StatusCode.DATA_LOSS: "error",
    grpc.StatusCode.UNAVAILABLE: "warning",
    grpc.StatusCode.DEADLINE_EXCEEDED: "warning",
}
_DRAINING = "DRAINING"
# Told of each call, these would fill the disk when there is least time for it; metrics count them.
_UNTOLD = frozenset({_DRAINING, "TOO_MANY_CALLS", "TOO_MANY_STREAMS"})
# Refused calls that the log tells of; how many more there were stands in the next line.
_LINES_PER_SECOND, _LINES_AT_ONCE = 50, 100
_LONGEST_WAIT_SECONDS = 3_600.0
"""After so long it is looked again whether a stream's token has expired: clocks are set."""
_ORDINARY = frozenset({grpc.StatusCode.OK, grpc.StatusCode.CANCELLED})


@dataclass(slots=True)
class _Call:
    """One call, from its first byte to its status."""

    metrics: MethodMetrics
    metadata: Collection[tuple[str, Any]] = field(repr=False)  # the token is in it
    request_id: str
    started: float
    span: Span
    # What is true of a call that ends before its handler begins: its client went away, or sent more
    # than gRPC takes.
    code: grpc.StatusCode = grpc.StatusCode.CANCELLED
    reason: str = ""
    why: str = ""
    caller: str = ""
    held: Held | None = None
    """What it counts as while it is under way."""
    verified: Verified | None = None
    refused: errors.Unauthenticated | None = None
    """Why, where its caller is nobody that is known."""


_present: ContextVar[_Call] = ContextVar("fangcheng_call")


class Calls(grpc.aio.ServerInterceptor):
    """The interceptor of a server of the suite."""

    def __init__(
        self,
        identities: Identities,
        callers: CallerLimits,
        metrics: CallMetrics,
        max_message_bytes: int,
        tracing: Tracing = OFF,
    ) -> None:
        self._identities = identities
        self._callers = callers
        self._max_message_bytes = max_message_bytes
        self._metrics = metrics
        self._tracing = tracing
        self._unknown = metrics.of(None)
        self._methods: dict[str, tuple[Method, MethodMetrics]] = {}
        self._handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        self._limits = Limits()
        self._streams: dict[asyncio.Task[Any], _Call] = {}
        self._ended: dict[asyncio.Task[Any], errors.ServiceError] = {}
        """Why streams were ended from here."""
        self._refusing: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(
            self._refuse
        )
        self._lines = Rates()
        self._not_told = 0
        """Refused calls since the last of which the log tells."""
        self._log = structlog.get_logger().bind()

    def add(self, methods: Iterable[Method]) -> None:
        """Know these calls, before the server starts; ``ContractError`` if one is malformed."""
        for method in methods:
            self._limits.add(method)
            self._methods[method.path] = method, self._metrics.of(method)

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """Begin a call; gRPC then runs the handler that this returns, in the same task."""
        path: str = handler_call_details.method
        method, metrics = self._methods.get(path, (None, self._unknown))
        metadata: Any = handler_call_details.invocation_metadata
        request_id, cause = _told(metadata)
        # Health and reflection, which are asked all the time, are no part of anybody's request.
        is_ours = method is not None and method.need is not None
        span = self._tracing.call("server", path, cause) if is_ours else Span(cause)
        call = _Call(metrics, metadata, request_id, time.perf_counter(), span)
        call.metrics.start()
        logs.request_id.set(call.request_id)
        trace_context.enter(span.trace)
        _present.set(call)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 # nosec B101 # gRPC gives each call a task
        task.add_done_callback(lambda task: self._end(call, task))
        if method is not None and method.need is not None:
            # Before gRPC receives a request, which may be large: anybody could fill the memory.
            try:
                await self._identities.check(metadata)
            except errors.Unauthenticated as error:
                call.refused = error
                return self._refusing

        wrapped = self._handlers.get(path)
        if wrapped is None:
            handler = await continuation(handler_call_details)
            if method is None or handler is None:
                return _NO_SUCH_CALL
            wrapped = self._handlers[path] = self._wrapped(method, handler)
        return wrapped

    def end_streams(self) -> None:
        """End the streams that are open, with UNAVAILABLE: their clients go on elsewhere."""
        draining = errors.Unavailable(_DRAINING, "The server stops; go on at another.")
        for task in list(self._streams):
            self._end_stream(task, draining)

    def keys_changed(self) -> None:
        """End the streams that were opened with a token whose key is not in force any more."""
        for task, call in list(self._streams.items()):
            by = "" if call.verified is None else call.verified.fingerprint
            if not self._identities.verifier.holds(by):
                self._end_stream(task, InvalidToken("its key has been withdrawn"))

    def _end_stream(self, task: asyncio.Task[Any], why: errors.ServiceError) -> None:
        if task not in self._ended:
            self._ended[task] = why
            task.cancel()

    def _end(self, call: _Call, task: asyncio.Task[Any]) -> None:
        self._ended.pop(task, None)
        if call.held is not None:
            self._callers.release(call.held)
        seconds = time.perf_counter() - call.started
        call.metrics.end(call.code, seconds)
        if call.span.is_recorded:
            call.span.note(request_id=call.request_id, caller=call.caller)
            call.span.note_status(call.code, call.reason)
            call.span.end(call.code.name if call.code in _OUR_FAULT else "")
        write, untold = self._log.debug, 0
        if call.code in _OUR_FAULT and call.reason not in _UNTOLD:
            write = getattr(self._log, _OUR_FAULT[call.code])
        elif call.code not in _ORDINARY and call.reason not in _UNTOLD:
            # Who need not even have a token is not to fill the disk.
            if self._lines.take("", _LINES_PER_SECOND, _LINES_AT_ONCE):
                self._not_told += 1
            else:
                write, untold, self._not_told = self._log.info, self._not_told, 0
        _, service, name = call.metrics.labels
        write(
            "call",
            grpc_service=service,
            grpc_method=name,
            code=call.code.name,
            reason=call.reason or None,
            why=call.why or None,
            caller=call.caller or None,
            untold=untold or None,
            ms=round(seconds * 1_000, 3),
            request_id=call.request_id,
        )

    def _wrapped(
        self, method: Method, handler: grpc.RpcMethodHandler[Any, Any]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """The handler of a method with everything around it, to be used for all its calls.

        It takes bytes, and gives them where there is one answer, so that a request that cannot be
        read or an answer that cannot be written has a proper status too.
        """
        takes_stream, gives_stream = (
            bool(handler.request_streaming),
            bool(handler.response_streaming),
        )
        arity = _ARITIES[takes_stream, gives_stream]
        inner: Callable[[Any, Any], Any] = getattr(handler, arity)
        read: Callable[[bytes], Message] = (
            handler.request_deserializer or method.request_type.FromString
        )
        write: Callable[[Any], bytes] = handler.response_serializer or _serialized

        async def requests(received: AsyncIterator[bytes]) -> AsyncIterator[Message]:
            async for data in received:
                yield self._request(method, read, data)

        async def answer(received: Any, context: Any) -> bytes | None:
            call = _present.get()
            try:
                self._admit(call, method, context)
                request = (
                    requests(received) if takes_stream else self._request(method, read, received)
                )
                if gives_stream:
                    await self._stream(call, inner(request, context), context)
                    response = None
                else:
                    response = write(await inner(request, context))
            except BaseException as error:
                await self._fail(call, context, error)
                raise
            call.code = _code(context)
            return response

        make: Any = getattr(grpc, f"{arity}_rpc_method_handler")
        wrapped: grpc.RpcMethodHandler[Any, Any] = make(
            answer, response_serializer=write if gives_stream else None
        )
        return wrapped

    async def _refuse(self, _: Any, context: Any) -> None:
        """The handler of calls whose callers are not known; it reads nothing."""
        call = _present.get()
        if call.refused is not None:
            await self._fail(call, context, call.refused)

    def _admit(self, call: _Call, method: Method, context: Any) -> None:
        caller = None
        if method.need is not None:
            call.verified = self._identities.of(call.metadata, context)
            caller = call.verified.principal
            call.caller = caller.kind
            self._callers.admit(caller, method)  # first: what is refused is limited too
            method.need.check(caller)
            principal.enter(caller)
        call.held = self._callers.hold(caller, method)

    def _request(self, method: Method, read: Callable[[bytes], Message], data: bytes) -> Message:
        if len(data) > self._max_message_bytes:
            raise errors.ResourceExhausted(
                "MESSAGE_TOO_LARGE",
                f"The request has {len(data)} bytes; at most {self._max_message_bytes} are taken. "
                "Send it in parts.",
                metadata={
                    "bytes": str(len(data)),
                    "max_message_bytes": str(self._max_message_bytes),
                },
            )
        try:
            request = read(data)
        except DecodeError:
            raise errors.InvalidArgument(
                "MALFORMED_REQUEST",
                f"The request is no {method.request_type.DESCRIPTOR.full_name}.",
            ) from None
        self._limits.check(request, data, limited=method.limited)
        return request

    async def _stream(self, call: _Call, answers: Any, context: Any) -> None:
        """Send what a handler gives: an async generator, or a coroutine that writes by itself.

        Until its caller's token expires, and what is sent with it.
        """
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 # nosec B101 # gRPC gives each call a task
        self._streams[task] = call
        timer: asyncio.TimerHandle | None = None

        def look() -> None:
            nonlocal timer
            expires = call.verified.principal.expires if call.verified else math.inf
            seconds = expires + self._identities.verifier.leeway_seconds - time.time()
            if seconds <= 0:
                self._end_stream(task, ExpiredToken(of_stream=True))
            elif expires != math.inf:
                wait = min(seconds, _LONGEST_WAIT_SECONDS)
                timer = asyncio.get_running_loop().call_later(wait, look)

        try:
            look()
            if not hasattr(answers, "__aiter__"):
                await answers
                return
            try:
                async for answer in answers:
                    await context.write(answer)
            finally:
                # Not left to the garbage collector: the handler's own clean-up runs now.
                await answers.aclose()
        finally:
            if timer is not None:
                timer.cancel()
            del self._streams[task]

    async def _fail(self, call: _Call, context: Any, error: BaseException) -> None:
        """Give a failed call its status; returns where the exception itself must go on to gRPC."""
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]  # from a handler with a task group
        if isinstance(error, grpc.aio.AbortError):
            call.code = _code(context)
            return
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            assert task is not None  # noqa: S101 # nosec B101 # gRPC gives each call a task
            ended = self._ended.get(task)
            if ended is None:
                gone = context.time_remaining() == 0
                call.code = grpc.StatusCode.DEADLINE_EXCEEDED if gone else grpc.StatusCode.CANCELLED
                return
            task.uncancel()
            error = ended
        if isinstance(error, grpc.aio.InternalError) or not isinstance(error, Exception):
            return  # an answer could not be sent, since the client is gone; or the process ends
        refusal = errors.refusal(error)
        call.code, call.reason = refusal.code, refusal.reason
        if isinstance(refusal, InvalidToken):
            call.why = refusal.why
        if isinstance(refusal, errors.Internal):
            self._log.error("handler failed", exc_info=error)
        await context.abort(
            refusal.code,
            errors.status_message(refusal),
            ((errors.DETAILS_KEY, errors.details(refusal)), (REQUEST_ID_KEY, call.request_id)),
        )


_ARITIES = {
    (False, False): "unary_unary",
    (False, True): "unary_stream",
    (True, False): "stream_unary",
    (True, True): "stream_stream",
}


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _code(context: Any) -> grpc.StatusCode:
    """The status that a handler has set; OK where it has set none."""
    code = context.code()
    if isinstance(code, grpc.StatusCode):
        return code
    return _BY_NUMBER.get(code or 0, grpc.StatusCode.UNKNOWN)


_BY_NUMBER: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def _told(metadata: Collection[tuple[str, Any]]) -> tuple[str, Trace | None]:
    """The id that the caller gave the call, if it is a decent one, otherwise a new one; and to what
    place of a trace the call belongs."""
    request_id = parent = state = ""
    for key, value in metadata:
        if key == REQUEST_ID_KEY:
            if not request_id and _GOOD_REQUEST_ID.fullmatch(str(value)):
                request_id = str(value)
        elif key == PARENT_KEY:
            parent = str(value)
        elif key == STATE_KEY:
            state = str(value)
    return request_id or ids.new_id(), trace_context.parsed(parent, state) if parent else None


async def _no_such_call(_: Any, context: Any) -> None:
    """Refuse a call that no service of this server has.

    Not a gap of ours: UNIMPLEMENTED is what gRPC itself answers then. Answered here, such calls are
    counted and logged as all others are.
    """
    _present.get().code = grpc.StatusCode.UNIMPLEMENTED
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "This server has no such call.")


# A handler of streams serves callers of every kind, since it reads nothing.
_NO_SUCH_CALL: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(
    _no_such_call
)
