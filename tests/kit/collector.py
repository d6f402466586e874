"""A collector of spans: OTLP over gRPC, as any collector serves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc.aio
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as otlp
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Status


@dataclass(frozen=True)
class Span:
    """A span as it was received."""

    service: str
    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    links: frozenset[tuple[str, str]]
    attributes: dict[str, Any] = field(hash=False)
    failed: bool
    ns: int


class Collector(TraceServiceServicer):
    """Takes spans; `hangs`: it answers no export."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.spans: list[Span] = []
        self.received: list[bytes] = []
        """What has come, as it was."""
        self.asked = asyncio.Event()
        self.endpoint = ""
        self._hangs = hangs

    async def Export(
        self, request: otlp.ExportTraceServiceRequest, context: Any
    ) -> otlp.ExportTraceServiceResponse:
        self.asked.set()
        if self._hangs:
            await asyncio.Event().wait()
        self.received.append(request.SerializeToString())
        for resource in request.resource_spans:
            about = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [_read(about["service.name"], span) for span in scope.spans]
        return otlp.ExportTraceServiceResponse()

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def of(self, trace_id: str) -> list[Span]:
        return [span for span in self.spans if span.trace_id == trace_id]


def _read(service: str, span: Any) -> Span:
    return Span(
        service=service,
        name=span.name,
        kind=span.kind,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        links=frozenset((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        attributes={
            one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes
        },
        failed=span.status.code == Status.STATUS_CODE_ERROR,
        ns=span.end_time_unix_nano - span.start_time_unix_nano,
    )


@asynccontextmanager
async def collecting(*, hangs: bool = False) -> AsyncIterator[Collector]:
    """A collector that serves."""
    collector = Collector(hangs=hangs)
    server = grpc.aio.server()
    add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        collector.endpoint = f"http://127.0.0.1:{port}"
        yield collector
    finally:
        await server.stop(0)
