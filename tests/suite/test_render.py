"""What a newcomer sees in the terminal."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from fangcheng.rules.v1 import rules_pb2
from fangcheng_client.notation import TILES, parse
from fangcheng_rules import notation as rules_notation
from fangcheng_rules import tiles
from fangcheng_suite import render
from fangcheng_suite.render import Ink

CHINESE = Ink()
ASCII = Ink(chinese=False)


def drawn(text: str, ink: Ink) -> str:
    return "\n".join(line.plain for line in render.drawn([parse(text)], ink))


def test_tiles_are_drawn_as_tiles() -> None:
    assert drawn("19m5p1z?", CHINESE) == (
        "┌──┬──┬──┬──┬──┐\n│一│九│五│东│▒▒│\n│万│万│饼│  │▒▒│\n└──┴──┴──┴──┴──┘"
    )


def test_tiles_are_drawn_in_plain_letters_where_nothing_else_can_be_shown() -> None:
    assert drawn("19m5p17z?", ASCII) == (
        "+--+--+--+--+--+--+\n|1 |9 |5 |E |Rd|##|\n|m |m |p |  |  |##|\n+--+--+--+--+--+--+"
    )


@pytest.mark.parametrize("ink", [CHINESE, ASCII])
def test_every_tile_is_drawn_with_straight_edges(ink: Ink) -> None:
    for tile in [0, *sorted(TILES)]:
        widths = {cell_len(line.plain) for line in render.drawn([[tile, tile]], ink)}
        assert len(widths) == 1, tile


@pytest.mark.parametrize("tile", sorted(TILES))
def test_the_glyphs_are_those_of_the_rules(tile: int) -> None:
    kind = tiles.from_code(tile)
    assert render.glyph(tile) == rules_notation.to_glyphs([kind])
    if kind < 27:
        assert render.short(tile, CHINESE) == f"{tile % 10}{tiles.name_zh(kind)[1]}"
    else:
        assert render.short(tile, CHINESE) == tiles.name_zh(kind)


def test_plain_ink_writes_ascii_alone() -> None:
    for tile in [0, *sorted(TILES)]:
        assert render.short(tile, ASCII).isascii()
        if tile:
            assert render.spoken(tile, ASCII).isascii()
    assert ASCII.both("听牌", "declared wait") == "declared wait"
    assert ASCII.signed(-1240) == "-1,240"


@pytest.mark.parametrize(
    ("encoding", "chinese"),
    [
        ("utf-8", True),
        ("gb18030", True),
        ("ascii", False),
        ("latin-1", False),
        (None, False),
        ("no-such-encoding", False),
    ],
)
def test_the_ink_follows_the_encoding(encoding: str | None, chinese: bool) -> None:
    assert Ink.for_encoding(encoding).chinese is chinese


def test_a_hand_has_its_melds_and_the_winning_tile_apart() -> None:
    pong = rules_pb2.Meld(kind="pong", tiles=parse("777z"))
    assert render.hand_groups(parse("9s123m"), [pong], 35) == [
        parse("123m9s"),
        parse("777z"),
        [35],
    ]
    assert render.hand_text(parse("9s123m"), [pong], 35) == "123m9s [777z] + 5s"


def test_a_fan_item_tells_its_count() -> None:
    once = rules_pb2.FanItem(id="closed", name_zh="立门", name_en="closed", fan=1, count=1)
    twice = rules_pb2.FanItem(id="four", name_zh="四归一", name_en="four", fan=2, count=2)
    flat = rules_pb2.FanItem(id="orphans", name_zh="十三幺", name_en="orphans", count=1)
    assert render.fan_list([once, twice, flat], CHINESE) == (
        "立门 closed 1 · 四归一 four ×2 2 · 十三幺 orphans"
    )
    assert render.fan_list([once, twice], ASCII) == "closed 1, four x2 2"
