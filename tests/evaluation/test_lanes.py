"""Lanes: who is let in, who is refused, who waits, and that nothing stays counted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from fangcheng_evaluation.lanes import Busy, Lane
from fangcheng_evaluation.metrics import Metrics
from tests.matchmaking.world import eventually


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def lane(registry: CollectorRegistry) -> Iterator[Lane]:
    lane = Lane("packed", 1, 100, Metrics(registry, ["baishan_kele"]).lane("packed"))
    yield lane
    lane.close()


class Call:
    """A call that is admitted, or waits to be, until it is told to leave."""

    def __init__(self, lane: Lane, hands: int, *, held_back: bool = True) -> None:
        self.inside = False
        self._leave = asyncio.Event()
        self.task = asyncio.ensure_future(self._run(lane, hands, held_back))

    async def _run(self, lane: Lane, hands: int, held_back: bool) -> None:
        async with lane.admitted(hands, held_back=held_back):
            self.inside = True
            await self._leave.wait()

    async def leave(self) -> None:
        self._leave.set()
        await self.task


def waiting(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("fangcheng_evaluation_waiting_hands", {"lane": "packed"})


async def test_a_call_alone_is_let_in_however_large(
    lane: Lane, registry: CollectorRegistry
) -> None:
    call = Call(lane, 5_000, held_back=False)
    await eventually(lambda: call.inside)
    with pytest.raises(Busy):
        await Call(lane, 1, held_back=False).task
    await call.leave()
    assert waiting(registry) == 0


async def test_who_is_held_back_goes_in_its_turn_and_before_new_calls(
    lane: Lane, registry: CollectorRegistry
) -> None:
    first = Call(lane, 60)
    await eventually(lambda: first.inside)
    large, small = Call(lane, 80), Call(lane, 10)
    await asyncio.sleep(0)
    with pytest.raises(Busy):  # there is room for it, but others came before
        await Call(lane, 1, held_back=False).task
    assert (large.inside, small.inside) == (False, False)
    await first.leave()
    await eventually(lambda: large.inside and small.inside)
    assert waiting(registry) == 90
    await large.leave()
    await small.leave()
    assert waiting(registry) == 0


async def test_who_goes_while_it_is_held_back_makes_way(
    lane: Lane, registry: CollectorRegistry
) -> None:
    first = Call(lane, 60)
    await eventually(lambda: first.inside)
    large, small = Call(lane, 80), Call(lane, 10)
    await asyncio.sleep(0)
    large.task.cancel()
    await eventually(lambda: small.inside)
    assert waiting(registry) == 70
    await first.leave()
    await small.leave()
    assert waiting(registry) == 0


async def test_who_goes_as_it_is_let_in_is_not_counted(
    lane: Lane, registry: CollectorRegistry
) -> None:
    async with lane.admitted(60):
        second, third = Call(lane, 80), Call(lane, 30)
        await asyncio.sleep(0)
    # The loop has not turned: the second is let in, and does not know yet.
    assert waiting(registry) == 80
    assert not second.inside
    second.task.cancel()
    await eventually(lambda: third.inside)
    assert waiting(registry) == 30
    await third.leave()
    assert waiting(registry) == 0
