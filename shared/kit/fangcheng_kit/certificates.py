"""Certificates: the files that a service's settings name, read again when they change.

Files that cannot be used end the start. Later, what was read before stays in force until the files
are good again, which a warning and a metric tell: whoever replaces a certificate and its key does
so one after the other, and a mistake must not end what works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from prometheus_client import CollectorRegistry

from fangcheng_kit.metrics import CertificateMetrics
from fangcheng_kit.settings import Settings

LOOK_SECONDS = 1.0
"""How often the files are looked at, by their times and sizes."""


class BadCertificates(Exception):
    """The files cannot be used; the message names the setting and says why."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What the files held."""

    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    client_ca: bytes | None = None
    ca: bytes | None = None
    expires: tuple[tuple[str, datetime], ...] = ()
    """When what is in them ends, by kind."""


class Certificates:
    """The certificates of a service, for its server and for its calls of others."""

    def __init__(self, settings: Settings, registry: CollectorRegistry) -> None:
        """Read the files; ``BadCertificates``."""
        self._settings = settings
        self._metrics = CertificateMetrics(registry)
        self._log: Any = structlog.get_logger()
        self._problem: str = ""
        self._seen = self._signature()
        self._use(_read(settings))
        self._taken = self._server

    def server(self) -> grpc.ServerCredentials | None:
        """For the server's port: each new connection gets the newest; None: without TLS."""
        if self._server is None:
            return None
        fetch: Any = self._fetched  # the stubs know of no None
        credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
            self._server,
            fetch,
            require_client_authentication=self._settings.tls_client_ca is not None,
        )
        return credentials

    def _fetched(self) -> grpc.ServerCertificateConfiguration | None:
        """What gRPC asks for at each new connection, in threads of its own; None: as before."""
        newest = self._server
        if newest is self._taken:
            return None
        self._taken = newest
        return newest

    def client(self) -> grpc.ChannelCredentials:
        """The newest, for connections to other services; the same object until they change."""
        if self._client is None:
            raise RuntimeError("no authority is set that vouches for other services: TLS_CA")
        return self._client

    async def watch(self) -> None:
        """Look at the files until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Use what the files hold, if they have changed and are good."""
        seen = self._signature()
        if seen == self._seen and not self._problem:
            return
        self._seen = seen
        try:
            read = _read(self._settings)
        except BadCertificates as error:
            # Looked at again, changed or not: a certificate's time may come.
            if self._problem != str(error):
                self._problem = str(error)
                self._log.warning(
                    "certificates cannot be used; the earlier ones stay in force",
                    problem=self._problem,
                )
            self._metrics.failed()
            return
        self._use(read)
        self._log.info(
            "certificates read", expires={kind: at.isoformat() for kind, at in read.expires}
        )

    def _use(self, read: _Read) -> None:
        self._problem = ""
        self._server = (
            grpc.ssl_server_certificate_configuration(
                [(read.key, read.certificate)], read.client_ca
            )
            if read.key and read.certificate
            else None
        )
        self._client = (
            grpc.ssl_channel_credentials(read.ca, read.key, read.certificate) if read.ca else None
        )
        self._metrics.used((kind, at.timestamp()) for kind, at in read.expires)

    def _files(self) -> list[Path | None]:
        settings = self._settings
        return [
            settings.tls_certificate,
            settings.tls_key,
            settings.tls_client_ca,
            settings.tls_ca,
        ]

    def _signature(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) if path else None for path in self._files()]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _read(settings: Settings) -> _Read:
    now = datetime.now(UTC)
    expires: list[tuple[str, datetime]] = []
    certificate = key = None
    if settings.tls_certificate and settings.tls_key:
        certificate = _bytes("TLS_CERTIFICATE", settings.tls_certificate)
        key = _bytes("TLS_KEY", settings.tls_key)
        chain = _certificates("TLS_CERTIFICATE", settings.tls_certificate, certificate)
        for one in chain:
            _in_time("TLS_CERTIFICATE", settings.tls_certificate, one, now)
        holders = _public(_holders_key(settings.tls_certificate, chain[0]))
        if holders != _public(_private(settings.tls_key, key).public_key()):
            raise BadCertificates(
                f"TLS_KEY: {settings.tls_key} is not the key of the certificate in "
                f"{settings.tls_certificate}"
            )
        expires.append(("own", min(one.not_valid_after_utc for one in chain)))
    client_ca = _authorities("client_ca", "TLS_CLIENT_CA", settings.tls_client_ca, now, expires)
    ca = _authorities("ca", "TLS_CA", settings.tls_ca, now, expires)
    return _Read(certificate, key, client_ca, ca, tuple(expires))


def _authorities(
    kind: str,
    setting: str,
    path: Path | None,
    now: datetime,
    expires: list[tuple[str, datetime]],
) -> bytes | None:
    """A bundle of authorities; it may hold some that are over, while one is good."""
    if path is None:
        return None
    data = _bytes(setting, path)
    last = max(_certificates(setting, path, data), key=lambda one: one.not_valid_after_utc)
    _in_time(setting, path, last, now)
    expires.append((kind, last.not_valid_after_utc))
    return data


def _bytes(setting: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCertificates(f"{setting}: cannot read {path}: {error.strerror}") from None


def _certificates(setting: str, path: Path, data: bytes) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        raise BadCertificates(f"{setting}: {path} holds no certificate in PEM") from None


def _private(path: Path, data: bytes) -> Any:
    try:
        return load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadCertificates(
            f"TLS_KEY: {path} holds no private key in PEM without a password, of a kind that is "
            "known here"
        ) from None


def _holders_key(path: Path, certificate: x509.Certificate) -> Any:
    try:
        return certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise BadCertificates(
            f"TLS_CERTIFICATE: {path} is for a key of a kind that is not known here"
        ) from None


def _public(key: Any) -> bytes:
    encoded: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return encoded


def _in_time(setting: str, path: Path, one: x509.Certificate, now: datetime) -> None:
    if now > one.not_valid_after_utc:
        raise BadCertificates(
            f"{setting}: {path} has expired at {one.not_valid_after_utc:%Y-%m-%d %H:%M} UTC; "
            "put a new one in its place"
        )
    if now < one.not_valid_before_utc:
        raise BadCertificates(
            f"{setting}: {path} is not valid before {one.not_valid_before_utc:%Y-%m-%d %H:%M} UTC; "
            "is this host's clock right?"
        )
