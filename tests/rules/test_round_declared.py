"""Hands of declared seats, robbed kongs, and the end of the wall."""

from __future__ import annotations

import pytest

from fangcheng_rules.actions import (
    Action,
)
from fangcheng_rules.events import (
    Discarded,
    Drew,
    Event,
)
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.scoring import Draw, Escape, Win
from fangcheng_rules.tiles import from_name
from tests.rules.rounds import TING, moves, offered, only, scene, turns_of
from tests.rules.transcripts import words

# ---- 听 ----


def test_ting_is_offered_only_where_one_kind_of_wait_is_left() -> None:
    play = scene(hand_0=TING)
    assert [said for said in offered(play, 0) if "ting" in said] == ["discard 6z ting"]
    two_sided = scene(hand_0="123p88m78s555m234s6z")
    assert [said for said in offered(two_sided, 0) if "ting" in said] == []


def test_a_locked_seat_that_cannot_win_or_kong_is_not_asked() -> None:
    play = scene(hand_0=TING, front="5z 6z 7z 8p")
    told = moves(play, "0: discard 6z ting")
    drew = told.index(Drew(0, from_name("8p"), "front"))
    assert told[drew + 2] == Discarded(0, from_name("8p"), "")


@pytest.mark.parametrize("tile", ["8m", "4s", "5m"])
def test_a_closed_seat_that_declared_claims_nothing_but_a_win(tile: str) -> None:
    play = scene(hand_0=TING, front=f"5z 6z {tile} 8p")
    told = moves(play, "0: discard 6z ting")
    assert Discarded(3, from_name(tile), "") in told
    assert "claim" not in turns_of(told[: told.index(Drew(0, from_name("8p"), "front"))], 0)


def test_an_open_seat_that_declared_may_still_make_an_exposed_kong() -> None:
    play = scene(hand_0="123p88m79s555m11z67z", front="1z 5m")
    moves(play, "0: discard 7z", "0: pong 1z", "0: discard 6z ting")
    assert offered(play, 0) == ["exposed kong 5m", "pass"]
    moves(play, "0: exposed kong 5m")
    assert not play.seats[0].spoilt


def test_an_exposed_kong_that_takes_the_wait_away_spoils_it_for_the_hand() -> None:
    play = scene(
        hand_0="34445m123p79s11z67z",
        front="1z 4m 8s",
        back="7z 8s 8s 8s 1z",
        hand_1="258m369p147s2335z",
    )
    moves(play, "0: discard 7z", "1: discard 1z", "0: pong 1z", "0: discard 6z ting")
    moves(play, "1: discard 4m", "0: exposed kong 4m")
    assert play.seats[0].spoilt
    told = moves(play, "1: discard 8s", "1: trustee on")
    assert turns_of(told, 0) == []
    assert isinstance(play.end, Draw)


def test_a_kong_after_ting_uses_the_tile_just_drawn() -> None:
    # The four 5m were in the hand before it declared.
    play = scene(hand_0="555567m123p79s22z6z", front="5z 6z 7z 8p")
    assert "concealed kong 5m" in offered(play, 0)
    told = moves(play, "0: discard 6z ting")
    assert Discarded(0, from_name("8p"), "") in told


def test_a_locked_seat_that_passes_discards_what_it_drew() -> None:
    play = scene(hand_0=TING, front="5z 6z 7z 8s")
    moves(play, "0: discard 6z ting")
    assert offered(play, 0) == ["win 8s", "pass"]
    assert Discarded(0, from_name("8s"), "") in moves(play, "0: pass")


def test_the_declaration_stands_if_its_very_discard_is_won() -> None:
    play = scene(hand_0=TING, hand_1="123m456p789s777z6z")
    moves(play, "0: discard 6z ting", "1: win 6z")
    assert play.result is not None
    paid = {loser.seat: [item.id for item in loser.items] for loser in play.result.losers}
    assert "ting" in paid[0]
    assert "ting" not in paid[2]


def test_a_kong_may_carry_the_declaration_only_if_one_wait_is_left() -> None:
    play = scene(hand_0="5555m123p678s99m24s")
    assert "concealed kong 5m ting" in offered(play, 0)
    play = scene(hand_0="5555m123p678s99m23s")
    assert "concealed kong 5m" in offered(play, 0)
    assert "concealed kong 5m ting" not in offered(play, 0)


# ---- Robbing a kong ----


