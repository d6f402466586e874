"""One hand of play: who is asked what, when, and what comes of it."""

from __future__ import annotations

import copy
from typing import TypeVar

import pytest

from fangcheng_rules.actions import (
    PASS,
    Action,
    Analysed,
    AnalyzeQuestion,
    Choose,
    Dissolve,
    Leave,
    Scored,
    SetTrustee,
    TimeOut,
    WindowOver,
)
from fangcheng_rules.analysis import Analysis
from fangcheng_rules.errors import (
    ActionRefused,
    AlreadyAnswered,
    NotOffered,
    StaleDecision,
    UnknownRevision,
    UnknownRuleSet,
    WrongSeat,
)
from fangcheng_rules.events import (
    Answered,
    Asked,
    Called,
    Discarded,
    Drew,
    Event,
    KongDone,
    TrusteeSet,
    WindowClosed,
    Withdrawn,
)
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.round import HandSetup, Round
from fangcheng_rules.scoring import Dissolved, Draw, Escape, Score, Win
from fangcheng_rules.simulate import answer
from fangcheng_rules.tiles import from_name
from tests.rules.transcripts import begin, do, hand_setup, words

E = TypeVar("E")


def setup(**said: str) -> dict[str, str]:
    """A hand in which only the seats whose tiles are said are players.

    `hand_1` is the setup's `hand 1`. The table plays for the others: they pass every claim and
    discard what they draw, the dealer what it was dealt last (`dealer_drew`).
    """
    named = {key.replace("hand_", "hand ").replace("at_", "at "): said[key] for key in said}
    others = " ".join(str(seat) for seat in range(4) if f"hand {seat}" not in named)
    basic = {"rule_set": "baishan_kele", "options": "piao off", "dealer": "0", "trustees": others}
    return basic | named


def scene(**said: str) -> Round:
    """Such a hand, up to where a player is asked."""
    return begin(setup(**said))[0]


def moves(play: Round, *said: str) -> list[Event]:
    return [event for move in said for event in do(play, move)]


def offered(play: Round, seat: int) -> list[str]:
    prompt = play.prompts().get(seat)
    return [words(action) for action in prompt.actions] if prompt else []


