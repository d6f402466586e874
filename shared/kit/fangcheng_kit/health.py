"""Health that tells the truth: for the process as a whole and for each of its services."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import Future

import structlog
from grpc_health.v1 import health, health_pb2

OVERALL = ""
LIVE = "live"
"""The name under which a process that runs says SERVING, whatever it waits for, and while it stops.

To be asked by whoever would start it anew: that brings no database back.
"""
_ANSWERS_SECONDS = 2.0
"""How long a probe waits for the event loop; less than those of containers wait for the page."""
SERVICE_NAME: str = health.SERVICE_NAME


class Health:
    """Says SERVING only while the service is open, ready and not stopping."""

    def __init__(self) -> None:
        self.servicer = health.aio.HealthServicer()
        self._names: set[str] = {OVERALL}
        self._open = False
        self._stopping = False
        self._ready = True
        self._reason = ""
        self._told: bool | None = None
        self._updates: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger()
        self._set(LIVE, health_pb2.HealthCheckResponse.SERVING)
        self._tell()

    @property
    def serving(self) -> bool:
        """What is told now."""
        return self._open and self._ready and not self._stopping

    def probes(self) -> dict[str, Callable[[], bool]]:
        """What the pages of probes say, by path; to be asked in another thread.

        ``/ready`` is what gRPC's health says of the whole, ``/live`` what it says of ``live``. Both
        are answered by the event loop: where that stands still, neither is so.
        """
        loop = asyncio.get_running_loop()

        def answered(answer: Callable[[], bool]) -> bool:
            given: Future[bool] = Future()
            try:
                loop.call_soon_threadsafe(lambda: given.set_result(answer()))
                return given.result(_ANSWERS_SECONDS)
            except (TimeoutError, RuntimeError):  # it stands still; it is closed
                return False

        return {
            "/ready": lambda: answered(lambda: self.serving),
            "/live": lambda: answered(lambda: self._open),
        }

    def open(self, names: Collection[str]) -> None:
        """The server has started and has these services."""
        self._names |= set(names)
        self._open = True
        self._told = None
        self._tell()

    def set(self, ready: bool, reason: str = "") -> None:
        """Whether the service can do its work, and why not."""
        if (ready, reason) != (self._ready, self._reason):
            self._log.info("ready" if ready else "not ready", reason=reason or None)
        self._ready, self._reason = ready, reason
        self._tell()

    def stop(self) -> None:
        """NOT_SERVING from now on, whatever comes."""
        self._stopping = True
        self._tell()

    def _tell(self) -> None:
        if self._told == self.serving:
            return
        self._told = self.serving
        status = (
            health_pb2.HealthCheckResponse.SERVING
            if self.serving
            else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        for name in self._names:
            self._set(name, status)

    def _set(self, name: str, status: int) -> None:
        update = asyncio.get_running_loop().create_task(self.servicer.set(name, status))
        self._updates.add(update)
        update.add_done_callback(self._updates.discard)
