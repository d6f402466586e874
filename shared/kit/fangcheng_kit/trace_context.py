"""Where in a trace the present work belongs, as W3C's ``traceparent`` names it.

Known and passed on whether or not this process exports spans: so a caller's trace goes on through
a service that has no collector, and its log lines name it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

PARENT_KEY = "traceparent"
STATE_KEY = "tracestate"

_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_LONGEST_STATE = 512
"""What W3C asks to be passed on at least; a longer one is left out."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A place in a trace."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    is_sampled: bool
    """Somebody exports the trace."""
    state: str = ""
    """``tracestate``: what others keep with the trace."""

    @property
    def parent(self) -> str:
        """It as a ``traceparent``."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.is_sampled else '00'}"


def parsed(parent: str, state: str = "") -> Trace | None:
    """The place that a ``traceparent`` names; None: it is none."""
    found = _PARENT.fullmatch(parent)
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more):
        return None
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    is_sampled = bool(int(flags, 16) & 1)
    return Trace(trace_id, span_id, is_sampled, state if len(state) <= _LONGEST_STATE else "")


_here: ContextVar[Trace | None] = ContextVar("fangcheng_trace", default=None)


def here() -> Trace | None:
    """Where the present work belongs; None: to no trace."""
    return _here.get()


def enter(trace: Trace | None) -> None:
    """What this task does from now on belongs there."""
    _here.set(trace)


@contextmanager
def within(trace: Trace | None) -> Iterator[None]:
    """What is done in the block belongs there."""
    token = _here.set(trace)
    try:
        yield
    finally:
        _here.reset(token)


def traceparent() -> str:
    """Where the present work belongs, to be stored with what goes on later; empty: to no trace."""
    trace = _here.get()
    return "" if trace is None else trace.parent


def metadata() -> list[tuple[str, Any]]:
    """What tells another service where its work belongs."""
    trace = _here.get()
    if trace is None:
        return []
    pairs: list[tuple[str, Any]] = [(PARENT_KEY, trace.parent)]
    if trace.state:
        pairs.append((STATE_KEY, trace.state))
    return pairs
