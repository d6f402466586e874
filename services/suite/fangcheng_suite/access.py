"""Channels to a suite's services, with tokens signed by its key."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from fangcheng_client import connect

from .errors import SuiteError, cannot, from_call

if TYPE_CHECKING:
    from fangcheng_kit.signing import SigningKey

    from .identity import Identity

TOKEN_TTL_SECONDS = 600.0

OPERATOR = "operator"
BOT_SCOPE = "bot"


@dataclass(frozen=True, slots=True)
class Access:
    """The way into one suite."""

    target_of: Callable[[str], str]
    """The gRPC target of a service by its name."""
    key: str | SigningKey = field(repr=False)
    """That of development, or one of the key set."""
    ca_file: Path | None = None
    """Certificates to trust; connections are then TLS, by way of the edge: services have none."""
    plaintext: bool = False
    """Whether tokens may leave this host without TLS; see `FANGCHENG_DANGEROUSLY_WITHOUT_TLS`."""
    identity: Identity | None = None
    """The certificate of who runs the command, for services that ask for one. It says who calls
    where no player does: a token, which would win over it, is sent for players alone."""

    def channel(
        self,
        service: str,
        subject: str = OPERATOR,
        scopes: Sequence[str] = (),
        *,
        target: str | None = None,
    ) -> grpc.aio.Channel:
        """A channel on which `subject` calls; raises SuiteError, also for one that is nobody.

        `target`: another address than the usual one, as the services within know it; who comes
        through the edge can reach none but the usual ones.
        """
        from fangcheng_kit.principal import parse_subject

        try:
            parse_subject(subject)
        except ValueError as error:
            raise SuiteError(str(error), "Example: player:ming") from None
        if self.identity is not None:
            token = None if subject == OPERATOR else renewing_token(self.key, subject, scopes)
            # A process that is reached by its address has the certificate of its service's name.
            return connect(
                target or self.target_of(service),
                token,
                credentials=self.identity.credentials,
                server_name=service if target else "",
            )
        if not target or self.ca_file is not None:
            target = self.target_of(service)
        token = renewing_token(self.key, subject, scopes)
        return reach(target, token, self.ca_file, plaintext=self.plaintext)

    def failed(self, error: grpc.RpcError, what: str) -> SuiteError:
        """What to tell of a call that failed; see `errors.from_call`."""
        return from_call(error, what)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The way to one service that no suite here runs."""

    target: str
    token: str | None
    ca_file: Path | None = None
    """Certificates to trust; the connection is then TLS."""
    identity: Identity | None = None
    """The certificate of who calls, for a service that asks for one; a token wins over it."""

    def channel(self, service: str, subject: str = "") -> grpc.aio.Channel:
        """A channel to it, whichever service is asked for; raises SuiteError.

        Who calls is whom the token is of, or the certificate, not `subject`.
        """
        return reach(self.target, self.token, self.ca_file, identity=self.identity)

    def failed(self, error: grpc.RpcError, what: str) -> SuiteError:
        """What to tell of a call that failed; see `errors.from_call`."""
        return from_call(error, what, self.target)


def reach(
    target: str,
    token: Callable[[], str] | str | None,
    ca_file: Path | None,
    options: Sequence[tuple[str, int | str]] = (),
    *,
    plaintext: bool = False,
    identity: Identity | None = None,
) -> grpc.aio.Channel:
    """A channel to a target that a person has named; raises SuiteError.

    `plaintext`: a token may leave this host without TLS. `identity`: who calls by a certificate.
    """
    credentials: grpc.ChannelCredentials | Callable[[], grpc.ChannelCredentials] | None = None
    if isinstance(token, str) and not (token.isascii() and token.isprintable()):
        raise SuiteError(
            "the token has a character in it that no token has, such as the end of a line",
            "Give what `fangcheng token`, or whoever made it, has printed, and nothing else.",
        )
    if identity is not None:
        credentials = identity.credentials
    elif ca_file is not None:
        try:
            credentials = grpc.ssl_channel_credentials(ca_file.read_bytes())
        except OSError as error:
            raise cannot("read", ca_file, error) from error
    try:
        return connect(
            target, token, credentials=credentials, plaintext=plaintext, options=list(options)
        )
    except ValueError as error:
        raise SuiteError(str(error), "Give the certificates to trust with --ca.") from error


def signing_key_in(path: Path, key_id: str = "") -> SigningKey:
    """The private key in a file; raises SuiteError."""
    from fangcheng_kit.signing import SigningKey

    try:
        return SigningKey(path.read_bytes(), key_id)
    except OSError as error:
        raise cannot("read", path, error) from error
    except ValueError as error:
        raise SuiteError(f"{path}: {error}", "`fangcheng dev-keys DIR` makes one.") from None


def renewing_token(
    key: str | SigningKey, subject: str, scopes: Sequence[str] = ()
) -> Callable[[], str]:
    """A function that answers a token of a subject which is good for some minutes more."""
    # Here, and not above: the kit brings all that a service needs, and takes its time for it.
    from fangcheng_kit.tokens import mint_token

    token = ""  # nosec B105 # no password: none is given
    renew_at = 0.0

    def current() -> str:
        nonlocal token, renew_at
        if time.monotonic() >= renew_at:
            token = mint_token(key, subject, scopes, TOKEN_TTL_SECONDS)
            renew_at = time.monotonic() + TOKEN_TTL_SECONDS / 2
        return token

    return current
