"""The faces of the tiles in SVG: dots, bamboos, honours and flowers, on 48 by 64 units.

Only presentation attributes, no style and no reference: the symbols are drawn by ``<use>`` from
another document, under a content security policy, and must look the same everywhere. What is small
is made of few, plain shapes, so that it can be told apart where a unit is half a pixel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from .outlines import Box, Step, placed

WIDTH, HEIGHT = 48, 64
RED, GREEN, BLUE, INK = "#bf1e2e", "#0d7040", "#1b4b8f", "#1a2433"
GOLD, IVORY, EDGE, RIM = "#c98a16", "#fcf7e8", "#d8c99f", "#8c7d58"
BACK, BACK_LIGHT = "#1d4476", "#5b86ba"

NUMBERS = "一二三四五六七八九"
WINDS = "東南西北"
SEASONS_AND_PLANTS = "春夏秋冬梅蘭竹菊"
CHARACTERS = NUMBERS + "萬" + WINDS + "發中" + SEASONS_AND_PLANTS

Glyphs: TypeAlias = Mapping[str, list[Step]]


def body(face: str = IVORY, edge: str = EDGE, rim: str = RIM) -> str:
    """The tile that a face is printed on: its rim, the edge one sees below, its front."""
    return (
        f'<rect x=".5" y=".5" width="47" height="63" rx="6" fill="{edge}" stroke="{rim}"/>'
        f'<rect x="1" y="1" width="46" height="59" rx="5.5" fill="{face}"/>'
    )


def glyph(glyphs: Glyphs, character: str, box: Box, colour: str, bold: float = 0.0) -> str:
    """A character in a box; ``bold`` thickens the thin strokes of a serif face, in units."""
    thick = f' stroke="{colour}" stroke-width="{bold:g}" stroke-linejoin="round"' if bold else ""
    return f'<path fill="{colour}"{thick} d="{placed(glyphs[character], box)}"/>'


def _filled(colour: str, d: str) -> str:
    return f'<path fill="{colour}" d="{d}"/>'


def _stroked(colour: str, width: float, d: str) -> str:
    return (
        f'<path fill="none" stroke="{colour}" stroke-width="{width:g}" stroke-linecap="round" '
        f'd="{d}"/>'
    )


def _disc(x: float, y: float, radius: float, colour: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:.3g}" fill="{colour}"/>'


# Characters: the number over 萬. 一 to 三 are as wide as the others, but not as high.
_NUMBER_BOXES = {1: Box(9, 14, 30, 5), 2: Box(8, 8, 32, 18), 3: Box(8, 7, 32, 20)}


def character(glyphs: Glyphs, rank: int) -> str:
    """一萬 to 九萬."""
    box = _NUMBER_BOXES.get(rank, Box(8, 6, 32, 22))
    return glyph(glyphs, NUMBERS[rank - 1], box, INK, 1.6) + glyph(
        glyphs, "萬", Box(8, 31, 32, 25.5), RED, 0.5
    )


# Dots: (x, y, radius, colour).
Dot: TypeAlias = tuple[float, float, float, str]
Petal: TypeAlias = tuple[float, float]
"""Half the width and half the length of a petal."""

_DOTS: dict[int, Sequence[Dot]] = {
    2: [(24, 17, 11, GREEN), (24, 44.5, 11, BLUE)],
    3: [(11.5, 13, 8, BLUE), (24, 30.5, 8, RED), (36.5, 48, 8, GREEN)],
    4: [
        (x, y, 8.8, c)
        for x, y, c in ((14, 16, BLUE), (34, 16, GREEN), (14, 45, GREEN), (34, 45, BLUE))
    ],
    5: [
        *(
            (x, y, 7.3, c)
            for x, y, c in ((12, 13, BLUE), (36, 13, GREEN), (12, 48, GREEN), (36, 48, BLUE))
        ),
        (24, 30.5, 7.3, RED),
    ],
    6: [(x, y, 7.2, c) for y, c in ((12, GREEN), (31, RED), (48.5, RED)) for x in (14, 34)],
    7: [
        *((x, y, 5.6, GREEN) for x, y in ((9, 8.5), (24, 14), (39, 19.5))),
        *((x, y, 6.8, RED) for y in (34, 51) for x in (14.5, 33.5)),
    ],
    8: [(x, y, 6.2, BLUE) for y in (9, 23.5, 38, 52.5) for x in (14, 34)],
    9: [(x, y, 6.3, c) for y, c in ((11, GREEN), (30.5, RED), (50, BLUE)) for x in (9, 24, 39)],
}


def dots(rank: int) -> str:
    """一饼 to 九饼."""
    if rank == 1:
        return _great_dot()
    out = []
    for x, y, radius, colour in _DOTS[rank]:
        out.append(_disc(x, y, radius, colour))
        if radius > 10:
            out.append(_ring(x, y, radius * 0.68, radius * 0.1))
            out.append(_disc(x, y, radius * 0.22, IVORY))
        else:
            out.append(_disc(x, y, radius * 0.32, IVORY))
    return "".join(out)


def _ring(x: float, y: float, radius: float, width: float, colour: str = IVORY) -> str:
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="{radius:.3g}" fill="none" '
        f'stroke="{colour}" stroke-width="{width:.3g}"/>'
    )


def _petals(x: float, y: float, count: int, reach: float, shape: Petal, colour: str) -> str:
    """Petals around a point; ``reach`` is from there to the middle of each."""
    return "".join(
        f'<ellipse cx="{x:g}" cy="{y - reach:g}" rx="{shape[0]:g}" ry="{shape[1]:g}" '
        f'fill="{colour}" transform="rotate({360 * n / count:g} {x:g} {y:g})"/>'
        for n in range(count)
    )


def _great_dot() -> str:
    x, y = 24, 30.5
    return (
        _disc(x, y, 18.5, GREEN)
        + _ring(x, y, 16.2, 1.2)
        + _petals(x, y, 8, 10.2, (2.6, 3.6), IVORY)
        + _disc(x, y, 5.6, IVORY)
        + _disc(x, y, 4.2, RED)
    )


# Bamboos: (x and y of one end, x and y of the other, colour).
Stick: TypeAlias = tuple[float, float, float, float, str]


def _upright(x: float, top: float, bottom: float, colour: str) -> Stick:
    return (x, top, x, bottom, colour)


_STICKS: dict[int, Sequence[Stick]] = {
    2: [_upright(24, 7, 26.5, GREEN), _upright(24, 34.5, 54, BLUE)],
    3: [_upright(24, 7, 26.5, BLUE), *(_upright(x, 34.5, 54, GREEN) for x in (13, 35))],
    4: [
        *(_upright(x, 7, 26.5, c) for x, c in ((13, GREEN), (35, BLUE))),
        *(_upright(x, 34.5, 54, c) for x, c in ((13, BLUE), (35, GREEN))),
    ],
    5: [
        *(_upright(x, 7, 26.5, c) for x, c in ((9.5, GREEN), (38.5, BLUE))),
        _upright(24, 20.5, 40.5, RED),
        *(_upright(x, 34.5, 54, c) for x, c in ((9.5, BLUE), (38.5, GREEN))),
    ],
    6: [
        *(_upright(x, 7, 26.5, GREEN) for x in (10, 24, 38)),
        *(_upright(x, 34.5, 54, BLUE) for x in (10, 24, 38)),
    ],
    7: [
        _upright(24, 6.5, 17, RED),
        *(
            _upright(x, y, y + 10.5, c)
            for y in (25.25, 44)
            for x, c in ((10, GREEN), (24, BLUE), (38, GREEN))
        ),
    ],
    8: [
        *(_upright(x, 7.5, 26.5, GREEN) for x in (8, 40)),
        (15, 8, 21.3, 26, GREEN),
        (33, 8, 26.7, 26, GREEN),
        *(_upright(x, 34.5, 53.5, BLUE) for x in (8, 40)),
        (21.3, 35, 15, 53, BLUE),
        (26.7, 35, 33, 53, BLUE),
    ],
    9: [
        _upright(x, y, y + 10.5, c)
        for x, c in ((10, GREEN), (24, RED), (38, BLUE))
        for y in (6.5, 25.25, 44)
    ],
}


def bamboos(rank: int) -> str:
    """幺鸡 (a bird) and 二条 to 九条."""
    if rank == 1:
        return _bird()
    sticks = _STICKS[rank]
    width = 5.4 if rank < 6 else 4.8
    out = []
    for colour in dict.fromkeys(stick[4] for stick in sticks):
        own = [stick for stick in sticks if stick[4] == colour]
        out.append(_lines(colour, width, [stick[:4] for stick in own]))
        out.append(_lines(colour, 2.6, [knot for stick in own for knot in _knots(stick, width)]))
    out.append(_lines(IVORY, 1, [shine for stick in sticks for shine in _shines(stick)]))
    return "".join(out)


def _lines(colour: str, width: float, lines: Sequence[tuple[float, ...]]) -> str:
    d = "".join(f"M{x:.3g} {y:.3g}L{u:.3g} {v:.3g}" for x, y, u, v in lines)
    return _stroked(colour, width, d)


def _along(stick: Stick, share: float) -> tuple[float, float]:
    x, y, u, v, _ = stick
    return x + (u - x) * share, y + (v - y) * share


def _knots(stick: Stick, width: float) -> list[tuple[float, float, float, float]]:
    """The thicker rings of a stick: at its ends and in its middle, across it."""
    x, y, u, v, _ = stick
    length = ((u - x) ** 2 + (v - y) ** 2) ** 0.5
    half = width / 2 / length
    across = ((v - y) * half, -(u - x) * half)
    return [
        (a - across[0], b - across[1], a + across[0], b + across[1])
        for a, b in (_along(stick, share) for share in (0.0, 0.5, 1.0))
    ]


def _shines(stick: Stick) -> list[tuple[float, float, float, float]]:
    """The light lines on a stick's two halves."""
    return [(*_along(stick, a), *_along(stick, b)) for a, b in ((0.17, 0.33), (0.67, 0.83))]


