"""How a table goes on and ends: away, leaving, from hand to hand, paid, resumed."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from fangcheng_rules import events as play
from fangcheng_rules.scoring import Draw, Escape, Win
from fangcheng_table.clocks import Patience
from fangcheng_table.events import (
    ConnectionChanged,
    Fee,
    HandOpened,
    HandSettled,
    HoldsReleased,
    LeaveAnnounced,
    Offered,
    TableClosed,
    Timing,
)
from fangcheng_table.ids import prompt_id, read_prompt_id
from fangcheng_table.state import TableState

from .tables import (
    NO_PIAO,
    POINTS,
    SILVER,
    Drive,
    at_random,
    away,
    created,
    first_discard,
    kinds,
    of,
    passing,
    playing,
    settled_hands,
)

# Away and leaving.


LONG = Timing(turn_ms=600_000, claim_ms=600_000, claim_window_ms=1_000, away_grace_ms=30_000)


def test_a_seat_that_is_away_longer_than_its_grace_has_escaped():
    drive = playing(LONG, stakes=[SILVER])
    dealer = drive.table.state.dealer
    leaver = (dealer + 2) % 4
    away(drive, leaver)
    events = drive.pass_time(29_999)
    assert not of(play.HandEnded, events)
    events = drive.pass_time(1)
    assert of(play.HandEnded, events)[0].end == Escape(leaver)
    assert events[-2:] == [TableClosed("escape"), HoldsReleased()]
    assert drive.table.state.seats[leaver].standing == -100
    assert drive.table.state.seats[dealer].standing == 0


def test_of_two_seats_away_the_first_in_turn_order_from_the_dealer_escapes():
    drive = playing(LONG)
    dealer = drive.table.state.dealer
    away(drive, (dealer + 3) % 4, (dealer + 1) % 4)
    events = drive.pass_time(40_000)
    assert of(play.HandEnded, events)[0].end == Escape((dealer + 1) % 4)


def test_being_away_for_a_shorter_time_costs_nothing():
    drive = playing(LONG)
    leaver = (drive.table.state.dealer + 2) % 4
    for _ in range(3):
        away(drive, leaver)
        drive.pass_time(20_000)
        drive.attend(leaver)
    assert drive.table.state.in_play is not None


def test_time_in_which_no_evaluator_answers_counts_against_nobody():
    drive = playing(LONG)
    dealer = drive.table.state.dealer
    leaver = (dealer + 2) % 4
    away(drive, leaver)
    drive.pass_time(10_000)
    drive.answers = False
    first_discard(drive)
    drive.pass_time(1_000)
    assert drive.table.questions()
    assert drive.pass_time(600_000) == []
    assert drive.prompt_ids() == {}
    drive.answers = True
    drive.settle()
    (turn,) = drive.prompt_ids().items()
    assert drive.table.ms_left(*turn, drive.now_ms)[0] == 600_000
    # 11 of its 30 seconds were gone.
    assert not of(play.HandEnded, drive.pass_time(18_999))
    assert of(play.HandEnded, drive.pass_time(1))[0].end == Escape(leaver)


def test_who_leaves_after_the_hand_pays_nothing_for_it():
    drive = playing(hands=8)
    drive.table.leave(1, now=False)
    assert drive.settle() == [LeaveAnnounced(1, False)]
    drive.table.leave(1, now=False)
    assert drive.settle() == []
    drive.play(passing)
    assert len(of(play.HandEnded, drive.events)) == 1
    assert not isinstance(of(play.HandEnded, drive.events)[0].end, Escape)
    assert of(TableClosed, drive.events) == [TableClosed("player_left")]


def test_who_leaves_now_has_escaped_from_the_hand():
    drive = playing(hands=8)
    drive.table.leave(1, now=False)
    drive.table.leave(1, now=True)
    events = drive.settle()
    assert of(play.HandEnded, events)[0].end == Escape(1)
    assert of(TableClosed, events) == [TableClosed("escape")]


def test_leaving_between_two_hands_is_free():
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=5_000), hands=8)
    drive.play(passing, until=lambda d: d.table.state.in_play is None)
    standings = [seat.standing for seat in drive.table.state.seats]
    drive.table.leave(3, now=True)
    assert TableClosed("player_left") in drive.settle()
    assert [seat.standing for seat in drive.table.state.seats] == standings


def test_leaving_before_the_first_hand_closes_the_table():
    drive = Drive.of(created(holds=True))
    drive.attend(0, 1)
    drive.table.leave(1, now=False)
    assert drive.settle() == [
        LeaveAnnounced(1, False),
        TableClosed("player_left"),
        HoldsReleased(),
    ]


def test_a_seat_still_disconnected_when_the_hand_ends_leaves_then():
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=0), hands=8)
    away(drive, 2)
    drive.play(passing)
    ended = of(play.HandEnded, drive.events)
    assert len(ended) == 1
    assert not isinstance(ended[0].end, Escape)
    assert of(TableClosed, drive.events) == [TableClosed("player_left")]


def test_the_last_hand_closes_the_table_whoever_leaves_with_it():
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=0), hands=1)
    drive.table.leave(0, now=False)
    drive.play(passing)
    assert of(TableClosed, drive.events) == [TableClosed("hands_played")]


# From hand to hand.


def test_the_next_hand_begins_after_the_pause():
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=5_000), hands=2)
    drive.play(passing, until=lambda d: d.table.state.in_play is None)
    assert drive.table.state.phase == "between_hands"
    assert not of(HandOpened, drive.pass_time(4_999))
    assert of(HandOpened, drive.pass_time(1))


def test_the_dealer_stays_after_a_win_or_a_draw_and_hands_on_otherwise():
    drive = Drive.of(created(hands=30, options=NO_PIAO))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(5))
    starts, ends = of(play.HandStarted, drive.events), of(play.HandEnded, drive.events)
    assert len(ends) == 30
    for start, end, after in zip(starts, ends, starts[1:], strict=False):
        stays = isinstance(end.end, Draw) or (
            isinstance(end.end, Win) and start.dealer in end.end.winners
        )
        assert after.dealer == (start.dealer if stays else (start.dealer + 1) % 4)
    assert any(isinstance(end.end, Win) for end in ends)
    assert any(isinstance(end.end, Draw) for end in ends)


def test_standings_add_up_to_what_the_house_took():
    drive = Drive.of(created(hands=10))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(9))
    house = sum(event.score.house for event in of(play.HandEnded, drive.events))
    assert sum(seat.standing for seat in drive.table.state.seats) == -house
    assert any(seat.standing for seat in drive.table.state.seats)


# Settling.


def test_a_hand_is_settled_before_the_next_one_begins():
    drive = Drive.of(created(hands=2, stakes=[SILVER]))
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(4), until=lambda d: d.table.state.in_play is None)
    drive.pass_time(60_000)
    assert len(of(HandOpened, drive.events)) == 1
    assert drive.table.settlement() is not None
    drive.pays = True
    assert kinds(drive.settle())[:3] == ["HandSettled", "HandOpened", "HandStarted"]


def test_a_settlement_names_the_seats_from_the_dealer_on_and_every_stake():
    drive = Drive.of(created(stakes=[SILVER, POINTS], holds=True))
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(2), until=lambda d: d.table.settlement() is not None)
    settlement = drive.table.settlement()
    (ended,) = of(play.HandEnded, drive.events)
    assert settlement is not None
    assert settlement.key == "t1/1"
    dealer = drive.table.state.dealer
    assert [seat for seat, _ in settlement.parties] == [(dealer + step) % 4 for step in range(4)]
    assert next(plan.hold_ids for _, plan in settlement.parties) == (
        f"h-{drive.table.state.created.seats[dealer].player_id}",
    )
    net = [0, 0, 0, 0]
    for posting in settlement.postings:
        assert posting.amount > 0
        if posting.currency == "points":
            assert posting.book == "kele/2026"
            continue
        if posting.source is not None:
            net[posting.source] -= posting.amount
        if posting.target is not None:
            net[posting.target] += posting.amount
    assert net == [10 * units for units in ended.score.net]
    assert drive.table.settlement() == settlement


def test_fees_are_due_with_the_first_settled_hand_and_no_other():
    fees = (Fee(None, "silver", "", 20), Fee(2, "points", "kele", 5))
    table = replace(created(hands=2, stakes=[SILVER]), fees=fees, hold_only=True)
    drive = Drive.of(table)
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(4), until=lambda d: d.table.settlement() is not None)
    first = drive.table.settlement()
    assert first is not None
    assert first.hold_only
    assert sorted((fee.seat, fee.currency, fee.amount) for fee in first.fees) == [
        (0, "silver", 20), (1, "silver", 20), (2, "points", 5), (2, "silver", 20),
        (3, "silver", 20),
    ]  # fmt: skip
    drive.table.settled(first, ())
    drive.settle()
    drive.play(at_random(4), until=lambda d: d.table.settlement() is not None)
    second = drive.table.settlement()
    assert second is not None
    assert (second.hand_number, second.fees) == (2, ())


def test_a_table_without_stakes_still_has_its_fee_to_pay():
    drive = Drive.of(replace(created(hands=2), fees=(Fee(0, "silver", "", 20),)))
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(4), until=lambda d: d.table.settlement() is not None)
    settlement = drive.table.settlement()
    assert settlement is not None
    assert settlement.postings == ()
    drive.table.settled(settlement, ())
    drive.settle()
    drive.play(at_random(4))
    assert drive.table.state.done
    assert settled_hands(drive.events) == [1]


def test_a_table_without_stakes_settles_nothing():
    drive = Drive.of(created(hands=2))
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(4))
    assert drive.table.state.done
    assert not of(HandSettled, drive.events)


def test_a_settlement_that_comes_twice_is_told_once():
    drive = Drive.of(created(hands=2, stakes=[SILVER]))
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(4), until=lambda d: d.table.settlement() is not None)
    settlement = drive.table.settlement()
    assert settlement is not None
    drive.table.settled(settlement, ())
    drive.table.settled(settlement, ())
    assert settled_hands(drive.settle()) == [1]
    drive.table.settled(settlement, ())
    assert settled_hands(drive.settle()) == []


def test_holds_are_given_back_when_the_table_has_closed_and_not_before():
    drive = Drive.of(created(hands=1, stakes=[SILVER], holds=True))
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    assert drive.table.holds() == ()
    drive.play(at_random(4), until=lambda d: d.table.settlement() is not None)
    assert drive.table.holds() == ()
    settlement = drive.table.settlement()
    assert settlement is not None
    drive.table.settled(settlement, ())
    assert drive.settle()[-1] == TableClosed("hands_played")
    assert drive.table.holds() == (("h-ann",), ("h-bob",), ("h-cat",), ("h-dan",))
    drive.table.released()
    assert drive.settle() == [HoldsReleased()]
    assert drive.table.state.done


# The journal.


@pytest.mark.parametrize("seed", range(6))
def test_the_journal_folds_to_the_state_of_the_live_table_at_every_step(seed):
    drive = Drive.of(created(root=bytes([seed]) * 32, hands=2, stakes=[SILVER]))
    drive.attend(0, 1, 2, 3)
    choose, steps = at_random(seed), 0

    def same(drive: Drive) -> bool:
        nonlocal steps
        steps += 1
        if steps % 7 == 0:
            assert TableState.replay(drive.events) == drive.table.state
        return False

    drive.play(choose, until=same)
    assert TableState.replay(drive.events) == drive.table.state
    assert steps > 50


def test_a_resumed_table_grants_fresh_times_and_waits_for_its_players():
    drive = playing(hands=2)
    dealer = drive.table.state.dealer
    drive.pass_time(14_000)
    patience = Patience(resume_ms=10_000)
    again = Drive(type(drive.table).replay(drive.events, patience), now_ms=777_000)
    again.records = list(drive.records)
    assert again.settle() == []
    assert again.table.ms_left(dealer, "1-1", again.now_ms)[0] == 15_000
    assert again.attend(0, 1, 2) == []
    assert again.pass_time(9_999) == []
    assert again.pass_time(1)[0] == ConnectionChanged(3, False)


def test_what_was_asked_of_the_evaluator_is_asked_again_after_a_restart():
    drive = playing()
    drive.answers = False
    first_discard(drive)
    drive.pass_time(1_000)
    asked = drive.table.questions()
    assert asked
    again = type(drive.table).replay(drive.events)
    assert again.questions() == asked


def test_every_prompt_in_the_journal_says_what_it_offers():
    drive = Drive.of(created(hands=3))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(8))
    events = drive.events
    asked = [(place, event) for place, event in enumerate(events) if isinstance(event, play.Asked)]
    for place, event in asked:
        offered = events[place + 1]
        assert isinstance(offered, Offered)
        assert (offered.seat, offered.decision) == (event.seat, event.decision)
        assert offered.actions
    assert len(asked) > 50


def test_ids_of_prompts_are_read_back():
    assert read_prompt_id(prompt_id(12, 345)) == (12, 345)
    assert read_prompt_id("back-1") is None


def test_the_hash_of_a_secret_is_the_secret_of_the_hand_before():
    drive = Drive.of(created(hands=2))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(0))
    first, second = of(HandOpened, drive.events)
    assert sha256(second.secret).digest() == first.secret
