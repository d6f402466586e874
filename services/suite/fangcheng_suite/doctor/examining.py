"""Looks at everything, in the order in which one thing needs another."""

from __future__ import annotations

import asyncio
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
    for service in SERVICES:
        if service not in ways:
            how = f"Name it: --{service} HOST:PORT."
            yield skipped("reach", service, "it was not looked at", how)
    answering: dict[str, list[str]] = {}
    """By service: the addresses that have answered a call."""
    parts = await asyncio.gather(*(reached(deployment, way) for way in ways.values()))
    for way, found in zip(ways.values(), parts, strict=True):
        for one in found:
            yield one
        well = {one.subject for one in found if one.check == "caller" and one.level == "ok"}
        answering[way.service] = [one for one in way.addresses if way.subject(one) in well]
    known = {}
    if evaluators := answering.get("evaluation"):
        known = await agreeing.known_rules(ways["evaluation"], evaluators)
    for one in agreeing.evaluators(known):
        yield one
    if matchmaking := answering.get("matchmaking"):
        async for one in agreeing.pools(ways["matchmaking"], matchmaking[0], known):
            yield one
    if table := answering.get("table"):
        async for one in agreeing.tables(ways["table"], table[0], known):
            yield one
    if wallet := answering.get("wallet"):
        async for one in agreeing.ledger(ways["wallet"], wallet[0], is_quick=is_quick):
            yield one
    async for one in agreeing.page(deployment):
        yield one
    async for one in _measures(deployment):
        yield one
    async for one in keeping.kept(deployment):
        yield one
    for service in _unseen(deployment, deployment.databases):
        if service != "evaluation":  # which keeps nothing
            how = f"Name it: --database {service}=ADDRESS."
            yield skipped("database", service, "its database was not looked at", how)
    for one in settings(deployment):
        yield one


async def _measures(deployment: Deployment) -> AsyncIterator[Finding]:
    told: list[Measured] = []
    now = time.time()
    for one in await asyncio.gather(*(measured(*place) for place in deployment.measures)):
        if isinstance(one, Finding):
            yield one
            continue
        told.append(one)
        for finding in looked_at(one, now, is_here=deployment.is_here):
            yield finding
    for service in _unseen(deployment, (service for service, _ in deployment.measures)):
        yield skipped(
            "metrics",
            service,
            "versions, clocks, open files and what is stuck were not looked at",
            f"Name where its metrics are: --metrics {service}=HOST:PORT.",
        )
    for finding in compared(told, version("fangcheng")):
        yield finding


def _unseen(deployment: Deployment, seen: Iterable[str]) -> list[str]:
    """The services that were looked at, and are not among these."""
    there = set(seen)
    return [service for service in deployment.ways if service not in there]
