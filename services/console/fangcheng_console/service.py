"""The console as a process: a web server in the loop of the kit's own."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp

from fangcheng_kit import Kit, Servicer, StartFailed, running
from fangcheng_kit.settings import is_postgres, split_address

from . import connections
from .backend import Backend
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
                _serving(app, listening, settings),
            ):
                kit.log.info("the page is served", web=kit.listens["web"])
                yield []


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
    app: ASGIApp, listening: socket.socket, settings: ConsoleSettings
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
        )
    )
    served = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        async with running(_while_served(served)):
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
