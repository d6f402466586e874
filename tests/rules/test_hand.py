"""Melds and hands: what can be held, and what is refused."""

from __future__ import annotations

import pytest

from fangcheng_rules.errors import InvalidHand, InvalidMeld
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.notation import parse_hand, parse_tiles


def meld(kind: str, text: str, **more: int) -> Meld:
    return Meld(MeldKind(kind), parse_tiles(text), **more)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("chi", "123m"),
        ("chi", "789s"),
        ("pong", "555p"),
        ("pong", "777z"),
        ("exposed_kong", "1111s"),
        ("added_kong", "9999m"),
        ("concealed_kong", "1111z"),
    ],
)
def test_a_meld_is_a_set(kind: str, text: str) -> None:
    laid = meld(kind, text)
    assert laid.is_kong == ("kong" in kind)
    assert laid.is_open == (kind != "concealed_kong")
    assert laid.is_sequence == (kind == "chi")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("chi", "124m"),
        ("chi", "111m"),
        ("chi", "12m"),
        ("chi", "123z"),
        ("chi", "567z"),
        ("chi", "89m1p"),
        ("pong", "11m"),
        ("pong", "112m"),
        ("pong", "1111m"),
        ("exposed_kong", "111m"),
        ("added_kong", "1112m"),
        ("concealed_kong", "11111m"),
        ("pong", "111f"),
        ("pong", ""),
    ],
)
def test_other_tiles_are_no_such_meld(kind: str, text: str) -> None:
    with pytest.raises(InvalidMeld) as caught:
        meld(kind, text)
    assert caught.value.reason == "INVALID_MELD"


def test_a_meld_knows_who_fed_it() -> None:
    laid = Meld(MeldKind.CHI, parse_tiles("312m"), source=3, claimed=1)
    assert laid.tiles == (0, 1, 2)
    assert (laid.source, laid.claimed, laid.first) == (3, 1, 0)
    with pytest.raises(InvalidMeld):
        meld("pong", "111m", source=4)
    with pytest.raises(InvalidMeld):
        meld("pong", "111m", claimed=1)


def test_a_meld_of_no_tiles_that_exist_is_refused_in_words() -> None:
    with pytest.raises(InvalidMeld, match="99 100 101 is no chi"):
        Meld(MeldKind.CHI, (101, 100, 99))


def test_a_hand_is_sorted_and_counted() -> None:
    hand = parse_hand("9p11m23m [555z] (1111s) [234m]")
    assert hand.concealed == parse_tiles("1123m9p")
    assert hand.size == 14
    assert hand.is_open
    assert (hand.counts[0], hand.counts[1], hand.counts[18]) == (2, 1, 0)
    assert (hand.held[0], hand.held[1], hand.held[18], hand.held[31]) == (2, 2, 4, 3)


def test_a_concealed_kong_does_not_open_a_hand() -> None:
    assert not parse_hand("1123m9p123s44p (1111z)").is_open


def test_a_tile_comes_and_goes() -> None:
    hand = parse_hand("123m123p123s1122z")
    more = hand.plus(8)
    assert more.size == 14
    assert more.minus(8) == hand
    with pytest.raises(InvalidHand) as caught:
        more.minus(7)
    assert caught.value.reason == "TILE_NOT_HELD"


@pytest.mark.parametrize(
    ("concealed", "reason"),
    [
        ("123m123p123s112z", "WRONG_TILE_COUNT"),
        ("123m123p123s112233z", "WRONG_TILE_COUNT"),
        ("", "WRONG_TILE_COUNT"),
        ("11111m23p123s112z", "FIFTH_COPY"),
        ("123m123p123s112z1f", "TILE_NOT_PLAYED"),
    ],
)
def test_other_tiles_are_no_hand(concealed: str, reason: str) -> None:
    with pytest.raises(InvalidHand) as caught:
        Hand(parse_tiles(concealed))
    assert (caught.value.reason, caught.value.field) == (reason, "concealed")


def test_a_tile_that_no_hand_holds_is_named() -> None:
    with pytest.raises(InvalidHand, match="no hand holds 3f"):
        Hand(parse_tiles("123m123p123s112z3f"))
    with pytest.raises(InvalidHand, match="no hand holds tile 42"):
        Hand((*range(12), 42))


def test_copies_in_melds_count() -> None:
    with pytest.raises(InvalidHand) as caught:
        parse_hand("1123m123p123s [111m]")
    assert caught.value.reason == "FIFTH_COPY"
    with pytest.raises(InvalidHand) as caught:
        parse_hand("1p [111m] [222m] [333m] [444m] [555m]")
    assert caught.value.reason == "WRONG_TILE_COUNT"
