"""Faults that others have shipped in wallets, each with the tests that keep it out of ours.

A test that is renamed or removed is missed here.
"""

from __future__ import annotations

from importlib import import_module

import pytest

KEPT_OUT = {
    "A flaky connection made a client record a round twice (MahjongPantheon/pantheon#863).": [
        "tests.system.test_wallet_replies:"
        "test_two_hundred_settlements_whose_replies_are_swallowed_are_settled_once",
        "tests.wallet.test_service:test_calls_whose_answers_are_lost_are_settled_once",
    ],
    "One payment was settled twice within milliseconds (getlago/lago-api#3618).": [
        "tests.wallet.test_postgres:test_fifty_calls_with_one_key_over_two_wallets_settle_once",
        "tests.wallet.test_service:test_fifty_parallel_calls_over_many_connections_settle_once",
        "tests.wallet.test_store_at_once:test_fifty_calls_with_one_key_settle_once",
    ],
    "Ids that the server makes were compared, so a retry was refused (formancehq/wallets#109).": [
        "tests.wallet.test_store:test_ids_that_the_wallet_made_are_no_part_of_what_is_compared",
        "tests.wallet.test_canonical:test_the_order_of_labels_makes_no_difference",
    ],
    "A key twice in one batch broke the batch (formancehq/stack#1633).": [
        "tests.wallet.test_store_at_once:test_a_key_twice_in_one_commit_is_settled_once_and_replayed",
    ],
    "One bad item failed all of its batch.": [
        "tests.wallet.test_store_at_once:test_one_bad_item_is_refused_alone",
        "tests.wallet.test_postgres:test_one_item_that_the_database_cannot_take_is_refused_alone",
        "tests.wallet.test_calls:test_a_text_with_nul_in_a_batch_is_refused_alone",
    ],
    "What is held counted as available (blnkfinance/blnk#181).": [
        "tests.wallet.test_store:test_two_hundred_holds_at_once_take_no_more_than_there_is",
        "tests.wallet.test_store:test_no_more_than_is_available_can_be_withdrawn",
    ],
    "A hold was taken twice (blnkfinance/blnk#171), or given back twice (#41).": [
        "tests.wallet.test_store_settlements:test_a_hold_is_captured_once",
        "tests.wallet.test_store:test_a_hold_is_released_once",
    ],
    "A transfer left out a member whom nobody knew (Nakama).": [
        "tests.wallet.test_store_settlements:test_a_malformed_settlement_settles_nothing",
    ],
    "Rests and forced ends did not add up to zero (MahjongPantheon/pantheon#967).": [
        "tests.wallet.test_hands:test_however_a_hand_ends_it_adds_up_with_the_house",
        "tests.wallet.test_store_settlements:test_a_settlement_adds_up_to_zero_with_the_house",
    ],
    "Amounts overflowed, or were stored as floats.": [
        "tests.wallet.test_store:test_no_balance_leaves_the_range_of_amounts",
        "tests.wallet.test_store:test_sums_of_the_largest_amounts_do_not_overflow",
        "tests.wallet.test_sqlite:test_the_database_refuses",
        "tests.wallet.test_postgres:test_the_database_refuses",
    ],
    "Two writers locked accounts in two orders.": [
        "tests.wallet.test_store_at_once:test_players_who_pay_each_other_at_once_do_not_block",
        "tests.wallet.test_postgres:test_two_wallets_write_beside_each_other",
        "tests.wallet.test_postgres:test_a_deadlock_is_overcome_by_trying_again",
        "tests.wallet.test_postgres:test_who_holds_the_ledger_too_long_makes_the_wallet_give_up",
    ],
    "A process was killed between its commit and its answer.": [
        "tests.system.test_wallet_crash:"
        "test_nothing_acknowledged_is_lost_and_nothing_is_done_twice",
        "tests.system.test_wallet_bank:test_the_bank_adds_up_at_every_read_whatever_happens",
    ],
    "A call that was cancelled tore its commit apart.": [
        "tests.wallet.test_store_at_once:test_a_cancelled_call_does_not_tear_a_commit_apart",
    ],
}


@pytest.mark.parametrize(
    ("fault", "test"), [(fault, test) for fault, tests in KEPT_OUT.items() for test in tests]
)
def test_what_others_got_wrong_is_tested(fault: str, test: str) -> None:
    module, _, name = test.partition(":")
    assert callable(getattr(import_module(module), name, None)), f"no test: {fault}"
