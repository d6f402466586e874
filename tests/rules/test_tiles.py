"""Kinds, codes and names of the tiles."""

from __future__ import annotations

import pytest

from fangcheng_rules import tiles
from fangcheng_rules.errors import InvalidTile


def test_a_code_is_the_suit_and_the_rank() -> None:
    codes = [tiles.code(kind) for kind in range(tiles.ALL_KINDS)]
    assert codes == [
        *range(11, 20), *range(21, 30), *range(31, 40), *range(41, 48), *range(51, 59),
    ]  # fmt: skip
    assert [tiles.from_code(code) for code in codes] == list(range(tiles.ALL_KINDS))


@pytest.mark.parametrize("code", [0, -1, 10, 20, 40, 48, 50, 59, 61, 100])
def test_other_codes_are_no_tiles(code: int) -> None:
    with pytest.raises(InvalidTile) as caught:
        tiles.from_code(code, "hand.concealed")
    assert (caught.value.reason, caught.value.field) == ("UNKNOWN_TILE", "hand.concealed")


def test_names_are_read_back() -> None:
    for kind in range(tiles.ALL_KINDS):
        assert tiles.from_name(tiles.name(kind)) == kind
    assert [tiles.name(kind) for kind in (0, 17, 20, 27, 33, 34, 41)] == [
        "1m", "9p", "3s", "1z", "7z", "1f", "8f",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "0m", "8z", "9f", "1x", "m1", "11m", "1 m"])
def test_other_names_are_no_tiles(text: str) -> None:
    with pytest.raises(InvalidTile):
        tiles.from_name(text)


def test_chinese_names_stand_in_the_order_of_the_kinds() -> None:
    names = [tiles.name_zh(kind) for kind in (0, 13, 26, *range(27, 42))]
    assert " ".join(names) == "一万 五饼 九条 东 南 西 北 白 发 中 春 夏 秋 冬 梅 兰 竹 菊"


def test_every_kind_is_of_one_sort() -> None:
    for kind in range(tiles.ALL_KINDS):
        sorts = [tiles.is_suited(kind), tiles.is_honour(kind), tiles.is_flower(kind)]
        assert sorts.count(True) == 1
        assert tiles.SUITS[tiles.suit(kind)] == tiles.name(kind)[1]
        assert str(tiles.rank(kind)) == tiles.name(kind)[0]


def test_thirteen_kinds_are_terminals_or_honours() -> None:
    orphans = [tiles.name(kind) for kind in range(tiles.ALL_KINDS) if tiles.is_orphan(kind)]
    assert " ".join(orphans) == "1m 9m 1p 9p 1s 9s 1z 2z 3z 4z 5z 6z 7z"
