"""What is to be played: all that the figures follow from."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fangcheng_rules.ruleset import OptionValue, RuleSet
from fangcheng_rules.rulesets import rule_set

LADDER = ((1, 4), (1, 2), (1, 1), (2, 1), (4, 1))
"""The other buy-ins that are reckoned with the same hands, as fractions of the one asked about."""


@dataclass(frozen=True, slots=True)
class Stakes:
    """For what is played, in the smallest unit of one currency; see matchmaking's pools."""

    per_unit: int = 10
    """What one unit of the rules is worth."""
    buy_in: int = 5_000
    """What each player has when he sits down. He has nothing else: nobody tops up."""
    minimum: int = 0
    """Who has less than this after a hand cannot go on."""
    loss_cap: int = 0
    """What nobody loses more than in a hand; 0: no cap."""
    fee: int = 0
    """What each pays to the house with the first hand."""

    @property
    def buy_ins(self) -> tuple[int, ...]:
        """Those that are reckoned, ascending; the one asked about among them."""
        found = {self.buy_in * times // parts for times, parts in LADDER}
        return tuple(sorted(one for one in found if one >= max(1, self.minimum)))


@dataclass(frozen=True, slots=True)
class Plan:
    """What is played."""

    rule_set: str
    revision: int
    options: Mapping[str, OptionValue]
    """Every option, spelled out."""
    players: tuple[str, ...]
    """Four kinds of players, by their names in `PLAYERS`. They move on a seat each session."""
    hands: int
    """Of all sessions together; the last session is shorter where they do not come out even."""
    session_hands: int
    seed: int
    stakes: Stakes

    @property
    def rules(self) -> RuleSet:
        """The rule set in its revision."""
        return rule_set(self.rule_set, self.revision)

    @property
    def sessions(self) -> int:
        """How many sessions there are, one that is shorter included."""
        return -(-self.hands // self.session_hands)

    def hands_of(self, session: int) -> int:
        """How many hands this session has; sessions count from 0."""
        return min(self.session_hands, self.hands - session * self.session_hands)

    def seated(self, session: int) -> Iterator[int]:
        """By seat, which of `players` sits there in this session."""
        return ((seat + session) % 4 for seat in range(4))

    def seed_of(self, session: int, what: str) -> int:
        """The seed of something in a session: of the seed and its number alone."""
        text = f"fangcheng simulate/{self.seed}/{session}/{what}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])

    def chance(self, session: int, what: str) -> random.Random:
        """Chance for something in a session."""
        seed = self.seed_of(session, what)
        return random.Random(seed)  # noqa: S311 # nosec B311 # a simulation is to be repeatable
