"""Feeds: a picture is made once for all who look, and nothing waits for who reads slowly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request

from fangcheng_console import hub
from fangcheng_console.hub import Feed, Feeds
from tests.table.world import until


class Viewer:
    """Reads a feed's stream as a web server does for a browser."""

    def __init__(self) -> None:
        self.pictures: list[dict[str, Any]] = []
        self.reads = asyncio.Event()
        """Cleared: the network takes nothing more."""
        self.reads.set()
        self.left = asyncio.Event()
        self.done = False
        self._news = asyncio.Condition()

    async def look(self, feed: Feed) -> None:
        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        await feed.stream(Request(scope))(scope, self._receive, self._send)
        self.done = True

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self._news, asyncio.timeout(60):
            await self._news.wait_for(condition)

    async def _receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        body = message.get("body", b"").decode()
        if body:
            number, data, *rest = body.split("\n")
            assert rest == ["", ""]
            picture = json.loads(data.removeprefix("data: "))
            assert number == f"id: {picture['version']}"
            await self.reads.wait()
            self.pictures.append(picture)
        async with self._news:
            self._news.notify_all()


@asynccontextmanager
async def looking(feed: Feed, how_many: int = 1) -> AsyncIterator[list[Viewer]]:
    viewers = [Viewer() for _ in range(how_many)]
    tasks = [asyncio.create_task(viewer.look(feed)) for viewer in viewers]
    await until(lambda: feed.viewers >= how_many)
    try:
        yield viewers
    finally:
        for viewer in viewers:
            viewer.left.set()
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks)


async def test_a_viewer_is_sent_what_is_there_and_then_what_changes():
    feed = Feed(gather_seconds=0)
    feed.publish(lambda: {"n": 1})
    async with looking(feed) as (viewer,):
        await viewer.until(lambda: viewer.pictures == [{"version": 1, "n": 1}])
        feed.publish(lambda: {"n": 2})
        await viewer.until(lambda: len(viewer.pictures) == 2)
        assert viewer.pictures[1] == {"version": 2, "n": 2}


async def test_what_changes_quickly_is_gathered_and_the_last_of_it_is_sent():
    feed = Feed(gather_seconds=0.05)
    async with looking(feed) as (viewer,):
        for n in range(1, 501):
            feed.publish(lambda n=n: {"n": n})
            if n % 50 == 0:
                await asyncio.sleep(0)
        await viewer.until(lambda: viewer.pictures[-1:] != [] and viewer.pictures[-1]["n"] == 500)
        assert len(viewer.pictures) < 50


async def test_a_picture_is_made_once_for_fifty_viewers_and_for_nobody_not_at_all():
    made = []
    feed = Feed(gather_seconds=0)

    def make() -> dict[str, Any]:
        made.append(1)
        return {"n": len(made)}

    feed.publish(make)
    await asyncio.sleep(0.01)
    assert not made
    async with looking(feed, 50) as viewers:
        await asyncio.gather(*(viewer.until(lambda v=viewer: v.pictures) for viewer in viewers))
        before = feed.version
        feed.publish(make)
        await asyncio.gather(
            *(
                viewer.until(lambda v=viewer: v.pictures[-1]["version"] > before)
                for viewer in viewers
            )
        )
        assert len({json.dumps(viewer.pictures[-1]) for viewer in viewers}) == 1
        assert len(made) == feed.version


async def test_who_reads_slowly_keeps_nobody_waiting_and_gets_the_newest():
    feed = Feed(gather_seconds=0)
    feed.publish(lambda: {"n": 0})
    async with looking(feed, 2) as (slow, quick):
        await slow.until(lambda: bool(slow.pictures))
        slow.reads.clear()
        for n in range(1, 30):
            feed.publish(lambda n=n: {"n": n})
            await quick.until(lambda n=n: quick.pictures and quick.pictures[-1]["n"] == n)
        slow.reads.set()
        await slow.until(lambda: slow.pictures[-1]["n"] == 29)
        assert len(slow.pictures) <= 4
        assert len(quick.pictures) >= 30


