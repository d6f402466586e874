"""What only some rule sets have, in play: the whirlwind kong, the treasure, a false win."""

from __future__ import annotations

import pytest

from fangcheng_rules.actions import FALSE_WIN, Choose
from fangcheng_rules.errors import AlreadyAnswered, NotOffered
from fangcheng_rules.events import (
    Called,
    Discarded,
    Drew,
    Event,
    FalseWinCalled,
    KongDeclared,
    KongDone,
    KongRobbed,
    TreasureTurned,
)
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.notation import meld_to_mpsz
from fangcheng_rules.round import Round
from fangcheng_rules.rulesets.baicheng import RULE_SET
from fangcheng_rules.scoring import Win
from fangcheng_rules.tiles import from_name
from tests.rules.rounds import moves, offered, only
from tests.rules.rounds import scene as any_scene
from tests.rules.rounds import setup as any_setup
from tests.rules.transcripts import begin


def scene(**said: str) -> Round:
    return any_scene(**{"rule_set": "baicheng", "options": ""} | said)


def told_from_the_start(**said: str) -> list[Event]:
    return begin(any_setup(**{"rule_set": "baicheng", "options": ""} | said))[1]


def melds(play: Round, seat: int) -> list[str]:
    return [meld_to_mpsz(meld) for meld in play.seats[seat].melds]


def kongs_offered(play: Round, seat: int) -> list[str]:
    return [action for action in offered(play, seat) if "kong" in action]


# ---- 旋风杠 ----

THREE_DRAGONS = "147m258p369s567z4m"


def test_three_dragons_can_be_laid_down_and_need_no_replacement() -> None:
    play = scene(hand_1=THREE_DRAGONS, dealer_drew="9m", front="8m")
    assert kongs_offered(play, 1) == ["whirlwind kong 5z"]
    assert "discard 5z" in offered(play, 1)
    told = moves(play, "1: whirlwind kong 5z")
    assert only(told, Drew) == []
    assert melds(play, 1) == ["[567z]"]
    assert play.seats[1].is_open
    assert len(play.seats[1].concealed) == 11
    moves(play, "1: discard 8m")
    assert only(told, KongDone) == [KongDone(1, from_name("5z"), MeldKind.WHIRLWIND)]


def test_the_three_may_be_kept_until_a_fourth_dragon_is_drawn() -> None:
    play = scene(hand_1=THREE_DRAGONS, dealer_drew="9m", front="8m 8s 8s 8s 6z")
    moves(play, "1: discard 8m")
    assert offered(play, 1) == ["whirlwind kong 5z"], "it must be laid down before a discard"
    moves(play, "1: whirlwind kong 5z")
    assert kongs_offered(play, 1) == ["added kong 6z"]
    assert "discard 6z" in offered(play, 1), "adding the fourth is its choice"


def test_a_dragon_is_added_with_a_replacement_and_several_in_one_turn() -> None:
    play = scene(hand_1="147m258p36s567z55z", dealer_drew="9m", front="8m", back="9s 8s")
    moves(play, "1: whirlwind kong 5z")
    told = moves(play, "1: added kong 5z")
    assert [drew.origin for drew in only(told, Drew)] == ["back"]
    told = moves(play, "1: added kong 5z")
    assert [drew.tile for drew in only(told, Drew)] == [from_name("8s")]
    assert melds(play, 1) == ["[55567z]"]
    assert play.kongs == 3


def test_the_dealer_lays_it_down_in_its_first_turn_but_adds_from_the_second_on() -> None:
    play = scene(hand_0="147m258p36s5567z4m9s", front="8m 8s 8s 8m")
    assert offered(play, 0) == ["whirlwind kong 5z"]
    moves(play, "0: whirlwind kong 5z")
    assert kongs_offered(play, 0) == []
    moves(play, "0: discard 9s")
    assert kongs_offered(play, 0) == ["added kong 5z"]


def test_the_table_lays_it_down_for_a_trustee_only_where_it_must() -> None:
    said = {"hand_3": "258m147p369s258m1s", "hand_1": THREE_DRAGONS, "trustees": "0 1 2"}
    told = told_from_the_start(**said, dealer_drew="9m", front="8m 8s")
    assert only(told, KongDeclared) == []
    told = told_from_the_start(**said, dealer_drew="9m", front="6z 8s")
    laid = [(event.seat, event.kind) for event in only(told, KongDeclared)]
    assert laid == [(1, MeldKind.WHIRLWIND)]
    # It adds nothing, and discards what it drew.
    assert [event.tile for event in only(told, Discarded) if event.seat == 1] == [from_name("6z")]