def only(events: list[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def discard(tile: str, declare: str = "") -> Action:
    return Action("discard", from_name(tile), declare=declare)


def turns_of(events: list[Event], seat: int) -> list[str]:
    """How often and for what a seat was asked."""
    return [event.kind for event in only(events, Asked) if event.seat == seat]


# ---- Setting up ----


def test_a_hand_is_begun_under_a_known_rule_set_and_with_its_tiles_only() -> None:
    right = hand_setup(setup(hand_0="1m"))
    known = {name: getattr(right, name) for name in HandSetup.__slots__}
    with pytest.raises(UnknownRuleSet):
        Round.begin(HandSetup(**known | {"rule_set_id": "riichi"}))
    with pytest.raises(UnknownRevision):
        Round.begin(HandSetup(**known | {"revision": 99}))
    with pytest.raises(ValueError, match="tiles"):
        Round.begin(HandSetup(**known | {"wall": right.wall[:-1]}))
    with pytest.raises(ValueError, match="seat"):
        Round.begin(HandSetup(**known | {"dealer": 4}))


@pytest.mark.parametrize("dealer", range(4))
def test_the_deal_goes_round_from_the_dealer(dealer: int) -> None:
    play, _ = Round.begin(hand_setup(setup(dealer=str(dealer), hand_0="1m")))
    taken = [sorted(seat.concealed) for seat in play.seats]
    order = [(dealer + step) % 4 for step in range(4)]
    hands: dict[int, list[int]] = {seat: [] for seat in order}
    wall = iter(play.wall)
    for _ in range(3):
        for seat in order:
            hands[seat] += [next(wall) for _ in range(4)]
    for seat in (*order, dealer):
        hands[seat].append(next(wall))
    assert taken == [sorted(hands[seat]) for seat in range(4)]
    assert play.seats[dealer].drawn == play.wall[52]
    assert play.tiles_left == 83


# ---- Questions and prompts ----


def test_no_prompt_is_open_while_a_question_of_the_turn_is_unanswered() -> None:
    play, _ = Round.begin(hand_setup(setup(hand_0="1m")))
    assert [question.seat for question in play.questions()] == [0, 1, 2, 3]
    for question in play.questions():
        assert play.prompts() == {}
        assert isinstance(question, AnalyzeQuestion)
        assert question.hand.size == (14 if question.seat == 0 else 13)
        play.step(answer(play, question))
    assert play.questions() == ()
    assert list(play.prompts()) == [0]


def test_an_analysis_of_another_hand_is_refused() -> None:
    play, _ = Round.begin(hand_setup(setup(hand_0="147m258p369s12345z")))
    dealer, second = (answer(play, question) for question in play.questions()[:2])
    assert isinstance(dealer, Analysed)
    assert isinstance(second, Analysed)
    before = copy.deepcopy(play)
    for mistaken in (Analysed(1, second.analysis), Analysed(2, dealer.analysis)):
        with pytest.raises(ActionRefused) as caught:
            play.step(mistaken)
        assert caught.value.reason == "WRONG_ANALYSIS"
        assert play == before


def test_claims_ask_nothing_new_of_the_evaluator_and_a_turn_asks_once() -> None:
    play = scene(dealer_drew="3z", hand_1="33z258m369p147s12z")
    assert play.asked == 4
    assert offered(play, 1) == ["pong 3z", "pass"]
    moves(play, "1: pong 3z")
    assert play.asked == 5


def test_decisions_count_for_each_seat_from_one() -> None:
    play = scene(dealer_drew="3z", hand_2="33z69m147p258s126z", front="5z 7z")
    assert [(seat, prompt.decision) for seat, prompt in play.prompts().items()] == [(2, 1)]
    moves(play, "2: pass")
    assert [(seat, prompt.decision) for seat, prompt in play.prompts().items()] == [(2, 2)]


def test_an_answer_that_cannot_be_taken_changes_nothing() -> None:
    play = scene(hand_0="147m258p369s12345z")
    before = copy.deepcopy(play)
    for refusal, choice in (
        (WrongSeat, Choose(1, 1, discard("1m"))),
        (WrongSeat, Choose(7, 1, discard("1m"))),
        (StaleDecision, Choose(0, 0, discard("1m"))),
        (StaleDecision, Choose(0, 2, discard("1m"))),
        (NotOffered, Choose(0, 1, discard("9p"))),
        (NotOffered, Choose(0, 1, discard("1m", "ting"))),
        (NotOffered, Choose(0, 1, PASS)),
    ):
        with pytest.raises(refusal):
            play.step(choice)
        assert play == before


def test_a_repeat_of_the_same_answer_is_told_from_a_change_of_mind() -> None:
    play = scene(hand_0="147m258p369s12345z")
    moves(play, "0: discard 1m")
    before = copy.deepcopy(play)
    with pytest.raises(AlreadyAnswered):
        play.step(Choose(0, 1, discard("1m")))
    with pytest.raises(StaleDecision):
        play.step(Choose(0, 1, discard("4m")))
    assert play == before


def test_what_the_shell_brings_too_late_is_passed_over() -> None:
    play = scene(hand_0="147m258p369s12345z")
    moves(play, "0: discard 1m")
    before = copy.deepcopy(play)
    for late in (
        TimeOut(0, 1),
        TimeOut(2, 1),
        WindowOver(1),
        WindowOver(99),
        Analysed(1, Analysis()),
        Scored(1, Score()),
        SetTrustee(0, False),
        SetTrustee(1, True),
    ):
        assert play.step(late) == []
        assert play == before
    for never_asked in (Analysed(99, Analysis()), Scored(99, Score())):
        with pytest.raises(ActionRefused):
            play.step(never_asked)
        assert play == before


# ---- Before the deal ----


def test_all_are_asked_for_piao_at_once_and_shown_when_all_have_chosen() -> None:
    play = scene(options="piao on", hand_0="1m", hand_1="2m", hand_2="3m", hand_3="4m")
    assert [prompt.kind for prompt in play.prompts().values()] == ["piao"] * 4
    assert offered(play, 3) == ["piao 0", "piao 5", "piao 10"]
    told = moves(play, "3: piao 10", "0: piao 5", "1: time out")
    assert {type(event).__name__ for event in told} == {"Answered", "TimedOut"}
    moves(play, "2: piao 0")
    assert [seat.piao for seat in play.seats] == [5, 0, 0, 10]
    assert play.front == 53


def test_a_trustee_chooses_no_piao_and_is_not_asked() -> None:
    play = scene(options="piao on", hand_0="1m")
    assert list(play.prompts()) == [0]
    moves(play, "0: trustee on")
    assert [seat.piao for seat in play.seats] == [0, 0, 0, 0]


# ---- Claims ----


def test_nothing_is_resolved_before_the_claim_window_is_over() -> None:
    play = scene(hand_0="147m258p369s12345z", hand_2="33z69m147p258s126z")
    play.step(Choose(0, 1, discard("3z")))
    assert play.window() == 1
    play.step(Choose(2, 1, Action("pong", from_name("3z"))))
    assert play.window() == 1
    told = play.step(WindowOver(1))
    assert isinstance(told[0], WindowClosed)
    assert isinstance(told[1], Called)
    assert play.window() is None


def test_a_window_opens_after_every_discard_whether_anyone_is_asked_or_not() -> None:
    play = scene(hand_0="147m258p369s12345z")
    play.step(Choose(0, 1, discard("1m")))
    assert play.prompts() == {}
    assert play.window() == 1
    assert only(play.step(WindowOver(1)), Drew)


CHI_OR_PONG = {
    "dealer_drew": "1m",
    "hand_1": "23m58m369p147s125z",
    "hand_2": "11m9m147p258s1267z",
}


def test_a_pong_does_not_wait_for_a_chi() -> None:
    play = scene(**CHI_OR_PONG)
    assert offered(play, 1) == ["chi 1m with 23m", "pass"]
    assert offered(play, 2) == ["pong 1m", "pass"]
    told = moves(play, "window over", "2: pong 1m")
    assert only(told, Withdrawn) == [Withdrawn(1, 1)]
    assert [call.seat for call in only(told, Called)] == [2]


def test_a_chi_waits_for_a_pong_that_is_still_out() -> None:
    play = scene(**CHI_OR_PONG)
    assert only(moves(play, "window over", "1: chi 1m with 23m"), Called) == []
    told = moves(play, "2: pass")
    assert [call.seat for call in only(told, Called)] == [1]


def test_every_way_to_chi_is_offered_to_the_next_seat_alone() -> None:
    play = scene(dealer_drew="5m", hand_1="3467m369p147s125z", hand_2="346m147p258s1267z")
    assert offered(play, 1) == ["chi 5m with 34m", "chi 5m with 46m", "chi 5m with 67m", "pass"]
    assert offered(play, 2) == []


def test_sequences_are_of_one_suit_and_not_of_honours() -> None:
    play = scene(dealer_drew="1z", hand_1="258m369p147s2345z")
    assert turns_of(_all(play), 1) == ["turn"]
    play = scene(dealer_drew="9m", hand_1="258m12p369p47s125z")
    assert turns_of(_all(play), 1) == ["turn"]


def _all(play: Round) -> list[Event]:
    return [Asked(seat, p.decision, p.kind) for seat, p in play.prompts().items()]


TWO_WAIT = {
    "dealer_drew": "5m",
    "hand_1": "222z456p99s46m123p",
    "hand_2": "111z99p789p46m123s",
}


def test_the_nearest_seat_wins_though_the_farther_one_spoke_first() -> None:
    play = scene(**TWO_WAIT)
    assert offered(play, 1)[0] == offered(play, 2)[0] == "win 5m"
    moves(play, "window over", "2: win 5m")
    assert play.end is None
    moves(play, "1: win 5m")
    assert isinstance(play.end, Win)
    assert play.end.winners == (1,)


def test_the_nearest_seat_wins_without_waiting_for_the_farther_one() -> None:
    play = scene(**TWO_WAIT)
    told = moves(play, "window over", "1: win 5m")
    assert only(told, Withdrawn) == [Withdrawn(2, 1)]
    assert isinstance(play.end, Win)
    assert (play.end.by, play.end.source, play.end.tile) == ("discard", 0, from_name("5m"))


def test_a_passed_win_binds_nothing() -> None:
    play = scene(dealer_drew="5m", hand_1="222z456p99s46m123p", front="7z 5m")
    moves(play, "1: pass", "1: discard 7z")
    assert offered(play, 1) == ["win 5m", "pass"]


def test_after_a_chi_the_seat_discards_and_never_wins() -> None:
    play = scene(dealer_drew="3m", hand_1="12m444m555p777s99s")
    assert offered(play, 1)[0] == "win 3m"
    moves(play, "1: chi 3m with 12m")
    assert {words(action).split()[0] for action in play.prompts()[1].actions} == {"discard"}


def test_after_a_pong_no_kong_can_be_made() -> None:
    play = scene(dealer_drew="3z", hand_1="33z4444m369p147s1z")
    moves(play, "1: pong 3z")
    assert {action.kind for action in play.prompts()[1].actions} == {"discard"}


def test_an_exposed_kong_takes_its_replacement_from_the_back() -> None:
    play = scene(dealer_drew="3z", hand_1="333z58m369p147s12z", back="7s")
    assert offered(play, 1) == ["exposed kong 3z", "pong 3z", "pass"]
    told = moves(play, "1: exposed kong 3z")
    assert [call.meld.kind for call in only(told, Called)] == [MeldKind.EXPOSED_KONG]
    assert only(told, Drew) == [Drew(1, from_name("7s"), "back")]
    assert play.kongs == 1


def test_an_added_kong_takes_its_replacement_only_after_the_window() -> None:
    play = scene(dealer_drew="3z", hand_1="33z258m369p147s12z", front="5z 6z 7z 3z", back="7s")
    moves(play, "1: pong 3z", "1: discard 1z")
    prompt = play.prompts()[1]
    kong = next(action for action in prompt.actions if action.kind == "kong")
    assert play.step(Choose(1, prompt.decision, kong))
    window = play.window()
    assert window is not None
    assert play.kongs == 0
    told = play.step(WindowOver(window))
    assert [type(event).__name__ for event in told[:3]] == ["WindowClosed", "KongDone", "Drew"]
    assert play.seats[1].melds[0].source == 0
    assert play.kongs == 1


# ---- Wins and what they are called ----


def test_the_dealer_wins_as_dealt() -> None:
    play = scene(hand_0="123m456p789s111z22z")
    moves(play, "0: win 2z")
    assert isinstance(play.end, Win)
    assert (play.end.by, play.end.on_deal) == ("self_draw", True)


def test_a_kong_first_spoils_the_win_as_dealt() -> None:
    play = scene(hand_0="1111z123m456p99s78s", back="9s")
    moves(play, "0: concealed kong 1z", "0: win 9s")
    assert isinstance(play.end, Win)
    assert (play.end.after_kong, play.end.on_deal) == ("concealed", False)


def test_a_win_on_the_replacement_tells_who_fed_the_exposed_kong() -> None:
    play = scene(dealer_drew="3z", hand_1="333z456p99s78s123p", back="9s")
    moves(play, "1: exposed kong 3z", "1: win 9s")
    assert isinstance(play.end, Win)
    assert (play.end.after_kong, play.end.kong_source) == ("exposed", 0)


AFTER_KONG = {
    "dealer_drew": "3z",
    "hand_1": "333z58m369p147s12z",
    "hand_2": "111z78p456m123s99p",
}


def test_the_discard_that_follows_a_kong_and_its_replacement_is_known_as_such() -> None:
    play = scene(**AFTER_KONG, back="6p")
    moves(play, "1: exposed kong 3z", "1: discard 6p", "2: win 6p")
    assert isinstance(play.end, Win)
    assert play.end.discard_after_kong


def test_the_discard_of_the_next_go_round_is_not() -> None:
    play = scene(**AFTER_KONG, back="7s", front="5z 5s 4m 6p")
    moves(play, "1: exposed kong 3z", "1: discard 7s", "2: discard 5z")
    moves(play, "1: discard 6p", "2: win 6p")
    assert isinstance(play.end, Win)
    assert not play.end.discard_after_kong


# ---- 听 ----

TING = "123p88m79s555m234s6z"


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