def _bird() -> str:
    """A bird that perches and looks to the left, its tail down to the right."""
    tail = (
        _filled(GREEN, "M26 31C34 36 41 46 43 57C36 53 28 44 23 35z")
        + _filled(BLUE, "M24 33C29 40 33 49 33 58C27 53 22 44 20 36z")
        + _filled(RED, "M22 35C24 42 25 50 23 57C19 51 17 43 17 36z")
    )
    trunk = _filled(
        GREEN,
        "M9 20C8 10 16 5 22 8C27 10 27 15 30 19C34 24 34 33 27 37C18 41 10 34 11 26"
        "C11 24 9.5 23 9 20z",
    )
    fold = "M19 21C26 19 34 24 37 33C29 36 20 33 18 27C17.3 24.5 17.5 22 19 21z"
    wing = _filled(BLUE, fold) + _stroked(IVORY, 1.2, fold)
    feather = _stroked(IVORY, 1.2, "M22 25.5C26 26 30 28.5 32.5 31.5")
    crest = _filled(
        RED,
        "M15 8C13 5 13.5 3.5 12.5 2.5C16 3 17 4 18 5C18.5 3.5 19.5 3 21 3C20.5 4.5 21 6 22 8"
        "C19.5 7 17 7 15 8z",
    )
    beak = _filled(GOLD, "M9.5 13.5L3.5 17.5L9 19z")
    eye = _disc(14.5, 14, 2.6, IVORY) + _disc(14.2, 14, 1.3, INK)
    bird = tail + trunk + wing + feather + crest + beak + eye
    return f'<g transform="translate(2 2) scale(.94)">{bird}</g>'


