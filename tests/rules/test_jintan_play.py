"""Hands of `jintan` in play, clause by clause of its page: locks, swap chi, kongs, flowers."""

from __future__ import annotations

import pytest

from fangcheng_rules.events import Asked, Drew, FlowerLaid
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.round import Round
from fangcheng_rules.scoring import Draw, EightFlowers, Win
from fangcheng_rules.tiles import name
from tests.rules.rounds import moves, offered, only
from tests.rules.rounds import setup as any_setup
from tests.rules.transcripts import begin

FLOWERS_AWAY = {"at_100": "1f 2f 3f 4f 5f 6f 7f 8f"}
"""No flower is met in the first draws."""

READY = "777z123p456s44p67m"
"""It waits on 5m and 8m; the concealed dragons are two flower points."""


def setup(**said: str) -> dict[str, str]:
    return any_setup(**{"rule_set": "jintan", "options": ""} | FLOWERS_AWAY | said)


def scene(**said: str) -> Round:
    return begin(setup(**said))[0]


# ---- Passed wins ----


def test_a_passed_win_bars_the_next_discards_until_the_seat_draws() -> None:
    play = scene(hand_2=READY, dealer_drew="5m", front="8m 9s 8m")
    assert offered(play, 2) == ["win 5m", "pass"]
    moves(play, "2: pass")
    assert offered(play, 2) == ["chi 8m with 67m", "false win", "pass"]
    moves(play, "2: pass", "2: discard 9s")
    assert offered(play, 2) == ["win 8m", "pass"]


@pytest.mark.parametrize("passing", ["2: time out", "2: trustee on"])
def test_a_time_out_and_the_pass_of_a_trustee_bar_as_well(passing: str) -> None:
    play = scene(hand_2=READY, hand_1="8m369m147p258s345z", dealer_drew="5m", front="9p")
    moves(play, passing)
    if passing.endswith("on"):
        moves(play, "2: trustee off")
    moves(play, "1: discard 8m")
    assert offered(play, 2) == ["chi 8m with 67m", "false win", "pass"]


def test_a_chi_in_place_of_a_win_that_was_outranked_has_passed_it() -> None:
    play = scene(hand_1=READY, hand_3="55m8m69p258s12345z", dealer_drew="5m", front="9s 9s")
    assert offered(play, 1) == ["win 5m", "chi 5m with 67m", "pass"]
    told = moves(play, "1: chi 5m with 67m", "3: pong 5m", "3: discard 8m")
    assert [(event.seat, event.kind) for event in only(told, Asked)] == [(3, "turn"), (1, "turn")]


def test_a_kong_of_ones_own_lifts_the_bar() -> None:
    play = scene(
        hand_2=READY,
        hand_1="7z369m147p258s345z",
        hand_3="8m369m369p258s123z",
        dealer_drew="5m",
        front="9s 9s",
        back="1s",
    )
    moves(play, "2: pass", "1: discard 7z", "2: exposed kong 7z", "2: discard 1s")
    moves(play, "3: discard 8m")
    assert offered(play, 2) == ["win 8m", "pass"]


def test_robbing_is_not_barred_and_to_pass_it_bars_nothing() -> None:
    play = scene(hand_2=READY, hand_3="888m8p369p258s123z", dealer_drew="8m")
    moves(play, "2: pass", "3: pong 8m", "3: added kong 8m")
    assert offered(play, 2) == ["win 8m", "pass"]
    before = play.seats[2].passed
    moves(play, "2: pass")
    assert play.seats[2].passed == before
    assert [name(wait.tile) for wait in before] == ["8m"], "the discard alone"


def test_to_pass_a_self_draw_bars_nothing_but_the_kind_that_was_discarded() -> None:
    play = scene(hand_1=READY, hand_2="5m369m147p258s345z", dealer_drew="9s", front="8m 9s")
    assert offered(play, 1)[0] == "win 8m"
    moves(play, "1: discard 8m", "2: discard 5m")
    assert offered(play, 1) == ["win 5m", "pass"]


# ---- Own discards ----


def test_a_seat_does_not_rob_the_kind_that_it_discarded_last() -> None:
    play = scene(hand_1=READY, hand_2="888m369p258s1234z", dealer_drew="9s", front="8m")
    moves(play, "1: discard 8m", "2: pong 8m", "2: added kong 8m")
    assert offered(play, 1) == []
    assert play.seats[2].melds[0].kind is MeldKind.ADDED_KONG


# ---- 过牌 ----


