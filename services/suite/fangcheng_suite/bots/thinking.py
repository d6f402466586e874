"""How long a bot seems to think: as uneven as people are, and never too long for its deadline.

Log-normal, as times of people's choices tend to be: mostly short, now and then long. The figures
are a choice of ours, not measured from players.
"""

from __future__ import annotations

import random

from fangcheng.table.v1 import events_pb2

SPREAD = 0.5
"""Sigma of the logarithm: two in three waits are within 0.6 and 1.6 of the median."""

CLAIM = 0.35
"""Median of a claim, in parts of a turn's: most are settled before they come up."""
QUESTION = 0.6
"""Of whatever else is asked, such as whether one is ready."""
OF_EACH_CHOICE = 0.03
"""What each choice adds: a turn has up to fourteen, a claim two to six."""
LONGEST = 0.6
"""No wait takes more than this part of the time that is left; none of the reserve is used."""


def thinking_seconds(
    prompt: events_pb2.Prompt, turn_seconds: float, chance: random.Random
) -> float:
    """How long to wait before a prompt is answered. `turn_seconds`: the median of a usual turn, of
    thirteen choices; 0: no wait.
    """
    if not turn_seconds:
        return 0.0
    match prompt.kind:
        case "turn":
            share = 1 + OF_EACH_CHOICE * (len(prompt.actions) - 13)
        case "claim":
            share = CLAIM + OF_EACH_CHOICE * len(prompt.actions)
        case _:
            share = QUESTION
    seconds = turn_seconds * share * chance.lognormvariate(0, SPREAD)
    return min(seconds, LONGEST * prompt.ms_left / 1_000)
