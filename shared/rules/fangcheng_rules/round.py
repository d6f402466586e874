"""One hand of play as a pure state machine.

Commands, the evaluator's answers, the ends of times go in; events, questions and prompts come
out. Same inputs, same events: there is no clock, no randomness and no logging in here. The
shell that drives it is this loop::

    play, events = Round.begin(setup)
    store(events)
    while not play.ended:
        for question in play.questions():          # no prompt is open meanwhile
            send(question)                         # comes back as Analysed or Scored
        for seat, prompt in play.prompts().items():
            show(seat, prompt)                     # comes back as Choose, or TimeOut
        if play.window() is not None:
            start_timer(play.window())             # comes back as WindowOver
        command = next_input()
        try:
            store(play.step(command))
        except ActionRefused as refusal:
            tell(command, refusal)                 # and nothing has changed
    settle(play.score)

Stored before anyone sees them, the events are all that is needed: `Round.replay(events)` is
equal to the live machine. Each call of `step` returns what one command brings about, up to the
point where something from outside is needed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from .actions import (
    FALSE_WIN,
    Action,
    Analysed,
    AnalyzeQuestion,
    Choose,
    Command,
    Dissolve,
    Leave,
    Prompt,
    Question,
    Scored,
    ScoreQuestion,
    SetTrustee,
    TimeOut,
    WindowOver,
)
from .errors import ActionRefused, AlreadyAnswered, NotOffered, StaleDecision, WrongSeat
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
from .hand import Hand
from .melds import MeldKind
from .moves import claimed_meld, may_win_by_draw, permitted_discards, permitted_kongs
from .ruleset import OptionValue
from .rulesets import rule_set
from .scoring import SEATS, Dissolved, Draw, EightFlowers, Escape, Score, Win
from .state import (
    AFTER,
    APPLY,
    KONG_KINDS,
    PROMPT_KINDS,
    Claimable,
    RoundState,
    SeatState,
    Stage,
)
from .tiles import PLAY_KINDS
from .wall import DEALT, dealt_indices

TURNS_RUN_OUT_TO_TRUSTEE = 3
"""Turns in a row that run out before the table plays for the seat (rules/README)."""

_RANK = {"win": 3, "kong": 2, "pong": 2, "chi": 1, "false_win": 0, "pass": 0}  # nosec B105 # no password
"""Precedence of claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandSetup:
    """What a hand begins with."""

    rule_set_id: str
    revision: int
    options: Mapping[str, OptionValue]
    """Complete, as `RuleSet.complete` returns them."""
    hand_number: int
    dealer: int
    dice: tuple[int, ...]
    wall: tuple[int, ...]
    """The shuffled tiles, index 0 drawn first."""
    trustees: tuple[bool, ...] = (False, False, False, False)
    run_outs: tuple[int, ...] = (0, 0, 0, 0)
    """Turns in a row that each seat has let run out in earlier hands (`Round.run_outs`)."""
    drawn_hands_before: int = 0


