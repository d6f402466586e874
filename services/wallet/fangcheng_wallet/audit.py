"""The ledger recomputed from its postings, and compared with what it says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from fangcheng_wallet.canonical import loads
from fangcheng_wallet.ledger import LARGEST, Account, AccountKey, HoldState, Kind, Settle, Settled

MOST_FINDINGS = 100

_FUNDING = frozenset({"deposit", "withdraw"})


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found; nothing is wrong when ``findings`` is empty."""

    accounts: int = 0
    entries: int = 0
    settlements: int = 0
    sums: Mapping[str, int] = field(default_factory=dict)
    """Sum of all postings per currency."""
    held: Mapping[str, int] = field(default_factory=dict)
    """What is in open holds, per currency."""
    findings: tuple[str, ...] = ()


class AccountRow(NamedTuple):
    """An account as it is kept."""

    id: int
    key: AccountKey
    floor: int
    balance: int
    version: int


class PostingRow(NamedTuple):
    """A posting as it is kept."""

    id: int
    account: int
    version: int
    operation: int
    amount: int
    balance_after: int


class OperationRow(NamedTuple):
    """An operation as it is kept."""

    id: int
    verb: str
    key: str | None
    time_us: int
    body: str
    answer: str
    first_posting: int
    last_posting: int


class HoldRow(NamedTuple):
    """A hold as it is kept."""

    hold_id: str
    account: int
    player_id: str
    amount: int
    state: str


@dataclass(frozen=True, slots=True)
class Opening:
    """What was archived: up to this operation there are no postings, and accounts stood so."""

    operation: int = 0
    accounts: Mapping[int, Account] = field(default_factory=dict)


class Records(Protocol):
    """Everything that is kept, as of one moment. The postings are many and come one by one."""

    def opening(self) -> Opening:
        """What the postings begin with."""

    def accounts(self) -> Iterable[AccountRow]:
        """In any order."""

    def postings(self) -> Iterable[PostingRow]:
        """In the order of their ids."""

    def operations(self) -> Iterable[OperationRow]:
        """In the order of their ids."""

    def holds(self) -> Iterable[HoldRow]:
        """In any order."""

    def bots(self) -> Iterable[str]:
        """The player ids of all bots, in any order."""


class Findings:
    """Collects sentences, and counts those that are too many."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._more = 0

    def add(self, sentence: str) -> None:
        """Note what is wrong."""
        if len(self._kept) < MOST_FINDINGS - 1:
            self._kept.append(sentence)
        else:
            self._more += 1

    def sentences(self) -> tuple[str, ...]:
        """At most a hundred; the last one counts what is left out."""
        more = [f"There are {self._more} more findings."] if self._more else []
        return (*self._kept, *more)


@dataclass(slots=True)
class _Running:
    """An account as its postings, so far, make it."""

    row: AccountRow
    balance: int = 0
    version: int = 0
    said: bool = False
    """Its postings were found wrong: one finding for an account is enough."""


def examine(records: Records, findings: Findings) -> Audit:
    """Recompute the whole ledger. Whole numbers of any size: a wrong sum cannot overflow into a
    right one."""
    opening = records.opening()
    accounts = {
        row.id: _Running(row, *opening.accounts.get(row.id, Account()))
        for row in records.accounts()
    }
    holds = list(records.holds())
    owners = {hold.account: hold.player_id for hold in holds}
    bots = frozenset(records.bots())
    sums: Counter[str] = Counter()
    for running in accounts.values():
        sums[running.row.key.currency] += running.balance
    postings = iter(records.postings())
    posting = next(postings, None)
    entries = settlements = 0
    before: OperationRow | None = None
    for operation in records.operations():
        _follows(operation, before, findings)
        before = operation
        if operation.verb == "settle":
            settlements += 1
        if operation.id <= opening.operation:
            continue
        net: Counter[tuple[str, str]] = Counter()
        by_owner: Counter[tuple[str, str, str]] = Counter()
        touched: dict[Kind, str] = {}
        while posting is not None and posting.id <= operation.last_posting:
            if posting.operation != operation.id:
                findings.add(
                    f"Entry {posting.id} lies in operation {operation.id} and names "
                    f"{posting.operation}."
                )
            key = _carry(posting, accounts, findings)
            if key is not None:
                sums[key.currency] += posting.amount
                net[key.currency, key.book] += posting.amount
                owner = owners.get(posting.account, key.owner)
                by_owner[owner, key.currency, key.book] += posting.amount
                touched[key.kind] = owner
            entries += 1
            posting = next(postings, None)
        for (currency, book), rest in net.items():
            if rest:
                findings.add(
                    f"{_name(operation)} does not add up: {rest} are left over in "
                    f"{_unit(currency, book)}."
                )
        if operation.verb == "settle":
            _compare(operation, by_owner, findings)
        elif operation.verb in _FUNDING:
            _funded(operation, touched, bots, findings)
    while posting is not None:
        findings.add(f"Entry {posting.id} belongs to no operation.")
        _carry(posting, accounts, findings)
        entries += 1
        posting = next(postings, None)
    for running in accounts.values():
        _stands(running, findings)
    held = dict.fromkeys(sums, 0) | _held(holds, accounts, findings)
    for currency, total in sums.items():
        if total:
            findings.add(f"All accounts together come to {total} {currency}, not to 0.")
    return Audit(len(accounts), entries, settlements, dict(sums), held, findings.sentences())


def _name(operation: OperationRow) -> str:
    what = operation.verb.replace("_", " ").capitalize()
    return f"{what} {operation.key or operation.id}"


def _unit(currency: str, book: str) -> str:
    return f"{currency} of the book {book}" if book else currency


def _follows(operation: OperationRow, before: OperationRow | None, findings: Findings) -> None:
    """Operations and their postings are numbered without a gap, and time goes on."""
    number, first, time_us = (
        (before.id, before.last_posting, before.time_us) if before else (0, 0, operation.time_us)
    )
    if operation.id != number + 1:
        findings.add(f"Operations are missing between {number} and {operation.id}.")
    if operation.first_posting != first + 1 or operation.last_posting < first:
        findings.add(
            f"{_name(operation)} claims the entries {operation.first_posting} to "
            f"{operation.last_posting}, after entry {first}."
        )
    if operation.time_us < time_us:
        findings.add(f"{_name(operation)} is dated before the operation that precedes it.")


def _carry(
    posting: PostingRow, accounts: Mapping[int, _Running], findings: Findings
) -> AccountKey | None:
    """Add a posting to its account; the account's key, ``None`` where there is no such account."""
    running = accounts.get(posting.account)
    if running is None:
        findings.add(f"Entry {posting.id} belongs to no account.")
        return None
    key = running.row.key
    running.balance += posting.amount
    running.version += 1
    wrong = None
    if posting.version != running.version:
        wrong = f"its entry {running.version} is missing"
    elif posting.balance_after != running.balance:
        wrong = (
            f"its entry {posting.version} leaves {running.balance} and says {posting.balance_after}"
        )
    elif abs(running.balance) > LARGEST:
        wrong = f"its entry {posting.version} leaves {running.balance}, out of range"
    if wrong and not running.said:
        findings.add(f"Account {key}: {wrong}.")
        running.said = True
    return key


