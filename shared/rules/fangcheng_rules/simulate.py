"""Whole hands in one process: for tests, for measuring rule sets, for trying out players.

`play_hand` is the driving loop of `round.py` without times: it answers the questions itself and
lets the players answer their prompts at once. `play_hands` plays one hand after another from a
seed, as a table would.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from .actions import (
    Analysed,
    AnalyzeQuestion,
    Choose,
    Command,
    Question,
    Scored,
    WindowOver,
)
from .analysis import Analysis, Analyzer
from .events import Event
from .hand import Hand
from .melds import MeldKind
from .players import Player, SeatSeen, Situation
from .round import HandSetup, Round
from .ruleset import RuleSet, first_dealer
from .scoring import Draw, Win, score
from .state import SeatState


def play_hand(
    setup: HandSetup,
    players: Sequence[Player],
    *,
    seen: Callable[[Round, Sequence[Event]], None] | None = None,
) -> tuple[Round, list[Event]]:
    """Play one hand to its end.

    `seen` is called with the machine and the new events after each step.
    """
    play, events = Round.begin(setup)
    evaluator = Analyzer(play.rule_set, play.options)
    if seen:
        seen(play, events)
    while play.stage != "ended":
        told = play.step(_next_command(play, players, evaluator))
        events += told
        if seen:
            seen(play, told)
    return play, events


def answer(play: Round, question: Question, *, progress: bool = False) -> Command:
    """The evaluator's answer to a question of this hand."""
    return _answered(play, question, Analyzer(play.rule_set, play.options), progress)


def situation_of(
    play: Round, number: int, analyse: Callable[[Hand], Analysis] | None = None
) -> Situation:
    """What the seat of that number knows now, of a hand that is played in this process.

    `analyse` answers with progress; without it, the evaluator of this process does.
    """
    if analyse is None:
        evaluator = Analyzer(play.rule_set, play.options)
        analyse = partial(evaluator, progress=True)
    claimable = play.claimable
    return Situation(
        rule_set=play.rule_set,
        options=play.options,
        own=number,
        dealer=play.dealer,
        seats=[_seen(play, seat, number) for seat in play.seats],
        wall_left=play.tiles_left,
        analyse=analyse,
        analysis=play.seats[number].analysis,
        claimed=None if claimable is None else (claimable.seat, claimable.tile),
        turned=[play.wall[place] for place in play.turned],
        treasure=play.treasure,
    )


def _seen(play: Round, seat: SeatState, viewer: int) -> SeatSeen:
    """A seat as another sees it, or as it sees itself."""
    if seat.number == viewer:
        return SeatSeen(seat.discards, seat.melds, 0, seat.declared, seat.concealed, seat.flowers)
    shown: list[int] = []
    if seat.declared in play.rule_set.calls.shown:
        shown = list(seat.concealed)
        if seat.drawn is not None:
            shown.remove(seat.drawn)
    melds = [meld for meld in seat.melds if meld.kind is not MeldKind.CONCEALED_KONG]
    hidden = len(seat.melds) - len(melds)
    return SeatSeen(seat.discards, melds, hidden, seat.declared, shown, seat.flowers)


def _answered(play: Round, question: Question, evaluator: Analyzer, progress: bool) -> Command:
    if isinstance(question, AnalyzeQuestion):
        return Analysed(question.number, evaluator(question.hand, progress, question.flowers))
    return Scored(question.number, score(play.rule_set, play.options, question.finished))


def _next_command(play: Round, players: Sequence[Player], evaluator: Analyzer) -> Command:
    for seat in play.seats:
        prompt = seat.prompt
        if prompt is not None:
            situation = situation_of(play, seat.number, partial(evaluator, progress=True))
            chosen = players[seat.number].choose(situation, prompt)
            return Choose(seat.number, prompt.decision, chosen)
    window = play.open_window
    if window is not None:
        return WindowOver(window)
    question = play.questions()[0]
    # Progress takes longer to find, and is of use to the seat alone whose turn it is.
    progress = isinstance(question, AnalyzeQuestion) and players[question.seat].needs_progress
    return _answered(play, question, evaluator, progress)


def play_hands(
    rule_set: RuleSet,
    players: Sequence[Player],
    *,
    hands: int,
    seed: int,
    options: Mapping[str, object] | None = None,
    seen: Callable[[Round, Sequence[Event]], None] | None = None,
) -> Iterator[tuple[Round, list[Event]]]:
    """Play hands one after another, the dealer moving as the rule set says."""
    chance = random.Random(seed)  # noqa: S311 # nosec B311 # a simulation is to be repeatable
    complete = rule_set.complete(options)

    def roll(dice: int) -> tuple[int, ...]:
        return tuple(chance.randint(1, 6) for _ in range(dice))

    dealer: int | None = None
    drawn_before = 0
    for number in range(1, hands + 1):
        wall = list(rule_set.wall_tiles)
        chance.shuffle(wall)
        dice = roll(rule_set.hand_dice)
        if dealer is None:
            dealer = first_dealer(rule_set, roll(rule_set.first_dealer_dice))
        setup = HandSetup(
            rule_set_id=rule_set.id,
            revision=rule_set.revision,
            options=complete,
            hand_number=number,
            dealer=dealer,
            dice=dice,
            wall=tuple(wall),
            drawn_hands_before=drawn_before,
        )
        play, events = play_hand(setup, players, seen=seen)
        yield play, events
        dealer = rule_set.next_dealer(play.finished)
        drawn_before = drawn_before + 1 if isinstance(play.end, Draw) else 0


@dataclass(slots=True)
class Tally:
    """What many hands came to."""

    hands: int = 0
    wins: int = 0
    self_draws: int = 0
    draws: int = 0
    kongs: int = 0
    house: int = 0

    def add(self, play: Round) -> None:
        """Count one finished hand."""
        self.hands += 1
        self.kongs += play.kongs
        self.house += play.score.house if play.score else 0
        if isinstance(play.end, Win):
            self.wins += 1
            self.self_draws += play.end.by == "self_draw"
        elif isinstance(play.end, Draw):
            self.draws += 1
