"""A hand of play takes any command: what it may not do is refused, and nothing has changed."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

from fangcheng_rules.actions import (
    FALSE_WIN,
    PASS,
    Action,
    Analysed,
    AnalyzeQuestion,
    Choose,
    Command,
    Dissolve,
    Leave,
    Scored,
    SetTrustee,
    TimeOut,
    WindowOver,
)
from fangcheng_rules.errors import ActionRefused
from fangcheng_rules.events import Event
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.round import HandSetup, Round
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_rules.scoring import Score
from fangcheng_rules.simulate import answer
from tests.fuzz.shares import chance, counted, in_words

FORWARD = 0.35
"""Share of the commands that move the hand on."""


def test_no_command_changes_a_hand_unless_it_is_taken() -> None:
    rng = chance("round")
    play, events = _begun(rng)
    for number in counted("round"):
        if play.ended and rng.random() < 0.1:
            play, events = _begun(rng)
        command = _proper(play, rng) if rng.random() < FORWARD else _hostile(play, rng)
        _given(play, events, command, number)


def _given(play: Round, events: list[Event], command: Command, number: int) -> None:
    """Give a command; whatever it is, the hand is the fold of its events before and after."""
    before = copy.deepcopy(play)
    try:
        told = play.step(command)
    except ActionRefused as refused:
        in_words(refused.reason, refused.message)
        told = []
    if told:
        events += told
        assert Round.replay(events) == play, (number, command)
    else:
        assert play == before, (number, command)


def _begun(rng: random.Random) -> tuple[Round, list[Event]]:
    rules = rng.choice(RULE_SETS)
    wall = list(rules.wall_tiles)
    rng.shuffle(wall)
    return Round.begin(
        HandSetup(
            rule_set_id=rules.id,
            revision=rules.revision,
            options=rules.complete(),
            hand_number=1,
            dealer=rng.randrange(4),
            dice=(1,) * rules.hand_dice,
            wall=tuple(wall),
        )
    )


def _proper(play: Round, rng: random.Random) -> Command:
    """What the shell gives next."""
    if questions := play.questions():
        return answer(play, rng.choice(questions))
    if prompts := play.prompts():
        seat, prompt = rng.choice(list(prompts.items()))
        return Choose(seat, prompt.decision, rng.choice(prompt.actions))
    return WindowOver(play.window() or 0)


def _hostile(play: Round, rng: random.Random) -> Command:
    """Anything that can be said of a hand; some of it is proper by chance."""
    return rng.choices(_HOSTILE, _WEIGHTS)[0](play, rng)


def _number(rng: random.Random) -> int:
    return rng.choice((-(2**63), -1, 0, 1, 2, 3, 7, rng.randrange(200), 2**31, 2**70))


def _seat(rng: random.Random) -> int:
    return rng.randrange(4) if rng.random() < 0.9 else rng.choice((-1, -4, 4, 7, 2**40))


def _decision(play: Round, seat: int, rng: random.Random) -> int:
    prompt = play.prompts().get(seat)
    return prompt.decision if prompt and rng.random() < 0.8 else _number(rng)


def _choose(play: Round, rng: random.Random) -> Command:
    seat = _seat(rng)
    kind = rng.choice(("discard", "chi", "pong", "kong", "win", "false_win", "pass", "piao"))
    tile = rng.choice((None, rng.randrange(42), rng.randrange(34), _number(rng)))
    action = Action(
        kind,
        tile,
        tiles=tuple(rng.randrange(42) for _ in range(rng.choice((0, 0, 2, 2, 3)))),
        declare=rng.choice(("", "", "ting", "nothing of the kind")),
        amount=rng.choice((0, 0, 1, _number(rng))),
        meld=rng.choice((None, *MeldKind)),
    )
    offered = [a for prompt in play.prompts().values() for a in prompt.actions]
    if offered and rng.random() < 0.4:
        action = rng.choice((*offered, FALSE_WIN, PASS))
    elif rng.random() < 0.3:
        action = Action(kind, tile)
    return Choose(seat, _decision(play, seat, rng), action)


def _time_out(play: Round, rng: random.Random) -> Command:
    seat = _seat(rng)
    return TimeOut(seat, _decision(play, seat, rng))


def _analysed(play: Round, rng: random.Random) -> Command:
    asked = [one for one in play.questions() if isinstance(one, AnalyzeQuestion)]
    if not asked:
        return WindowOver(_number(rng))
    # What was found of one hand, told of another.
    found = answer(play, rng.choice(asked))
    assert isinstance(found, Analysed)
    number = rng.choice((*(one.number for one in asked), _number(rng)))
    return Analysed(number, found.analysis)


def _scored(play: Round, rng: random.Random) -> Command:
    is_asked = any(not isinstance(one, AnalyzeQuestion) for one in play.questions())
    return WindowOver(_number(rng)) if is_asked else Scored(_number(rng), Score())


_HOSTILE: tuple[Callable[[Round, random.Random], Command], ...] = (
    _choose,
    _time_out,
    _analysed,
    _scored,
    lambda _, rng: WindowOver(_number(rng)),
    lambda _, rng: SetTrustee(_seat(rng), rng.random() < 0.3, rng.choice(("asked", "back"))),
    lambda _, rng: Leave(_seat(rng)),
    lambda _, rng: Dissolve(rng.choice(("", "a fault", "\x00" * 400))),
)
# Few that end a hand: most of it would never be seen.
_WEIGHTS = (60, 10, 8, 6, 6, 6, 0.3, 0.1)
