"""Whose call it is: from its token, its certificate, or the service that passes it on.

A token comes first. Without one, the certificate of the connection names the caller. On top of
either, a gateway with the scope ``act_as`` names the player for whom it calls, and two services of
the suite name the caller whose call they pass on: a replica of the table service to another one,
and the console for the operators who have signed in there. They vouch for what they have verified
themselves, so that no token leaves the service that it was shown to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from fangcheng_kit.errors import InvalidArgument, PermissionDenied, Unauthenticated
from fangcheng_kit.principal import ACT_AS_SCOPE, MOST_ID, Principal, is_id, parse_subject
from fangcheng_kit.tokens import TokenVerifier, Verified

CALLER_KEY = "fangcheng-caller-bin"
"""Metadata with the caller whose call is passed on: JSON, as ``passed_on`` writes it."""

_MISSING = "TOKEN_MISSING", "The call carries no token."
_ACTS = frozenset({"service", "operator"})
_PASSES = frozenset({"service:table", "service:console"})


class Context(Protocol):
    """What is asked of a call's context."""

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """What TLS has verified of the peer."""
        ...


Peer = Callable[[Mapping[str, Iterable[bytes]]], Principal | None]
"""Whom the certificate of a peer names; ``None``: nobody, so that a token is needed.

``Unauthenticated`` for one that may not connect at all.
"""


class Identities:
    """Tells the callers of one service."""

    def __init__(self, service: str, verifier: TokenVerifier, peer: Peer | None = None) -> None:
        """``peer``: ``None`` where clients show no certificates."""
        self.verifier = verifier
        self._service = service
        self._peer = peer

    async def check(self, metadata: Iterable[tuple[str, Any]]) -> None:
        """Look at a token while nothing but the metadata of a call is there.

        ``Unauthenticated`` for one that is not good, and for none where no certificate counts. The
        keys are read anew where the token's is not known.
        """
        bearer = None
        for key, value in metadata:
            if key == "authorization":
                bearer = value
        if bearer is not None:
            await self.verifier.checked(_token(bearer))
        elif self._peer is None:
            raise Unauthenticated(*_MISSING)

    def of(self, metadata: Iterable[tuple[str, Any]], context: Context) -> Verified:
        """Who makes a call with this metadata.

        ``Unauthenticated`` where nobody is known to; ``PermissionDenied`` and ``InvalidArgument``
        where it is called for somebody for whom the caller may not, or who is nobody.
        """
        bearer = act_as = passed = None
        for key, value in metadata:
            if key == "authorization":
                bearer = value
            elif key == "fangcheng-act-as":
                act_as = value
            elif key == "fangcheng-act-as-bin":
                act_as = _decoded(value)
            elif key == CALLER_KEY:
                passed = value
        peer = None if self._peer is None else self._peer(context.auth_context())
        if bearer is not None:
            verified = self.verifier.verified(_token(bearer))
        elif peer is not None:
            verified = Verified(peer, None)
        else:
            raise Unauthenticated(*_MISSING)
        if passed is not None:
            return replace(verified, principal=self._passed(verified.principal, passed))
        if act_as is not None:
            return replace(verified, principal=_acting(verified.principal, act_as))
        return verified

    def _passed(self, by: Principal, value: Any) -> Principal:
        """The caller for whom one service vouches to another, where it may."""
        if by.subject not in _PASSES:
            raise PermissionDenied(
                "CALLER_NOT_ALLOWED", f"{CALLER_KEY} is taken from services that verify callers."
            )
        caller = _read(value, by)
        is_replicas = by.id == self._service == "table"
        is_operators = by.id == "console" and caller.kind == "operator" and not caller.scopes
        if not (is_replicas or is_operators):
            raise PermissionDenied(
                "CALLER_NOT_ALLOWED", f"{by.subject} may not call for this caller here."
            )
        return caller


def _token(bearer: object) -> str:
    scheme, _, token = str(bearer).partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("TOKEN_INVALID", "Expected the metadata authorization: Bearer …")
    return token


def passed_on(caller: Principal) -> tuple[str, bytes]:
    """The metadata with which this caller's call is passed on."""
    told: dict[str, Any] = {"sub": caller.subject, "scopes": sorted(caller.scopes)}
    if caller.via is not None:
        told["via"] = caller.via
    if caller.expires != math.inf:
        told["exp"] = caller.expires
    return CALLER_KEY, json.dumps(told).encode()


def _read(value: Any, by: Principal) -> Principal:
    """The reverse of ``passed_on``; one whose end is not told is known as long as who tells it."""
    try:
        told = json.loads(value)
        scopes, via = told.get("scopes", []), told.get("via")
        caller = parse_subject(told["sub"], [str(scope) for scope in scopes])
        expires = float(told.get("exp", by.expires))
        if math.isnan(expires):
            raise ValueError("no time")
        return replace(caller, via=None if via is None else str(via), expires=expires)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise InvalidArgument("INVALID_CALLER", f"{CALLER_KEY} names no caller.") from None


def _acting(caller: Principal, player_id: str) -> Principal:
    if ACT_AS_SCOPE not in caller.scopes:
        raise PermissionDenied("ACT_AS_NOT_ALLOWED", "The token lacks the scope act_as.")
    if caller.kind not in _ACTS:
        # A sign-in may give a player's client whatever scopes it asks for.
        raise PermissionDenied("ACT_AS_NOT_ALLOWED", f"A {caller.kind} acts for nobody else.")
    if not is_id(player_id):
        raise InvalidArgument(
            "INVALID_ACT_AS",
            f"fangcheng-act-as: a player id of 1 to {MOST_ID} characters without NUL.",
        )
    return replace(caller, kind="player", id=player_id, via=caller.subject)


def _decoded(value: Any) -> str:
    try:
        return bytes(value).decode()
    except (UnicodeDecodeError, TypeError):
        raise InvalidArgument("INVALID_ACT_AS", "fangcheng-act-as-bin is not UTF-8.") from None
