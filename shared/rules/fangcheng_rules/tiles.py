"""The tiles.

A tile is known by its *kind*, a small integer; the four copies of a kind are alike.

======  ==================  ===========================
kinds   notation            tiles
======  ==================  ===========================
0-8     ``1m`` .. ``9m``    万 characters
9-17    ``1p`` .. ``9p``    饼 dots
18-26   ``1s`` .. ``9s``    条 bamboo
27-30   ``1z`` .. ``4z``    东 南 西 北 winds
31-33   ``5z`` .. ``7z``    白 发 中 dragons
34-41   ``1f`` .. ``8f``    春 夏 秋 冬 梅 兰 竹 菊 flowers
======  ==================  ===========================

On the wire a tile is a two-digit number, its *code*: the tens digit is the suit in the order
m p s z f, the units digit the rank, so that ``5p`` is 25. Code 0 is a tile lying face down.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from .errors import InvalidTile

Kind: TypeAlias = int
"""A tile's kind, 0 to 41."""

SUITS: Final[str] = "mpszf"
"""The suits' letters; a suit is known by its place in here."""

M, P, S, Z, F = range(5)

FIRST_OF_SUIT: Final = (0, 9, 18, 27, 34)
RANKS_OF_SUIT: Final = (9, 9, 9, 7, 8)

PLAY_KINDS: Final = 34
"""Kinds 0 to 33 are played; those from 34 on are flowers, which are only laid down."""

ALL_KINDS: Final = 42
COPIES: Final = 4
"""Copies of each kind that is played; there is one of each flower."""

FACE_DOWN: Final = 0
"""The code of a tile that the viewer may not see."""

WINDS: Final = range(27, 31)
DRAGONS: Final = range(31, 34)
HONOURS: Final = range(27, 34)
FLOWERS: Final = range(34, 42)

TERMINALS: Final = (0, 8, 9, 17, 18, 26)
ORPHANS: Final = (*TERMINALS, *HONOURS)
"""Terminals and honours, the kinds of 十三幺; each serves where a rule asks for a terminal."""

_DIGITS_ZH = "一二三四五六七八九"
_SUITS_ZH = "万饼条"

NAMES: Final[tuple[str, ...]] = tuple(
    f"{rank}{letter}"
    for letter, ranks in zip(SUITS, RANKS_OF_SUIT, strict=True)
    for rank in range(1, ranks + 1)
)
NAMES_ZH: Final[tuple[str, ...]] = (
    *(digit + suit for suit in _SUITS_ZH for digit in _DIGITS_ZH),
    *"东南西北白发中",
    *"春夏秋冬梅兰竹菊",
)

_CODES = tuple(
    10 * (suit + 1) + rank
    for suit, ranks in enumerate(RANKS_OF_SUIT)
    for rank in range(1, ranks + 1)
)
_KIND_OF_CODE = {code: kind for kind, code in enumerate(_CODES)}
_KIND_OF_NAME = {name: kind for kind, name in enumerate(NAMES)}


def suit(kind: Kind) -> int:
    """The suit of a kind: `M`, `P`, `S`, `Z` or `F`."""
    return kind // 9 if kind < 34 else F


def rank(kind: Kind) -> int:
    """The rank that is printed before the suit's letter, from 1."""
    return kind - FIRST_OF_SUIT[suit(kind)] + 1


def is_suited(kind: Kind) -> bool:
    """Whether the kind is a numbered tile (万, 饼 or 条)."""
    return kind < 27


def is_honour(kind: Kind) -> bool:
    """Whether the kind is a wind or a dragon (字牌)."""
    return 27 <= kind < 34


def is_flower(kind: Kind) -> bool:
    """Whether the kind is a flower, which is laid down and never played."""
    return 34 <= kind < 42


def is_orphan(kind: Kind) -> bool:
    """Whether the kind is a terminal or an honour."""
    return kind in ORPHANS


def name(kind: Kind) -> str:
    """The kind in notation: ``'1m'``."""
    return NAMES[kind]


def name_zh(kind: Kind) -> str:
    """The kind's Chinese name: ``'一万'``, ``'东'``."""
    return NAMES_ZH[kind]


def from_name(text: str) -> Kind:
    """The kind of a name such as ``'1m'``; raises `InvalidTile`."""
    kind = _KIND_OF_NAME.get(text)
    if kind is None:
        raise InvalidTile("UNKNOWN_TILE", f"{text!r} is not the name of a tile")
    return kind


def code(kind: Kind) -> int:
    """The two-digit number that stands for the kind on the wire."""
    return _CODES[kind]


def from_code(code: int, field: str | None = None) -> Kind:
    """The kind of a code; raises `InvalidTile`, also for a tile that lies face down."""
    kind = _KIND_OF_CODE.get(code)
    if kind is None:
        raise InvalidTile("UNKNOWN_TILE", f"{code} is not the code of a tile", field)
    return kind
