"""What the players of a session can pay.

What is due is the table's own sum (`settlement_of`), what is paid of it the wallet's own rule
(`shares`): who cannot pay everything pays all there is, and those he owes share it pro rata. Who
is bankrupt then is what the table says (`short_seats`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from fangcheng_rules.round import Round
from fangcheng_table.events import Fee, SeatPlan, Stake, TableCreated, Timing
from fangcheng_table.settlement import Settlement, settlement_of
from fangcheng_wallet.ledger import Transfer
from fangcheng_wallet.settling import shares

from .plan import Plan, Stakes

CURRENCY = "silver"

_SEATS = tuple(SeatPlan(f"player {seat}") for seat in range(4))


@dataclass(frozen=True, slots=True)
class Paid:
    """What a hand did to the purses."""

    coins: tuple[int, ...]
    """By seat, what it gained or lost."""
    unpaid: int
    """What the bankrupt owed and did not pay."""
    bankrupt: tuple[int, ...]
    """The seats that cannot go on."""


@dataclass(slots=True)
class Purses:
    """What four players have, from the buy-in until one of them cannot go on."""

    stakes: Stakes
    buy_in: int
    coins: list[int] = field(init=False)
    hands: int = 0
    """How many were played before the table closed."""
    unpaid: int = 0
    bankrupt: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.coins = [self.buy_in] * 4

    def settle(self, due: Settlement) -> Paid:
        """Pay a hand, fees first; none may follow once somebody is bankrupt."""
        self.hands += 1
        left: Counter[int | None] = Counter()
        fees: Counter[int] = Counter()
        for fee in due.fees:
            fees[fee.seat] = min(fee.amount, self.coins[fee.seat])
            self.coins[fee.seat] -= fees[fee.seat]
            left[fee.seat] += fee.amount - fees[fee.seat]
        no_fee = {seat for seat in range(4) if left[seat]}
        order = [seat for seat, _ in due.parties]
        place = {seat: order.index(seat) for seat in order} | {None: None}
        transfers = [
            Transfer(
                one.currency,
                one.book,
                place[one.source],
                place[one.target],
                one.amount,
                one.reason,
            )
            for one in due.postings
        ]
        cap = self.stakes.loss_cap
        means = [min(self.coins[seat], cap) if cap else self.coins[seat] for seat in order]
        gained: Counter[int | None] = Counter()
        for one, coins in zip(due.postings, shares(means, transfers), strict=True):
            gained[one.target] += coins
            gained[one.source] -= coins
            left[one.source] += one.amount - coins
        for seat in order:
            self.coins[seat] += gained[seat]
        self.bankrupt = tuple(
            seat
            for seat in range(4)
            if seat in no_fee
            or (left[seat] and not (cap and -gained[seat] >= cap))
            or self.coins[seat] < self.stakes.minimum
        )
        unpaid = sum(left[seat] for seat in self.bankrupt)
        self.unpaid += unpaid
        return Paid(tuple(gained[seat] - fees[seat] for seat in range(4)), unpaid, self.bankrupt)


def table_of(plan: Plan) -> TableCreated:
    """A table as it would be created for these stakes, as far as its settlements follow from it."""
    stakes = plan.stakes
    return TableCreated(
        table_id="simulated",
        created_ms=0,
        rule_set=plan.rule_set,
        revision=plan.revision,
        options=plan.options,
        seats=_SEATS,
        stakes=(Stake(CURRENCY, "", stakes.per_unit, stakes.minimum, stakes.loss_cap),),
        hands=plan.session_hands,
        timing=Timing(),
        labels={},
        root=b"",
        commitment=b"",
        fees=(Fee(None, CURRENCY, "", stakes.fee),) if stakes.fee else (),
    )


def due_of(table: TableCreated, hand: Round) -> Settlement:
    """What an ended hand pays, in coins; the first one the fees too."""
    return settlement_of(table, table.seats, hand, charged=hand.hand_number > 1)
