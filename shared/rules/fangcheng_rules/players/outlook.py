"""How good a hand is, as far as the tiles tell that a player sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fangcheng_rules.analysis import Analysis, DiscardChoice, Wait
from fangcheng_rules.ruleset import Declaration

DEAD_WAIT = 0.5
"""Ready on tiles that are all gone is little better than to be one away."""


class Outlook(NamedTuple):
    """How good a hand of 13 tiles is; a greater one is better. Compared field by field."""

    nearness: float
    """Minus the tiles still missing: 0 is ready on a wait that can come."""
    live: int
    """Tiles not yet seen that win (when ready) or help."""
    kinds: int = 0
    """Kinds of wait; decides between hands that are otherwise alike."""

    @property
    def ready(self) -> bool:
        """A tile that may be won on can still come."""
        return self.nearness >= 0

    def declares(self, declaration: Declaration) -> bool:
        """Whether it is worth declaring that."""
        least = declaration.worth_from
        return least is not None and self.ready and self.live >= least


def after_discard(choice: DiscardChoice, unseen: Sequence[int]) -> Outlook:
    """The outlook of a hand of 14 after one of its discards."""
    return _outlook(choice.waits, choice.shanten, choice.useful, unseen)


def standing(analysis: Analysis, unseen: Sequence[int]) -> Outlook:
    """The outlook of a hand of 13."""
    return _outlook(analysis.waits, analysis.shanten, analysis.useful, unseen)


def best_discard(analysis: Analysis, unseen: Sequence[int]) -> Outlook | None:
    """The outlook of a hand of 14 after the best of its discards; None where it has none."""
    return max((after_discard(choice, unseen) for choice in analysis.discards), default=None)


def _outlook(
    waits: Sequence[Wait], shanten: int | None, useful: Sequence[int], unseen: Sequence[int]
) -> Outlook:
    if waits and (winning := sum([unseen[wait.tile] for wait in waits])):
        return Outlook(0, winning, len(waits))
    if shanten is None:
        raise ValueError("an analysis without progress tells no outlook")
    return Outlook(-max(shanten, DEAD_WAIT), sum([unseen[tile] for tile in useful]))
