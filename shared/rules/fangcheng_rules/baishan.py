"""What the two rule sets of Baishan play alike: plain functions for their files to call."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .analysis import Wait, analyze
from .errors import IllegalWin
from .hand import Hand
from .melds import Meld, MeldKind
from .ruleset import Declaration, Options, RuleSet, SeatInPlay, TableInPlay, WallCount, WallPolicy
from .tiles import COPIES, from_name, is_suited

if TYPE_CHECKING:
    from .scoring import FinishedHand, SeatEnd

UNDRAWN_WITHOUT_KONG = 14
DEALT_OUT = 4
GREAT_KONGS = frozenset(map(from_name, ("1m", "1p", "1s")))
"""大杠, 大蛋: their kongs pay double."""


# ---- The end of the wall ----


def _drawable(wall: WallCount) -> int:
    # Without a kong 14 tiles stay undrawn; after any kong all are drawn.
    return wall.left if wall.kongs else wall.left - UNDRAWN_WITHOUT_KONG


def _may_kong(wall: WallCount) -> bool:
    # No kong once only the four that are dealt out are left.
    return _drawable(wall) > DEALT_OUT


WALL = WallPolicy(drawable=_drawable, may_kong=_may_kong, dealt_out=DEALT_OUT)


# ---- 听, 报听: the declared wait ----


def ting(name_zh: str) -> Declaration:
    """听, under the rule set's own name."""
    return Declaration(
        id="ting",
        name_zh=name_zh,
        name_en="declared wait",
        meaning="The hand waits on one kind and is locked; a fan more, for a loser too.",
    )


def declarations(
    table: TableInPlay, seat: SeatInPlay, waits: tuple[Wait, ...], kong: MeldKind | None
) -> tuple[str, ...]:
    """With a discard or, before its kong, in place of one (允许杠前报听)."""
    return ("ting",) if not seat.declared and len(waits) == 1 else ()


def check_declared(
    rule_set: RuleSet, options: Options, finished: FinishedHand, number: int
) -> None:
    """Refuse a winner that has declared and waits on more than one kind, or none."""
    seat = finished.seats[number]
    if not seat.declared:
        return
    hand = Hand(seat.concealed or (), seat.melds)
    if len(analyze(rule_set, options, hand).waits) != 1:
        raise IllegalWin(
            "WIN_NOT_ALLOWED",
            "a declared seat wins with exactly one legal wait left",
            f"seats[{number}].declared",
        )


# ---- What a loser has exposed ----


def exposed_sequences(seat: SeatEnd) -> Counter[int]:
    """How many chi the seat has of each sequence, by the lowest tile."""
    return Counter(meld.first for meld in seat.melds if meld.kind is MeldKind.CHI)


def exposed_fours(seat: SeatEnd) -> int:
    """Suit tiles of which all four copies lie face up in chi and pong melds."""
    face_up = Counter(
        tile
        for meld in seat.melds
        if meld.kind in (MeldKind.CHI, MeldKind.PONG)
        for tile in meld.tiles
    )
    return sum(count == COPIES and is_suited(tile) for tile, count in face_up.items())


def is_great(kong: Meld) -> bool:
    """大杠: a kong of ones."""
    return kong.first in GREAT_KONGS
