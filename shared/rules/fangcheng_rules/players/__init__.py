"""Players: whoever answers prompts in a simulation, a test or at a live table, on plain data.

    player = PLAYERS["careful"](random.Random(1))
    action = player.choose(situation, prompt)  # one of prompt.actions

`Situation` is what a seat sees at a table and no more; `situation_of` (`fangcheng_rules.simulate`)
makes one of a hand that is played in this process, the live bots make one of what they were sent.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from .careful import Careful
from .efficient import Efficient
from .plain import AtRandom, FirstLegal
from .situation import Player, SeatSeen, Situation, hands_asked

__all__ = [
    "PLAYERS",
    "STRENGTH",
    "AtRandom",
    "Careful",
    "Efficient",
    "FirstLegal",
    "Player",
    "SeatSeen",
    "Situation",
    "hands_asked",
]

PLAYERS: Mapping[str, Callable[[random.Random], Player]] = {
    "first_legal": FirstLegal,
    "efficient": Efficient,
    "careful": Careful,
}
"""The strengths, the weakest first. What is given is all that a player leaves to chance."""

STRENGTH = "efficient"
"""What plays where nothing else is asked for."""
