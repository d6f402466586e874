"""Follows the finished hands of all tables: they make skills and losses, and say who goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import grpc.aio

from fangcheng_client import explain

from .admission import Admission, NotAdmitted
from .losses import Calendar
from .matches import Backoff
from .partners import Tables
from .store import FinishedHand, Store

FRESH_MS = 60_000
"""After a hand that has ended longer ago nobody is sent away: he has been, or is gone."""
LOOK_SECONDS = 0.5
"""How often a replica looks whether the hands are its to follow."""


class Hands:
    """The finished hands, for the replica whose task they are."""

    def __init__(
        self,
        store: Store,
        tables: Tables,
        admission: Admission,
        *,
        calendar: Calendar,
        is_mine: Callable[[], bool],
        matter: Callable[[], bool],
        clock_ms: Callable[[], int],
        backoff: Backoff,
        log: Any,
    ) -> None:
        """`is_mine`: this replica follows the hands; `matter`: some pool asks them."""
        self._store = store
        self._tables = tables
        self._admission = admission
        self._calendar = calendar
        self._is_mine = is_mine
        self._matter = matter
        self._clock_ms = clock_ms
        self._backoff = backoff
        self._log = log

    async def follow(self) -> None:
        """Until cancelled; begins at the hand up to which the replica before has come."""
        async with asyncio.TaskGroup() as group:
            while True:
                seconds = LOOK_SECONDS
                try:
                    if self._is_mine() and (self._matter() or self._admission.is_asked):
                        await self._follow(group)
                except grpc.aio.AioRpcError as error:
                    if not explain(error).ended_with_token:
                        self._log.warning("cannot follow finished hands", problem=str(error))
                        seconds = max(seconds, self._backoff.next_seconds())
                except Exception:  # the store; the next round begins at the cursor
                    self._log.exception("cannot follow finished hands")
                    seconds = max(seconds, self._backoff.next_seconds())
                await asyncio.sleep(seconds)

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        async with aclosing(self._tables.finished_hands(await self._store.cursor())) as hands:
            async for hand in hands:
                over = await self._store.note(hand, self._calendar.day(hand.ended_ms))
                if self._clock_ms() - hand.ended_ms < FRESH_MS:
                    for player_id in sorted(over):
                        group.create_task(self._leave(hand, player_id, "LOSS_CAP_REACHED"))
                    if self._admission.is_asked:
                        group.create_task(self._check(hand, await self._people(hand)))
                self._backoff.reset()
                if not self._is_mine():
                    return

    async def _people(self, hand: FinishedHand) -> list[str]:
        """The players of a hand, but for bots: no studio says when they sleep."""
        tickets = await self._store.at_table(hand.table_id)
        bots = {one for ticket in tickets if ticket.is_bot for one in ticket.player_ids}
        return [one for one in hand.player_ids if one not in bots]

    async def _check(self, hand: FinishedHand, player_ids: Sequence[str]) -> None:
        """Whoever the studio does not let go on leaves."""
        for player_id in player_ids:
            try:
                await self._admission.check(
                    player_id, "table", table_id=hand.table_id, labels=hand.labels
                )
            except NotAdmitted as refused:
                await self._leave(hand, player_id, refused.reason)

    async def _leave(self, hand: FinishedHand, player_id: str, reason: str) -> None:
        """A player leaves his table after the hand; if he cannot, the next hand asks again."""
        try:
            await self._tables.leave(hand.table_id, player_id)
        except grpc.aio.AioRpcError as error:
            self._log.warning(
                "cannot leave for a player", table_id=hand.table_id, problem=str(error)
            )
        else:
            self._log.info("a player leaves", table_id=hand.table_id, reason=reason)
