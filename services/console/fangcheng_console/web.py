"""The console as a web application: its parts, its routes, its files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from fangcheng_kit import Kit

from .backend import Backend
from .guard import Guard
from .metrics import Metrics
from .oplog import OpLog
from .problems import HANDLERS, Refused
from .rule_sets import RuleSets
from .session import Sessions
from .settings import ConsoleSettings

STATIC = Path(__file__).with_name("static")
LARGEST_BODY = 64 * 1024
"""Bytes of a request."""
BODY_SECONDS = 20.0
"""In which all of it must have come."""

PAGES = (
    "/",
    "/tables/{id}",
    "/hands",
    "/replay/{table}/{hand}",
    "/r/{token}",
    "/try",
    "/wallet",
    "/wallet/{player}",
    "/settlements/{key:path}",
    "/health",
    "/operate",
    "/log",
    "/sign-in",
)
"""Where the one page answers; what it shows there, static/app.js decides."""


@dataclass(frozen=True, slots=True)
class Console:
    """What the parts of the console share."""

    settings: ConsoleSettings
    kit: Kit
    backend: Backend
    sessions: Sessions
    log: OpLog
    metrics: Metrics
    rule_sets: RuleSets


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the console: what it answers, and what it does in the background."""

    routes: Sequence[BaseRoute]
    running: Callable[[], AbstractAsyncContextManager[Any]] | None = None
    """Entered while the console serves, for parts that follow the services."""


Feature = Callable[[Console], Part]
"""Makes a part; `features.FEATURES` has them all."""


@asynccontextmanager
async def opened(
    console: Console, features: Sequence[Feature], origins: frozenset[str]
) -> AsyncIterator[Starlette]:
    """The application with all its parts at work; `origins`: of its page, as browsers say them."""
    parts = [feature(console) for feature in features]
    app = Starlette(
        routes=[
            *(route for part in parts for route in part.routes),
            Mount("/static", _Files(directory=STATIC)),
            *(Route(path, _page, methods=["GET"]) for path in PAGES),
            Route("/api/{rest:path}", _no_such_call, methods=["GET", "POST", "DELETE"]),
            Route("/{rest:path}", _no_such_page, methods=["GET"]),
        ],
        middleware=[
            Middleware(Guard, origins=origins, metrics=console.metrics),
            Middleware(GZipMiddleware, minimum_size=1_024, compresslevel=5),
        ],
        exception_handlers=HANDLERS,
    )
    app.state.console = console
    async with AsyncExitStack() as stack:
        for part in parts:
            if part.running is not None:
                await stack.enter_async_context(part.running())
        yield app


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object that a request carries; `Refused` for anything else."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(415, "NOT_JSON", "The request must carry JSON (application/json).")
    received = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                received += chunk
                if len(received) > LARGEST_BODY:
                    raise Refused(413, "TOO_LARGE", f"A request has {LARGEST_BODY} bytes at most.")
    except ClientDisconnect:
        raise Refused(400, "CUT_SHORT", "The request ended before its end.") from None
    except TimeoutError:
        raise Refused(408, "TOO_SLOW", "The request did not come to its end in time.") from None
    try:
        body = json.loads(received)
    except (ValueError, RecursionError):
        raise Refused(400, "NOT_JSON", "The request's body cannot be read as JSON.") from None
    if not isinstance(body, dict):
        raise Refused(400, "NOT_AN_OBJECT", "The request's body must be a JSON object.")
    return body


class _Files(StaticFiles):
    """Files of the page: asked about each time, unless the address names their version."""

    def file_response(self, *given: Any, **more: Any) -> Response:
        response = super().file_response(*given, **more)
        scope: Scope = given[2] if len(given) > 2 else more["scope"]
        is_versioned = scope["query_string"].startswith(b"v=")
        response.headers["cache-control"] = (
            "public, max-age=31536000, immutable" if is_versioned else "no-cache"
        )
        return response


async def _page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})


async def _no_such_page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html", 404, headers={"cache-control": "no-cache"})


async def _no_such_call(request: Request) -> Response:
    raise Refused(404, "NOT_FOUND", "The console has no such call.")
