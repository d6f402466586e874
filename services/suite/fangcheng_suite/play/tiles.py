"""Tiles on the screen: chips in a river, whole tiles in the own hand. Nothing but pictures.

Tiles are wire numbers (11 is 1m), 0 is face down. A tile that can be clicked carries what it stands
for in its style's `meta`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from .tongue import Tongue

FELT = "#0e4436"
RAISED_FELT = "#14564a"
IVORY = "#f5eddb"
EDGE = "#b99a5b"
LIT = "#ffd75e"
PALE = "#b9b3a2"
LAID = "#e2cf9b"
"""The ground of what was laid down, so that it is not taken for a discard."""
BACK = "#3fa98a"
FAINT = "#8fb5a6"
TEXT = "#f2efe6"
GOLD = "#ffd166"
GOOD = "#8ee6a0"
BAD = "#ff9b85"

_INKS = {1: "#b3261e", 2: "#1d4f9f", 3: "#17703a", 4: "#24242b", 5: "#8a2a8f"}
_HONOUR_INKS = {45: "#1d6fa8", 46: "#17703a", 47: "#b3261e"}
"""Red for characters, blue for dots, green for bamboos; the sign tells them apart as well."""

CHIP_COLUMNS = 3
BIG_COLUMNS = 4


def ink(tile: int) -> str:
    """The colour of what stands on a tile."""
    return _HONOUR_INKS.get(tile, _INKS.get(tile // 10, _INKS[4]))


def middle(text: str, columns: int) -> str:
    """A text in the middle of so many columns."""
    room = columns - cell_len(text)
    return " " * (room // 2) + text + " " * (room - room // 2)


def chip(tile: int, say: Tongue, ground: str = IVORY) -> Text:
    """A tile as it lies in a river, three columns wide."""
    if tile == 0:
        return Text("▐█▌", BACK)
    return Text(middle(say.mark(tile), CHIP_COLUMNS), f"bold {ink(tile)} on {ground}")


def river(tiles: Sequence[int], say: Tongue, per_row: int, rows: int, *, lit: bool) -> list[Text]:
    """Discards in rows, in their order; `lit`: the last one can still be claimed, or lies last."""
    most = per_row * rows
    shown = list(tiles[-most:])
    lines = [Text() for _ in range(rows)]
    for place, tile in enumerate(shown):
        is_last = lit and place == len(shown) - 1
        line = lines[place // per_row]
        line.append_text(chip(tile, say, LIT if is_last else IVORY)).append(" ")
    return lines


def strip(tiles: Sequence[int], say: Tongue) -> Text:
    """A meld as one piece: `345万`, `▒▒▒▒` where it is hidden."""
    if not any(tiles):
        return Text("▐" + "█" * (len(tiles) - 1) + "▌", BACK)
    return Text(f" {say.list(tiles)} ", f"bold {ink(tiles[0])} on {LAID}")


@dataclass(frozen=True, slots=True)
class Standing:
    """One tile of the own hand as it stands there."""

    tile: int
    key: str = ""
    """What is printed below it; empty: it cannot be chosen now."""
    choice: int | None = None
    """What a click on it chooses."""
    raised: bool = False
    """It is selected, and stands a line higher."""
    apart: bool = False
    """It was just drawn, and stands a little away."""
    starred: bool = False
    """A hint points at it."""


def hand(standing: Sequence[Standing], say: Tongue) -> list[Text]:
    """The own hand: a line of air, two of faces, the tiles' lower edge, and their keys."""
    lines = [Text() for _ in range(5)]
    for place, one in enumerate(standing):
        gap = "   " if one.apart and place else " " if place else ""
        ground = LIT if one.raised else IVORY
        meta = {} if one.choice is None else {"choice": one.choice}
        faces = [
            Text(
                middle(face, BIG_COLUMNS),
                Style.parse(f"bold {ink(one.tile)} on {ground}") + Style(meta=meta),
            )
            for face in say.faces(one.tile)
        ]
        edge = Text("▀" * BIG_COLUMNS, EDGE)
        air = Text(" " * BIG_COLUMNS)
        if one.starred:
            air = Text(middle("★", BIG_COLUMNS), f"bold {GOLD}")
        column = [*faces, edge, air] if one.raised else [air, *faces, edge]
        if one.raised and one.starred:
            column[3] = Text(middle("★", BIG_COLUMNS), f"bold {GOLD}")
        column.append(Text(middle(one.key, BIG_COLUMNS), f"bold {GOLD if one.raised else FAINT}"))
        for line, part in zip(lines, column, strict=True):
            line.append(gap).append_text(part)
    return lines


def laid(melds: Iterable[Sequence[int]], say: Tongue) -> list[Text]:
    """The own melds and flowers beside the hand: two lines of faces, and the edge."""
    lines = [Text() for _ in range(3)]
    for tiles in melds:
        for line in lines:
            line.append("  ")
        for place, tile in enumerate(tiles):
            bar = "▏" if place else ""
            for line, face in zip(lines, say.faces(tile), strict=False):
                line.append(bar, f"{PALE} on {LAID}")
                line.append(middle(face, 2), f"bold {ink(tile)} on {LAID}")
            lines[2].append("▀" * (2 + len(bar)), EDGE)
    return lines
