"""Tokens: making those of development, and checking all of them.

A token is a JWT. Whose key has signed it says by which algorithm it is checked; what the token
itself names only finds the key. The development key (HS256) makes and checks; the keys of a key set
(EdDSA, RS256) check what the studio's own sign-in has made.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jwt
import structlog

from fangcheng_kit.errors import Unauthenticated
from fangcheng_kit.jwks import Key, KeySet
from fangcheng_kit.principal import Principal, parse_subject
from fangcheng_kit.signing import SigningKey

DEV_ALGORITHM = "HS256"
SHORTEST_KEY = 32
"""Characters of a development key: as many as HS256's hash has bytes."""

AUDIENCE = "fangcheng"
"""For whom tokens are, unless a studio names another."""

_LOOKS_SECONDS = 1.0
_MOST_CACHED = 4_096
_MOST_SHOWN = 64
_MALFORMED = (ValueError, TypeError, OverflowError, RecursionError)
"""What reading the claims of a token ends with that are of another shape."""


class InvalidToken(Unauthenticated):
    """A token that is not good here. The caller is told no more, the service's log is."""

    def __init__(self, why: str) -> None:
        super().__init__("TOKEN_INVALID", "The token is not valid here.")
        self.why = why


class UnknownKey(InvalidToken):
    """No key that is known now has signed the token; one that is new may have."""


class ExpiredToken(Unauthenticated):
    """The token was good."""

    def __init__(self, *, of_stream: bool = False) -> None:
        """``of_stream``: it was when the stream was opened, which is to go on with another one."""
        super().__init__(
            "TOKEN_EXPIRED",
            "The token has expired" + ("; go on with a new one." if of_stream else "."),
            metadata={"ended": "stream"} if of_stream else {},
        )


@dataclass(frozen=True, slots=True)
class Verified:
    """What a token has proved."""

    principal: Principal
    key: Key | None
    """Which key has signed it; ``None``: that of development, or a certificate says it."""

    @property
    def fingerprint(self) -> str:
        """Of that key; empty: there is none."""
        return "" if self.key is None else self.key.fingerprint


def claims_of(
    subject: str,
    scopes: Sequence[str] = (),
    ttl_seconds: float = 3_600.0,
    *,
    audience: str = AUDIENCE,
    issuer: str = "",
) -> dict[str, Any]:
    """The claims of a token that is good from now for ``ttl_seconds``.

    ``ValueError`` for a subject that names nobody.
    """
    parse_subject(subject)
    now = time.time()
    claims: dict[str, Any] = {"sub": subject, "scopes": list(scopes), "aud": audience}
    if issuer:
        claims["iss"] = issuer
    return {**claims, "iat": int(now), "exp": now + ttl_seconds}


def mint_token(
    key: str | SigningKey,
    subject: str,
    scopes: Sequence[str] = (),
    ttl_seconds: float = 3_600.0,
    *,
    audience: str = AUDIENCE,
    issuer: str = "",
) -> str:
    """A token, valid from now for ``ttl_seconds``; ``key``: that of development, or of a set.

    ``ValueError`` for a subject that names nobody or a key of less than 32 characters.
    """
    claims = claims_of(subject, scopes, ttl_seconds, audience=audience, issuer=issuer)
    if isinstance(key, SigningKey):
        return key.sign(claims)
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"the key has {len(key)} characters; at least {SHORTEST_KEY} are needed")
    return jwt.encode(claims, key, algorithm=DEV_ALGORITHM)


class BadTokenFile(Exception):
    """A file holds no token that a service could show; the message says why."""


class TokenFile:
    """The token of a service's own calls, in a file that somebody keeps fresh."""

    def __init__(self, path: Path, subject: str) -> None:
        """``subject``: whose token it has to be. Raises ``BadTokenFile``."""
        self._path = path
        self._subject = subject
        self._log = structlog.get_logger()
        self._problem = ""
        self._token = self._read()

    def token(self) -> str:
        """The token as it is now; one that cannot be read leaves the last in use."""
        if time.monotonic() >= self._look_at:
            try:
                self._token = self._read()
                self._problem = ""
            except BadTokenFile as error:
                if self._problem != str(error):
                    self._problem = str(error)
                    self._log.error("token not read", path=str(self._path), problem=self._problem)
        return self._token

    def _read(self) -> str:
        self._look_at = time.monotonic() + _LOOKS_SECONDS
        try:
            token = self._path.read_text("ascii").strip()
            claims = jwt.decode(token, options={"verify_signature": False})
        except OSError as error:
            raise BadTokenFile(f"it cannot be read: {error.strerror}") from None
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise BadTokenFile("what it holds is no token") from None
        if claims.get("sub") != self._subject:
            raise BadTokenFile(f"its token is of {claims.get('sub')!r}, not of {self._subject}")
        return token


