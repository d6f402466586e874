"""Signing in and out."""

from __future__ import annotations

import time
from collections import OrderedDict

import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .problems import Refused
from .session import Session
from .web import Console, Part, body_of

MOST_FAILURES = 10
"""Of one address within `_WINDOW_SECONDS`; then it waits, even with a good token."""
_WINDOW_SECONDS = 60.0
_MOST_ADDRESSES = 10_000


class Attempts:
    """Counts the failed attempts of an address to sign in."""

    def __init__(self) -> None:
        self._failed: OrderedDict[str, list[float]] = OrderedDict()

    def too_many(self, address: str, now: float) -> bool:
        """Whether the address must wait."""
        recent = [at for at in self._failed.get(address, ()) if at > now - _WINDOW_SECONDS]
        return len(recent) >= MOST_FAILURES

    def failed(self, address: str, now: float) -> None:
        """An attempt failed."""
        recent = [at for at in self._failed.pop(address, ()) if at > now - _WINDOW_SECONDS]
        self._failed[address] = [*recent, now][-MOST_FAILURES:]
        if len(self._failed) > _MOST_ADDRESSES:
            self._failed.popitem(last=False)


def feature(console: Console) -> Part:
    """`/api/session`: who has signed in (GET), signing in (POST) and out (DELETE)."""
    attempts = Attempts()
    sessions, metrics = console.sessions, console.metrics
    log = structlog.get_logger()

    def told(session: Session | None) -> JSONResponse:
        if session is None:
            return JSONResponse({"person": None})
        person = session.person
        return JSONResponse(
            {
                "person": {"name": person.name, "role": person.role},
                "expires_ms": int(session.expires * 1_000),
                "grafana_url": console.settings.grafana_url,
            }
        )

    async def whoami(request: Request) -> Response:
        return told(sessions.of(request))

    async def sign_in(request: Request) -> Response:
        address = request.client.host if request.client else ""
        if attempts.too_many(address, time.monotonic()):
            metrics.signed_in("limited")
            raise Refused(
                429, "TOO_MANY_ATTEMPTS", "Too many attempts to sign in; wait for a minute."
            )
        token = (await body_of(request)).get("token")
        try:
            session = sessions.begin(token.strip() if isinstance(token, str) else "")
        except Refused as refused:
            attempts.failed(address, time.monotonic())
            metrics.signed_in("refused")
            log.warning("sign-in refused", reason=refused.reason, address=address)
            raise
        await console.log.note(
            session.person.subject, "sign_in", detail={"role": session.person.role}
        )
        metrics.signed_in(session.person.role)
        log.info("signed in", person=session.person.subject, address=address)
        response = told(session)
        sessions.keep(response, session)
        return response

    async def sign_out(request: Request) -> Response:
        session = sessions.of(request)
        if session is not None:
            log.info("signed out", person=session.person.subject)
        response = told(None)
        sessions.end(response, session)
        return response

    return Part(
        [
            Route("/api/session", whoami, methods=["GET"]),
            Route("/api/session", sign_in, methods=["POST"]),
            Route("/api/session", sign_out, methods=["DELETE"]),
        ]
    )