def test_four_of_a_dragon_beside_the_others_are_no_concealed_kong_but_a_whirlwind() -> None:
    play = scene(hand_1="147m258p36s5556z4m", dealer_drew="9m", front="7z 8s 8s 8s 5z")
    assert kongs_offered(play, 1) == ["whirlwind kong 5z"]
    play = scene(hand_1="147m258p36s5556z4m", dealer_drew="9m", front="5z")
    assert kongs_offered(play, 1) == ["concealed kong 5z"], "where there is no 7z it is one"
    play = scene(hand_1="47m258p36s55567z4m", dealer_drew="9m", front="5z")
    assert offered(play, 1) == ["whirlwind kong 5z"]


def test_other_kongs_may_come_before_the_one_that_must_be_laid() -> None:
    play = scene(hand_1="1111m258p3s5567z4m", dealer_drew="9m", front="8m", back="9s")
    assert offered(play, 1) == ["whirlwind kong 5z", "concealed kong 1m"]
    moves(play, "1: concealed kong 1m")
    assert offered(play, 1) == ["whirlwind kong 5z"]


def test_a_turn_that_runs_out_is_played_to_its_end_where_a_kong_must_be_laid() -> None:
    play = scene(hand_1=THREE_DRAGONS, dealer_drew="9m", front="6z 8s")
    told = moves(play, "1: time out")
    assert [event.kind for event in only(told, KongDeclared)] == [MeldKind.WHIRLWIND]
    assert only(told, Discarded)[0] == Discarded(1, from_name("6z"), "")
    assert play.run_outs[1] == 1, "one turn has run out"


ADDED = {"hand_1": "147m258p36s5567z4m", "dealer_drew": "1p", "front": "8m", "back": "9s"}
TO_ADD = ("1: whirlwind kong 5z", "1: added kong 5z")


def test_an_added_dragon_is_robbed_by_a_win_before_a_pong() -> None:
    play = scene(hand_3="999m345p456s22p67z", hand_2="55z147m258p369s12s", **ADDED)
    moves(play, *TO_ADD)
    assert offered(play, 3) == ["win 5z", "pass"]
    moves(play, "2: pong 5z", "3: win 5z")
    assert isinstance(play.end, Win)
    assert (play.end.winners, play.end.by, play.end.source) == ((3,), "rob_kong", 1)
    assert melds(play, 1) == ["[567z]"]
    assert play.kongs == 1


def test_an_added_dragon_is_ponged_and_play_goes_on_from_who_took_it() -> None:
    play = scene(hand_2="55z147m258p369s12s", **ADDED)
    moves(play, *TO_ADD)
    told = moves(play, "2: pong 5z")
    assert only(told, KongRobbed) == [KongRobbed(1, from_name("5z"))]
    assert [(event.seat, event.meld.source) for event in only(told, Called)] == [(2, 1)]
    assert only(told, Drew) == [], "the robbed seat draws nothing"
    assert (melds(play, 1), melds(play, 2)) == (["[567z]"], ["[555z]"])
    assert len(play.seats[1].concealed) == 10
    assert play.kongs == 1
    told = moves(play, "2: discard 1m")
    assert only(told, Drew)[0].seat == 3


def test_who_passes_the_added_dragon_lets_its_replacement_come() -> None:
    play = scene(hand_2="55z147m258p369s12s", **ADDED)
    moves(play, *TO_ADD)
    told = moves(play, "2: pass")
    assert [drew.origin for drew in only(told, Drew)] == ["back"]
    assert melds(play, 1) == ["[5567z]"]


# ---- 宝牌 ----

READY = "678999m22345p67s"


def test_the_treasure_is_turned_up_after_the_deal() -> None:
    told = told_from_the_start(hand_0="1m", at_114="3m")
    assert only(told, TreasureTurned) == [TreasureTurned(114, from_name("3m"))]


def test_a_seat_that_waits_wins_on_the_treasure_it_draws() -> None:
    play = scene(hand_1=READY, dealer_drew="9p", front="3m", at_114="3m")
    assert offered(play, 1)[0] == "win 3m"
    moves(play, "1: win 3m")
    assert play.result is not None
    assert {item.id for item in play.result.winners[0].items} == {"treasure_draw", "closed"}


def test_a_seat_that_does_not_wait_does_not_win_on_it() -> None:
    play = scene(hand_1="678999m22346p69s", dealer_drew="9p", front="3m", at_114="3m")
    assert "win 3m" not in offered(play, 1)


def test_the_treasure_of_another_is_nothing() -> None:
    play = scene(hand_1=READY, dealer_drew="3m", front="1p", at_114="3m")
    assert "win 3m" not in offered(play, 1)


