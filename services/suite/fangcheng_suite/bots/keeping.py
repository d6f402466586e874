"""`fangcheng bots`: bots on standby in a studio's pools, until they are told to stop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import grpc.aio

from fangcheng.matchmaking.v1 import matchmaking_pb2
from fangcheng_suite.access import Access
from fangcheng_suite.errors import SuiteError, from_call

from .crowd import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Report, bot_name
from .house import House, pools_with_bots
from .player import Bot, attempts, is_lost

LEAVE_AGAIN_SECONDS = 1.0
"""A bot that was about to be seated when it left the queue leaves its table then."""


async def keep_bots(
    access: Access,
    pool_ids: Sequence[str],
    count: int,
    *,
    prefix: str,
    strength: str,
    turn_seconds: float,
    report: Report,
) -> None:
    """Keep `count` bots in each pool until cancelled; then each leaves the queue, or its table when
    the hand in play has ended, and what it has goes back to the house.

    A matchmaking service that does not answer yet is asked again. Raises SuiteError, AioRpcError
    where a pool cannot have them.
    """
    pools = await _pools(access, pool_ids, report)
    house, stop = House(access), asyncio.Event()
    tasks = []
    for pool_id, pool in pools.items():
        for number in range(count):
            bot = Bot(
                f"{prefix}-{pool_id}-{number + 1}",
                access,
                bot_name(number),
                strength=strength,
                turn_seconds=turn_seconds,
                chance=random.Random(),  # noqa: S311 # nosec B311 # no secret
            )
            tasks.append(asyncio.create_task(keep_bot(bot, pool, house, stop, report)))
    report(f"{count} bots wait in each of: {', '.join(pools)}")
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError:
        report("the bots play their hands to an end and leave; told again, they end at once")
        stop.set()
        await asyncio.wait(tasks)
        report("the bots have left")
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pools(
    access: Access, pool_ids: Sequence[str], report: Report
) -> dict[str, matchmaking_pb2.Pool]:
    async for _ in attempts():
        try:
            return await pools_with_bots(access, pool_ids)
        except grpc.aio.AioRpcError as error:
            if not is_lost(error):
                raise
            report(from_call(error, "asking for the pools").message)
    raise AssertionError("attempts end only by an answer")


async def keep_bot(
    bot: Bot, pool: matchmaking_pb2.Pool, house: House, stop: asyncio.Event, report: Report
) -> None:
    """One table after the other with the house's money, until told to stop; what goes wrong is told
    and tried again.
    """
    stopped = asyncio.create_task(stop.wait())
    pause_seconds = FIRST_PAUSE_SECONDS
    try:
        while not stop.is_set():
            try:
                await house.fund(bot.player_id, pool)
                await _play(bot, pool.pool_id, stopped)
            except (grpc.aio.AioRpcError, SuiteError) as error:
                _tell(bot, error, report)
                await asyncio.wait([stopped], timeout=pause_seconds)
                pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
            else:
                pause_seconds = FIRST_PAUSE_SECONDS
            await _give_back(bot, house, report)
    finally:
        stopped.cancel()


async def _play(bot: Bot, pool_id: str, stopped: asyncio.Task[bool]) -> None:
    playing = asyncio.create_task(bot.play(pool_id, standby=True))
    try:
        await asyncio.wait([playing, stopped], return_when=asyncio.FIRST_COMPLETED)
        while not playing.done():
            await bot.leave()
            await asyncio.wait([playing], timeout=LEAVE_AGAIN_SECONDS)
        await playing
    finally:
        playing.cancel()


async def _give_back(bot: Bot, house: House, report: Report) -> None:
    try:
        held = await house.give_back(bot.player_id)
    except grpc.aio.AioRpcError as error:
        _tell(bot, error, report)
        return
    if held:
        report(f"{bot.player_id}: {held} is still held by a table, and goes back the next time")


def _tell(bot: Bot, error: grpc.aio.AioRpcError | SuiteError, report: Report) -> None:
    known = error if isinstance(error, SuiteError) else from_call(error, bot.player_id)
    report(known.message)