class Round(RoundState):
    """One hand of play."""

    __slots__ = ()

    @classmethod
    def begin(cls, setup: HandSetup) -> tuple[Round, list[Event]]:
        """Start a hand: the machine, and its first events.

        Raises UnknownRuleSet or UnknownRevision, and ValueError for a wall that is not the rule
        set's or a dealer that is no seat.
        """
        rules = rule_set(setup.rule_set_id, setup.revision)
        if sorted(setup.wall) != sorted(rules.wall_tiles):
            raise ValueError(f"these are not the tiles of {rules.id}")
        if setup.dealer not in SEATS:
            raise ValueError(f"there is no seat {setup.dealer}")
        first = HandStarted(
            rule_set=rules.id,
            revision=rules.revision,
            options=rules.complete(setup.options),
            hand_number=setup.hand_number,
            dealer=setup.dealer,
            dice=tuple(setup.dice),
            wall=tuple(setup.wall),
            trustees=tuple(setup.trustees),
            run_outs=tuple(setup.run_outs),
            drawn_hands_before=setup.drawn_hands_before,
        )
        play = cls.started(first)
        events: list[Event] = [first]
        play._go_on(events)
        return play, events

    @classmethod
    def replay(cls, events: Iterable[Event]) -> Round:
        """The machine that has told these events, equal to the live one."""
        rest = iter(events)
        first = next(rest)
        if not isinstance(first, HandStarted):
            raise ValueError("a hand's first event is HandStarted")
        play = cls.started(first)
        for event in rest:
            play.apply(event)
        return play

    # What is asked for.

    def questions(self) -> tuple[Question, ...]:
        """Unanswered questions to the evaluator; the same until they are answered."""
        if self.score_question is not None:
            return (ScoreQuestion(self.score_question, self.finished),)
        return tuple(
            AnalyzeQuestion(number, seat, self._hand(seat), tuple(self.seats[seat].flowers))
            for number, seat in self.pending.items()
        )

    def prompts(self) -> dict[int, Prompt]:
        """The open decision of each seat that is asked; for that seat alone."""
        return {
            number: seat.prompt for number, seat in enumerate(self.seats) if seat.prompt is not None
        }

    def window(self) -> int | None:
        """The open claim window: after every discard and every added kong."""
        return self.open_window

    @property
    def result(self) -> Score | None:
        """What the hand paid, once it has ended."""
        return self.score

    @property
    def run_outs(self) -> tuple[int, ...]:
        """Turns in a row that each seat has let run out, for the next hand's setup."""
        return tuple(seat.run_outs for seat in self.seats)

    @property
    def trustees(self) -> tuple[bool, ...]:
        """Which seats the table plays for."""
        return tuple(seat.trustee for seat in self.seats)

    def _hand(self, seat: int) -> Hand:
        return Hand.known(tuple(self.seats[seat].concealed), tuple(self.seats[seat].melds))

    # What is done.

    def step(self, command: Command) -> list[Event]:
        """Do what a command asks for, and all that follows without more from outside.

        Raises ActionRefused for a player's answer that cannot be taken, for an evaluator's that is
        about something else, and for a seat that there is not, with nothing changed.
        What the shell brings too late (a time-out of a decision answered before, an answer to a
        question that is void) changes nothing and returns no events.
        """
        events: list[Event] = _COMMANDS[type(command)](self, command)
        if events:
            for event in events:
                APPLY[type(event)](self, event)
            self._go_on(events)
        return events

    def _go_on(self, events: list[Event]) -> None:
        """Add what happens now by itself, until something from outside is needed."""
        while True:
            if self.to_ask:
                told: Sequence[Event] = [self._ask(number) for number in self.to_ask]
            else:
                told = _FOLLOWS[self.stage](self)
            if not told:
                return
            for event in told:
                APPLY[type(event)](self, event)
            events += told

    def _ask(self, number: int) -> Event:
        seat = self.seats[number]
        if seat.trustee and self.stage != "turn":
            # Its first action is to win where it has declared, no piao before the deal.
            return Answered(number, 0, self.to_ask[number][0])
        return Asked(number, seat.decisions + 1, PROMPT_KINDS[self.stage])

    # What follows by itself in each stage.

    def _after_piao(self) -> list[Event]:
        if any(seat.piao is None for seat in self.seats):
            return []
        return [PiaoShown(tuple(seat.piao or 0 for seat in self.seats))]

    def _deal(self) -> list[Event]:
        hands = tuple(
            tuple(sorted(self.wall[index] for index in indices))
            for indices in dealt_indices(self.dealer)
        )
        return [Dealt(hands, self.wall[DEALT - 1])]

    def _draw(self, seat: int, origin: DrawOrigin) -> Drew:
        is_front = origin not in ("back", "flower")
        index = self.front if is_front else self.rule_set.wall.replacement(self.wall_count)
        return Drew(seat, self.wall[index], origin)

    def _lay_flowers(self) -> list[Event]:
        """A flower is laid down and replaced at once, again until the tile is none."""
        if self.replacing is not None:
            number = self.replacing[0]
            enough = self.rule_set.flowers_win
            if enough and len(self.seats[number].flowers) >= enough:
                return [PlayEnded(EightFlowers(number))]
            if self.rule_set.wall.drawable(self.wall_count) <= 0:
                return [PlayEnded(Draw())]
            return [self._draw(number, "flower")]
        # After the deal each seat in turn order, from the dealer, until no hand holds one.
        for step in SEATS:
            seat = self.seats[(self.dealer + step) % 4]
            for tile in seat.concealed:
                if tile >= PLAY_KINDS:
                    return [FlowerLaid(seat.number, tile)]
        return []

    def _turn_up(self) -> list[Event]:
        """The next treasure, the first one after the deal."""
        turn_up = self.rule_set.turn_up
        index = turn_up(self.options, self.wall_count) if turn_up else None
        return [TreasureTurned(index, None if index is None else self.wall[index])]

    def _before_answers(self) -> Sequence[Event]:
        # What was claimed or laid down now lies face up.
        return self._turn_up() if self.treasure is not None and self.treasure_is_spent else ()

    def _replace(self) -> list[Event]:
        if self.treasure_is_spent:
            return self._turn_up()  # before any replacement is drawn
        if self.leavers:
            return [PlayEnded(Escape(self._first_leaver()))]
        return [self._draw(self.turn, "back")]

    def _before_scoring(self) -> list[Event]:
        return [self._hand_end(Score())] if isinstance(self.end, Dissolved) else []

    # A turn.

    def _play_for_silent(self) -> Sequence[Event]:
        return self._played_by_table(self.turn) if self.seats[self.turn].prompt is None else ()

    def _played_by_table(self, number: int) -> list[Event]:
        """A turn played by the table: for a trustee, a locked seat, a turn that ran out."""
        seat = self.seats[number]
        if seat.declared and may_win_by_draw(self, seat):
            return [self._self_draw(number)]
        for kong in permitted_kongs(self, seat):
            if self.rule_set.calls.must_kong(self, seat, kong):
                return self._kong(number, kong.tile, kong.kind, "")
        permitted = permitted_discards(self, seat)
        tile = seat.drawn if seat.drawn in permitted else permitted[-1]
        return [self._discard(number, tile, "")]

    def _discard(self, number: int, tile: int, declared: str) -> Discarded:
        shown: tuple[int, ...] = ()
        if declared in self.rule_set.calls.shown:
            kept = list(self.seats[number].concealed)
            kept.remove(tile)
            shown = tuple(kept)
        return Discarded(number, tile, declared, shown)

    def _kong(self, number: int, tile: int, kind: MeldKind, declared: str) -> list[Event]:
        told = KongDeclared(number, tile, kind, declared)
        if kind is MeldKind.ADDED_KONG:
            return [told]  # it can be robbed
        return [told, KongDone(number, tile, kind)]

    def _acted(self, number: int, action: Action) -> list[Event]:
        """What a seat's action in its own turn brings about."""
        match action.kind:
            case "win":
                return [self._self_draw(number)]
            case "kong":
                kind, tile = cast(MeldKind, action.meld), cast(int, action.tile)
                return self._kong(number, tile, kind, action.declare)
            case "pass":
                # A locked seat discards what it drew.
                return [self._discard(number, cast(int, self.seats[number].drawn), "")]
            case _:
                return [self._discard(number, cast(int, action.tile), action.declare)]

    def _self_draw(self, number: int) -> WinTaken:
        kong = self.last_kong
        return WinTaken(
            Win(
                winners=(number,),
                tile=cast(int, self.seats[number].drawn),
                by="self_draw",
                after_kong=KONG_KINDS[kong.kind] if kong else None,
                kong_source=kong.source if kong else None,
                on_deal=self.origin == "deal",
                after_flower=self.after_flower,
                first_round=self._first_round((number,)),
            )
        )

    def _first_round(self, winners: tuple[int, ...]) -> tuple[int, ...]:
        """地和: winners, not the dealer, before any meld and before their own first discard."""
        if any(seat.melds for seat in self.seats):
            return ()
        return tuple(
            number
            for number in winners
            if number != self.dealer and self.seats[number].first_discard is None
        )

    # Claims.

    def _resolve_claims(self) -> Sequence[Event]:
        """Settle the claims once no answer still out could outrank the best one given."""
        if self.open_window is not None:
            return ()
        table = cast(Claimable, self.claimable)
        order = AFTER[table.seat]
        best = self._best_claim(order) if self.claims else None
        asked = self.prompts()
        if asked and any(self._could_outrank(seat, best, order) for seat in asked):
            return []
        withdrawn: list[Event] = [
            Withdrawn(seat, prompt.decision) for seat, prompt in asked.items()
        ]
        if best is not None and self.claims[best].kind == "win":
            robbed = [KongRobbed(table.seat, table.tile)] if table.is_kong else []
            return [*withdrawn, *robbed, self._claimed_win(table, best, order)]
        if table.is_kong and (best is None or self.leavers):
            return [*withdrawn, KongDone(table.seat, table.tile, MeldKind.ADDED_KONG)]
        if self.leavers:
            return [*withdrawn, PlayEnded(Escape(self._first_leaver()))]
        if best is not None:
            robbed = [KongRobbed(table.seat, table.tile)] if table.is_kong else []
            is_treasure = self.claims[best].kind == "pong" and table.tile == self.treasure
            meld = claimed_meld(self.claims[best], table.seat, is_treasure)
            return [*withdrawn, *robbed, Called(best, meld)]
        if self.treasure_is_spent:
            return [*withdrawn, *self._turn_up()]
        return [*withdrawn, *self._next_draw(order[0])]

    def _best_claim(self, order: Sequence[int]) -> int | None:
        given = [seat for seat in order if seat in self.claims]
        return max(given, key=lambda seat: _RANK[self.claims[seat].kind], default=None)

    def _could_outrank(self, seat: int, best: int | None, order: Sequence[int]) -> bool:
        prompt = self.seats[seat].prompt
        if prompt is None:
            return False
        could = max(_RANK[action.kind] for action in prompt.actions)
        if self.leavers and could < _RANK["win"]:
            # The hand ends unless it is won.
            return False
        if best is None:
            return True
        given = _RANK[self.claims[best].kind]
        if could == given == _RANK["win"] and self._several_win:
            return True
        return (could, -order.index(seat)) > (given, -order.index(best))

    def _claimed_win(self, table: Claimable, best: int, order: Sequence[int]) -> WinTaken:
        winners = [best]
        if self._several_win:
            winners = [s for s in order if s in self.claims and self.claims[s].kind == "win"]
        return WinTaken(
            Win(
                winners=tuple(winners),
                tile=table.tile,
                by="rob_kong" if table.is_kong else "discard",
                source=table.seat,
                discard_after_kong=table.after_kong,
                first_round=self._first_round(tuple(winners)),
            )
        )

    @property
    def _several_win(self) -> bool:
        return self.rule_set.calls.several_winners(self.options)

    # The end of the wall.

    def _next_draw(self, seat: int) -> list[Event]:
        policy = self.rule_set.wall
        drawable = policy.drawable(self.wall_count)
        if policy.dealt_out and drawable == policy.dealt_out:
            # 分张: one to each seat before anyone is asked.
            return [
                Drew((seat + step) % 4, self.wall[self.front + step], "dealt_out")
                for step in range(policy.dealt_out)
            ]
        if drawable <= 0:
            return [PlayEnded(Draw())]
        return [self._draw(seat, "front")]

    def _resolve_dealt_out(self) -> list[Event]:
        """The first in dealing order that takes it wins by self-draw."""
        for number in self.dealt_out:
            if self.seats[number].prompt is not None:
                return []
            if number in self.claims:
                withdrawn: list[Event] = [
                    Withdrawn(seat, prompt.decision) for seat, prompt in self.prompts().items()
                ]
                return [*withdrawn, self._self_draw(number)]
        if self.leavers:
            return [PlayEnded(Escape(self._first_leaver()))]
        return [PlayEnded(Draw())]

    def _hand_end(self, score: Score) -> HandEnded:
        winners = self.end.winners if isinstance(self.end, Win) else ()
        return HandEnded(
            end=cast(Any, self.end),
            hands=tuple(self.shown(seat, seat in winners) for seat in SEATS),
            melds=tuple(tuple(seat.melds) for seat in self.seats),
            score=score,
        )

    # The commands: what each brings about at once.

    def _choose(self, command: Choose) -> list[Event]:
        number, action = command.seat, command.action
        seat = self.seats[number] if number in SEATS else None
        prompt = seat.prompt if seat is not None else None
        if prompt is None or prompt.decision != command.decision or not prompt.offers(action):
            raise self._refused(command)
        if action.kind == "false_win":
            return [FalseWinCalled(number, command.decision)]
        answered = Answered(number, command.decision, action)
        return [answered, *self._acted(number, action)] if prompt.kind == "turn" else [answered]

    def _refused(self, command: Choose) -> ActionRefused:
        """Why an answer cannot be taken."""
        seat = self._seat(command.seat)
        if command.action == FALSE_WIN and command.decision == seat.false_win > 0:
            return AlreadyAnswered("ALREADY_ANSWERED", "this answer has been taken", "decision")
        before = seat.answers.get(command.decision)
        if before == command.action:
            return AlreadyAnswered("ALREADY_ANSWERED", "this answer has been taken", "decision")
        if before is not None or 0 < command.decision < seat.decisions:
            return StaleDecision("STALE_DECISION", "this decision is past", "decision")
        if seat.prompt is None:
            if command.decision == seat.decisions > 0:
                return StaleDecision("STALE_DECISION", "this decision is past", "decision")
            return WrongSeat("NOT_ASKED", f"seat {command.seat} is not asked now", "seat")
        if seat.prompt.decision != command.decision:
            return StaleDecision("STALE_DECISION", "no such decision is open", "decision")
        return NotOffered("NOT_OFFERED", "this action is not among those offered", "action")

    def _seat(self, number: int) -> SeatState:
        """The seat that a command names; a negative number counts from no end."""
        if number not in SEATS:
            raise WrongSeat("NO_SUCH_SEAT", f"there is no seat {number}", "seat")
        return self.seats[number]

    def _time_out(self, command: TimeOut) -> list[Event]:
        seat = self._seat(command.seat)
        prompt = seat.prompt
        if prompt is None or prompt.decision != command.decision:
            return []
        events: list[Event] = [TimedOut(command.seat, command.decision)]
        match prompt.kind:
            case "turn":
                if seat.run_outs + 1 >= TURNS_RUN_OUT_TO_TRUSTEE:
                    events.append(TrusteeSet(command.seat, True, "timeouts"))
            case "piao":
                # No answer is no piao.
                events.append(Answered(command.seat, 0, prompt.actions[0]))
            case "dealt_out" if seat.declared:
                # Played as a trustee's: it has declared and can win.
                events.append(Answered(command.seat, 0, prompt.actions[0]))
            case "claim" | "dealt_out":
                pass  # A claim that runs out is a pass, and does not count.
        return events

    def _window_over(self, command: WindowOver) -> list[Event]:
        return [WindowClosed(command.window)] if command.window == self.open_window else []

    def _analysed(self, command: Analysed) -> list[Event]:
        if command.question > self.asked:
            raise ActionRefused("UNKNOWN_QUESTION", "no such question was asked", "question")
        seat = self.pending.get(command.question)
        if seat is None:
            return []
        asked, found = self.seats[seat], command.analysis
        is_whole = len(asked.concealed) + 3 * len(asked.melds) == 14
        kinds = [*dict.fromkeys(asked.concealed)] if is_whole else []
        if [choice.tile for choice in found.discards] != kinds:
            raise ActionRefused("WRONG_ANALYSIS", "this is not about the hand asked", "analysis")
        return [AnalysisKept(command.question, seat, found)]

    def _scored(self, command: Scored) -> list[Event]:
        if command.question > self.asked:
            raise ActionRefused("UNKNOWN_QUESTION", "no such question was asked", "question")
        return [self._hand_end(command.score)] if command.question == self.score_question else []

    def _set_trustee(self, command: SetTrustee) -> list[Event]:
        seat = self._seat(command.seat)
        if self.ended or seat.trustee == command.on:
            return []
        events: list[Event] = [TrusteeSet(command.seat, command.on, command.reason)]
        prompt = seat.prompt
        if not command.on or prompt is None:
            return events
        events.append(Withdrawn(command.seat, prompt.decision))
        if prompt.kind == "piao" or (
            prompt.kind != "turn" and seat.declared and prompt.actions[0].kind == "win"
        ):
            events.append(Answered(command.seat, 0, prompt.actions[0]))
        return events

    def _leave(self, command: Leave) -> list[Event]:
        seat = self._seat(command.seat)
        if self.end is not None or command.seat in self.leavers:
            return []
        if self._win_is_pending(command.seat):
            own = seat.prompt
            withdrawn: list[Event] = [Withdrawn(command.seat, own.decision)] if own else []
            return [*withdrawn, LeaveNoted(command.seat)]
        kong = self.pending_kong
        return [
            *self._withdraw_all(),
            # Nobody can rob it any more: it lies, and is paid.
            *([KongDone(kong.seat, kong.tile, kong.kind)] if kong else []),
            PlayEnded(Escape(command.seat)),
        ]

    def _win_is_pending(self, leaver: int) -> bool:
        """A claim to win is given or may still be given (rules/README, Leaving)."""
        if self.dealt_out:
            return True
        if any(claim.kind == "win" for claim in self.claims.values()):
            return True
        return self.stage == "window" and any(
            action.kind == "win"
            for seat, prompt in self.prompts().items()
            if seat != leaver
            for action in prompt.actions
        )

    def _first_leaver(self) -> int:
        return min(self.leavers, key=lambda seat: (seat - self.dealer) % 4)

    def _dissolve(self, command: Dissolve) -> list[Event]:
        if self.end is not None:
            return []
        return [*self._withdraw_all(), PlayEnded(Dissolved(command.reason))]

    def _withdraw_all(self) -> list[Event]:
        return [Withdrawn(seat, prompt.decision) for seat, prompt in self.prompts().items()]


_FOLLOWS: dict[Stage, Callable[[Round], Sequence[Event]]] = {
    "piao": Round._after_piao,
    "deal": Round._deal,
    "flowers": Round._lay_flowers,
    "treasure": Round._turn_up,
    "asking": Round._before_answers,
    "turn": Round._play_for_silent,
    "window": Round._resolve_claims,
    "replace": Round._replace,
    "dealt_out": Round._resolve_dealt_out,
    "scoring": Round._before_scoring,
    "ended": lambda play: (),
}

_COMMANDS: dict[type[Command], Any] = {
    Choose: Round._choose,
    TimeOut: Round._time_out,
    WindowOver: Round._window_over,
    Analysed: Round._analysed,
    Scored: Round._scored,
    SetTrustee: Round._set_trustee,
    Leave: Round._leave,
    Dissolve: Round._dissolve,
}
