"""Votes to dissolve a table, and replays of all that is said in them."""

from __future__ import annotations

import pytest

from fangcheng_rules import events as play
from fangcheng_rules.scoring import Dissolved
from fangcheng_table import votes
from fangcheng_table.errors import (
    AlreadyVoting,
    NotOffered,
    StaleDecision,
    StaleHand,
    TableIsClosed,
)
from fangcheng_table.events import (
    HandSettled,
    HoldsReleased,
    TableClosed,
    Timing,
    VoteAnswered,
    VoteClosed,
    VoteOpened,
)
from fangcheng_table.state import TableState

from .tables import SILVER, SLOW, Drive, away, decided, of, passing, playing

TIMING = Timing(claim_window_ms=0, between_hands_ms=0, turn_ms=600_000, vote_ms=60_000)


def voting(**more: object) -> Drive:
    """A table where seat 1 has proposed to dissolve it."""
    drive = playing(TIMING, hands=8, **more)
    assert votes.propose(drive.table, 1, 1) == (1, False)
    assert drive.settle() == [VoteOpened(1, 1)]
    return drive


def answer(drive: Drive, seat: int, word: str) -> list:
    assert votes.reply(drive.table, seat, "vote-1", word) is False
    return drive.settle()


def test_a_table_is_dissolved_when_all_agree_and_nothing_of_the_hand_is_paid():
    drive = voting(stakes=[SILVER], holds=True)
    assert answer(drive, 0, "agree") == [VoteAnswered(1, 0, True)]
    answer(drive, 3, "agree")
    events = answer(drive, 2, "agree")
    assert events[:2] == [VoteAnswered(1, 2, True), VoteClosed(1, "agreed")]
    assert of(play.HandEnded, events)[0].end == Dissolved("vote")
    assert events[-2:] == [TableClosed("dissolved"), HoldsReleased()]
    assert not of(HandSettled, drive.events)
    assert [seat.standing for seat in drive.table.state.seats] == [0, 0, 0, 0]
    assert TableState.replay(drive.events) == drive.table.state


def test_one_who_refuses_ends_the_vote_and_the_hand_goes_on():
    drive = voting()
    assert answer(drive, 2, "refuse") == [VoteAnswered(1, 2, False), VoteClosed(1, "refused")]
    assert drive.table.state.in_play is not None
    with pytest.raises(StaleDecision):
        votes.reply(drive.table, 0, "vote-1", "agree")
    drive.play(passing, until=lambda d: d.table.state.hand_number == 2)


def test_silence_agrees_to_nothing():
    drive = voting()
    answer(drive, 0, "agree")
    answer(drive, 2, "agree")
    assert drive.pass_time(59_999) == []
    assert drive.pass_time(1) == [VoteClosed(1, "timed_out")]
    assert drive.table.state.in_play is not None


def test_a_seat_proposes_once_in_a_hand_and_another_after_its_vote():
    drive = voting()
    with pytest.raises(AlreadyVoting):
        votes.propose(drive.table, 2, 1)
    answer(drive, 0, "refuse")
    assert votes.propose(drive.table, 1, 1) == (1, True)
    assert drive.settle() == []
    assert votes.propose(drive.table, 2, 1) == (2, False)
    drive.settle()
    assert votes.reply(drive.table, 0, "vote-2", "refuse") is False
    drive.settle()
    drive.play(passing, until=lambda d: d.table.state.hand_number == 2)
    assert votes.propose(drive.table, 1, 2) == (3, False)


def test_a_proposal_that_comes_late_proposes_nothing():
    drive = playing(TIMING, hands=8)
    drive.play(passing, until=lambda d: d.table.state.hand_number == 2)
    with pytest.raises(StaleHand):
        votes.propose(drive.table, 1, 1)
    assert drive.settle() == []


def test_what_is_said_again_says_nothing_new():
    drive = voting()
    answer(drive, 0, "agree")
    assert votes.reply(drive.table, 0, "vote-1", "agree") is True
    assert votes.reply(drive.table, 1, "vote-1", "agree") is True
    with pytest.raises(StaleDecision):
        votes.reply(drive.table, 0, "vote-1", "refuse")
    assert drive.settle() == []


@pytest.mark.parametrize("decision_id", ["vote-2", "vote-0", "ready-1", "vote", "1-1"])
def test_an_answer_to_what_was_not_asked_is_stale(decision_id):
    drive = voting()
    with pytest.raises(StaleDecision):
        votes.reply(drive.table, 0, decision_id, "agree")


def test_a_vote_is_answered_with_agree_or_refuse():
    drive = voting()
    with pytest.raises(NotOffered):
        votes.reply(drive.table, 0, "vote-1", "pass")
    assert drive.settle() == []


def test_who_votes_takes_the_seat_back():
    drive = playing(Timing(claim_window_ms=0, turn_ms=1_000), hands=8)
    seat = next(iter(drive.prompt_ids()))
    drive.table.hand_over(seat, drive.prompt_ids()[seat])
    drive.settle()
    other = (seat + 1) % 4
    votes.propose(drive.table, other, 1)
    drive.settle()
    votes.reply(drive.table, seat, "vote-1", "agree")
    assert play.TrusteeSet(seat, False, "back") in drive.settle()


def test_the_disconnected_have_a_say_until_their_grace_is_over():
    timing = Timing(claim_window_ms=0, turn_ms=600_000, away_grace_ms=30_000, away="trustee_to_end")
    drive = playing(timing, hands=8)
    dealer = drive.table.state.dealer
    gone, *others = [(dealer + step) % 4 for step in (2, 3, 1, 0)]
    away(drive, gone)
    votes.propose(drive.table, others[0], 1)
    for seat in others[1:]:
        votes.reply(drive.table, seat, "vote-1", "agree")
    assert not of(VoteClosed, drive.settle())
    events = drive.pass_time(30_000)
    assert of(VoteClosed, events) == [VoteClosed(1, "agreed")]
    assert of(TableClosed, events) == [TableClosed("dissolved")]


def test_a_hand_that_is_decided_is_paid_though_the_table_is_dissolved():
    drive = playing(TIMING, hands=8, stakes=[SILVER])
    decided(drive)
    votes.propose(drive.table, 0, 1)
    for seat in (1, 2, 3):
        votes.reply(drive.table, seat, "vote-1", "agree")
    drive.scores = True
    events = drive.settle()
    assert not isinstance(of(play.HandEnded, events)[0].end, Dissolved)
    assert of(HandSettled, events)
    assert of(TableClosed, events) == [TableClosed("dissolved")]


def test_a_closed_table_takes_no_vote():
    drive = playing(TIMING, hands=1)
    drive.play(passing)
    with pytest.raises(TableIsClosed):
        votes.propose(drive.table, 0, 1)


def test_between_two_hands_a_vote_dissolves_the_table_too():
    drive = playing(SLOW, hands=8)
    drive.play(passing, until=lambda d: d.table.state.in_play is None)
    votes.propose(drive.table, 0, 1)
    for seat in (1, 2, 3):
        votes.reply(drive.table, seat, "vote-1", "agree")
    assert of(TableClosed, drive.settle()) == [TableClosed("dissolved")]
