"""A service as a process: from its settings to its last call."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import grpc
import grpc.aio
import structlog
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from prometheus_client import CollectorRegistry

import fangcheng_client
from fangcheng_client.channel import stays_here
from fangcheng_client.keepalive import SERVER_OPTIONS
from fangcheng_kit import health, logs, tls, trace_context
from fangcheng_kit.calls import REQUEST_ID_KEY, Calls
from fangcheng_kit.certificates import BadCertificates, Certificates
from fangcheng_kit.contract import OPERATORS, ContractError, methods_of
from fangcheng_kit.identities import Identities, Peer
from fangcheng_kit.jwks import BadKeySet, KeySet
from fangcheng_kit.limits import CallerLimits
from fangcheng_kit.metrics import CallMetrics, MetricsEndpoint, ProcessMetrics, new_registry
from fangcheng_kit.settings import (
    BadSettings,
    Settings,
    is_loopback,
    load,
    split_address,
    unknown_variables,
)
from fangcheng_kit.tokens import BadTokenFile, TokenFile, TokenVerifier, mint_token
from fangcheng_kit.tracing import OFF, Tracing

EXIT_FAILED = 1
EXIT_BAD_SETTINGS = 2
EXIT_INTERRUPTED = 130

# A thread that holds the interpreter hands it over this quickly: an event loop beside a thread at
# work, and a writer beside a busy loop, would wait for Python's usual 5 ms, each time.
SWITCH_SECONDS = 0.000_5

_TOKEN_TTL_SECONDS = 600.0
# How much longer than promised a stop may take until the process is ended by force.
_OVERTIME_SECONDS = 5.0

S = TypeVar("S", bound=Settings)


class StartFailed(Exception):
    """The process cannot serve; the message says why."""


@dataclass(frozen=True, slots=True)
class Servicer:
    """One gRPC service of a process."""

    add: Callable[[Any, Any], None]
    """The generated ``add_…Servicer_to_server``."""
    servicer: object
    """Its implementation; every method is ``async``."""
    full_name: str
    """``package.Service``, such as ``fangcheng.wallet.v1.WalletService``."""


class Kit:
    """What a service is given by the process that it runs in."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        """The service's name, as in the subject ``service:<name>`` of its own calls."""
        self.address = ""
        """Where the process's gRPC server listens, ``host:port``, the chosen port filled in."""
        self.metrics_address = ""
        """Where ``/metrics`` is served, ``host:port``, the chosen port filled in."""
        self.listens: dict[str, str] = {}
        """Where else the service listens, ``host:port`` by name: the port file has them too."""
        self.registry: CollectorRegistry = new_registry()
        """Where the service registers its metrics."""
        self.callers = CallerLimits(settings, self.registry)
        """What each caller may ask for; a stream on which many act looks at it for each of them."""
        self.draining = asyncio.Event()
        """Set when the process has been told to stop; the server still takes calls for a while."""
        self.log: Any = structlog.get_logger()
        self.tracing: Tracing = OFF
        """Makes the spans of what the service does between the calls that it takes and makes."""
        self.verifier = TokenVerifier()
        """Checks the tokens that the service is shown."""
        self._settings = settings
        self._certificates = _certificates(settings, self.registry)
        self._health = health.Health()
        self._channels: list[grpc.aio.Channel] = []
        self._tokens: dict[tuple[str, ...], tuple[str, float]] = {}
        """By scopes, each with when to renew it."""
        self._token_file: TokenFile | None = None

    def connect(
        self,
        target: str,
        *,
        timeout_seconds: float | None = None,
        scopes: Sequence[str] = (),
        **options: Any,
    ) -> grpc.aio.Channel:
        """A channel to another service, with who this one is and a deadline for every call.

        Its token says who it is, or where it has none, its certificate. ``scopes``: of a token that
        is made here, such as ``act_as`` for a service that calls for players too; one that comes
        from a file has its own.
        Passes on the request id and the trace of the call that is being handled. The kit closes the
        channel after the service, and follows when certificates change. ``options`` as for
        ``fangcheng_client.connect``. ``StartFailed`` where calls would leave this host unencrypted.
        """
        is_open = not (self._settings.tls_ca or self._settings.dangerously_without_tls)
        if is_open and not stays_here(target):
            raise StartFailed(
                f"{target}: calls of that service, and the hands in them, would leave this host in "
                "plain text: set TLS_CA, or DANGEROUSLY_WITHOUT_TLS in a network that encrypts by "
                "itself"
            )
        channel = fangcheng_client.connect(
            target,
            token=partial(self.token, tuple(scopes)) if self._has_token else None,
            timeout_seconds=timeout_seconds or self._settings.call_timeout_seconds,
            max_message_bytes=self._settings.max_message_bytes,
            metadata=_passed_on,
            around=self.tracing.around(),
            credentials=self._certificates.client if self._settings.tls_ca else None,
            plaintext=self._settings.dangerously_without_tls,
            **options,
        )
        self._channels.append(channel)
        return channel

    @property
    def _has_token(self) -> bool:
        return self._token_file is not None or bool(self._settings.dev_key)

    def token(self, scopes: tuple[str, ...] = ()) -> str:
        """A token of this service: that of its file, or one that is good for some minutes."""
        if self._token_file is not None:
            return self._token_file.token()
        token, renew_at = self._tokens.get(scopes, ("", 0.0))
        if time.monotonic() >= renew_at:
            token = mint_token(
                self._settings.dev_key,
                f"service:{self.name}",
                scopes,
                ttl_seconds=_TOKEN_TTL_SECONDS,
                audience=self._settings.token_audience,
                issuer=self._settings.token_issuer,
            )
            self._tokens[scopes] = token, time.monotonic() + _TOKEN_TTL_SECONDS / 2
        return token

    def health(self, ready: bool, reason: str = "") -> None:
        """Say whether the service can do its work: a database gone, no evaluator. Begins ready.

        To be called in the event loop, not from a thread.
        """
        self._health.set(ready, reason)


