"""What the lobby and the health page are made of, and what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fangcheng_kit.settings import split_address

from .figures import Figures
from .health import Check, Health, Ledger, Serving
from .hub import Feed
from .lobby import Picture, Tables
from .problems import Refused
from .scrape import Scraper, Target, targets
from .session import Person, operator, viewer
from .web import Console, Part, body_of


def itself(metrics_address: str) -> Target:
    """The console's own metrics, which are read as everybody's."""
    host, port = split_address(metrics_address)
    return Target("console", {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)  # noqa: S104 # nosec B104 # looked for, not listened on


class Overview:
    """The parts of both pages, and their work in the background."""

    def __init__(self, console: Console) -> None:
        backend, settings = console.backend, console.settings
        self.tables = Tables(backend.channels["table"])
        self.scraper = Scraper([*targets(settings.metrics), itself(console.kit.metrics_address)])
        self.figures = Figures(self.scraper, self._live_tables)
        self.serving = Serving(backend.channels)
        self.ledger = Ledger(backend.wallet)
        self.health = Health(
            self.scraper, self.tables, self.serving, self.ledger, settings.grafana_url
        )
        following = console.metrics.stream
        self.lobby_feed = Picture(self.tables, self.figures, viewing=partial(following, "lobby"))
        self.health_feed = Feed(viewing=partial(following, "health"))
        self.scraper.on_round = self._after_round
        self.ledger.on_change = self.tell_health
        self._draining = console.kit.draining

    def tell_health(self) -> None:
        """The health page has another picture."""
        self.health_feed.publish(self.health.picture)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follows tables and processes while the `async with` lasts."""
        self.tell_health()
        async with AsyncExitStack() as stack:
            for part in (self.tables, self.scraper, self.serving, self.ledger):
                await stack.enter_async_context(part.running())
            ending = asyncio.create_task(self._end_with_process())
            try:
                yield
            finally:
                ending.cancel()
                self._end()

    async def _end_with_process(self) -> None:
        """Streams end when the process is told to stop, so that their pages go elsewhere."""
        await self._draining.wait()
        self._end()

    def _end(self) -> None:
        self.lobby_feed.end()
        self.health_feed.end()

    def _after_round(self) -> None:
        self.figures.note()
        self.tell_health()

    def _live_tables(self) -> int | None:
        return None if self.tables.away_since is not None else len(self.tables.live)


def feature(console: Console) -> Part:
    """Both pages."""
    overview = Overview(console)

    @viewer
    async def lobby(request: Request, person: Person) -> Response:
        return overview.lobby_feed.stream(request)

    @viewer
    async def health(request: Request, person: Person) -> Response:
        return overview.health_feed.stream(request)

    @viewer
    async def ledger(request: Request, person: Person) -> Response:
        told: dict[str, Any] = {"checks": overview.ledger.checks}
        if person.role == "operator":
            told["findings"] = overview.ledger.findings
        return JSONResponse(told)

    @operator
    async def check(request: Request, person: Person) -> Response:
        kind = (await body_of(request)).get("check")
        if kind not in ("audit", "verify"):
            raise Refused(400, "INVALID_CHECK", "The check is audit or verify.", "check")
        if overview.ledger.busy:
            raise Refused(409, "CHECK_RUNS", "A check of the ledger runs already; wait for it.")
        metadata = console.backend.as_operator(person)
        overview.ledger.start(cast(Check, kind), person.subject, metadata)
        return JSONResponse({"checks": overview.ledger.checks}, 202)

    return Part(
        routes=[
            Route("/api/lobby/events", lobby),
            Route("/api/health/events", health),
            Route("/api/health/ledger", ledger),
            Route("/api/health/ledger", check, methods=["POST"]),
        ],
        running=overview.running,
    )
