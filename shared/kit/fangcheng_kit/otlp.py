"""Spans that are exported by OTLP over gRPC: the one module that imports OpenTelemetry.

A bounded queue lies between the service and the collector, and a thread empties it: a collector
that is away, or hangs, costs spans and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import grpc
import grpc.aio
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)
from opentelemetry.trace import Span as Recorded

from fangcheng_kit import ids, tracing
from fangcheng_kit.trace_context import Trace, here, within
from fangcheng_kit.tracing import CallKind, Span, Tracing, Value

MOST_WAITING = 4_096
"""Spans that wait for the collector; more are dropped."""
MOST_TOGETHER = 512
EVERY_MS = 1_000
EXPORT_SECONDS = 10
CLOSE_SECONDS = 1.0
"""How long an ending process waits for the collector."""

_KINDS = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT}
# The statuses that are the fault of who answered: OpenTelemetry's conventions for gRPC. They name
# UNIMPLEMENTED among them; here it is the answer to a call that there is not, and no gap.
_SERVERS_FAULT = frozenset(
    {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)


def is_fault(code: grpc.StatusCode) -> bool:
    """Whether a call that ended so failed by fault of who answered it."""
    return code in _SERVERS_FAULT


class Exporting(Tracing):
    """Makes spans and exports them."""

    is_on = True

    def __init__(self, service: str, endpoint: str, ratio: float) -> None:
        """``ratio``: the share of traces that are exported, of those that begin here; of others
        their caller decides."""
        # Once per failed export is enough: not each of its tries.
        logging.getLogger("opentelemetry").setLevel(logging.ERROR)
        resource = Resource.create(
            {
                "service.namespace": "fangcheng",
                "service.name": service,
                "service.instance.id": ids.new_id(),
                "service.version": _version(service),
            }
        )
        self._exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_SECONDS)
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(ratio)),
            resource=resource,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(
                self._exporter,
                max_queue_size=MOST_WAITING,
                max_export_batch_size=MOST_TOGETHER,
                schedule_delay_millis=EVERY_MS,
            )
        )
        self._tracer = self._provider.get_tracer("fangcheng")
        self._ending: set[asyncio.Task[None]] = set()

    def span(
        self,
        name: str,
        causes: Iterable[Trace | None] | None = None,
        *,
        began_ns: int | None = None,
        links: Iterable[Trace | None] = (),
        **attributes: Value,
    ) -> Span:
        """See ``Tracing``."""
        given = [here()] if causes is None else list(causes)
        cause = tracing.first(given)
        others = tracing.distinct([*given, *links])
        return self._begun(
            self._tracer.start_span(
                name,
                _context(cause),
                attributes=tracing._named(attributes),
                links=[Link(_spoken(one)) for one in others if one != cause],
                start_time=began_ns,
            )
        )

    def call(self, kind: CallKind, path: str, cause: Trace | None) -> Span:
        """See ``Tracing``."""
        service, _, method = path.strip("/").rpartition("/")
        return self._begun(
            self._tracer.start_span(
                f"{service}/{method}",
                _context(cause),
                _KINDS[kind],
                attributes={
                    "rpc.system": "grpc",
                    "rpc.service": service,
                    "rpc.method": method,
                },
            )
        )

    def around(self) -> Callable[[str, Callable[[], Any]], Any]:
        """See ``Tracing``."""
        return self._around

    def _around(self, path: str, call: Callable[[], Any]) -> Any:
        span = self.call("client", path, here())
        with within(span.trace):
            made = call()
        if span.is_recorded:
            made.add_done_callback(partial(self._done, span))
        return made

    def _done(self, span: Span, call: Any) -> None:
        task = asyncio.get_running_loop().create_task(_end(span, call, time.time_ns()))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _begun(self, span: Recorded) -> Span:
        told = span.get_span_context()
        trace = Trace(
            f"{told.trace_id:032x}",
            f"{told.span_id:016x}",
            told.trace_flags.sampled,
            told.trace_state.to_header(),
        )
        return Span(trace, _Recorder(span) if span.is_recording() else None)

    async def close(self) -> None:
        """See ``Tracing``."""
        loop = asyncio.get_running_loop()
        sent = asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            if not loop.is_closed():
                loop.call_soon_threadsafe(sent.set)

        # A thread that nobody waits for: a collector that hangs must not keep the process.
        threading.Thread(target=shut_down, daemon=True).start()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await sent.wait()
        except TimeoutError:
            self._exporter.shutdown()


class _Recorder:
    __slots__ = ("_span",)

    def __init__(self, span: Recorded) -> None:
        self._span = span

    def note(self, attributes: dict[str, Value]) -> None:
        self._span.set_attributes(attributes)

    def end(self, problem: str, end_ns: int | None) -> None:
        if problem:
            self._span.set_status(Status(StatusCode.ERROR, problem))
        self._span.end(end_ns)


async def _end(span: Span, call: Any, end_ns: int) -> None:
    code = await call.code()
    span.note_status(code)
    ordinary = code in (grpc.StatusCode.OK, grpc.StatusCode.CANCELLED)
    span.end("" if ordinary else code.name, end_ns)


def _context(cause: Trace | None) -> Context:
    if cause is None:
        return Context()
    return set_span_in_context(NonRecordingSpan(_spoken(cause)), Context())


def _spoken(trace: Trace) -> SpanContext:
    return SpanContext(
        int(trace.trace_id, 16),
        int(trace.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED if trace.is_sampled else TraceFlags.DEFAULT),
        trace_state=TraceState.from_header([trace.state]) if trace.state else TraceState(),
    )


def _version(service: str) -> str:
    try:
        return version(f"fangcheng-{service}")
    except PackageNotFoundError:  # a studio's own service
        return "unknown"
