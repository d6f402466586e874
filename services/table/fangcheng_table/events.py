"""What happens at a table around its hands, as the journal keeps it.

The journal of a table is one sequence: these events and, between `HandOpened` and the rules'
`HandEnded`, those of `fangcheng_rules.events`. The state of a table and every viewer's numbering
are folds of it. Everything is in here, secrets too: what may be shown to whom is decided in
`views.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from fangcheng_rules import events as play
from fangcheng_rules.actions import Action
from fangcheng_rules.ruleset import OptionValue

AwayPolicy = Literal["escape", "trustee_to_end"]
"""What becomes of a seat that is away for longer than the grace."""


@dataclass(frozen=True, slots=True)
class SeatPlan:
    """Who sits on a seat, as CreateTable or SeatPlayer named it."""

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
    minimum: int = 0
    """A seat that has less after a hand cannot go on."""
    loss_cap: int = 0
    """What no seat loses more than in a hand; 0: no cap."""


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
    reserve_ms: int = 0
    """For each seat in each hand, used by turns that outlast `turn_ms`."""
    ready_ms: int = 30_000
    vote_ms: int = 60_000
    vacancy_ms: int = 0
    """For another player to be seated where one has left, if the rule set starts over then."""
    away: AwayPolicy = "escape"


@dataclass(frozen=True, slots=True)
class TalkRules:
    """What may be said at a table."""

    off: bool = False
    phrases_only: bool = False
    spectators: bool = False
    """They hear it too."""


TableMode = Literal["", "casual", "ranked", "anti_cheat", "practice", "room"]
"""How the players of a table came together; '': that was not said."""


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
    rounds: int = 0
    """圈 to play: how often the deal goes once around; 0: that ends nothing."""
    starting_chips: int = 0
    """Units that each seat begins with at a table without stakes; 0: they are not limited."""
    talk: TalkRules = TalkRules()
    mode: TableMode = ""
    """How its players came together; it is counted under that."""
    pool_id: str = ""
    """The pool that they queued in; '': none."""


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
class GraceEnded:
    """A seat is away for longer than the grace at a table that plays for it to the end."""

    seat: int


@dataclass(frozen=True, slots=True)
class ReserveSpent:
    """A turn has outlasted its time, and used the seat's reserve for this hand up by so much."""

    seat: int
    ms: int


@dataclass(frozen=True, slots=True)
class ReadyAsked:
    """All seats are asked whether the next hand may begin. Seen by all, as what follows of it."""

    check: int
    """Counts the table's ready checks from 1."""


@dataclass(frozen=True, slots=True)
class ReadyGiven:
    """A seat is ready."""

    check: int
    seat: int


@dataclass(frozen=True, slots=True)
class ReadyMissed:
    """A seat has not said in time that it is ready, and leaves."""

    check: int
    seat: int


@dataclass(frozen=True, slots=True)
class VoteOpened:
    """A seat proposes to dissolve the table, and with it the hand in play; it agrees itself."""

    vote: int
    """Counts the table's votes from 1."""
    seat: int


@dataclass(frozen=True, slots=True)
class VoteAnswered:
    """Another seat's answer to the vote that is open."""

    vote: int
    seat: int
    agrees: bool


@dataclass(frozen=True, slots=True)
class VoteClosed:
    """The vote is over; `agreed` dissolves the table."""

    vote: int
    outcome: Literal["agreed", "refused", "timed_out"]


@dataclass(frozen=True, slots=True)
class SeatVacated:
    """A player has left between two hands, and the seat waits for another."""

    seat: int
    why: str
    """As the reason of `TableClosed`."""


@dataclass(frozen=True, slots=True)
class HoldsReturned:
    """The wallet has given back the holds of one who left before the table closed."""

    vacancy: int
    """Counts the table's `SeatVacated` from 1."""


@dataclass(frozen=True, slots=True)
class PlayerSeated:
    """Another player has the seat; the table starts over."""

    seat: int
    plan: SeatPlan


@dataclass(frozen=True, slots=True)
class TableDeserted:
    """Nobody has attended any seat for the grace: the table ends, unplayed or played for."""


Verb = Literal["remove", "void_hand", "close_table", "seat_player", "reveal"]


@dataclass(frozen=True, slots=True)
class OperatorActed:
    """An operator has intervened; what came of it follows. Seen by all."""

    action_id: str
    """The request id: a repeat is known by it."""
    verb: Verb
    operator: str
    """Whose credentials it came with."""
    reason: str
    case_id: str
    seat: int | None = None
    detail: str = ""
    """What else was asked for."""

    @property
    def fingerprint(self) -> str:
        """By which another request under the same id is known."""
        # Who looks at tiles is noted by name; what else is done is done, whoever repeats it.
        who = (self.operator,) if self.verb == "reveal" else ()
        return repr((self.verb, self.detail, self.reason, self.case_id, *who))


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
    short: tuple[int, ...] = ()
    """Seats that could not pay all they owed, or have less left than the table's minimum."""


CLOSING_REASONS: Final = (
    *("hands_played", "player_left", "escape", "bankrupt", "not_ready", "removed"),
    *("dissolved", "closed", "deserted"),
)
"""Why a table closes. `dissolved`: by vote; `closed`: by an operator."""


@dataclass(frozen=True, slots=True)
class TableClosed:
    """Nothing more is played."""

    reason: str
    """One of `CLOSING_REASONS`."""


@dataclass(frozen=True, slots=True)
class HoldsReleased:
    """The wallet has given the holds back; nothing is left to do."""


OwnEvent = (
    TableCreated
    | EntropyGiven
    | ConnectionChanged
    | LeaveAnnounced
    | GraceEnded
    | ReserveSpent
    | ReadyAsked
    | ReadyGiven
    | ReadyMissed
    | VoteOpened
    | VoteAnswered
    | VoteClosed
    | SeatVacated
    | HoldsReturned
    | PlayerSeated
    | TableDeserted
    | OperatorActed
    | HandOpened
    | Offered
    | HandSettled
    | TableClosed
    | HoldsReleased
)
Event = OwnEvent | play.Event
