"""The state of a table: a fold of its journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from fangcheng_rules import events as play
from fangcheng_rules.round import Round
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import Draw, Escape

from .events import (
    ConnectionChanged,
    EntropyGiven,
    Event,
    GraceEnded,
    HandOpened,
    HandSettled,
    HoldsReleased,
    HoldsReturned,
    LeaveAnnounced,
    OperatorActed,
    PlayerSeated,
    ReadyAsked,
    ReadyGiven,
    ReadyMissed,
    ReserveSpent,
    SeatPlan,
    SeatVacated,
    TableClosed,
    TableCreated,
    TableDeserted,
    VoteAnswered,
    VoteClosed,
    VoteOpened,
)
from .settlement import is_owed

Phase = Literal["before_deal", "playing", "between_hands", "closed"]

PLAY_EVENTS = frozenset(get_args(play.Event))
"""The types of event that belong to a hand (a `TrusteeSet` may also stand between two)."""

NOBODY = SeatPlan("")
"""Who has a seat that waits for another player."""


@dataclass(slots=True)
class SeatState:
    """A seat as far as it outlasts a hand."""

    plan: SeatPlan
    """Who has it now; `NOBODY` where the last one has left."""
    connected: bool = False
    attended: bool = False
    """Somebody has attended it once."""
    overdue: bool = False
    """Away for longer than the grace, at a table that plays for it to the end."""
    trustee: bool = False
    trustee_reason: str = ""
    trustee_times: int = 0
    """How often the table has begun to play for it."""
    run_outs: int = 0
    """Turns in a row that it had let run out when the last hand ended."""
    leaving: Literal["", "after_hand", "now"] = ""
    leaves: str = ""
    """Why its player cannot go on after the hand in play, or the last one; '': he can. As the
    reason of `TableClosed`."""
    removed: bool = False
    """An operator has removed its player, who sees and does nothing more here."""
    ready: bool = False
    """Said so in the ready check that is open."""
    reserve_spent_ms: int = 0
    """Of its reserve in this hand."""
    proposed: tuple[int, int] = (-1, 0)
    """The last hand in (or after) which it proposed to dissolve the table, and the vote."""
    entropy: bytes = b""
    standing: int = 0
    """Units won or lost at the table."""

    @property
    def vacant(self) -> bool:
        """Nobody has the seat."""
        return not self.plan.player_id


@dataclass(slots=True)
class Vote:
    """A vote to dissolve the table, open or the last one."""

    number: int
    seat: int
    """Who proposed it."""
    answers: dict[int, bool]
    """By seat; the proposer agrees."""
    is_open: bool = True


@dataclass(slots=True)
class TableState:
    """A table, everything known."""

    created: TableCreated
    seats: list[SeatState]
    hand_number: int = 0
    dealer: int = 0
    hand: Round | None = None
    """The hand in play, or the last one."""
    next_dealer: int | None = None
    """Dealer of the next hand; None: a new first dealer, the table starts over (or begins)."""
    drawn_hands: int = 0
    """Drawn hands in a row up to now."""
    deals_passed: int = 0
    """How often the deal has passed on to another seat since the table began or started over."""
    settled: bool = True
    """The last hand needs no settlement any more."""
    charged: bool = False
    """A hand was settled, and with it the table's fees."""
    checks: int = 0
    """Ready checks up to now."""
    checking: bool = False
    """The last of them is open, or was passed: the next hand begins."""
    vote: Vote | None = None
    """The last vote."""
    vacancies: int = 0
    """How often a player has left and the table waited for another."""
    owed: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Holds of those who left, to be given back, by their vacancies."""
    former: set[str] = field(default_factory=set)
    """Players who sat here and left."""
    orders: dict[str, str] = field(default_factory=dict)
    """What operators have ordered, by request id (`OperatorActed.fingerprint`)."""
    verdict: str = ""
    """The table closes as soon as no hand is in play, for this reason; '': it goes on."""
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
        """Where a player sits now."""
        for number, seat in enumerate(self.seats):
            if seat.plan.player_id == player_id and not seat.vacant:
                return number
        return None

    def has_sat(self, player_id: str) -> bool:
        """Whether a player sits or has sat here."""
        return self.seat_of(player_id) is not None or player_id in self.former

    @property
    def hold_ids(self) -> set[str]:
        """The holds that the table has, of those who left among them."""
        sitting = (seat.plan.hold_ids for seat in self.seats)
        return {hold_id for holds in (*sitting, *self.owed.values()) for hold_id in holds}

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
        note = _NOTE.get(type(event))
        if note is not None:
            note(self, event)

    # Who is there.

    def _connection(self, event: ConnectionChanged) -> None:
        seat = self.seats[event.seat]
        seat.connected = event.connected
        seat.attended |= event.connected
        seat.overdue &= not event.connected

    def _entropy(self, event: EntropyGiven) -> None:
        self.seats[event.seat].entropy = event.entropy

    def _leave(self, event: LeaveAnnounced) -> None:
        seat = self.seats[event.seat]
        seat.leaving = "now" if event.now else "after_hand"
        seat.leaves = seat.leaves or "player_left"

    def _grace_ended(self, event: GraceEnded) -> None:
        self.seats[event.seat].overdue = True

    def _trustee(self, event: play.TrusteeSet) -> None:
        seat = self.seats[event.seat]
        seat.trustee, seat.trustee_reason = event.on, event.reason if event.on else ""
        seat.trustee_times += event.on
        seat.run_outs *= event.on

    def _reserve(self, event: ReserveSpent) -> None:
        self.seats[event.seat].reserve_spent_ms += event.ms

    # Hands.

    def _hand_opened(self, event: HandOpened) -> None:
        self.hand_number = event.hand_number
        self.checking = False
        for seat in self.seats:
            seat.ready = False
            seat.reserve_spent_ms = 0

    def _hand_started(self, event: play.HandStarted) -> None:
        if self.next_dealer is None:
            self.deals_passed = 0
        else:
            self.deals_passed += event.dealer != self.dealer
        self.dealer = event.dealer
        self.settled = False

    def _hand_ended(self, event: play.HandEnded) -> None:
        hand, created = cast(Round, self.hand), self.created
        for seat, units, times in zip(self.seats, event.score.net, hand.run_outs, strict=True):
            seat.standing += units
            seat.run_outs = times
            if created.starting_chips and created.starting_chips + seat.standing <= 0:
                seat.leaves = seat.leaves or "bankrupt"
        self.drawn_hands = self.drawn_hands + 1 if isinstance(event.end, Draw) else 0
        if isinstance(event.end, Escape):
            self.seats[event.end.seat].leaves = "escape"
        self.next_dealer = hand.rule_set.next_dealer(hand.finished)
        self.settled = not is_owed(created, event.end, charged=self.charged)
        if not any(seat.connected for seat in self.seats):
            return  # All were lost together, which counts against nobody.
        for seat in self.seats:
            # A seat still disconnected when a hand ends leaves then (rules/README, Leaving).
            if not seat.connected and not self.is_played_to_the_end:
                seat.leaves = seat.leaves or "player_left"

    @property
    def is_played_to_the_end(self) -> bool:
        """The table plays for whoever is away until the last hand, for it has one."""
        created = self.created
        length = rule_set(created.rule_set, created.revision).table_length(created.options)
        return created.timing.away == "trustee_to_end" and bool(
            created.hands or created.rounds or length
        )

    def _hand_settled(self, event: HandSettled) -> None:
        self.settled = self.charged = True
        for seat in event.short:
            self.seats[seat].leaves = self.seats[seat].leaves or "bankrupt"

    # Between two hands.

    def _ready_asked(self, event: ReadyAsked) -> None:
        self.checks, self.checking = event.check, True

    def _ready_given(self, event: ReadyGiven) -> None:
        self.seats[event.seat].ready = True

    def _ready_missed(self, event: ReadyMissed) -> None:
        seat = self.seats[event.seat]
        seat.leaves = seat.leaves or "not_ready"

    def _vacated(self, event: SeatVacated) -> None:
        plan = self.seats[event.seat].plan
        self.vacancies += 1
        self.former.add(plan.player_id)
        if plan.hold_ids:
            self.owed[self.vacancies] = plan.hold_ids
        if self.vote is not None:
            self.vote.answers.pop(event.seat, None)
        # What ids count goes on, so that none comes twice.
        times = self.seats[event.seat].trustee_times
        self.seats[event.seat] = SeatState(NOBODY, trustee_times=times)
        self._start_over()

    def _seated(self, event: PlayerSeated) -> None:
        seat = self.seats[event.seat]
        self.seats[event.seat] = SeatState(event.plan, trustee_times=seat.trustee_times)

    def _start_over(self) -> None:
        self.next_dealer = None
        self.drawn_hands = 0
        self.checking = False
        for seat in self.seats:
            seat.ready = False

    def _returned(self, event: HoldsReturned) -> None:
        del self.owed[event.vacancy]

    # Votes and operators.

    def _vote_opened(self, event: VoteOpened) -> None:
        self.vote = Vote(event.vote, event.seat, {event.seat: True})
        self.seats[event.seat].proposed = (self.hand_number, event.vote)

    def _vote_answered(self, event: VoteAnswered) -> None:
        cast(Vote, self.vote).answers[event.seat] = event.agrees

    def _vote_closed(self, event: VoteClosed) -> None:
        cast(Vote, self.vote).is_open = False
        if event.outcome == "agreed":
            self.verdict = self.verdict or "dissolved"

    def _deserted(self, event: TableDeserted) -> None:
        self.verdict = self.verdict or "deserted"

    def _ordered(self, event: OperatorActed) -> None:
        self.orders[event.action_id] = event.fingerprint
        if event.verb == "close_table":
            self.verdict = "closed"
        elif event.verb == "remove" and event.seat is not None:
            seat = self.seats[event.seat]
            seat.removed, seat.leaves = True, "removed"

    # The end.

    def _closed(self, event: TableClosed) -> None:
        self.closed = event.reason

    def _released(self, event: HoldsReleased) -> None:
        self.released = True


_NOTE: dict[type[Event], Callable[[TableState, Any], None]] = {
    ConnectionChanged: TableState._connection,
    EntropyGiven: TableState._entropy,
    LeaveAnnounced: TableState._leave,
    GraceEnded: TableState._grace_ended,
    play.TrusteeSet: TableState._trustee,
    ReserveSpent: TableState._reserve,
    HandOpened: TableState._hand_opened,
    play.HandStarted: TableState._hand_started,
    play.HandEnded: TableState._hand_ended,
    HandSettled: TableState._hand_settled,
    ReadyAsked: TableState._ready_asked,
    ReadyGiven: TableState._ready_given,
    ReadyMissed: TableState._ready_missed,
    SeatVacated: TableState._vacated,
    PlayerSeated: TableState._seated,
    HoldsReturned: TableState._returned,
    VoteOpened: TableState._vote_opened,
    VoteAnswered: TableState._vote_answered,
    VoteClosed: TableState._vote_closed,
    TableDeserted: TableState._deserted,
    OperatorActed: TableState._ordered,
    TableClosed: TableState._closed,
    HoldsReleased: TableState._released,
}
