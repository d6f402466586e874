"""Looks at everything, in the order in which one thing needs another."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from importlib.metadata import version

from . import agreeing, keeping
from .deployment import SERVICES, Deployment
from .findings import Finding, skipped
from .measures import Measured, compared, looked_at, measured
from .reaching import reached
from .settings import settings


async def examine(deployment: Deployment, *, is_quick: bool = False) -> AsyncIterator[Finding]:
    """Everything that is to be said, as it is found out; `is_quick`: the ledger is not audited."""
    ways = deployment.ways
    answering = set()
    for service in SERVICES:
        if service not in ways:
            how = f"Name it: --{service} HOST:PORT."
            yield skipped("reach", service, "it was not looked at", how)
            continue
        found = [one async for one in reached(deployment, ways[service])]
        for one in found:
            yield one
        if any(one.check == "caller" and one.level == "ok" for one in found):
            answering.add(service)
    known = await agreeing.known_rules(ways["evaluation"]) if "evaluation" in answering else {}
    for one in agreeing.evaluators(known):
        yield one
    if "matchmaking" in answering:
        async for one in agreeing.pools(ways["matchmaking"], known):
            yield one
    if "table" in answering:
        async for one in agreeing.tables(ways["table"], known):
            yield one
    if "wallet" in answering:
        async for one in agreeing.ledger(ways["wallet"], is_quick=is_quick):
            yield one
    async for one in agreeing.page(deployment):
        yield one
    async for one in _measures(deployment):
        yield one
    async for one in keeping.kept(deployment):
        yield one
    for service in _unseen(deployment.databases):
        if service != "evaluation":  # which keeps nothing
            how = f"Name it: --database {service}=ADDRESS."
            yield skipped("database", service, "its database was not looked at", how)
    for one in settings(deployment):
        yield one


async def _measures(deployment: Deployment) -> AsyncIterator[Finding]:
    told: list[Measured] = []
    now = time.time()
    for service, address in deployment.measures:
        one = await measured(service, address)
        if isinstance(one, Finding):
            yield one
            continue
        told.append(one)
        for finding in looked_at(one, now, is_here=deployment.is_here):
            yield finding
    for service in _unseen(service for service, _ in deployment.measures):
        yield skipped(
            "metrics",
            service,
            "versions, clocks, open files and what is stuck were not looked at",
            f"Name where its metrics are: --metrics {service}=HOST:PORT.",
        )
    for finding in compared(told, version("fangcheng")):
        yield finding


def _unseen(seen: Iterable[str]) -> list[str]:
    there = set(seen)
    return [service for service in SERVICES if service not in there]
