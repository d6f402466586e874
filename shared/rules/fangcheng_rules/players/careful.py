"""The player that looks at the others: what may they be waiting for?"""

from __future__ import annotations

from collections.abc import Sequence

from .danger import dangers
from .efficient import Choice, Efficient
from .situation import Situation

WEIGHT = 3.0


class Careful(Efficient):
    """Plays as `Efficient` does, but weighs each discard against what it may cost."""

    def _discard(
        self,
        situation: Situation,
        choices: Sequence[Choice],
        best: Choice,
        unseen: Sequence[int],
    ) -> Choice:
        danger = dangers(situation, unseen)

        def worth(choice: Choice) -> float:
            hope = choice.outlook.nearness + 0.02 * choice.outlook.live
            return hope - WEIGHT * danger[choice.tile]

        if max(danger) == 0:
            return best
        return max(choices, key=lambda choice: (worth(choice), choice.rank))
