"""The console: what fifty viewers cost one process, and how late they see what happens.

    python benchmarks/console.py [--tables TABLES] [--viewers VIEWERS]

A whole suite, each service a process of its own, and one console, alone on the first core. At every
table four bots play at the pace of people. A fifth of the viewers look at the lobby, the others at
a table each, by the streams that their pages read. Of every event the time is taken from when the
table service wrote it until a viewer has it; and, at some tables, until a page in a real Chromium
has it in its document. Bots, viewers, Chromium and the other services share the other core.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from measure import Line, Lines, cores, pin
from playwright.async_api import Page, async_playwright
from processes import Service, ready, start, stop, told_by
from seating import one_for_silver, suite
from tables import START_SECONDS, Gateway, create, player

from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_client import connect
from fangcheng_kit.collector import relax
from fangcheng_kit.tokens import mint_token

LOBBY_SHARE = 5
"""One viewer in so many looks at the lobby."""
PAGES = 2
"""Tables that a real browser shows."""
PROMISED_CORE = 0.60
PROMISED_MIB = 300
PROMISED_MS = 300
SETTLING_SECONDS = 8.0
MEASURED_SECONDS = 30.0
SEED = 20_240_601
WATCH_PAGE = """
() => {
  window.shown = [];
  let last = "";
  new MutationObserver(() => {
    const number = document.querySelector("[data-number]")?.dataset.number;
    if (number !== undefined && number !== last) window.shown.push([Number(number), Date.now()]);
    last = number;
  }).observe(document.body, {subtree: true, childList: true, attributes: true,
                             attributeFilter: ["data-number"]});
}
"""
"""Notes in a page when the picture of a table has got to an event."""


@dataclass
class Seen:
    """What a viewer of a table was sent."""

    number: int = 0
    """Of the last event."""
    written_ms: dict[int, int] = field(default_factory=dict)
    """When the table service wrote an event, by its number."""
    late_ms: list[float] = field(default_factory=list)
    bytes: int = 0


@contextlib.asynccontextmanager
async def console(key: str, services: dict[str, Service]) -> AsyncIterator[tuple[Service, str]]:
    """A console on the first core, for these services; the address of its page."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings: dict[str, object] = {
            **{name: service.address for name, service in services.items()},
            "metrics": ",".join(f"{name}={one.metrics}" for name, one in services.items()),
            "database": folder / "console.db",
            "web_listen": "127.0.0.1:0",
        }
        here = cores()
        pin(ALL_CORES[0])
        process = await start("console", folder / "console.json", key, settings)
        pin(*here)
        stack.push_async_callback(stop, process)
        async with asyncio.timeout(START_SECONDS):
            service = await ready(process, folder / "console.json")
            told = await told_by(process, folder / "console.json")
        yield service, f"http://{told['web']}"


async def view(client: httpx.AsyncClient, path: str, seen: Seen) -> None:
    """Read a stream as a page does, and note how late its events are."""
    async with client.stream("GET", path) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            now = time.time() * 1e3
            if not line.startswith("data:"):
                continue
            seen.bytes += len(line)
            message = json.loads(line.removeprefix("data:"))
            first = not seen.number
            for event in message.get("log", ()):
                number = int(event["number"])
                if number > seen.number:
                    written = 1e3 * datetime.fromisoformat(event["time"]).timestamp()
                    seen.number = number
                    seen.written_ms[number] = round(written)
                    if not first:
                        seen.late_ms.append(now - written)


@contextlib.asynccontextmanager
async def pages_at(address: str, token: str, tables: Sequence[str]) -> AsyncIterator[list[Page]]:
    """Pages of a real Chromium, one at each table; none where there is no Chromium."""
    program = shutil.which("chromium")
    if program is None:
        yield []
        return
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
        pages = []
        for table_id in tables:
            page = await browser.new_page()  # each in a profile of its own
            await page.goto(f"{address}/sign-in#{token}")
            await page.get_by_role("navigation").first.wait_for()
            await page.goto(f"{address}/tables/{table_id}")
            await page.locator("[data-number]").first.wait_for()
            pages.append(page)
        await asyncio.sleep(SETTLING_SECONDS)  # opening one takes the others' time
        for page in pages:
            await page.evaluate(WATCH_PAGE)
        yield pages
        await browser.close()


def late_in_page(shown: Sequence[tuple[int, int]], written_ms: dict[int, int]) -> list[float]:
    """How late each event was in a page that noted when it had got to which."""
    late: list[float] = []
    for (before, _), (number, at) in itertools.pairwise(shown):
        late += [at - written_ms[one] for one in range(before + 1, number + 1) if one in written_ms]
    return late