def test_the_dealt_fourteen_win_only_as_they_are() -> None:
    play = scene(hand_0=f"3m{READY}", dealer_drew="3m", at_114="3m")
    assert "win 3m" not in offered(play, 0)


def test_the_treasure_changes_once_its_other_copies_lie_face_up() -> None:
    told = told_from_the_start(
        hand_3="1m", dealer_drew="3m", front="3m 3m 8s", at_114="3m 7p", trustees="0 1 2"
    )
    turned = [i for i, event in enumerate(told) if isinstance(event, TreasureTurned)]
    assert [told[i] for i in turned] == [
        TreasureTurned(114, from_name("3m")),
        TreasureTurned(115, from_name("7p")),
    ]
    after = [type(event) for event in told[turned[1] :]]
    before = [event.tile for event in only(told[: turned[1]], Discarded)]
    assert before == [from_name("3m")] * 3
    assert after[1] is Drew, "before the next seat draws"


def test_a_pong_of_the_treasure_is_known_as_such_and_changes_it() -> None:
    play = scene(hand_2="33m147m258p369s12s", dealer_drew="3m", at_114="3m 7p")
    told = moves(play, "2: pong 3m")
    (called,) = only(told, Called)
    assert called.meld.treasure
    assert only(told, TreasureTurned) == [TreasureTurned(115, from_name("7p"))]
    assert play.treasure == from_name("7p")


def test_a_whirlwind_laid_down_can_be_the_last_of_the_treasure_to_lie_open() -> None:
    play = scene(
        hand_1=THREE_DRAGONS, dealer_drew="5z", front="8m 5z 8s 8s 9s", at_114="5z 7p", back="1p"
    )
    moves(play, "1: discard 8m")
    assert play.treasure == from_name("5z")
    told = moves(play, "1: whirlwind kong 5z")
    assert only(told, TreasureTurned) == [TreasureTurned(115, from_name("7p"))]


def test_a_change_that_leaves_four_but_for_the_replacement_is_not_made() -> None:
    # Seat 1 draws the last tile in front of the four: the third 5z to lie face up, which it adds.
    # 119 to 116 have been taken, so that 115 is either the next treasure or the replacement.
    play = scene(
        hand_1="1111m258p566677z",
        dealer_drew="5z",
        front="9m",
        at_109="5z",
        at_114="5z 9s",
        back="1p 1p 1p 2m",
    )
    moves(play, "1: whirlwind kong 5z", "1: added kong 6z", "1: added kong 6z")
    moves(play, "1: added kong 7z", "1: concealed kong 1m", "1: discard 2m")
    while "added kong 5z" not in offered(play, 1):
        choices = offered(play, 1)
        moves(play, "1: pass" if "pass" in choices else f"1: {choices[-1]}")
    assert RULE_SET.wall.drawable(play.wall_count) == 4
    told = moves(play, "1: added kong 5z")
    assert only(told, TreasureTurned) == [TreasureTurned(None, None)]
    assert only(told, Drew) == [Drew(1, from_name("9s"), "back")], "from behind the four"
    told = moves(play, f"1: {offered(play, 1)[-1]}")
    assert [drew.origin for drew in only(told, Drew)] == ["dealt_out"] * 4


# ---- 诈胡 ----


def jintan(**said: str) -> Round:
    return any_scene(**{"rule_set": "jintan", "options": ""} | said)


def test_a_false_win_is_seen_by_all_and_the_decision_stays_open() -> None:
    play = jintan(hand_1="147m258p369s1234z", dealer_drew="9m", front="8m")
    assert "false win" in offered(play, 1)
    decision = play.prompts()[1].decision
    told = moves(play, "1: false win")
    assert told == [FalseWinCalled(1, decision)]
    assert play.prompts()[1].decision == decision
    assert "false win" not in offered(play, 1)
    with pytest.raises(AlreadyAnswered):
        play.step(Choose(1, decision, FALSE_WIN))
    moves(play, "1: discard 8m", "1: leaves")
    assert play.result is not None
    paid = [(t.source, t.target, t.amount) for t in play.result.transfers]
    assert (1, None, 20) in paid


def test_who_can_win_cannot_call_a_false_win() -> None:
    play = jintan(hand_1="123456m44p789s12s", dealer_drew="9m", front="3s")
    assert offered(play, 1)[0] == "win 3s"
    assert "false win" not in offered(play, 1)


def test_a_false_win_is_refused_where_the_table_has_none() -> None:
    play = jintan(
        hand_1="147m258p369s1234z",
        dealer_drew="9m",
        front="8m",
        options="false_win_penalty off",
    )
    with pytest.raises(NotOffered):
        play.step(Choose(1, play.prompts()[1].decision, FALSE_WIN))
