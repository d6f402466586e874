"""Spans: where the time of a request went, over all services that it touched.

    with kit.tracing.span("match", causes=[...], pool_id=pool_id) as span:
        ...

The kit makes the spans of calls, taken and made; a service those of what goes on between them. What
several things have brought about, a batch or a match, is a span of the first one's trace, with
links to the others. Off unless an endpoint is set: then a span costs next to nothing, OpenTelemetry
is not even imported, and traces of callers are passed on all the same.

Attributes are ids, numbers and names of the contract: never a token, a tile or a player's text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import Token
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol

import grpc
import grpc.aio

from fangcheng_kit import logs, trace_context
from fangcheng_kit.trace_context import Trace, here, parsed, within

__all__ = ["OFF", "Origin", "Span", "Trace", "Tracing", "here", "origin", "parsed", "within"]

Value = str | int | float | bool
CallKind = Literal["server", "client"]


class Recorder(Protocol):
    """What becomes of a span that is recorded."""

    def note(self, attributes: dict[str, Value]) -> None:
        """More of it is known."""

    def end(self, problem: str, end_ns: int | None) -> None:
        """It has ended; ``problem``: what went wrong, if something did."""


class Span:
    """A span that is open: within a ``with``, what is done belongs to it; it ends with the block.

    Whoever needs it longer enters ``within(span.trace)`` instead, and calls ``end``.
    """

    __slots__ = ("_recorder", "_token", "trace")

    def __init__(self, trace: Trace | None, recorder: Recorder | None = None) -> None:
        self.trace = trace
        """Where what is done in it belongs; where tracing is off, its cause."""
        self._recorder = recorder
        self._token: Token[Trace | None] | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether it will be exported."""
        return self._recorder is not None

    def note(self, **attributes: Value) -> None:
        """Add attributes, each named ``fangcheng.…``."""
        if self._recorder is not None:
            self._recorder.note(_named(attributes))

    def note_status(self, code: grpc.StatusCode, reason: str = "") -> None:
        """Add the status of the call that it is."""
        if self._recorder is not None:
            more: dict[str, Value] = {"rpc.grpc.status_code": code.value[0]}
            self._recorder.note({**more, "fangcheng.reason": reason} if reason else more)

    def end(self, problem: str = "", end_ns: int | None = None) -> None:
        """It is over; ``problem``: a status or the kind of an exception, never a text of it."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.end(problem, end_ns)

    def __enter__(self) -> Span:
        self._token = trace_context._here.set(self.trace)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            trace_context._here.reset(self._token)
        is_failed = kind is not None and not issubclass(kind, asyncio.CancelledError)
        self.end(kind.__name__ if is_failed and kind is not None else "")


class Tracing:
    """Makes spans; this one records none, and passes on what it is given."""

    is_on = False

    def span(
        self,
        name: str,
        causes: Iterable[Trace | None] | None = None,
        *,
        began_ns: int | None = None,
        links: Iterable[Trace | None] = (),
        **attributes: Value,
    ) -> Span:
        """Begin a span.

        ``causes``: what has brought it about, where the work does not belong to the present place:
        it is a part of the first that is sampled, and has links to the others; of none, it begins a
        trace. ``began_ns``: since when, in nanoseconds since 1970. ``links``: what else it has to
        do with. ``attributes``: named ``fangcheng.…``.
        """
        return Span(here() if causes is None else first(causes))

    def call(self, kind: CallKind, path: str, cause: Trace | None) -> Span:
        """Begin the span of a call of this path, ``/package.Service/Method``."""
        return Span(cause)

    def around(self) -> Callable[[str, Callable[[], Any]], Any] | None:
        """What makes the calls of a channel, each with its span; see ``fangcheng_client.connect``.

        None: nothing need be done around them.
        """
        return None

    async def close(self) -> None:
        """Send what has not been sent yet, for a moment."""


OFF = Tracing()


def first(causes: Iterable[Trace | None]) -> Trace | None:
    """The cause of which a span is a part: the first that somebody exports, else the first."""
    known = [cause for cause in causes if cause is not None]
    return next((cause for cause in known if cause.is_sampled), known[0] if known else None)


def _named(attributes: dict[str, Value]) -> dict[str, Value]:
    return {f"fangcheng.{name}": value for name, value in attributes.items()}


@dataclass(frozen=True, slots=True)
class Origin:
    """Which call something goes back to, for work that another task does."""

    request_id: str = ""
    trace: Trace | None = None

    def enter(self) -> None:
        """What this task does from now on goes back to that call."""
        logs.request_id.set(self.request_id)
        trace_context.enter(self.trace)


NOBODY = Origin()
"""Work that no call has asked for."""


def origin() -> Origin:
    """Which call the present work goes back to."""
    return Origin(logs.request_id.get(), here())


def now_ns() -> int:
    """Nanoseconds since 1970, for ``began_ns``."""
    return time.time_ns()


def distinct(traces: Sequence[Trace | None]) -> list[Trace]:
    """Each place once."""
    return list(dict.fromkeys(trace for trace in traces if trace is not None))
