"""Two requests are the same where what the caller said is the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fangcheng_wallet.canonical import differences, dumps, loads
from fangcheng_wallet.ledger import Deposit, HoldRequest, Party, PlaceHolds, Settle, Withdraw
from tests.wallet.ledgers import points, settle, silver

COMMANDS = [
    Deposit("r", "amy", "silver", "", 2**53, "for 一局 \x00 \N{MAHJONG TILE RED DRAGON}"),
    Withdraw("r", "amy", "points", "kele", 1),
    PlaceHolds("r", (HoldRequest("amy", "silver", "", 5), HoldRequest("bo", "silver", "", 5))),
    settle("t/1", silver(None, 0, 5), points(1, None, 3), holds={"amy": ["h1", "h2"]}, club="a"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: type(one).__name__)
def test_a_command_is_read_back_as_it_was(command: object) -> None:
    again = loads(dumps(command), type(command))
    assert again == command
    assert differences(again, command) == []


def test_the_order_of_labels_makes_no_difference() -> None:
    one = Settle("t/1", (Party("amy"),), (), {"a": "1", "b": "2"})
    other = Settle("t/1", (Party("amy"),), (), {"b": "2", "a": "1"})
    assert dumps(one) == dumps(other)


def test_a_body_from_before_a_field_was_added_has_its_default() -> None:
    old = '{"amount":5,"book":"","currency":"silver","player_id":"amy","request_id":"r"}'
    assert loads(old, Deposit) == Deposit("r", "amy", "silver", "", 5, memo="")


def test_the_house_is_not_the_first_party() -> None:
    first, second = settle("t/1", silver(None, 1, 5)), settle("t/1", silver(0, 1, 5))
    assert differences(first, second) == ["transfers[0].from_party"]


def test_at_most_eight_fields_are_named() -> None:
    first = settle("t/1", *(silver(0, 1, number + 1) for number in range(20)))
    second = replace(first, transfers=tuple(replace(t, amount=99) for t in first.transfers))
    assert differences(first, second) == [f"transfers[{number}].amount" for number in range(8)]
