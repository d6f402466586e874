"""The certificate of the page, which is that of the process, read again when it changes."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import structlog

from fangcheng_kit import StartFailed

_LOOKS_SECONDS = 1.0
_NONE = ""
"""No password: without one OpenSSL asks for it at the terminal, and everything waits."""


class Certificate:
    """A context for TLS with the newest certificate: each new connection is shown it."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Files in PEM; raises `StartFailed` for such as cannot be used."""
        self._files = certificate, key
        self._log = structlog.get_logger()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            self._seen = self._stamps()
            self.context.load_cert_chain(*self._files, password=_NONE)
        except OSError as error:
            raise StartFailed(
                f"the page's certificate cannot be used, {self._files[0]}: {error}"
            ) from error

    def for_uvicorn(self, *_: object) -> ssl.SSLContext:
        """The context, where one is asked for by uvicorn's settings."""
        return self.context

    async def watch(self) -> None:
        """Look at the files until cancelled; those that cannot be used leave the last in force."""
        problem = ""
        while True:
            await asyncio.sleep(_LOOKS_SECONDS)
            try:
                if (seen := self._stamps()) == self._seen:
                    continue
                # Tried out first: what goes wrong midway would leave half of it in the other.
                trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                trial.load_cert_chain(*self._files, password=_NONE)
                self.context.load_cert_chain(*self._files, password=_NONE)
            except OSError as error:  # ssl.SSLError is one
                if problem != str(error):
                    problem = str(error)
                    self._log.warning("the page's certificate was not read", problem=problem)
            else:
                self._seen, problem = seen, ""

    def _stamps(self) -> list[tuple[int, int]]:
        return [(stat.st_mtime_ns, stat.st_ino) for stat in (path.stat() for path in self._files)]
