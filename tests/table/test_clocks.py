"""The clocks of a table: reserves, what counts against nobody, and who is gone for too long."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice

import pytest

from fangcheng_rules import events as play
from fangcheng_rules.scoring import Dissolved, Escape
from fangcheng_table.clocks import Clocks, Patience, Wait
from fangcheng_table.core import Table
from fangcheng_table.events import (
    ConnectionChanged,
    GraceEnded,
    HandSettled,
    HoldsReleased,
    ReserveSpent,
    TableClosed,
    TableDeserted,
    Timing,
)
from fangcheng_table.ids import prompt_id
from fangcheng_table.state import TableState

from .tables import SILVER, Drive, at_random, away, created, kinds, of, passing, playing, races

RESERVE = Timing(claim_window_ms=0, between_hands_ms=0, turn_ms=15_000, reserve_ms=20_000)
LONG = Timing(turn_ms=600_000, claim_ms=600_000, claim_window_ms=1_000, away_grace_ms=30_000)
TO_END = replace(LONG, away="trustee_to_end", between_hands_ms=0)


def turn(drive: Drive) -> tuple[int, str]:
    """The seat that is asked, and its decision."""
    ((seat, decision),) = drive.prompt_ids().items()
    return seat, decision


# Reserve.


def test_a_turn_that_outlasts_its_time_uses_the_reserve_of_its_seat():
    drive = playing(RESERVE)
    seat, decision = turn(drive)
    assert drive.table.ms_left(seat, decision, drive.now_ms) == (15_000, 20_000)
    assert drive.pass_time(22_000) == []
    assert drive.table.ms_left(seat, decision, drive.now_ms) == (0, 13_000)
    assert drive.table.state.in_play is not None
    events = drive.act(seat, drive.table.state.in_play.prompts()[seat].actions[0])
    assert of(ReserveSpent, events) == [ReserveSpent(seat, 7_000)]
    assert drive.table.state.seats[seat].reserve_spent_ms == 7_000


def test_a_turn_in_its_own_time_leaves_the_reserve_alone():
    drive = playing(RESERVE)
    seat, _ = turn(drive)
    drive.pass_time(15_000)
    prompt = drive.prompt(seat)
    assert prompt is not None
    assert not of(ReserveSpent, drive.act(seat, prompt.actions[0]))


def test_a_turn_runs_out_when_the_reserve_is_used_up_and_the_next_one_has_none():
    drive = playing(RESERVE)
    seat, decision = turn(drive)
    assert drive.pass_time(34_999) == []
    events = drive.pass_time(1)
    assert kinds(events)[:2] == ["ReserveSpent", "TimedOut"]
    assert events[0] == ReserveSpent(seat, 20_000)
    drive.play(passing, until=lambda d: d.prompt_ids().get(seat, decision) != decision)
    again = drive.prompt_ids()[seat]
    prompt = drive.prompt(seat)
    if prompt is not None and prompt.kind == "turn":
        assert drive.table.ms_left(seat, again, drive.now_ms) == (15_000, 0)


def test_each_hand_has_the_whole_reserve_again():
    drive = playing(RESERVE, hands=2)
    seat, _ = turn(drive)
    drive.pass_time(35_000)
    assert drive.table.state.seats[seat].reserve_spent_ms == 20_000
    drive.play(passing, until=lambda d: d.table.state.hand_number == 2)
    assert [one.reserve_spent_ms for one in drive.table.state.seats] == [0, 0, 0, 0]


def test_a_claim_has_no_reserve_since_its_length_would_tell_that_a_seat_was_asked():
    drive = playing(RESERVE, hands=30)
    claims = []

    def choose(seat, prompt):
        decision = prompt_id(drive.table.state.hand_number, prompt.decision)
        left = drive.table.ms_left(seat, decision, drive.now_ms)
        if prompt.kind != "turn":
            claims.append(left[1])
        return passing(seat, prompt)

    drive.play(choose, until=lambda _: len(claims) > 20)
    assert set(claims) == {0}


def test_a_table_without_reserve_spends_none():
    drive = playing(Timing(claim_window_ms=0, between_hands_ms=0))
    drive.pass_time(15_000)
    assert of(play.TimedOut, drive.events)
    assert not of(ReserveSpent, drive.events)


def test_an_act_at_the_end_of_the_reserve_is_taken_or_late_and_never_both():
    """An automatic action fired after the player's own: the turn ends by the one or the other."""
    rng = random.Random(2)
    timing = Timing(claim_window_ms=0, between_hands_ms=0, turn_ms=1_000, reserve_ms=60_000)
    drive = playing(timing, hands=1_000)
    taken = late = 0

    def end(own_ms: int, reserve_ms: int) -> int:
        """Mostly around the end of the turn's own time, now and then of the reserve."""
        return own_ms + (reserve_ms if rng.random() < 0.2 else 0)

    for race in islice(races(drive, rng, end), 2_000):
        assert race.was_taken == (race.waited_ms < race.own_ms + race.reserve_ms)
        spent = sum(event.ms for event in of(ReserveSpent, race.told))
        if race.was_taken and race.prompt.kind == "turn":
            assert spent == max(0, race.waited_ms - race.own_ms)
        assert spent <= race.reserve_ms
        taken, late = taken + race.was_taken, late + (not race.was_taken)
    assert taken > 500
    assert late > 500


