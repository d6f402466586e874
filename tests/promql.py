"""Queries of dashboards and rules, and the series that our processes have for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import promql_parser
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from fangcheng_console.metrics import Metrics as ConsoleMetrics
from fangcheng_evaluation.metrics import Metrics as EvaluationMetrics
from fangcheng_kit.metrics import (
    CallMetrics,
    CertificateMetrics,
    KeySetMetrics,
    ProcessMetrics,
    new_registry,
)
from fangcheng_matchmaking.metrics import Metrics as MatchmakingMetrics
from fangcheng_table.metrics import TableMetrics
from fangcheng_wallet.metrics import WalletMetrics

RULES = Path(__file__).parents[1] / "deploy" / "prometheus" / "rules"

TARGET = frozenset({"job", "instance"})
"""Labels that Prometheus gives every series."""

OF_PROMETHEUS = {
    **dict.fromkeys(("up", "scrape_duration_seconds", "scrape_samples_scraped"), TARGET),
    "ALERTS": frozenset({"alertname", "alertstate", "severity"}),
}
"""Series that Prometheus adds to what processes tell, with their labels."""

_SAMPLES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}


@dataclass(frozen=True, slots=True)
class Selector:
    """Series that a query asks for: a metric, and the labels that it must have."""

    metric: str
    labels: frozenset[str]
    text: str


def selectors(query: str) -> list[Selector]:
    """All that a query asks for. Raises ``ValueError`` where it is no PromQL."""
    found: list[Selector] = []

    def visit(expr: promql_parser.Expr) -> None:
        if isinstance(expr, promql_parser.MatrixSelector):
            expr = expr.vector_selector
        if isinstance(expr, promql_parser.VectorSelector):
            matchers = expr.matchers.matchers
            found.append(Selector(expr.name or "", frozenset(m.name for m in matchers), str(expr)))

    promql_parser.walk(promql_parser.parse(query), visit)
    return found


def grouped_by(query: str) -> set[str]:
    """The labels by which a query sums up, joins or relabels."""
    clauses = re.findall(r"\b(?:by|on|group_left|group_right)\s*\(([^)]*)\)", query)
    return {label.strip() for clause in clauses for label in clause.split(",") if label.strip()}


def named_by(query: str) -> set[str]:
    """The labels that a query makes itself."""
    return set(re.findall(r'"(\w+)", "[^"]*", "", ""\)', query))


def registered() -> dict[str, frozenset[str]]:
    """The labels of every series that our processes may have, by its name."""
    registry = new_registry()
    CallMetrics(registry)
    CertificateMetrics(registry).used([("own", 0.0)])
    KeySetMetrics(registry)
    ProcessMetrics(registry, "table")
    ConsoleMetrics(registry)
    EvaluationMetrics(registry, ["riverside"])
    MatchmakingMetrics(registry)
    TableMetrics(registry)
    WalletMetrics(registry, ["silver"])
    return {**OF_PROMETHEUS, **dict(_series(registry))}


def recorded() -> set[str]:
    """The names of the series that recording rules make."""
    groups = yaml.safe_load((RULES / "recording.yml").read_text("utf-8"))["groups"]
    return {rule["record"] for group in groups for rule in group["rules"]}


def _series(registry: CollectorRegistry) -> Iterator[tuple[str, frozenset[str]]]:
    for family in registry.collect():  # those without labels of their own tell their samples
        for sample in family.samples:
            yield sample.name, frozenset(sample.labels) | TARGET
    for collector in set(registry._collector_to_names):
        if isinstance(collector, MetricWrapperBase):
            labels = frozenset(collector._labelnames) | TARGET
            for suffix in _SAMPLES[collector._type]:
                extra = {"le"} if suffix == "_bucket" else set()
                yield collector._name + suffix, labels | extra


def with_values(query: str, values: Mapping[str, str]) -> str:
    """The query with its variables replaced, as Grafana does: ``$name`` or ``${name}``."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: values[found[1] or found[2]], query)
