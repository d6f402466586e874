"""Faults that others have shipped in matchmaking, each with the tests that keep it out of ours.

A test that is renamed or removed is missed here.
"""

from __future__ import annotations

from importlib import import_module

import pytest

KEPT_OUT = {
    "Matching stopped at a restart until somebody repaired it (googleforgames/open-match#1229).": [
        "tests.matchmaking.test_poisoned:"
        "test_an_unreadable_ticket_keeps_no_service_from_starting_and_no_player_from_queueing",
        "tests.matchmaking.test_matches:test_a_match_is_taken_up_wherever_the_process_before_ended",
        "tests.matchmaking.test_matches:test_a_restart_loses_no_ticket_and_no_place",
        "tests.matchmaking.test_process:"
        "test_a_killed_process_leaves_no_hold_no_table_and_no_ticket_behind",
        "tests.matchmaking.test_replicas:"
        "test_a_pool_goes_on_when_its_replica_is_gone_in_the_middle_of_a_match",
        "tests.matchmaking.test_process:"
        "test_when_a_replica_is_killed_another_takes_its_pools_and_its_matches_over",
    ],
    "A ticket waited for ever (heroiclabs/nakama#796, #586).": [
        "tests.matchmaking.test_matching:"
        "test_no_ticket_that_could_be_seated_waits_and_whoever_is_seated_may_sit_together",
        "tests.matchmaking.test_matching:"
        "test_a_lone_extreme_rating_is_seated_as_soon_as_his_own_spread_reaches_three",
        "tests.matchmaking.test_matching:"
        "test_a_party_of_three_is_not_passed_over_by_singles_who_come_four_at_a_time",
        "tests.matchmaking.test_service:test_metrics_tell_of_queues_without_naming_anybody",
    ],
    "A player was matched with himself, or twice (nakama 2.7.0; open-match#1392).": [
        "tests.matchmaking.test_service:test_one_player_from_two_connections_has_one_ticket",
        "tests.matchmaking.test_replicas:test_one_player_at_two_replicas_has_one_ticket",
        "tests.matchmaking.test_store:test_two_stores_on_one_postgres_take_no_player_twice",
        "tests.matchmaking.test_store:test_a_party_has_one_ticket_and_each_of_it_no_other",
        "tests.matchmaking.test_store:test_a_ticket_is_never_in_two_matches",
    ],
    "A match was formed while one of its four was leaving.": [
        "tests.matchmaking.test_store:"
        "test_cancel_against_commit_ten_thousand_times_has_one_outcome",
        "tests.matchmaking.test_matches:test_leavers_and_matches_race_to_one_outcome",
        "tests.matchmaking.test_matches:test_leaving_while_holds_are_placed_stops_the_match",
    ],
    "One expired or malformed ticket failed the batch that it was in (open-match#1674).": [
        "tests.matchmaking.test_store:test_one_refused_call_takes_nothing_from_those_beside_it",
        "tests.matchmaking.test_matches:test_a_player_with_too_little_falls_out_alone",
        "tests.matchmaking.test_matches:test_a_player_without_a_wallet_falls_out_alone",
        "tests.matchmaking.test_parties:"
        "test_a_member_who_cannot_bring_the_buy_in_takes_only_his_party_out",
        "tests.matchmaking.test_poisoned:test_a_poisoned_ticket_fails_alone",
    ],
    "A table was created, the answer lost, and the table an orphan for ever (agones#607).": [
        "tests.matchmaking.test_matches:test_a_call_without_an_answer_is_repeated_with_its_key",
        "tests.matchmaking.test_matches:test_a_restart_in_the_middle_of_a_call_leaves_nothing_behind",
        "tests.matchmaking.test_service:"
        "test_a_table_that_nobody_knows_any_more_gives_its_players_and_holds_back",
    ],
}


@pytest.mark.parametrize(
    ("fault", "test"), [(fault, test) for fault, tests in KEPT_OUT.items() for test in tests]
)
def test_what_others_got_wrong_is_tested(fault: str, test: str) -> None:
    module, _, name = test.partition(":")
    assert callable(getattr(import_module(module), name, None)), f"no test: {fault}"
