"""The statistics of the integrity report: against numbers worked out by hand, and properties."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fangcheng_suite.integrity.chance import Pairs, expect
from fangcheng_suite.integrity.facts import CELLS, HandFacts, cells_of, counted
from fangcheng_suite.integrity.findings import report
from fangcheng_suite.integrity.significance import at_least, at_most, holm

PLAYERS = ("ming", "lan", "ju", "zhu")

means = st.floats(0.01, 200)
spreads = st.one_of(st.just(0.0), st.floats(1e-6, 2))


def hand(
    number: int,
    players: tuple[str, str, str, str] = PLAYERS,
    deal_ins: tuple[tuple[int, int], ...] = (),
    *,
    dealer: int = 0,
    variant: str = "kele",
    paid: tuple[tuple[int, int, int], ...] = (),
) -> HandFacts:
    return HandFacts("table", number, "kele", variant, 0, players, dealer, deal_ins, paid=paid)


def test_three_or_more_where_two_are_expected_as_a_table_of_poisson_has_it() -> None:
    assert at_least(3, 2.0, 0.0) == pytest.approx(1 - 5 * math.exp(-2))
    assert at_most(1, 2.0, 0.0) == pytest.approx(3 * math.exp(-2))


def test_a_rate_that_is_not_known_makes_much_of_something_less_surprising() -> None:
    # A squared variation of 1 makes counts geometric: of 2 expected, each more is 2/3 as likely.
    assert at_least(3, 2.0, 1.0) == pytest.approx(float(Fraction(2, 3) ** 3))
    assert at_most(2, 2.0, 1.0) == pytest.approx(1 - float(Fraction(2, 3) ** 3))


@given(st.integers(0, 400), means, spreads)
def test_a_count_or_more_and_less_than_it_are_everything(
    count: int, mean: float, spread: float
) -> None:
    assert at_least(count, mean, spread) + at_most(count - 1, mean, spread) == pytest.approx(1)


@given(st.integers(0, 400), means, spreads)
def test_more_is_rarer_and_a_probability(count: int, mean: float, spread: float) -> None:
    assert 0 <= at_least(count + 1, mean, spread) <= at_least(count, mean, spread) <= 1


def test_far_tails_are_not_lost_in_rounding() -> None:
    exact = math.exp(-1) * sum(1 / math.factorial(count) for count in range(40, 80))
    assert at_least(40, 1.0, 0.0) == pytest.approx(exact, rel=1e-9)


def test_holm_as_worked_out_by_hand() -> None:
    # The least of four counts four times, the next three times, and none less than one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_holm_with_weights_as_worked_out_by_hand() -> None:
    # The first has three quarters of the level: 0.03 / 0.75; then the other has all of it.
    assert holm([0.03, 0.02], [3, 1]) == pytest.approx([0.04, 0.04])
    assert holm([0.03, 0.02], [1, 3]) == pytest.approx([0.03, 0.02 * 4 / 3])


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 100)), max_size=30))
def test_evenly_weighted_is_not_weighted_and_nothing_falls_below_itself(
    found: list[tuple[float, float]],
) -> None:
    p_values = [p for p, _ in found]
    assert holm(p_values, [7.0] * len(found)) == pytest.approx(holm(p_values))
    weighted = holm(p_values, [weight for _, weight in found])
    assert all(p <= adjusted + 1e-12 for p, adjusted in zip(p_values, weighted, strict=True))


@given(st.lists(st.floats(0, 1), max_size=30))
def test_holm_never_makes_anything_more_certain_and_keeps_the_order(found: list[float]) -> None:
    adjusted = holm(found)
    assert all(before <= after <= 1 for before, after in zip(found, adjusted, strict=True))
    for one, other in itertools.combinations(range(len(found)), 2):
        if found[one] < found[other]:
            assert adjusted[one] <= adjusted[other]


def test_where_all_are_alike_each_pair_has_a_twelfth() -> None:
    # Each cell once, the deal going round: nobody and no place stands out.
    hands = [
        hand(number, deal_ins=(cell,), dealer=dealer)
        for number, (cell, dealer) in enumerate(itertools.product(CELLS, range(4)), 1)
    ]
    looked = counted(hands)
    pairs = Pairs.of(looked)
    nobody = np.zeros(len(pairs.key), np.bool_)
    told = expect(looked, pairs, "deal_in", nobody, ~nobody)
    assert told.observed.tolist() == [4] * 12
    assert told.expected == pytest.approx([4.0] * 12, rel=1e-3)
    assert pairs.hands.tolist() == [48] * 12


def test_what_is_expected_adds_up_to_about_what_happened() -> None:
    chance = random.Random(3)
    hands = [hand(n, deal_ins=(chance.choice(CELLS),), dealer=n % 4) for n in range(400)]
    looked = counted(hands)
    pairs = Pairs.of(looked)
    nobody = np.zeros(len(pairs.key), np.bool_)
    told = expect(looked, pairs, "deal_in", nobody, ~nobody)
    assert told.expected.sum() == pytest.approx(400, rel=0.05)


def test_who_deals_in_to_everybody_is_not_conspicuous_with_anybody() -> None:
    # Ming deals in all the time, to all three alike.
    chance = random.Random(5)
    hands = [hand(n, deal_ins=((0, chance.randrange(1, 4)),), dealer=n % 4) for n in range(300)]
    told = report(hands)
    assert told.beyond == ()
    by_cell = {(f.one, f.other): f for pair in told.pairs for f in pair.findings}
    assert by_cell["ming", "lan"].expected == pytest.approx(100, rel=0.25)


def test_who_deals_in_to_one_alone_is_conspicuous_with_that_one() -> None:
    chance = random.Random(6)
    hands = [
        hand(n, deal_ins=((0, 1) if n % 2 else chance.choice(CELLS),), dealer=n % 4)
        for n in range(300)
    ]
    told = report(hands)
    assert {(pair.one, pair.other) for pair in told.beyond} == {("ming", "lan")}
    first = told.beyond[0].findings[0]
    assert (first.signal, first.one, first.other) == ("deal_in", "ming", "lan")
    assert first.ratio > 3
    # What the two do leaves less for the others; that is not taken for sparing each other.
    assert not any(f.beyond for pair in told.pairs for f in pair.findings if f.signal == "soft")
    others = [f for f in told.pairs[-1].findings if f.signal == "deal_in"]
    assert all(0.5 < finding.ratio < 2 for finding in others)


def test_sitting_before_somebody_is_no_crime() -> None:
    # Everybody deals in to the next player five times as often; these four always sit so.
    chance = random.Random(8)
    weights = [5 if (other - one) % 4 == 1 else 1 for one, other in CELLS]
    others = ("a", "b", "c", "d")
    hands = []
    for number in range(600):
        (cell,) = chance.choices(CELLS, weights)
        hands.append(hand(number, PLAYERS if number % 2 else others, (cell,), dealer=number % 4))
    assert report(hands).beyond == ()


def test_hands_too_few_are_not_asked_about() -> None:
    hands = [hand(n, deal_ins=((0, 1),)) for n in range(20)]
    told = report(hands)
    assert (told.questions, told.pairs, told.met, told.hands) == (0, (), 6, 20)
    assert report(hands, least_hands=20).questions > 0


def test_no_hands_at_all_are_an_empty_report() -> None:
    told = report([])
    assert (told.hands, told.tables, told.players, told.met, told.pairs) == (0, 0, 0, 0, ())


def test_sparing_each_other_is_seen_where_deal_ins_were_to_be_expected() -> None:
    chance = random.Random(9)
    cells = [cell for cell in CELLS if set(cell) != {0, 1}]
    hands = [hand(n, deal_ins=(chance.choice(cells),), dealer=n % 4) for n in range(100)]
    # Strangers with each other, so that what is usual is known.
    others = ("a", "b", "c", "d")
    hands += [hand(n, others, (chance.choice(CELLS),), dealer=n % 4) for n in range(600)]
    told = report(hands)
    soft = [f for pair in told.pairs for f in pair.findings if f.signal == "soft"]
    least = min(soft, key=lambda finding: finding.p)
    assert {least.one, least.other} == {"ming", "lan"}
    assert least.observed == 0
    assert least.p < 1e-4


def test_large_payments_are_the_tenth_of_their_own_variant() -> None:
    hands = [hand(n, paid=((0, 1, n),)) for n in range(1, 101)]
    hands += [hand(n, paid=((2, 3, 1000 + n),), variant="dear") for n in range(1, 11)]
    large = counted(hands).events["pay"]
    assert large[:100].any(axis=1).tolist() == [n > 90 for n in range(1, 101)]
    assert large[100:].sum() == 1


def test_seats_of_pairs_who_are_both_there() -> None:
    assert cells_of(hand(1), [("lan", "zhu"), ("lan", "wei")]) == [(1, 3)]


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(4)), st.permutations(range(60)))
def test_neither_names_nor_the_order_of_hands_matter(seats: list[int], order: list[int]) -> None:
    chance = random.Random(11)
    hands = [hand(n, deal_ins=(chance.choice(CELLS),), dealer=n % 4) for n in range(60)]
    names = {PLAYERS[seat]: f"x{place}" for place, seat in enumerate(seats)}
    renamed = [
        hand(
            n,
            tuple(names[player] for player in hands[n].players),
            hands[n].deal_ins,
            dealer=hands[n].dealer,
        )
        for n in order
    ]
    before = {
        (f.signal, frozenset((f.one, f.other)) if f.signal == "soft" else (f.one, f.other)): f.p
        for pair in report(hands).pairs
        for f in pair.findings
    }
    back = {new: old for old, new in names.items()}
    for pair in report(renamed).pairs:
        for f in pair.findings:
            one, other = back[f.one], back[f.other]
            key = (f.signal, frozenset((one, other)) if f.signal == "soft" else (one, other))
            assert f.p == pytest.approx(before[key], rel=1e-6)
