"""What the ledger is made of, what is asked of it, and what it answers: plain data.

An *account* belongs to a player, a hold, the house or the outside, and has one currency and book. A
*posting* adds to one account; the postings of one *operation* add up to zero in every currency and
book. Money comes from the outside and goes back there, a *hold* moves it from the player's account
to an account of the hold's own, and a settlement moves it between four seats and the house. So the
balance of a player's account is what is available, the balance of a hold's account is what remains
in it, and nothing else needs to be kept. What a player owes after a settlement was reversed is the
balance, below 0, of an account of its own: a *receivable*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

import msgspec

from fangcheng_kit.privacy import Erasure
from fangcheng_wallet.masks import Masked

LARGEST = 2**53
"""The largest amount, above and below 0: what a double, and so every client, holds exactly."""

MOST_PLAYERS = 4
"""Seats of a table."""

Answer_co = TypeVar("Answer_co", covariant=True)


# What the ledger is made of.


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency that the wallet is configured with."""

    id: str
    books: bool = False
    """Balances are kept per book, such as one of each rule set."""
    floor: int | None = 0
    """No player's available balance goes below; ``None``: no floor but the range of amounts."""
    most: int = LARGEST
    """The largest amount of an entry, and the largest balance that a deposit may lead to."""
    minor_digits: int = 0
    """Digits after the point where amounts are shown; the wallet counts the smallest unit."""
    names: dict[str, str] = field(default_factory=dict)
    """To show, by language: ``zh``, ``en``."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.id) <= 64:
            raise ValueError(f"currency {self.id!r}: an id has 1 to 64 characters")
        if self.floor is not None and not -LARGEST <= self.floor <= 0:
            raise ValueError(f"currency {self.id}: the floor is within {-LARGEST} and 0")
        if not 1 <= self.most <= LARGEST:
            raise ValueError(f"currency {self.id}: the most is within 1 and {LARGEST}")
        if not 0 <= self.minor_digits <= 15:
            raise ValueError(f"currency {self.id}: an amount has 0 to 15 digits after the point")


DEFAULT_CURRENCIES = (
    Currency("silver", names={"zh": "银子", "en": "Silver"}),
    Currency("points", books=True, floor=None, names={"zh": "积分", "en": "Points"}),
)


class Kind(StrEnum):
    """Whose account it is."""

    PLAYER = "player"
    HOLD = "hold"
    HOUSE = "house"
    EXTERNAL = "external"
    RECEIVABLE = "receivable"
    """What a player owes the house, as a balance below 0."""

    __hash__ = str.__hash__  # the enum's own is many times slower, and accounts are looked up a lot


class AccountKey(NamedTuple):
    """What makes an account: there is one for each."""

    kind: Kind
    owner: str
    """Player id (also of a receivable) or hold id; empty for the house and the outside."""
    currency: str
    book: str

    def __str__(self) -> str:
        return ":".join(part for part in (self.kind.value, *self[1:]) if part)


class Account(NamedTuple):
    """How an account stands: after ``version`` postings it has ``balance``."""

    balance: int = 0
    version: int = 0


class Posting(NamedTuple):
    """What is added to one account by one operation."""

    account: AccountKey
    version: int
    """Counts 1, 2, 3, … within the account."""
    amount: int
    balance_after: int
    reason: str
    reference: str
    memo: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A posting as the statement of its account shows it."""

    version: int
    currency: str
    book: str
    amount: int
    balance_after: int
    reason: str
    reference: str
    memo: str
    time_us: int
    """Microseconds since 1970, UTC."""
    labels: dict[str, str] = field(default_factory=dict)
    """Of the settlement that made it, or that was reversed by it."""


@dataclass(frozen=True, slots=True)
class StreamedEntry:
    """A posting as the stream of all of them shows it."""

    number: int
    """Counts 1, 2, 3, … over the whole ledger, in the order of the commits: a cursor."""
    account: AccountKey
    entry: Entry
    verb: str
    """The verb of the operation: ``deposit``, ``settle``, …"""
    operation: int
    """Counts 1, 2, 3, … over the whole ledger; the entries of one operation stand together."""


