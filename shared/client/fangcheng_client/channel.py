"""``connect``: a channel set up as every client of the suite should be.

The channel wraps the calls themselves instead of using gRPC's client interceptors: those start a
task of their own for each call, and each of the four kinds of call needs another class.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from typing import Any

import grpc
import grpc.aio

from fangcheng_client.keepalive import CLIENT_OPTIONS, Option
from fangcheng_client.renewing import renewing

SERVICE_CONFIG: str = files(__package__).joinpath("service_config.json").read_text("utf-8")
"""Spread calls over replicas, leave out unhealthy ones, repeat calls that got no answer.

Every call of the suite may be repeated: what changes something carries a ``request_id``. Streams
are repeated only until their first message; from there ``attend`` and ``watch`` resume them.

What is refused as too much (RESOURCE_EXHAUSTED: TOO_MANY_CALLS, TOO_MANY_STREAMS, TOO_MANY_CODES,
EVALUATOR_BUSY) is not repeated by the channel: the error is the caller's at once, and
``explain(error).retry_after_seconds`` says after how long the same call may be made again. The
streams of this package wait for as long by themselves.
"""

DEFAULT_TIMEOUT_SECONDS = 10.0
MAX_MESSAGE_BYTES = 4 * 1024 * 1024

Metadata = Sequence[tuple[str, str | bytes]]
Token = str | Callable[[], str]
Around = Callable[[str, Callable[[], Any]], Any]
"""Given the path of a call and what makes it; makes it, and returns what that returned."""


def connect(
    target: str,
    token: Token | None = None,
    act_as: str | None = None,
    *,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    credentials: grpc.ChannelCredentials | Callable[[], grpc.ChannelCredentials] | None = None,
    server_name: str = "",
    plaintext: bool = False,
    max_message_bytes: int = MAX_MESSAGE_BYTES,
    metadata: Callable[[], Metadata] | None = None,
    around: Around | None = None,
    options: Iterable[Option] = (),
) -> grpc.aio.Channel:
    """Open a channel to a service of the suite; close it with ``await channel.close()``.

    ``target``: ``host:port``, or a gRPC name such as ``dns:///table:7103`` or
    ``ipv4:127.0.0.1:7001,127.0.0.1:7002`` for several replicas.
    ``token``: the bearer token, or a function that is asked for one at every call, so that it may
    be renewed. ``act_as``: the player for whom a gateway calls; its token needs the scope
    ``act_as``. ``timeout_seconds``: deadline of calls with a single answer that were given none;
    streams have none unless given one. ``credentials``: TLS; or a function that is asked for them
    at every call: where it gives others, calls move to a new connection, and those that go on end
    on the old one. ``server_name``: the name that the server's certificate must have, where that is
    not the host of the target. ``plaintext``: allow a token over a connection without TLS to
    another host. ``metadata``: asked for more metadata at every call. ``around``: makes every call,
    for who traces them. ``options``: gRPC channel options; they win over the defaults.

    Raises ``ValueError`` where a token would leave this host without TLS.
    """
    if token is not None and credentials is None and not plaintext and not stays_here(target):
        raise ValueError(
            f"{target}: a token would leave this host in plain text; give credentials for TLS, "
            "or plaintext=True where something else (a sidecar, a tunnel) protects the connection"
        )
    merged: dict[str, int | str] = {
        "grpc.service_config": SERVICE_CONFIG,
        "grpc.enable_retries": 1,
        "grpc.initial_reconnect_backoff_ms": 100,
        # How long a connection may take to stand. What is refused is tried again at once.
        "grpc.min_reconnect_backoff_ms": 5_000,
        "grpc.max_reconnect_backoff_ms": 2_000,
        "grpc.dns_min_time_between_resolutions_ms": 5_000,
        "grpc.max_receive_message_length": max_message_bytes,
        "grpc.max_send_message_length": -1,
        **dict(CLIENT_OPTIONS),
        **({"grpc.ssl_target_name_override": server_name} if server_name else {}),
        **dict(options),
    }
    arguments = list(merged.items())
    inner: grpc.aio.Channel
    if credentials is None:
        inner = grpc.aio.insecure_channel(target, options=arguments)
    elif isinstance(credentials, grpc.ChannelCredentials):
        inner = grpc.aio.secure_channel(target, credentials, options=arguments)
    else:
        inner = renewing(
            credentials, lambda given: grpc.aio.secure_channel(target, given, options=arguments)
        )
    return _Channel(inner, _Caller(token, act_as, metadata), timeout_seconds, around)


def stays_here(target: str) -> bool:
    """Whether every address of a target is this host's own."""
    scheme, colon, rest = target.partition(":")
    if scheme in ("unix", "unix-abstract") and colon:
        return True
    if scheme in ("ipv4", "ipv6", "dns") and colon:
        target = rest.rsplit("/", 1)[-1]
    return all(_is_loopback(address) for address in target.split(","))