def _stands(running: _Running, findings: Findings) -> None:
    """An account says what its postings make it."""
    row = running.row
    if row.version != running.version:
        findings.add(
            f"Account {row.key}: {row.version} entries are counted and {running.version} are there."
        )
    if row.balance != running.balance:
        findings.add(
            f"Account {row.key}: the balance says {row.balance} and its entries come to "
            f"{running.balance}."
        )
    # Its entries may have been written under another floor.
    if row.balance < row.floor:
        findings.add(f"Account {row.key}: {row.balance} is below its floor, {row.floor}.")


def _compare(
    operation: OperationRow, by_owner: Mapping[tuple[str, str, str], int], findings: Findings
) -> None:
    """What a settlement says was paid is what was posted, to each party and the house."""
    try:
        asked = loads(operation.body, Settle)
        answer = loads(operation.answer, Settled)
        said: Counter[tuple[str, str, str]] = Counter()
        for transfer, coins in zip(asked.transfers, answer.paid, strict=True):
            for party, amount in ((transfer.to_party, coins), (transfer.from_party, -coins)):
                owner = "" if party is None else asked.parties[party].player_id
                said[owner, transfer.currency, transfer.book] += amount
        for fee, coins in zip(asked.fees, answer.fees_paid, strict=True):
            said[asked.parties[fee.party].player_id, fee.currency, fee.book] -= coins
            said["", fee.currency, fee.book] += coins
    except (ValueError, IndexError):
        findings.add(f"{_name(operation)} cannot be read.")
        return
    for owner, currency, book in sorted(said.keys() | by_owner.keys()):
        says, posted = said[owner, currency, book], by_owner.get((owner, currency, book), 0)
        if says != posted:
            findings.add(
                f"{_name(operation)} says {says} {_unit(currency, book)} for "
                f"{owner or 'the house'}, and {posted} are posted."
            )


def _funded(
    operation: OperationRow, touched: Mapping[Kind, str], bots: Set[str], findings: Findings
) -> None:
    """The house funds bots and nobody else, and a bot is funded by nobody else."""
    player_id = touched.get(Kind.PLAYER, "")
    source = Kind.HOUSE if player_id in bots else Kind.EXTERNAL
    if touched.keys() != {Kind.PLAYER, source}:
        findings.add(
            f"{_name(operation)} of {player_id or 'nobody'} does not move money between that "
            f"account and the one of kind {source.value}."
        )


def _held(
    holds: Iterable[HoldRow], accounts: Mapping[int, _Running], findings: Findings
) -> Counter[str]:
    """What is in open holds; released ones are empty, and every hold account has its hold."""
    held: Counter[str] = Counter()
    seen = set()
    for hold in holds:
        running = accounts.get(hold.account)
        if running is None or running.row.key[:2] != (Kind.HOLD, hold.hold_id):
            findings.add(f"Hold {hold.hold_id} has no account.")
            continue
        seen.add(hold.account)
        if not 0 <= running.balance <= hold.amount:
            findings.add(f"Hold {hold.hold_id} of {hold.amount} has {running.balance} left.")
        if hold.state == HoldState.OPEN:
            held[running.row.key.currency] += running.balance
        elif running.balance:
            findings.add(f"Hold {hold.hold_id} is {hold.state} and has {running.balance} left.")
    for number, running in accounts.items():
        if running.row.key.kind is Kind.HOLD and number not in seen:
            findings.add(f"Account {running.row.key} has no hold.")
    return held
