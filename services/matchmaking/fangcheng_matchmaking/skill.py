"""What a finished hand says of how well its players play: OpenSkill's model of Plackett and Luce.

Pure: skills and a result go in, skills come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from openskill.models import PlackettLuce

_MODEL = PlackettLuce()


@dataclass(frozen=True, slots=True)
class Skill:
    """What is believed of a player's skill in a rule set."""

    mu: float = 25.0
    """The middle of it: this is what players are matched by."""
    sigma: float = 25.0 / 3
    """How far it may be off; falls with every hand."""
    hands: int = 0
    """Hands that it is made of."""


def rated(skills: Sequence[Skill], nets: Sequence[int]) -> list[Skill]:
    """The skills of four players after a hand, by what each has won and lost in it.

    Who has won the same has done equally well: the three who lose nothing in a drawn hand, say.
    """
    before = [[_MODEL.rating(mu=skill.mu, sigma=skill.sigma)] for skill in skills]
    after = _MODEL.rate(before, scores=[float(net) for net in nets])
    return [
        Skill(rating.mu, rating.sigma, skill.hands + 1)
        for skill, (rating,) in zip(skills, after, strict=True)
    ]
