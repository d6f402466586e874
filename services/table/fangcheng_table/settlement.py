"""What a finished hand pays, in the currencies of its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fangcheng_rules.round import Round
from fangcheng_rules.scoring import Dissolved, End

from .events import SeatPlan, TableCreated


@dataclass(frozen=True, slots=True)
class Posting:
    """One payment that is due, between seats. None: the house."""

    currency: str
    book: str
    source: int | None
    target: int | None
    amount: int
    """More than 0."""
    reason: str


@dataclass(frozen=True, slots=True)
class DueFee:
    """A fee that a seat owes the house."""

    seat: int
    currency: str
    book: str
    amount: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """All payments of a hand; the same whenever it is asked for again."""

    key: str
    hand_number: int
    parties: tuple[tuple[int, SeatPlan], ...]
    """The seats in turn order from the dealer, which breaks ties when a shortfall is shared."""
    postings: tuple[Posting, ...]
    fees: tuple[DueFee, ...] = ()
    hold_only: bool = False
    minimums: tuple[tuple[str, str, int], ...] = ()
    """Currency, book and what a seat must have left to go on."""
    caps: tuple[tuple[str, str, int], ...] = ()
    """Currency, book and what no seat loses more than."""


def is_owed(created: TableCreated, end: End, *, charged: bool) -> bool:
    """Whether a hand that ended so is settled with the wallet; `charged` as below.

    Nothing of a dissolved hand is paid (rules/README, Leaving), and no fee with it.
    """
    is_paid = not isinstance(end, Dissolved)
    return is_paid and bool(created.stakes or (created.fees and not charged))


def settlement_of(
    created: TableCreated, plans: Sequence[SeatPlan], hand: Round, *, charged: bool
) -> Settlement:
    """The settlement of an ended hand: its transfers in units, times what each stake is worth.

    `plans`: who sat at the seats. `charged`: a hand before it was settled, and the table's fees
    with it.
    """
    units: dict[tuple[int | None, int | None, str], int] = {}
    for transfer in hand.score.transfers if hand.score is not None else ():
        # Several kongs of a seat are one payment of each other seat.
        way = (transfer.source, transfer.target, transfer.reason)
        units[way] = units.get(way, 0) + transfer.amount
    order = [(hand.dealer + step) % 4 for step in range(4)]
    return Settlement(
        key=f"{created.table_id}/{hand.hand_number}",
        hand_number=hand.hand_number,
        parties=tuple((seat, plans[seat]) for seat in order),
        postings=tuple(
            Posting(stake.currency, stake.book, source, target, amount * stake.per_unit, reason)
            for stake in created.stakes
            for (source, target, reason), amount in units.items()
        ),
        fees=tuple(
            DueFee(seat, fee.currency, fee.book, fee.amount)
            for fee in (() if charged else created.fees)
            for seat in (order if fee.seat is None else (fee.seat,))
        ),
        hold_only=created.hold_only,
        minimums=tuple(
            (stake.currency, stake.book, stake.minimum) for stake in created.stakes if stake.minimum
        ),
        caps=tuple(
            (stake.currency, stake.book, stake.loss_cap)
            for stake in created.stakes
            if stake.loss_cap
        ),
    )
