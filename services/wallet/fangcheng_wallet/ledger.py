"""What the ledger is made of, what is asked of it, and what it answers: plain data.

An *account* belongs to a player, a hold, the house or the outside, and has one currency and book. A
*posting* adds to one account; the postings of one *operation* add up to zero in every currency and
book. Money comes from the outside and goes back there, a *hold* moves it from the player's account
to an account of the hold's own, and a settlement moves it between four seats and the house. So the
balance of a player's account is what is available, the balance of a hold's account is what remains
in it, and nothing else needs to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

LARGEST = 2**53
"""The largest amount, above and below 0: what a double, and so every client, holds exactly."""

MOST_PLAYERS = 4
"""Seats of a table."""


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

    def __post_init__(self) -> None:
        if not 1 <= len(self.id) <= 64:
            raise ValueError(f"currency {self.id!r}: an id has 1 to 64 characters")
        if self.floor is not None and not -LARGEST <= self.floor <= 0:
            raise ValueError(f"currency {self.id}: the floor is within {-LARGEST} and 0")
        if not 1 <= self.most <= LARGEST:
            raise ValueError(f"currency {self.id}: the most is within 1 and {LARGEST}")


DEFAULT_CURRENCIES = (Currency("silver"), Currency("points", books=True, floor=None))


class Kind(StrEnum):
    """Whose account it is."""

    PLAYER = "player"
    HOLD = "hold"
    HOUSE = "house"
    EXTERNAL = "external"


class AccountKey(NamedTuple):
    """What makes an account: there is one for each."""

    kind: Kind
    owner: str
    """Player id or hold id; empty for the house and the outside."""
    currency: str
    book: str

    def __str__(self) -> str:
        return ":".join(part for part in (self.kind.value, *self[1:]) if part)


class Account(NamedTuple):
    """How an account stands: after ``version`` postings it has ``balance``."""

    balance: int = 0
    version: int = 0


@dataclass(frozen=True, slots=True)
class Posting:
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


@dataclass(frozen=True, slots=True)
class Hold:
    """A buy-in that is set aside."""

    hold_id: str
    player_id: str
    currency: str
    book: str
    amount: int
    remaining: int
    released: bool = False

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


# What is asked of it.


@dataclass(frozen=True, slots=True)
class Deposit:
    """Money from outside into a player's account."""

    request_id: str
    player_id: str
    currency: str
    book: str
    amount: int
    memo: str = ""


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Money from a player's account to the outside."""

    request_id: str
    player_id: str
    currency: str
    book: str
    amount: int
    memo: str = ""


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """One buy-in."""

    player_id: str
    currency: str
    book: str
    amount: int


@dataclass(frozen=True, slots=True)
class PlaceHolds:
    """Buy-ins of up to four players, all or none."""

    request_id: str
    holds: tuple[HoldRequest, ...]


@dataclass(frozen=True, slots=True)
class ReleaseHolds:
    """What remains of holds goes back."""

    hold_ids: tuple[str, ...]


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
class Settle:
    """All payments of a hand. ``parties``: in turn order from the dealer."""

    key: str
    parties: tuple[Party, ...]
    transfers: tuple[Transfer, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)


Command = Deposit | Withdraw | PlaceHolds | ReleaseHolds | Settle


# What it answers.


@dataclass(frozen=True, slots=True)
class PartyBalance:
    """What a party has after a settlement; ``held``: left in its holds of this settlement."""

    party: int
    currency: str
    book: str
    available: int
    held: int


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a settlement. ``paid``: of each transfer, in the order of the request."""

    paid: tuple[int, ...]
    balances: tuple[PartyBalance, ...]
    time_us: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """A settlement: what was asked and what became of it."""

    request: Settle
    outcome: Settled


Answer_co = TypeVar("Answer_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Done(Generic[Answer_co]):
    """An answer; ``replayed``: it is the one to an earlier call with the same id."""

    answer: Answer_co
    replayed: bool


@dataclass(frozen=True, slots=True)
class Decision(Generic[Answer_co]):
    """All that a command changes, and its answer."""

    postings: tuple[Posting, ...]
    answer: Answer_co
    placed: tuple[Hold, ...] = ()
    released: tuple[str, ...] = ()
    """Ids of holds that were open before."""