# What counts against nobody.


def test_time_without_the_service_counts_against_nobody():
    """A take-over grants fresh deadlines, with what was left of the reserve."""
    drive = playing(RESERVE, hands=2)
    seat, decision = turn(drive)
    drive.pass_time(20_000)
    prompt = drive.prompt(seat)
    assert prompt is not None
    drive.act(seat, prompt.actions[0])
    drive.play(passing, until=lambda d: seat in d.prompt_ids() and d.prompt(seat).kind == "turn")
    decision = drive.prompt_ids()[seat]
    drive.pass_time(14_000)
    again = Drive(Table.replay(drive.events), now_ms=9_000_000)
    again.records = list(drive.records)
    again.attend(0, 1, 2, 3)
    assert again.table.ms_left(seat, decision, again.now_ms) == (15_000, 15_000)


def test_while_all_seats_are_lost_together_no_clock_runs():
    drive = playing(replace(LONG, away_grace_ms=180_000))
    seat, decision = turn(drive)
    drive.pass_time(400_000)
    for one in range(4):
        drive.table.detach(one)
    drive.settle()
    events = drive.pass_time(179_999)
    assert sorted(event.seat for event in of(ConnectionChanged, events)) == [0, 1, 2, 3]
    assert not of(play.TrusteeSet, events)
    assert drive.attend(seat) == [ConnectionChanged(seat, True)]
    assert drive.table.ms_left(seat, decision, drive.now_ms) == (200_000, 0)


def test_who_does_not_come_back_with_the_others_is_played_for_after_a_while():
    drive = playing(LONG)
    for one in range(4):
        drive.table.detach(one)
    drive.settle()
    drive.pass_time(20_000)
    drive.attend(0, 1, 2)
    assert drive.pass_time(9_999) == []
    assert drive.pass_time(1) == [play.TrusteeSet(3, True, "disconnected")]
    # Its grace runs from when the others were back.
    assert not of(play.HandEnded, drive.pass_time(19_999))
    assert of(play.HandEnded, drive.pass_time(1))[0].end == Escape(3)


def test_a_hand_that_ends_while_all_are_lost_sends_nobody_away():
    drive = playing(replace(LONG, between_hands_ms=0), hands=2)
    drive.answers = False
    drive.play(at_random(3), until=lambda d: bool(d.table.questions()))
    for one in range(4):
        drive.table.detach(one)
    drive.settle()
    drive.pass_time(10_000)
    drive.answers = True
    drive.settle()
    drive.attend(0, 1, 2, 3)
    drive.play(passing)
    assert of(TableClosed, drive.events) == [TableClosed("hands_played")]


