"""What a storage does by itself: it gives back holds whose time is over, and writes the chain."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from fangcheng_kit.errors import ServiceError
from fangcheng_wallet.ledger import Command, ExpireHold

PAUSE_SECONDS = 0.5
_HOLDS_AT_ONCE = 100
_LINKS_AT_ONCE = 250
"""Few, so that nobody waits for it, and many for one commit."""

_log = logging.getLogger(__name__)


class Kept(Protocol):
    """What the keeper needs of a storage."""

    async def do(self, command: Command[Any]) -> Any:
        """Have a command done."""

    async def due_holds(self, limit: int) -> Sequence[str]:
        """Ids of open holds whose time is over."""

    async def link(self, limit: int) -> int:
        """Add links for operations that have none; how many have theirs now. 0: all have."""


@asynccontextmanager
async def kept(store: Kept, pause_seconds: float = PAUSE_SECONDS) -> AsyncIterator[None]:
    """Tend to a storage now and then, until the block ends. What fails is tried again."""
    ended = asyncio.Event()

    async def keep() -> None:
        while not ended.is_set():
            try:
                await tend(store)
            except Exception:
                # A fault of ours must not end it: holds would never be given back any more.
                _log.exception("the ledger is not tended to now")
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), pause_seconds)

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        # Not cancelled: it may be in the middle of a transaction.
        ended.set()
        await asyncio.wait([keeping])


async def tend(store: Kept) -> None:
    """Do all that is due now."""
    try:
        while hold_ids := await store.due_holds(_HOLDS_AT_ONCE):
            answers = await asyncio.gather(
                *(store.do(ExpireHold(hold_id)) for hold_id in hold_ids), return_exceptions=True
            )
            refused = [answer for answer in answers if isinstance(answer, BaseException)]
            for hold_id, answer in zip(hold_ids, answers, strict=True):
                if isinstance(answer, BaseException):
                    _log.error("the hold %s cannot be given back: %s", hold_id, answer)
            if refused:
                break
        while await store.link(_LINKS_AT_ONCE):
            pass
    except ServiceError as error:
        _log.warning("the ledger is not tended to now: %s", error)
