"""Who a command is to services that ask for a certificate, read again when its files change."""

from __future__ import annotations

from pathlib import Path

import grpc

from .errors import SuiteError, cannot


class Identity:
    """A certificate with its key, and the authority that vouches for the services, in PEM files."""

    def __init__(self, ca: Path, certificate: Path, key: Path) -> None:
        """Raises SuiteError for files that cannot be read."""
        self._files = ca, certificate, key
        self._seen: list[tuple[int, int]] = []
        self._credentials = self._read()

    @property
    def files(self) -> tuple[Path, Path]:
        """The certificate and its key."""
        return self._files[1:]

    def credentials(self) -> grpc.ChannelCredentials:
        """The newest; the same object until a file changes, as `connect` wants it."""
        try:
            if self._stamps() != self._seen:
                self._credentials = self._read()
        except (OSError, SuiteError):  # one is just being replaced: what was read goes on
            pass
        return self._credentials

    def _read(self) -> grpc.ChannelCredentials:
        try:
            seen = self._stamps()
            ca, certificate, key = (path.read_bytes() for path in self._files)
        except OSError as error:
            raise cannot("read", error.filename, error) from error
        self._seen = seen
        return grpc.ssl_channel_credentials(ca, key, certificate)

    def _stamps(self) -> list[tuple[int, int]]:
        return [(found.st_mtime_ns, found.st_ino) for found in (one.stat() for one in self._files)]


def identity_in(ca: Path | None, certificate: Path | None, key: Path | None) -> Identity | None:
    """Who the files say that one is, if they say anything; raises SuiteError."""
    if certificate is None and key is None:
        return None
    if ca is None or certificate is None or key is None:
        raise SuiteError(
            "--ca, --certificate and --certificate-key belong together", "Give all, or --ca alone."
        )
    return Identity(ca, certificate, key)
