"""Key sets: the public keys by which tokens are checked, read anew while the service runs.

A key set is JSON as of RFC 7517, in a file or at an address. Each of its keys has an id and one
algorithm, which a token does not choose; it may also say for whom it signs:

    {"keys": [{"kid": "2027-01", "kty": "OKP", "crv": "Ed25519", "x": "…", "kinds": ["player"]}]}
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import urlsplit

import jwt
import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from prometheus_client import CollectorRegistry

from fangcheng_kit.metrics import KeySetMetrics
from fangcheng_kit.principal import Kind

KINDS: frozenset[Kind] = frozenset(get_args(Kind))

SHORTEST_RSA_BITS = 2_048
_MOST_BYTES = 256 * 1024
_MOST_KEYS = 64
_MOST_KEY_ID = 128
_ANSWERS_SECONDS = 5.0
_LOOKS_SECONDS = 1.0
_AGAIN_SECONDS = 10.0
"""Not more often a set is read for tokens whose key it does not have."""

_ALGORITHMS = {"OKP": "EdDSA", "RSA": "RS256"}
_PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")


class BadKeySet(Exception):
    """A key set that cannot be used; the message says what is wrong with which key."""


@dataclass(frozen=True, slots=True)
class Key:
    """A public key that signs tokens."""

    id: str
    algorithm: str
    """``EdDSA`` or ``RS256``."""
    kinds: frozenset[Kind]
    """For whom it may sign."""
    fingerprint: str
    """Of all that the set says of it: another key under its id, or for others, is another one."""
    public: Any = field(compare=False, repr=False)


def parse_key_set(text: str | bytes) -> dict[str, Key]:
    """The keys of a set by their ids; raises ``BadKeySet``.

    Keys with a ``use`` other than ``sig`` are for something else and left out.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise BadKeySet("it is no JSON") from None
    listed = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        raise BadKeySet('it is no key set: expected {"keys": [...]}')
    if len(listed) > _MOST_KEYS:
        raise BadKeySet(f"it holds {len(listed)} keys; at most {_MOST_KEYS} are taken")
    keys: dict[str, Key] = {}
    for number, data in enumerate(listed, 1):
        if isinstance(data, dict) and data.get("use", "sig") != "sig":
            continue
        key = _key(f"key {number}", data)
        if key.id in keys:
            raise BadKeySet(f"key {number}: there is another one with the id {key.id!r}")
        keys[key.id] = key
    if not keys:
        raise BadKeySet("it holds no key that signs")
    return keys


