"""Erasing a player, and exporting all that is kept of him: the same for every storage.

First the operations in which something is to be erased are masked, some at a time; then the erasure
itself is done under its id. After a crash in between, the same again masks what is left.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import msgspec

from fangcheng_kit.privacy import Erasure, line
from fangcheng_wallet.errors import HasHolds
from fangcheng_wallet.ledger import Done, Erase, Hold, Mask, StatementQuery
from fangcheng_wallet.reading import Reading
from fangcheng_wallet.verbs import Verbs

_AT_ONCE = 500


class Erasing(Verbs, Reading):
    """The part of ``store.Store`` about personal data."""

    @abstractmethod
    async def link(self, limit: int) -> int:
        """See ``keeper.Kept``."""

    @abstractmethod
    async def wipe(self) -> None:
        """Leave nothing on disk of what was changed, as far as the storage can."""

    async def erase(self, erasure: Erasure) -> Done[int]:
        """See ``store.Store``."""
        command = Erase(
            erasure.request_id,
            erasure.player_id,
            erasure.labels_digest,
            erasure.keep_texts,
            erasure.reason,
        )
        changed = 0
        was_erased = await self.read(self.reads.was_erased, erasure.request_id)
        if not was_erased:
            if held := await self.open_holds(erasure.player_id):
                raise HasHolds([hold.hold_id for hold in held])
            changed = await self._mask(erasure)
        done = await self.do(command)
        await self.wipe()
        return Done(changed, done.replayed)

    async def _mask(self, erasure: Erasure) -> int:
        horizon, _ = await self.read(self.reads.last_operation)
        while await self.link(_AT_ONCE) == _AT_ONCE:  # what is masked must be in the chain
            pass
        changed = after = 0
        while numbers := await self.read(
            self.reads.saying, erasure.player_id, after, horizon, _AT_ONCE
        ):
            changed += (await self.do(Mask(tuple(numbers), erasure))).answer
            after = numbers[-1]
        return changed

    async def lines(self, player_id: str) -> AsyncIterator[str]:
        """See ``store.Store``."""
        player, balances = await self.standing(player_id)
        told = asdict(player)
        yield line("wallet", **_timed(told, "time_us", "changed"))
        for balance in balances:
            yield line("balance", **asdict(balance))
        after = 0
        holds: Sequence[tuple[int, Hold]]
        while holds := await self.read(self.reads.all_holds, player_id, after, _AT_ONCE):
            after = holds[-1][0]
            for _, hold in holds:
                told = _timed(msgspec.to_builtins(hold), "expires_at_us", "expires")
                told.pop("player_id")
                yield line("hold", **told)
        before: int | None = None
        while True:
            page = await self.entries(StatementQuery(player_id), before, _AT_ONCE)
            for entry in page.entries:
                yield line("entry", **_timed(asdict(entry), "time_us", "time"))
            before = page.rest
            if before is None:
                break
        if page.archived_us is not None:
            yield line("archived", before=_time(page.archived_us))
        async for one in self._notes(player_id):
            yield one

    async def _notes(self, player_id: str) -> AsyncIterator[str]:
        after = 0
        while rows := await self.read(self.reads.notes, player_id, after, _AT_ONCE):
            after = rows[-1][0]
            for _, verb, time_us, body in rows:
                told = {"time": _time(time_us), **msgspec.json.decode(body)}
                told.pop("player_id")
                told.pop("erase_labels", None)
                yield line("erasure" if verb == "erase" else verb, **told)


def _time(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1_000_000, UTC).isoformat()


def _timed(told: dict[str, Any], field: str, name: str) -> dict[str, Any]:
    """Fields of a line, a time of them for people to read."""
    time_us = told.pop(field)
    return {**told, name: None if time_us is None else _time(time_us)}
