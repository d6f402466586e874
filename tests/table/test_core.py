"""The table around its hands, on a clock that the test turns."""

from __future__ import annotations

import random
from itertools import islice, pairwise

import pytest

from fangcheng_rules import events as play
from fangcheng_rules.actions import PASS, Action, Prompt
from fangcheng_rules.players import PLAYERS
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.simulate import situation_of
from fangcheng_rules.wall import derive, follows
from fangcheng_table.clocks import Patience
from fangcheng_table.errors import NotOffered, StaleDecision
from fangcheng_table.events import (
    ConnectionChanged,
    HandOpened,
    HoldsReleased,
    TableClosed,
    TableDeserted,
    Timing,
)
from fangcheng_table.ids import prompt_id
from fangcheng_table.state import TableState

from .tables import (
    NO_PIAO,
    RULE_SET,
    SILVER,
    SLOW,
    Drive,
    at_random,
    away,
    created,
    first_discard,
    kinds,
    of,
    passing,
    playing,
    races,
)

# The beginning.


def test_the_first_hand_begins_as_soon_as_all_four_attend():
    drive = Drive.of(created())
    assert drive.attend(0, 1, 2)
    assert drive.table.state.hand_number == 0
    events = drive.attend(3)
    assert of(HandOpened, events)
    assert drive.now_ms == 0
    assert not any(seat.trustee for seat in drive.table.state.seats)


def test_the_first_hand_begins_without_those_who_do_not_come():
    drive = Drive.of(created(), Patience(start_ms=5_000))
    drive.attend(0, 2)
    assert not drive.pass_time(4_999)
    events = drive.pass_time(1)
    assert of(play.TrusteeSet, events)[:2] == [
        play.TrusteeSet(1, True, "disconnected"),
        play.TrusteeSet(3, True, "disconnected"),
    ]
    assert of(play.HandStarted, events)[0].trustees == (False, True, False, True)


def test_a_table_to_which_nobody_comes_closes_unplayed():
    """An empty table never ended."""
    drive = Drive.of(created(hands=8, stakes=[SILVER], holds=True))
    assert drive.pass_time(179_999) == []
    assert drive.pass_time(1) == [TableDeserted(), TableClosed("deserted"), HoldsReleased()]


def test_the_first_dealer_is_rolled():
    dealers = set()
    for seed in range(12):
        drive = Drive.of(created(root=bytes([seed]) * 32, options=NO_PIAO))
        (started,) = of(play.HandStarted, drive.attend(0, 1, 2, 3))
        assert len(started.dice) == 2
        assert started.dealer == (started.dice[-1] - 1) % 4
        dealers.add(started.dealer)
    assert len(dealers) > 1


# The shuffle.


def test_the_secrets_of_the_hands_follow_from_the_commitment():
    drive = Drive.of(created(hands=3))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(1))
    before = drive.table.state.created.commitment
    opened = of(HandOpened, drive.events)
    assert [event.hand_number for event in opened] == [1, 2, 3]
    for event in opened:
        assert follows(event.secret, before)
        before = event.secret


def test_the_wall_follows_from_the_secret_and_the_seats_shares():
    drive = Drive.of(created(options=NO_PIAO))
    for seat in range(4):
        drive.table.give_entropy(seat, bytes([seat]) * 5)
    events = drive.attend(0, 1, 2, 3)
    (opened,), (started,) = of(HandOpened, events), of(play.HandStarted, events)
    assert opened.entropy == (b"\0" * 5, b"\1" * 5, b"\2" * 5, b"\3" * 5)
    tiles = rule_set(RULE_SET).wall_tiles
    wall, dice = derive(opened.secret, opened.entropy, "t1", 1, tiles=tiles, dice=2)
    assert (started.wall, started.dice) == (wall, dice)
    other, _ = derive(opened.secret, (b"",) * 4, "t1", 1, tiles=tiles, dice=2)
    assert other != wall


