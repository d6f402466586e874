"""`fangcheng dev-certs`: an authority and certificates for trying a suite with mutual TLS.

For trying: the authority's key lies beside them. A studio's own authority gives certificates that
say the same, which docs/operations/certificates.md has.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fangcheng_kit.tls import TRUST_DOMAIN

from .errors import SuiteError, cannot

SERVICES = ("wallet", "evaluation", "table", "matchmaking", "console")
HOLDERS = {
    **{service: f"service/{service}" for service in SERVICES},
    "bots": "service/bots",
    "edge": "proxy/edge",
    "operator": "operator/dev",
}
"""Who gets a certificate: by the name of its files, the path of the URI that names it."""

DAYS = 30
AUTHORITY_DAYS = 365
HERE = ("localhost", "127.0.0.1", "::1")
_CLOCKS_OFF = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class Authority:
    """Issues certificates."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def new(cls, name: str = "Fangcheng for trying", days: int = AUTHORITY_DAYS) -> Authority:
        """A new one, good from now for so many days."""
        key = ec.generate_private_key(ec.SECP256R1())
        called = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _begun(called, called, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(key, certificate)

    @classmethod
    def read(cls, certificate: bytes, key: bytes) -> Authority:
        """One that was kept; ``ValueError`` for files of something else."""
        private = load_pem_private_key(key, password=None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key is of another kind")
        return cls(private, x509.load_pem_x509_certificate(certificate))

    @property
    def certificate(self) -> bytes:
        """Its own certificate in PEM."""
        return self._certificate.public_bytes(Encoding.PEM)

    @property
    def key(self) -> bytes:
        """Its key in PEM."""
        return _private(self._key)

    @property
    def days_left(self) -> float:
        """How long it is still good for."""
        return (self._certificate.not_valid_after_utc - datetime.now(UTC)) / timedelta(days=1)

    def issue(
        self,
        holder: str,
        hosts: Iterable[str] = HERE,
        *,
        trust_domain: str = "fangcheng",
        days: float = DAYS,
    ) -> Issued:
        """A certificate of the holder ``spiffe://<trust domain>/<holder>``, good from now.

        ``hosts``: names and addresses at which it may be found. ``days`` below 0: it is over.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        uri = x509.UniformResourceIdentifier(f"spiffe://{trust_domain}/{holder}")
        certificate = (
            _begun(x509.Name([]), self._certificate.subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .add_extension(
                x509.SubjectAlternativeName([uri, *map(_host, dict.fromkeys(hosts))]),
                critical=True,
            )
            .sign(self._key, hashes.SHA256())
        )
        return Issued(certificate.public_bytes(Encoding.PEM), _private(key))


def make_all(folder: Path, hosts: Sequence[str] = (), trust_domain: str = "fangcheng") -> Authority:
    """Write an authority and a certificate for each of ``HOLDERS`` into a folder: ``ca.crt``, and
    ``<name>.crt`` with ``<name>.key``. Where the folder has an authority that is good for as long
    as they are, it issues them, so that what trusts it goes on. Raises SuiteError.
    """
    if not re.fullmatch(TRUST_DOMAIN, trust_domain):
        raise SuiteError(
            f"{trust_domain!r} is no trust domain",
            "It is as a domain is written: lower-case letters, digits, dots and dashes.",
        )
    try:
        for host in hosts:
            _host(host)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        authority = _kept(folder)
        if authority is None or authority.days_left < DAYS:
            authority = Authority.new()
            _write(folder / "ca.key", authority.key, 0o600)
            _write(folder / "ca.crt", authority.certificate, 0o644)
        for name, holder in HOLDERS.items():
            issued = authority.issue(holder, [name, *HERE, *hosts], trust_domain=trust_domain)
            _write(folder / f"{name}.key", issued.key, 0o600)
            _write(folder / f"{name}.crt", issued.certificate, 0o644)
    except OSError as error:
        raise cannot("write", error.filename or folder, error) from error
    except ValueError as error:
        raise SuiteError(
            f"cannot make certificates: {error}",
            "Names of hosts are such as table.example or 10.0.0.7, without a port.",
        ) from error
    return authority


def _kept(folder: Path) -> Authority | None:
    try:
        return Authority.read((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise SuiteError(
            f"{folder} holds an authority that this command did not make: {error}",
            "Choose another folder.",
        ) from error


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: float
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    end = now + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - _CLOCKS_OFF)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        if not name or not name.isascii() or any(sign in name for sign in ":/ "):
            raise ValueError(f"{name!r} is no name of a host") from None
        return x509.DNSName(name)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, data: bytes, mode: int) -> None:
    """Moved into place: a service that looks sees the old file or the new one."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
    draft.replace(path)
