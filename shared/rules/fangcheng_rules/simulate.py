"""Whole hands in one process: for tests, for measuring rule sets, for trying out players.

`play_hand` is the driving loop of `round.py` without times: it answers the questions itself and
lets the players answer their prompts at once. `play_hands` plays one hand after another from a
seed, as a table would.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .actions import (
    Action,
    Analysed,
    AnalyzeQuestion,
    Choose,
    Command,
    Prompt,
    Question,
    Scored,
    WindowOver,
)
from .analysis import Analysis, Analyzer, DiscardChoice, analyze
from .events import Event
from .hand import Hand
from .melds import Meld, MeldKind
from .round import HandSetup, Round
from .ruleset import Options, RuleSet, first_dealer
from .scoring import Draw, Win, score
from .tiles import COPIES
from .values import value


@value
class Situation:
    """What a player knows when it is asked."""

    rule_set: RuleSet
    options: Options
    concealed: Sequence[int]
    """Concealed tiles, sorted, the drawn one among them."""
    melds: Sequence[Meld]
    analysis: Analysis | None
    """Of the player's fourteen tiles in its own turn; with progress if a player needs it."""
    declared: str = ""
    """What it has declared."""


class Player(Protocol):
    """Chooses one of the actions that it is offered."""

    @property
    def needs_progress(self) -> bool:
        """Whether it looks at shanten and useful tiles, which take longer to find."""

    def choose(self, situation: Situation, prompt: Prompt) -> Action:
        """The answer to a prompt; one of `prompt.actions`."""


class RandomPlayer:
    """Does anything that is allowed, but always wins where it can."""

    needs_progress = False

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def choose(self, situation: Situation, prompt: Prompt) -> Action:
        """The win if there is one, else any action."""
        actions = prompt.actions
        if actions[0].kind == "win":
            return actions[0]
        return actions[int(self._chance.random() * len(actions))]


class SimplePlayer:
    """Goes straight for a win: the fewest tiles away, then the most useful tiles.

    The evaluator tells both under the rule set's conditions. It declares a wait where that is
    worth it (`Declaration.worth_from`), and never plays against others.
    """

    needs_progress = True

    def choose(self, situation: Situation, prompt: Prompt) -> Action:
        """The action that leaves the hand nearest to a win."""
        first = prompt.actions[0]
        if first.kind in ("win", "piao"):
            return first
        if prompt.kind == "turn":
            return self._turn(situation, prompt)
        return self._claim(situation, prompt)

    def _turn(self, situation: Situation, prompt: Prompt) -> Action:
        analysis = situation.analysis
        if analysis is None:
            raise ValueError("a turn comes with an analysis")
        hand = Hand(tuple(situation.concealed), tuple(situation.melds))
        discards = {c.tile: c for c in analysis.discards}
        kongs = {(c.tile, c.kind): c for c in analysis.kongs}
        best, least = prompt.actions[-1], float("inf")
        for action in prompt.actions:
            if action.kind == "false_win" or not _declares(situation, hand, action, discards):
                continue
            if action.kind == "pass":
                value = 0.0
            elif action.kind == "kong" and action.tile is not None and action.meld is not None:
                # A kong that leaves the hand waiting is worth its payment.
                waits = kongs[action.tile, action.meld].waits
                locks = situation.declared or action.declare
                spoilt = locks and situation.rule_set.calls.spoils(waits)
                value = -20.0 if waits and not spoilt else 5.0
            elif action.tile is not None:
                value = _distance(hand, discards[action.tile])
            value -= 0.5 if action.declare else 0.0
            if value < least:
                best, least = action, value
        return best

    def _claim(self, situation: Situation, prompt: Prompt) -> Action:
        now = Hand(tuple(situation.concealed), tuple(situation.melds))
        if len(now.concealed) + 3 * len(now.melds) != 13:
            return prompt.actions[-1]
        here = analyze(situation.rule_set, situation.options, now, progress=True)
        best = prompt.actions[-1]
        least = _distance(now, DiscardChoice(-1, here.waits, here.shanten, here.useful))
        for action in prompt.actions:
            if action.kind in ("chi", "pong"):
                after = _after_claim(now, action)
                found = analyze(situation.rule_set, situation.options, after, progress=True)
                value = min(_distance(after, choice) for choice in found.discards)
                if value < least - 0.3:
                    best, least = action, value
        return best


def _declares(
    situation: Situation, hand: Hand, action: Action, discards: Mapping[int, DiscardChoice]
) -> bool:
    """Whether the action declares nothing, or what is worth declaring."""
    if not action.declare:
        return True
    least = situation.rule_set.declarations[action.declare].worth_from
    if least is None or action.tile is None or action.kind != "discard":
        return least is not None
    held = hand.held
    return sum(COPIES - held[wait.tile] for wait in discards[action.tile].waits) >= least


def _after_claim(hand: Hand, action: Action) -> Hand:
    tile = action.tile if action.tile is not None else -1
    mine = action.tiles if action.kind == "chi" else (tile, tile)
    kind = MeldKind.CHI if action.kind == "chi" else MeldKind.PONG
    rest = list(hand.concealed)
    for used in mine:
        rest.remove(used)
    return Hand(tuple(rest), (*hand.melds, Meld(kind, (*mine, tile))))


def _distance(hand: Hand, choice: DiscardChoice) -> float:
    """How far a hand is from a win after a discard (-1: none), the less the nearer."""
    held = hand.held
    if choice.waits:
        return -2.0 - 0.05 * sum(COPIES - held[wait.tile] for wait in choice.waits)
    if choice.tile >= 0:
        held[choice.tile] -= 1
    return max(choice.shanten or 0, 1) - 0.02 * sum(COPIES - held[kind] for kind in choice.useful)


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
    progress = any(player.needs_progress for player in players)
    if seen:
        seen(play, events)
    while play.stage != "ended":
        told = play.step(_next_command(play, players, evaluator, progress))
        events += told
        if seen:
            seen(play, told)
    return play, events


def answer(play: Round, question: Question, *, progress: bool = False) -> Command:
    """The evaluator's answer to a question of this hand."""
    return _answered(play, question, Analyzer(play.rule_set, play.options), progress)


def _answered(play: Round, question: Question, evaluator: Analyzer, progress: bool) -> Command:
    if isinstance(question, AnalyzeQuestion):
        return Analysed(question.number, evaluator(question.hand, progress, question.flowers))
    return Scored(question.number, score(play.rule_set, play.options, question.finished))


def _next_command(
    play: Round, players: Sequence[Player], evaluator: Analyzer, progress: bool
) -> Command:
    for seat in play.seats:
        prompt = seat.prompt
        if prompt is not None:
            situation = Situation(
                play.rule_set,
                play.options,
                seat.concealed,
                seat.melds,
                seat.analysis,
                seat.declared,
            )
            chosen = players[seat.number].choose(situation, prompt)
            return Choose(seat.number, prompt.decision, chosen)
    window = play.open_window
    if window is not None:
        return WindowOver(window)
    return _answered(play, play.questions()[0], evaluator, progress)


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
