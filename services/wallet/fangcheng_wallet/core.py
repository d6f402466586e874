"""What each verb does to the ledger.

``decide(command, desk, ...)`` says which postings a command makes, or raises what is wrong with it.
It reads through the desk's ``View`` and writes nothing: the store puts the whole decision on disk,
or nothing. Chance and time are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from fangcheng_wallet.clearing import HOUSE, Debt, clear
from fangcheng_wallet.errors import (
    BalanceOutOfRange,
    DuplicateHold,
    DuplicateParty,
    InsufficientBalance,
    InvalidAmount,
    InvalidBook,
    SelfTransfer,
    TooManyPlayers,
    UnknownCurrency,
    UnknownHold,
    UnknownParty,
    UnknownWallet,
)
from fangcheng_wallet.ledger import (
    LARGEST,
    MOST_PLAYERS,
    Account,
    AccountKey,
    Command,
    Currency,
    Decision,
    Deposit,
    Entry,
    Hold,
    Kind,
    PartyBalance,
    PlaceHolds,
    Posting,
    ReleaseHolds,
    Settle,
    Settled,
    Transfer,
    Withdraw,
)


class View(Protocol):
    """The ledger as a decision sees it: as it stands before the decision."""

    def has_wallet(self, player_id: str) -> bool:
        """Whether the player's wallet was opened."""

    def account(self, key: AccountKey) -> Account:
        """How an account stands; without postings at 0, version 0."""

    def hold(self, hold_id: str) -> Hold | None:
        """A hold, open or released; ``None`` if there is none of this id."""


class Desk:
    """Where one operation is put together: reads the ledger, collects postings, keeps bounds."""

    def __init__(self, view: View, currencies: Mapping[str, Currency], time_us: int) -> None:
        self.view = view
        self.time_us = time_us
        self.postings: list[Posting] = []
        self._currencies = currencies
        self._accounts: dict[AccountKey, Account] = {}

    def account(self, key: AccountKey) -> Account:
        """How an account stands after what was posted here."""
        if key not in self._accounts:
            self._accounts[key] = self.view.account(key)
        return self._accounts[key]

    def bounds(self, key: AccountKey) -> tuple[int, int]:
        """The least and the largest balance of an account."""
        return bounds(key, self._currencies)

    def spendable(self, key: AccountKey) -> int:
        """How much can be taken out of an account."""
        return self.account(key).balance - self.bounds(key)[0]

    def check_money(self, currency: str, book: str, amount: int, where: str) -> None:
        """Refuse a currency, a book or an amount that this wallet does not have.

        ``where``: the path of the message with these fields and a dot, or empty.
        """
        known = self._currencies.get(currency)
        if known is None:
            raise UnknownCurrency(currency, f"{where}currency")
        if known.books != bool(book):
            raise InvalidBook(currency, known.books, f"{where}book")
        if not 1 <= amount <= known.most:
            raise InvalidAmount(amount, known.most, f"{where}amount")

    def check_wallet(self, player_id: str, where: str) -> None:
        """Refuse a player without a wallet."""
        if not self.view.has_wallet(player_id):
            raise UnknownWallet(player_id, where)

    def currency(self, currency: str) -> Currency:
        """A currency that was checked before."""
        return self._currencies[currency]

    def has_floor(self, currency: str) -> bool:
        """Whether players can run out of a currency that was checked before."""
        return self._currencies[currency].floor is not None

    def post(
        self,
        key: AccountKey,
        amount: int,
        reason: str,
        reference: str,
        memo: str = "",
        *,
        where: str,
    ) -> Posting:
        """Add to an account. ``where``: the field to name if the account leaves its bounds."""
        before = self.account(key)
        balance = before.balance + amount
        least, most = self.bounds(key)
        if not least <= balance <= most:
            raise BalanceOutOfRange(str(key), least, most, where)
        after = self._accounts[key] = Account(balance, before.version + 1)
        posting = Posting(key, after.version, amount, balance, reason, reference, memo)
        self.postings.append(posting)
        return posting


def bounds(key: AccountKey, currencies: Mapping[str, Currency]) -> tuple[int, int]:
    """The least and the largest balance of an account."""
    currency = currencies.get(key.currency)
    if key.kind is Kind.HOLD:
        return 0, LARGEST
    if key.kind is not Kind.PLAYER or currency is None or currency.floor is None:
        return -LARGEST, LARGEST
    return currency.floor, LARGEST