def test_a_chi_that_leaves_only_what_it_bars_is_not_offered() -> None:
    # With 23 it would take the 1, and keep 11444: all barred. A 5 besides, and it may.
    for kept, chi in (("1123444m", []), ("1123445m", ["chi 1m with 23m"])):
        play = scene(
            hand_1=f"{kept}99p99s56z", dealer_drew="9p", front="9s 1z 2z 1m", at_100="1f 2f"
        )
        moves(play, "1: pong 9p", "1: discard 5z", "1: pong 9s", "1: discard 6z")
        assert offered(play, 1) == ["pong 1m", *chi, "false win", "pass"]


# ---- Kongs ----


def test_the_fourth_tile_may_be_added_in_the_turn_of_the_pong_and_be_robbed() -> None:
    play = scene(hand_2="777z123p456s44p79m", hand_1="888m369p258s1234z", dealer_drew="8m")
    moves(play, "2: pass", "1: pong 8m")
    assert "added kong 8m" in offered(play, 1)
    moves(play, "1: added kong 8m")
    moves(play, "2: win 8m")
    assert isinstance(play.end, Win)
    assert (play.end.by, play.end.source) == ("rob_kong", 1)
    assert play.result is not None
    assert play.result.net == (0, -60, 60, 0), "three times 10 + 2 x 5"


def test_a_kong_asks_for_a_tile_to_replace_it() -> None:
    play = scene(hand_0="1111z147m258p369s", dealer="1")
    left = []
    while not play.ended:
        if play.prompts()[0].kind == "claim":
            moves(play, "0: pass")
            continue
        left.append(play.tiles_left)
        assert ("concealed kong 1z" in offered(play, 0)) == (play.tiles_left > 0)
        drawn = play.seats[0].drawn
        assert drawn is not None
        moves(play, f"0: discard {name(drawn)}")
    assert left[-1] == 0
    assert play.end == Draw()


# ---- Flowers ----


def test_eight_flowers_win_before_anybody_has_played() -> None:
    play, told = begin(
        setup(
            hand_2="1234567f147m258p",
            hand_0="369m369p369s1234z9p",
            back="1s 2s 8f",
            at_100="",
        )
    )
    assert [event.seat for event in only(told, FlowerLaid)] == [2] * 8
    assert [name(event.tile) for event in only(told, Drew)][:3] == ["1s", "2s", "8f"]
    assert len(only(told, Drew)) == 7, "the last is not replaced"
    assert play.end == EightFlowers(2)
    assert play.result is not None
    assert play.result.net == (-100, -100, 300, -100)


def test_the_eighth_flower_wins_with_the_last_tile_of_the_wall() -> None:
    # 53 tiles are dealt, seven replaced at the back: the last of 84 draws is index 136, and it is
    # the dealer's, who has seven flowers.
    play, told = begin(
        setup(
            hand_1="1234567f147m258p3s",
            dealer="1",
            trustees="0 1 2 3",
            at_136="8f",
            at_100="",
        )
    )
    assert [(event.seat, name(event.tile)) for event in only(told, Drew)][-1] == (1, "8f")
    assert play.tiles_left == 0
    assert play.end == EightFlowers(1)


# ---- One winner, several winners ----

OTHER = "666z123p456s55p46m"
"""It waits on 5m, with two flower points."""


@pytest.mark.parametrize(("options", "winners"), [("", (1, 2)), ("several_winners off", (1,))])
def test_a_discard_has_several_winners_or_the_nearest(
    options: str, winners: tuple[int, ...]
) -> None:
    play = scene(hand_1=READY, hand_2=OTHER, dealer_drew="5m", options=options)
    moves(play, "2: win 5m", "1: win 5m")
    assert isinstance(play.end, Win)
    assert play.end.winners == winners


def test_the_nearest_without_flower_or_fan_stands_in_nobodys_way() -> None:
    play = scene(
        hand_1="123p456s44p67m789s",
        hand_2=OTHER,
        dealer_drew="5m",
        options="several_winners off",
    )
    assert offered(play, 1) == ["chi 5m with 67m", "false win", "pass"]
    moves(play, "1: chi 5m with 67m", "2: win 5m")
    assert isinstance(play.end, Win)
    assert play.end.winners == (2,)


# ---- 诈胡 ----


def test_a_false_win_leaves_the_claim_open_and_what_follows_counts() -> None:
    play = scene(hand_1="123p456s44p67m789s", dealer_drew="5m")
    moves(play, "1: false win")
    assert offered(play, 1) == ["chi 5m with 67m", "pass"]
    moves(play, "1: chi 5m with 67m")
    assert [meld.kind for meld in play.seats[1].melds] == [MeldKind.CHI]
    assert play.false_wins == [1]
    assert "false win" in offered(play, 1), "once in each decision"
