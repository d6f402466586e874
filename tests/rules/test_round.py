"""One hand of play: who is asked what, when, and what comes of it."""

from __future__ import annotations

import copy

import pytest

from fangcheng_rules.actions import (
    PASS,
    Action,
    Analysed,
    AnalyzeQuestion,
    Choose,
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
    Asked,
    Called,
    Drew,
    Event,
    WindowClosed,
    Withdrawn,
)
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.round import HandSetup, Round
from fangcheng_rules.scoring import Score, Win
from fangcheng_rules.simulate import answer
from fangcheng_rules.tiles import from_name
from tests.rules.rounds import CHI_OR_PONG, discard, moves, offered, only, scene, setup, turns_of
from tests.rules.transcripts import hand_setup, words

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


@pytest.mark.parametrize("seat", [-1, 4])
def test_a_seat_that_there_is_not_is_refused_in_every_command(seat: int) -> None:
    play = scene(dealer_drew="3z", hand_1="33z258m369p147s12z")
    before = copy.deepcopy(play)
    for command in (
        Choose(seat, 1, PASS), TimeOut(seat, 1), SetTrustee(seat, on=True), Leave(seat)
    ):  # fmt: skip
        with pytest.raises(WrongSeat) as caught:
            play.step(command)
        assert caught.value.reason == "NO_SUCH_SEAT"
        assert play == before


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
