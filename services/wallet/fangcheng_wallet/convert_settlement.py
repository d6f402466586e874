"""Between the wire and the ledger, for ``SettlementService``."""

from __future__ import annotations

import grpc

from fangcheng.wallet.v1 import settlement_pb2 as wire
from fangcheng_kit.errors import ServiceError
from fangcheng_wallet.convert import time_to_wire, within
from fangcheng_wallet.ledger import (
    Done,
    ExtendHolds,
    Fee,
    HandOver,
    Hold,
    HoldRequest,
    HoldState,
    LossCap,
    Party,
    PlaceHolds,
    Reversal,
    Reverse,
    Settle,
    Settlement,
    TopUpHold,
    Transfer,
)

_STATES = {
    HoldState.OPEN: wire.HOLD_STATE_OPEN,
    HoldState.RELEASED: wire.HOLD_STATE_RELEASED,
    HoldState.EXPIRED: wire.HOLD_STATE_EXPIRED,
}


# From the wire.


def place_holds(request: wire.PlaceHoldsRequest) -> PlaceHolds:
    """From the wire."""
    return PlaceHolds(
        request.request_id,
        tuple(
            HoldRequest(hold.player_id, hold.currency, hold.book, hold.amount)
            for hold in request.holds
        ),
        request.lifetime_seconds,
    )


def hand_over(request: wire.HandOverHoldsRequest) -> HandOver:
    """From the wire."""
    return HandOver(tuple(request.hold_ids), request.table_id, request.lifetime_seconds)


def extend_holds(request: wire.ExtendHoldsRequest) -> ExtendHolds:
    """From the wire."""
    return ExtendHolds(tuple(request.hold_ids), request.lifetime_seconds)


def top_up_hold(request: wire.TopUpHoldRequest) -> TopUpHold:
    """From the wire."""
    return TopUpHold(request.request_id, request.hold_id, request.amount)


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
        tuple(Fee(one.party, one.currency, one.book, one.amount) for one in request.fees),
        request.hold_only,
        tuple(LossCap(one.currency, one.book, one.most) for one in request.caps),
    )


def reverse(request: wire.ReverseSettlementRequest) -> Reverse:
    """From the wire."""
    return Reverse(request.key, request.reason, request.case_id)


# To the wire.


def hold_to_wire(hold: Hold) -> wire.Hold:
    """To the wire."""
    return wire.Hold(
        hold_id=hold.hold_id,
        player_id=hold.player_id,
        currency=hold.currency,
        book=hold.book,
        amount=hold.amount,
        remaining=hold.remaining,
        state=_STATES[hold.state],
        expires=None if hold.expires_at_us is None else time_to_wire(hold.expires_at_us),
        table_id=hold.table_id,
    )


def settlement_to_wire(settlement: Settlement) -> wire.Settlement:
    """To the wire."""
    request, outcome = settlement.request, settlement.outcome
    reversal = settlement.reversal
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
        time=time_to_wire(outcome.time_us),
        labels=request.labels,
        balances=[
            wire.PartyBalance(
                party=one.party,
                currency=one.currency,
                book=one.book,
                available=one.available,
                held=within(one.held),
            )
            for one in outcome.balances
        ],
        fees=[
            wire.SettledFee(
                fee=wire.SettlementFee(
                    party=one.party, currency=one.currency, book=one.book, amount=one.amount
                ),
                paid=paid,
            )
            for one, paid in zip(request.fees, outcome.fees_paid, strict=True)
        ],
        hold_only=request.hold_only,
        caps=[
            wire.LossCap(currency=one.currency, book=one.book, most=one.most)
            for one in request.caps
        ],
        reversal=None if reversal is None else reversal_to_wire(reversal),
    )


def settled_to_wire(done: Done[Settlement]) -> wire.SettleResponse:
    """To the wire."""
    return wire.SettleResponse(settlement=settlement_to_wire(done.answer), replayed=done.replayed)


def reversal_to_wire(reversal: Reversal) -> wire.Reversal:
    """To the wire."""
    return wire.Reversal(
        key=reversal.key,
        reason=reversal.reason,
        case_id=reversal.case_id,
        time=time_to_wire(reversal.time_us),
        parties=[
            wire.PartyReversal(
                party=one.party,
                currency=one.currency,
                book=one.book,
                amount=one.amount,
                owed=one.owed,
                available=one.available,
            )
            for one in reversal.parties
        ],
    )


def refusal_to_wire(error: ServiceError) -> wire.Refusal:
    """An error as one of many answers."""
    code: grpc.StatusCode = error.code
    return wire.Refusal(
        code=code.value[0],
        reason=error.reason,
        message=error.message,
        field=error.field or "",
        metadata=error.metadata,
    )