def test_a_robbed_kong_never_happened() -> None:
    play = scene(
        dealer_drew="8s",
        hand_1="88s14m258p36s1256z",
        hand_3="123p55m79s345m111s",
        front="5z 6z 7z 8s",
    )
    moves(play, "3: pass", "1: pong 8s", "1: discard 1z", "3: discard 6z")
    told = moves(play, "1: added kong 8s")
    assert only(told, Drew) == []
    assert offered(play, 3) == ["win 8s", "pass"]
    moves(play, "3: win 8s")
    assert isinstance(play.end, Win)
    assert (play.end.by, play.end.source) == ("rob_kong", 1)
    assert [meld.kind for meld in play.seats[1].melds] == [MeldKind.PONG]
    assert play.kongs == 0
    assert play.result is not None
    assert all(transfer.reason != "kong" for transfer in play.result.transfers)


# ---- The end of the wall ----


@pytest.mark.parametrize(
    ("kongs", "draws", "undrawn"), [(0, 65, 14), (1, 78, 0), (2, 77, 0), (3, 76, 0), (4, 75, 0)]
)
def test_as_many_tiles_are_drawn_as_the_kongs_allow(kongs: int, draws: int, undrawn: int) -> None:
    play = scene(hand_0="1111m2222p3333s44z", back="4z 4z 7z 6z")
    said = ["concealed kong 1m", "concealed kong 2p", "concealed kong 3s", "concealed kong 4z"]
    told = moves(play, *(f"0: {kong}" for kong in said[:kongs]), "0: trustee on")
    origins = [drew.origin for drew in only(told, Drew)]
    assert play.kongs == kongs
    assert origins.count("front") == draws
    assert origins.count("back") == kongs
    assert origins[-4:] == ["dealt_out"] * 4
    assert play.tiles_left == undrawn
    assert isinstance(play.end, Draw)


def test_the_last_discard_can_be_claimed_and_the_rest_is_dealt_from_the_next_seat() -> None:
    play = scene(dealer_drew="5z", hand_2="33z69m147p258s126z", at_117="3z", back="3z")
    told: list[Event] = []
    while offered(play, 2) != ["pong 3z", "pass"]:
        drawn = play.seats[2].drawn
        told = moves(play, "2: pass" if drawn is None else f"2: {words(Action('discard', drawn))}")
    assert told
    assert play.front == 118
    moves(play, "2: pong 3z", "2: discard 9m")
    assert play.dealt_out == [3, 0, 1, 2]


def test_nobody_is_asked_who_cannot_win_on_a_tile_dealt_out() -> None:
    play = scene(hand_0="147m258p369s12345z")
    told = moves(play, "0: trustee on")
    assert [kind for seat in range(4) for kind in turns_of(told, seat)] == []
    assert isinstance(play.end, Draw)


DEALT_OUT = {
    "dealer": "3",
    "hand_3": "123p88m79s555m234m6z",
    "hand_0": "147m369p147s1235z",
    "hand_1": "123m456p789s777z2z",
    "hand_2": "258m258p369s1356z",
    "trustees": "0 2",
    "front": "9m 4z",
    "at_118": "2z 4z 8s 3z",
    "back": "8s 8s 2z 7z",
}
TO_DEAL_OUT = ("3: discard 6z ting", "1: discard 4z ting")


def test_all_who_can_win_a_dealt_tile_are_asked_and_the_first_wins() -> None:
    play = scene(**DEALT_OUT)
    moves(play, *TO_DEAL_OUT)
    assert play.dealt_out == [1, 2, 3, 0]
    assert offered(play, 1) == ["win 2z", "pass"]
    assert offered(play, 3) == ["win 8s", "pass"]
    moves(play, "3: win 8s")
    assert play.end is None
    moves(play, "1: win 2z")
    assert isinstance(play.end, Win)
    assert (play.end.winners, play.end.by) == ((1,), "self_draw")


def test_a_declared_seat_that_lets_a_dealt_tile_run_out_wins_as_a_trustee_would() -> None:
    play = scene(**DEALT_OUT)
    moves(play, *TO_DEAL_OUT, "3: pass", "1: time out")
    assert isinstance(play.end, Win)
    assert play.run_outs[1] == 0


def test_dealt_tiles_are_won_before_a_seat_escapes() -> None:
    play = scene(**DEALT_OUT)
    moves(play, *TO_DEAL_OUT, "2: leaves", "1: pass")
    assert play.end is None
    moves(play, "3: pass")
    assert play.end == Escape(2)
