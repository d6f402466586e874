"""What a storage of the ledger promises. ``sqlite`` and ``postgres`` keep it;
``tests/wallet/test_store*.py`` hold every storage to it.

- A verb is done as a whole or not at all, and answered once it is on disk for good. Whoever waits
  may be cancelled or die: the verb is then done all the same, or not at all.
- Verbs take effect one after the other. What waits at the same time is committed together; one
  that is refused is refused alone, with an error of ``errors``, and leaves nothing behind.
- A request id, per verb, and a settlement's key are good for one body, ever. The same again answers
  the first answer with ``replayed``; another body is refused with the fields that differ. A refused
  verb does not use its id up: what is wrong with the request itself is refused the same way for
  ever, whatever else is refused may pass later.
- Postings and operations are only ever added; of those that are masked (see ``masks``) texts and
  labels go, and nothing else. An account's postings count 1, 2, 3, … without a gap, each with the
  balance after it; no balance leaves its bounds at any of them; those of an operation add up to
  zero per currency and book. The database itself refuses anything else.
- Times never go back.
- A hold whose time is over is given back by the storage itself, within about a second.
- A read sees everything that was answered before it began, and of every operation all or nothing.
- The chain of hashes follows the ledger at a distance of about a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fangcheng_kit.privacy import Erasure
from fangcheng_wallet.audit import Audit
from fangcheng_wallet.ledger import (
    Balance,
    Collect,
    Collected,
    Deposit,
    Done,
    Entry,
    ExtendHolds,
    Freeze,
    HandOver,
    Hold,
    Leaderboard,
    LeaderboardQuery,
    PlaceHolds,
    Player,
    ReleaseHolds,
    Reversal,
    Reverse,
    Settle,
    Settlement,
    StatementQuery,
    StreamedEntry,
    TopUpHold,
    Withdraw,
)


class Standing(NamedTuple):
    """How a player stands, as of one moment."""

    player: Player
    """As he is now, whenever the balances are of."""
    balances: Sequence[Balance]
    """By currency and book."""


class Page(NamedTuple):
    """A part of a statement, newest first."""

    entries: Sequence[Entry]
    rest: int | None
    """Give it as ``before`` for the next page; ``None``: there are no more entries."""
    archived_us: int | None = None
    """On the last page: what was written before this time is archived; ``None``: it is all here."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """The ledger at a glance."""

    imbalance: dict[str, int]
    """Sum of all accounts per currency with accounts; 0 each unless something is very wrong."""
    open_holds: int
    unchained: int = 0
    """Operations that the chain of hashes has not reached yet."""
    oldest_hold_us: int | None = None
    """When the oldest of the open holds was placed; ``None``: there is none."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, for who measures. Refused items count among ``items``."""

    items: int
    postings: int
    seconds: float
    failed: bool = False
    expired: int = 0
    """Holds that it gave back since their time was over."""


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What the chain of hashes says of the ledger; nothing is wrong when ``finding`` is empty."""

    operations: int
    """Operations that were compared with their links."""
    postings: int
    head: str
    """The last link, in hex; whoever keeps it elsewhere can tell if all of it was rewritten."""
    unchained: int
    """Operations that have no link yet."""
    finding: str = ""
    """The first thing that is wrong, in a sentence."""
    posting: int | None = None
    """Number of the first posting that was tampered with, where it is one."""
    erased: int = 0
    """Operations that were masked; see ``masks``."""


class Store(Protocol):
    """A ledger on disk. Errors are those of ``errors``; see there and ``core`` for who raises what.

    Every call raises ``WalletUnavailable`` where the database fails. Whether one that changes
    something was done is then unknown, and the same call again finds out. ``WalletContended``: the
    database would not let it through beside others, however often it was tried; it was not done.
    """

    async def open_wallet(self, player_id: str, *, is_bot: bool = False) -> bool:
        """See ``core.open_wallet``; whether this call opened it, not an earlier one."""

    async def freeze(self, command: Freeze) -> Done[Player]:
        """See ``core.freeze``."""

    async def deposit(self, command: Deposit) -> Done[Entry]:
        """See ``core.deposit``."""

    async def withdraw(self, command: Withdraw) -> Done[Entry]:
        """See ``core.withdraw``."""

    async def collect(self, command: Collect) -> Done[Collected]:
        """See ``core.collect``."""

    async def place_holds(self, command: PlaceHolds) -> Done[tuple[Hold, ...]]:
        """See ``core.place_holds``; the holds in the order of the command."""

    async def hand_over(self, command: HandOver) -> tuple[Hold, ...]:
        """See ``core.hand_over``; the holds in the order of the command."""

    async def extend_holds(self, command: ExtendHolds) -> tuple[Hold, ...]:
        """See ``core.extend_holds``; the holds in the order of the command."""

    async def top_up_hold(self, command: TopUpHold) -> Done[Hold]:
        """See ``core.top_up_hold``."""

    async def release_holds(self, command: ReleaseHolds) -> tuple[Hold, ...]:
        """See ``core.release_holds``; ``remaining`` is what this call gave back."""

    async def settle(self, command: Settle) -> Done[Settlement]:
        """See ``core.settle``."""

    async def settle_all(
        self, commands: Sequence[Settle]
    ) -> Sequence[Done[Settlement] | Exception]:
        """Each as ``settle`` would, in order; an answer or an error of ``errors`` for each."""

    async def reverse(self, command: Reverse) -> Done[Reversal]:
        """See ``core.reverse``."""

    async def settlement(self, key: str) -> Settlement:
        """What was settled under a key, with its reversal; ``UnknownSettlement``."""

    async def holds(self, hold_ids: Sequence[str]) -> Sequence[Hold]:
        """How holds stand, in the order asked for; ``UnknownHold``."""

    async def open_holds(self, player_id: str) -> Sequence[Hold]:
        """A player's open holds, oldest first; ``UnknownWallet``."""

    async def standing(self, player_id: str, at_us: int | None = None) -> Standing:
        """All of a player's balances, and whether he may stake; ``UnknownWallet``.

        ``at_us``: the balances as they stood after everything that was written up to this time;
        ``None``: now. ``TimeArchived`` where that is no longer here.
        """

    async def player(self, player_id: str) -> Player:
        """The player of ``standing``."""

    async def balances(self, player_id: str, at_us: int | None = None) -> Sequence[Balance]:
        """The balances of ``standing``."""

    async def entries(self, query: StatementQuery, before: int | None, limit: int) -> Page:
        """At most ``limit`` entries of a player that the query asks for; ``UnknownWallet``.

        What is written meanwhile does not shift the pages that follow. A page may be short, or
        empty, before the statement is at its end: ``rest`` tells.
        """

    async def stream(self, after: int, limit: int) -> Sequence[StreamedEntry]:
        """The entries of all accounts from number ``after + 1`` on; empty: there are no more yet.

        Numbers have no gaps and come in the order in which they can be read: what was streamed up
        to a number is complete. ``TimeArchived`` where they are no longer here.
        """

    async def leaderboard(self, query: LeaderboardQuery) -> Leaderboard:
        """A leaderboard as of one moment.

        ``UnknownCurrency``, ``InvalidBook``; ``TimeArchived`` where its settlements are not here.
        """

    async def erase(self, erasure: Erasure) -> Done[int]:
        """Erase a player's texts and labels; in how many operations this call did.

        ``UnknownWallet``, ``HasHolds``, ``RequestIdReused``. A repeat after a failure goes on where
        it was.
        """

    def lines(self, player_id: str) -> AsyncIterator[str]:
        """All that is kept of a player, as lines of an export; ``UnknownWallet``."""

    async def audit(self) -> Audit:
        """Recompute everything from the postings; a damaged database is a finding, no error."""

    async def verify(self, operations: int = 0, head: str = "") -> ChainReport:
        """Compare every posting with the chain of hashes, up to the first that differs.

        ``operations``, ``head``: as an earlier report had them; 0: there is none to compare with.
        """

    async def pulse(self) -> Pulse:
        """Look at sums and holds."""

    async def close(self) -> None:
        """Finish what waits, and let the database go."""


OnCommit = Callable[[Commit], None]
"""Called from the storage's own thread, where it has one."""
