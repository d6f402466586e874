"""Players that look at nothing but what they are offered."""

from __future__ import annotations

import random

from fangcheng_rules.actions import Action, Prompt

from .situation import Situation


class FirstLegal:
    """Takes the first action that is offered.

    So it wins where it can, makes every kong and claims whatever it may, and otherwise discards
    its lowest tile; it never declares and stakes no piao.
    """

    needs_progress = False

    def __init__(self, chance: random.Random | None = None) -> None:
        """It leaves nothing to chance."""

    def choose(self, situation: Situation, prompt: Prompt) -> Action:
        """The first action; a win that is none (诈胡) is passed over."""
        first = prompt.actions[0]
        return first if first.kind != "false_win" else prompt.actions[1]


class AtRandom:
    """Does anything that is allowed, but always wins where it can. No opponent: a measure."""

    needs_progress = False

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def choose(self, situation: Situation, prompt: Prompt) -> Action:
        """The win if there is one, else any action."""
        actions = prompt.actions
        if actions[0].kind == "win":
            return actions[0]
        return actions[int(self._chance.random() * len(actions))]
