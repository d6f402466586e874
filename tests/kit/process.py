"""The echo as a process of its own, for the tests: ``python -m tests.kit.process``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import Field

from fangcheng_kit import Kit, Servicer, Settings, run, running
from tests.kit.echo import SERVICE, Echo, add


class EchoSettings(Settings):
    """The echo's own."""

    breaks: bool = Field(
        default=False, description="Its background task fails once the echo serves."
    )
    slow_start: bool = Field(default=False, description="It takes for ever to open.")
    hangs: bool = Field(default=False, description="It takes for ever to close.")


@asynccontextmanager
async def open_echo(settings: EchoSettings, kit: Kit) -> AsyncIterator[list[Servicer]]:
    """Open the echo as its settings say."""
    echo = Echo()

    async def background() -> None:
        if settings.breaks:
            await echo.entered.wait()
            raise RuntimeError("the background work broke")
        await asyncio.Event().wait()

    if settings.slow_start:
        kit.log.info("opening")
        await asyncio.Event().wait()
    async with running(background()):
        yield [Servicer(add, echo, SERVICE)]
    if settings.hangs:
        await asyncio.Event().wait()


if __name__ == "__main__":
    run("echo", EchoSettings, open_echo)
