"""The state of one hand of play: a fold of its events.

`RoundState.apply` is the only place where anything changes. What happens next, and what a
seat may do, is decided elsewhere (`round.py`, `moves.py`) from what stands here.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, cast

from .actions import FALSE_WIN, PASS, Action, Prompt, PromptKind
from .analysis import Analysis, DiscardChoice, KongChoice, Wait
from .events import (
    AnalysisKept,
    Answered,
    Asked,
    Called,
    Dealt,
    Discarded,
    DrawOrigin,
    Drew,
    Event,
    FalseWinCalled,
    FlowerLaid,
    HandEnded,
    HandStarted,
    KongDeclared,
    KongDone,
    KongRobbed,
    LeaveNoted,
    PiaoShown,
    PlayEnded,
    TimedOut,
    TreasureTurned,
    TrusteeSet,
    WindowClosed,
    WinTaken,
    Withdrawn,
)
from .melds import Meld, MeldKind
from .moves import claim_actions, may_win_by_draw, rob_actions, turn_actions
from .ruleset import Options, RuleSet, WallCount
from .rulesets import rule_set
from .scoring import SEATS, Dissolved, End, FinishedHand, KongKind, Score, SeatEnd, Win
from .tiles import COPIES, DRAGONS, PLAY_KINDS
from .values import value
from .wall import DEALT

Stage = Literal[
    "piao",  # seats choose before the deal
    "deal",  # all have chosen
    "flowers",  # flowers are laid down and replaced
    "treasure",  # the first treasure is turned up
    "asking",  # the evaluator is asked about the hands in this turn
    "turn",  # the seat whose turn it is acts
    "window",  # a discard or an added kong may be claimed
    "replace",  # a kong stands, its replacement is next
    "dealt_out",  # the last tiles are dealt out and may be won on
    "scoring",  # the hand is decided, the evaluator is asked what it pays
    "ended",
]

PROMPT_KINDS: dict[Stage, PromptKind] = {
    "piao": "piao",
    "turn": "turn",
    "window": "claim",
    "dealt_out": "dealt_out",
}
"""What a seat is asked for in each stage in which it is asked."""

AFTER = ((1, 2, 3), (2, 3, 0), (3, 0, 1), (0, 1, 2))
"""The other seats in turn order, by seat."""

KONG_KINDS: dict[MeldKind, KongKind] = {
    MeldKind.EXPOSED_KONG: "exposed",
    MeldKind.ADDED_KONG: "added",
    MeldKind.CONCEALED_KONG: "concealed",
}


@dataclass(slots=True)
class SeatState:
    """One seat in the middle of a hand (satisfies `ruleset.SeatInPlay`)."""

    number: int
    trustee: bool
    """Played by the table (托管)."""
    run_outs: int
    """Turns in a row that ran out."""
    piao: int | None = None
    """Units chosen before the deal; None: not yet."""
    concealed: list[int] = field(default_factory=list)
    """Concealed tiles, sorted, the drawn one among them."""
    melds: list[Meld] = field(default_factory=list)
    flowers: list[int] = field(default_factory=list)
    """Flowers, in the order in which they were laid down."""
    drawn: int | None = None
    """The tile just drawn, in the seat's own turn after a draw."""
    waits: tuple[Wait, ...] = ()
    """Legal waits of the thirteen tiles kept between turns, as the evaluator told them."""
    claim_kongs: tuple[KongChoice, ...] = ()
    """The exposed kongs that these could make of a discard, where they wait."""
    analysis: Analysis | None = None
    """What the evaluator told of the hand in the seat's current turn."""
    declared: str = ""
    declared_open: bool = False
    """The seat was open when it declared."""
    spoilt: bool = False
    """A kong after declaring spoilt the wait: dead for the hand."""
    discards: list[int] = field(default_factory=list)
    """Its discards that nobody has claimed, oldest first."""
    first_discard: int | None = None
    turn_claim: Meld | None = None
    """The claim with which its turn began, until it acts anew; None after a draw."""
    last_discard: int | None = None
    """The kind that it discarded last; None as soon as it acts."""
    passed: tuple[Wait, ...] = ()
    """Waits that others discarded since it last acted, and on which it did not win."""
    decisions: int = 0
    """How many decisions the seat has been asked for in this hand."""
    prompt: Prompt | None = None
    """The open decision."""
    answers: dict[int, Action] = field(default_factory=dict)
    """Its answers by decision."""
    false_win: int = 0
    """The last decision in which it called a win that it did not have."""

    @property
    def is_open(self) -> bool:
        """开门: a chi, a pong, an exposed or an added kong lies there."""
        return any(meld.is_open for meld in self.melds)

    def acts(self) -> None:
        """It draws, chis, pongs or kongs: what bound it since its last action binds no more."""
        self.last_discard = None
        self.passed = ()

    def keeps(self, choice: DiscardChoice) -> None:
        """The thirteen tiles that are left after a discard are known."""
        self.waits = choice.waits
        self.claim_kongs = choice.claim_kongs

    def choice(self, tile: int) -> DiscardChoice:
        """What its fourteen tiles are after a discard."""
        for choice in self.analysis.discards if self.analysis is not None else ():
            if choice.tile == tile:
                return choice
        raise ValueError(f"there is no {tile} to discard")


