"""The player that looks at the others: what may they be waiting for?"""

from __future__ import annotations

import os
from collections.abc import Sequence

from .danger import dangers
from .efficient import Choice, Efficient
from .outlook import Outlook
from .situation import Situation

CAUTION = float(os.environ.get("CAUTION", "0.5"))
BACK = float(os.environ.get("BACK", "0.5"))
_BEHIND = (0.20, 0.0, -0.09, -0.13, -0.18, -0.24)
_USUAL = (5, 10, 20, 26, 32, 36)


def hope(outlook: Outlook, wall_left: int) -> float:
    """How likely a hand wins, by what it lacks and the tiles that are left."""
    missing = min(int(-outlook.nearness + 0.5), len(_BEHIND) - 1)
    return max(0.085 * (wall_left / 16 - 0.5) + _BEHIND[missing], 0.01)


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
        hoped = hope(best.outlook, situation.wall_left)
        most = {}
        for choice in choices:
            near, live = choice.outlook.nearness, choice.outlook.live
            most[near] = max(most.get(near, 1), live)

        def worth(choice: Choice) -> float:
            near, live = choice.outlook.nearness, choice.outlook.live
            kept = BACK ** (best.outlook.nearness - near) * (live / most[near]) ** 0.5
            return hoped * kept - CAUTION * danger[choice.tile]

        return max(choices, key=lambda choice: (worth(choice), choice.rank))
