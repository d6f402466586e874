"""A recorded hand is played again: every step, the score and the payments must follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, records_pb2
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_suite.errors import VerificationFailed
from fangcheng_suite.playing_again import play_again
from fangcheng_suite.verify import verify, verify_payments
from fangcheng_table.events import Fee
from fangcheng_table.operating import Order, void_hand
from fangcheng_table.records import record_of
from tests.table.hands import played_record
from tests.table.tables import SILVER, Drive, at_random, away, created

KELE = "baishan_kele"
Record = records_pb2.HandRecord


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
def test_every_hand_of_every_rule_set_follows(rules: RuleSet) -> None:
    ends = set()
    for seed in range(12):
        record = played_record(rules.id, seed)
        found = verify(record, record.table_commitment)
        assert found.steps > 20
        ends.add(ended(record).hand.WhichOneof("end"))
        paid = next(event.hand_settled for event in record.events if event.HasField("hand_settled"))
        assert found.payments == len(paid.payments)
    assert "win" in ends


@pytest.mark.parametrize("moment", ["before_deal", "playing"])
def test_a_hand_that_a_seat_has_left_follows(moment: str) -> None:
    drive = Drive.of(created(root=b"e" * 32, stakes=[SILVER]))
    drive.attend(0, 1, 2, 3)
    if moment == "playing":
        drive.play(at_random(1), until=lambda it: len(it.records) > 90)
    drive.table.leave(2, now=True)
    drive.settle()
    record = record_of(drive.records, 1)
    assert ended(record).hand.escape.seat == 2
    verify(record, record.table_commitment)


@pytest.mark.parametrize("moment", ["before_deal", "playing"])
def test_a_hand_that_an_operator_has_dissolved_follows(moment: str) -> None:
    drive = Drive.of(created(root=b"v" * 32, stakes=[SILVER]))
    drive.attend(0, 1, 2, 3)
    if moment == "playing":
        drive.play(at_random(1), until=lambda it: len(it.records) > 90)
    void_hand(drive.table, Order("case-81/1", "operator", "a fault", "case-81"), 1)
    drive.settle()
    record = record_of(drive.records, 1)
    assert ended(record).hand.dissolved.reason == "a fault"
    assert verify(record, record.table_commitment).payments is None


def test_a_hand_in_which_the_table_played_for_a_seat_follows() -> None:
    drive = Drive.of(created(root=b"t" * 32))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(4), until=lambda it: len(it.records) > 90)
    away(drive, 0)
    drive.play(at_random(4))
    record = record_of(drive.records, 1)
    assert any(event.HasField("trustee_changed") for event in record.events)
    play_again(record)


def ended(record: Record) -> events_pb2.HandEnded:
    return next(event.hand_ended for event in record.events if event.HasField("hand_ended"))


def won(self_drawn: bool | None = None) -> Record:
    """The record of a hand that was won, in a way."""
    for seed in range(60):
        record = played_record(KELE, seed)
        win = ended(record).hand.win
        if win.winners and self_drawn in (None, win.by == "self_draw"):
            return record
    raise AssertionError("no hand was won so")


def _at(record: Record, kind: str, number: int = 3) -> int:
    places = [n for n, event in enumerate(record.events) if event.WhichOneof("kind") == kind]
    return places[min(number, len(places) - 1)]


def _discard_of_another(record: Record) -> None:
    discarded = record.events[_at(record, "discarded")].discarded
    discarded.seat = (discarded.seat + 1) % 4


def _discard_not_in_hand(record: Record) -> None:
    at = _at(record, "discarded", 0)
    seat = record.events[at].discarded.seat
    dealt = record.events[_at(record, "dealt")].dealt.hands[seat].tiles
    record.events[at].discarded.tile = next(t for t in range(11, 20) if t not in dealt)


def _step_left_out(record: Record) -> None:
    del record.events[_at(record, "discarded")]


def _step_told_twice(record: Record) -> None:
    at = _at(record, "drawn")
    again = record.events[at]
    record.events.insert(at, again)


def _meld_that_nobody_could_make(record: Record) -> None:
    at = _at(record, "discarded")
    discarded = record.events[at].discarded
    tile = discarded.tile
    meld = rules_pb2.Meld(kind="pong", tiles=[tile] * 3, from_seat=discarded.seat)
    melded = events_pb2.Melded(seat=(discarded.seat + 1) % 4, meld=meld)
    record.events.insert(at + 1, events_pb2.TableEvent(number=at + 2, melded=melded))


def _other_winner(record: Record) -> None:
    win = ended(record).hand.win
    winner = next(seat for seat in range(4) if seat not in (*win.winners, win.from_seat))
    win.winners[:] = [winner]


def _draw_instead_of_a_win(record: Record) -> None:
    ended(record).hand.draw.SetInParent()


def _more_fan(record: Record) -> None:
    ended(record).score.winners[0].fan += 1


def _another_transfer(record: Record) -> None:
    ended(record).score.transfers[0].amount += 1


def _another_net(record: Record) -> None:
    ended(record).net[0] += 1


def _hidden_tile_changed(record: Record) -> None:
    tiles = ended(record).hand.seats[0].concealed
    tiles[0] = tiles[0] % 9 + 11


def _no_end(record: Record) -> None:
    del record.events[_at(record, "hand_ended") :]


def _no_beginning(record: Record) -> None:
    del record.events[_at(record, "hand_started")]


@pytest.mark.parametrize(
    "tamper",
    [
        _discard_of_another,
        _discard_not_in_hand,
        _step_left_out,
        _step_told_twice,
        _meld_that_nobody_could_make,
        _other_winner,
        _draw_instead_of_a_win,
        _more_fan,
        _another_transfer,
        _another_net,
        _hidden_tile_changed,
        _no_end,
        _no_beginning,
    ],
)
def test_a_hand_that_was_changed_is_not_believed(tamper: Callable[[Record], None]) -> None:
    record = won()
    play_again(record)
    tamper(record)
    with pytest.raises(VerificationFailed, match=r"does not follow|goes on after|beginning"):
        play_again(record)


def test_what_does_not_follow_is_named_with_its_place() -> None:
    record = won()
    at = _at(record, "drawn")
    record.events[at].drawn.wall_tiles += 1
    with pytest.raises(VerificationFailed, match=rf"event {at + 1} \(drawn\) does not follow"):
        play_again(record)


# Payments.


def settled(record: Record) -> events_pb2.HandSettled:
    return next(event.hand_settled for event in record.events if event.HasField("hand_settled"))


def test_fees_are_due_once_beside_the_score() -> None:
    fees = (Fee(None, "silver", "", 5), Fee(2, "gems", "b", 1))
    drive = Drive.of(replace(created(hands=2, root=b"f" * 32, stakes=[SILVER]), fees=fees))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(3))
    fees_told = [
        sum(payment.reason == "fee" for payment in settled(record).payments)
        for record in (record_of(drive.records, 1), record_of(drive.records, 2))
    ]
    assert fees_told == [5, 0]
    for number in (1, 2):
        record = record_of(drive.records, number)
        assert verify_payments(record) == len(settled(record).payments)
    record = record_of(drive.records, 1)
    settled(record).payments[-1].due += 1
    with pytest.raises(VerificationFailed):
        verify_payments(record)


def _less_due(record: Record) -> None:
    settled(record).payments[0].due -= 1


def _more_paid(record: Record) -> None:
    settled(record).payments[0].paid += 1


def _another_payee(record: Record) -> None:
    payment = settled(record).payments[0]
    payment.to_seat = (payment.to_seat + 1) % 4


def _payment_left_out(record: Record) -> None:
    del settled(record).payments[0]


def _payment_twice(record: Record) -> None:
    payments = settled(record).payments
    payments.append(payments[0])


def _another_key(record: Record) -> None:
    settled(record).key = "t1/9"


def _another_stake(record: Record) -> None:
    record.stakes[0].per_unit += 1


def _more_than_the_cap(record: Record) -> None:
    record.stakes[0].loss_cap = 1


@pytest.mark.parametrize(
    "tamper",
    [
        _less_due,
        _more_paid,
        _another_payee,
        _payment_left_out,
        _payment_twice,
        _another_key,
        _another_stake,
        _more_than_the_cap,
    ],
)
def test_payments_that_do_not_fit_the_score_are_not_believed(
    tamper: Callable[[Record], None],
) -> None:
    record = won()
    assert verify_payments(record)
    tamper(record)
    with pytest.raises(VerificationFailed, match="payments do not check out"):
        verify_payments(record)


def test_who_could_not_pay_in_full_has_paid_less() -> None:
    record = won()
    settled(record).payments[0].paid = 0
    record.stakes[0].loss_cap = 1_000_000
    assert verify_payments(record)


def test_a_hand_without_stakes_has_no_payments() -> None:
    drive = Drive.of(created(root=b"n" * 32))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(2))
    record = record_of(drive.records, 1)
    assert verify(record, record.table_commitment).payments is None
