"""Hands of `shandong` in play, clause by clause of its page: flowers, 楼, the wall, first round."""

from __future__ import annotations

import pytest

from fangcheng_rules.events import Drew, FlowerLaid
from fangcheng_rules.round import Round
from fangcheng_rules.scoring import Draw, Win
from fangcheng_rules.tiles import name
from tests.rules.rounds import moves, offered, only
from tests.rules.rounds import setup as any_setup
from tests.rules.transcripts import begin

FLOWERS_AWAY = {"at_100": "1f 2f 3f 4f 5f 6f 7f 8f"}
"""No flower is met in the first draws."""

READY = "123p456s222s55p67m"
"""It waits on 5m and 8m."""


def setup(**said: str) -> dict[str, str]:
    return any_setup(**{"rule_set": "shandong", "options": ""} | FLOWERS_AWAY | said)


def scene(**said: str) -> Round:
    return begin(setup(**said))[0]


def net(play: Round) -> tuple[int, ...]:
    assert play.result is not None
    return play.result.net


def won(play: Round) -> Win:
    assert isinstance(play.end, Win)
    return play.end


# ---- Flowers ----


def test_flowers_are_replaced_in_turn_order_from_the_dealer_until_no_hand_has_one() -> None:
    play, told = begin(
        setup(
            dealer="2",
            hand_2="147m258p369s123z5z1f",
            hand_0="147m258p369s12z23f",
            hand_1="147m258p369s123z4f",
            back="1s 5f 2s 6f 7f 3s 4s",
            at_100="8f",
        )
    )
    laid = [(event.seat, name(event.tile)) for event in only(told, FlowerLaid)]
    assert laid == [
        (2, "1f"),
        (0, "2f"),
        (0, "3f"),
        (0, "5f"),
        (0, "6f"),
        (0, "7f"),
        (1, "4f"),
    ]
    drew = [(event.seat, name(event.tile), event.origin) for event in only(told, Drew)]
    assert [(seat, tile) for seat, tile, _ in drew] == [
        (2, "1s"),
        (0, "5f"),
        (0, "2s"),
        (0, "6f"),
        (0, "7f"),
        (0, "3s"),
        (1, "4s"),
    ]
    assert {origin for *_, origin in drew} == {"flower"}
    assert play.turn == 2, "and the dealer plays first"


def test_heavenly_with_a_flower_dealt_last_is_no_win_on_a_replacement() -> None:
    play = scene(hand_0="123m456p789s123s5p1f", dealer_drew="1f", back="5p", at_100="2f")
    moves(play, "0: win 5p")
    assert (won(play).on_deal, won(play).after_flower) == (True, True)
    assert net(play) == (108, -36, -36, -36), "(5 + 1) x 6"


def test_a_concealed_kong_before_the_win_ends_heavenly_and_earthly() -> None:
    play = scene(
        hand_0="9999m123p456s55p67m", hand_1="123p456s234s55p46m", dealer_drew="9m", back="8m"
    )
    moves(play, "0: concealed kong 9m")
    assert offered(play, 0)[0] == "win 8m"
    moves(play, "0: win 8m")
    assert not won(play).on_deal
    assert net(play) == (42, -14, -14, -14), "(5 + 2) x 2, 杠上开花 alone"
    play = scene(
        hand_0="9999m123p456s55p67m", hand_1="123p456s234s55p46m", dealer_drew="9m", back="5m"
    )
    moves(play, "0: concealed kong 9m", "0: discard 5m", "1: win 5m")
    assert won(play).first_round == ()
    assert net(play) == (-5, 5, 0, 0)


def test_earthly_is_for_who_has_not_discarded() -> None:
    play = scene(hand_1=READY, hand_2="5m369m147p258s345z", dealer_drew="9s", front="9p 9p")
    moves(play, "1: discard 9p", "2: discard 5m", "1: win 5m")
    assert won(play).first_round == ()
    assert net(play) == (0, 5, -5, 0)


# ---- 楼 ----


