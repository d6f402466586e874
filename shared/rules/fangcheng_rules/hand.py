"""What one seat holds: concealed tiles and melds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import InvalidHand
from .melds import Meld
from .tiles import ALL_KINDS, COPIES, PLAY_KINDS, Kind, name


@dataclass(frozen=True, slots=True)
class Hand:
    """A hand of 13 tiles (waiting for a turn) or 14 (after a draw or a call).

    Each meld counts as three tiles, a kong too. `concealed` is kept sorted, whatever order it
    is given in. Raises `InvalidHand` for another number of tiles, a tile that is not played,
    or a fifth copy of one.
    """

    concealed: tuple[Kind, ...]
    melds: tuple[Meld, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "concealed", tuple(sorted(self.concealed)))
        object.__setattr__(self, "melds", tuple(self.melds))
        for tile in self.concealed:
            if not 0 <= tile < PLAY_KINDS:
                what = name(tile) if 0 <= tile < ALL_KINDS else f"tile {tile}"
                raise InvalidHand("TILE_NOT_PLAYED", f"no hand holds {what}", "concealed")
        if self.size not in (13, 14) or len(self.melds) > 4:
            raise InvalidHand(
                "WRONG_TILE_COUNT",
                f"{self.size} tiles (a meld counts as three); a hand has 13 or 14",
                "concealed",
            )
        for tile, copies in enumerate(self.held):
            if copies > COPIES:
                raise InvalidHand(
                    "FIFTH_COPY", f"{copies} copies of {name(tile)}; there are four", "concealed"
                )

    @classmethod
    def known(cls, concealed: tuple[Kind, ...], melds: tuple[Meld, ...]) -> Hand:
        """A hand that is known to be in order, its tiles sorted: nothing is checked."""
        hand = object.__new__(cls)
        object.__setattr__(hand, "concealed", concealed)
        object.__setattr__(hand, "melds", melds)
        return hand

    @property
    def size(self) -> int:
        """13 or 14: the concealed tiles and three for each meld."""
        return len(self.concealed) + 3 * len(self.melds)

    @property
    def counts(self) -> list[int]:
        """How many of each of the 34 kinds are concealed."""
        return counts_of(self.concealed)

    @property
    def held(self) -> list[int]:
        """How many of each of the 34 kinds are held, in hand and in melds."""
        counts = counts_of(self.concealed)
        for meld in self.melds:
            for tile in meld.tiles:
                counts[tile] += 1
        return counts

    @property
    def is_open(self) -> bool:
        """开门: a chi, a pong, an exposed or an added kong lies before the seat."""
        return any(meld.is_open for meld in self.melds)

    def plus(self, tile: Kind) -> Hand:
        """This hand of 13 with one tile more."""
        return Hand((*self.concealed, tile), self.melds)

    def minus(self, tile: Kind) -> Hand:
        """This hand of 14 after discarding a tile of it; raises `InvalidHand` if it has none."""
        if tile not in self.concealed:
            raise InvalidHand("TILE_NOT_HELD", f"tile {tile} is not in hand", "concealed")
        rest = list(self.concealed)
        rest.remove(tile)
        return Hand(tuple(rest), self.melds)


def counts_of(tiles: Sequence[Kind]) -> list[int]:
    """How many of each of the 34 kinds are among the tiles."""
    counts = [0] * PLAY_KINDS
    for tile in tiles:
        counts[tile] += 1
    return counts
