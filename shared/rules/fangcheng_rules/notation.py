"""Tiles as people write them.

Three ways of writing are read, mixed as well, and printed:

- mpsz, the usual short one: ``123m55z``, ranks before their suit's letter (m p s z, and f for
  flowers);
- Chinese: ``一二三万白白``;
- the Unicode glyphs: ``🀇🀈🀉🀆🀆``.

A hand has its melds in brackets, the concealed kongs in round ones: ``123p67s88m [555z] (1111s)``.
A kong in square brackets is an exposed one, and an added one with the added tile after a plus
sign: ``[555+5z]``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Final

from .errors import InvalidNotation
from .hand import Hand
from .melds import Meld, MeldKind
from .tiles import (
    DRAGONS,
    FIRST_OF_SUIT,
    NAMES_ZH,
    RANKS_OF_SUIT,
    SUITS,
    Kind,
    is_suited,
    rank,
    suit,
)

GLYPHS: Final[tuple[str, ...]] = (
    *(chr(0x1F007 + i) for i in range(9)),  # characters
    *(chr(0x1F019 + i) for i in range(9)),  # dots
    *(chr(0x1F010 + i) for i in range(9)),  # bamboo
    *(chr(0x1F000 + i) for i in range(4)),  # east, south, west, north
    *(chr(0x1F006 - i) for i in range(3)),  # white, green, red: the glyphs run the other way
    *(chr(0x1F026 + i) for i in range(4)),  # the seasons
    *(chr(0x1F022 + i) for i in range(4)),  # plum, orchid, bamboo, chrysanthemum
)
"""The Unicode glyph of each kind."""

GLYPH_FACE_DOWN: Final = chr(0x1F02B)

_RANKS = {digit: i + 1 for i, digit in enumerate("123456789")}
_RANKS |= {digit: i + 1 for i, digit in enumerate("一二三四五六七八九")}
_SUITS = {letter: i for i, letter in enumerate(SUITS)}
_SUITS |= {"万": 0, "萬": 0, "饼": 1, "餅": 1, "筒": 1, "条": 2, "條": 2, "索": 2}
_SINGLE = {name: kind for kind, name in enumerate(NAMES_ZH) if len(name) == 1}
_SINGLE |= {glyph: kind for kind, glyph in enumerate(GLYPHS)}
_SINGLE |= {"東": 27, "發": 32, "蘭": 39}

# The glyph of the red dragon is often followed by one of these, which choose its look.
_SKIPPED = {" ", "\t", "\n", "\u3000", "\ufe0e", "\ufe0f"}

_MELD = re.compile(r"\[([^][()]*)\]|\(([^][()]*)\)")


def parse_tiles(text: str) -> tuple[Kind, ...]:
    """The tiles of a text, in its order; raises `InvalidNotation`, naming what it cannot read."""
    tiles: list[Kind] = []
    ranks: list[int] = []
    for sign in text:
        if sign in _SKIPPED:
            continue
        if sign in _RANKS:
            ranks.append(_RANKS[sign])
        elif sign in _SUITS:
            tiles += _of_suit(ranks, _SUITS[sign], sign, text)
            ranks = []
        elif sign in _SINGLE and not ranks:
            tiles.append(_SINGLE[sign])
        else:
            raise _unreadable(f"{sign!r} is no tile here", text)
    if ranks:
        raise _unreadable("the last ranks have no suit", text)
    return tuple(tiles)


def parse_hand(text: str) -> Hand:
    """A hand with its melds.

    Raises `InvalidNotation`, `InvalidMeld` or `InvalidHand`.
    """
    melds = [
        _parse_meld(match.group(1) or "", match.group(2) or "") for match in _MELD.finditer(text)
    ]
    return Hand(parse_tiles(_MELD.sub(" ", text)), tuple(melds))


def to_mpsz(tiles: Iterable[Kind]) -> str:
    """``123m55z``, in the order given."""
    groups = itertools.groupby(tiles, suit)
    return "".join("".join(str(rank(tile)) for tile in run) + SUITS[of] for of, run in groups)


def to_chinese(tiles: Iterable[Kind]) -> str:
    """``一二三万白白``, in the order given."""
    text = ""
    for of, run in itertools.groupby(tiles, suit):
        names = [NAMES_ZH[tile] for tile in run]
        if is_suited(FIRST_OF_SUIT[of]):
            text += "".join(name[0] for name in names) + names[0][1]
        else:
            text += "".join(names)
    return text


def to_glyphs(tiles: Iterable[Kind]) -> str:
    """``🀇🀈🀉🀆🀆``, in the order given."""
    return "".join(GLYPHS[tile] for tile in tiles)


def meld_to_mpsz(meld: Meld) -> str:
    """``[234s]``, ``[555+5z]``, ``(1111s)``."""
    tiles = to_mpsz(meld.tiles)
    if meld.kind is MeldKind.CONCEALED_KONG:
        return f"({tiles})"
    if meld.kind is MeldKind.ADDED_KONG:
        return f"[{tiles[:3]}+{tiles[3:]}]"
    return f"[{tiles}]"


def hand_to_mpsz(hand: Hand) -> str:
    """``123p67s88m [555z] (1111s)``; `parse_hand` reads it back, but for who fed the melds."""
    return " ".join([to_mpsz(hand.concealed), *map(meld_to_mpsz, hand.melds)])


def _of_suit(ranks: list[int], of: int, sign: str, text: str) -> list[Kind]:
    if not ranks:
        raise _unreadable(f"no rank before {sign!r}", text)
    for number in ranks:
        if number > RANKS_OF_SUIT[of]:
            raise _unreadable(f"there is no {number}{sign}", text)
    return [FIRST_OF_SUIT[of] + number - 1 for number in ranks]


def _parse_meld(square: str, round_: str) -> Meld:
    if round_:
        return Meld(MeldKind.CONCEALED_KONG, parse_tiles(round_))
    tiles = parse_tiles(square.replace("+", ""))
    if len(tiles) == 4 and len(set(tiles)) == 1:
        return Meld(MeldKind.ADDED_KONG if "+" in square else MeldKind.EXPOSED_KONG, tiles)
    if set(tiles) == set(DRAGONS):
        return Meld(MeldKind.WHIRLWIND, tiles)
    alike = len(set(tiles)) == 1
    return Meld(MeldKind.PONG if alike else MeldKind.CHI, tiles)


def _unreadable(message: str, text: str) -> InvalidNotation:
    return InvalidNotation("INVALID_NOTATION", f"{message}: {text!r}", "notation")