@dataclass(frozen=True, slots=True)
class Running:
    """A server that serves."""

    address: str
    """``host:port`` of gRPC."""
    metrics_address: str
    """``host:port`` of ``/metrics``."""
    kit: Kit
    """What the service was given."""
    drain_seconds: float

    async def drain(self) -> None:
        """Tell NOT_SERVING, and wait until clients have noticed; calls are still answered."""
        self.kit._health.stop()
        self.kit.draining.set()
        await asyncio.sleep(self.drain_seconds)


OpenService = Callable[[S, Kit], AbstractAsyncContextManager[Sequence[Servicer]]]
"""Opens a service: stores, connections, background tasks; closes them after the server stopped."""


def run(name: str, settings_type: type[S], open_service: OpenService[S]) -> NoReturn:
    """Run a service until SIGTERM or SIGINT, and exit the process.

    Exit codes: 0 after a stop that was asked for, 1 where the service could not start or failed, 2
    for settings that cannot be used, 130 for a second Ctrl-C.
    """
    try:
        settings = load(name, settings_type)
    except BadSettings as error:
        print(f"{name}: bad settings\n{error}", file=sys.stderr)
        sys.exit(EXIT_BAD_SETTINGS)
    logs.set_up(name, settings.log_level)
    sys.setswitchinterval(SWITCH_SECONDS)
    for complaint in unknown_variables(name, settings_type):
        structlog.get_logger().warning("unknown setting", problem=complaint)
    main = _until_stopped(name, settings, open_service)
    if sys.platform == "win32":
        sys.exit(asyncio.run(main))
    import uvloop

    sys.exit(uvloop.run(main))


async def _until_stopped(name: str, settings: S, open_service: OpenService[S]) -> int:
    log = structlog.get_logger()
    stop = _Stop(settings.drain_seconds + settings.grace_seconds + _OVERTIME_SECONDS)
    try:
        async with serving(name, settings, open_service) as running:
            stop.started()
            with _port_file(settings.port_file, running):
                await stop.asked.wait()
                log.info("draining")
                await running.drain()
    except (StartFailed, ContractError) as error:
        log.error("cannot start", problem=str(error))
        return EXIT_FAILED
    except asyncio.CancelledError:
        if not stop.asked.is_set():
            raise
    except Exception:
        log.exception("failed")
        return EXIT_FAILED
    log.info("stopped")
    return 0