async def test_who_takes_nothing_any_more_has_gone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub, "SLOWEST_SECONDS", 0.1)
    feed, viewer = Feed(gather_seconds=0), Viewer()
    feed.publish(lambda: {"n": 1})
    viewer.reads.clear()
    async with asyncio.timeout(60):
        await viewer.look(feed)  # it is no fault of ours
    assert feed.viewers == 0
    assert viewer.pictures == []


async def test_a_newcomer_is_sent_a_picture_made_anew():
    times = iter(range(100))
    feed = Feed(gather_seconds=0)
    feed.publish(lambda: {"time": next(times)})
    async with looking(feed) as (first,):
        await first.until(lambda: bool(first.pictures))
        async with looking(feed) as (second,):
            await second.until(lambda: bool(second.pictures))
            assert second.pictures[0]["time"] > first.pictures[0]["time"]


async def test_the_source_runs_while_somebody_looks_and_a_little_longer():
    begun, ended = [], []

    async def source(feed: Feed) -> None:
        begun.append(1)
        feed.publish(lambda: {"n": 1})
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    feeds = Feeds()
    async with feeds.running(asyncio.Event()):
        feed = feeds.get("t1", source, linger_seconds=0.02)
        assert feeds.get("t1", source) is feed
        for _ in range(3):  # a page that is opened again at once finds it running
            async with looking(feed) as (viewer,):
                await viewer.until(lambda v=viewer: v.pictures)
        assert begun == [1]
        await until(lambda: ended == [1])
        assert len(feeds) == 0
        async with looking(feeds.get("t1", source)) as (viewer,):
            await viewer.until(lambda: bool(viewer.pictures))
        assert begun == [1, 1]
    await until(lambda: ended == [1, 1])


async def test_a_feed_that_has_ended_forgets_none_but_itself():
    feeds = Feeds()

    async def source(feed: Feed) -> None:
        feed.publish(lambda: {"n": 1})
        await asyncio.Event().wait()

    async with feeds.running(asyncio.Event()):
        old = feeds.get("t1", source, linger_seconds=0.01)
        async with looking(old) as (viewer,):
            await viewer.until(lambda: bool(viewer.pictures))
            old.end()
            new = feeds.get("t1", source)
            assert new is not old
        # One that is looked at by nobody from now on goes after it.
        feeds.get("t2", source, linger_seconds=0.02)
        await until(lambda: len(feeds) < 2)
        assert feeds.get("t1", source) is new


async def test_a_feed_that_is_looked_at_again_after_its_end_goes_on():
    ended, passed = [], []

    async def source(feed: Feed) -> None:
        feed.publish(lambda: {"n": 1})
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    feed = Feed(source, linger_seconds=0.05)
    async with looking(feed) as (viewer,):
        await viewer.until(lambda: bool(viewer.pictures))
    feed.end()
    await until(lambda: ended == [1])
    async with looking(feed) as (viewer,):
        await viewer.until(lambda: bool(viewer.pictures))
        # Until one is over that was begun later than the first viewer's.
        Feed(linger_seconds=0.05, on_idle=lambda: passed.append(1)).linger()
        await until(lambda: passed == [1])
        assert ended == [1]
    feed.end()


async def test_a_feed_that_nobody_comes_to_is_forgotten():
    async def source(feed: Feed) -> None:
        raise AssertionError("nobody looks")

    feeds = Feeds()
    feeds.get("t1", source, linger_seconds=0.01)
    await until(lambda: len(feeds) == 0)


@pytest.mark.parametrize("fails", [True, False])
async def test_streams_end_with_what_they_show(fails: bool):
    feeds = Feeds()
    broken = asyncio.Event()

    async def source(feed: Feed) -> None:
        feed.publish(lambda: {"n": 1})
        await broken.wait()
        raise RuntimeError("the table is not to be read")

    viewer = Viewer()
    async with feeds.running(asyncio.Event()):
        task = asyncio.create_task(viewer.look(feeds.get("t1", source)))
        await viewer.until(lambda: bool(viewer.pictures))
        if fails:
            broken.set()
            async with asyncio.timeout(60):
                await task
    async with asyncio.timeout(60):
        await task
    assert viewer.done