def _is_loopback(address: str) -> bool:
    host = address[1:].partition("]")[0] if address.startswith("[") else address.partition(":")[0]
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Caller:
    """Says with each call who is calling, and for whom."""

    def __init__(
        self, token: Token | None, act_as: str | None, more: Callable[[], Metadata] | None
    ) -> None:
        self._token = token
        self._more = more
        self._act_as: tuple[tuple[str, str | bytes], ...] = ()
        if act_as is not None:
            # Metadata is ASCII; a key that ends in -bin carries any bytes.
            plain = act_as.isascii() and act_as.isprintable()
            self._act_as = (
                (("fangcheng-act-as", act_as),)
                if plain
                else (("fangcheng-act-as-bin", act_as.encode()),)
            )

    def metadata(self, given: Iterable[tuple[str, str | bytes]] | None) -> grpc.aio.Metadata:
        pairs = [*(given or ()), *self._act_as]
        if self._token is not None:
            token = self._token if isinstance(self._token, str) else self._token()
            pairs.append(("authorization", f"Bearer {token}"))
        if self._more is not None:
            pairs.extend(self._more())
        return grpc.aio.Metadata(*pairs)


class _Call:
    """A call of any kind: adds who calls, and a deadline where it has none."""

    def __init__(
        self,
        path: str,
        inner: Any,
        caller: _Caller,
        timeout_seconds: float | None,
        around: Around | None,
    ) -> None:
        self._path = path
        self._inner = inner
        self._caller = caller
        self._timeout_seconds = timeout_seconds
        self._around = around

    def __call__(
        self, *request: Any, timeout: float | None = None, metadata: Any = None, **more: Any
    ) -> Any:
        def call() -> Any:
            return self._inner(
                *request,
                timeout=self._timeout_seconds if timeout is None else timeout,
                metadata=self._caller.metadata(metadata),
                **more,
            )

        return call() if self._around is None else self._around(self._path, call)


class _Channel(grpc.aio.Channel):
    """A channel whose calls say who is calling and have a deadline."""

    def __init__(
        self,
        inner: grpc.aio.Channel,
        caller: _Caller,
        timeout_seconds: float,
        around: Around | None,
    ) -> None:
        self._inner = inner
        self._caller = caller
        self._timeout_seconds = timeout_seconds
        self._around = around

    def unary_unary(self, method: str, *arguments: Any, **more: Any) -> Any:
        inner = self._inner.unary_unary(method, *arguments, **more)
        return _Call(method, inner, self._caller, self._timeout_seconds, self._around)

    def stream_unary(self, method: str, *arguments: Any, **more: Any) -> Any:
        inner = self._inner.stream_unary(method, *arguments, **more)
        return _Call(method, inner, self._caller, self._timeout_seconds, self._around)

    def unary_stream(self, method: str, *arguments: Any, **more: Any) -> Any:
        inner = self._inner.unary_stream(method, *arguments, **more)
        return _Call(method, inner, self._caller, None, self._around)

    def stream_stream(self, method: str, *arguments: Any, **more: Any) -> Any:
        inner = self._inner.stream_stream(method, *arguments, **more)
        return _Call(method, inner, self._caller, None, self._around)

    async def __aenter__(self) -> _Channel:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> None:
        await self._inner.__aexit__(*failure)

    async def close(self, grace: float | None = None) -> None:
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return self._inner.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._inner.channel_ready()
