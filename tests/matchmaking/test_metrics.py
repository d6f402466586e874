"""Pools that are measured by name, and those that are measured together."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry

from fangcheng_matchmaking.core import Offer
from fangcheng_matchmaking.metrics import MOST_POOLS, Metrics

from .test_matching import POOL, queue_of, ticket


def offers(count: int, first: int = 0) -> dict[str, Offer]:
    return {
        f"pool-{number}": Offer(
            pool=replace(POOL, pool_id=f"pool-{number}", fill_with_bots_after_ms=number * 1_000)
        )
        for number in range(first, first + count)
    }


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"fangcheng_matchmaking_{name}", labels)


def pools(registry: CollectorRegistry) -> set[str]:
    samples = [one for family in registry.collect() for one in family.samples]
    return {sample.labels["pool"] for sample in samples if "pool" in sample.labels}


def test_pools_beyond_the_most_are_measured_together() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    queue = queue_of(ticket(1), ticket(2))
    beyond, last = f"pool-{MOST_POOLS + 1}", f"pool-{MOST_POOLS + 2}"
    metrics.measure(offers(MOST_POOLS + 3), lambda pool: [queue], lambda: {"pool-0", beyond})
    assert pools(registry) == {f"pool-{number}" for number in range(MOST_POOLS)} | {"other"}
    assert value(registry, "waiting_tickets", pool="pool-0", kind="player") == 2
    assert value(registry, "waiting_tickets", pool="other", kind="player") == 6
    assert value(registry, "paused", pool="pool-0") == value(registry, "paused", pool="other") == 1
    assert value(registry, "fill_after_seconds", pool="other") == MOST_POOLS + 2
    metrics.returned("pool-3")
    metrics.returned(last)
    metrics.returned("nobody-knows-it")
    assert value(registry, "matches_total", pool="pool-3", outcome="returned") == 1
    assert value(registry, "matches_total", pool="other", outcome="returned") == 2


def test_a_pool_that_is_gone_leaves_no_series_however_often_pools_change() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.measure(offers(2), lambda pool: (), tuple)
    metrics.seated("pool-0", [1.0], filled=True)
    before = sum(len(family.samples) for family in registry.collect())
    for first in range(1, 100):
        metrics.measure(offers(2, first), lambda pool: (), tuple)
    assert pools(registry) == {"pool-99", "pool-100", "other"}
    assert sum(len(family.samples) for family in registry.collect()) == before
    metrics.seated("pool-0", [1.0], filled=False)
    assert value(registry, "matches_total", pool="other", outcome="seated") == 1


def test_a_ticket_that_fails_for_a_reason_of_no_list_adds_no_series() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.failed("anything", "PLAYER_FROZEN")
    metrics.failed("anything", "WHAT_A_STUDIO_INVENTS")
    assert value(registry, "failed_tickets_total", pool="other", reason="PLAYER_FROZEN") == 1
    assert value(registry, "failed_tickets_total", pool="other", reason="OTHER") == 1
