"""Which tables this process plays: its lease, and what it takes over from others.

Every half second or so it looks how the tables are spread. What nobody owns it claims up to its
fair share; what is still there the next time it claims whatever its share, since those who should
have may lack the tables' rule set. What it owns and does not play, since the answer was lost when
it made or claimed the table, it plays from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from fangcheng_rules.rulesets import known

from .metrics import TableMetrics
from .store import Claim, Journal, JournalError, Owner

_LOOKS_A_LEASE = 6
_LOOKS_A_RENEWAL = 2


class Ownership:
    """A process's part in playing the tables of a journal."""

    def __init__(
        self,
        journal: Journal,
        owner: Owner,
        lease_ms: int,
        take: Callable[[Claim], object],
        keep_only: Callable[[Collection[Claim]], None],
        playing: Callable[[], int],
        metrics: TableMetrics,
        log: Any,
    ) -> None:
        """`take`: play this table from now on; nothing, where it is played already. `keep_only`:
        these are ours; let go of all others. `playing`: how many are played.

        `lease_ms`: how long others wait for a process that says nothing.
        """
        self.owner = owner
        self._journal = journal
        self._lease_ms = lease_ms
        self._plays = [(rules.id, rules.revision) for rules in known()]
        self._take = take
        self._keep_only = keep_only
        self._playing = playing
        self._metrics = metrics
        self._log = log
        self._left_over = False
        self._retiring = False
        self._failing = False
        self._begun = False

    @property
    def retiring(self) -> bool:
        """This process takes no tables any more."""
        return self._retiring

    async def begin(self) -> None:
        """Take part, and take over what nobody owns."""
        await self._journal.join(self.owner, self._lease_ms)
        await self._claim_share()
        self._begun = True

    async def keep(self) -> None:
        """Renew the lease and claim what is free, until cancelled."""
        looks = 0
        while True:
            await asyncio.sleep(self._lease_ms / _LOOKS_A_LEASE / 1_000)
            looks += 1
            try:
                if looks % _LOOKS_A_RENEWAL == 0:
                    await self._renew()
                if not self._retiring:
                    await self._claim_share()
                self._failing = False
            except JournalError as error:
                if not self._failing:
                    self._log.warning("the lease is not renewed now", problem=str(error))
                self._failing = True

    def retire(self) -> None:
        """Take no tables any more; the lease goes on for those that are here."""
        self._retiring = True

    async def leave(self) -> None:
        """End the lease."""
        try:
            await self._journal.leave(self.owner.owner_id)
        except JournalError as error:  # then it runs out by itself
            self._log.warning("the lease could not be given back", problem=str(error))

    async def claim(self, table_id: str) -> Claim | None:
        """One table, if nobody owns it and this process can play it."""
        if self._retiring:
            return None
        claims = await self._claim(1, table_id)
        return claims[0] if claims else None

    async def others(self) -> list[Owner]:
        """The other processes that play tables, those of the newest version first."""
        others = [one for one in await self._journal.owners() if one != self.owner]
        return sorted(others, key=lambda one: one.release, reverse=True)

    async def _claim(self, limit: int, table_id: str = "") -> list[Claim]:
        claims = await self._journal.claim(self.owner.owner_id, self._plays, limit, table_id)
        if not self._begun:
            # What it finds may have been left by a process that stopped as it should.
            return [replace(claim, abandoned=False) for claim in claims]
        self._metrics.taken_over.inc(sum(claim.abandoned for claim in claims))
        return claims

    async def _renew(self) -> None:
        if await self._journal.renew(self.owner.owner_id, self._lease_ms):
            return
        self._log.warning("the lease had run out", lease_ms=self._lease_ms)
        self._keep_only(await self._journal.held(self.owner.owner_id))

    async def _claim_share(self) -> None:
        census = await self._journal.census()
        self._metrics.unowned.set(census.unowned)
        mine = census.owners.get(self.owner.owner_id, 0)
        if mine > self._playing():
            for claim in await self._journal.held(self.owner.owner_id):
                self._take(claim)
        if not census.unowned or not census.owners:
            self._left_over = False
            return
        all_tables = sum(census.owners.values()) + census.unowned
        share = -(-all_tables // len(census.owners))
        limit = census.unowned if self._left_over else min(census.unowned, share - mine)
        self._left_over = True
        if limit <= 0:
            return
        claims = await self._claim(limit)
        for claim in claims:
            self._take(claim)
        if claims:
            self._log.info("tables taken over", tables=len(claims))
