"""Who has signed in, and the marks around handlers that need somebody.

A person signs in with a token of the suite, made for a viewer or an operator. The console checks it
once and hands out a session of its own: a cookie that scripts cannot read, signed with a key made
from the console's secret, and good for this console alone. It ends with the token at the latest, so
that whoever makes tokens decides for how long they let somebody in.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import hmac
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, cast

import jwt
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fangcheng_kit.errors import Unauthenticated
from fangcheng_kit.principal import parse_subject
from fangcheng_kit.tokens import TokenVerifier

from .problems import Refused
from .settings import ConsoleSettings

Role = Literal["viewer", "operator"]
Handler = Callable[[Request, "Person"], Awaitable[Response]]

COOKIE_ALGORITHM = "HS256"
"""Of what the console signs for itself."""
_AUDIENCE = "fangcheng-console"
_ROLES = ("viewer", "operator")
_MOST_SIGNED_OUT = 10_000
_LOOKS_SECONDS = 2.0
"""How often a stream looks whether its session is over."""
MOST_STREAMS = 200
"""Of one person, in all browsers."""
LONGEST_TOKEN = 4_096
"""Characters; ours have some 200."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who has signed in."""

    name: str
    """As in the token; empty for the operator that has none."""
    role: Role

    @property
    def subject(self) -> str:
        """As the services' tokens and logs name them: `operator:mei`, `viewer:wang`, `operator`."""
        return f"{self.role}:{self.name}" if self.name else self.role


@dataclass(frozen=True, slots=True)
class Session:
    """A session as its cookie says it."""

    person: Person
    expires: float
    """Seconds since 1970."""
    id: str
    key: str = ""
    """The fingerprint of the key that has signed the token."""


def key_for(settings: ConsoleSettings, purpose: str) -> bytes:
    """A key of the console's own for one purpose, so that what is signed for it is good for no
    other: no cookie is a token of the suite, and no token a cookie."""
    secret = settings.secret or settings.dev_key
    return hmac.digest(secret.encode(), f"console {purpose}".encode(), hashlib.sha256)


def _fingerprint(dev_key: str) -> str:
    """Of a development key, which it does not give away; empty: there is none."""
    if not dev_key:
        return ""
    return "dev " + hmac.digest(dev_key.encode(), b"console fingerprint", hashlib.sha256).hex()


