"""Between the wire and the ledger, for ``WalletService``."""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from fangcheng.wallet.v1 import wallet_pb2 as wire
from fangcheng_kit import times
from fangcheng_wallet.audit import Audit
from fangcheng_wallet.errors import InvalidHead
from fangcheng_wallet.ledger import (
    Balance,
    Collect,
    Currency,
    Deposit,
    Entry,
    Freeze,
    Kind,
    Place,
    Player,
    StatementQuery,
    StreamedEntry,
    Withdraw,
)
from fangcheng_wallet.store import ChainReport

_INT64 = 2**63 - 1

_KINDS = {
    Kind.PLAYER: wire.ACCOUNT_KIND_PLAYER,
    Kind.HOLD: wire.ACCOUNT_KIND_HOLD,
    Kind.HOUSE: wire.ACCOUNT_KIND_HOUSE,
    Kind.EXTERNAL: wire.ACCOUNT_KIND_EXTERNAL,
    Kind.RECEIVABLE: wire.ACCOUNT_KIND_RECEIVABLE,
}


# From the wire.


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


def collect(request: wire.CollectReceivableRequest) -> Collect:
    """From the wire."""
    return Collect(
        request.request_id,
        request.player_id,
        request.currency,
        request.book,
        request.amount,
        request.reason,
        request.case_id,
        request.write_off,
    )


def freeze(
    request: wire.FreezePlayerRequest | wire.UnfreezePlayerRequest, *, frozen: bool
) -> Freeze:
    """From the wire."""
    return Freeze(request.request_id, request.player_id, frozen, request.reason, request.case_id)


def statement(request: wire.ListEntriesRequest, player_id: str) -> StatementQuery:
    """From the wire; ``player_id``: whose statement it is."""
    return StatementQuery(
        player_id,
        request.currency or None,
        request.book or None,
        tuple(request.reasons),
        request.reference or None,
        dict(request.labels),
        time_us(request, "from"),
        time_us(request, "until"),
    )


def time_us(request: Message, field: str) -> int | None:
    """The moment in a field, in microseconds since 1970, rounded up; ``None``: it is not set.

    Raises ``InvalidTime`` for what is no time.
    """
    time = times.moment(request, field)
    if time is None:
        return None
    return time.seconds * 1_000_000 + -(-time.nanos // 1_000)


def noted_head(request: wire.VerifyLedgerRequest) -> str:
    """The head of the chain that was noted. Raises ``InvalidHead`` for what can be none."""
    try:
        return bytes.fromhex(request.head).hex() if request.operations else ""
    except ValueError:
        raise InvalidHead from None


# To the wire.


def time_to_wire(us: int) -> Timestamp:
    """Microseconds since 1970 as a timestamp."""
    return Timestamp(seconds=us // 1_000_000, nanos=us % 1_000_000 * 1_000)


def within(total: int) -> int:
    """A sum of many amounts may not fit; the largest number that does is then near enough."""
    return max(-_INT64, min(_INT64, total))


def currency_to_wire(currency: Currency) -> wire.Currency:
    """To the wire."""
    return wire.Currency(
        currency=currency.id,
        books=currency.books,
        floor=currency.floor,
        most=currency.most,
        minor_digits=currency.minor_digits,
        names=currency.names,
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
        time=time_to_wire(entry.time_us),
        labels=entry.labels,
    )


def streamed_to_wire(streamed: StreamedEntry) -> wire.LedgerEntry:
    """To the wire."""
    return wire.LedgerEntry(
        sequence=streamed.number,
        operation=streamed.operation,
        kind=_KINDS[streamed.account.kind],
        owner=streamed.account.owner,
        entry=entry_to_wire(streamed.entry),
        verb=streamed.verb,
    )


def balance_to_wire(balance: Balance) -> wire.Balance:
    """To the wire."""
    return wire.Balance(
        currency=balance.currency,
        book=balance.book,
        available=balance.available,
        held=within(balance.held),
        owed=balance.owed,
    )


def player_to_wire(player: Player, *, whole: bool = True) -> wire.PlayerState:
    """To the wire; ``whole``: with what is not for the player himself to read."""
    return wire.PlayerState(
        player_id=player.player_id,
        frozen=player.frozen,
        reason=player.reason if whole else "",
        case_id=player.case_id if whole else "",
        time=None if player.time_us is None else time_to_wire(player.time_us),
        is_bot=player.is_bot and whole,
    )


def place_to_wire(place: Place) -> wire.Standing:
    """To the wire."""
    return wire.Standing(
        rank=place.rank, player_id=place.player_id, score=within(place.score), hands=place.hands
    )


def audit_to_wire(audit: Audit) -> wire.AuditLedgerResponse:
    """To the wire."""
    return wire.AuditLedgerResponse(
        balanced=not audit.findings,
        accounts=audit.accounts,
        entries=audit.entries,
        settlements=audit.settlements,
        sums={currency: within(total) for currency, total in audit.sums.items()},
        findings=audit.findings,
        held={currency: within(total) for currency, total in audit.held.items()},
    )


def chain_to_wire(report: ChainReport) -> wire.VerifyLedgerResponse:
    """To the wire."""
    return wire.VerifyLedgerResponse(
        intact=not report.finding,
        operations=report.operations,
        entries=report.postings,
        head=report.head,
        waiting=report.unchained,
        finding=report.finding,
        tampered_sequence=report.posting or 0,
        erased=report.erased,
    )
