"""The console as a process: a web server in the loop of the kit's own."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp

from fangcheng_kit import Kit, Servicer, StartFailed, running
from fangcheng_kit.settings import is_postgres, split_address

from . import connections
from .backend import Backend
from .certificate import Certificate
from .connections import Connection, listen
from .features import FEATURES
from .metrics import Metrics
from .oplog import OpLog
from .postgres import open_postgres
from .rule_sets import RuleSets
from .session import Sessions
from .settings import ConsoleSettings
from .sqlite import open_sqlite
from .web import Console, opened

_STREAMS_END_SECONDS = 2
"""How long answers in flight may take at the end; streams that still go on are cut."""


@asynccontextmanager
async def open_service(settings: ConsoleSettings, kit: Kit) -> AsyncIterator[Sequence[Servicer]]:
    """Serves the page on `web_listen`; of gRPC the process has its health alone."""
    certificate = _certificate(settings)
    with _bound(settings.web_listen) as listening:
        host, port = split_address(settings.web_listen)
        port = listening.getsockname()[1]
        kit.listens["web"] = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        async with _log(settings.database) as log:
            backend = Backend(kit, settings)
            console = Console(
                settings,
                kit,
                backend,
                Sessions(settings, kit.verifier),
                log,
                Metrics(kit.registry),
                RuleSets(backend.evaluation),
            )
            async with (
                opened(console, FEATURES, settings.origins(port)) as app,
                _serving(app, listening, settings, certificate),
            ):
                kit.log.info("the page is served", web=kit.listens["web"])
                yield []


def _certificate(settings: ConsoleSettings) -> Certificate | None:
    """That of the page, where it needs one."""
    if not (settings.web_over_tls and settings.tls_certificate and settings.tls_key):
        return None
    return Certificate(settings.tls_certificate, settings.tls_key)


@asynccontextmanager
async def _log(database: str) -> AsyncIterator[OpLog]:
    log = await (open_postgres if is_postgres(database) else open_sqlite)(database)
    try:
        yield log
    finally:
        await log.close()


@contextmanager
def _bound(address: str) -> Iterator[socket.socket]:
    host, port = split_address(address)
    try:
        listening = listen(host, port)
    except OSError as error:
        raise StartFailed(f"cannot serve the page on {address}: {error.strerror}") from error
    with listening:
        yield listening


@asynccontextmanager
async def _serving(
    app: ASGIApp,
    listening: socket.socket,
    settings: ConsoleSettings,
    certificate: Certificate | None,
) -> AsyncIterator[None]:
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    server = _Server(
        uvicorn.Config(
            app,
            http=Connection,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=settings.trusted_proxies or None,
            timeout_keep_alive=math.ceil(connections.IDLE_SECONDS),
            timeout_graceful_shutdown=_STREAMS_END_SECONDS,
            ssl_context_factory=certificate.for_uvicorn if certificate else None,
        )
    )
    served = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(running(_while_served(served)))
            if certificate is not None:
                await stack.enter_async_context(running(certificate.watch()))
            yield
    finally:
        server.should_exit = True
        await asyncio.wait([served])


async def _while_served(served: asyncio.Task[None]) -> None:
    """A server that has ended by itself ends the process too."""
    await asyncio.wait([served])
    served.result()
    raise RuntimeError("the web server has ended")


class _Server(uvicorn.Server):
    """Uvicorn that leaves the process's signals alone: the kit turns them into an orderly stop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