class Sessions:
    """Makes and reads the cookies of sessions."""

    def __init__(self, settings: ConsoleSettings, verifier: TokenVerifier) -> None:
        self._verifier = verifier
        self._key = key_for(settings, "sessions")
        # Told apart too: who replaces or removes the development key ends what it has opened.
        self._development = _fingerprint(settings.dev_key)
        self._longest_seconds = settings.session_hours * 3_600
        self._secure = settings.cookie_is_secure
        # Browsers take a cookie of such a name from this host over TLS only.
        self.cookie = "__Host-fangcheng" if self._secure else "fangcheng_console"
        self._streams: Counter[Person] = Counter()
        self._signed_out: dict[str, float] = {}

    async def begin(self, token: str) -> Session:
        """The session that a token of the suite opens.

        `Refused`: 401 for one that is not good or not good any more, 403 (ROLE_NOT_ALLOWED) for one
        of a player or a service.
        """
        if not token or len(token) > LONGEST_TOKEN or not token.isascii():
            raise Refused(401, "TOKEN_INVALID", "That is no token of this suite.", "token")
        try:
            verified = await self._verifier.checked(token)
        except Unauthenticated as error:
            raise Refused(401, error.reason, error.message, "token") from None
        principal = verified.principal
        if principal.kind not in _ROLES:
            raise Refused(
                403,
                "ROLE_NOT_ALLOWED",
                f"This is the token of a {principal.kind}; the console needs one of a viewer "
                "(viewer:<name>) or of an operator (operator:<name>).",
                "token",
            )
        person = Person(principal.id, cast(Role, principal.kind))
        expires = min(principal.expires, time.time() + self._longest_seconds)
        key = verified.fingerprint or self._development
        return Session(person, expires, secrets.token_urlsafe(12), key)

    def of(self, request: Request) -> Session | None:
        """The session of a request; `None` without one that is good now."""
        cookie = request.cookies.get(self.cookie)
        if not cookie or len(cookie) > LONGEST_TOKEN:
            return None
        try:
            claims = jwt.decode(
                cookie,
                self._key,
                algorithms=[COOKIE_ALGORITHM],
                audience=_AUDIENCE,
                options={"require": ["sub", "exp", "jti", "aud"]},
            )
            principal = parse_subject(claims["sub"])
        except (jwt.InvalidTokenError, ValueError):
            return None
        if principal.kind not in _ROLES:
            return None
        person = Person(principal.id, cast(Role, principal.kind))
        key = str(claims.get("key", ""))
        session = Session(person, float(claims["exp"]), claims["jti"], key)
        return None if self.is_over(session) else session

    def is_over(self, session: Session) -> bool:
        """Whether it has expired, its key has been withdrawn, or its person has signed out here."""
        return (
            session.id in self._signed_out
            or time.time() >= session.expires
            or not self._holds(session.key)
        )

    def _holds(self, key: str) -> bool:
        """Whether a key that has opened a session is in force now."""
        return bool(key) and (key == self._development or self._verifier.holds(key))

    def keep(self, response: Response, session: Session) -> None:
        """Give the browser the session."""
        claims = {
            "sub": session.person.subject,
            "exp": session.expires,
            "jti": session.id,
            "aud": _AUDIENCE,
            "key": session.key,
        }
        response.set_cookie(
            self.cookie,
            jwt.encode(claims, self._key, algorithm=COOKIE_ALGORITHM),
            max_age=max(0, int(session.expires - time.time())),
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="strict",
        )

    def end(self, response: Response, session: Session | None) -> None:
        """Take the session back."""
        response.delete_cookie(
            self.cookie, path="/", secure=self._secure, httponly=True, samesite="strict"
        )
        if session is not None:
            self.forget(session)

    def forget(self, session: Session) -> None:
        """Let a session be over; a copy of its cookie is worth nothing here either."""
        now = time.time()
        self._signed_out = {key: until for key, until in self._signed_out.items() if until > now}
        if len(self._signed_out) >= _MOST_SIGNED_OUT:
            del self._signed_out[next(iter(self._signed_out))]
        self._signed_out[session.id] = session.expires

    def check_streams(self, person: Person) -> None:
        """Whether a person may open another stream. `Refused`: 429 (TOO_MANY_STREAMS)."""
        if self._streams[person] >= MOST_STREAMS:
            raise Refused(
                429, "TOO_MANY_STREAMS", "You have too many pages open; close some of them."
            )

    @contextmanager
    def streaming(self, person: Person) -> Iterator[None]:
        """The person has a stream open."""
        self._streams[person] += 1
        try:
            yield
        finally:
            self._streams[person] -= 1
            if not self._streams[person]:
                del self._streams[person]


def viewer(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A handler for everybody who has signed in: 401 (NOT_SIGNED_IN) for others."""
    return _for(_ROLES, handler)


def operator(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A handler for operators: 401 (NOT_SIGNED_IN), or 403 (OPERATORS_ONLY) for viewers."""
    return _for(("operator",), handler)


def _for(roles: tuple[str, ...], handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    # What Starlette looks at to see what it was given: a function of the request alone.
    @functools.wraps(handler, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    async def checked(request: Request) -> Response:
        sessions = _sessions(request)
        session = sessions.of(request)
        if session is None:
            raise Refused(401, "NOT_SIGNED_IN", "Sign in first.")
        if session.person.role not in roles:
            raise Refused(403, "OPERATORS_ONLY", "This is for operators; you are a viewer.")
        response = await handler(request, session.person)
        if response.media_type == "text/event-stream":
            sessions.check_streams(session.person)
            return _WhileSignedIn(response, sessions, session)
        return response

    return checked


class _WhileSignedIn(Response):
    """A stream that ends with the session that it was opened in."""

    def __init__(self, stream: Response, sessions: Sessions, session: Session) -> None:
        super().__init__()
        self._stream = stream
        self._sessions = sessions
        self._session = session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The stream, as ASGI has it."""
        with self._sessions.streaming(self._session.person):
            await self._send(scope, receive, send)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._stream(scope, receive, send))
        try:
            while not sending.done() and not self._sessions.is_over(self._session):
                await asyncio.wait([sending], timeout=_LOOKS_SECONDS)
        finally:
            sending.cancel()
            await asyncio.wait([sending])
        if not sending.cancelled():
            sending.result()
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def person_of(request: Request) -> Person | None:
    """Who has signed in, if anybody has: for handlers that others may ask too."""
    session = _sessions(request).of(request)
    return None if session is None else session.person


def _sessions(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.console.sessions
    return sessions
