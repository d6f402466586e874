"""What comes between two hands: ready checks, rounds, who cannot go on, the last ranking."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from fangcheng.wallet.v1 import settlement_pb2 as wallet
from fangcheng_rules import events as play
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import Draw, Win
from fangcheng_table import votes
from fangcheng_table.convert import table_to_wire
from fangcheng_table.convert_settlement import (
    losses,
    payments_from_wire,
    settle_request,
    short_seats,
)
from fangcheng_table.errors import NotOffered, StaleDecision
from fangcheng_table.events import (
    HandOpened,
    ReadyAsked,
    ReadyGiven,
    ReadyMissed,
    SeatVacated,
    Stake,
    TableClosed,
    Timing,
)
from fangcheng_table.settlement import Posting
from fangcheng_table.state import TableState
from fangcheng_table.views import SPECTATORS, Projector

from .tables import SILVER, Drive, at_random, created, of, paid, passing, playing

FAST = Timing(claim_window_ms=0, between_hands_ms=0, turn_ms=600_000, ready_ms=30_000)


def shandong(root: bytes = b"r" * 32, **more: object) -> Drive:
    drive = Drive.of(created(rules_id="shandong", timing=FAST, hands=8, root=root, **more))
    drive.is_ready = False
    drive.attend(0, 1, 2, 3)
    return drive


def after_a_win() -> Drive:
    """A Shandong table, its first hand won and its seats asked whether they are ready."""
    for seed in range(100):
        drive = shandong(bytes([seed]) * 32)
        drive.play(at_random(seed), until=lambda d: d.table.state.in_play is None)
        if isinstance(of(play.HandEnded, drive.events)[0].end, Win):
            return drive
    raise AssertionError("no hand was won")


def ready(drive: Drive, seat: int, check: int = 1) -> bool:
    return votes.reply(drive.table, seat, f"ready-{check}", "ready")


# Ready checks.


def test_the_next_hand_begins_when_all_are_ready_and_not_before():
    drive = after_a_win()
    assert of(ReadyAsked, drive.events) == [ReadyAsked(1)]
    for seat in (2, 0, 3):
        assert ready(drive, seat) is False
        assert drive.settle() == [ReadyGiven(1, seat)]
    drive.pass_time(29_999)
    ready(drive, 1)
    events = drive.settle()
    assert events[0] == ReadyGiven(1, 1)
    assert of(HandOpened, events)
    assert TableState.replay(drive.events) == drive.table.state


def test_who_is_not_ready_in_time_leaves():
    drive = after_a_win()
    for seat in (0, 1, 3):
        ready(drive, seat)
    assert drive.pass_time(29_999) == [ReadyGiven(1, seat) for seat in (0, 1, 3)]
    assert drive.pass_time(1)[:2] == [ReadyMissed(1, 2), TableClosed("not_ready")]


def test_after_a_drawn_hand_the_next_one_starts_without_a_ready_check():
    for seed in range(30):
        drive = shandong(bytes([seed]) * 32)
        drive.play(passing, until=lambda d: len(of(play.HandEnded, d.events)) == 1)
        (ended,) = of(play.HandEnded, drive.events)
        if isinstance(ended.end, Draw):
            assert not of(ReadyAsked, drive.events)
            assert len(of(HandOpened, drive.events)) == 2
            return
    raise AssertionError("no hand was drawn")


def test_the_table_is_ready_for_the_seats_that_it_plays_for():
    drive = after_a_win()
    for seat in (0, 1, 3):
        ready(drive, seat)
    drive.table.set_trustee(2, True, "asked")
    events = drive.settle()
    assert ReadyGiven(1, 2) in events
    assert of(HandOpened, events)


def test_being_ready_again_or_late_says_nothing_new():
    drive = after_a_win()
    ready(drive, 0)
    drive.settle()
    assert ready(drive, 0) is True
    for decision_id, word in (("ready-2", "ready"), ("ready-0", "ready")):
        with pytest.raises(StaleDecision):
            votes.reply(drive.table, 1, decision_id, word)
    with pytest.raises(NotOffered):
        votes.reply(drive.table, 1, "ready-1", "agree")
    assert drive.settle() == []
    for seat in (1, 2, 3):
        ready(drive, seat)
    drive.settle()
    assert ready(drive, 3) is True
    assert drive.settle() == []


def test_where_the_rules_have_no_ready_check_none_is_asked():
    for rules_id in ("baishan_kele", "baishan_dazui", "baicheng", "jintan"):
        assert rule_set(rules_id).ready_check == "never"
    drive = playing(FAST, hands=2)
    drive.play(passing)
    assert not of(ReadyAsked, drive.events)


def test_who_was_not_ready_is_replaced_where_the_table_waits_for_others():
    drive = after_a_win()
    state = drive.table.state
    state.created = replace(state.created, timing=replace(FAST, vacancy_ms=60_000))
    for seat in (0, 1, 3):
        ready(drive, seat)
    events = drive.pass_time(30_000)
    assert of(SeatVacated, events) == [SeatVacated(2, "not_ready")]
    assert not any(seat.ready for seat in state.seats)


# How long it goes on.


def test_a_round_is_over_when_the_deal_has_gone_once_around():
    table = replace(created(hands=0), rounds=1)
    drive = Drive.of(table)
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(7))
    starts = of(play.HandStarted, drive.events)
    passes = sum(a.dealer != b.dealer for a, b in itertools.pairwise(starts))
    assert passes == 3
    last = of(play.HandEnded, drive.events)[-1]
    assert isinstance(last.end, Win)
    assert starts[-1].dealer not in last.end.winners
    assert of(TableClosed, drive.events) == [TableClosed("hands_played")]


def test_hands_end_a_table_before_its_rounds_are_over():
    drive = Drive.of(replace(created(hands=2), rounds=4))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(7))
    assert len(of(play.HandEnded, drive.events)) == 2


def test_the_multiplier_of_drawn_hands_carries_over():
    drive = Drive.of(created(rules_id="shandong", hands=4, timing=FAST))
    drive.attend(0, 1, 2, 3)
    drive.play(passing)
    assert any(isinstance(ended.end, Draw) for ended in of(play.HandEnded, drive.events))
    before = 0
    for started, ended in zip(
        of(play.HandStarted, drive.events), of(play.HandEnded, drive.events), strict=True
    ):
        assert started.drawn_hands_before == before
        before = before + 1 if isinstance(ended.end, Draw) else 0


# Who cannot go on.


def test_a_seat_that_could_not_pay_is_bankrupt_and_the_table_closes_after_the_hand():
    drive = Drive.of(created(hands=30, stakes=[SILVER], holds=True))
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(4), until=lambda d: d.table.settlement() is not None)
    settlement = drive.table.settlement()
    assert settlement is not None
    drive.table.settled(settlement, paid(settlement), (2,))
    drive.pays = True
    assert of(TableClosed, drive.settle()) == [TableClosed("bankrupt")]


def settled(settlement, *, short_by: int = 0, available: int = 0, held: int = 0):
    """What a wallet answers."""
    place = {seat: number for number, (seat, _) in enumerate(settlement.parties)}
    answer = wallet.Settlement(key=settlement.key)
    for posting in settlement.postings:
        transfer = wallet.SettlementTransfer(
            currency=posting.currency, amount=posting.amount, reason=posting.reason
        )
        if posting.source is not None:
            transfer.from_party = place[posting.source]
        if posting.target is not None:
            transfer.to_party = place[posting.target]
        answer.transfers.append(
            wallet.SettledTransfer(transfer=transfer, paid=posting.amount - short_by)
        )
    for number in range(4):
        answer.balances.append(
            wallet.PartyBalance(party=number, currency="silver", available=available, held=held)
        )
    return answer


@pytest.mark.parametrize(
    ("hold_only", "available", "held", "is_short"),
    [
        (False, 600, 400, False),
        (False, 599, 400, True),
        (True, 5_000, 999, True),
        (True, 0, 1_000, False),
    ],
)
def test_a_seat_below_the_tables_minimum_is_short(hold_only, available, held, is_short):
    stake = Stake("silver", "", 10, minimum=1_000)
    drive = Drive.of(replace(created(hands=2, stakes=[stake]), hold_only=hold_only))
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(4), until=lambda d: d.table.settlement() is not None)
    settlement = drive.table.settlement()
    answer = settled(settlement, available=available, held=held)
    assert short_seats(answer, settlement) == ((0, 1, 2, 3) if is_short else ())


def test_a_seat_that_paid_less_than_it_owed_is_short():
    drive = Drive.of(created(hands=2, stakes=[SILVER]))
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    drive.play(
        at_random(4),
        until=lambda d: bool((due := d.table.settlement()) and due.postings) or d.table.state.done,
    )
    settlement = drive.table.settlement()
    payers = {posting.source for posting in settlement.postings}
    assert payers
    assert set(short_seats(settled(settlement, short_by=1), settlement)) == payers
    assert short_seats(settled(settlement), settlement) == ()


def test_a_seat_that_has_lost_the_cap_is_not_short_for_what_it_owed_beyond():
    stake = replace(SILVER, loss_cap=15)
    drive = Drive.of(created(hands=2, stakes=[stake]))
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(4), until=lambda d: bool((s := d.table.settlement()) and s.postings))
    due = drive.table.settlement()
    pay = Posting("silver", "", 1, 0, 20, "win")
    three = replace(due, postings=(pay, replace(pay, source=2), replace(pay, source=3, target=1)))
    assert settle_request(three, {}).caps == [wallet.LossCap(currency="silver", most=15)]
    answer = settled(three)
    # Seats 1 and 3 have lost the cap of 15, one of them after it was paid 15; seat 2 had only 14.
    for transfer, coins in zip(answer.transfers, (30, 14, 15), strict=True):
        transfer.transfer.amount, transfer.paid = 40, coins
    assert short_seats(answer, three) == (2,)
    assert losses(payments_from_wire(answer, three))[1, "silver", ""] == 15


def test_chips_are_counted_at_a_table_without_a_wallet_until_a_seat_has_none_left():
    drive = Drive.of(replace(created(hands=0), starting_chips=40))
    drive.pays = False
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(5))
    assert of(TableClosed, drive.events) == [TableClosed("bankrupt")]
    shown = table_to_wire(drive.table.state)
    assert [seat.chips for seat in shown.seats] == [40 + seat.standing for seat in shown.seats]
    assert min(seat.chips for seat in shown.seats) <= 0
    ends = of(play.HandEnded, drive.events)
    before = [sum(ended.score.net[seat] for ended in ends[:-1]) for seat in range(4)]
    assert min(before) > -40


# The end.


def test_the_last_event_ranks_the_seats_by_their_standings():
    drive = Drive.of(created(hands=6))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(9))
    projector, last = Projector(), None
    for record in drive.records:
        for viewers, event in projector.see(record):
            if SPECTATORS in viewers:
                last = event
    closed = last.table_closed
    standings = [seat.standing for seat in drive.table.state.seats]
    assert list(closed.standings) == standings
    assert [rank.standing for rank in closed.ranking] == sorted(standings, reverse=True)
    for rank in closed.ranking:
        assert standings[rank.seat] == rank.standing
        assert rank.place == 1 + sum(one > rank.standing for one in standings)
        assert rank.player_id == drive.table.state.seats[rank.seat].plan.player_id
