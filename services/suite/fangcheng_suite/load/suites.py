"""The suite that a load is played at: its own, or one that runs."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import secrets
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fangcheng_suite.access import OPERATOR, renewing_token
from fangcheng_suite.errors import ServiceFailed, SuiteError
from fangcheng_suite.launcher import Launcher
from fangcheng_suite.progress import progress
from fangcheng_suite.state import Address, StateFolder

from .way import Way

HANDS = 8
"""Of a table of a load's own, before its players queue again."""
SERVICES = ("matchmaking", "table", "wallet", "evaluation")
_FETCH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """A suite."""

    told: str
    """What it is, for whoever reads the report."""
    way: Way
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Where each process tells what it uses, by its label; empty where that cannot be known."""
    own: bool = False
    """It was started for the load, and ends with it."""
    failed: asyncio.Future[ServiceFailed] | None = None
    """Set when a process of it has ended."""


def own_pool(rule_set: str, client: int) -> str:
    """The pool of a client's players, so that the four seats of a table are all its own."""
    return f"load-{rule_set}-{client + 1}"


@contextlib.asynccontextmanager
async def own_suite(
    rule_sets: Sequence[str], clients: int, evaluators: int, *, at_once: bool
) -> AsyncIterator[Place]:
    """A suite of its own in a folder that goes with it. `at_once`: tables make no pauses.

    Raises SuiteError where it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="fangcheng-load-") as path:
        folder = StateFolder(Path(path))
        key = secrets.token_urlsafe(32)
        with folder.claimed():
            pools = folder.path / "pools.yaml"
            pools.write_text(json.dumps(_pools(rule_sets, clients, at_once=at_once)), "utf-8")
            launcher = Launcher(
                folder,
                key,
                evaluators=evaluators,
                temporary=True,
                settings={"matchmaking": {"POOLS": str(pools)}},
            )
            with progress("Starting a suite (the first time the rules are compiled)"):
                await launcher.__aenter__()
            try:
                yield Place(
                    f"a suite of its own on this computer, {evaluators} "
                    f"evaluator{'s' if evaluators > 1 else ''}, SQLite",
                    Way({service: launcher.target(service) for service in SERVICES}, key),
                    {one.label: one.address.metrics for one in launcher.processes},
                    own=True,
                    failed=launcher.failed,
                )
            finally:
                with progress("Stopping the suite"):
                    await launcher.__aexit__(None, None, None)


def running_suite(state: Path) -> Place:
    """The suite of a state folder; raises SuiteError where none runs."""
    suite = StateFolder(state).read()
    return Place(
        f"the suite that runs with the state folder {state}",
        Way({service: suite.target(service) for service in SERVICES}, suite.key),
        dict(_labelled(suite.services)),
    )


def named_suite(
    targets: Mapping[str, str | None],
    key: str,
    key_id: str,
    signing_key: Path | None,
    ca: Path | None,
    certificate: Path | None,
    certificate_key: Path | None,
    *,
    plaintext: bool,
) -> Place:
    """A suite whose services are named; raises SuiteError where something is missing."""
    if missing := [f"--{service}" for service, target in targets.items() if not target]:
        raise SuiteError(f"{' and '.join(missing)} not given", "Name all four services.")
    given = {service: target for service, target in targets.items() if target}
    way = Way(
        given,
        key,
        signing_key=_name(signing_key),
        key_id=key_id,
        ca=_name(ca),
        certificate=_name(certificate),
        certificate_key=_name(certificate_key),
        plaintext=plaintext,
    )
    try:
        renewing_token(way.access().key, OPERATOR)()
    except ValueError as error:
        raise SuiteError(
            str(error),
            "Give the key that signs tokens by --signing-key, or FANGCHENG_DEV_KEY as the services "
            "have it.",
        ) from None
    return Place(f"the suite whose matchmaking is {given['matchmaking']}", way)


def _name(path: Path | None) -> str:
    return "" if path is None else str(path)


def _labelled(services: Mapping[str, Sequence[Address]]) -> Iterator[tuple[str, str]]:
    for service, addresses in services.items():
        for number, address in enumerate(addresses, 1):
            label = service if len(addresses) == 1 else f"{service}-{number}"
            yield label, address.metrics


def _pools(rule_sets: Sequence[str], clients: int, *, at_once: bool) -> dict[str, object]:
    timing = {"timing": {"claim_window_ms": 0, "between_hands_ms": 0}} if at_once else {}
    return {
        "pools": [
            {
                "id": own_pool(rule_set, client),
                "name": "load",
                "rules": {"id": rule_set},
                "stakes": [
                    {"currency": "silver", "per_unit": 10, "buy_in": 5000},
                    {"currency": "points", "book": rule_set, "per_unit": 1},
                ],
                "hands": HANDS,
                **timing,
            }
            for rule_set in rule_sets
            for client in range(clients)
        ]
    }


async def used(place: Place) -> dict[str, tuple[float, float]]:
    """CPU seconds and bytes of each process that tells them."""
    found = await asyncio.gather(
        *(asyncio.to_thread(_used, address) for address in place.metrics.values())
    )
    return {label: one for label, one in zip(place.metrics, found, strict=True) if one is not None}


def _used(address: str) -> tuple[float, float] | None:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=_FETCH_SECONDS)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException):
        return None  # it is being started again, or too busy: the next time
    finally:
        connection.close()
    found = [
        re.search(rf"^process_{name} (\S+)$", text, re.MULTILINE)
        for name in ("cpu_seconds_total", "resident_memory_bytes")
    ]
    return (float(found[0][1]), float(found[1][1])) if found[0] and found[1] else None
