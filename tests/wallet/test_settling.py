"""What is quick for most settlements comes to the same as the long way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fangcheng_wallet.batch import Ledger
from fangcheng_wallet.clearing import HOUSE, Debt, clear
from fangcheng_wallet.desk import Desk
from fangcheng_wallet.errors import BalanceOutOfRange
from fangcheng_wallet.ledger import LARGEST, Account, AccountKey, Kind, Transfer
from fangcheng_wallet.settling import shares
from tests.wallet.ledgers import CURRENCIES

_BY_ID = {one.id: one for one in CURRENCIES}
_SEATS = range(HOUSE, 4)


def _transfer(payer: int, payee: int, amount: int) -> Transfer:
    sides = [None if side == HOUSE else side for side in (payer, payee)]
    return Transfer("silver", "", *sides, amount, "win")


@st.composite
def hands(draw: st.DrawFn) -> tuple[list[int | None], list[Debt]]:
    """Means around what is owed, so that some can just pay and some lack a coin."""
    pairs = st.sampled_from([(a, b) for a in _SEATS for b in _SEATS if a != b])
    debts = [
        Debt(*pair, amount)
        for pair, amount in draw(st.lists(st.tuples(pairs, st.integers(1, 9)), max_size=8))
    ]
    means: list[int | None] = []
    for party in range(4):
        owed = sum(debt.amount for debt in debts if debt.payer == party)
        means.append(
            draw(st.one_of(st.integers(max(0, owed - 2), owed + 2), st.integers(0, 20), st.none()))
        )
    return means, debts


@given(hands())
def test_who_can_pay_at_once_pays_what_clearing_says(
    hand: tuple[list[int | None], list[Debt]],
) -> None:
    means, debts = hand
    before = list(means)
    assert shares(means, [_transfer(*debt) for debt in debts]) == clear(means, debts)
    assert means == before


@given(
    st.sampled_from(list(Kind)),
    st.sampled_from(["silver", "coins", "points", "gone"]),
    st.sampled_from([-LARGEST, -100, 0, LARGEST]),
    st.integers(-2, 2),
    st.integers(-3, 3),
)
def test_an_account_is_kept_within_its_bounds(
    kind: Kind, currency: str, edge: int, off: int, amount: int
) -> None:
    key = AccountKey(kind, "amy", currency, "")
    desk = Desk(Ledger(accounts={key: Account(edge + off, 1)}), _BY_ID, 0)
    least, most = desk.bounds(key)
    after = edge + off + amount
    if least <= after <= most:
        assert desk.post(key, amount, "win", "t/1", where="x").balance_after == after
        assert desk.account(key) == Account(after, 2)
    else:
        with pytest.raises(BalanceOutOfRange):
            desk.post(key, amount, "win", "t/1", where="x")
        assert not desk.postings
        assert desk.account(key) == Account(edge + off, 1)
