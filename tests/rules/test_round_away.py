"""Hands in which the table plays for a seat, a seat leaves, or all go."""

from __future__ import annotations

from fangcheng_rules.actions import (
    Action,
    Choose,
    Dissolve,
    Leave,
)
from fangcheng_rules.events import (
    Answered,
    Called,
    Discarded,
    KongDone,
    TrusteeSet,
    Withdrawn,
)
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.scoring import Dissolved, Draw, Escape, Score, Win
from fangcheng_rules.simulate import answer
from fangcheng_rules.tiles import from_name
from tests.rules.rounds import CHI_OR_PONG, TING, moves, offered, only, scene

# ---- Trustee play ----


def test_a_trustee_wins_where_it_has_declared() -> None:
    play = scene(hand_0=TING, hand_1="147m258p147s1235z", front="8s")
    moves(play, "0: discard 6z ting", "0: trustee on")
    told = moves(play, "1: discard 8s")
    assert Answered(0, 0, Action("win", from_name("8s"))) in told
    assert isinstance(play.end, Win)
    assert play.end.winners == (0,)


def test_a_trustee_that_declared_wins_what_it_draws() -> None:
    play = scene(hand_0=TING, hand_1="147m258p147s1235z", front="5z 6z 7z 8s")
    moves(play, "0: discard 6z ting", "0: trustee on", "1: discard 5z")
    assert isinstance(play.end, Win)
    assert play.end.by == "self_draw"


def test_a_trustee_that_has_not_declared_never_wins() -> None:
    play = scene(hand_0="123p88m79s555m234s8s")
    assert offered(play, 0)[0] == "win 9s"
    told = moves(play, "0: trustee on")
    assert isinstance(play.end, Draw)
    assert only(told, Discarded)[0] == Discarded(0, from_name("9s"), "")


def test_after_a_claim_the_table_discards_the_last_tile_in_order() -> None:
    play = scene(dealer_drew="3z", hand_1="33z258m369p147s12z")
    told = moves(play, "1: pong 3z", "1: time out")
    assert only(told, Discarded)[0] == Discarded(1, from_name("2z"), "")


def test_three_turns_in_a_row_that_run_out_make_a_trustee() -> None:
    play = scene(hand_0="147m258p369s12345z", front="5z 6z 7z 9m")
    told = moves(play, "0: time out")
    assert Discarded(0, from_name("5z"), "") in told
    told = moves(play, "0: time out")
    assert Discarded(0, from_name("9m"), "") in told
    assert only(told, TrusteeSet) == []
    told = moves(play, "0: time out")
    assert only(told, TrusteeSet) == [TrusteeSet(0, True, "timeouts")]
    assert isinstance(play.end, Draw)


def test_a_turn_that_is_played_breaks_the_row() -> None:
    play = scene(hand_0="147m258p369s12345z")
    moves(play, "0: time out", "0: time out", "0: discard 1m", "0: time out", "0: time out")
    assert play.trustees == (False, True, True, True)
    assert play.run_outs[0] == 2


def test_the_row_goes_on_from_the_hand_before() -> None:
    play = scene(hand_0="147m258p369s12345z", run_outs="2 0 0 0")
    told = moves(play, "0: time out")
    assert only(told, TrusteeSet) == [TrusteeSet(0, True, "timeouts")]


def test_a_claim_that_runs_out_is_a_pass_and_does_not_count() -> None:
    play = scene(dealer_drew="3z", hand_1="33z258m369p147s12z")
    told = moves(play, "1: time out")
    assert only(told, Called) == []
    assert play.run_outs[1] == 0


def test_a_declared_seat_whose_turn_runs_out_wins() -> None:
    play = scene(hand_0=TING, front="5z 6z 7z 8s")
    moves(play, "0: discard 6z ting", "0: time out")
    assert isinstance(play.end, Win)


def test_who_becomes_a_trustee_while_asked_has_passed() -> None:
    play = scene(dealer_drew="3z", hand_1="33z258m369p147s12z")
    told = moves(play, "1: trustee on")
    assert only(told, Withdrawn) == [Withdrawn(1, 1)]
    assert only(told, Called) == []


