"""Tile numbers of the wire and their text.

On the wire a tile is a number of two digits, suit and rank: 11-19 characters (m), 21-29 dots (p),
31-39 bamboos (s), 41-47 winds and dragons (z: 东南西北白发中), 51-58 flowers (f); 0 is a tile that
is face down. The text is the usual short one: ranks, then the letter of their suit, ``123m55z``; a
face-down tile is ``?``.
"""

from __future__ import annotations

from collections.abc import Iterable

SUITS = "mpszf"
"""Letter of suit 1 to 5, the tens digit of a tile number."""

RANKS = {"m": 9, "p": 9, "s": 9, "z": 7, "f": 8}
"""Highest rank of each suit; the lowest is 1."""

FACE_DOWN = 0
"""A tile that the viewer may not see."""

TILES: frozenset[int] = frozenset(
    tens * 10 + rank for tens, suit in enumerate(SUITS, 1) for rank in range(1, RANKS[suit] + 1)
)
"""Every tile number that shows a face."""


def parse(text: str) -> list[int]:
    """The tile numbers of a text, in its order; spaces are ignored.

    ``parse("123m 55z")`` is ``[11, 12, 13, 45, 45]``. Raises ``ValueError`` saying what is wrong.
    """
    tiles: list[int] = []
    ranks: list[int] = []
    for place, sign in enumerate(text):
        if sign in "0123456789":
            ranks.append(int(sign))
        elif sign in RANKS:
            if not ranks:
                raise ValueError(f"{text!r}: no number before {sign!r} at {place}")
            for rank in ranks:
                if not 1 <= rank <= RANKS[sign]:
                    raise ValueError(f"{text!r}: there is no tile {rank}{sign}")
                tiles.append((SUITS.index(sign) + 1) * 10 + rank)
            ranks.clear()
        elif sign == "?" and not ranks:
            tiles.append(FACE_DOWN)
        elif not (sign.isspace() and not ranks):
            raise ValueError(f"{text!r}: unexpected {sign!r} at {place}")
    if ranks:
        raise ValueError(f"{text!r}: the last numbers have no suit")
    return tiles


def text(tiles: Iterable[int]) -> str:
    """The text of tile numbers, in their order; neighbours of a suit share its letter.

    ``text([11, 12, 13, 45, 45])`` is ``"123m55z"``. Raises ``ValueError`` for a number that is no
    tile.
    """
    out: list[str] = []
    suit = ""
    for tile in tiles:
        if tile != FACE_DOWN and tile not in TILES:
            raise ValueError(f"{tile} is no tile number")
        own = "" if tile == FACE_DOWN else SUITS[tile // 10 - 1]
        if suit and suit != own:
            out.append(suit)
        out.append(str(tile % 10) if own else "?")
        suit = own
    out.append(suit)
    return "".join(out)
