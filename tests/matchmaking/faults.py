"""Faults that a test orders of a partner, and the base of partners who have them.

A partner's next call of a name meets the first fault that was put into ``faults[name]``::

    world.wallet.faults["PlaceHolds"].append(dropped)

=============== ============= ================ =======================================
fault           is it done?   the answer       as when
=============== ============= ================ =======================================
``lost``        no            ``ABORTED``      the network has lost the request
``dropped``     yes           ``ABORTED``      the network has lost the answer
``refused(e)``  no            the error ``e``  the partner says no, or is broken
``Halt``        before or     once the test    either side is slow, or is killed while
                after it      goes on          nobody knows what was done
=============== ============= ================ =======================================

Any other function from what the call would do to its answer is a fault as well.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import Any

from fangcheng_kit.errors import Aborted, ServiceError

Fault = Callable[[Callable[[], Any]], Awaitable[Any]]
"""What happens to a call: given what it would do, does it or not, and answers or not."""


async def lost(do: Callable[[], Any]) -> Any:
    """The call never arrives."""
    raise Aborted("LOST", "the call was lost")


async def dropped(do: Callable[[], Any]) -> Any:
    """The call is done, and its answer lost."""
    do()
    raise Aborted("DROPPED", "the answer was lost")


def refused(error: ServiceError) -> Fault:
    """The call is refused."""

    async def refuse(do: Callable[[], Any]) -> Any:
        raise error

    return refuse


class Halt:
    """A call that stands still, before or after it was done, until the test goes on."""

    def __init__(self, *, done: bool) -> None:
        self._done = done
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, do: Callable[[], Any]) -> Any:
        answer = do() if self._done else None
        self.reached.set()
        await self.go_on.wait()
        return answer if self._done else do()


class Faulty:
    """Counts its calls by name, and has them meet the faults that a test has ordered."""

    def __init__(self) -> None:
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.calls: Counter[str] = Counter()

    async def handle(self, name: str, do: Callable[[], Any]) -> Any:
        self.calls[name] += 1
        if self.faults[name]:
            return await self.faults[name].popleft()(do)
        return do()
