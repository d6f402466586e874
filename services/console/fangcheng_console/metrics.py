"""What the console tells of itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

STREAMS = ("lobby", "table", "revealed", "health")
OUTCOMES = ("viewer", "operator", "refused", "limited")


class Metrics:
    """Metrics of the web page; those of the process are the kit's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._streams = Gauge(
            "fangcheng_console_streams",
            "Pages that follow something now, by what: the lobby, a table, a table with its hands "
            "revealed, or the processes.",
            ("kind",),
            registry=registry,
        )
        self._sign_ins = Counter(
            "fangcheng_console_sign_ins_total",
            "Attempts to sign in: by the role that was given, refused, or one too many.",
            ("outcome",),
            registry=registry,
        )
        self._requests = Counter(
            "fangcheng_console_requests_total",
            "Requests that were answered, by kind (page, static, api, events) and class of status.",
            ("kind", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "fangcheng_console_request_seconds",
            "Time until an answer of the API began.",
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=registry,
        )
        for kind in STREAMS:
            self._streams.labels(kind)
        for outcome in OUTCOMES:
            self._sign_ins.labels(outcome)
        for kind in ("page", "static", "api", "events"):
            for status in ("2xx", "5xx"):
                self._requests.labels(kind, status)

    @contextmanager
    def stream(self, kind: str) -> Iterator[None]:
        """While it lasts, a page follows something; `kind`: one of `STREAMS`."""
        gauge = self._streams.labels(kind)
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()

    def signed_in(self, outcome: str) -> None:
        """Somebody tried to sign in; `outcome`: one of `OUTCOMES`."""
        self._sign_ins.labels(outcome).inc()

    def answered(self, kind: str, status: int, seconds: float) -> None:
        """A request got the beginning of its answer."""
        self._requests.labels(kind, f"{status // 100}xx").inc()
        if kind == "api":
            self._seconds.observe(seconds)
