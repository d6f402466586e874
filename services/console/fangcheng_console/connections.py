"""Connections of browsers, and of whoever else: none holds anything for long that does nothing.

A client that sends no request, or stops in the middle of one, is closed after `IDLE_SECONDS`; one
that reads no more is cut by the kernel after `STALLED_SECONDS`, with what waits to be sent to it.
A proxy before the console does the same, but not everybody has one.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE_SECONDS = 30.0
STALLED_SECONDS = 20.0
"""Less than `hub.SLOWEST_SECONDS`: what is cut is told to the stream as a client that has gone."""
SEND_BYTES = 128 * 1024
"""What the kernel keeps of an answer that is not read; it would take megabytes of each."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections. `OSError` where there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family)
    # What is accepted inherits both.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        stalled_ms = int(STALLED_SECONDS * 1_000)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stalled_ms)
    return listening


class Connection(H11Protocol):
    """A connection on which the head of a request must come in time, the first one too."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._waiting: asyncio.TimerHandle | None = None
        self._wait()

    def data_received(self, data: bytes) -> None:
        """The client has sent something, perhaps a whole request."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        super().connection_lost(exc)
        self._stop_waiting()

    def _wait(self) -> None:
        """Wait for a request from now on, or go on doing so; not while one is answered."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(IDLE_SECONDS, self._close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _close(self) -> None:
        self._waiting = None
        self.timeout_keep_alive_handler()
