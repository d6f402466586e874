"""Tiles are read and printed as people write them."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fangcheng_rules import notation
from fangcheng_rules.errors import InvalidNotation
from fangcheng_rules.notation import parse_hand, parse_tiles, to_chinese, to_glyphs, to_mpsz
from fangcheng_rules.tiles import from_name
from tests.rules.random_hands import random_hand

some_tiles = st.lists(st.integers(0, 41), max_size=20)


@pytest.mark.parametrize("printed", [to_mpsz, to_chinese, to_glyphs])
@given(tiles=some_tiles)
def test_what_is_printed_is_read_back(
    printed: Callable[[list[int]], str], tiles: list[int]
) -> None:
    assert parse_tiles(printed(tiles)) == tuple(tiles)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ""),
        ("123m55z", "1m 2m 3m 5z 5z"),
        (" 1 2m\t3p ", "1m 2m 3p"),
        ("一二三万白白", "1m 2m 3m 5z 5z"),
        ("一萬五筒九索東發", "1m 5p 9s 1z 6z"),
        ("3饼3条", "3p 3s"),
        ("🀇🀙🀐🀀🀆🀅🀄︎", "1m 1p 1s 1z 5z 6z 7z"),
        ("1f8f春菊🀦🀥", "1f 8f 1f 8f 1f 8f"),
        ("🀇23m中", "1m 2m 3m 7z"),
    ],
)
def test_every_way_of_writing_is_read(text: str, names: str) -> None:
    assert parse_tiles(text) == tuple(from_name(name) for name in names.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("123", "the last ranks have no suit"),
        ("m", "no rank before 'm'"),
        ("12mm", "no rank before 'm'"),
        ("8z", "there is no 8z"),
        ("9f", "there is no 9f"),
        ("0m", "'0' is no tile here"),
        ("1x", "'x' is no tile here"),
        ("12东", "'东' is no tile here"),
        ("1m,2m", "',' is no tile here"),
        ("🀫", "is no tile here"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidNotation, match=said) as caught:
        parse_tiles(text)
    assert (caught.value.reason, caught.value.field) == ("INVALID_NOTATION", "notation")


def test_glyphs_are_those_of_the_unicode_names() -> None:
    ranks = ("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
    names = [f"{rank} OF {suit}" for suit in ("CHARACTERS", "CIRCLES", "BAMBOOS") for rank in ranks]
    names += [f"{wind} WIND" for wind in ("EAST", "SOUTH", "WEST", "NORTH")]
    names += [f"{dragon} DRAGON" for dragon in ("WHITE", "GREEN", "RED")]
    names += ["SPRING", "SUMMER", "AUTUMN", "WINTER", "PLUM", "ORCHID", "BAMBOO", "CHRYSANTHEMUM"]
    found = [unicodedata.name(glyph).removeprefix("MAHJONG TILE ") for glyph in notation.GLYPHS]
    assert found == names
    assert unicodedata.name(notation.GLYPH_FACE_DOWN) == "MAHJONG TILE BACK"


@given(st.randoms(use_true_random=False), st.sampled_from([13, 14]))
def test_a_hand_is_read_back_with_its_melds(rng: random.Random, size: int) -> None:
    hand = random_hand(rng, size)
    assert parse_hand(notation.hand_to_mpsz(hand)) == hand


def test_a_hand_is_printed_with_its_melds_in_brackets() -> None:
    text = "6m8p [123p] [555z] [666+6z] (1111s)"
    assert notation.hand_to_mpsz(parse_hand("6m8p[123p] [5 5 5z][666z+6z](1111s)")) == text
    assert [meld.kind for meld in parse_hand(text).melds] == [
        "chi", "pong", "added_kong", "concealed_kong",
    ]  # fmt: skip