def _key(which: str, data: Any) -> Key:
    if not isinstance(data, dict):
        raise BadKeySet(f"{which} is no object")
    key_id = data.get("kid")
    if not isinstance(key_id, str) or not 1 <= len(key_id) <= _MOST_KEY_ID:
        raise BadKeySet(f"{which}: kid must be a text of 1 to {_MOST_KEY_ID} characters")
    which = f"{which} ({key_id!r})"
    kind = data.get("kty")
    if kind == "oct" or any(member in data for member in _PRIVATE):
        raise BadKeySet(f"{which} is secret; a key set holds public keys only")
    usual = _ALGORITHMS.get(kind) if isinstance(kind, str) else None
    algorithm = data.get("alg", usual)
    if usual is None or algorithm != usual:
        raise BadKeySet(
            f"{which}: expected kty OKP with alg EdDSA (Ed25519), or kty RSA with alg RS256; "
            f"not kty {kind!r} with alg {algorithm!r}"
        )
    try:
        public: Any = jwt.PyJWK(data, algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise BadKeySet(f"{which} cannot be read: {error}") from None
    if isinstance(public, RSAPublicKey):
        if public.key_size < SHORTEST_RSA_BITS:
            raise BadKeySet(
                f"{which} has {public.key_size} bits; at least {SHORTEST_RSA_BITS} are needed"
            )
    elif not isinstance(public, Ed25519PublicKey):
        raise BadKeySet(f"{which}: its curve must be Ed25519")
    written = json.dumps(data, sort_keys=True).encode()
    fingerprint = hashlib.sha256(written).hexdigest()
    return Key(key_id, algorithm, _kinds(which, data), fingerprint, public)


def _kinds(which: str, data: Mapping[str, Any]) -> frozenset[Kind]:
    named = data.get("kinds", sorted(KINDS))
    known = isinstance(named, list) and all(isinstance(kind, str) for kind in named)
    if not known or not named or not KINDS.issuperset(named):
        raise BadKeySet(f"{which}: kinds must be a list of some of {', '.join(sorted(KINDS))}")
    return cast("frozenset[Kind]", frozenset(named))


class KeySet:
    """The keys of a file or an address, as they are now.

    What cannot be read leaves the keys in force that there are.
    """

    def __init__(
        self,
        source: str,
        refresh_seconds: float = 300.0,
        registry: CollectorRegistry | None = None,
    ) -> None:
        """``source``: a path, ``https://…``, or ``http://…`` of this host; empty: no keys."""
        self.source = source
        self.keys: Mapping[str, Key] = {}
        self.fingerprints: frozenset[str] = frozenset()
        """Of the keys."""
        self.generation = 0
        """Changes with the keys."""
        self.on_change: Callable[[], None] = lambda: None
        self._refresh_seconds = refresh_seconds
        self._reading = asyncio.Lock()
        self._asked_at = -_AGAIN_SECONDS
        self._read_at = 0.0
        self._seen: object = None
        self._metrics = KeySetMetrics(registry)
        self._log = structlog.get_logger()

    async def read(self) -> None:
        """Read the keys; raises ``BadKeySet``, and what there is stays in force."""
        if not self.source:
            return
        self._read_at = time.monotonic()
        self._seen = self._look()
        keys = parse_key_set(await _content(self.source))
        if keys == self.keys:
            return
        self.keys = keys
        self.fingerprints = frozenset(key.fingerprint for key in keys.values())
        self.generation += 1
        self._metrics.keys.set(len(keys))
        self._log.info("key set read", source=self.source, keys=list(keys))
        self.on_change()

    async def watch(self) -> None:
        """Read the keys anew where the file has changed or it is time to, until cancelled."""
        while self.source:
            await asyncio.sleep(_LOOKS_SECONDS)
            is_due = time.monotonic() >= self._read_at + self._refresh_seconds
            if is_due or self._look() != self._seen:
                async with self._reading:
                    await self._read_again()

    async def renew(self) -> bool:
        """Read the keys for a token whose key is not among them; whether they have changed.

        Not more than once in ten seconds, whatever tokens come, and nobody waits for another's
        reading: calls with made-up keys would queue up.
        """
        now = time.monotonic()
        if self._reading.locked() or now < self._asked_at + _AGAIN_SECONDS:
            return False
        before, self._asked_at = self.generation, now
        async with self._reading:
            await self._read_again()
        return self.generation != before

    async def _read_again(self) -> None:
        try:
            await self.read()
        except Exception as error:  # whatever it is: who watches must not stop to
            self._metrics.failures.inc()
            is_known = isinstance(error, BadKeySet)
            self._log.error(
                "key set not read; the keys stay as they were",
                source=self.source,
                problem=str(error),
                exc_info=not is_known,
            )

    def _look(self) -> object:
        """What changes with the file; of an address, nothing."""
        if _is_address(self.source):
            return None
        try:
            found = Path(self.source).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def check_source(source: str) -> str:
    """A source of keys as settings have it; ``ValueError`` for an address that cannot be one."""
    if not _is_address(source):
        return source
    parts = urlsplit(source)
    if not parts.hostname or parts.username or parts.fragment or not source.isprintable():
        raise ValueError("expected a path, or https://HOST/PATH")
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise ValueError("keys that come without TLS are anybody's: use https://")
    _ = parts.port  # raises ValueError beyond 65535
    return source


def _is_address(source: str) -> bool:
    return source.startswith(("https://", "http://"))


async def _content(source: str) -> bytes:
    reads = _fetched if _is_address(source) else _file_content
    try:
        async with asyncio.timeout(2 * _ANSWERS_SECONDS):
            content = await asyncio.to_thread(reads, source)
    except TimeoutError:
        raise BadKeySet("it does not answer in time") from None
    except OSError as error:
        raise BadKeySet(f"it cannot be read: {error.strerror or error}") from None
    except http.client.HTTPException as error:
        raise BadKeySet(f"what answers does not speak HTTP: {error!r}") from None
    if len(content) > _MOST_BYTES:
        raise BadKeySet(f"it has more than {_MOST_BYTES} bytes")
    return content


def _file_content(source: str) -> bytes:
    with Path(source).open("rb") as file:
        return file.read(_MOST_BYTES + 1)


def _fetched(address: str) -> bytes:
    """What an address answers. A redirection is none: it might lead to where there is no TLS."""
    parts = urlsplit(address)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_ANSWERS_SECONDS)
    try:
        path = parts.path or "/"
        connection.request("GET", f"{path}?{parts.query}" if parts.query else path)
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise BadKeySet(f"its server answers with status {answer.status}")
        return answer.read(_MOST_BYTES + 1)
    finally:
        connection.close()
