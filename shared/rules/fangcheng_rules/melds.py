"""The sets that a seat has laid down."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .errors import InvalidMeld
from .tiles import DRAGONS, Kind, is_suited, name, suit


class MeldKind(StrEnum):
    """How a set was laid down."""

    CHI = "chi"
    """吃: a sequence made with the discard of the seat before."""

    PONG = "pong"
    """碰: a triplet made with a discard."""

    EXPOSED_KONG = "exposed_kong"
    """明杠: three from the hand and a discard."""

    ADDED_KONG = "added_kong"
    """补杠: the fourth tile laid onto a pong of one's own."""

    CONCEALED_KONG = "concealed_kong"
    """暗杠: four from the hand, face down; the seat stays closed."""

    WHIRLWIND = "whirlwind"
    """旋风杠: the three dragons from the hand, and each dragon that was added to them since."""


FOUR_ALIKE = frozenset({MeldKind.EXPOSED_KONG, MeldKind.ADDED_KONG, MeldKind.CONCEALED_KONG})


@dataclass(frozen=True, slots=True)
class Meld:
    """One set laid down.

    `tiles` are sorted: three of a chi or pong, four of a kong, three or more of a whirlwind.
    `source` is the seat whose discard was claimed and `claimed` that tile; an added kong keeps
    those of its pong. Both are None for a concealed kong and a whirlwind, and where nobody asks
    who fed the meld.
    """

    kind: MeldKind
    tiles: tuple[Kind, ...]
    source: int | None = None
    claimed: Kind | None = None
    treasure: bool = False
    """A pong of the kind that was the treasure then (Baicheng)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tiles", tuple(sorted(self.tiles)))
        if not _fits(self.kind, self.tiles):
            shown = " ".join(_shown(tile) for tile in self.tiles)
            raise InvalidMeld("INVALID_MELD", f"{shown} is no {self.kind}", "melds")
        if self.treasure and self.kind is not MeldKind.PONG:
            raise InvalidMeld("INVALID_MELD", f"a {self.kind} of the treasure", "melds")
        if self.source is not None and not 0 <= self.source <= 3:
            raise InvalidMeld("INVALID_SEAT", f"there is no seat {self.source}", "melds")
        if self.claimed is not None and self.claimed not in self.tiles:
            raise InvalidMeld(
                "INVALID_MELD", f"{_shown(self.claimed)} was claimed but is not in it", "melds"
            )

    @property
    def first(self) -> Kind:
        """The lowest tile, which names the set."""
        return self.tiles[0]

    @property
    def is_open(self) -> bool:
        """Whether it opens the hand (开门): all but a concealed kong do."""
        return self.kind is not MeldKind.CONCEALED_KONG

    @property
    def is_kong(self) -> bool:
        """Whether it is of four alike, or a whirlwind."""
        return self.kind in FOUR_ALIKE or self.kind is MeldKind.WHIRLWIND

    def takes(self, tile: Kind) -> bool:
        """Whether a tile can be added to it in its owner's turn (补杠)."""
        if self.kind is MeldKind.WHIRLWIND:
            return tile in DRAGONS
        return self.kind is MeldKind.PONG and self.first == tile

    def plus(self, tile: Kind) -> Meld:
        """It with a tile added: the added kong of a pong, or a greater whirlwind."""
        if self.kind is MeldKind.WHIRLWIND:
            return Meld(self.kind, (*self.tiles, tile))
        return Meld(MeldKind.ADDED_KONG, (*self.tiles, tile), self.source, self.claimed)

    @property
    def is_sequence(self) -> bool:
        """Whether it is three in a row."""
        return self.kind is MeldKind.CHI


def _fits(kind: MeldKind, tiles: tuple[Kind, ...]) -> bool:
    if not tiles or not all(0 <= tile < 34 for tile in tiles):
        return False
    low = tiles[0]
    if kind is MeldKind.WHIRLWIND:
        return set(tiles) == set(DRAGONS)
    if kind is MeldKind.CHI:
        # Sequences are of one suit, and honours make none (rules page, "A turn").
        return (
            tiles == (low, low + 1, low + 2) and is_suited(low + 2) and suit(low) == suit(low + 2)
        )
    return tiles == (low,) * (4 if kind in FOUR_ALIKE else 3)


def _shown(tile: int) -> str:
    return name(tile) if 0 <= tile < 42 else str(tile)