def deposit(desk: Desk, command: Deposit) -> Decision[Entry]:
    """Money from outside into a player's account."""
    desk.check_money(command.currency, command.book, command.amount, "")
    desk.check_wallet(command.player_id, "player_id")
    account = AccountKey(Kind.PLAYER, command.player_id, command.currency, command.book)
    least, most = desk.bounds(account)[0], desk.currency(command.currency).most
    if desk.account(account).balance + command.amount > most:
        raise BalanceOutOfRange(str(account), least, most, "amount")
    return _move(desk, command, command.amount, "deposit")


def withdraw(desk: Desk, command: Withdraw) -> Decision[Entry]:
    """Money from a player's account to the outside; what is held is not there to be taken."""
    desk.check_money(command.currency, command.book, command.amount, "")
    desk.check_wallet(command.player_id, "player_id")
    account = AccountKey(Kind.PLAYER, command.player_id, command.currency, command.book)
    if desk.has_floor(command.currency) and desk.spendable(account) < command.amount:
        raise InsufficientBalance([command.player_id], "amount")
    return _move(desk, command, -command.amount, "withdraw")


def _move(desk: Desk, command: Deposit | Withdraw, amount: int, reason: str) -> Decision[Entry]:
    outside = AccountKey(Kind.EXTERNAL, "", command.currency, command.book)
    player = AccountKey(Kind.PLAYER, command.player_id, command.currency, command.book)
    caused = (reason, command.request_id, command.memo)
    posting = desk.post(player, amount, *caused, where="amount")
    desk.post(outside, -amount, *caused, where="amount")
    entry = Entry(
        posting.version,
        command.currency,
        command.book,
        amount,
        posting.balance_after,
        *caused,
        desk.time_us,
    )
    return Decision(tuple(desk.postings), entry)


def place_holds(
    desk: Desk, command: PlaceHolds, new_id: Callable[[], str]
) -> Decision[tuple[Hold, ...]]:
    """Set buy-ins aside, all of them or none."""
    seen: set[tuple[str, str, str]] = set()
    for number, wanted in enumerate(command.holds):
        desk.check_money(wanted.currency, wanted.book, wanted.amount, f"holds[{number}].")
        if (wanted.player_id, wanted.currency, wanted.book) in seen:
            raise DuplicateHold(wanted.player_id, f"holds[{number}]")
        seen.add((wanted.player_id, wanted.currency, wanted.book))
        if len({player for player, _, _ in seen}) > MOST_PLAYERS:
            raise TooManyPlayers(MOST_PLAYERS, f"holds[{number}].player_id")
    for number, wanted in enumerate(command.holds):
        desk.check_wallet(wanted.player_id, f"holds[{number}].player_id")
    holds = tuple(
        Hold(new_id(), one.player_id, one.currency, one.book, one.amount, one.amount)
        for one in command.holds
    )
    short = [
        number
        for number, hold in enumerate(holds)
        if desk.has_floor(hold.currency) and desk.spendable(hold.home) < hold.amount
    ]
    if short:
        players = list(dict.fromkeys(holds[number].player_id for number in short))
        raise InsufficientBalance(players, f"holds[{short[0]}].amount")
    for number, hold in enumerate(holds):
        where = f"holds[{number}].amount"
        desk.post(hold.home, -hold.amount, "hold", hold.hold_id, where=where)
        desk.post(hold.account, hold.amount, "hold", hold.hold_id, where=where)
    return Decision(tuple(desk.postings), holds, placed=holds)


def release_holds(desk: Desk, command: ReleaseHolds) -> Decision[tuple[Hold, ...]]:
    """Give back what remains of holds; of one that was released before nothing does."""
    holds = []
    for number, hold_id in enumerate(dict.fromkeys(command.hold_ids)):
        hold = desk.view.hold(hold_id)
        if hold is None:
            raise UnknownHold(hold_id, f"hold_ids[{number}]")
        holds.append(hold)
    for number, hold in enumerate(holds):
        if hold.remaining:
            where = f"hold_ids[{number}]"
            desk.post(hold.account, -hold.remaining, "release", hold.hold_id, where=where)
            desk.post(hold.home, hold.remaining, "release", hold.hold_id, where=where)
    return Decision(
        tuple(desk.postings),
        tuple(
            Hold(h.hold_id, h.player_id, h.currency, h.book, h.amount, h.remaining, released=True)
            for h in holds
        ),
        released=tuple(hold.hold_id for hold in holds if not hold.released),
    )