@value
class Claimable:
    """The discard or the tile of the added kong that lies open to claims."""

    seat: int
    tile: int
    is_kong: bool
    after_kong: bool
    """The discard followed its seat's own kong and replacement (杠后炮)."""
    robbed: DiscardChoice | None = None
    """An added kong: what its owner is left with if the tile is robbed."""


@value
class LastKong:
    """The kong whose replacement the seat in turn has drawn or is about to draw."""

    kind: MeldKind
    source: int | None


@dataclass(slots=True)
class RoundState:
    """One hand of play, everything known (nothing of it is fit to be shown as it is)."""

    rule_set: RuleSet
    options: Options
    hand_number: int
    dealer: int
    dice: tuple[int, ...]
    wall: tuple[int, ...]
    drawn_hands_before: int
    seats: list[SeatState]
    stage: Stage
    front: int = 0
    """Index in the wall of the next tile drawn from the front."""
    replacements: int = 0
    """Tiles taken from the back."""
    kongs: int = 0
    """Kongs made and not robbed."""
    turn: int = 0
    """The seat whose turn it is, or whose discard or kong lies open to claims."""
    origin: DrawOrigin | Literal["deal", ""] = ""
    """Where the drawn tile of this turn came from; '' after a claim."""
    after_flower: bool = False
    """The drawn tile of this turn replaced a flower."""
    ran_out: bool = False
    """The time of this turn ran out: the table plays what is left of it."""
    last_kong: LastKong | None = None
    pending_kong: KongDeclared | None = None
    replacing: tuple[int, bool] | None = None
    """The seat that has laid down a flower and lacks its replacement, and whether the flower was
    its drawn tile."""
    turned: list[int] = field(default_factory=list)
    """Places of the tiles turned up on the wall, newest last."""
    treasure: int | None = None
    """The kind of the treasure, if there is one now."""
    false_wins: list[int] = field(default_factory=list)
    """Seats that called a win without having one, once for each call."""
    claimable: Claimable | None = None
    claims: dict[int, Action] = field(default_factory=dict)
    """Claims given so far on the open tile (or for the tiles dealt out), passes left out."""
    to_ask: dict[int, tuple[Action, ...]] = field(default_factory=dict)
    """Seats about to be asked, with what they may answer."""
    windows: int = 0
    """Claim windows opened so far."""
    open_window: int | None = None
    asked: int = 0
    """Questions put to the evaluator so far."""
    pending: dict[int, int] = field(default_factory=dict)
    """Unanswered questions about hands, by number: the seat."""
    score_question: int | None = None
    dealt_out: list[int] = field(default_factory=list)
    """Seats that were dealt one of the last tiles, in dealing order."""
    leavers: list[int] = field(default_factory=list)
    """Seats that left while a claim to win was pending."""
    end: End | None = None
    score: Score | None = None

    @classmethod
    def started(cls, event: HandStarted) -> Self:
        """The state after the first event."""
        rules = rule_set(event.rule_set, event.revision)
        state = cls(
            rule_set=rules,
            options=event.options,
            hand_number=event.hand_number,
            dealer=event.dealer,
            dice=event.dice,
            wall=event.wall,
            drawn_hands_before=event.drawn_hands_before,
            seats=[
                SeatState(number, trustee, run_outs)
                for number, trustee, run_outs in zip(
                    SEATS, event.trustees, event.run_outs, strict=True
                )
            ],
            stage="deal",
            turn=event.dealer,
        )
        choices = tuple(Action("piao", amount=units) for units in rules.piao_choices(event.options))
        if choices:
            state.stage = "piao"
            state.to_ask = dict.fromkeys(SEATS, choices)
        return state

    # What can be read off.

    @property
    def wall_count(self) -> WallCount:
        """How far the wall has been taken."""
        due = 1 if self.stage == "replace" else 0
        turned = tuple(self.turned)
        return WallCount(len(self.wall), self.front, self.replacements, self.kongs, turned, due)

    @property
    def tiles_left(self) -> int:
        """Tiles of the wall that nobody has taken."""
        return len(self.wall) - self.front - self.replacements

    @property
    def treasure_is_spent(self) -> bool:
        """The three other copies of the treasure are all face up (换宝)."""
        if self.treasure is None:
            return False
        face_up = 0
        for seat in self.seats:
            face_up += seat.discards.count(self.treasure)
            for meld in seat.melds:
                if meld.is_open:
                    face_up += meld.tiles.count(self.treasure)
        return face_up >= COPIES - 1

    @property
    def ended(self) -> bool:
        """Nothing can happen any more."""
        return self.stage == "ended"

    @property
    def finished(self) -> FinishedHand:
        """The hand as it is put to the scorer, once its end is decided."""
        if self.end is None:
            raise ValueError("the hand is still being played")
        winners = self.end.winners if isinstance(self.end, Win) else ()
        seats = tuple(
            SeatEnd(
                # Before the deal nobody has a hand to show.
                concealed=self.shown(seat, seat in winners) if self.front else None,
                melds=tuple(state.melds),
                declared=state.declared,
                piao=state.piao or 0,
                first_discard=state.first_discard,
                flowers=tuple(state.flowers),
            )
            for seat, state in enumerate(self.seats)
        )
        return FinishedHand(
            self.dealer,
            seats,
            self.end,
            self.drawn_hands_before,
            self.treasure,
            tuple(self.false_wins),
        )

    def shown(self, seat: int, is_winner: bool = False) -> tuple[int, ...]:
        """A seat's concealed tiles, without the winning tile if that was drawn."""
        tiles = list(self.seats[seat].concealed)
        if is_winner and isinstance(self.end, Win) and self.end.by == "self_draw":
            tiles.remove(self.end.tile)
        return tuple(tiles)

    # The fold.

    def apply(self, event: Event) -> None:
        """Change the state by one event."""
        APPLY[type(event)](self, event)

    def _ask_about(self, seat: int) -> None:
        self.asked += 1
        self.pending[self.asked] = seat
        self.stage = "asking"

    def _asked(self, event: Asked) -> None:
        seat = self.seats[event.seat]
        seat.decisions = event.decision
        seat.prompt = Prompt(event.decision, event.kind, self.to_ask.pop(event.seat))

    def _answered(self, event: Answered) -> None:
        seat = self.seats[event.seat]
        prompt = seat.prompt
        kind = PROMPT_KINDS[self.stage] if prompt is None else prompt.kind
        if event.decision:
            seat.answers[event.decision] = event.action
            seat.prompt = None
            if kind == "turn":
                seat.run_outs = 0
        else:
            self.to_ask.pop(event.seat, None)
        if kind == "piao":
            seat.piao = event.action.amount
        elif kind != "turn" and event.action.kind != "pass":
            self.claims[event.seat] = event.action

    def _timed_out(self, event: TimedOut) -> None:
        seat = self.seats[event.seat]
        if seat.prompt is not None and seat.prompt.kind == "turn":
            seat.run_outs += 1
            self.ran_out = True
        seat.prompt = None

    def _withdrawn(self, event: Withdrawn) -> None:
        self.seats[event.seat].prompt = None

    def _trustee_set(self, event: TrusteeSet) -> None:
        seat = self.seats[event.seat]
        seat.trustee = event.on
        if not event.on:
            seat.run_outs = 0

    def _piao_shown(self, event: PiaoShown) -> None:
        for seat, units in zip(self.seats, event.units, strict=True):
            seat.piao = units
        self.stage = "deal"

    def _dealt(self, event: Dealt) -> None:
        for seat, hand in zip(self.seats, event.hands, strict=True):
            seat.concealed = list(hand)
        self.front = DEALT
        self.turn = self.dealer
        self.origin = "deal"
        self.seats[self.dealer].drawn = event.dealer_drew
        self._go_on_dealing()

    def _go_on_dealing(self) -> None:
        """After the deal: flowers, then the treasure, then all hands are asked about."""
        if any(seat.concealed[-1] >= PLAY_KINDS for seat in self.seats):
            self.stage = "flowers"
        elif self.rule_set.turn_up is not None and not self.turned:
            self.stage = "treasure"
        else:
            for step in SEATS:
                self._ask_about((self.dealer + step) % 4)

    def _drew(self, event: Drew) -> None:
        if event.origin == "flower":
            self._flower_replaced(event)
            return
        if event.origin == "back":
            self.replacements += 1
        else:
            self.front += 1
            self.last_kong = None
        self.claimable = None
        self.turn = event.seat
        self.origin = event.origin
        self.after_flower = False
        seat = self.seats[event.seat]
        if event.origin != "back":
            seat.turn_claim = None
        seat.acts()
        if event.origin == "dealt_out":
            self.dealt_out.append(event.seat)
        self._drawn(seat, event.tile)

    def _drawn(self, seat: SeatState, tile: int) -> None:
        insort(seat.concealed, tile)
        seat.drawn = tile
        if tile >= PLAY_KINDS:
            self.stage = "flowers"
        else:
            self._ask_about(seat.number)

    def _flower_laid(self, event: FlowerLaid) -> None:
        seat = self.seats[event.seat]
        seat.concealed.remove(event.tile)
        seat.flowers.append(event.tile)
        self.replacing = event.seat, seat.drawn == event.tile
        if seat.drawn == event.tile:
            seat.drawn = None

    def _flower_replaced(self, event: Drew) -> None:
        self.replacements += 1
        seat = self.seats[event.seat]
        was_drawn = cast(tuple[int, bool], self.replacing)[1]
        self.replacing = None
        if was_drawn:
            self.after_flower = True
        if self.origin == "deal":
            insort(seat.concealed, event.tile)
            if was_drawn:
                seat.drawn = event.tile
            self._go_on_dealing()
        else:
            self._drawn(seat, event.tile)

    def _treasure_turned(self, event: TreasureTurned) -> None:
        self.treasure = event.tile
        if event.index is not None:
            self.turned.append(event.index)
        if self.stage == "treasure":
            self._go_on_dealing()

    def _analysis_kept(self, event: AnalysisKept) -> None:
        del self.pending[event.question]
        seat = self.seats[event.seat]
        analysis = event.analysis
        if seat.drawn is None and event.seat != self.turn:
            seat.waits = analysis.waits
            seat.claim_kongs = analysis.claim_kongs
        else:
            seat.analysis = analysis
            if seat.drawn is not None:
                # The thirteen without the drawn tile: after an exposed kong this is the first
                # that is heard of their waits.
                seat.keeps(seat.choice(seat.drawn))
                if seat.declared:
                    self._check_spoilt(seat)
        if self.pending:
            return
        if self.dealt_out:
            self.stage = "dealt_out"
            for number in self.dealt_out:
                self._ask_dealt_out(number)
        else:
            self.stage = "turn"
            actor = self.seats[self.turn]
            by_table = actor.trustee or self.ran_out
            if not by_table and (actions := turn_actions(self, actor)):
                self.to_ask[self.turn] = actions

    def _check_spoilt(self, seat: SeatState) -> None:
        if seat.declared and self.last_kong and self.rule_set.calls.spoils(seat.waits):
            seat.spoilt = True

    def _ask_dealt_out(self, number: int) -> None:
        seat = self.seats[number]
        if may_win_by_draw(self, seat):
            self._ask_to_claim(number, (Action("win", seat.drawn), PASS))

    def _ask_to_claim(self, number: int, actions: tuple[Action, ...]) -> None:
        # A trustee passes every claim, but wins where it has declared (rules/README).
        seat = self.seats[number]
        if seat.trustee and not (seat.declared and actions[0].kind == "win"):
            return
        self.to_ask[number] = actions

    def _discarded(self, event: Discarded) -> None:
        seat = self.seats[event.seat]
        seat.concealed.remove(event.tile)
        seat.discards.append(event.tile)
        if seat.first_discard is None:
            seat.first_discard = event.tile
        if event.declared:
            seat.declared_open = seat.is_open
            seat.declared = event.declared
        self.ran_out = False
        seat.last_discard = event.tile
        seat.keeps(seat.choice(event.tile))
        self._open_to_claims(
            Claimable(event.seat, event.tile, False, self.last_kong is not None, None)
        )

    def _open_to_claims(self, claimable: Claimable) -> None:
        source, tile = claimable.seat, claimable.tile
        actor = self.seats[source]
        actor.drawn = None
        actor.analysis = None
        self.to_ask.clear()
        self.claims.clear()
        self.claimable = claimable
        self.windows += 1
        self.open_window = self.windows
        self.stage = "window"
        for number in AFTER[source]:
            seat = self.seats[number]
            if claimable.is_kong:
                actions = rob_actions(self, seat, tile)
            else:
                actions = claim_actions(self, seat, tile, source)
            if actions:
                self._ask_to_claim(number, actions)
                if actions[0].kind == "win" and not claimable.is_kong:
                    # Passed, unless the hand ends with it or a claim of its own clears it.
                    wait = next(wait for wait in seat.waits if wait.tile == tile)
                    seat.passed = (*seat.passed, wait)

    def _called(self, event: Called) -> None:
        meld = event.meld
        claimed = cast(int, meld.claimed)
        if not cast(Claimable, self.claimable).is_kong:
            self.seats[cast(int, meld.source)].discards.pop()
        seat = self.seats[event.seat]
        seat.acts()
        seat.turn_claim = meld
        mine = list(meld.tiles)
        mine.remove(claimed)
        for tile in mine:
            seat.concealed.remove(tile)
        seat.melds.append(meld)
        self.claimable = None
        self.turn = event.seat
        self.origin = ""
        self.after_flower = False
        if meld.is_kong:
            self.kongs += 1
            self.last_kong = LastKong(meld.kind, meld.source)
            self.stage = "replace"
        else:
            self.last_kong = None
            self._ask_about(event.seat)

    def _kong_declared(self, event: KongDeclared) -> None:
        seat = self.seats[event.seat]
        if event.declared:
            seat.declared_open = seat.is_open
            seat.declared = event.declared
        self.pending_kong = event
        seat.acts()
        if event.kind is MeldKind.WHIRLWIND:
            return  # fourteen tiles are left, and are asked about
        analysis = cast(Analysis, seat.analysis)
        seat.waits = next(
            choice.waits
            for choice in analysis.kongs
            if (choice.tile, choice.kind) == (event.tile, event.kind)
        )
        if event.kind is MeldKind.ADDED_KONG:
            robbed = seat.choice(event.tile)
            seat.concealed.remove(event.tile)
            self._open_to_claims(Claimable(event.seat, event.tile, True, False, robbed))

    def _kong_done(self, event: KongDone) -> None:
        seat = self.seats[event.seat]
        if event.kind is MeldKind.WHIRLWIND:
            self._whirlwind_laid(seat)
            return
        if event.kind is MeldKind.ADDED_KONG:
            place = next(i for i, meld in enumerate(seat.melds) if meld.takes(event.tile))
            seat.melds[place] = seat.melds[place].plus(event.tile)
        else:
            for _ in range(4):
                seat.concealed.remove(event.tile)
            seat.melds.append(Meld(event.kind, (event.tile,) * 4))
        seat.drawn = None
        seat.analysis = None
        self.to_ask.clear()
        self.pending_kong = None
        self.claimable = None
        self.kongs += 1
        self.last_kong = LastKong(event.kind, None)
        self._check_spoilt(seat)
        self.stage = "replace"

    def _whirlwind_laid(self, seat: SeatState) -> None:
        """The three dragons lie; no tile replaces them, since the hand stays complete."""
        for dragon in DRAGONS:
            seat.concealed.remove(dragon)
        seat.melds.append(Meld(MeldKind.WHIRLWIND, tuple(DRAGONS)))
        if seat.drawn not in seat.concealed:
            seat.drawn = None
        seat.analysis = None
        self.to_ask.clear()
        self.pending_kong = None
        self.kongs += 1
        self._ask_about(seat.number)

    def _kong_robbed(self, event: KongRobbed) -> None:
        self.pending_kong = None
        # What it is left with, if the tile was not won on but ponged.
        self.seats[event.seat].keeps(cast(DiscardChoice, cast(Claimable, self.claimable).robbed))

    def _false_win_called(self, event: FalseWinCalled) -> None:
        seat = self.seats[event.seat]
        prompt = cast(Prompt, seat.prompt)
        others = tuple(action for action in prompt.actions if action != FALSE_WIN)
        seat.prompt = Prompt(prompt.decision, prompt.kind, others)
        seat.false_win = event.decision
        self.false_wins.append(event.seat)

    def _window_closed(self, event: WindowClosed) -> None:
        self.open_window = None

    def _leave_noted(self, event: LeaveNoted) -> None:
        self.leavers.append(event.seat)

    def _end_decided(self, event: WinTaken | PlayEnded) -> None:
        self.end = event.end
        self.stage = "scoring"
        self.open_window = None
        self.pending.clear()
        self.to_ask.clear()
        self.claims.clear()
        if not isinstance(event.end, Dissolved):
            self.asked += 1
            self.score_question = self.asked

    def _hand_ended(self, event: HandEnded) -> None:
        self.score = event.score
        self.score_question = None
        self.stage = "ended"


APPLY: Final[dict[type[Event], Callable[[RoundState, Any], None]]] = {
    Asked: RoundState._asked,
    Answered: RoundState._answered,
    TimedOut: RoundState._timed_out,
    Withdrawn: RoundState._withdrawn,
    TrusteeSet: RoundState._trustee_set,
    PiaoShown: RoundState._piao_shown,
    Dealt: RoundState._dealt,
    AnalysisKept: RoundState._analysis_kept,
    Drew: RoundState._drew,
    FlowerLaid: RoundState._flower_laid,
    TreasureTurned: RoundState._treasure_turned,
    Discarded: RoundState._discarded,
    Called: RoundState._called,
    KongDeclared: RoundState._kong_declared,
    KongDone: RoundState._kong_done,
    KongRobbed: RoundState._kong_robbed,
    FalseWinCalled: RoundState._false_win_called,
    WindowClosed: RoundState._window_closed,
    LeaveNoted: RoundState._leave_noted,
    WinTaken: RoundState._end_decided,
    PlayEnded: RoundState._end_decided,
    HandEnded: RoundState._hand_ended,
}
