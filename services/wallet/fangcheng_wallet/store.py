"""What a storage of the ledger promises. ``sqlite`` keeps it; ``tests/wallet/test_store.py`` holds
every storage to it.

- A verb is done as a whole or not at all, and answered once it is on disk for good. Whoever waits
  may be cancelled or die: the verb is then done all the same, or not at all.
- Verbs take effect one after the other. What waits at the same time is committed together; one
  that is refused is refused alone, with an error of ``errors``, and leaves nothing behind.
- A request id, per verb, and a settlement's key are good for one body, ever. The same again answers
  the first answer with ``replayed``; another body is refused with the fields that differ. A refused
  verb does not use its id up.
- Postings and operations are only ever added. An account's postings count 1, 2, 3, … without a gap,
  each with the balance after it; no balance leaves its bounds at any of them; those of an operation
  add up to zero per currency and book. The database itself refuses anything else.
- Times never go back.
- A read sees everything that was answered before it began, and of every operation all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fangcheng_wallet.audit import Audit
from fangcheng_wallet.ledger import (
    Balance,
    Deposit,
    Done,
    Entry,
    Hold,
    PlaceHolds,
    ReleaseHolds,
    Settle,
    Settlement,
    Withdraw,
)


class Page(NamedTuple):
    """A part of a statement, newest first."""

    entries: Sequence[Entry]
    rest: int | None
    """Give it as ``before`` for the next page; ``None``: there are no more entries."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """The ledger at a glance."""

    imbalance: dict[str, int]
    """Sum of all accounts per currency with accounts; 0 each unless something is very wrong."""
    open_holds: int


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, for who measures. Refused items count among ``items``."""

    items: int
    postings: int
    seconds: float
    failed: bool = False


class Store(Protocol):
    """A ledger on disk. Errors are those of ``errors``; see there and ``core`` for who raises what.

    Every call raises ``WalletUnavailable`` where the database fails. Whether one that changes
    something was done is then unknown, and the same call again finds out.
    """

    async def open_wallet(self, player_id: str) -> bool:
        """Open a wallet; whether this call did, not an earlier one."""

    async def deposit(self, command: Deposit) -> Done[Entry]:
        """See ``core.deposit``."""

    async def withdraw(self, command: Withdraw) -> Done[Entry]:
        """See ``core.withdraw``."""

    async def place_holds(self, command: PlaceHolds) -> Done[tuple[Hold, ...]]:
        """See ``core.place_holds``; the holds in the order of the command."""

    async def release_holds(self, command: ReleaseHolds) -> tuple[Hold, ...]:
        """See ``core.release_holds``; ``remaining`` is what this call gave back."""

    async def settle(self, command: Settle) -> Done[Settlement]:
        """See ``core.settle``."""

    async def settlement(self, key: str) -> Settlement:
        """What was settled under a key; ``UnknownSettlement``."""

    async def balances(self, player_id: str) -> Sequence[Balance]:
        """All of a player's balances, by currency and book; ``UnknownWallet``."""

    async def entries(
        self, player_id: str, currency: str | None, before: int | None, limit: int
    ) -> Page:
        """At most ``limit`` entries of a player, in one currency or all; ``UnknownWallet``.

        What is written meanwhile does not shift the pages that follow.
        """

    async def audit(self) -> Audit:
        """Recompute everything from the postings; a damaged database is a finding, no error."""

    async def pulse(self) -> Pulse:
        """Look at sums and holds."""

    async def close(self) -> None:
        """Finish what waits, and let the database go."""


OnCommit = Callable[[Commit], None]
"""Called from the storage's own thread."""
