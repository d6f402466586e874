"""The scorer of `baishan_dazui` against a second one (`dazui_oracle.py`), and its own clauses."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from fangcheng_rules.analysis import KongChoice, Wait
from fangcheng_rules.errors import IllegalWin
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.rulesets.baishan_dazui import RULE_SET
from fangcheng_rules.scoring import (
    Dissolved,
    Draw,
    Escape,
    FinishedHand,
    Score,
    SeatEnd,
    Win,
    score,
)
from fangcheng_rules.tiles import name
from tests.rules import dazui_oracle as oracle
from tests.rules import kele_oracle
from tests.rules.in_play import Seat, Table
from tests.rules.test_scoring import as_ending, as_player, random_win

TABLE = Table(RULE_SET.complete())
PONG = Meld(MeldKind.PONG, (5,) * 3, 1, 5)


def random_finished(chance: random.Random) -> FinishedHand:
    """A hand that is complete by shape, and three losers with whatever melds."""
    finished = random_win(chance)
    return replace(finished, seats=tuple(replace(seat, piao=0) for seat in finished.seats))


def agree(finished: FinishedHand, options: dict[str, object]) -> Score:
    """Both count the same for every loser, and everybody ends up with the same."""
    given = RULE_SET.complete(options)
    unit, cap, alone = int(given["kong_unit"]), int(given["cap"]), bool(given["discarder_pays"])
    players = [as_player(seat) for seat in finished.seats]
    ending = as_ending(finished.end) if isinstance(finished.end, Win) else None
    result = score(RULE_SET, options, finished)
    if ending is not None:
        expected = oracle.amounts(players, finished.dealer, ending, cap, alone)
        assert {loser.seat: loser.amount for loser in result.losers} == expected
    assert list(result.net) == oracle.net(players, finished.dealer, ending, unit, cap, alone)
    return result


@pytest.mark.parametrize("seed", range(8))
def test_both_scorers_agree_on_random_wins(seed: int) -> None:
    chance = random.Random(seed)
    legal = 0
    for _ in range(250):
        finished = random_finished(chance)
        options: dict[str, object] = {
            "kong_unit": chance.choice((1, 1, 2, 0)),
            "cap": chance.choice((64, 64, 64, 0, 16)),
            "discarder_pays": chance.random() < 0.2,
        }
        assert isinstance(finished.end, Win)
        winner = as_player(finished.seats[finished.end.winners[0]])
        if kele_oracle.wins([*winner.concealed, name(finished.end.tile)], winner.melds):
            agree(finished, options)
            legal += 1
        else:
            with pytest.raises(IllegalWin) as caught:
                score(RULE_SET, options, finished)
            assert caught.value.reason == "NOT_A_WIN"
    assert 150 < legal < 250


def test_those_random_wins_have_every_fan_item_in_them() -> None:
    counted: Counter[str] = Counter()
    for seed in range(4):
        chance = random.Random(seed)
        for _ in range(500):
            try:
                result = score(RULE_SET, {}, random_finished(chance))
            except IllegalWin:
                continue
            for side in (*result.winners, *result.losers):
                counted.update(item.id for item in side.items)
    assert set(counted) == {item.id for item in RULE_SET.fan_items}


def test_a_drawn_hand_pays_its_kongs_as_the_second_scorer_says() -> None:
    chance = random.Random(3)
    paid = 0
    for _ in range(200):
        finished = replace(random_finished(chance), end=Draw())
        paid += any(agree(finished, {}).net)
    assert paid > 50


# ---- Dealer, titles ----


@pytest.mark.parametrize(
    ("end", "next_dealer"),
    [
        (Win((1,), 0, "self_draw"), 1),
        (Win((3,), 0, "self_draw"), 2),
        (Draw(), 1),
        (Dissolved(), 1),
        (Escape(2), None),
    ],
)
def test_the_dealer_stays_after_winning_or_a_drawn_hand(
    end: Win | Draw | Dissolved | Escape, next_dealer: int | None
) -> None:
    finished = FinishedHand(1, (SeatEnd(),) * 4, end)
    assert RULE_SET.next_dealer(finished) == next_dealer


def test_titles_rise_from_the_white_dragon_to_the_god_of_sparrows() -> None:
    points = [title.from_points for title in RULE_SET.titles]
    assert points[0] is None  # below 100, negative points included
    rising = [point for point in points if point is not None]
    assert rising == sorted(set(rising))
    assert len(rising) == len(points) - 1 == 16
    assert (RULE_SET.titles[1].name_zh, rising[0]) == ("一万", 100)
    assert (RULE_SET.titles[-1].name_zh, rising[-1]) == ("雀神", 2_000_000)


# ---- Permitted calls ----


def test_a_declared_seat_kongs_only_if_exactly_one_wait_is_left() -> None:
    one, two = (Wait(3, 0),), (Wait(3, 0), Wait(6, 0))
    calls = RULE_SET.calls
    exposed = Meld(MeldKind.EXPOSED_KONG, (5,) * 4, 1, 5)
    for declared_open, waits, allowed in (
        (True, one, True),
        (True, two, False),
        (True, (), False),
        (False, one, False),  # closed when it declared: concealed kongs only
    ):
        seat = Seat(declared="ting", declared_open=declared_open)
        assert calls.may_claim(TABLE, seat, exposed, waits) is allowed
    assert not calls.may_claim(TABLE, Seat(declared="ting", declared_open=True), PONG, one)
    assert calls.may_claim(TABLE, Seat(), exposed, two)
    for kind in (MeldKind.CONCEALED_KONG, MeldKind.ADDED_KONG):
        seat = Seat(declared="ting", declared_open=True, drawn=5)
        assert calls.may_kong(TABLE, seat, KongChoice(5, kind, one))
        assert not calls.may_kong(TABLE, seat, KongChoice(5, kind, two))
        assert not calls.may_kong(TABLE, seat, KongChoice(7, kind, one))  # not the tile drawn
        assert calls.may_kong(TABLE, Seat(drawn=5), KongChoice(7, kind, two))


def test_only_a_single_wait_can_be_declared_and_only_once() -> None:
    one, two = (Wait(3, 0),), (Wait(3, 0), Wait(6, 0))
    declarations = RULE_SET.calls.declarations
    assert declarations(TABLE, Seat(), one, None) == ("ting",)
    assert declarations(TABLE, Seat(), one, MeldKind.CONCEALED_KONG) == ("ting",)
    assert declarations(TABLE, Seat(), two, None) == ()
    assert declarations(TABLE, Seat(declared="ting"), one, None) == ()
