"""The moment of a win, as far as it counts against every loser."""

from __future__ import annotations

from enum import IntFlag
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .scoring import FinishedHand, Win


class Moment(IntFlag):
    """What a win came about with; no flag: a plain win on another's tile."""

    SELF_DRAW = 1
    """The winner drew the tile."""
    AFTER_KONG = 2
    """The tile drawn replaced a kong of the winner's, perhaps over a flower."""
    AFTER_FLOWER = 4
    """The tile drawn itself replaced a flower."""
    ON_DEAL = 8
    """The dealer won on the tiles dealt."""
    FIRST_ROUND = 16
    """Not the dealer; before any meld of anyone and the winner's own first discard."""
    DECLARED = 32
    """The winner had declared its wait."""
    DEALER = 64
    """The winner deals."""
    OTHERS_CLOSED = 128
    """None of the three others is open (开门)."""


def moment_of(finished: FinishedHand, end: Win, number: int) -> Moment:
    """The moment of one winner's win."""
    seats = finished.seats
    holds = {
        Moment.SELF_DRAW: end.by == "self_draw",
        Moment.AFTER_KONG: end.after_kong is not None,
        Moment.AFTER_FLOWER: end.after_flower,
        Moment.ON_DEAL: end.on_deal,
        Moment.FIRST_ROUND: number in end.first_round,
        Moment.DECLARED: seats[number].declared != "",
        Moment.DEALER: number == finished.dealer,
        Moment.OTHERS_CLOSED: not any(
            seat.is_open for other, seat in enumerate(seats) if other != number
        ),
    }
    moment = Moment(0)
    for flag, held in holds.items():
        if held:
            moment |= flag
    return moment