class _Stop:
    """Turns signals into a stop: orderly at the first, at once at the second Ctrl-C."""

    def __init__(self, longest_seconds: float) -> None:
        self.asked = asyncio.Event()
        self._longest_seconds = longest_seconds
        self._starting = asyncio.current_task()
        self._interrupts = 0
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ask, number)

    def started(self) -> None:
        """From now on a stop drains; until now it breaks the start off."""
        self._starting = None

    def _ask(self, number: signal.Signals) -> None:
        self._interrupts += number is signal.SIGINT
        if self._interrupts > 1:
            os._exit(EXIT_INTERRUPTED)
        if self.asked.is_set():
            return
        self.asked.set()
        # Whatever hangs, a thread or a task that does not end, the process does.
        timer = threading.Timer(self._longest_seconds, os._exit, [EXIT_FAILED])
        timer.daemon = True
        timer.start()
        if self._starting is not None:
            self._starting.cancel()


@asynccontextmanager
async def serving(name: str, settings: S, open_service: OpenService[S]) -> AsyncIterator[Running]:
    """Serve a service while the ``async with`` lasts; at its end streams are ended, calls finish.

    Raises ``StartFailed`` where an address, a certificate, the key set or the service's token
    cannot be had, ``ContractError`` where a proto or a servicer lacks what it needs, and what
    ``open_service`` raises.
    """
    kit = Kit(name, settings)
    for danger in settings.dangers():
        kit.log.warning("dangerous setting", setting=danger)
    kit.tracing = _tracing(name, settings)
    keys = await _key_set(kit, settings)
    kit.verifier = TokenVerifier(
        settings.dev_key,
        keys,
        audience=settings.token_audience,
        issuer=settings.token_issuer,
        leeway_seconds=settings.token_leeway_seconds,
    )
    kit._token_file = _token_file(name, settings)
    calls = Calls(
        Identities(name, kit.verifier, _peer(name, settings)),
        kit.callers,
        CallMetrics(kit.registry),
        settings.max_message_bytes,
        kit.tracing,
    )
    keys.on_change = calls.keys_changed
    # Addresses first: a second process must fail before it opens the first one's database.
    server = grpc.aio.server(interceptors=[calls], options=_options(settings))
    kit.address = address = _bound(server, settings.listen, kit._certificates.server())
    with _metrics(kit, settings.metrics_listen) as metrics:
        kit.metrics_address = _joined(settings.metrics_listen, metrics.port)
        lag = asyncio.create_task(ProcessMetrics(kit.registry, name).watch_loop())
        certificates = asyncio.create_task(kit._certificates.watch())
        keeping = asyncio.create_task(keys.watch())
        try:
            async with open_service(settings, kit) as servicers:
                names = _add_all(server, calls, kit, servicers)
                await server.start()
                kit._health.open(names)
                kit.log.info("serving", listen=address, metrics=kit.metrics_address, services=names)
                try:
                    yield Running(address, kit.metrics_address, kit, settings.drain_seconds)
                finally:
                    kit._health.stop()
                    kit.draining.set()
                    calls.end_streams()
                    await server.stop(settings.grace_seconds)
        finally:
            lag.cancel()
            certificates.cancel()
            keeping.cancel()
            for channel in kit._channels:
                await channel.close()
            await kit.tracing.close()


async def _key_set(kit: Kit, settings: Settings) -> KeySet:
    """The keys of ``JWKS``; without it a set that is empty and stays so."""
    keys = KeySet(settings.jwks, settings.jwks_refresh_seconds, kit.registry)
    try:
        await keys.read()
    except BadKeySet as error:
        raise StartFailed(f"the key set {settings.jwks} (FANGCHENG_JWKS): {error}") from None
    return keys


def _peer(name: str, settings: Settings) -> Peer | None:
    """Tells whom a certificate names, where clients show one."""
    if settings.tls_client_ca is None:
        return None
    scopes = tls.granted(name, settings.certificate_scopes)
    return lambda shown: tls.peer_principal(shown, settings.tls_trust_domain, scopes)


def _token_file(name: str, settings: Settings) -> TokenFile | None:
    if settings.token_file is None:
        return None
    try:
        return TokenFile(settings.token_file, f"service:{name}")
    except BadTokenFile as error:
        raise StartFailed(f"{settings.token_file} (FANGCHENG_TOKEN_FILE): {error}") from None


