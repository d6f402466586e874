"""What operators do at a table, each once, and what becomes of the hand in play."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fangcheng_kit.errors import ServiceError
from fangcheng_rules import events as play
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import Dissolved, Escape
from fangcheng_table import operating, votes
from fangcheng_table.convert_play import action_to_wire
from fangcheng_table.core import Table
from fangcheng_table.errors import NotOffered, StaleDecision, StaleHand, TableIsClosed
from fangcheng_table.events import (
    Fee,
    HandSettled,
    HoldsReleased,
    HoldsReturned,
    OperatorActed,
    PlayerSeated,
    ReadyAsked,
    SeatPlan,
    SeatVacated,
    TableClosed,
    Timing,
    VoteClosed,
)
from fangcheng_table.feed import Feed
from fangcheng_table.ids import prompt_id
from fangcheng_table.operating import Order
from fangcheng_table.state import TableState

from .tables import NO_PIAO, PLAYERS, SILVER, Drive, created, decided, of, passing, playing

ORDER = Order("o-1", "operator", "cut off", "case-81")
FAST = Timing(claim_window_ms=0, between_hands_ms=0)
WAITS = replace(FAST, vacancy_ms=60_000, turn_ms=600_000)
EVE = SeatPlan("eve", b"", ("h-eve",))


def shandong(timing: Timing = WAITS, hands: int = 8, **more: object) -> Drive:
    drive = Drive.of(created(rules_id="shandong", timing=timing, hands=hands, **more))
    drive.attend(0, 1, 2, 3)
    return drive


def left_by(seat: int, **more: object) -> Drive:
    """A table that one player has left after the first hand."""
    drive = shandong(**more)
    drive.table.leave(seat, now=False)
    drive.play(passing, until=lambda d: d.table.state.in_play is None)
    return drive


# Removing a player.


def test_a_removed_player_is_played_for_to_the_end_of_the_hand_and_pays_no_penalty():
    drive = playing(FAST, hands=8, stakes=[SILVER])
    assert operating.remove(drive.table, ORDER, PLAYERS[2]) is False
    events = drive.settle()
    assert events[0] == OperatorActed("o-1", "remove", "operator", "cut off", "case-81", 2, "cat")
    assert events[1] == play.TrusteeSet(2, True, "removed")
    assert drive.table.state.in_play is not None
    drive.play(passing)
    (ended,) = of(play.HandEnded, drive.events)
    assert not isinstance(ended.end, Escape)
    assert of(TableClosed, drive.events) == [TableClosed("removed")]


def test_a_removed_player_takes_the_seat_back_by_nothing():
    drive = playing(FAST, hands=8)
    operating.remove(drive.table, ORDER, PLAYERS[2])
    drive.settle()
    with pytest.raises(NotOffered):
        drive.table.act(2, "back-1", None)
    drive.table.detach(2)
    drive.settle()
    drive.pass_time(2_000)
    drive.attend(2)
    assert drive.table.state.seats[2].trustee
    votes.propose(drive.table, 0, 1)
    for seat in (1, 3):
        votes.reply(drive.table, seat, "vote-1", "agree")
    assert of(TableClosed, drive.settle()) == [TableClosed("dissolved")]


def test_what_a_removed_player_had_under_way_does_nothing():
    """Its call was let in before the removal was done."""
    drive = playing(FAST, hands=8)
    drive.table.detach(2)
    drive.settle()
    drive.pass_time(2_000)
    assert drive.table.state.seats[2].trustee_reason == "disconnected"
    operating.remove(drive.table, ORDER, "cat")
    drive.table.attach(2)
    drive.table.leave(2, now=True)
    drive.settle()
    assert drive.table.state.seats[2].trustee
    drive.play(passing)
    (ended,) = of(play.HandEnded, drive.events)
    assert not isinstance(ended.end, Escape)
    assert of(TableClosed, drive.events) == [TableClosed("removed")]


def test_a_vote_that_waits_for_a_removed_player_alone_is_carried():
    drive = playing(FAST, hands=8)
    votes.propose(drive.table, 0, 1)
    for seat in (1, 3):
        votes.reply(drive.table, seat, "vote-1", "agree")
    assert not of(VoteClosed, drive.settle())
    operating.remove(drive.table, ORDER, "cat")
    events = drive.settle()
    assert of(VoteClosed, events) == [VoteClosed(1, "agreed")]
    assert of(TableClosed, events) == [TableClosed("dissolved")]


def test_a_vote_that_waits_for_one_who_leaves_alone_is_carried():
    drive = shandong(replace(WAITS, between_hands_ms=5_000))
    drive.play(passing, until=lambda d: d.table.state.in_play is None)
    votes.propose(drive.table, 0, 1)
    for seat in (1, 3):
        votes.reply(drive.table, seat, "vote-1", "agree")
    assert not of(VoteClosed, drive.settle())
    drive.table.leave(2, now=False)
    events = drive.settle()
    assert of(SeatVacated, events) == [SeatVacated(2, "player_left")]
    assert of(TableClosed, events) == [TableClosed("dissolved")]


def test_removing_between_two_hands_closes_the_table_at_once():
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=5_000), hands=8)
    drive.play(passing, until=lambda d: d.table.state.in_play is None)
    operating.remove(drive.table, ORDER, PLAYERS[0])
    assert of(TableClosed, drive.settle()) == [TableClosed("removed")]


# Voiding a hand.


def test_a_voided_hand_pays_nothing_and_the_dealer_deals_again():
    drive = playing(FAST, hands=2, stakes=[SILVER])
    dealer = drive.table.state.dealer
    assert operating.void_hand(drive.table, ORDER, 1) is False
    events = drive.settle()
    assert of(play.HandEnded, events)[0].end == Dissolved("cut off")
    assert not of(HandSettled, events)
    assert of(play.HandStarted, events)[0].dealer == dealer
    assert drive.table.state.hand_number == 2
    drive.play(passing)
    assert of(TableClosed, drive.events) == [TableClosed("hands_played")]
    assert [event.hand_number for event in of(HandSettled, drive.events)] == [2]


def test_a_voided_hand_charges_no_fee():
    drive = Drive.of(replace(created(hands=1, options=NO_PIAO), fees=(Fee(0, "silver", "", 20),)))
    drive.attend(0, 1, 2, 3)
    operating.void_hand(drive.table, ORDER, 1)
    drive.settle()
    assert not drive.table.state.charged
    assert drive.table.state.done


def test_where_the_rules_start_over_a_voided_hand_leads_to_a_new_first_dealer():
    drive = shandong(hands=8)
    (first,) = of(play.HandStarted, drive.events)
    operating.void_hand(drive.table, ORDER, 1)
    (started,) = of(play.HandStarted, drive.settle())
    # Besides those that are shown before each deal, two are rolled for a first dealer.
    rules = rule_set("shandong")
    assert len(first.dice) == len(started.dice) == rules.hand_dice + rules.first_dealer_dice
    assert started.drawn_hands_before == 0


def test_only_the_hand_in_play_is_voided():
    drive = playing(FAST, hands=8)
    drive.play(passing, until=lambda d: d.table.state.hand_number == 2)
    with pytest.raises(StaleHand):
        operating.void_hand(drive.table, ORDER, 1)
    assert drive.settle() == []


def test_a_hand_that_is_decided_is_not_voided():
    drive = playing(FAST, hands=8)
    decided(drive)
    with pytest.raises(ServiceError, match="decided"):
        operating.void_hand(drive.table, ORDER, 1)
    drive.scores = True
    drive.settle()


# Closing a table.


@pytest.mark.parametrize("after_hand", [False, True])
def test_a_table_is_closed_now_or_after_the_hand(after_hand):
    drive = playing(FAST, hands=8, stakes=[SILVER], holds=True)
    assert operating.close_table(drive.table, ORDER, after_hand=after_hand) is False
    drive.settle()
    drive.play(passing)
    (ended,) = of(play.HandEnded, drive.events)
    assert isinstance(ended.end, Dissolved) != after_hand
    assert len(of(HandSettled, drive.events)) == after_hand
    assert drive.events[-2:] == [TableClosed("closed"), HoldsReleased()]


# Seating another.


def test_another_player_takes_a_seat_that_was_left_and_the_table_starts_over():
    drive = left_by(1, holds=True, stakes=[SILVER])
    assert of(SeatVacated, drive.events) == [SeatVacated(1, "player_left")]
    assert of(HoldsReturned, drive.events) == [HoldsReturned(1)]
    assert drive.pass_time(59_000) == []
    assert operating.seat_player(drive.table, ORDER, 1, EVE) is False
    assert of(PlayerSeated, drive.settle()) == [PlayerSeated(1, EVE)]
    assert drive.table.state.hand_number == 1
    assert drive.table.state.seat_of("eve") == 1
    assert drive.table.state.seat_of("bob") is None
    (started,) = of(play.HandStarted, drive.attend(1))
    assert started.drawn_hands_before == 0
    assert drive.table.state.seats[1].standing == 0
    drive.pays = False
    drive.play(passing, until=lambda d: d.table.settlement() is not None)
    settlement = drive.table.settlement()
    assert settlement is not None
    assert dict(settlement.parties)[1] == EVE
    assert TableState.replay(drive.events) == drive.table.state


def test_a_seat_that_nobody_takes_in_time_closes_the_table():
    drive = left_by(1)
    assert not of(TableClosed, drive.pass_time(59_999))
    assert of(TableClosed, drive.pass_time(1)) == [TableClosed("player_left")]


def test_who_has_escaped_is_replaced_too():
    drive = shandong()
    drive.table.leave(3, now=True)
    events = drive.settle()
    assert of(play.HandEnded, events)[0].end == Escape(3)
    assert of(SeatVacated, events) == [SeatVacated(3, "escape")]
    operating.seat_player(drive.table, ORDER, 3, EVE)
    # The others are asked again whether they are ready, and the new one with them.
    events = drive.settle()
    assert of(ReadyAsked, events)
    assert of(play.HandStarted, events)


def test_all_who_leave_are_waited_for():
    drive = left_by(1)
    drive.table.leave(2, now=True)
    assert of(SeatVacated, drive.settle()) == [SeatVacated(2, "player_left")]
    operating.seat_player(drive.table, ORDER, 1, EVE)
    other = replace(ORDER, request_id="o-2")
    operating.seat_player(drive.table, other, 2, SeatPlan("fay"))
    drive.settle()
    assert of(play.HandStarted, drive.attend(1, 2))


def test_nobody_takes_a_seat_that_is_taken_or_comes_back_to_the_table():
    drive = left_by(1)
    for seat, player in ((0, "eve"), (1, "bob"), (1, "ann")):
        with pytest.raises(ServiceError):
            operating.seat_player(drive.table, ORDER, seat, SeatPlan(player))
    assert drive.settle() == []


@pytest.mark.parametrize("hold_id", ["h-ann", "h-bob"])
def test_a_hold_of_another_or_of_who_left_is_not_taken_over(hold_id):
    drive = shandong(holds=True)
    drive.pays = False
    drive.table.leave(1, now=False)
    drive.play(passing, until=lambda d: d.table.state.in_play is None)
    assert drive.table.state.seats[1].vacant
    with pytest.raises(ServiceError, match=f"Hold {hold_id} stands at two seats"):
        operating.seat_player(drive.table, ORDER, 1, SeatPlan("eve", b"", (hold_id,)))
    assert drive.settle() == []


def test_another_player_learns_nothing_of_what_was_answered_at_the_seat_before():
    """Nor by trying: a repeat that is answered as one would tell who was asked and passed."""
    drive = shandong()
    drive.table.leave(1, now=False)
    drive.play(passing, until=lambda d: d.table.state.in_play is None)
    answered = [event for event in of(play.Answered, drive.events) if event.seat == 1]
    assert answered
    operating.seat_player(drive.table, ORDER, 1, EVE)
    drive.settle()
    feed = Feed()
    feed.publish(drive.records)
    for event in answered:
        decision_id = prompt_id(1, event.decision)
        with pytest.raises(StaleDecision):
            drive.table.act(1, decision_id, event.action)
        assert not feed.has_answered(1, decision_id, action_to_wire(event.action))


def test_where_the_rules_go_on_from_hand_to_hand_a_seat_that_is_left_closes_the_table():
    drive = playing(WAITS, hands=8)
    drive.table.leave(1, now=False)
    drive.play(passing)
    assert of(TableClosed, drive.events) == [TableClosed("player_left")]


def test_the_holds_of_who_left_are_given_back_before_the_table_is_done():
    drive = left_by(1, holds=True)
    again = Table.replay(
        drive.events[: -1 if isinstance(drive.events[-1], HoldsReturned) else None]
    )
    assert again.returns() == {1: ("h-bob",)}
    again.returned(1)
    again.returned(1)
    assert again.take() == [HoldsReturned(1)]
    assert again.returns() == {}


def test_a_table_that_closes_gives_back_first_what_is_owed_to_who_left():
    drive = shandong(holds=True)
    drive.table.leave(1, now=False)
    drive.play(passing, until=lambda d: d.table.state.in_play is None)
    drive.pays = False
    drive.table.leave(2, now=True)
    drive.settle()
    owed = dict(drive.table.returns())
    assert owed
    operating.close_table(drive.table, ORDER, after_hand=False)
    assert TableClosed("closed") in drive.settle()
    assert drive.table.holds() == ()
    for vacancy in owed:
        drive.table.returned(vacancy)
    drive.settle()
    assert drive.table.holds() == (("h-ann",), (), (), ("h-dan",))
    drive.table.released()
    assert drive.settle() == [HoldsReleased()]


# Once for each request id.


def test_an_order_that_comes_again_changes_nothing():
    drive = left_by(1)
    operating.seat_player(drive.table, ORDER, 1, EVE)
    drive.settle()
    assert operating.seat_player(drive.table, ORDER, 1, EVE) is True
    close = replace(ORDER, request_id="o-2")
    operating.close_table(drive.table, close, after_hand=False)
    drive.settle()
    assert operating.seat_player(drive.table, ORDER, 1, EVE) is True
    assert operating.close_table(drive.table, close, after_hand=False) is True
    assert drive.settle() == []
    with pytest.raises(TableIsClosed):
        operating.close_table(drive.table, replace(close, request_id="o-3"), after_hand=False)


@pytest.mark.parametrize(
    "again",
    [
        lambda table: operating.remove(table, ORDER, "dan"),
        lambda table: operating.remove(table, replace(ORDER, reason="x"), "cat"),
        lambda table: operating.remove(table, replace(ORDER, case_id="x"), "cat"),
        lambda table: operating.void_hand(table, ORDER, 1),
    ],
)
def test_a_request_id_belongs_to_one_order(again):
    drive = playing(FAST, hands=8)
    operating.remove(drive.table, ORDER, "cat")
    drive.settle()
    with pytest.raises(ServiceError, match="another request"):
        again(drive.table)
    assert drive.settle() == []