def test_a_share_given_in_a_hand_counts_from_the_next_one_on():
    drive = playing(hands=2)
    drive.table.give_entropy(2, b"late")
    drive.settle()
    drive.play(passing)
    first, second = of(HandOpened, drive.events)
    assert first.entropy == (b"", b"", b"", b"")
    assert second.entropy == (b"", b"", b"late", b"")


# Answers and their time.


def test_an_answer_is_taken_once_and_its_repeat_is_answered_the_same():
    drive = playing()
    dealer = drive.table.state.dealer
    prompt = drive.prompt(dealer)
    assert prompt is not None
    decision, action = prompt_id(1, prompt.decision), prompt.actions[0]
    assert drive.table.act(dealer, decision, action) is False
    assert drive.settle()
    assert drive.table.act(dealer, decision, action) is True
    assert drive.settle() == []
    with pytest.raises(StaleDecision):
        drive.table.act(dealer, decision, prompt.actions[1])
    assert drive.settle() == []


@pytest.mark.parametrize(
    "decision_id", ["1-2", "2-1", "0-1", "1-0", "back-1", "x", "1-1-1", "１-1"]
)
def test_a_decision_that_never_was_is_stale(decision_id):
    drive = playing()
    dealer = drive.table.state.dealer
    prompt = drive.prompt(dealer)
    assert prompt is not None
    with pytest.raises(StaleDecision):
        drive.table.act(dealer, decision_id, prompt.actions[0])
    assert drive.settle() == []


def test_the_decision_of_another_seat_is_stale():
    drive = playing()
    dealer = drive.table.state.dealer
    prompt = drive.prompt(dealer)
    assert prompt is not None
    with pytest.raises(StaleDecision):
        drive.table.act((dealer + 1) % 4, prompt_id(1, prompt.decision), prompt.actions[0])
    assert drive.settle() == []


def test_what_is_not_offered_changes_nothing():
    drive = playing()
    dealer = drive.table.state.dealer
    prompt = drive.prompt(dealer)
    assert prompt is not None
    for action in (PASS, Action("piao", amount=5), Action("discard", 27, declare="ting"), None):
        if action not in prompt.actions:
            with pytest.raises(NotOffered):
                drive.table.act(dealer, prompt_id(1, prompt.decision), action)
    assert drive.settle() == []
    assert drive.prompt(dealer) == prompt


def test_an_act_at_the_deadline_is_taken_or_late_and_never_both():
    """An automatic action fired after the player's own."""
    rng = random.Random(1)
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=0), hands=1_000)
    taken = late = 0
    for race in islice(races(drive, rng, lambda own_ms, _: own_ms), 10_000):
        assert race.was_taken == (race.waited_ms < race.own_ms)
        place = (race.seat, race.prompt.decision)
        answered = [e for e in of(play.Answered, race.told) if (e.seat, e.decision) == place]
        assert len(answered) == race.was_taken
        taken, late = taken + race.was_taken, late + (not race.was_taken)
    assert taken > 4_000
    assert late > 4_000


def test_a_prompt_has_its_full_time_from_the_moment_it_is_shown():
    drive = playing()
    dealer = drive.table.state.dealer
    assert drive.table.ms_left(dealer, "1-1", drive.now_ms)[0] == 15_000
    drive.now_ms += 6_000
    assert drive.table.ms_left(dealer, "1-1", drive.now_ms)[0] == 9_000
    drive.pass_time(9_000)
    assert of(play.TimedOut, drive.events) == [play.TimedOut(dealer, 1)]
    assert drive.table.ms_left(dealer, "1-1", drive.now_ms)[0] == 0


def test_each_kind_of_prompt_has_a_time_of_its_own():
    timing = Timing(turn_ms=111, claim_ms=222, before_deal_ms=333, claim_window_ms=0)
    drive = Drive.of(created(timing=timing, hands=3))
    drive.attend(0, 1, 2, 3)
    seen: dict[str, int] = {}

    def choose(seat, prompt):
        decision = prompt_id(drive.table.state.hand_number, prompt.decision)
        seen.setdefault(prompt.kind, drive.table.ms_left(seat, decision, drive.now_ms)[0])
        return at(seat, prompt)

    at = at_random(3)
    drive.play(choose, until=lambda _: len(seen) == 3)
    assert seen == {"piao": 333, "turn": 111, "claim": 222}


