"""What happens in a hand of play, as the state machine tells it.

A hand is a fold of its events (`Round.replay`). They are plain frozen values of integers,
strings and tuples, so that a journal can store them. They hold everything: what a viewer may
not see (rules/README, what is seen) is taken out by whoever shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .actions import Action, PromptKind, TrusteeReason
from .analysis import Analysis
from .melds import Meld, MeldKind
from .ruleset import OptionValue
from .scoring import Dissolved, Draw, EightFlowers, End, Escape, Score, Win
from .values import value

DrawOrigin = Literal["front", "back", "flower", "dealt_out"]
"""From the front; from the back for a kong, from the back for a flower; dealt out (分张)."""


@value
class HandStarted:
    """The first event; all that the hand follows from, the wall included (secret)."""

    rule_set: str
    revision: int
    options: Mapping[str, OptionValue]
    hand_number: int
    dealer: int
    dice: tuple[int, ...]
    wall: tuple[int, ...]
    trustees: tuple[bool, ...]
    """Which of the four seats the table plays for from the start."""
    run_outs: tuple[int, ...]
    """Turns in a row that each seat has let run out in earlier hands."""
    drawn_hands_before: int
    """Drawn hands in a row before this one."""


@value
class Asked:
    """A decision is open. Only its seat may learn of it."""

    seat: int
    decision: int
    kind: PromptKind


@value
class Answered:
    """A seat's answer to its decision (secret; what follows from it is told by other events).

    Decision 0: the table answered for a seat that it plays for, which was never asked.
    """

    seat: int
    decision: int
    action: Action


@value
class TimedOut:
    """A decision ran out (secret). What the table does instead follows in other events."""

    seat: int
    decision: int


@value
class Withdrawn:
    """An open decision is void: another's answer outranked it, or the hand ended (secret)."""

    seat: int
    decision: int


@value
class TrusteeSet:
    """The table plays for a seat from now on, or no longer. Seen by all."""

    seat: int
    on: bool
    reason: TrusteeReason


@value
class PiaoShown:
    """All have chosen their piao; shown together."""

    units: tuple[int, ...]


@value
class Dealt:
    """The hands, sorted, by seat; the dealer's has fourteen tiles (each seat sees its own)."""

    hands: tuple[tuple[int, ...], ...]
    dealer_drew: int
    """The dealer's last tile (index 52), which stands as its drawn tile."""


@value
class AnalysisKept:
    """The evaluator's answer about a seat's hand, as it was used (secret)."""

    question: int
    seat: int
    analysis: Analysis


@value
class Drew:
    """A seat drew a tile, which it alone sees."""

    seat: int
    tile: int
    origin: DrawOrigin


@value
class FlowerLaid:
    """A seat laid a flower down, seen by all; its replacement is drawn next."""

    seat: int
    tile: int


@value
class TreasureTurned:
    """A tile on the wall was turned up, seen by all: its kind is the treasure from now on.

    Both None: there is no treasure any more.
    """

    index: int | None
    """Place in the wall."""
    tile: int | None


@value
class Discarded:
    """A discard; it opens the claim window."""

    seat: int
    tile: int
    declared: str
    """What was declared with this discard, or ''."""
    shown: tuple[int, ...] = ()
    """The seat's concealed tiles, if the declaration shows them to all (明楼)."""


@value
class Called:
    """A chi, pong or exposed kong of the last discard; a pong of a dragon that was robbed."""

    seat: int
    meld: Meld


@value
class KongDeclared:
    """A kong in the seat's own turn. An added kong opens the claim window.

    A concealed kong's tile is seen by its seat alone. A whirlwind stands for its lowest dragon.
    """

    seat: int
    tile: int
    kind: MeldKind
    declared: str


@value
class KongDone:
    """The kong just declared stands; its replacement is drawn next (a whirlwind needs none)."""

    seat: int
    tile: int
    kind: MeldKind


@value
class KongRobbed:
    """The added kong never happened: what it was added to stays, the tile is the robber's."""

    seat: int
    tile: int


@value
class FalseWinCalled:
    """诈胡: a seat called a win that it does not have, seen by all. Its decision stays open."""

    seat: int
    decision: int


@value
class WindowClosed:
    """The claim window is over; no event is seen by anyone for this alone (secret)."""

    window: int


@value
class LeaveNoted:
    """A seat left while a claim to win was pending: that is resolved first (secret)."""

    seat: int


@value
class WinTaken:
    """The hand is won; the score is being asked for."""

    end: Win


@value
class PlayEnded:
    """The hand ended without a win."""

    end: Draw | Escape | Dissolved | EightFlowers


@value
class HandEnded:
    """The last event: all hands are shown, and what is paid."""

    end: End
    hands: tuple[tuple[int, ...], ...]
    """Concealed tiles of each seat without the winning tile; empty before the deal."""
    melds: tuple[tuple[Meld, ...], ...]
    score: Score


Event = (
    HandStarted
    | Asked
    | Answered
    | TimedOut
    | Withdrawn
    | TrusteeSet
    | PiaoShown
    | Dealt
    | AnalysisKept
    | Drew
    | FlowerLaid
    | TreasureTurned
    | Discarded
    | Called
    | KongDeclared
    | KongDone
    | KongRobbed
    | FalseWinCalled
    | WindowClosed
    | LeaveNoted
    | WinTaken
    | PlayEnded
    | HandEnded
)
