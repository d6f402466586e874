"""Tile numbers and their text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fangcheng_client import notation


@pytest.mark.parametrize(
    ("text", "tiles"),
    [
        ("", []),
        ("123m55z", [11, 12, 13, 45, 45]),
        ("9p9s7z8f", [29, 39, 47, 58]),
        ("1m2p3m", [11, 22, 13]),
        ("?12m??", [0, 11, 12, 0, 0]),
    ],
)
def test_text_and_tiles_are_the_same(text: str, tiles: list[int]) -> None:
    assert notation.parse(text) == tiles
    assert notation.text(tiles) == text


def test_spaces_between_suits_are_ignored() -> None:
    assert notation.parse(" 12m  5z ") == [11, 12, 45]


@given(st.lists(st.sampled_from([0, *sorted(notation.TILES)])))
def test_any_tiles_come_back_from_their_text(tiles: list[int]) -> None:
    assert notation.parse(notation.text(tiles)) == tiles


def test_there_are_forty_two_tiles() -> None:
    assert len(notation.TILES) == 9 + 9 + 9 + 7 + 8


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("8z", "there is no tile 8z"),
        ("0m", "there is no tile 0m"),
        ("9f", "there is no tile 9f"),
        ("m", "no number before 'm'"),
        ("12", "the last numbers have no suit"),
        ("1 2m", "unexpected ' '"),
        ("1?", "unexpected '\\?'"),
        ("1x", "unexpected 'x'"),
        ("１m", "unexpected"),
    ],
)
def test_what_is_no_notation_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        notation.parse(text)


@pytest.mark.parametrize("tile", [-1, 1, 10, 20, 48, 59, 60, 110])
def test_a_number_that_is_no_tile_has_no_text(tile: int) -> None:
    with pytest.raises(ValueError, match=f"{tile} is no tile number"):
        notation.text([11, tile])