# The claim window.


def test_nothing_follows_a_discard_before_its_window_is_over():
    drive = playing(SLOW)
    events = first_discard(drive)
    assert kinds(events) == ["Answered", "Discarded"]
    assert drive.pass_time(999) == []
    assert "Drew" in kinds(drive.pass_time(1))


def test_at_a_table_without_a_window_play_goes_on_at_once():
    drive = playing(Timing(claim_window_ms=0))
    assert "Drew" in kinds(first_discard(drive))


# Trustee play.


def test_three_turns_that_run_out_make_the_table_play_for_a_seat():
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=0))
    dealer = drive.table.state.dealer

    def others(seat, prompt):
        return None if seat == dealer else passing(seat, prompt)

    drive.play(others, until=lambda d: d.table.state.seats[dealer].trustee)
    run_out = [e for e in of(play.TimedOut, drive.events) if e.seat == dealer]
    asked = {(e.seat, e.decision): e.kind for e in of(play.Asked, drive.events)}
    assert [asked[e.seat, e.decision] for e in run_out].count("turn") == 3
    assert of(play.TrusteeSet, drive.events) == [play.TrusteeSet(dealer, True, "timeouts")]
    # Its streams live on, so that nobody takes it for away.
    assert drive.table.state.seats[dealer].connected


def test_a_seat_is_taken_back_once_with_the_id_it_was_told():
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=0))
    dealer = drive.table.state.dealer
    drive.play(
        lambda seat, prompt: None if seat == dealer else passing(seat, prompt),
        until=lambda d: d.table.state.seats[dealer].trustee,
    )
    with pytest.raises(NotOffered):
        drive.table.act(dealer, "back-1", PASS)
    for stale in ("back-0", "back-2"):
        with pytest.raises(StaleDecision):
            drive.table.act(dealer, stale, None)
    assert drive.settle() == []
    assert drive.table.act(dealer, "back-1", None) is False
    assert of(play.TrusteeSet, drive.settle()) == [play.TrusteeSet(dealer, False, "back")]
    assert drive.table.act(dealer, "back-1", None) is True
    assert drive.settle() == []
    assert not drive.table.state.seats[dealer].trustee


def test_a_player_may_ask_the_table_to_play_for_a_seat_until_it_is_taken_back():
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=0))
    dealer = drive.table.state.dealer
    this = drive.prompt_ids()[dealer]
    other = (dealer + 1) % 4
    for seat, decision in ((dealer, "9-1"), (dealer, "back-1"), (dealer, "x"), (other, this)):
        with pytest.raises(StaleDecision):
            drive.table.hand_over(seat, decision)
    assert drive.settle() == []

    assert drive.table.hand_over(dealer, this) is False
    events = drive.settle()
    assert events[:2] == [
        play.TrusteeSet(dealer, True, "asked"),
        play.Withdrawn(dealer, int(this.partition("-")[2])),
    ]
    assert of(play.Discarded, events)[0].seat == dealer
    assert drive.table.hand_over(dealer, this) is True
    assert drive.settle() == []
    assert TableState.replay(drive.events) == drive.table.state

    assert drive.table.act(dealer, "back-1", None) is False
    assert of(play.TrusteeSet, drive.settle()) == [play.TrusteeSet(dealer, False, "back")]
    with pytest.raises(StaleDecision):
        drive.table.hand_over(dealer, this)
    assert not drive.table.state.seats[dealer].trustee


def test_a_seat_is_not_handed_over_at_a_claim_of_which_the_others_know_nothing():
    drive = playing(hands=20)

    def claims(drive):
        hand = drive.table.state.in_play
        prompts = hand.prompts() if hand is not None else {}
        return [seat for seat, prompt in prompts.items() if prompt.kind == "claim"]

    drive.play(passing, until=claims)
    (seat, *_) = claims(drive)
    with pytest.raises(NotOffered):
        drive.table.hand_over(seat, drive.prompt_ids()[seat])
    assert drive.settle() == []
    assert not drive.table.state.seats[seat].trustee