class HoldState(StrEnum):
    """What became of a hold."""

    OPEN = "open"
    RELEASED = "released"
    EXPIRED = "expired"
    """Its time was over before anybody released it: it was given back by the wallet itself."""


class Hold(msgspec.Struct, frozen=True):
    """Money that is set aside for a table."""

    hold_id: str
    player_id: str
    currency: str
    book: str
    amount: int
    """What was set aside, what was added since included."""
    remaining: int
    """What of it is still set aside."""
    state: HoldState = HoldState.OPEN
    table_id: str = ""
    """The table that it was handed over to; empty: none yet."""
    expires_at_us: int | None = None
    """When its time is over, by the wallet's clock; ``None``: never."""
    given_back: int = 0
    """What was left when it was released or expired, less what hands that go by holds only have
    taken of it since."""

    @property
    def released(self) -> bool:
        """Whether it is over: nothing is set aside any more."""
        return self.state is not HoldState.OPEN

    @property
    def unit(self) -> tuple[str, str]:
        """Currency and book."""
        return self.currency, self.book

    @property
    def account(self) -> AccountKey:
        """The account that the money is in."""
        return AccountKey(Kind.HOLD, self.hold_id, self.currency, self.book)

    @property
    def home(self) -> AccountKey:
        """The account that the money came from and goes back to."""
        return AccountKey(Kind.PLAYER, self.player_id, self.currency, self.book)


@dataclass(frozen=True, slots=True)
class Balance:
    """What a player has in one currency and book."""

    currency: str
    book: str
    available: int
    held: int
    owed: int = 0
    """What the player owes the house for settlements that were reversed; 0 or more."""


@dataclass(frozen=True, slots=True)
class Player:
    """A wallet, and whether its player may stake and withdraw."""

    player_id: str
    frozen: bool = False
    reason: str = ""
    """Why, in the words of whoever changed it last."""
    case_id: str = ""
    time_us: int | None = None
    """When it was changed last; ``None``: never."""
    is_bot: bool = False
    """The house funds it, and gets back what it has: from when it was opened, for ever."""


# What is asked of it.


class Command(Generic[Answer_co]):
    """Something that changes the ledger, and what it is answered with."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class OpenWallet(Command[bool]):
    """A wallet for a player; whether this call opened it, not an earlier one."""

    player_id: str
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Freeze(Command[Player]):
    """Forbid a player to stake and to withdraw, or allow it again.

    What is staked already is played out: settlements and releases go through, and so do deposits.
    """

    request_id: str
    player_id: str
    frozen: bool
    reason: str
    case_id: str = ""


@dataclass(frozen=True, slots=True)
class Deposit(Command[Entry]):
    """Money from outside into a player's account; into a bot's it is the house's."""

    request_id: str
    player_id: str
    currency: str
    book: str
    amount: int
    memo: str = ""


@dataclass(frozen=True, slots=True)
class Withdraw(Command[Entry]):
    """Money from a player's account to the outside; from a bot's back to the house."""

    request_id: str
    player_id: str
    currency: str
    book: str
    amount: int
    memo: str = ""


@dataclass(frozen=True, slots=True)
class Collect(Command["Collected"]):
    """Take what a player owes after a reversal out of what is available to him, or let him off."""

    request_id: str
    player_id: str
    currency: str
    book: str
    amount: int
    reason: str
    case_id: str = ""
    write_off: bool = False
    """The house bears it, not the player."""


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """One amount to set aside."""

    player_id: str
    currency: str
    book: str
    amount: int


