"""What is counted of holds, over every storage."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry

from fangcheng_wallet.ledger import ReleaseHolds
from fangcheng_wallet.metrics import WalletMetrics
from fangcheng_wallet.store import Commit, Pulse, Store
from tests.matchmaking.world import eventually
from tests.wallet.ledgers import OpenStore, deposit, hold_one, open_four


async def test_the_oldest_hold_is_the_one_that_was_placed_first_of_those_that_are_open(
    store: Store,
) -> None:
    await store.deposit(deposit("d", "amy", 1_000))
    assert (await store.pulse()).oldest_hold_us is None
    first = await hold_one(store, "h1", "amy", 100)
    oldest_us = (await store.pulse()).oldest_hold_us
    assert oldest_us is not None
    await hold_one(store, "h2", "amy", 100)
    assert (await store.pulse()).oldest_hold_us == oldest_us
    await store.release_holds(ReleaseHolds((first.hold_id,)))
    later_us = (await store.pulse()).oldest_hold_us
    assert later_us is not None
    assert later_us > oldest_us


def test_the_age_of_the_oldest_hold_goes_on_between_two_looks_and_is_0_without_one() -> None:
    registry = CollectorRegistry()
    metrics = WalletMetrics(registry, ["silver"])
    name = "fangcheng_wallet_oldest_hold_age_seconds"
    assert registry.get_sample_value(name) == 0
    metrics.saw(Pulse({"silver": 0}, open_holds=1, oldest_hold_us=1_000_000))
    first = registry.get_sample_value(name)
    second = registry.get_sample_value(name)
    assert first is not None
    assert second is not None
    assert 1e9 < first <= second
    metrics.saw(Pulse({"silver": 0}, open_holds=0))
    assert registry.get_sample_value(name) == 0


async def test_a_hold_that_runs_out_is_counted_once(open_store: OpenStore, tmp_path: Path) -> None:
    commits: list[Commit] = []
    now_us = [1_000_000_000]
    async with open_store(tmp_path, clock=lambda: now_us[0], on_commit=commits.append) as store:
        await open_four(store)
        await store.deposit(deposit("d", "amy", 1_000))
        hold, other = await hold_one(store, "h1", "amy", 100), await hold_one(store, "h2", "amy", 1)
        await store.release_holds(ReleaseHolds((other.hold_id,)))
        assert hold.expires_at_us is not None
        now_us[0] = hold.expires_at_us + 1
        await eventually(lambda: any(commit.expired for commit in commits))
        assert (await store.pulse()).open_holds == 0
    assert sum(commit.expired for commit in commits) == 1
    registry = CollectorRegistry()
    metrics = WalletMetrics(registry, ["silver"])
    for commit in commits:
        metrics.committed(commit)
    assert registry.get_sample_value("fangcheng_wallet_expired_holds_total") == 1
