"""Running the checks, one after the other: each has the wallet to itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

import grpc.aio

from fangcheng_client import explain

from . import holds, outcomes, races, settling
from .checks import Check
from .trial import Broken, Target, Trial

CHECKS: tuple[Check, ...] = (*holds.CHECKS, *settling.CHECKS, *outcomes.CHECKS, *races.CHECKS)
"""All checks, in the order in which they are run."""

LONGEST_SECONDS = 60.0
"""A check that takes longer has failed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a check."""

    check: Check
    saw: str = ""
    """What was seen instead of what is promised; empty: the promise is kept."""

    @property
    def kept(self) -> bool:
        """Whether the promise is kept."""
        return not self.saw


async def run_checks(target: Target, checks: Sequence[Check] = CHECKS) -> AsyncIterator[Outcome]:
    """Run checks and tell what became of each."""
    for check in checks:
        yield Outcome(check, await _seen(_of(check, target)))


def _of(check: Check, target: Target) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        async with Trial(target).prepared() as trial:
            await check.run(trial)

    return run


async def _seen(run: Callable[[], Awaitable[None]]) -> str:
    """What was wrong; empty: nothing."""
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            await run()
    except Broken as broken:
        return str(broken)
    except grpc.aio.AioRpcError as error:
        return f"a call was refused that should be answered: {explain(error)}"
    except TimeoutError:
        return f"it was not done within {LONGEST_SECONDS:.0f} s"
    except ExceptionGroup as group:
        return "; ".join(
            sorted(
                {
                    str(explain(one)) if isinstance(one, grpc.RpcError) else str(one)
                    for one in group.exceptions
                }
            )
        )
    return ""
