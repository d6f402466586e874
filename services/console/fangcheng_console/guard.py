"""What stands around every request: its host, what may change anything, and the answer's headers.

Plain ASGI: Starlette's own base class for such layers holds streams up.
"""

from __future__ import annotations

import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import problems
from .metrics import Metrics

HEADER = "x-fangcheng-console"
"""That a page of another site cannot send along without being allowed to, which none is."""

_READS = ("GET", "HEAD")

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Of every answer, whatever it is."""


class Guard:
    """Refuses what comes from elsewhere, and puts the headers of safety on every answer."""

    def __init__(self, app: ASGIApp, origins: frozenset[str], metrics: Metrics) -> None:
        """`origins`: of the page, as browsers write them."""
        self._app = app
        self._origins = origins
        self._hosts = frozenset(origin.partition("://")[2] for origin in origins)
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        path: str = scope["path"]

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
                self._metrics.answered(
                    kind_of(path), message["status"], time.perf_counter() - started
                )
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        await (refusal or self._app)(scope, receive, with_headers)

    def _refusal(self, method: str, headers: Headers) -> ASGIApp | None:
        # A name of an attacker's that leads here must not make the page its own.
        if headers.get("host", "").lower() not in self._hosts:
            return problems.answer(
                421,
                "UNKNOWN_HOST",
                "The console is not known by this name; its setting PUBLIC_URL says by which.",
            )
        if method in _READS:
            return None
        if headers.get("origin", "") not in self._origins or headers.get(HEADER) != "1":
            return problems.answer(
                403, "FOREIGN_ORIGIN", "Only the console's own page may change anything here."
            )
        return None


def kind_of(path: str) -> str:
    """What a path asks for: `page`, `static`, `api` or `events`."""
    if path.startswith("/static/"):
        return "static"
    if path.startswith("/api/"):
        return "events" if path.endswith("/events") else "api"
    return "page"
