"""Background tasks of a service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def running(*loops: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines beside the body of the ``async with``; cancel them and wait at its end.

    One that fails ends the body too, and its exception comes out as an ``ExceptionGroup``: a
    service whose background work has stopped must not look healthy. One that returns is done.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(loop) for loop in loops]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