async def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--viewers", type=int, default=50)
    given = parser.parse_args()
    lines = Lines("console")
    group = f"{given.tables} tables in play, one console process"
    pin(ALL_CORES[-1])
    async with contextlib.AsyncExitStack() as stack:
        services = await stack.enter_async_context(suite(one_for_silver()))

        async def tables_as(subject: str, *scopes: str) -> Any:
            token = mint_token(services.key, subject, scopes)
            address = services.services["table"].address
            return TableServiceStub(await stack.enter_async_context(connect(address, token)))

        made = await create(await tables_as("operator"), given.tables)
        gateway = Gateway(await tables_as("service:gateway", "act_as", "bot"), random.Random(SEED))
        for table_id, name in made.items():
            for seat in range(4):
                gateway.sit(player(name, seat), table_id)
        process, address = await stack.enter_async_context(console(services.key, services.services))
        await asyncio.sleep(SETTLING_SECONDS)

        async def cpu_share() -> float:
            begun, before = time.perf_counter(), process.cpu_seconds()
            await asyncio.sleep(MEASURED_SECONDS)
            return (process.cpu_seconds() - before) / (time.perf_counter() - begun)

        def add(what: str, amount: float, unit: str, note: str) -> None:
            lines.add(Line(group, what, amount, unit, rate=False, note=note))

        share = await cpu_share()
        add("nobody looks", 100 * share, "% of a core", f"{memory(process):.0f} MiB")

        token = mint_token(services.key, "viewer:bench")
        limits = httpx.Limits(max_connections=None)
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=address, timeout=None, limits=limits)  # noqa: S113  # streams
        )
        answer = await client.post(
            "/api/session",
            json={"token": token},
            headers={"origin": address, "x-fangcheng-console": "1"},
        )
        answer.raise_for_status()
        in_lobby = given.viewers // LOBBY_SHARE
        watched = list(made)[: given.viewers - in_lobby]
        seen = [Seen() for _ in range(given.viewers)]
        paths = ["/api/lobby/events"] * in_lobby
        paths += [f"/api/tables/{table_id}/events" for table_id in watched]
        views = [
            asyncio.create_task(view(client, path, one))
            for path, one in zip(paths, seen, strict=True)
        ]
        await asyncio.sleep(SETTLING_SECONDS)
        for one in seen:
            one.late_ms.clear()
            one.bytes = 0
        share = await cpu_share()
        late = [ms for one in seen for ms in one.late_ms]
        sent = sum(one.bytes for one in seen) / MEASURED_SECONDS / given.viewers / 1024
        looking = f"{given.viewers} viewers"
        add(
            f"{looking}, {in_lobby} in the lobby and {len(watched)} at tables",
            100 * share,
            "% of a core",
            f"promised < {PROMISED_CORE:.0%}; {sent:.1f} KiB/s to each",
        )
        add(f"{looking}, memory", memory(process), "MiB", f"promised < {PROMISED_MIB}")
        add(f"an event at one of {looking}, p95", *spread(late))
        async with pages_at(address, token, watched[:PAGES]) as pages:
            await asyncio.sleep(MEASURED_SECONDS if pages else 0)
            in_page = [
                ms
                for page, one in zip(pages, seen[in_lobby:], strict=False)
                for ms in late_in_page(await page.evaluate("() => window.shown"), one.written_ms)
            ]
        if in_page:
            add(f"an event in a page of Chromium, beside {looking}, p95", *spread(in_page))
        for task in (*views, gateway.task):
            task.cancel()
        ended = await asyncio.gather(*views, gateway.task, return_exceptions=True)
        for problem in ended:
            if not isinstance(problem, asyncio.CancelledError):
                raise SystemExit(f"a stream ended: {problem!r}")
    lines.save()


def memory(process: Service) -> float:
    """MiB that a process holds."""
    return process.memory_bytes() / 2**20


def spread(late_ms: Sequence[float]) -> tuple[float, str, str]:
    """How late 95 of a hundred are at most, with its unit, and how late others are."""
    centiles = statistics.quantiles(late_ms, n=100)
    told = f"p50 {centiles[49]:.0f} ms, p99 {centiles[98]:.0f} ms, {len(late_ms):,} events"
    return centiles[94], "ms", f"promised < {PROMISED_MS}; {told}"


ALL_CORES = cores()

if __name__ == "__main__":
    relax(20_000, 50, 20)
    asyncio.run(main())
