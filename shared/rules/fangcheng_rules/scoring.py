"""Finished hands of four seats, and what they pay.

`score` checks that the hand can have ended so, then lets its rule set settle it. A score is a
list of transfers, each between two seats or a seat and the house, so that all of them together
come to zero whatever the rule set does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .analysis import Reading
from .melds import Meld
from .ruleset import WinBy

KongKind = Literal["exposed", "added", "concealed"]
TransferReason = Literal["win", "kong", "piao", "follow_dealer", "draw", "escape", "false_win"]


@dataclass(frozen=True, slots=True)
class SeatEnd:
    """One seat at the end of a hand."""

    concealed: tuple[int, ...] | None = None
    """Concealed tiles without the winning tile, sorted; None: not known (never a winner's)."""
    melds: tuple[Meld, ...] = ()
    """Melds; the owner of a robbed kong is shown with its pong."""
    declared: str = ""
    """'' or what the seat declared ('ting')."""
    piao: int = 0
    """Units chosen before the deal."""
    first_discard: int | None = None

    @property
    def is_open(self) -> bool:
        """开门: a chi, a pong, an exposed or an added kong lies there."""
        return any(meld.is_open for meld in self.melds)


@dataclass(frozen=True, slots=True)
class Win:
    """One or more seats won on a tile."""

    winners: tuple[int, ...]
    tile: int
    by: WinBy
    source: int | None = None
    """The discarder, or the owner of the robbed kong; None on a self-draw."""
    after_kong: KongKind | None = None
    """The winning tile is the replacement of the winner's own kong of this kind."""
    kong_source: int | None = None
    """Whose discard became that exposed kong."""
    discard_after_kong: bool = False
    """杠后炮: the discard followed the discarder's own kong and its replacement."""
    on_deal: bool = False
    """天胡: the dealer won on the fourteen tiles dealt."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Nobody won and no tile may be drawn."""


@dataclass(frozen=True, slots=True)
class Escape:
    """A seat left for good, or longer than its grace (逃跑)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Dissolved:
    """The hand was ended unpaid (解散)."""

    reason: str = ""


End = Win | Draw | Escape | Dissolved


@dataclass(frozen=True, slots=True)
class FinishedHand:
    """Everything that a settlement depends on."""

    dealer: int
    seats: tuple[SeatEnd, ...]
    end: End
    drawn_hands_before: int = 0
    """Drawn hands in a row before this one."""


@dataclass(frozen=True, slots=True)
class FanCount:
    """A fan item with the number of times that it counts."""

    id: str
    fan: int
    """Fan of all counts together; 0 for a flat amount."""
    count: int = 1


@dataclass(frozen=True, slots=True)
class WinnerScore:
    """What counts against every loser of one winner."""

    seat: int
    items: tuple[FanCount, ...]
    fan: int
    """Sum of the items."""
    flat: int | None
    """Units that every paying loser pays instead of counting fan."""
    reading: Reading
    """How the winning hand was read."""


@dataclass(frozen=True, slots=True)
class LoserScore:
    """What one loser pays for one win, piao and kongs left aside."""

    seat: int
    winner: int
    items: tuple[FanCount, ...]
    """What this loser pays more than the winner's own items."""
    fan: int
    """The winner's fan and this loser's own together."""
    amount: int
    """Units after the cap; 0 for a loser who does not pay this win."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Units that go from one seat to another; None is the house."""

    source: int | None
    target: int | None
    amount: int
    """More than 0."""
    reason: TransferReason


@dataclass(frozen=True, slots=True)
class Score:
    """The settlement of one hand."""

    winners: tuple[WinnerScore, ...] = ()
    losers: tuple[LoserScore, ...] = ()
    transfers: tuple[Transfer, ...] = ()

    @property
    def net(self) -> tuple[int, ...]:
        """What each seat has won or lost after everything."""
        units = [0, 0, 0, 0]
        for transfer in self.transfers:
            if transfer.source is not None:
                units[transfer.source] -= transfer.amount
            if transfer.target is not None:
                units[transfer.target] += transfer.amount
        return tuple(units)

    @property
    def house(self) -> int:
        """What the house has taken."""
        return -sum(self.net)
