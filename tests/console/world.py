"""The console as its process serves it, in the test's loop, and the requests of its page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from fangcheng_console.service import open_service
from fangcheng_console.settings import ConsoleSettings
from fangcheng_kit import Running, serving
from fangcheng_kit.tokens import mint_token

KEY = "a key of the tests that is long enough"
NOBODY = "127.0.0.1:1"
"""Where no service listens."""


@dataclass(frozen=True)
class Page:
    """A console's page, whoever serves it."""

    address: str
    """`http://host:port` of its page."""

    def token(
        self, subject: str, ttl_seconds: float = 3_600, scopes: Sequence[str] = (), key: str = KEY
    ) -> str:
        """A token of the suite."""
        return mint_token(key, subject, scopes, ttl_seconds)

    @asynccontextmanager
    async def browser(self, subject: str = "", **more: Any) -> AsyncIterator[Browser]:
        """A browser on the page; signed in where a subject is given (`viewer:wang`)."""
        async with httpx.AsyncClient(base_url=self.address, timeout=60, **more) as client:
            browser = Browser(client, self.address)
            if subject:
                answer = await browser.post("/api/session", {"token": self.token(subject)})
                assert answer.status_code == 200, answer.text
            yield browser


@dataclass(frozen=True)
class World(Page):
    """A console that serves."""

    running: Running


@dataclass(frozen=True)
class Browser:
    """Sends requests as the page does."""

    client: httpx.AsyncClient
    address: str

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """Read something."""
        return await self.client.get(path, headers=headers)

    async def post(
        self, path: str, body: object = None, method: str = "POST", **headers: str
    ) -> httpx.Response:
        """Change something."""
        sent = {"origin": self.address, "x-fangcheng-console": "1", **headers}
        if method == "DELETE":
            return await self.client.request(method, path, headers=sent)
        return await self.client.request(method, path, json=body or {}, headers=sent)


@asynccontextmanager
async def console(folder: Path, **settings: Any) -> AsyncIterator[World]:
    """A console without services behind it, unless `settings` name some."""
    nowhere = dict.fromkeys(("table", "wallet", "matchmaking", "evaluation"), NOBODY)
    known = {
        "dev_key": KEY,
        "web_listen": "127.0.0.1:0",
        "database": str(folder / "console.db"),
        "drain_seconds": 0.0,
        "grace_seconds": 0.5,
        **nowhere,
        **settings,
    }
    async with serving("console", ConsoleSettings(**known), open_service) as running:
        yield World("http://" + running.kit.listens["web"], running)
