"""What waits at the same time is done in one go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from fangcheng_kit.batching import Batcher, in_thread
from tests.matchmaking.fake_time import FakeTimeLoop


class Work:
    """Doubles numbers, when it is let; odd ones above 100 are refused."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, items: Sequence[int]) -> Sequence[int | Exception]:
        self.batches.append(list(items))
        self.begun.set()
        await self.gate.wait()
        return [
            ValueError(f"{item} is odd") if item > 100 and item % 2 else 2 * item for item in items
        ]


async def test_what_is_submitted_in_one_turn_is_one_batch() -> None:
    work = Work()
    async with Batcher(work) as batcher:
        assert await asyncio.gather(*map(batcher.submit, range(5))) == [0, 2, 4, 6, 8]
    assert work.batches == [[0, 1, 2, 3, 4]]


async def test_a_lone_item_does_not_wait_for_company() -> None:
    work = Work()
    async with Batcher(work) as batcher:
        assert await batcher.submit(1) == 2
        assert await batcher.submit(2) == 4
    assert work.batches == [[1], [2]]


def test_after_a_batch_of_several_the_next_one_waits_for_company() -> None:
    async def wait_for_company() -> None:
        work = Work()
        async with Batcher(work, gap_seconds=0.5) as batcher:
            await asyncio.gather(batcher.submit(1), batcher.submit(2))
            third = asyncio.create_task(batcher.submit(3))
            for _ in range(5):
                await asyncio.sleep(0)
            assert work.batches == [[1, 2]]
            assert await asyncio.gather(third, batcher.submit(4)) == [6, 8]
        assert work.batches == [[1, 2], [3, 4]]

    with asyncio.Runner(loop_factory=FakeTimeLoop) as runner:
        runner.run(wait_for_company())


async def test_where_items_come_one_by_one_none_waits_for_company() -> None:
    work = Work()
    async with asyncio.timeout(30), Batcher(work, gap_seconds=60) as batcher:
        assert [await batcher.submit(item) for item in (1, 2, 3)] == [2, 4, 6]
    assert work.batches == [[1], [2], [3]]


async def test_what_comes_while_a_batch_is_at_work_is_the_next_batch() -> None:
    work = Work()
    work.gate.clear()
    async with Batcher(work) as batcher:
        first = asyncio.create_task(batcher.submit(1))
        await work.begun.wait()
        rest = [asyncio.create_task(batcher.submit(item)) for item in (2, 3)]
        await asyncio.sleep(0)
        assert work.batches == [[1]]
        work.gate.set()
        assert await asyncio.gather(first, *rest) == [2, 4, 6]
    assert work.batches == [[1], [2, 3]]


async def test_batches_may_run_beside_each_other() -> None:
    work = Work()
    work.gate.clear()
    async with Batcher(work, most_running=2) as batcher:
        first = asyncio.create_task(batcher.submit(1))
        await work.begun.wait()
        work.begun.clear()
        second = asyncio.create_task(batcher.submit(2))
        await work.begun.wait()
        work.gate.set()
        assert await asyncio.gather(first, second) == [2, 4]


async def test_a_batch_has_a_largest_size() -> None:
    work = Work()
    async with Batcher(work, most_items=2) as batcher:
        assert await asyncio.gather(*map(batcher.submit, range(5))) == [0, 2, 4, 6, 8]
    assert work.batches == [[0, 1], [2, 3], [4]]


async def test_one_bad_item_fails_alone() -> None:
    async with Batcher(Work()) as batcher:
        good, bad, other = await asyncio.gather(
            *map(batcher.submit, (1, 101, 3)), return_exceptions=True
        )
    assert (good, other) == (2, 6)
    assert isinstance(bad, ValueError)


async def test_work_that_breaks_fails_its_batch_and_no_other() -> None:
    broken = True

    async def work(items: Sequence[int]) -> Sequence[int]:
        if broken:
            raise OSError("disk full")
        return items

    async with Batcher(work) as batcher:
        results = await asyncio.gather(*map(batcher.submit, (1, 2)), return_exceptions=True)
        assert [str(result) for result in results] == ["disk full", "disk full"]
        broken = False
        assert await batcher.submit(3) == 3


async def test_results_that_do_not_match_the_items_are_an_error() -> None:
    async def work(items: Sequence[int]) -> Sequence[int]:
        return items[1:]

    async with Batcher(work) as batcher:
        with pytest.raises(RuntimeError, match="1 items had 0 results"):
            await batcher.submit(1)


@pytest.mark.parametrize("started", [False, True])
async def test_whoever_goes_away_leaves_its_item_to_be_done(started: bool) -> None:
    work = Work()
    work.gate.clear()
    async with Batcher(work) as batcher:
        going = asyncio.create_task(batcher.submit(1))
        staying = asyncio.create_task(batcher.submit(2))
        await asyncio.sleep(0)
        if started:
            await work.begun.wait()
        going.cancel()
        work.gate.set()
        assert await staying == 4
        with pytest.raises(asyncio.CancelledError):
            await going
    assert work.batches == [[1, 2]]


async def test_what_waits_is_spread_over_the_calls_that_may_begin() -> None:
    work = Work()
    work.gate.clear()
    async with Batcher(work, most_running=2, spread=True) as batcher:
        submitted = [asyncio.create_task(batcher.submit(item)) for item in range(5)]
        while len(work.batches) < 2:  # noqa: ASYNC110  # the work tells of its first batch alone
            await asyncio.sleep(0)
        work.gate.set()
        assert await asyncio.gather(*submitted) == [0, 2, 4, 6, 8]
    assert work.batches == [[0, 1, 2], [3, 4]]


async def test_closing_waits_for_what_was_submitted_and_takes_nothing_more() -> None:
    work = Work()
    work.gate.clear()
    batcher = Batcher(work)
    submitted = [asyncio.create_task(batcher.submit(item)) for item in (1, 2)]
    await work.begun.wait()
    submitted.append(asyncio.create_task(batcher.submit(3)))
    await asyncio.sleep(0)
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    assert not closing.done()
    with pytest.raises(RuntimeError, match="closed"):
        await batcher.submit(4)
    work.gate.set()
    await closing
    assert [task.result() for task in submitted] == [2, 4, 6]


async def test_blocking_work_runs_in_a_thread() -> None:
    threads = []

    def work(items: Sequence[int]) -> Sequence[int]:
        threads.append(threading.current_thread())
        return [2 * item for item in items]

    async with Batcher(in_thread(work)) as batcher:
        assert await asyncio.gather(*map(batcher.submit, (1, 2))) == [2, 4]
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()