_WHOLE = Box(7, 12, 34, 37)


def honour(glyphs: Glyphs, rank: int) -> str:
    """東 南 西 北, and 白 (an empty frame), 發, 中."""
    if rank <= 4:
        return glyph(glyphs, WINDS[rank - 1], _WHOLE, BLUE, 0.7)
    if rank == 5:
        return (
            f'<rect x="8" y="8.5" width="32" height="44" rx="2.5" fill="none" stroke="{BLUE}" '
            f'stroke-width="3"/><rect x="12" y="12.5" width="24" height="36" rx="1" fill="none" '
            f'stroke="{BLUE}" stroke-width="1.2"/>'
        )
    if rank == 6:
        return glyph(glyphs, "發", _WHOLE, GREEN, 0.5)
    return glyph(glyphs, "中", Box(9, 9, 30, 43), RED, 1)


def flower(glyphs: Glyphs, rank: int) -> str:
    """春 夏 秋 冬, 梅 蘭 竹 菊: the character over its emblem."""
    colour, emblem = _EMBLEMS[rank - 1]
    drawn = glyph(glyphs, SEASONS_AND_PLANTS[rank - 1], Box(8, 5, 32, 31), colour, 0.5)
    return drawn + emblem


_LEAVES = "M24 57C23 51 18 45 9 44C10 51 16 56 24 57C25 50 31 42 40 41C40 50 33 56 24 57z"
_MAPLE = (
    "M24 38L27 43L31.5 41L30.5 46L36 47L32 50.5L33 53L26 53L24.5 58L23.5 58L22 53L15 53L16 50.5"
    "L12 47L17.5 46L16.5 41L21 43z"
)
_FLAKE = "M24 39V57M16.2 43.5L31.8 52.5M16.2 52.5L31.8 43.5"
_ORCHID = "M24 57C22 50 17 44 9 43M24 57C24 50 26 44 32 39M24 57C27 52 32 48 40 48"
_BAMBOO = (
    "M10 56C16 52 20 47 22 40C14 42 10 48 10 56zM22 57C24 51 24 46 28 39C32 46 29 53 22 57z"
    "M30 56C31 49 35 44 41 42C42 50 37 55 30 56z"
)
_EMBLEMS = (
    (GREEN, _filled(GREEN, _LEAVES)),
    (RED, _petals(24, 48.5, 8, 7.4, (1.5, 2.4), GOLD) + _disc(24, 48.5, 4.4, RED)),
    (GOLD, _filled(RED, _MAPLE)),
    (BLUE, _stroked(BLUE, 2.4, _FLAKE)),
    (RED, _petals(24, 48.5, 5, 5.4, (3.9, 4), RED) + _disc(24, 48.5, 2.6, GOLD)),
    (BLUE, _stroked(GREEN, 2.6, _ORCHID)),
    (GREEN, _filled(GREEN, _BAMBOO)),
    (GOLD, _petals(24, 48.5, 12, 6, (1.7, 4), GOLD) + _disc(24, 48.5, 3, RED)),
)
"""Of each flower the colour and what it means: a sprout, the sun, a leaf, a flake; the plants."""


def back() -> str:
    """A tile that lies face down."""
    return (
        body(BACK, "#e9dfc4", "#122c4e")
        + f'<rect x="6" y="6" width="36" height="49" rx="3" fill="none" stroke="{BACK_LIGHT}" '
        + 'stroke-width="1.6"/>'
        + _stroked(BACK_LIGHT, 2, "M24 17L34 30.5L24 44L14 30.5z")
        + _disc(24, 30.5, 3, BACK_LIGHT)
    )