class TokenVerifier:
    """Checks tokens; remembers those it has checked until they expire or the keys change."""

    def __init__(
        self,
        dev_key: str = "",
        keys: KeySet | None = None,
        *,
        audience: str = AUDIENCE,
        issuer: str = "",
        leeway_seconds: float = 10.0,
    ) -> None:
        """``dev_key``: empty: development tokens are not taken. ``issuer``: empty: not looked at.
        ``leeway_seconds``: how far the clocks of token makers may be off.
        """
        self.leeway_seconds = leeway_seconds
        self._dev_key = dev_key
        self._keys = keys
        self._audience = audience
        self._issuer = issuer
        self._checked: dict[str, Verified] = {}
        self._generation = 0

    def verified(self, token: str) -> Verified:
        """Whom a token is of; ``ExpiredToken``, ``InvalidToken``, ``UnknownKey``."""
        if self._keys is not None and self._keys.generation != self._generation:
            self._checked.clear()
            self._generation = self._keys.generation
        known = self._checked.get(token)
        if known is None:
            known = self._check(token)
            if len(self._checked) >= _MOST_CACHED:
                # The oldest goes; a caller in use comes back with one check.
                del self._checked[next(iter(self._checked))]
            self._checked[token] = known
        if time.time() > known.principal.expires + self.leeway_seconds:
            self._checked.pop(token, None)
            raise ExpiredToken
        return known

    async def checked(self, token: str) -> Verified:
        """As ``verified``; the keys are read anew where the token's is not known."""
        try:
            return self.verified(token)
        except UnknownKey:
            if not await self.renew():
                raise
            return self.verified(token)

    async def renew(self) -> bool:
        """Read the keys anew; whether they have changed."""
        return self._keys is not None and await self._keys.renew()

    def holds(self, fingerprint: str) -> bool:
        """Whether the key by which something was verified is in force now."""
        known = frozenset[str]() if self._keys is None else self._keys.fingerprints
        return not fingerprint or fingerprint in known

    def _check(self, token: str) -> Verified:
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise InvalidToken("it is no JWT") from None
        key = self._key(header)
        try:
            claims = jwt.decode(
                token,
                self._dev_key if key is None else key.public,
                algorithms=[DEV_ALGORITHM if key is None else key.algorithm],
                audience=self._audience,
                issuer=self._issuer or None,
                leeway=self.leeway_seconds,
                options={"require": ["sub", "exp", "aud"]},
            )
            scopes, expires = _scopes(claims), float(claims["exp"])
        except jwt.ExpiredSignatureError:
            raise ExpiredToken from None
        except (jwt.InvalidTokenError, *_MALFORMED) as error:
            raise InvalidToken(str(error)[:_MOST_SHOWN]) from None
        try:
            principal = parse_subject(claims["sub"], scopes)
        except ValueError:
            raise InvalidToken("sub names nobody") from None
        if key is not None and principal.kind not in key.kinds:
            raise InvalidToken(f"the key {key.id} may not sign for a {principal.kind}")
        return Verified(replace(principal, expires=expires), key)

    def _key(self, header: dict[str, Any]) -> Key | None:
        """The key that has to have signed a token of this header; ``None``: the development key."""
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm == DEV_ALGORITHM and self._dev_key:
            return None
        shown = f"{key_id!r}"[:_MOST_SHOWN]
        if self._keys is None or not isinstance(key_id, str):
            raise InvalidToken(f"no key for alg {algorithm!r}"[:_MOST_SHOWN] + f", kid {shown}")
        key = self._keys.keys.get(key_id)
        if key is None:
            raise UnknownKey(f"the key set has no key {shown}")
        if algorithm != key.algorithm:
            raise InvalidToken(f"the key {key.id} is for {key.algorithm} alone")
        return key


def _scopes(claims: dict[str, Any]) -> list[str]:
    """What a token allows: ``scopes``, a list, or ``scope``, a text with spaces in it."""
    scopes = claims.get("scopes")
    if scopes is None:
        scope = claims.get("scope", "")
        if not isinstance(scope, str):
            raise ValueError("scope must be a text")
        return scope.split()
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise ValueError("scopes must be a list of texts")
    return scopes
