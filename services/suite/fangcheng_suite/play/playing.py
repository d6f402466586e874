"""`fangcheng play`: opens the way to a table, and shows the game until the player has enough."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack

from fangcheng_rules.ruleset import RuleSet
from fangcheng_suite.access import Access
from fangcheng_suite.pools import practice_pool

from .app import PlayApp
from .places import LocalWay, embedded, open_wallet, player_id_of
from .session import Way
from .tongue import Tongue


async def play_embedded(
    rules: RuleSet, name: str, strength: str, think_seconds: float, say: Tongue
) -> None:
    """Play against three bots in a suite of its own. Raises SuiteError."""
    async with AsyncExitStack() as stack:

        async def open_way(tell: Callable[[str, str], None]) -> Way:
            tell("启动服务，几秒钟…", "Starting the services, a few seconds…")
            access = await stack.enter_async_context(embedded(rules, strength, think_seconds))
            player = player_id_of(name)
            await open_wallet(access, player)
            return LocalWay(access, player)

        await _show(PlayApp(open_way, practice_pool(rules), say, name=name, keeps=False))
        print(say("正在停止服务…", "Stopping the services…"), flush=True)


async def play_here(access: Access, pool_id: str, name: str, say: Tongue) -> None:
    """Play in the suite that runs. Raises SuiteError."""

    async def open_way(tell: Callable[[str, str], None]) -> Way:
        player = player_id_of(name)
        await open_wallet(access, player)
        return LocalWay(access, player)

    await _show(PlayApp(open_way, pool_id, say, name=name))


async def play_elsewhere(way: Way, pool_id: str, name: str, say: Tongue) -> None:
    """Play at services elsewhere, as whom the token says. Raises SuiteError."""

    async def open_way(tell: Callable[[str, str], None]) -> Way:
        return way

    await _show(PlayApp(open_way, pool_id, say, name=name))


async def _show(app: PlayApp) -> None:
    task = asyncio.current_task()
    if task is not None:
        # The window was closed: what was started for the game ends with it.
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, task.cancel)
    try:
        await app.run_async()
    finally:
        await app.ended()
