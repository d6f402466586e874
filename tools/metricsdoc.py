"""Render docs/operations/metrics.md from what the processes register, or check that it is fresh.

    python tools/metricsdoc.py [--check]

Names, types and texts are those of every `metrics.py`; what labels may say is read off the series
that are there from the start, or stands below where a configuration says it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_reflection.v1alpha import reflection
from prometheus_client import CollectorRegistry

from fangcheng_console.metrics import Metrics as ConsoleMetrics
from fangcheng_evaluation.metrics import Metrics as EvaluationMetrics
from fangcheng_kit import health
from fangcheng_kit.contract import Method, methods_of
from fangcheng_kit.limits import CallerLimits
from fangcheng_kit.metrics import (
    CallMetrics,
    CertificateMetrics,
    KeySetMetrics,
    ProcessMetrics,
    new_registry,
)
from fangcheng_kit.settings import Settings
from fangcheng_kit.tokens import SHORTEST_KEY
from fangcheng_matchmaking.metrics import MOST_POOLS
from fangcheng_matchmaking.metrics import Metrics as MatchmakingMetrics
from fangcheng_matchmaking.pools import load_pools
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_table.metrics import TableMetrics
from fangcheng_wallet.currencies import load_currencies
from fangcheng_wallet.metrics import WalletMetrics

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "operations" / "metrics.md"
SERVICES = {
    "evaluation": "Evaluation",
    "matchmaking": "Matchmaking",
    "table": "Tables",
    "wallet": "Wallet",
    "console": "Console",
}
CALLS = {
    "evaluation": ("EvaluationService",),
    "matchmaking": (
        "MatchmakingService",
        "MatchmakingOperationsService",
        "PrivacyService",
        "RoomService",
    ),
    "table": ("TableService", "TableRecordService", "TableOperationsService", "PrivacyService"),
    "wallet": ("WalletService", "SettlementService", "PrivacyService"),
    "console": (),
}

# What a configuration says, or the build; all other labels have the values that are listed.
CERTIFICATES = ("own", "client_ca", "ca")
LABELS = {
    "certificate": "`own`, `client_ca` or `ca`, after the setting that names its file",
    "currency": "a currency of the wallet's file, which has 256 at most",
    "grpc_code": "a status of gRPC, of those that the call has ended with",
    "grpc_method": "a call of the contract",
    "grpc_service": "its service; `unknown`: calls that no service has",
    "grpc_type": "`unary`, `server_stream`, `bidi_stream`; `unknown`",
    "pool": (
        f"one of the first {MOST_POOLS} pools of the file; `other`: all further ones together, "
        "private rooms, and pools that are gone"
    ),
    "rule_set": "a rule set that is installed; with up to 16 of them series stay below 2,000",
    "service": "`evaluation`, `matchmaking`, `table`, `wallet` or `console`",
    "version": "of the service's package, or of the interpreter",
}
INTERPRETER = ("implementation", "major", "minor", "patchlevel")

UNITS = {"_seconds": "s", "_bytes": "bytes", "_fan": "fan", "_points": "units"}

# Of the metrics that the Prometheus client brings, when to look at them.
NOTES = {
    "process_open_fds": "Near `process_max_fds` no connection is taken any more.",
    "process_resident_memory_bytes": "Growing for days: a leak; compare with its limit.",
    "process_cpu_seconds_total": "Its rate: cores in use; near 1, Python is full.",
    "process_start_time_seconds": "A change is a restart: asked for, or a crash.",
}

HEAD = """\
<!-- Generated from the processes' metrics by `make docs`; change them there. -->

# Metrics

Every process of a service serves its own under `http://$FANGCHENG_METRICS_LISTEN/metrics`, those of
`fangcheng up` too; bots and commands serve none. Scrape each replica, none adds up what others have
counted. `deploy/prometheus/` has a configuration, recording rules and alerts, and
[dashboards](dashboards.md) show them.

What ends in `_total` only grows, until the process restarts: look at its `rate()`. A histogram is
`_bucket`, `_sum` and `_count`. Series whose labels are known are there from the start, at 0: where
one is missing, its process is not scraped.

