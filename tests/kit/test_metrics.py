"""What every process measures of itself."""

from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry

from fangcheng_kit import Running
from fangcheng_kit.metrics import ProcessMetrics
from tests.kit.conftest import Eventually
from tests.matchmaking.fake_time import FakeTimeLoop

LAG = "fangcheng_event_loop_lag_seconds"


def test_a_loop_that_comes_back_late_says_how_late() -> None:
    registry = CollectorRegistry()
    loop = FakeTimeLoop()

    async def blocked() -> None:
        watching = asyncio.create_task(ProcessMetrics(registry, "table").watch_loop())
        await asyncio.sleep(1.05)
        assert registry.get_sample_value(f"{LAG}_bucket", {"le": "0.001"}) == 10
        loop.now += 2.0  # so long nothing else runs
        await asyncio.sleep(0.01)
        watching.cancel()

    loop.run_until_complete(blocked())
    loop.close()
    assert registry.get_sample_value(f"{LAG}_bucket", {"le": "1.0"}) == 10
    assert registry.get_sample_value(f"{LAG}_bucket", {"le": "2.5"}) == 11


async def test_a_process_tells_its_build_and_watches_its_loop(
    running: Running, eventually: Eventually
) -> None:
    registry = running.kit.registry
    (build,) = [family for family in registry.collect() if family.name == "fangcheng_build_info"]
    (sample,) = build.samples
    assert sample.labels["service"] == "echo"
    assert sample.labels["version"]
    await eventually(lambda: (registry.get_sample_value(f"{LAG}_count") or 0) > 0)
