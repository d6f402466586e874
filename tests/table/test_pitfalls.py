"""Faults that others have shipped in tables, each with the tests that keep it out of ours.

A test that is renamed or removed is missed here.
"""

from __future__ import annotations

from importlib import import_module

import pytest

KEPT_OUT = {
    "A quick reconnect threw out the new session when the old one timed out"
    " (topfreegames/pitaya#251).": [
        "tests.table.test_streams:test_a_newer_stream_of_a_seat_closes_the_older_one",
    ],
    "A time-out's automatic action fired after the player's own.": [
        "tests.table.test_core:test_an_act_at_the_deadline_is_taken_or_late_and_never_both",
        "tests.table.test_clocks:"
        "test_an_act_at_the_end_of_the_reserve_is_taken_or_late_and_never_both",
        "tests.table.test_acts:"
        "test_acts_at_the_real_deadline_are_taken_or_late_and_what_is_told_agrees",
    ],
    "Streams of vanished clients kept running (grpc/grpc#35881); a handler that swallows"
    " CancelledError leaks native memory per stream (grpc/grpc#43360).": [
        "tests.table.test_streams:test_viewers_that_vanish_leave_nothing_behind",
        "tests.table.test_streams:test_ten_thousand_vanishing_viewers_leave_memory_flat",
    ],
    "A slow spectator filled an unbounded queue.": [
        "tests.table.test_streams:test_a_reader_that_falls_behind_is_ended_and_may_go_on_from_there",
        "tests.table.test_streams:test_a_reader_that_does_not_read_is_closed_and_may_resume",
        "tests.table.test_streams:test_a_gateway_that_falls_behind_is_closed",
    ],
    "An empty table never ended (Nakama's default).": [
        "tests.table.test_core:test_a_table_to_which_nobody_comes_closes_unplayed",
        "tests.table.test_clocks:"
        "test_a_table_that_all_have_left_is_dissolved_and_releases_its_holds",
        "tests.table.test_clocks:"
        "test_a_table_that_is_played_to_the_end_ends_the_hand_that_all_have_left",
        "tests.table.test_operating:test_a_seat_that_nobody_takes_in_time_closes_the_table",
    ],
    "The wall was predictable: a constant seed, the clock as a seed, a commitment from which the"
    " wall follows.": [
        "tests.table.test_service:test_no_two_tables_have_the_same_walls",
        "tests.table.test_core:test_the_secrets_of_the_hands_follow_from_the_commitment",
        "tests.table.test_core:test_the_wall_follows_from_the_secret_and_the_seats_shares",
        "tests.rules.test_wall:test_everything_that_goes_in_changes_the_wall",
    ],
    "A call that was sent again did its work again.": [
        "tests.table.test_replays:"
        "test_whatever_is_repeated_reordered_or_duplicated_changes_nothing",
        "tests.table.test_acts:test_replays_and_duplicates_of_every_call_change_nothing",
        "tests.table.test_operators:test_a_voided_hand_is_told_recorded_and_logged_once",
    ],
}


@pytest.mark.parametrize(
    ("fault", "test"), [(fault, test) for fault, tests in KEPT_OUT.items() for test in tests]
)
def test_what_others_got_wrong_is_tested(fault: str, test: str) -> None:
    module, _, name = test.partition(":")
    assert callable(getattr(import_module(module), name, None)), f"no test: {fault}"
