"""Channels to a suite's services, with tokens signed by its development key."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc.aio

from fangcheng_client import connect

TOKEN_TTL_SECONDS = 600.0

OPERATOR = "operator"
BOT_SCOPE = "bot"


@dataclass(frozen=True, slots=True)
class Access:
    """The way into one suite."""

    target_of: Callable[[str], str]
    """The gRPC target of a service by its name."""
    key: str

    def channel(
        self,
        service: str,
        subject: str = OPERATOR,
        scopes: Sequence[str] = (),
        *,
        target: str | None = None,
    ) -> grpc.aio.Channel:
        """A channel on which `subject` calls; `target`: another address than the usual one."""
        token = renewing_token(self.key, subject, scopes)
        return connect(target or self.target_of(service), token=token)


def renewing_token(key: str, subject: str, scopes: Sequence[str] = ()) -> Callable[[], str]:
    """A function that answers a token of a subject which is good for some minutes more."""
    # Here, and not above: the kit brings all that a service needs, and takes its time for it.
    from fangcheng_kit.principal import mint_token

    token = ""
    renew_at = 0.0

    def current() -> str:
        nonlocal token, renew_at
        if time.monotonic() >= renew_at:
            token = mint_token(key, subject, scopes, TOKEN_TTL_SECONDS)
            renew_at = time.monotonic() + TOKEN_TTL_SECONDS / 2
        return token

    return current
