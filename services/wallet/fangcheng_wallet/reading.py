"""The reads that both storages have a function for, which sees one snapshot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fangcheng_wallet.boards import Boards
from fangcheng_wallet.desk import check_unit
from fangcheng_wallet.ledger import (
    Balance,
    Currency,
    Hold,
    Leaderboard,
    LeaderboardQuery,
    Player,
    Settlement,
    StatementQuery,
    StreamedEntry,
)
from fangcheng_wallet.store import Page, Pulse, Standing


class Reading(ABC):
    """The half of ``store.Store`` that changes nothing."""

    reads: ClassVar[Any]
    """The storage's module of reads: each takes a connection, and what is asked for."""

    def __init__(self, currencies: Mapping[str, Currency]) -> None:
        self._currencies = currencies
        self._boards = Boards()

    @abstractmethod
    async def read(self, function: Any, *wanted: Any) -> Any:
        """Call one of ``reads`` with a connection; its answer. Raises ``WalletUnavailable``."""

    async def settlement(self, key: str) -> Settlement:
        """See ``store.Store``."""
        settlement: Settlement = await self.read(self.reads.settlement, key)
        return settlement

    async def holds(self, hold_ids: Sequence[str]) -> Sequence[Hold]:
        """See ``store.Store``."""
        holds: Sequence[Hold] = await self.read(self.reads.holds, hold_ids)
        return holds

    async def open_holds(self, player_id: str) -> Sequence[Hold]:
        """See ``store.Store``."""
        holds: Sequence[Hold] = await self.read(self.reads.open_holds, player_id)
        return holds

    async def standing(self, player_id: str, at_us: int | None = None) -> Standing:
        """See ``store.Store``."""
        standing: Standing = await self.read(self.reads.standing, player_id, at_us)
        return standing

    async def player(self, player_id: str) -> Player:
        """Whether a player may stake; ``UnknownWallet``."""
        return (await self.standing(player_id)).player

    async def balances(self, player_id: str, at_us: int | None = None) -> Sequence[Balance]:
        """The balances of ``standing``."""
        return (await self.standing(player_id, at_us)).balances

    async def entries(self, query: StatementQuery, before: int | None, limit: int) -> Page:
        """See ``store.Store``."""
        page: Page = await self.read(self.reads.entries, query, before, limit)
        return page

    async def stream(self, after: int, limit: int) -> Sequence[StreamedEntry]:
        """See ``store.Store``."""
        entries: Sequence[StreamedEntry] = await self.read(self.reads.stream, after, limit)
        return entries

    async def leaderboard(self, query: LeaderboardQuery) -> Leaderboard:
        """See ``store.Store``."""
        check_unit(query.currency, query.book, self._currencies, "")
        board: Leaderboard = await self.read(self.reads.leaderboard, query, self._boards)
        return board

    async def pulse(self) -> Pulse:
        """See ``store.Store``."""
        pulse: Pulse = await self.read(self.reads.pulse)
        return pulse
