"""Who pays how much of what he owes, where not everybody can pay everything.

The debts of a settlement are cleared together: what a party is paid in it, it can pay on. Wanted is
the greatest clearing vector of Eisenberg and Noe ("Systemic Risk in Financial Systems", 2001): each
payer pays all that it owes or all that it has, and those it owes share that pro rata. All in whole
coins, and exactly:

- A payer's shares are its debts scaled down, the coins left over going to the largest remainders;
  among equals to the payee first in turn order, the house last, then to the debt that stands
  first.
- Payers are taken in the order in which money flows, so each one's means are known when it pays.
- Payers who owe each other in a circle are solved together as fractions. These are rounded along
  the circle: each payment is then within one coin of its exact share, and everybody still pays all
  that he owes or all that he has. Walking round the circle coin by coin could take as many steps
  as there are coins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

HOUSE = -1
"""The house as payer or payee."""


class Debt(NamedTuple):
    """What one party owes another. Parties are numbered from 0 in turn order."""

    payer: int
    payee: int
    amount: int


def clear(means: Sequence[int | None], debts: Sequence[Debt]) -> list[int]:
    """How much is paid of each debt.

    ``means``: what each party has before it is paid anything, at least 0; ``None``: it can pay
    whatever it owes, as the house can.
    """
    paid = [debt.amount for debt in debts]
    limited = {party: has for party, has in enumerate(means) if has is not None}
    left = dict(limited)
    for debt in debts:
        if debt.payer in left:
            left[debt.payer] -= debt.amount
        if debt.payee in left:
            left[debt.payee] += debt.amount
    if all(coins >= 0 for coins in left.values()):
        return paid
    for group in _in_order_of_payment(limited, debts):
        owing = [number for number, debt in enumerate(debts) if debt.payer in group]
        cash = {
            party: limited[party]
            + sum(
                coins
                for debt, coins in zip(debts, paid, strict=True)
                if debt.payee == party and debt.payer not in group
            )
            for party in group
        }
        owed = [debts[number] for number in owing]
        shares = _share(cash, owed) if len(group) == 1 else _circle(cash, owed)
        for number, coins in zip(owing, shares, strict=True):
            paid[number] = coins
    return paid


def _in_order_of_payment(limited: Mapping[int, int], debts: Sequence[Debt]) -> Iterator[set[int]]:
    """The payers whose means have an end, those first who pay the others; circles together."""
    reach: dict[int, set[int]] = {party: set() for party in limited}
    for debt in debts:
        if debt.payer in limited and debt.payee in limited:
            reach[debt.payer].add(debt.payee)
    for between in limited:
        for party in limited:
            if between in reach[party]:
                reach[party] |= reach[between]
    waiting = set(limited)
    while waiting:
        for party in sorted(waiting):
            group = {party} | {other for other in reach[party] if party in reach[other]}
            if all(not (reach[other] & group) for other in waiting - group):
                waiting -= group
                yield group
                break


def _share(cash: Mapping[int, int], debts: Sequence[Debt]) -> list[int]:
    """One payer's coins, shared by largest remainder."""
    (has,) = cash.values()
    owed = sum(debt.amount for debt in debts)
    if has >= owed:
        return [debt.amount for debt in debts]
    shares = [has * debt.amount // owed for debt in debts]
    first_served = sorted(
        range(len(debts)),
        key=lambda number: (
            -(has * debts[number].amount % owed),
            debts[number].payee == HOUSE,
            debts[number].payee,
            number,
        ),
    )
    for number in first_served[: has - sum(shares)]:
        shares[number] += 1
    return shares


def _circle(cash: Mapping[int, int], debts: Sequence[Debt]) -> list[int]:
    """The payments of payers who owe each other in a circle."""
    owed = {party: sum(d.amount for d in debts if d.payer == party) for party in cash}
    totals = _exact_totals(cash, owed, debts)
    arcs = [
        _Arc(
            debt.payer,
            debt.payee if debt.payee in cash else HOUSE,
            totals[debt.payer] * Fraction(debt.amount, owed[debt.payer]),
        )
        for debt in debts
    ]
    # Where a coin goes that leaves the circle or is kept makes no difference to the rounding.
    kept = []
    for party, has in cash.items():
        comes = sum((arc.flow for arc in arcs if arc.target == party), Fraction(has))
        kept.append(_Arc(party, HOUSE, comes - totals[party]))
    _round_in_place([*arcs, *kept])
    return [int(arc.flow) for arc in arcs]


def _exact_totals(
    cash: Mapping[int, int], owed: Mapping[int, int], debts: Sequence[Debt]
) -> dict[int, Fraction]:
    """What each payer of a circle pays, as the greatest clearing vector has it.

    Begins with everybody paying in full. Who cannot is made to pay what it has, which may bring
    others to where they cannot either: at most one round for each member of the circle.
    """
    between = {(payer, payee): Fraction(0) for payer in cash for payee in cash}
    for debt in debts:
        if debt.payee in cash:
            between[debt.payer, debt.payee] += Fraction(debt.amount, owed[debt.payer])
    totals = {party: Fraction(amount) for party, amount in owed.items()}
    short: list[int] = []
    while True:
        newly = [
            party
            for party in cash
            if party not in short
            and cash[party] + sum(totals[other] * between[other, party] for other in cash)
            < owed[party]
        ]
        if not newly:
            return totals
        short += newly
        known = [
            cash[party]
            + sum(
                (owed[other] * between[other, party] for other in cash if other not in short),
                Fraction(0),
            )
            for party in short
        ]
        rows = [
            [Fraction(party == other) - between[other, party] for other in short] for party in short
        ]
        totals |= dict(zip(short, _solve(rows, known), strict=True))


def _solve(rows: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Gauss without pivoting: some member of every circle pays outside it, or can pay in full.

    That makes the matrix a regular M-matrix, whose pivots are all above 0.
    """
    size = len(rows)
    for column in range(size):
        for row in range(size):
            if row != column:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
                right[row] -= factor * right[column]
    return [right[number] / rows[number][number] for number in range(size)]


@dataclass(slots=True, eq=False)
class _Arc:
    source: int
    target: int
    flow: Fraction

    @property
    def fraction(self) -> Fraction:
        return self.flow % 1


def _round_in_place(arcs: Sequence[_Arc]) -> None:
    """Make every flow whole, up or down, so that what flows through each node stays the same.

    What flows through a node is whole, so a node that has one arc with a fraction has another, and
    following them comes round to where one has been. Shifting a part of a coin along such a round
    makes at least one of its arcs whole.
    """
    while broken := [arc for arc in arcs if arc.fraction]:
        start = max(broken, key=lambda arc: arc.fraction)
        path: list[tuple[_Arc, int]] = [(start, 1)]
        seen = [start.source, start.target]
        while seen[-1] not in seen[:-1]:
            here = seen[-1]
            came = path[-1][0]
            arc = max(
                (arc for arc in broken if arc is not came and here in (arc.source, arc.target)),
                key=lambda arc: arc.fraction if arc.source == here else 1 - arc.fraction,
            )
            forth = arc.source == here
            path.append((arc, 1 if forth else -1))
            seen.append(arc.target if forth else arc.source)
        ring = path[seen.index(seen[-1]) :]
        shift = min(1 - arc.fraction if way > 0 else arc.fraction for arc, way in ring)
        for arc, way in ring:
            arc.flow += way * shift
