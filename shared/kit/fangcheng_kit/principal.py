"""Who is calling.

It follows from the token of the call, never from a field. A token names one of four kinds of
caller and may carry scopes: ``act_as`` lets a studio's gateway call for its players, ``bot`` marks
a player that is a program. A viewer may look around in the console and make no call at all.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

import jwt

from fangcheng_kit.errors import InvalidArgument, PermissionDenied, Unauthenticated

Kind = Literal["player", "operator", "service", "viewer"]

ALGORITHM = "HS256"
SHORTEST_KEY = 32
"""Characters of a development key: as many as HS256's hash has bytes."""

ACT_AS_SCOPE = "act_as"
BOT_SCOPE = "bot"
_MOST_PLAYER_ID = 128
_MOST_CACHED = 4_096


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a call."""

    kind: Kind
    id: str
    """The player's id, the service's name, or that of a person of the studio's; empty for the
    operator that has none."""
    scopes: frozenset[str] = frozenset()
    """What the token allows besides."""
    via: str | None = None
    """The subject of the gateway that acts for this player, if one does."""

    @property
    def subject(self) -> str:
        """``player:<id>``, ``service:<name>``, ``operator[:<name>]``, ``viewer:<name>``."""
        return f"{self.kind}:{self.id}" if self.id else self.kind


_current: ContextVar[Principal] = ContextVar("fangcheng_principal")


def current() -> Principal:
    """The caller of the call that is being handled; ``LookupError`` outside of calls."""
    return _current.get()


def enter(principal: Principal) -> None:
    """Make this the caller for the rest of the present task; the kit does so for each call."""
    _current.set(principal)


@contextmanager
def calling(principal: Principal) -> Iterator[None]:
    """Make this the caller within a ``with``: for code that runs outside of a call."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)


def parse_subject(subject: str, scopes: Iterable[str] = ()) -> Principal:
    """The principal that a subject names; ``ValueError`` for anything else."""
    kind, colon, name = subject.partition(":")
    if subject == "operator":
        return Principal("operator", "", frozenset(scopes))
    if kind in get_args(Kind) and colon and _is_id(name):
        return Principal(cast(Kind, kind), name, frozenset(scopes))
    raise ValueError(
        f"{subject!r} is none of player:<id>, service:<name>, operator, operator:<name>, "
        "viewer:<name>"
    )


def mint_token(
    key: str, subject: str, scopes: Sequence[str] = (), ttl_seconds: float = 3_600.0
) -> str:
    """A development token: HS256, valid from now for ``ttl_seconds``.

    ``ValueError`` for a subject that names nobody or a key of less than 32 characters.
    """
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"the key has {len(key)} characters; at least {SHORTEST_KEY} are needed")
    parse_subject(subject)
    now = time.time()
    claims = {"sub": subject, "scopes": list(scopes), "iat": int(now), "exp": now + ttl_seconds}
    return jwt.encode(claims, key, algorithm=ALGORITHM)


class TokenVerifier:
    """Checks development tokens; remembers those it has checked until they expire."""

    def __init__(self, key: str, leeway_seconds: float) -> None:
        self._key = key
        self._leeway_seconds = leeway_seconds
        self._checked: dict[str, tuple[Principal, float]] = {}

    def principal(self, metadata: Iterable[tuple[str, Any]]) -> Principal:
        """Who the metadata of a call says is calling.

        ``Unauthenticated`` without a good token; ``PermissionDenied`` and ``InvalidArgument`` where
        ``fangcheng-act-as`` is not allowed or names nobody.
        """
        bearer = act_as = None
        for key, value in metadata:
            if key == "authorization":
                bearer = value
            elif key == "fangcheng-act-as":
                act_as = value
            elif key == "fangcheng-act-as-bin":
                act_as = _decoded(value)
        if bearer is None:
            raise Unauthenticated("TOKEN_MISSING", "The call carries no token.")
        scheme, _, token = str(bearer).partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthenticated("TOKEN_INVALID", "Expected the metadata authorization: Bearer …")
        caller, _ = self.verified(token)
        return caller if act_as is None else _acting(caller, act_as)

    def verified(self, token: str) -> tuple[Principal, float]:
        """Whom a token is of, and when it expires, in seconds since 1970; ``Unauthenticated``."""
        known = self._checked.get(token)
        if known is None:
            known = self._check(token)
            if len(self._checked) >= _MOST_CACHED:
                # The oldest goes; a caller in use comes back with one check.
                del self._checked[next(iter(self._checked))]
            self._checked[token] = known
        if time.time() > known[1] + self._leeway_seconds:
            self._checked.pop(token, None)
            raise Unauthenticated("TOKEN_EXPIRED", "The token has expired.")
        return known

    def _check(self, token: str) -> tuple[Principal, float]:
        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=[ALGORITHM],
                leeway=self._leeway_seconds,
                options={"require": ["sub", "exp"]},
            )
            scopes = claims.get("scopes", [])
            if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
                raise ValueError("scopes must be a list of strings")
            return parse_subject(claims["sub"], scopes), float(claims["exp"])
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("TOKEN_EXPIRED", "The token has expired.") from None
        except (jwt.InvalidTokenError, ValueError):
            # Which check failed is of no use to an honest caller.
            raise Unauthenticated("TOKEN_INVALID", "The token is not valid here.") from None


def _acting(caller: Principal, player_id: str) -> Principal:
    if ACT_AS_SCOPE not in caller.scopes:
        raise PermissionDenied("ACT_AS_NOT_ALLOWED", "The token lacks the scope act_as.")
    if not _is_id(player_id):
        raise InvalidArgument(
            "INVALID_ACT_AS",
            f"fangcheng-act-as: a player id of 1 to {_MOST_PLAYER_ID} characters without NUL.",
        )
    return replace(caller, kind="player", id=player_id, via=caller.subject)


def _is_id(name: str) -> bool:
    """Whether this can be somebody's id: texts of requests have the same limits."""
    return 1 <= len(name) <= _MOST_PLAYER_ID and "\0" not in name


def _decoded(value: Any) -> str:
    try:
        return bytes(value).decode()
    except (UnicodeDecodeError, TypeError):
        raise InvalidArgument("INVALID_ACT_AS", "fangcheng-act-as-bin is not UTF-8.") from None