def test_a_table_that_all_have_left_is_dissolved_and_releases_its_holds():
    """An empty table never ended."""
    drive = playing(LONG, hands=8, stakes=[SILVER], holds=True)
    away(drive, 0, 1, 2, 3)
    assert not of(TableDeserted, drive.pass_time(27_999))
    events = drive.pass_time(1)
    assert of(TableDeserted, events)
    assert of(play.HandEnded, events)[0].end == Dissolved("deserted")
    assert events[-2:] == [TableClosed("deserted"), HoldsReleased()]
    assert not of(HandSettled, drive.events)
    assert TableState.replay(drive.events) == drive.table.state


def test_a_table_that_is_played_to_the_end_ends_the_hand_that_all_have_left():
    drive = playing(TO_END, hands=8, stakes=[SILVER], holds=True)
    away(drive, 0, 1, 2, 3)
    events = drive.pass_time(600_000)
    assert len(of(play.HandEnded, events)) == 1
    assert not isinstance(of(play.HandEnded, events)[0].end, Dissolved | Escape)
    assert of(HandSettled, events)
    assert events[-2:] == [TableClosed("deserted"), HoldsReleased()]


# Away for too long.


def test_a_table_may_play_for_who_is_away_to_the_last_hand():
    drive = playing(TO_END, hands=2)
    away(drive, 2)
    events = drive.pass_time(30_000)
    assert of(GraceEnded, events) == [GraceEnded(2)]
    drive.play(passing)
    assert [type(event.end) is Escape for event in of(play.HandEnded, drive.events)] == [False] * 2
    assert of(TableClosed, drive.events) == [TableClosed("hands_played")]
    assert len(of(GraceEnded, drive.events)) == 1


def test_who_comes_back_to_such_a_table_goes_on_and_has_a_new_grace():
    drive = playing(TO_END, hands=8)
    away(drive, 2)
    drive.pass_time(100_000)
    events = drive.attend(2)
    assert events[:2] == [ConnectionChanged(2, True), play.TrusteeSet(2, False, "back")]
    assert not drive.table.state.seats[2].overdue
    away(drive, 2)
    assert of(GraceEnded, drive.pass_time(30_000)) == [GraceEnded(2)]


def test_an_open_table_is_played_to_the_end_of_the_hand_only():
    drive = playing(TO_END, hands=0)
    away(drive, 2)
    assert of(play.HandEnded, drive.pass_time(30_000))[0].end == Escape(2)


@pytest.mark.parametrize("turns", [2, 3])
def test_three_missed_turns_in_a_row_make_the_table_play_for_the_seat(turns):
    drive = playing(Timing(turn_ms=1_000, claim_ms=1_000, claim_window_ms=0))
    seat, _ = turn(drive)

    def choose(asked, prompt):
        return None if asked == seat and prompt.kind == "turn" else passing(asked, prompt)

    drive.play(choose, until=lambda d: len(missed(d, seat)) == turns)
    assert drive.table.state.seats[seat].trustee == (turns == 3)
    if turns == 3:
        assert drive.table.act(seat, "back-1", None) is False
        assert drive.settle()[0] == play.TrusteeSet(seat, False, "back")


def missed(drive: Drive, seat: int) -> list[play.TimedOut]:
    return [event for event in of(play.TimedOut, drive.events) if event.seat == seat]


# The clocks themselves.


def test_a_clock_that_stands_still_goes_on_where_it_stood():
    clocks, key = Clocks(), ("begin", 1, 0, 0)
    clocks.set({key: Wait(100)}, 0, lambda key: False)
    clocks.set({key: Wait(100)}, 40, lambda key: True)
    assert clocks.next_ms() is None
    assert clocks.left(key, 90) == (60, 0)
    assert clocks.due(500, 0) is None
    clocks.set({key: Wait(100)}, 540, lambda key: False)
    assert clocks.next_ms() == 600
    assert clocks.due(599, 0) is None
    assert clocks.due(600, 0) == key
    assert clocks.next_ms() is None


def test_a_seat_that_has_never_come_is_waited_for_from_the_first_that_came():
    drive = Drive.of(created(), Patience(start_ms=5_000))
    drive.pass_time(60_000)
    drive.attend(1)
    assert drive.pass_time(4_999) == []
    assert of(play.HandStarted, drive.pass_time(1))
