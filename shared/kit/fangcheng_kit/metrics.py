"""Metrics: one registry a process, served over HTTP, and what is counted of every call.

Labels are the names in the contract and status codes: never a player, a table or a peer.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import grpc
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    make_wsgi_app,
)

from fangcheng_kit.contract import Method

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

# When a series began is asked by nobody, and would be one more series for each.
_set_up: Callable[[], None] = disable_created_metrics
_set_up()

BUCKETS_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0, 3600.0),
)
"""From quick calls to streams that live for hours."""

_LAG_SECONDS = (*(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1), *(0.25, 0.5, 1.0, 2.5, 5.0))
"""From what a timer is late by itself, to what a health check or a lease does not survive."""
_LOOKS_SECONDS = 0.1

_NOTICES_STOP_SECONDS = 0.05


def new_registry() -> CollectorRegistry:
    """A registry with what is measured of every process: memory, CPU, files, garbage collection."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


class ProcessMetrics:
    """What is measured of every process that serves, beside its calls."""

    def __init__(self, registry: CollectorRegistry, service: str) -> None:
        """`service`: the name of the service, as in its distribution `fangcheng-<service>`."""
        Gauge(
            "fangcheng_build_info",
            "Always 1; the labels tell what runs. Where they change, something was deployed.",
            ("service", "version"),
            registry=registry,
        ).labels(service, _version(service)).set(1)
        self._lag = Histogram(
            "fangcheng_event_loop_lag_seconds",
            "How late the event loop came back to a timer, looked at ten times a second. What is "
            "late here is late in every call; a timer alone is up to a millisecond late.",
            buckets=_LAG_SECONDS,
            registry=registry,
        )

    async def watch_loop(self) -> None:
        """Look how late the event loop is, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LOOKS_SECONDS
            await asyncio.sleep(_LOOKS_SECONDS)
            self._lag.observe(max(0.0, loop.time() - due))


class CertificateMetrics:
    """What is measured of a process's certificates."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._expires = Gauge(
            "fangcheng_certificate_expires_timestamp_seconds",
            "When a certificate in force expires, in seconds since 1970: the service's own, those "
            "of the authorities of its callers, and those of the services it calls. Only where "
            "settings name them.",
            ("certificate",),
            registry=registry,
        )
        self._bad = Gauge(
            "fangcheng_certificate_files_bad",
            "1 while the files of certificates cannot be used and earlier ones are in force; the "
            "log says why.",
            registry=registry,
        )

    def used(self, expires: Iterable[tuple[str, float]]) -> None:
        """Certificates are in force: each kind, with when it expires."""
        for kind, at in expires:
            self._expires.labels(kind).set(at)
        self._bad.set(0)

    def failed(self) -> None:
        """The files cannot be used."""
        self._bad.set(1)


def _version(service: str) -> str:
    """Of a service's distribution; of one that is not ours, of the kit."""
    try:
        return version(f"fangcheng-{service}")
    except PackageNotFoundError:
        return version("fangcheng-kit")


class KeySetMetrics:
    """What is measured of the keys by which tokens are checked."""

    def __init__(self, registry: CollectorRegistry | None) -> None:
        self.keys = Gauge(
            "fangcheng_key_set_keys",
            "Keys that tokens are checked by, of the set of FANGCHENG_JWKS; 0: there is none.",
            registry=registry,
        )
        self.failures = Counter(
            "fangcheng_key_set_failures_total",
            "Times that the key set could not be read anew, so that the keys stayed as they were.",
            registry=registry,
        )


class CallMetrics:
    """Counts the calls of a server, of all four kinds, with every outcome."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("grpc_type", "grpc_service", "grpc_method")
        self._started = Counter(
            "grpc_server_started_total", "Calls that began.", labels, registry=registry
        )
        self._handled = Counter(
            "grpc_server_handled_total",
            "Calls that ended, by status code; cancelled and refused ones too.",
            (*labels, "grpc_code"),
            registry=registry,
        )
        self._seconds = Histogram(
            "grpc_server_handling_seconds",
            "Time from the start to the end of a call; of a stream, its whole life.",
            labels,
            buckets=BUCKETS_SECONDS,
            registry=registry,
        )

    def of(self, method: Method | None) -> MethodMetrics:
        """The metrics of one call, looked up once; ``None``: of calls that no service has."""
        labels = (
            ("unknown", "unknown", "unknown")
            if method is None
            else (method.kind, method.service, method.name)
        )
        return MethodMetrics(
            labels,
            self._started.labels(*labels),
            self._seconds.labels(*labels),
            self._handled,
            # At 0 from the start: an increase is seen only from a first value on.
            {code: self._handled.labels(*labels, code) for code in ("OK", "INTERNAL")},
        )


@dataclass(frozen=True, slots=True)
class MethodMetrics:
    """The metrics of one call."""

    labels: tuple[str, str, str]
    _started: Counter
    _seconds: Histogram
    _handled: Counter
    _by_code: dict[str, Counter]

    def start(self) -> None:
        """A call began."""
        self._started.inc()

    def end(self, code: grpc.StatusCode, seconds: float) -> None:
        """A call ended."""
        counter = self._by_code.get(code.name)
        if counter is None:
            counter = self._by_code[code.name] = self._handled.labels(*self.labels, code.name)
        counter.inc()
        self._seconds.observe(seconds)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """A scrape every few seconds is no news."""


def _with_probes(
    pages: WSGIApplication, probes: Mapping[str, Callable[[], bool]]
) -> WSGIApplication:
    """``pages``, and one of each probe: 200 where it is so, otherwise 503."""

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        probe = probes.get(environ["PATH_INFO"])
        if probe is None:
            return pages(environ, start_response)
        so = probe()
        status = "200 OK" if so else "503 Service Unavailable"
        start_response(status, [("Content-Type", "text/plain"), ("Cache-Control", "no-store")])
        return [b"yes\n" if so else b"no\n"]

    return app


class MetricsEndpoint:
    """Serves a registry under ``/metrics`` from a thread of its own, and the pages of probes.

    In plain text and to everybody who reaches the port: there are no secrets in what is measured,
    and whoever asks whether a container is well has no certificate to show.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        host: str,
        port: int,
        probes: Mapping[str, Callable[[], bool]] | None = None,
    ) -> None:
        """``probes``: by the path of its page, such as ``/ready``, what says whether it is so; from
        another thread. Raises ``OSError`` where the address cannot be had.
        """
        self._host = host
        kind = _Server6 if ":" in host else _Server
        app = _with_probes(make_wsgi_app(registry), probes or {})
        self._server = make_server(host, port, app, kind, _Silent)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": _NOTICES_STOP_SECONDS},
            name="metrics",
            daemon=True,
        )
        self._thread.start()
        self.port: int = self._server.server_port

    def __enter__(self) -> MetricsEndpoint:
        return self

    def __exit__(self, *failure: object) -> None:
        stopping = threading.Thread(target=self._server.shutdown, name="metrics stop")
        stopping.start()
        # It looks whether it is to stop at once where somebody connects.
        with contextlib.suppress(OSError):
            socket.create_connection((self._host, self.port)).close()
        stopping.join()
        self._server.server_close()
        self._thread.join()