def _options(settings: Settings) -> list[tuple[str, int | str]]:
    options: dict[str, int | str] = {
        "grpc.so_reuseport": 0,
        # What gRPC refuses by itself carries no reason; up to twice the limit ours is heard.
        "grpc.max_receive_message_length": 2 * settings.max_message_bytes,
        "grpc.max_send_message_length": -1,
        **dict(SERVER_OPTIONS),
    }
    if age_seconds := settings.connection_age_seconds:
        options["grpc.max_connection_age_ms"] = int(age_seconds * 1_000)
        options["grpc.max_connection_age_grace_ms"] = int(settings.connection_grace_seconds * 1_000)
    return list(options.items())


def _bound(server: grpc.aio.Server, listen: str, credentials: grpc.ServerCredentials | None) -> str:
    try:
        port = (
            server.add_secure_port(listen, credentials)
            if credentials
            else server.add_insecure_port(listen)
        )
    except RuntimeError:
        port = 0
    if port == 0:
        raise StartFailed(
            f"cannot listen on {listen}: another process has the port, or it is not ours"
        )
    return _joined(listen, port)


def _certificates(settings: Settings, registry: CollectorRegistry) -> Certificates:
    try:
        return Certificates(settings, registry)
    except BadCertificates as error:
        raise StartFailed(str(error)) from error


@contextmanager
def _metrics(kit: Kit, listen: str) -> Iterator[MetricsEndpoint]:
    try:
        endpoint = MetricsEndpoint(kit.registry, *split_address(listen), kit._health.probes())
    except OSError as error:
        raise StartFailed(f"cannot serve metrics on {listen}: {error.strerror}") from error
    with endpoint:
        yield endpoint


def _tracing(name: str, settings: Settings) -> Tracing:
    if not settings.otlp_endpoint:
        return OFF
    try:
        from fangcheng_kit.otlp import Exporting
    except ImportError as error:
        raise StartFailed(
            f"spans cannot be exported to {settings.otlp_endpoint}: {error.name} is not installed; "
            "install fangcheng-kit[tracing], or set no endpoint"
        ) from error
    return Exporting(name, settings.otlp_endpoint, settings.trace_ratio)


def _joined(listen: str, port: int) -> str:
    return f"{listen.rpartition(':')[0]}:{port}"


def _add_all(
    server: grpc.aio.Server, calls: Calls, kit: Kit, servicers: Sequence[Servicer]
) -> list[str]:
    names = [servicer.full_name for servicer in servicers]
    for servicer in servicers:
        methods = methods_of(servicer.full_name)
        for method in methods:
            _check_handler(servicer.servicer, method.name)
        calls.add(methods)
        servicer.add(servicer.servicer, server)
    # Everybody who reaches the port may ask for its health; what it serves, only who is on this
    # host, or an operator.
    health_pb2_grpc.add_HealthServicer_to_server(kit._health.servicer, server)
    calls.add(methods_of(health.SERVICE_NAME, is_open=True))
    reflection.enable_server_reflection(
        [*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server
    )
    need = None if is_loopback(kit.address) else OPERATORS
    calls.add(
        replace(method, need=need) for method in methods_of(reflection.SERVICE_NAME, is_open=True)
    )
    return names


def _check_handler(servicer: object, name: str) -> None:
    """A handler that is left out, or blocks the loop, is found at the start and not by a caller."""
    handler = inspect.unwrap(getattr(servicer, name, None) or _missing)
    if not (inspect.iscoroutinefunction(handler) or inspect.isasyncgenfunction(handler)):
        raise ContractError(f"{type(servicer).__name__}.{name} is not there or not async")


def _missing() -> None: ...


@contextmanager
def _port_file(path: Path | None, running: Running) -> Iterator[None]:
    if path is None:
        yield
        return
    content = {
        "listen": running.address,
        "metrics": running.metrics_address,
        **running.kit.listens,
        "pid": os.getpid(),
    }
    # Moved into place, so that a reader sees nothing or everything.
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(content) + "\n", "utf-8")
        draft.replace(path)
    except OSError as error:
        raise StartFailed(f"cannot write {path}: {error.strerror}") from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _passed_on() -> list[tuple[str, str | bytes]]:
    request_id = logs.request_id.get()
    pairs = trace_context.metadata()
    if request_id:
        pairs.append((REQUEST_ID_KEY, request_id))
    return pairs