def settle(desk: Desk, command: Settle) -> Decision[Settled]:
    """Pay the transfers of a hand, from holds first, then from what is available.

    Who cannot pay everything pays all there is: see ``clearing``. A released hold has nothing left,
    so what is available pays.
    """
    _check_settle(desk, command)
    holds = _holds_of(desk, command)
    units = list(dict.fromkeys((one.currency, one.book) for one in command.transfers))
    paid = [0] * len(command.transfers)
    for unit in units:
        numbers = [n for n, one in enumerate(command.transfers) if (one.currency, one.book) == unit]
        means = [
            desk.spendable(AccountKey(Kind.PLAYER, party.player_id, *unit))
            + sum(hold.remaining for hold in held if (hold.currency, hold.book) == unit)
            if desk.has_floor(unit[0])
            else None
            for party, held in zip(command.parties, holds, strict=True)
        ]
        debts = [
            Debt(
                HOUSE if one.from_party is None else one.from_party,
                HOUSE if one.to_party is None else one.to_party,
                one.amount,
            )
            for one in (command.transfers[n] for n in numbers)
        ]
        for number, coins in zip(numbers, clear(means, debts), strict=True):
            paid[number] = coins
    # What comes in is posted before what goes out: it may be what goes out.
    for number, coins in enumerate(paid):
        if coins:
            _pay_in(desk, command, number, coins)
    for number, coins in enumerate(paid):
        if coins:
            _pay_out(desk, command, number, coins, holds)
    balances = tuple(
        PartyBalance(
            number,
            *unit,
            desk.account(AccountKey(Kind.PLAYER, party.player_id, *unit)).balance,
            sum(desk.account(h.account).balance for h in held if (h.currency, h.book) == unit),
        )
        for unit in units
        for number, (party, held) in enumerate(zip(command.parties, holds, strict=True))
    )
    return Decision(tuple(desk.postings), Settled(tuple(paid), balances, desk.time_us))


def _check_settle(desk: Desk, command: Settle) -> None:
    parties = [party.player_id for party in command.parties]
    for number, player_id in enumerate(parties):
        if player_id in parties[:number]:
            raise DuplicateParty(player_id, f"parties[{number}].player_id")
    for number, transfer in enumerate(command.transfers):
        where = f"transfers[{number}]."
        desk.check_money(transfer.currency, transfer.book, transfer.amount, where)
        for name in ("from_party", "to_party"):
            party = getattr(transfer, name)
            if party is not None and not 0 <= party < len(parties):
                raise UnknownParty(party, len(parties), where + name)
        if transfer.from_party == transfer.to_party:
            raise SelfTransfer(f"{where}to_party")
    for number, player_id in enumerate(parties):
        desk.check_wallet(player_id, f"parties[{number}].player_id")


def _holds_of(desk: Desk, command: Settle) -> list[list[Hold]]:
    """The holds of each party. Another player's is no hold of this party's."""
    holds: list[list[Hold]] = []
    for number, party in enumerate(command.parties):
        holds.append([])
        for place, hold_id in enumerate(party.hold_ids):
            hold = desk.view.hold(hold_id)
            if hold is None or hold.player_id != party.player_id:
                raise UnknownHold(hold_id, f"parties[{number}].hold_ids[{place}]")
            if hold not in holds[-1]:
                holds[-1].append(hold)
    return holds


def _pay_in(desk: Desk, command: Settle, number: int, coins: int) -> None:
    transfer = command.transfers[number]
    payee = _account_of(command, transfer.to_party, transfer)
    desk.post(payee, coins, transfer.reason, command.key, where=f"transfers[{number}].amount")


def _pay_out(
    desk: Desk, command: Settle, number: int, coins: int, holds: Sequence[Iterable[Hold]]
) -> None:
    transfer = command.transfers[number]
    accounts = [
        hold.account
        for hold in (holds[transfer.from_party] if transfer.from_party is not None else ())
        if (hold.currency, hold.book) == (transfer.currency, transfer.book)
    ]
    for account in accounts:
        captured = min(coins, desk.account(account).balance)
        if captured:
            where = f"transfers[{number}].amount"
            desk.post(account, -captured, transfer.reason, command.key, where=where)
            coins -= captured
    if coins:
        payer = _account_of(command, transfer.from_party, transfer)
        desk.post(payer, -coins, transfer.reason, command.key, where=f"transfers[{number}].amount")


def _account_of(command: Settle, party: int | None, transfer: Transfer) -> AccountKey:
    if party is None:
        return AccountKey(Kind.HOUSE, "", transfer.currency, transfer.book)
    player_id = command.parties[party].player_id
    return AccountKey(Kind.PLAYER, player_id, transfer.currency, transfer.book)


def decide(command: Command, desk: Desk, new_id: Callable[[], str]) -> Decision[Any]:
    """What a command changes, and its answer; see the function of its verb."""
    match command:
        case Deposit():
            return deposit(desk, command)
        case Withdraw():
            return withdraw(desk, command)
        case PlaceHolds():
            return place_holds(desk, command, new_id)
        case ReleaseHolds():
            return release_holds(desk, command)
        case Settle():
            return settle(desk, command)