def test_a_seat_that_nobody_attends_cannot_be_taken_back():
    drive = playing()
    seat = (drive.table.state.dealer + 1) % 4
    away(drive, seat)
    with pytest.raises(NotOffered):
        drive.table.act(seat, "back-1", None)
    drive.attend(seat)
    # It was taken back by being attended; who then asks for it is told that it is.
    assert drive.table.act(seat, "back-1", None) is True
    away(drive, seat)
    assert drive.table.act(seat, "back-1", None) is True
    assert drive.settle() == []
    assert drive.table.state.seats[seat].trustee


def test_a_seat_taken_back_between_two_hands_has_three_turns_again():
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=5_000), hands=3)
    dealer = drive.table.state.dealer

    def absent(seat, prompt):
        return None if seat == dealer else passing(seat, prompt)

    drive.play(absent, until=lambda d: d.table.state.in_play is None)
    assert drive.table.act(dealer, "back-1", None) is False
    drive.pass_time(5_000)
    assert of(play.HandStarted, drive.events)[1].run_outs == (0, 0, 0, 0)
    first = len(drive.records)
    drive.play(absent, until=lambda d: d.table.state.seats[dealer].trustee)
    run_out = [e for e in of(play.TimedOut, drive.events[first:]) if e.seat == dealer]
    assert len(run_out) >= 3


def test_a_seat_that_nobody_attends_is_played_for_until_it_is_attended_again():
    drive = playing()
    dealer = drive.table.state.dealer
    drive.table.detach(dealer)
    drive.settle()
    assert drive.pass_time(1_999) == []
    events = drive.pass_time(1)
    assert events[:2] == [
        ConnectionChanged(dealer, False),
        play.TrusteeSet(dealer, True, "disconnected"),
    ]
    assert of(play.Discarded, events)[0].seat == dealer
    events = drive.attend(dealer)
    assert events[:2] == [
        ConnectionChanged(dealer, True),
        play.TrusteeSet(dealer, False, "back"),
    ]


def test_a_quick_reconnect_is_seen_by_nobody():
    """The new session was thrown out when the old one timed out."""
    drive = playing()
    dealer = drive.table.state.dealer
    for _ in range(3):
        drive.table.detach(dealer)
        drive.settle()
        drive.pass_time(1_500)
        assert drive.attend(dealer) == []
    assert drive.pass_time(5_000) == []
    assert drive.table.state.seats[dealer].connected


def test_being_attended_again_does_not_take_back_a_seat_that_let_its_turns_run_out():
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=0))
    dealer = drive.table.state.dealer
    drive.play(
        lambda seat, prompt: None if seat == dealer else passing(seat, prompt),
        until=lambda d: d.table.state.seats[dealer].trustee,
    )
    drive.table.detach(dealer)
    drive.settle()
    drive.answers = False
    drive.pass_time(3_000)
    drive.attend(dealer)
    assert drive.table.state.seats[dealer].connected
    assert drive.table.state.seats[dealer].trustee


def test_a_table_ends_when_the_deal_has_gone_round_where_its_rules_say_so():
    # 圈: every seat has been dealer; a dealer who wins or draws deals again.
    event = created(hands=0, rules_id="baicheng", options={"length": "round"})
    drive = Drive.of(event)
    drive.attend(0, 1, 2, 3)
    player = PLAYERS["efficient"](random.Random(1))

    def choose(seat: int, prompt: Prompt) -> Action:
        return player.choose(situation_of(drive.table.state.in_play, seat), prompt)

    drive.play(choose)
    dealers = [event.dealer for event in of(play.HandStarted, drive.events)]
    passed = [a for a, b in pairwise(dealers) if a != b]
    assert passed == [0, 1, 2]
    last = drive.table.state.hand
    assert (last.dealer, last.rule_set.next_dealer(last.finished)) == (3, 0)
    assert of(TableClosed, drive.events) == [TableClosed("hands_played")]
    assert TableState.replay(drive.events) == drive.table.state
