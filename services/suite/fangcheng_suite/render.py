"""Hands, rivers and results drawn in a terminal.

Everything here turns messages into lines of text and does nothing else. Where the terminal cannot
show Chinese or frames, `Ink` says so and plain letters stand in their place. Tiles are wire
numbers (11 is 1m); 0 is face down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text

from fangcheng.rules.v1 import rules_pb2
from fangcheng_client import notation

SUIT_STYLES = {1: "red", 2: "blue", 3: "green", 4: "bold", 5: "magenta"}
HONOUR_STYLES = {45: "bold cyan", 46: "bold green", 47: "bold red"}

_DIGITS_ZH = "一二三四五六七八九"
_SUITS_ZH = "万饼条"
_HONOURS_ZH = "东南西北白发中"
_FLOWERS_ZH = "春夏秋冬梅兰竹菊"
_HONOURS_EN = ("E", "S", "W", "N", "Wh", "Gr", "Rd")
_HONOUR_NAMES_EN = ("east", "south", "west", "north", "white", "green", "red")

_GLYPHS = {
    **{10 + rank: chr(0x1F006 + rank) for rank in range(1, 10)},
    **{20 + rank: chr(0x1F018 + rank) for rank in range(1, 10)},
    **{30 + rank: chr(0x1F00F + rank) for rank in range(1, 10)},
    **{40 + rank: chr(0x1F000 + place) for rank, place in enumerate((0, 1, 2, 3, 6, 5, 4), 1)},
    **{50 + rank: chr(0x1F025 + rank) for rank in range(1, 5)},
    **{54 + rank: chr(0x1F021 + rank) for rank in range(1, 5)},
    0: chr(0x1F02B),
}
"""The tiles of Unicode's block Mahjong Tiles."""

MELD_NAMES = {
    "chi": ("吃", "chi"),
    "pong": ("碰", "pong"),
    "exposed_kong": ("明杠", "exposed kong"),
    "added_kong": ("补杠", "added kong"),
    "concealed_kong": ("暗杠", "concealed kong"),
    "whirlwind": ("旋风杠", "whirlwind"),
}


