"""Logs: one JSON object a line on standard error, with the ids of the call and of its trace."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, TextIO

import structlog

from fangcheng_kit.trace_context import here

request_id: ContextVar[str] = ContextVar("fangcheng_request_id", default="")
"""The id of the call that is being handled; passed on with the calls that it makes."""

_SECRET = frozenset({"authorization", "bearer", "dev_key", "password", "secret", "token"})

Event = MutableMapping[str, Any]


def set_up(service: str, level: str, stream: TextIO | None = None) -> None:
    """Send all logs of the process, those of libraries too, as JSON lines to ``stream``."""
    stream = stream or sys.stderr
    number = getattr(logging, level.upper())

    def add_service(_: Any, __: str, event: Event) -> Event:
        event["service"] = service
        return event

    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        add_service,
        _add_ids,
        _hide_secrets,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
        structlog.processors.UnicodeDecoder(),
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(default=str, ensure_ascii=False)],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(default=str, ensure_ascii=False),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # A library's debug lines are of no use to who runs the service.
    root.setLevel(max(number, logging.INFO))


def _add_ids(_: Any, __: str, event: Event) -> Event:
    current = request_id.get()
    if current and "request_id" not in event:
        event["request_id"] = current
    trace = here()
    if trace is not None:
        event["trace_id"], event["span_id"] = trace.trace_id, trace.span_id
    return event


def _hide_secrets(_: Any, __: str, event: Event) -> Event:
    """A secret that somebody logs by mistake is not written."""
    for name, value in event.items():
        if name in _SECRET or (isinstance(value, str) and value.startswith("Bearer ")):
            event[name] = "(hidden)"
    return event
