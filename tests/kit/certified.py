"""Certificates in files, as a service of the tests reads them."""

from __future__ import annotations

from pathlib import Path

import grpc

from fangcheng_suite.certificates import Authority, Issued


class Folder:
    """A folder with the certificate of a service and the authorities that it trusts."""

    def __init__(self, path: Path) -> None:
        self.certificate = path / "own.pem"
        self.key = path / "own.key"
        self.trusted = path / "ca.pem"

    def put(self, issued: Issued) -> None:
        """Replace the certificate and its key."""
        replace(self.key, issued.key)
        replace(self.certificate, issued.certificate)

    def trust(self, *authorities: Authority) -> None:
        """Replace whom it trusts."""
        replace(self.trusted, b"".join(authority.certificate for authority in authorities))

    def settings(self) -> dict[str, Path]:
        """Of a service that asks for certificates, and shows its own where it calls."""
        return {
            "tls_certificate": self.certificate,
            "tls_key": self.key,
            "tls_client_ca": self.trusted,
            "tls_ca": self.trusted,
        }


def replace(path: Path, data: bytes) -> None:
    """Put another file in the place of one, at once."""
    draft = path.with_suffix(".new")
    draft.write_bytes(data)
    draft.replace(path)


def credentials(
    authority: Authority, shown: Issued | None, *others: Authority
) -> grpc.ChannelCredentials:
    """Of a caller who trusts an authority, or several, and shows a certificate."""
    trusted = b"".join(one.certificate for one in (authority, *others))
    if shown is None:
        return grpc.ssl_channel_credentials(trusted)
    return grpc.ssl_channel_credentials(trusted, shown.key, shown.certificate)
