"""The kinds of players there are, by name."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from fangcheng_rules.simulate import Player, RandomPlayer, SimplePlayer

PLAYERS: Mapping[str, Callable[[random.Random], Player]] = {
    "efficient": lambda chance: SimplePlayer(),
    "random": RandomPlayer,
}


def player_of(kind: str, chance: random.Random) -> Player:
    """A player of this kind."""
    return PLAYERS[kind](chance)
