"""What goes into a hand of play: the seats' actions and the commands to the state machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .hand import Hand
from .melds import MeldKind
from .values import value

if TYPE_CHECKING:
    from .analysis import Analysis
    from .scoring import FinishedHand, Score

ActionKind = Literal["discard", "chi", "pong", "kong", "win", "false_win", "pass", "piao"]
PromptKind = Literal["piao", "turn", "claim", "dealt_out"]


@value
class Action:
    """One thing a seat may do. An answer must equal one of the actions offered."""

    kind: ActionKind
    tile: int | None = None
    """Kind discarded, claimed, konged or won on (a whirlwind laid down: its lowest dragon); None
    for a pass, for piao and for a false win."""
    tiles: tuple[int, ...] = ()
    """The two tiles from hand that make a chi, sorted; else empty."""
    declare: str = ""
    """What is declared with a discard or a kong ('ting'), or ''."""
    amount: int = 0
    """Units of piao."""
    meld: MeldKind | None = None
    """Which kind of kong; a dragon added to a whirlwind is an added kong."""


PASS = Action("pass")
FALSE_WIN = Action("false_win")
"""诈胡: to call a win without having one. It costs, and the decision stays open."""


@value
class Prompt:
    """A seat's open decision and all that it may answer."""

    decision: int
    """Counts the seat's own decisions from 1, so that a gap tells nothing of the others."""
    kind: PromptKind
    actions: tuple[Action, ...]

    def offers(self, action: Action) -> bool:
        """Whether an action is one of `actions`."""
        for offered in self.actions:
            if offered is action:  # mostly; and comparing a dozen takes a while
                return True
        return action in self.actions


@value
class AnalyzeQuestion:
    """Asked of the evaluator: what is this hand? Answered by `Analysed`."""

    number: int
    seat: int
    hand: Hand
    flowers: tuple[int, ...] = ()
    """The seat's flowers, in the order in which it laid them down."""


@value
class ScoreQuestion:
    """Asked of the evaluator: what does this finished hand pay? Answered by `Scored`."""

    number: int
    finished: FinishedHand


Question = AnalyzeQuestion | ScoreQuestion


@value
class Choose:
    """A seat answers its decision."""

    seat: int
    decision: int
    action: Action


@value
class TimeOut:
    """A seat's time for its decision has run out."""

    seat: int
    decision: int


@value
class WindowOver:
    """The claim window has lasted as long as the table lets it."""

    window: int


@value
class Analysed:
    """The evaluator's answer to an `AnalyzeQuestion`."""

    question: int
    analysis: Analysis


@value
class Scored:
    """The evaluator's answer to a `ScoreQuestion`."""

    question: int
    score: Score


TrusteeReason = Literal["timeouts", "asked", "disconnected", "removed", "back"]


@value
class SetTrustee:
    """A seat is played by the table from now on, or no longer."""

    seat: int
    on: bool
    reason: TrusteeReason = "asked"


@value
class Leave:
    """A seat leaves for good, or its grace has ended (escape 逃跑).

    If two seats' grace ends at once, the shell gives the first in turn order from the dealer
    first (rules/README, Leaving).
    """

    seat: int


@value
class Dissolve:
    """An operator, or the players by vote, end the hand unpaid (解散)."""

    reason: str


Command = Choose | TimeOut | WindowOver | Analysed | Scored | SetTrustee | Leave | Dissolve
