"""Outlines of characters: taken once from a font, kept in ``glyphs.json``, placed on the tiles.

The file is committed, so that the sprite can be made, and checked, where the font is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.ttLib import TTCollection, TTFont

KEPT = Path(__file__).with_name("glyphs.json")
FONT = "NotoSerifCJK-Bold.ttc"
FACE = "Noto Serif CJK TC Bold"
"""Traditional forms: tiles have 萬, 東, 發 and 蘭 also where people write 万, 东, 发 and 兰."""

Step: TypeAlias = tuple[str, tuple[int, ...]]
"""A command of a path (``M``, ``L``, ``C`` or ``Z``) and its points, x before y, y downwards."""


@dataclass(frozen=True)
class Box:
    """Where on a tile a character's ink goes: its left, top, width and height."""

    x: float
    y: float
    width: float
    height: float


def font_named(collection: Path, face: str) -> TTFont:
    """The font of a collection by its full name."""
    for font in TTCollection(str(collection)).fonts:
        if font["name"].getDebugName(4) == face:
            return font
    raise SystemExit(f"{collection} has no face {face!r}")


def taken(font: TTFont, characters: Iterable[str]) -> dict[str, list[Step]]:
    """The outlines of characters in units of the font."""
    glyphs, names = font.getGlyphSet(), font.getBestCmap()
    outlines: dict[str, list[Step]] = {}
    for character in characters:
        pen = DecomposingRecordingPen(glyphs)
        glyphs[names[ord(character)]].draw(pen)
        letters = {"moveTo": "M", "lineTo": "L", "curveTo": "C", "closePath": "Z"}
        outlines[character] = [
            (letters[name], tuple(n for x, y in points for n in (round(x), -round(y))))
            for name, points in pen.value
        ]
    return outlines


def keep(font: TTFont, characters: Iterable[str]) -> None:
    """Write ``glyphs.json``, a character a line."""
    lines = [
        f"{json.dumps(character, ensure_ascii=False)}: "
        + json.dumps(" ".join(f"{letter}{','.join(map(str, at))}" for letter, at in steps))
        for character, steps in taken(font, characters).items()
    ]
    source = f'"": "{font["name"].getDebugName(4)}, {font["name"].getDebugName(5)}"'
    KEPT.write_text("{\n" + ",\n".join([source, *lines]) + "\n}\n")


def kept() -> dict[str, list[Step]]:
    """The outlines in ``glyphs.json``."""
    texts: Mapping[str, str] = json.loads(KEPT.read_text())
    return {
        character: [
            (step[0], tuple(int(n) for n in step[1:].split(",") if n)) for step in text.split()
        ]
        for character, text in texts.items()
        if character
    }


def placed(steps: list[Step], box: Box) -> str:
    """The ``d`` of an SVG path: an outline stretched into a box, in tenths and relative steps."""
    xs = [n for _, at in steps for n in at[::2]]
    ys = [n for _, at in steps for n in at[1::2]]
    across = box.width / (max(xs) - min(xs))
    down = box.height / (max(ys) - min(ys))
    left, top = min(xs), min(ys)
    return "".join(
        _relative(
            (
                letter,
                tuple(
                    round((n - top) * down * 10 + box.y * 10)
                    if place % 2
                    else round((n - left) * across * 10 + box.x * 10)
                    for place, n in enumerate(at)
                ),
            )
            for letter, at in steps
        )
    )


def _relative(steps: Iterable[Step]) -> Iterator[str]:
    """Steps in tenths of a unit as the shortest text that says them."""
    x = y = 0
    start = (0, 0)
    before = ""
    for letter, at in steps:
        if letter == "Z":
            x, y = start
            before = ""
            yield "z"
            continue
        by = [n - (y if place % 2 else x) for place, n in enumerate(at)]
        x, y = at[-2:]
        if letter == "M":
            start = (x, y)
        elif letter == "L" and by == [0, 0]:
            continue
        if letter == "L" and 0 in by:
            letter, by = ("v", by[1:]) if by[0] == 0 else ("h", by[:1])
        text = letter.lower() if letter.lower() != before else ""
        for place, n in enumerate(by):
            number = f"{n / 10:g}".replace("0.", ".", 1) if abs(n) < 10 else f"{n / 10:g}"
            apart = bool(place or not text) and not number.startswith("-")
            text += (" " if apart else "") + number
        before = letter.lower()
        yield text
