"""The state of a table: a fold of its journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from fangcheng_rules import events as play
from fangcheng_rules.round import Round
from fangcheng_rules.scoring import Draw, Escape

from .events import (
    ConnectionChanged,
    EntropyGiven,
    Event,
    HandOpened,
    HandSettled,
    HoldsReleased,
    LeaveAnnounced,
    SeatPlan,
    TableClosed,
    TableCreated,
)
from .settlement import is_owed

Phase = Literal["before_deal", "playing", "between_hands", "closed"]

PLAY_EVENTS = frozenset(get_args(play.Event))
"""The types of event that belong to a hand (a `TrusteeSet` may also stand between two)."""


@dataclass(slots=True)
class SeatState:
    """A seat as far as it outlasts a hand."""

    plan: SeatPlan
    connected: bool = False
    attended: bool = False
    """Somebody has attended it once."""
    trustee: bool = False
    trustee_reason: str = ""
    trustee_times: int = 0
    """How often the table has begun to play for it."""
    run_outs: int = 0
    """Turns in a row that it had let run out when the last hand ended."""
    leaving: Literal["", "after_hand", "now"] = ""
    entropy: bytes = b""
    standing: int = 0
    """Units won or lost at the table."""


@dataclass(slots=True)
class TableState:
    """A table, everything known."""

    created: TableCreated
    seats: list[SeatState]
    hand_number: int = 0
    dealer: int = 0
    hand: Round | None = None
    """The hand in play, or the last one."""
    drawn_hands: int = 0
    """Drawn hands in a row up to now."""
    deals_passed: int = 0
    """How often the deal has passed on to another seat."""
    settled: bool = True
    """The last hand needs no settlement any more."""
    charged: bool = False
    """A hand was settled, and with it the table's fees."""
    escaped: bool = False
    """The last hand ended by an escape."""
    gone: set[int] = field(default_factory=set)
    """Seats that were disconnected when a hand ended: they have left."""
    closed: str = ""
    released: bool = False

    @classmethod
    def opened(cls, event: TableCreated) -> TableState:
        """The state after the first event."""
        return cls(event, [SeatState(plan) for plan in event.seats])

    @classmethod
    def replay(cls, events: Iterable[Event]) -> TableState:
        """The state after these events; equal to that of the table that told them."""
        rest = iter(events)
        first = next(rest)
        if not isinstance(first, TableCreated):
            raise ValueError("a table's first event is TableCreated")
        state = cls.opened(first)
        for event in rest:
            state.follow(event)
        return state

    @property
    def in_play(self) -> Round | None:
        """The hand, while it is played."""
        return self.hand if self.hand is not None and not self.hand.ended else None

    @property
    def phase(self) -> Phase:
        """Where the table stands."""
        if self.closed:
            return "closed"
        hand = self.in_play
        if hand is None:
            return "between_hands"
        return "before_deal" if hand.stage in ("piao", "deal") else "playing"

    @property
    def done(self) -> bool:
        """Nothing is left to do."""
        return self.released

    def seat_of(self, player_id: str) -> int | None:
        """Where a player sits."""
        for number, plan in enumerate(self.created.seats):
            if plan.player_id == player_id:
                return number
        return None

    # The fold.

    def follow(self, event: Event) -> None:
        """Change the state and the hand by one event of the journal."""
        if isinstance(event, play.HandStarted):
            self.hand = Round.replay((event,))
        elif type(event) in PLAY_EVENTS and (hand := self.in_play) is not None:
            hand.apply(cast(play.Event, event))
        self.note(event)

    def note(self, event: Event) -> None:
        """Change what outlasts the hand, which has seen the event itself."""
        match event:
            case ConnectionChanged(number, connected):
                self.seats[number].connected = connected
                self.seats[number].attended |= connected
            case EntropyGiven(number, entropy):
                self.seats[number].entropy = entropy
            case LeaveAnnounced(number, now):
                self.seats[number].leaving = "now" if now else "after_hand"
            case HandOpened(hand_number):
                self.hand_number = hand_number
            case play.HandStarted():
                self.deals_passed += self.hand_number > 1 and event.dealer != self.dealer
                self.dealer = event.dealer
                self.settled = False
            case play.TrusteeSet(number, on, reason):
                seat = self.seats[number]
                seat.trustee, seat.trustee_reason = on, reason if on else ""
                seat.trustee_times += on
                seat.run_outs *= on
            case play.HandEnded():
                self._ended(event)
            case HandSettled():
                self.settled = self.charged = True
            case TableClosed(reason):
                self.closed = reason
            case HoldsReleased():
                self.released = True
            case _:
                pass

    def _ended(self, event: play.HandEnded) -> None:
        run_outs = self.hand.run_outs if self.hand is not None else (0, 0, 0, 0)
        for seat, units, times in zip(self.seats, event.score.net, run_outs, strict=True):
            seat.standing += units
            seat.run_outs = times
        self.drawn_hands = self.drawn_hands + 1 if isinstance(event.end, Draw) else 0
        self.escaped = isinstance(event.end, Escape)
        self.settled = not is_owed(self.created, charged=self.charged)
        # A seat still disconnected when a hand ends leaves then (rules/README, Leaving).
        self.gone = {number for number, seat in enumerate(self.seats) if not seat.connected}
