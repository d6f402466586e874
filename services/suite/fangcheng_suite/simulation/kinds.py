"""The kinds of players there are, by name."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from fangcheng_rules import players
from fangcheng_rules.players import AtRandom, Player

PLAYERS: Mapping[str, Callable[[random.Random], Player]] = {
    **players.PLAYERS,
    "random": AtRandom,
}


def player_of(kind: str, chance: random.Random) -> Player:
    """A player of this kind."""
    return PLAYERS[kind](chance)
