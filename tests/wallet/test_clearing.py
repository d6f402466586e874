"""Who pays what where somebody has too little: by hand, and what must hold for any debts."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fangcheng_wallet.clearing import HOUSE, Debt, clear

EAST, SOUTH, WEST, NORTH = range(4)


@pytest.mark.parametrize(
    ("what", "means", "debts", "paid"),
    [
        ("everybody can pay", [0, 9, 9, 9], [(1, 0, 9), (2, 0, 9), (3, 0, 9)], [9, 9, 9]),
        ("nobody owes anything", [0, 0], [], []),
        ("one pays all there is", [0, 5, 9, 9], [(1, 0, 9), (2, 0, 9)], [5, 9]),
        ("one has nothing", [0, 0], [(1, 0, 9)], [0]),
        ("two are owed alike and share", [0, 0, 10, 0], [(2, 0, 8), (2, 1, 8)], [5, 5]),
        ("pro rata to what is owed", [0, 0, 9, 0], [(2, 0, 20), (2, 1, 10)], [6, 3]),
        ("largest remainder first", [0, 0, 5, 0], [(2, 0, 1), (2, 1, 3), (2, 3, 4)], [1, 2, 2]),
        ("then turn order", [0, 0, 0, 4], [(3, 2, 2), (3, 1, 2), (3, 0, 2)], [1, 1, 2]),
        ("the house after the players", [3, 0], [(0, HOUSE, 2), (0, 1, 2)], [1, 2]),
        ("then the debt that stands first", [1, 0], [(0, 1, 2), (0, 1, 2)], [1, 0]),
        ("the house always pays", [0, 0], [(HOUSE, 0, 99), (0, 1, 99)], [99, 99]),
        ("no floor, no shortfall", [0, None], [(1, 0, 99)], [99]),
        ("what comes in goes out", [0, 0, 9], [(0, 1, 9), (2, 0, 9)], [9, 9]),
        ("a chain of shortfalls", [1, 0, 9], [(0, 1, 9), (2, 0, 20)], [9, 9]),
        ("debts in a circle cancel out", [0, 0, 0], [(0, 1, 5), (1, 2, 5), (2, 0, 5)], [5, 5, 5]),
        ("a circle with a way out and nothing in it", [0, 0], [(0, 1, 5), (1, 0, 4), (1, HOUSE, 6)],
         [0, 0, 0]),
        ("a circle that one can pay into", [0, 6], [(0, 1, 5), (1, 0, 4), (1, HOUSE, 6)],
         [4, 4, 6]),
        ("a circle with a coin to break", [0, 5], [(0, 1, 10), (1, 0, 4), (1, HOUSE, 6)],
         [4, 4, 5]),
    ],
)  # fmt: skip
def test_by_hand(
    what: str, means: list[int | None], debts: list[tuple[int, int, int]], paid: list[int]
) -> None:
    assert clear(means, [Debt(*debt) for debt in debts]) == paid, what


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int | None], list[Debt]]:
    count = draw(st.integers(2, 4))
    scale = draw(st.sampled_from([12, 1_000, 2**53]))
    has = st.one_of(st.integers(0, scale), st.integers(0, scale // 8), st.just(0), st.none())
    means = draw(st.lists(has, min_size=count, max_size=count))
    pairs = [
        (payer, payee)
        for payer in range(HOUSE, count)
        for payee in range(HOUSE, count)
        if payer != payee
    ]
    debts = draw(
        st.lists(st.tuples(st.sampled_from(pairs), st.integers(1, scale)), min_size=1, max_size=12)
    )
    return means, [Debt(payer, payee, amount) for (payer, payee), amount in debts]


def comes_in(paid: list[int], debts: list[Debt], party: int) -> int:
    return sum(coins for debt, coins in zip(debts, paid, strict=True) if debt.payee == party)


@given(cases())
def test_everybody_pays_all_it_owes_or_all_it_has(
    case: tuple[list[int | None], list[Debt]],
) -> None:
    means, debts = case
    paid = clear(means, debts)
    assert all(0 <= coins <= debt.amount for debt, coins in zip(debts, paid, strict=True))
    for party, has in enumerate(means):
        owed = sum(debt.amount for debt in debts if debt.payer == party)
        pays = sum(coins for debt, coins in zip(debts, paid, strict=True) if debt.payer == party)
        if has is None:
            assert pays == owed
        else:
            assert pays == min(owed, has + comes_in(paid, debts, party))
    house = [debt for debt in debts if debt.payer == HOUSE]
    assert all(coins == d.amount for d, coins in zip(debts, paid, strict=True) if d in house)


@given(cases())
@example(([0, 5], [Debt(0, 1, 10), Debt(1, 0, 4), Debt(1, HOUSE, 6)]))
def test_shares_are_pro_rata_within_one_coin(case: tuple[list[int | None], list[Debt]]) -> None:
    means, debts = case
    paid = clear(means, debts)
    for party in range(len(means)):
        mine = [
            (debt.amount, coins)
            for debt, coins in zip(debts, paid, strict=True)
            if debt.payer == party
        ]
        owed, pays = sum(a for a, _ in mine), sum(c for _, c in mine)
        # In a circle the exact total differs from the whole one by less than a coin, too.
        assert all(abs(coins - Fraction(pays * a, owed)) < 2 for a, coins in mine)


@given(cases())
def test_nobody_could_pay_more(case: tuple[list[int | None], list[Debt]]) -> None:
    """Against the definition: from everybody paying in full, down round by round, in fractions."""
    means, debts = case
    owed = [sum(debt.amount for debt in debts if debt.payer == p) for p in range(len(means))]
    pays = [Fraction(amount) for amount in owed]
    for _ in range(60):
        pays = [
            Fraction(owed[party])
            if has is None
            else min(
                Fraction(owed[party]),
                has
                + sum(
                    (
                        debt.amount * (pays[debt.payer] / owed[debt.payer])
                        if debt.payer != HOUSE
                        else Fraction(debt.amount)
                        for debt in debts
                        if debt.payee == party
                    ),
                    Fraction(0),
                ),
            )
            for party, has in enumerate(means)
        ]
        # Rounded up: still not below the greatest solution, and the fractions stay short.
        pays = [Fraction(-(-total.numerator * 2**20 // total.denominator), 2**20) for total in pays]
    paid = clear(means, debts)
    for party in range(len(means)):
        total = sum(c for d, c in zip(debts, paid, strict=True) if d.payer == party)
        # Upstream shares are rounded: at most a coin for each debt.
        assert total <= pays[party] + len(debts)


@given(cases())
def test_a_coin_more_never_hurts_the_payees(case: tuple[list[int | None], list[Debt]]) -> None:
    means, debts = case
    richer: list[int | None] = [None if has is None else has + 1_000 for has in means]
    before, after = clear(means, debts), clear(richer, debts)
    # Together: a single payee may lose a coin to the rounding.
    assert sum(after) >= sum(before) - len(debts)


def test_a_circle_without_end_is_cleared_at_once() -> None:
    """Coin by coin, this one would take 2^52 rounds."""
    large = 2**53
    assert clear([0, 0], [Debt(0, 1, large), Debt(1, 0, large), Debt(0, HOUSE, 1)]) == [0, 0, 0]