def test_the_discard_that_declares_open_lou_is_paid_double_when_it_is_won() -> None:
    play = scene(hand_0="8m123p456s789s55p67s", hand_2="123p456s222s55p67m")
    moves(play, "0: discard 8m lou_open", "2: win 8m")
    assert net(play) == (-50, 0, 50, 0), "地和 5 x 5, doubled"


@pytest.mark.parametrize(
    ("declared", "asked"), [("lou_open", []), ("lou_hidden", ["win 8m", "pass"])]
)
def test_open_lou_wins_neither_a_discard_nor_a_robbed_kong(declared: str, asked: list[str]) -> None:
    play = scene(
        hand_1=READY,
        hand_3="888m369p258s1234z",
        dealer_drew="9s",
        front="1z 8m 9p 9p 9s 9s",
    )
    moves(play, f"1: discard 1z {declared}")
    assert offered(play, 1) == asked, "of the 8m that seat 2 draws and discards"
    moves(play, *["1: pass"] * bool(asked), "3: pong 8m", "3: discard 1z", "3: added kong 8m")
    assert offered(play, 1) == asked


def test_a_lou_kongs_only_what_it_drew() -> None:
    # It has held four 2s from the start, and draws the fourth 9m.
    play = scene(hand_0="999m222234s55p67m1z", front="9s 9s 9s 9m")
    moves(play, "0: discard 1z lou_hidden")
    assert offered(play, 0) == ["concealed kong 9m", "pass"]


def test_a_lou_makes_no_kong_that_changes_its_waits() -> None:
    # It waits on 2m 5s 8s; with four 5s laid down only the 8s would be left.
    play = scene(hand_0="55567s123p22m678m1z", front="9s 9s 9s 5s")
    moves(play, "0: discard 1z lou_hidden")
    assert offered(play, 0) == ["win 5s", "pass"]


def test_lou_goes_with_the_discard_after_a_pong_too() -> None:
    play = scene(hand_1="123p456s22s99s67m5z", dealer_drew="9s")
    moves(play, "1: pong 9s")
    declared = [action for action in offered(play, 1) if "lou" in action]
    assert declared == ["discard 5z lou_open", "discard 5z lou_hidden"]


# ---- The end of the wall ----


def test_no_kong_without_a_tile_that_may_be_drawn() -> None:
    play = scene(
        hand_0="1111z147m258p369s", dealer="1", at_100="", at_132="1f 2f 3f 4f 5f 6f 7f 8f"
    )
    left = []
    while not play.ended:
        if play.prompts()[0].kind == "claim":
            moves(play, "0: pass")
            continue
        drawable = play.rule_set.wall.drawable(play.wall_count)
        left.append(drawable)
        assert ("concealed kong 1z" in offered(play, 0)) == (drawable > 0)
        drawn = play.seats[0].drawn
        assert drawn is not None
        moves(play, f"0: discard {name(drawn)}")
    assert left[-1] == 0
    assert play.end == Draw()
    assert play.tiles_left == 12


# ---- One winner, several winners, the dealer ----


@pytest.mark.parametrize(("options", "winners"), [("", (1, 2)), ("several_winners off", (1,))])
def test_a_discard_has_several_winners_or_the_nearest(
    options: str, winners: tuple[int, ...]
) -> None:
    play = scene(hand_1=READY, hand_2="123p789s333s88p46m", dealer_drew="5m", options=options)
    moves(play, "2: win 5m", "1: win 5m")
    assert won(play).winners == winners
    assert play.rule_set.next_dealer(play.finished) == (0 if len(winners) > 1 else 1)


def test_no_kong_of_ones_own_follows_a_pong() -> None:
    play = scene(hand_1="1111z88p147s55p67m", dealer_drew="8p")
    moves(play, "1: pong 8p")
    assert [action for action in offered(play, 1) if "kong" in action] == []


def test_drawn_hands_before_double_up_to_five() -> None:
    for before, times in (("1", 2), ("5", 32), ("7", 32)):
        play = scene(hand_1=READY, dealer_drew="5m", **{"drawn before": before})
        moves(play, "1: win 5m")
        assert net(play) == (-25 * times, 25 * times, 0, 0), "地和"
