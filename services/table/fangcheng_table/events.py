"""What happens at a table around its hands, as the journal keeps it.

The journal of a table is one sequence: these events and, between `HandOpened` and the rules'
`HandEnded`, those of `fangcheng_rules.events`. The state of a table and every viewer's numbering
are folds of it. Everything is in here, secrets too: what may be shown to whom is decided in
`views.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fangcheng_rules import events as play
from fangcheng_rules.actions import Action
from fangcheng_rules.ruleset import OptionValue


@dataclass(frozen=True, slots=True)
class SeatPlan:
    """Who sits on a seat, as CreateTable named it."""

    player_id: str
    profile: bytes = b""
    hold_ids: tuple[str, ...] = ()
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Stake:
    """What one unit is worth in a currency (and book)."""

    currency: str
    book: str
    per_unit: int


@dataclass(frozen=True, slots=True)
class Fee:
    """A flat fee, paid to the house with the first hand that is settled."""

    seat: int | None
    """None: each seat pays it."""
    currency: str
    book: str
    amount: int


@dataclass(frozen=True, slots=True)
class Timing:
    """The clocks of a table, every one filled in."""

    turn_ms: int = 15_000
    claim_ms: int = 8_000
    before_deal_ms: int = 10_000
    claim_window_ms: int = 1_000
    between_hands_ms: int = 5_000
    away_grace_ms: int = 180_000


@dataclass(frozen=True, slots=True)
class TableCreated:
    """The first event: all that the table follows from, the root of its secrets included."""

    table_id: str
    created_ms: int
    rule_set: str
    revision: int
    options: Mapping[str, OptionValue]
    """Every option spelled out."""
    seats: tuple[SeatPlan, ...]
    stakes: tuple[Stake, ...]
    hands: int
    """Hands to play; 0: open."""
    timing: Timing
    labels: Mapping[str, str]
    root: bytes
    """The last secret of the chain, from which all others follow (secret)."""
    commitment: bytes
    """The chain's public end: hand k's secret hashed k times."""
    fees: tuple[Fee, ...] = ()
    hold_only: bool = False
    """Nobody pays more than his holds and what the hand brings him."""


@dataclass(frozen=True, slots=True)
class EntropyGiven:
    """A seat's own share in the shuffles that begin from now on."""

    seat: int
    entropy: bytes


@dataclass(frozen=True, slots=True)
class ConnectionChanged:
    """A seat is attended, or no longer. Seen by all."""

    seat: int
    connected: bool


@dataclass(frozen=True, slots=True)
class LeaveAnnounced:
    """A player leaves: after the hand (seen by all), or at once (seen by what follows)."""

    seat: int
    now: bool


@dataclass(frozen=True, slots=True)
class HandOpened:
    """A hand's secret and the seats' shares, fixed before anything of the hand happens.

    The rules' `HandStarted` follows, with the wall that comes of it.
    """

    hand_number: int
    secret: bytes
    """Secret until the hand has ended; its hash was fixed by the table's commitment."""
    entropy: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Offered:
    """What the decision just `Asked` may be answered with (for its seat alone)."""

    seat: int
    decision: int
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Payment:
    """One payment of a settlement, as the wallet made it. None: the house."""

    currency: str
    book: str
    source: int | None
    target: int | None
    due: int
    paid: int
    reason: str


@dataclass(frozen=True, slots=True)
class HandSettled:
    """The wallet has acknowledged the hand's settlement."""

    hand_number: int
    key: str
    payments: tuple[Payment, ...]


@dataclass(frozen=True, slots=True)
class TableClosed:
    """Nothing more is played: `hands_played`, `player_left` or `escape`."""

    reason: str


@dataclass(frozen=True, slots=True)
class HoldsReleased:
    """The wallet has given the holds back; nothing is left to do."""


OwnEvent = (
    TableCreated
    | EntropyGiven
    | ConnectionChanged
    | LeaveAnnounced
    | HandOpened
    | Offered
    | HandSettled
    | TableClosed
    | HoldsReleased
)
Event = OwnEvent | play.Event