No label names a player, a table, a ticket or a peer, so that series do not grow with them
([measured](../performance.md#series-and-scrapes) with 2,000 tables and 8,000 players). They grow
with what a configuration lists, and with the statuses that calls have ended with. The most is with
256 pools and 256 currencies, which is as many as a file may have, and every status of every call.

"""


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the page."""

    name: str
    type: str
    unit: str
    labels: str
    text: str


def registry_of(service: str, *, widest: bool = False) -> CollectorRegistry:
    """What a process of a service registers as it starts, before it has been called.

    `widest`: with the largest configuration that it takes, and calls that have ended with every
    status that there is; else with the configuration that comes along.
    """
    registry = new_registry()
    ProcessMetrics(registry, service)
    CertificateMetrics(registry).used((kind, 0.0) for kind in CERTIFICATES)
    KeySetMetrics(registry)
    CallerLimits(Settings(dev_key=" " * SHORTEST_KEY), registry)
    calls = CallMetrics(registry)
    for method in (None, *_methods(service)):
        counted = calls.of(method)
        for code in grpc.StatusCode if widest else ():
            counted.end(code, 0.0)
    match service:
        case "console":
            ConsoleMetrics(registry)
        case "evaluation":
            EvaluationMetrics(registry, [rules.id for rules in RULE_SETS])
        case "matchmaking":
            pools = load_pools().pools
            first = next(iter(pools.values()))
            if widest:
                pools = {f"pool-{number}": first for number in range(256)}
            MatchmakingMetrics(registry).measure(pools, lambda pool: (), tuple)
        case "table":
            TableMetrics(registry)
        case "wallet":
            currencies = [currency.id for currency in load_currencies()]
            if widest:
                currencies = [f"currency-{number}" for number in range(256)]
            WalletMetrics(registry, currencies)
    return registry


def _methods(service: str) -> Iterator[Method]:
    for module in sorted((ROOT / "protos" / "fangcheng" / service / "v1").glob("*_pb2.py")):
        importlib.import_module(f"fangcheng.{service}.v1.{module.stem}")
    for name in CALLS[service]:
        yield from methods_of(f"fangcheng.{service}.v1.{name}")
    for name in (health.SERVICE_NAME, reflection.SERVICE_NAME):
        yield from methods_of(name, is_open=True)


def series(registry: CollectorRegistry) -> int:
    """How many series a scrape finds."""
    return sum(len(family.samples) for family in registry.collect())


def metrics_of(registry: CollectorRegistry) -> dict[str, Metric]:
    """The metrics of a registry by name."""
    found = {}
    for family in registry.collect():
        labels = dict.fromkeys(label for one in family.samples for label in one.labels)
        labels.pop("le", None)
        name = family.name + "_total" * (family.type == "counter")
        found[name] = Metric(
            name,
            family.type,
            next((unit for end, unit in UNITS.items() if end in name), ""),
            "; ".join(_label(label, family) for label in labels),
            f"{family.documentation.rstrip('.')}. {NOTES.get(name, '')}".rstrip(),
        )
    return dict(sorted(found.items()))


def _label(label: str, family: Any) -> str:
    if label in LABELS or label in INTERPRETER:
        return f"`{label}`"
    values = dict.fromkeys(sample.labels[label] for sample in family.samples)
    return f"`{label}`: {', '.join(values)}"


def page() -> str:
    """The page."""
    found = {service: metrics_of(registry_of(service)) for service in SERVICES}
    every = set.intersection(*map(set, found.values()))
    rows = [
        (service, series(registry_of(service)), series(registry_of(service, widest=True)))
        for service in SERVICES
    ]
    text = HEAD + "| process | series at its start | most |\n| --- | --- | --- |\n"
    text += "".join(f"| `{service}` | {least:,} | {most:,} |\n" for service, least, most in rows)
    text += "\n| label | what it says |\n| --- | --- |\n"
    text += "".join(f"| `{label}` | {what} |\n" for label, what in LABELS.items())
    first = next(iter(found.values()))
    text += _section("Every process", [first[name] for name in sorted(every)])
    for service, title in SERVICES.items():
        own = [metric for name, metric in found[service].items() if name not in every]
        text += _section(f"{title}: processes of `{service}`", own)
    return text


def _section(title: str, metrics: list[Metric]) -> str:
    head = "| metric | type | unit | labels | what it tells |\n" + "| --- " * 5 + "|\n"
    rows = (
        f"| `{one.name}` | {one.type} | {one.unit} | {one.labels} | {one.text} |\n"
        for one in metrics
    )
    return f"\n## {title}\n\n{head}{''.join(rows)}"


def main(check: bool) -> None:
    """Write the page, or with ``check`` fail where it is not what would be written."""
    text = page()
    if not check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        raise SystemExit(f"{PAGE.relative_to(ROOT)} is not fresh: run `make docs`")


if __name__ == "__main__":
    main(check="--check" in sys.argv[1:])
