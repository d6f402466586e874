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
MOST_SIGN_INS = 60
"""Of one person within as long: each stands in the operators' log."""
_WINDOW_SECONDS = 60.0
_MOST_KEPT = 10_000


class Attempts:
    """Counts attempts to sign in, by address or person."""

    def __init__(self, most: int) -> None:
        """`most`: within `_WINDOW_SECONDS`."""
        self._most = most
        self._made: OrderedDict[str, list[float]] = OrderedDict()

    def check(self, of: str, now: float) -> None:
        """Whether there may be another one. `Refused`: TOO_MANY_ATTEMPTS."""
        recent = [at for at in self._made.get(of, ()) if at > now - _WINDOW_SECONDS]
        if len(recent) >= self._most:
            raise Refused(
                429, "TOO_MANY_ATTEMPTS", "Too many attempts to sign in; wait for a minute."
            )

    def count(self, of: str, now: float) -> None:
        """There was one."""
        recent = [at for at in self._made.pop(of, ()) if at > now - _WINDOW_SECONDS]
        self._made[of] = [*recent, now][-self._most :]
        if len(self._made) > _MOST_KEPT:
            self._made.popitem(last=False)


def feature(console: Console) -> Part:
    """`/api/session`: who has signed in (GET), signing in (POST) and out (DELETE)."""
    failures, sign_ins = Attempts(MOST_FAILURES), Attempts(MOST_SIGN_INS)
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

    def check(attempts: Attempts, of: str) -> None:
        try:
            attempts.check(of, time.monotonic())
        except Refused:
            metrics.signed_in("limited")
            raise

    async def whoami(request: Request) -> Response:
        return told(sessions.of(request))

    async def sign_in(request: Request) -> Response:
        address = request.client.host if request.client else ""
        check(failures, address)
        token = (await body_of(request)).get("token")
        try:
            session = await sessions.begin(token.strip() if isinstance(token, str) else "")
        except Refused as refused:
            failures.count(address, time.monotonic())
            metrics.signed_in("refused")
            log.warning("sign-in refused", reason=refused.reason, address=address)
            raise
        check(sign_ins, session.person.subject)
        sign_ins.count(session.person.subject, time.monotonic())
        await console.log.note(
            session.person.subject, "sign_in", detail={"role": session.person.role}
        )
        metrics.signed_in(session.person.role)
        log.info("signed in", person=session.person.subject, address=address)
        before = sessions.of(request)
        if before is not None:  # its streams end too: this browser is another person now
            sessions.forget(before)
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
