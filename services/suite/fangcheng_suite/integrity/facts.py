"""What is looked at of a finished hand, and what is counted of it for each pair of its seats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

SEATS = range(4)
CELLS = tuple((one, other) for one in SEATS for other in SEATS if one != other)
"""The twelve ordered pairs of seats: from whom, to whom."""

Kind = Literal["deal_in", "feed", "pay"]

LARGE_SHARE = 0.1
"""The payments that count as large: so many of each variant's, the greatest ones."""


@dataclass(frozen=True, slots=True)
class HandFacts:
    """A finished hand, as far as it tells who did what to whom. Seats are 0 to 3."""

    table_id: str
    hand_number: int
    """From 1."""
    rule_set: str
    variant: str
    """Rule set and options: what hands can be compared with each other."""
    ended_ms: int
    """Since 1970, UTC; 0: not known."""
    players: tuple[str, str, str, str]
    """Their ids, by seat."""
    dealer: int
    deal_ins: tuple[tuple[int, int], ...] = ()
    """(who discarded the tile or had his kong robbed, who won on it)."""
    claims: tuple[tuple[int, int], ...] = ()
    """(who discarded, who laid down a meld with it), each pair once however often."""
    paid: tuple[tuple[int, int, int], ...] = ()
    """(who paid, whom, units together)."""
    away: tuple[int, ...] = ()
    """Seats that the table began to play for in this hand."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Hands as arrays; `H` hands, 12 cells each in the order of `CELLS`."""

    players: tuple[str, ...]
    """By number."""
    seats: NDArray[np.int64]
    """H x 4: the player's number."""
    tables: NDArray[np.int64]
    """H: the table's number."""
    places: NDArray[np.int64]
    """H x 12: where the two sit to each other, who of them deals, who is away; below `PLACES`."""
    variants: NDArray[np.int64]
    """H: the variant's number."""
    events: dict[Kind, NDArray[np.bool_]]
    """H x 12: whether it happened in the hand."""
    units: NDArray[np.int64]
    """H x 12: units paid."""


PLACES = 3 * 3 * 2
"""Next, across or before; the one deals, the other deals, neither; away or not."""


def counted(hands: Sequence[HandFacts]) -> Counted:
    """Hands as arrays."""
    numbers: dict[str, int] = {}
    tables: dict[str, int] = {}
    variants: dict[str, int] = {}
    count = len(hands)
    seats = np.zeros((count, 4), np.int64)
    table_of = np.zeros(count, np.int64)
    variant_of = np.zeros(count, np.int64)
    dealer = np.zeros(count, np.int64)
    away = np.zeros((count, 4), np.int64)
    units = np.zeros((count, 12), np.int64)
    events: dict[Kind, NDArray[np.bool_]] = {
        kind: np.zeros((count, 12), np.bool_) for kind in ("deal_in", "feed", "pay")
    }
    cell_of = {cell: number for number, cell in enumerate(CELLS)}
    for row, hand in enumerate(hands):
        seats[row] = [numbers.setdefault(player, len(numbers)) for player in hand.players]
        table_of[row] = tables.setdefault(hand.table_id, len(tables))
        variant_of[row] = variants.setdefault(hand.variant, len(variants))
        dealer[row] = hand.dealer
        away[row, list(hand.away)] = 1
        for cell in hand.deal_ins:
            events["deal_in"][row, cell_of[cell]] = True
        for cell in hand.claims:
            events["feed"][row, cell_of[cell]] = True
        for one, other, amount in hand.paid:
            units[row, cell_of[one, other]] += amount
    events["pay"] = _large(units, variant_of, len(variants))
    places = np.zeros((count, 12), np.int64)
    for number, (one, other) in enumerate(CELLS):
        role = np.where(dealer == one, 1, np.where(dealer == other, 2, 0))
        places[:, number] = ((other - one) % 4 - 1) * 6 + role * 2 + away[:, one]
    return Counted(tuple(numbers), seats, table_of, places, variant_of, events, units)


def _large(
    units: NDArray[np.int64], variant_of: NDArray[np.int64], variants: int
) -> NDArray[np.bool_]:
    """Which payments are among the greatest of their variant."""
    large = np.zeros(units.shape, np.bool_)
    order = np.argsort(variant_of, kind="stable")
    bounds = np.searchsorted(variant_of[order], np.arange(variants + 1))
    for variant in range(variants):
        rows = order[bounds[variant] : bounds[variant + 1]]
        paid = units[rows]
        if (paid > 0).any():
            least = np.quantile(paid[paid > 0], 1 - LARGE_SHARE, method="higher")
            large[rows] = paid >= least
    return large


def cells_of(hand: HandFacts, pairs: Iterable[tuple[str, str]]) -> list[tuple[int, int]]:
    """The seats of those of the ordered pairs of players who play the hand."""
    seat_of = {player: seat for seat, player in enumerate(hand.players)}
    return [
        (seat_of[one], seat_of[other])
        for one, other in pairs
        if one in seat_of and other in seat_of
    ]