@dataclass(frozen=True, slots=True)
class PlaceHolds(Command[tuple[Hold, ...]]):
    """Buy-ins of up to four players, all or none."""

    request_id: str
    holds: tuple[HoldRequest, ...]
    lifetime_seconds: int = 0
    """After this long the wallet gives them back; 0: what it is configured with."""


@dataclass(frozen=True, slots=True)
class HandOver(Command[tuple[Hold, ...]]):
    """Holds become a table's, all or none, and live on for this long at least."""

    hold_ids: tuple[str, ...]
    table_id: str
    lifetime_seconds: int = 0
    """From now on; 0: what the wallet is configured with. No hold is ever shortened."""


@dataclass(frozen=True, slots=True)
class ExtendHolds(Command[tuple[Hold, ...]]):
    """Holds live on for this long at least, all or none."""

    hold_ids: tuple[str, ...]
    lifetime_seconds: int = 0
    """From now on; 0: what the wallet is configured with. No hold is ever shortened."""


@dataclass(frozen=True, slots=True)
class TopUpHold(Command[Hold]):
    """More of a player's money into an open hold."""

    request_id: str
    hold_id: str
    amount: int


@dataclass(frozen=True, slots=True)
class ReleaseHolds(Command[tuple[Hold, ...]]):
    """What remains of holds goes back; ``remaining`` of the answer is what this call gave back."""

    hold_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExpireHold(Command[Hold]):
    """What remains of a hold goes back if its time is over. Asked by the storage itself."""

    hold_id: str


@dataclass(frozen=True, slots=True)
class Party:
    """A seat of the table that settles, with its holds in the order in which they are used."""

    player_id: str
    hold_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """One payment; ``None`` is the house, a number an index into the parties."""

    currency: str
    book: str
    from_party: int | None
    to_party: int | None
    amount: int
    reason: str


@dataclass(frozen=True, slots=True)
class Fee:
    """The flat fee of a table, from one of its seats to the house, before the hand is paid."""

    party: int
    """Index into the parties."""
    currency: str
    book: str
    amount: int


@dataclass(frozen=True, slots=True)
class LossCap:
    """What a seat may lose in a hand in a currency, its fees aside."""

    currency: str
    book: str
    most: int


