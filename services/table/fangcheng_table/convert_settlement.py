"""Between the wire and the core: what a hand pays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from fangcheng.table.v1 import events_pb2
from fangcheng.wallet.v1 import settlement_pb2 as wallet

from .events import Payment
from .settlement import Settlement

FEE = "fee"
"""The reason of the payment of a fee."""


def settle_request(settlement: Settlement, labels: Mapping[str, str]) -> wallet.SettleRequest:
    """The request that settles a hand."""
    place = {seat: index for index, (seat, _) in enumerate(settlement.parties)}
    return wallet.SettleRequest(
        key=settlement.key,
        parties=[
            wallet.SettlementParty(player_id=plan.player_id, hold_ids=plan.hold_ids)
            for _, plan in settlement.parties
        ],
        transfers=[
            wallet.SettlementTransfer(
                currency=posting.currency,
                book=posting.book,
                from_party=None if posting.source is None else place[posting.source],
                to_party=None if posting.target is None else place[posting.target],
                amount=posting.amount,
                reason=posting.reason,
            )
            for posting in settlement.postings
        ],
        labels=labels,
        fees=[
            wallet.SettlementFee(
                party=place[fee.seat], currency=fee.currency, book=fee.book, amount=fee.amount
            )
            for fee in settlement.fees
        ],
        hold_only=settlement.hold_only,
        caps=[
            wallet.LossCap(currency=currency, book=book, most=most)
            for currency, book, most in settlement.caps
        ],
    )


def payments_from_wire(settled: wallet.Settlement, settlement: Settlement) -> tuple[Payment, ...]:
    """What was paid, in seats instead of parties; fees last, to the house."""
    seats = [seat for seat, _ in settlement.parties]

    def seat(
        transfer: wallet.SettlementTransfer, field: Literal["from_party", "to_party"]
    ) -> int | None:
        return seats[getattr(transfer, field)] if transfer.HasField(field) else None

    return tuple(
        Payment(
            currency=item.transfer.currency,
            book=item.transfer.book,
            source=seat(item.transfer, "from_party"),
            target=seat(item.transfer, "to_party"),
            due=item.transfer.amount,
            paid=item.paid,
            reason=item.transfer.reason,
        )
        for item in settled.transfers
    ) + tuple(
        Payment(
            currency=item.fee.currency,
            book=item.fee.book,
            source=seats[item.fee.party],
            target=None,
            due=item.fee.amount,
            paid=item.paid,
            reason=FEE,
        )
        for item in settled.fees
    )


def losses(payments: Iterable[Payment]) -> Counter[tuple[int, str, str]]:
    """What each seat has lost of a hand, by currency and book; less than 0: it has won. No fees."""
    lost: Counter[tuple[int, str, str]] = Counter()
    for payment in payments:
        if payment.reason == FEE:
            continue
        if payment.source is not None:
            lost[payment.source, payment.currency, payment.book] += payment.paid
        if payment.target is not None:
            lost[payment.target, payment.currency, payment.book] -= payment.paid
    return lost


def short_seats(settled: wallet.Settlement, settlement: Settlement) -> tuple[int, ...]:
    """Seats that could not pay all they owed, or have less left than the table's minimum."""
    payments = payments_from_wire(settled, settlement)
    caps = {(currency, book): most for currency, book, most in settlement.caps}
    lost = losses(payments)
    short = {
        payment.source
        for payment in payments
        if payment.source is not None
        and payment.paid < payment.due
        and (
            payment.reason == FEE
            or (unit := (payment.currency, payment.book)) not in caps
            or lost[payment.source, *unit] < caps[unit]
        )
    }
    minimums = {(currency, book): least for currency, book, least in settlement.minimums}
    for balance in settled.balances:
        left = balance.held + (0 if settlement.hold_only else balance.available)
        if left < minimums.get((balance.currency, balance.book), left):
            short.add(settlement.parties[balance.party][0])
    return tuple(sorted(short))


def payment_to_wire(payment: Payment) -> events_pb2.SettledPayment:
    """A payment as viewers see it."""
    return events_pb2.SettledPayment(
        currency=payment.currency,
        book=payment.book,
        from_seat=payment.source,
        to_seat=payment.target,
        due=payment.due,
        paid=payment.paid,
        reason=payment.reason,
    )
