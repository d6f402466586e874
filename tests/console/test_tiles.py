"""The pictures of the tiles and the Chinese font that the console ships."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from fangcheng_client import notation
from tools.tiles import subset
from tools.tiles.__main__ import SPRITE

SVG = "{http://www.w3.org/2000/svg}"


def sprite() -> ET.Element:
    """The root of the pictures' document."""
    return ET.parse(SPRITE).getroot()  # noqa: S314  # drawn by tools/tiles


def test_there_is_a_picture_of_every_tile_on_the_wire_and_of_the_back() -> None:
    symbols = [symbol.get("id") for symbol in sprite().findall(f"{SVG}symbol")]
    assert sorted(symbols) == sorted(f"t{code}" for code in {notation.FACE_DOWN, *notation.TILES})


def test_no_two_pictures_are_alike() -> None:
    drawings = [
        b"".join(ET.tostring(shape) for shape in symbol)
        for symbol in sprite().findall(f"{SVG}symbol")
    ]
    assert len(set(drawings)) == len(drawings)


def test_a_picture_carries_its_colours_and_refers_to_nothing() -> None:
    """`<use>` draws them from another document, under a policy without inline style."""
    for part in sprite().iter():
        assert not {"style", "class", "href"} & part.attrib.keys(), part.attrib
        assert part.tag.removeprefix(SVG) not in {"style", "script", "use", "image"}


def test_whatever_we_show_in_chinese_can_be_read_without_a_chinese_font() -> None:
    assert subset.missing() == {}
    assert {"万", "饼", "条"} <= subset.shown().keys()