def test_a_trustee_who_comes_back_is_asked_again() -> None:
    play = scene(hand_0="147m258p369s12345z", hand_1="258m369p147s1234z")
    moves(play, "0: discard 1m")
    moves(play, "1: trustee on")
    assert 1 not in play.prompts()
    moves(play, "1: trustee off", "0: discard 4m")
    assert 1 in play.prompts()
    assert play.run_outs[1] == 0


# ---- Leaving and dissolving ----


def test_a_seat_that_leaves_ends_the_hand() -> None:
    play = scene(hand_0="147m258p369s12345z")
    told = moves(play, "2: leaves")
    assert only(told, Withdrawn) == [Withdrawn(0, 1)]
    assert play.end == Escape(2)
    assert play.result is not None
    assert (play.result.net, play.result.house) == ((0, 0, -100, 0), 100)
    assert play.step(Leave(1)) == []


def test_leaving_before_the_deal_is_an_escape_too() -> None:
    play = scene(options="piao on", hand_0="1m")
    moves(play, "3: leaves")
    assert play.result is not None
    assert (play.result.net, play.result.house) == ((0, 0, 0, -100), 100)


def test_an_added_kong_that_nobody_can_rob_lies_when_a_seat_leaves() -> None:
    play = scene(dealer_drew="3z", hand_1="33z258m369p147s12z", front="5z 6z 7z 3z")
    moves(play, "1: pong 3z", "1: discard 1z")
    prompt = play.prompts()[1]
    kong = next(action for action in prompt.actions if action.kind == "kong")
    play.step(Choose(1, prompt.decision, kong))
    assert play.step(Leave(2))[0] == KongDone(1, from_name("3z"), MeldKind.ADDED_KONG)
    play.step(answer(play, play.questions()[0]))
    assert play.result is not None
    assert play.result.net == (-2, 6, -102, -2)


ROB = {
    "dealer_drew": "8s",
    "hand_1": "88s14m258p36s1256z",
    "hand_3": "123p55m79s345m111s",
    "front": "5z 6z 7z 8s",
}
TO_ROB = ("3: pass", "1: pong 8s", "1: discard 1z", "3: discard 6z", "1: added kong 8s")


def test_a_robbing_that_is_pending_is_resolved_before_an_escape() -> None:
    play = scene(**ROB)
    moves(play, *TO_ROB, "2: leaves")
    assert play.end is None
    moves(play, "3: pass")
    assert play.end == Escape(2)
    assert play.result is not None
    assert play.result.net == (-2, 6, -102, -2)
    play = scene(**ROB)
    moves(play, *TO_ROB, "2: leaves", "3: win 8s")
    assert isinstance(play.end, Win)


def test_of_two_that_leave_at_once_the_first_from_the_dealer_escapes() -> None:
    play = scene(
        dealer="2", dealer_drew="8s", hand_3=ROB["hand_1"], hand_1=ROB["hand_3"], front=ROB["front"]
    )
    moves(play, "1: pass", "3: pong 8s", "3: discard 1z", "1: discard 6z", "3: added kong 8s")
    moves(play, "0: leaves", "2: leaves", "1: pass")
    assert play.end == Escape(2)


def test_once_nobody_can_win_an_escape_waits_for_no_other_claim() -> None:
    play = scene(dealer_drew="8s", hand_1=ROB["hand_1"], hand_3=ROB["hand_3"])
    moves(play, "window over", "2: leaves")
    assert offered(play, 1) == ["pong 8s", "pass"]
    told = moves(play, "3: pass")
    assert only(told, Withdrawn) == [Withdrawn(1, 1)]
    assert play.end == Escape(2)


def test_a_claim_for_a_meld_does_not_hold_up_an_escape() -> None:
    play = scene(**CHI_OR_PONG)
    told = moves(play, "1: leaves")
    assert play.end == Escape(1)
    assert {event.seat for event in only(told, Withdrawn)} == {1, 2}


def test_a_dissolved_hand_pays_nothing_and_asks_nothing() -> None:
    play = scene(hand_0="1111m2222p3333s44z")
    moves(play, "0: concealed kong 1m")
    told = play.step(Dissolve("by vote"))
    assert play.ended
    assert play.questions() == ()
    assert play.end == Dissolved("by vote")
    assert play.result == Score()
    assert type(told[-1]).__name__ == "HandEnded"
    assert play.step(Dissolve("again")) == []