@dataclass(frozen=True, slots=True)
class Settle(Command["Settlement"]):
    """All payments of a hand. ``parties``: in turn order from the dealer."""

    key: str
    parties: tuple[Party, ...]
    transfers: tuple[Transfer, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    fees: tuple[Fee, ...] = ()
    """The table sends its fees with the first hand that it settles."""
    hold_only: bool = False
    """In currencies with a floor nobody pays more than what the hand brings him and his holds have
    left; of a hold that is over, what it gave back counts, as far as it is still available."""
    caps: tuple[LossCap, ...] = ()
    """In these currencies nobody pays more than what the hand brings him and the cap."""


@dataclass(frozen=True, slots=True)
class Reverse(Command["Reversal"]):
    """Take the transfers of a settlement back: once, ever. The table's fees stay paid."""

    key: str
    """Of the settlement."""
    reason: str
    case_id: str = ""


@dataclass(frozen=True, slots=True)
class Mask(Command[int]):
    """Take texts and labels out of operations; the answer: out of how many. See ``masks``."""

    numbers: tuple[int, ...]
    """Of the operations, which are in the chain."""
    erasure: Erasure


@dataclass(frozen=True, slots=True)
class Erase(Command["Erased"]):
    """A player's operations have been masked; why an operator has frozen him goes too."""

    request_id: str
    player_id: str
    erase_labels: str
    """A digest of them: what was erased is not kept here."""
    keep_texts: bool
    reason: str


# What it answers. A settlement makes a dozen of these: structs are made in a tenth of the time.


class PartyBalance(msgspec.Struct, frozen=True):
    """What a party has after a settlement; ``held``: left in its holds of this settlement."""

    party: int
    currency: str
    book: str
    available: int
    held: int


class Settled(msgspec.Struct, frozen=True):
    """What became of a settlement. ``paid``: of each transfer, in the order of the request."""

    paid: tuple[int, ...]
    balances: tuple[PartyBalance, ...]
    time_us: int
    fees_paid: tuple[int, ...] = ()
    """Of each fee, in the order of the request."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What a player owes, and has, after some of it was collected or written off."""

    owed: int
    available: int
    time_us: int


@dataclass(frozen=True, slots=True)
class Erased:
    """When a player was erased."""

    time_us: int


@dataclass(frozen=True, slots=True)
class PartyReversal:
    """What a reversal did to one party in one currency and book."""

    party: int
    currency: str
    book: str
    amount: int
    """Given back to (above 0) or taken from (below 0) what is available."""
    owed: int
    """What could not be taken: a receivable."""
    available: int


@dataclass(frozen=True, slots=True)
class Reversal:
    """How a settlement was taken back. ``parties``: those that had gained or lost."""

    key: str
    """Of the settlement."""
    reason: str
    case_id: str
    parties: tuple[PartyReversal, ...]
    time_us: int


class Settlement(msgspec.Struct, frozen=True):
    """A settlement: what was asked and what became of it."""

    request: Settle
    outcome: Settled
    reversal: Reversal | None = None
    """As of when it is read; an answer to ``Settle`` has none."""


class Done(msgspec.Struct, Generic[Answer_co], frozen=True):
    """An answer; ``replayed``: it is the one to an earlier call with the same id."""

    answer: Answer_co
    replayed: bool


class Decision(msgspec.Struct, Generic[Answer_co], frozen=True):
    """All that a command changes, and its answer."""

    postings: tuple[Posting, ...]
    answer: Answer_co
    holds: tuple[Hold, ...] = ()
    """Holds as they stand from now on: new ones and changed ones."""
    player: Player | None = None
    """A wallet that was opened, or a player as he stands from now on."""
    masked: tuple[Masked, ...] = ()
    """Operations that are not any more as they were written."""
    says: object = None
    """What is kept as the body of the operation; ``None``: the command."""

    @property
    def changes(self) -> bool:
        """Whether it changes anything at all."""
        return bool(self.postings or self.holds or self.player or self.masked)


# What is read.


@dataclass(frozen=True, slots=True)
class StatementQuery:
    """Which entries of a player; what is left out is no condition."""

    player_id: str
    currency: str | None = None
    book: str | None = None
    reasons: tuple[str, ...] = ()
    """Any of these."""
    reference: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    """All of these."""
    since_us: int | None = None
    """Written at this time or later."""
    until_us: int | None = None
    """Written before this time."""


@dataclass(frozen=True, slots=True)
class LeaderboardQuery:
    """Which leaderboard, and how much of it.

    Ranked is what settlements, and their reversals, have brought the players. Equal scores share a
    rank and stand in the order of the player ids.
    """

    currency: str
    book: str
    since_us: int | None = None
    """The period's first moment; ``None``: since ever."""
    until_us: int | None = None
    """The first moment after the period; ``None``: for ever."""
    labels: dict[str, str] = field(default_factory=dict)
    """Only settlements with all of these."""
    skip: int = 0
    """Places before the first to show."""
    limit: int = 50
    horizon: int | None = None
    """As it was after this operation, see ``Leaderboard``; ``None``: now."""
    player_id: str | None = None
    """Whose own place is to be shown besides."""
    neighbours: int = 0
    """Places to show above and below that one."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place of a leaderboard."""

    rank: int
    player_id: str
    score: int
    hands: int
    """Settlements that brought or cost the player something."""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """A leaderboard as of one moment."""

    places: tuple[Place, ...]
    more: bool
    """There are places behind these."""
    own: Place | None
    around: tuple[Place, ...]
    """The own place and its neighbours, best first."""
    closed: bool
    """An operation after the period is counted: this never changes again."""
    horizon: int
    """The last operation that is counted; hand it in for pages that belong together."""