@dataclass(frozen=True, slots=True)
class Ink:
    """What the terminal can show."""

    chinese: bool = True
    """Chinese characters, tile glyphs and frames; else plain ASCII."""

    @staticmethod
    def for_encoding(encoding: str | None) -> Ink:
        """The ink for a stream that writes in this encoding."""
        try:
            "一东🀇┌▒−".encode(encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return Ink(chinese=False)
        return Ink()

    @property
    def minus(self) -> str:
        """The sign before a negative amount."""
        return "−" if self.chinese else "-"

    @property
    def dot(self) -> str:
        """What stands between items of a list."""
        return " · " if self.chinese else ", "

    def both(self, zh: str, en: str) -> str:
        """A term in Chinese and English, or in English alone."""
        return f"{zh} {en}" if self.chinese and zh else en

    def signed(self, amount: int) -> str:
        """An amount with its sign and groups of three digits: `+1,240`, `−80`, `0`."""
        if amount == 0:
            return "0"
        return f"{'+' if amount > 0 else self.minus}{abs(amount):,}"


def glyph(tile: int) -> str:
    """The tile of Unicode's own block; raises KeyError for a number that is no tile."""
    return _GLYPHS[tile]


def glyphs(tiles: Iterable[int]) -> str:
    """The Unicode tiles of a list of tiles."""
    return "".join(_GLYPHS[tile] for tile in tiles)


def style(tile: int) -> str:
    """The colour of a tile."""
    return HONOUR_STYLES.get(tile, SUIT_STYLES.get(tile // 10, "dim"))


def short(tile: int, ink: Ink) -> str:
    """A tile in at most three columns: `1万`, `东`, `1m`, `E`."""
    suit, rank = divmod(tile, 10)
    if tile == 0:
        return "▒▒" if ink.chinese else "##"
    if suit <= 3:
        return f"{rank}{_SUITS_ZH[suit - 1]}" if ink.chinese else f"{rank}{'mps'[suit - 1]}"
    if suit == 4:
        return _HONOURS_ZH[rank - 1] if ink.chinese else _HONOURS_EN[rank - 1]
    return _FLOWERS_ZH[rank - 1] if ink.chinese else f"{rank}f"


def spoken(tile: int, ink: Ink) -> str:
    """A tile as a person would name it, with its notation: `五饼 (5p)`, `east (1z)`."""
    suit, rank = divmod(tile, 10)
    code = notation.text([tile])
    if not ink.chinese:
        return f"{_HONOUR_NAMES_EN[rank - 1]} ({code})" if suit == 4 else code
    if suit <= 3:
        return f"{_DIGITS_ZH[rank - 1]}{_SUITS_ZH[suit - 1]} ({code})"
    return f"{short(tile, ink)} ({code})"


def row(tiles: Iterable[int], ink: Ink) -> Text:
    """Tiles in a row, as a river shows them: `1万 东 5饼`."""
    return Text(" ").join(Text(short(tile, ink), style(tile)) for tile in tiles)


def by_suit(tiles: Iterable[int]) -> list[int]:
    """Tiles in the order in which a player sorts a hand; face-down ones last."""
    return sorted(tiles, key=lambda tile: (tile == 0, tile))


def _faces(tile: int, ink: Ink) -> tuple[str, str]:
    """The two lines of a drawn tile, each two columns wide."""
    suit, rank = divmod(tile, 10)
    if tile == 0:
        return ("▒▒", "▒▒") if ink.chinese else ("##", "##")
    if suit <= 3:
        if ink.chinese:
            return _DIGITS_ZH[rank - 1], _SUITS_ZH[suit - 1]
        return f"{rank} ", f"{'mps'[suit - 1]} "
    if suit == 4:
        return (_HONOURS_ZH[rank - 1] if ink.chinese else f"{_HONOURS_EN[rank - 1]:2}"), "  "
    return (_FLOWERS_ZH[rank - 1] if ink.chinese else f"{rank} "), ("花" if ink.chinese else "f ")


def drawn(groups: Sequence[Sequence[int]], ink: Ink) -> list[Text]:
    """Tiles drawn as tiles, four lines high; the groups stand a little apart.

    ::

        ┌──┬──┐ ┌──┐
        │一│二│ │东│
        │万│万│ │  │
        └──┴──┘ └──┘
    """
    left, middle, right, side, bar = "┌┬┐│─" if ink.chinese else "+++|-"
    foot_left, foot_middle, foot_right = "└┴┘" if ink.chinese else "+++"
    lines = [Text() for _ in range(4)]
    for place, group in enumerate(groups):
        if not group:
            continue
        if place:
            for line in lines:
                line.append("  ")
        lines[0].append(left + middle.join(bar * 2 for _ in group) + right)
        lines[3].append(foot_left + foot_middle.join(bar * 2 for _ in group) + foot_right)
        for half in (0, 1):
            lines[1 + half].append(side)
            for tile in group:
                lines[1 + half].append(_faces(tile, ink)[half], style(tile))
                lines[1 + half].append(side)
    return lines


def hand_groups(
    concealed: Iterable[int], melds: Iterable[rules_pb2.Meld], extra: int | None = None
) -> list[list[int]]:
    """The groups of a hand to draw: concealed tiles, each meld, and a tile apart."""
    groups = [by_suit(concealed)]
    groups += [list(meld.tiles) for meld in melds]
    if extra is not None:
        groups.append([extra])
    return [group for group in groups if group]


def hand_text(
    concealed: Iterable[int], melds: Iterable[rules_pb2.Meld], extra: int | None = None
) -> str:
    """A hand in notation: `123p88m [678s] + 8m`."""
    parts = [notation.text(by_suit(concealed))]
    parts += [f"[{notation.text(meld.tiles)}]" for meld in melds]
    if extra is not None:
        parts.append(f"+ {notation.text([extra])}")
    return " ".join(part for part in parts if part)


def meld_text(meld: rules_pb2.Meld, ink: Ink) -> Text:
    """A meld in a row: `碰 5饼 5饼 5饼`."""
    zh, en = MELD_NAMES.get(meld.kind, ("", meld.kind.replace("_", " ")))
    text = Text(f"{zh if ink.chinese and zh else en} ", "dim")
    return text.append_text(row(meld.tiles, ink))


def fan_text(item: rules_pb2.FanItem, ink: Ink) -> str:
    """A fan item with its fan: `立门 closed 1`, `四归一 four of a suit tile ×2 2`."""
    name = ink.both(item.name_zh, item.name_en)
    times = f" {'×' if ink.chinese else 'x'}{item.count}" if item.count > 1 else ""
    return f"{name}{times} {item.fan}" if item.fan else f"{name}{times}"


def fan_list(items: Iterable[rules_pb2.FanItem], ink: Ink) -> str:
    """Fan items in one line."""
    return ink.dot.join(fan_text(item, ink) for item in items)
