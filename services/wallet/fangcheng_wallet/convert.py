"""Between the wire and the ledger."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from fangcheng.wallet.v1 import wallet_pb2 as wire
from fangcheng_wallet.audit import Audit
from fangcheng_wallet.ledger import (
    Balance,
    Deposit,
    Entry,
    Hold,
    HoldRequest,
    Party,
    PlaceHolds,
    Settle,
    Settlement,
    Transfer,
    Withdraw,
)

_INT64 = 2**63 - 1


def deposit(request: wire.DepositRequest) -> Deposit:
    """From the wire."""
    return Deposit(
        request.request_id,
        request.player_id,
        request.currency,
        request.book,
        request.amount,
        request.memo,
    )


def withdraw(request: wire.WithdrawRequest) -> Withdraw:
    """From the wire."""
    return Withdraw(
        request.request_id,
        request.player_id,
        request.currency,
        request.book,
        request.amount,
        request.memo,
    )


def place_holds(request: wire.PlaceHoldsRequest) -> PlaceHolds:
    """From the wire."""
    return PlaceHolds(
        request.request_id,
        tuple(
            HoldRequest(hold.player_id, hold.currency, hold.book, hold.amount)
            for hold in request.holds
        ),
    )


def settle(request: wire.SettleRequest) -> Settle:
    """From the wire."""
    return Settle(
        request.key,
        tuple(Party(party.player_id, tuple(party.hold_ids)) for party in request.parties),
        tuple(
            Transfer(
                one.currency,
                one.book,
                one.from_party if one.HasField("from_party") else None,
                one.to_party if one.HasField("to_party") else None,
                one.amount,
                one.reason,
            )
            for one in request.transfers
        ),
        dict(request.labels),
    )


def entry_to_wire(entry: Entry) -> wire.Entry:
    """To the wire."""
    return wire.Entry(
        version=entry.version,
        currency=entry.currency,
        book=entry.book,
        amount=entry.amount,
        balance_after=entry.balance_after,
        reason=entry.reason,
        reference=entry.reference,
        memo=entry.memo,
        time=_time(entry.time_us),
    )


def hold_to_wire(hold: Hold) -> wire.Hold:
    """To the wire."""
    return wire.Hold(
        hold_id=hold.hold_id,
        player_id=hold.player_id,
        currency=hold.currency,
        book=hold.book,
        amount=hold.amount,
        remaining=hold.remaining,
        released=hold.released,
    )


def balance_to_wire(balance: Balance) -> wire.Balance:
    """To the wire."""
    return wire.Balance(
        currency=balance.currency,
        book=balance.book,
        available=balance.available,
        held=_within(balance.held),
    )


def settlement_to_wire(settlement: Settlement) -> wire.Settlement:
    """To the wire."""
    request, outcome = settlement.request, settlement.outcome
    return wire.Settlement(
        key=request.key,
        parties=[
            wire.SettlementParty(player_id=party.player_id, hold_ids=party.hold_ids)
            for party in request.parties
        ],
        transfers=[
            wire.SettledTransfer(
                transfer=wire.SettlementTransfer(
                    currency=one.currency,
                    book=one.book,
                    from_party=one.from_party,
                    to_party=one.to_party,
                    amount=one.amount,
                    reason=one.reason,
                ),
                paid=paid,
            )
            for one, paid in zip(request.transfers, outcome.paid, strict=True)
        ],
        time=_time(outcome.time_us),
        labels=request.labels,
        balances=[
            wire.PartyBalance(
                party=one.party,
                currency=one.currency,
                book=one.book,
                available=one.available,
                held=_within(one.held),
            )
            for one in outcome.balances
        ],
    )


def audit_to_wire(audit: Audit) -> wire.AuditLedgerResponse:
    """To the wire."""
    return wire.AuditLedgerResponse(
        balanced=not audit.findings,
        accounts=audit.accounts,
        entries=audit.entries,
        settlements=audit.settlements,
        sums={currency: _within(total) for currency, total in audit.sums.items()},
        findings=audit.findings,
        held={currency: _within(total) for currency, total in audit.held.items()},
    )


def _time(time_us: int) -> Timestamp:
    time = Timestamp()
    time.FromMicroseconds(time_us)
    return time


def _within(total: int) -> int:
    """A sum of many amounts may not fit; the largest number that does is then near enough."""
    return max(-_INT64, min(_INT64, total))
