"""Where a decision about the ledger is put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from fangcheng_wallet.errors import (
    BalanceOutOfRange,
    InvalidAmount,
    InvalidBook,
    UnknownCurrency,
    UnknownHold,
    UnknownWallet,
)
from fangcheng_wallet.ledger import (
    LARGEST,
    Account,
    AccountKey,
    Currency,
    Hold,
    Kind,
    Player,
    Posting,
    Settlement,
)
from fangcheng_wallet.masks import Written

DAY_SECONDS = 86_400

_WIDEST = (-LARGEST, LARGEST)
_BOUNDS = {Kind.HOLD: (0, LARGEST), Kind.RECEIVABLE: (-LARGEST, 0)}


class View(Protocol):
    """The ledger as a decision sees it: as it stands before the decision."""

    def player(self, player_id: str) -> Player | None:
        """The wallet of a player; ``None``: none was opened."""

    def account(self, key: AccountKey) -> Account:
        """How an account stands; without postings at 0, version 0."""

    def hold(self, hold_id: str) -> Hold | None:
        """A hold, open or not; ``None`` if there is none of this id."""

    def settlement(self, key: str) -> Settlement | None:
        """What was settled under a key; ``None`` if nothing was."""

    def written(self, number: int) -> Written | None:
        """The operation of a number; ``None`` if there is none."""


class Desk:
    """Reads the ledger, collects the postings of one operation, keeps bounds."""

    def __init__(
        self,
        view: View,
        currencies: Mapping[str, Currency],
        time_us: int,
        hold_seconds: int = DAY_SECONDS,
    ) -> None:
        self.view = view
        self.time_us = time_us
        self.postings: list[Posting] = []
        self._currencies = currencies
        self._hold_seconds = hold_seconds
        self.accounts: dict[AccountKey, Account] = {}
        """Those that were looked at, as they stand after what was posted here."""

    def account(self, key: AccountKey) -> Account:
        """How an account stands after what was posted here."""
        account = self.accounts.get(key)
        if account is None:
            account = self.accounts[key] = self.view.account(key)
        return account

    def balance(self, key: AccountKey) -> int:
        """What is in an account after what was posted here."""
        account = self.accounts.get(key)
        return self.account(key)[0] if account is None else account[0]

    def bounds(self, key: AccountKey) -> tuple[int, int]:
        """The least and the largest balance of an account."""
        return bounds(key, self._currencies)

    def spendable(self, key: AccountKey) -> int:
        """How much can be taken out of an account."""
        return self.account(key).balance - self.bounds(key)[0]

    def is_money(self, currency: str, book: str, amount: int) -> bool:
        """Whether this wallet has such a currency, book and amount."""
        known = self._currencies.get(currency)
        return known is not None and known.books == bool(book) and 1 <= amount <= known.most

    def check_money(self, currency: str, book: str, amount: int, where: str) -> None:
        """Refuse a currency, a book or an amount that this wallet does not have.

        ``where``: the path of the message with these fields and a dot, or empty.
        """
        known = check_unit(currency, book, self._currencies, where)
        if not 1 <= amount <= known.most:
            raise InvalidAmount(amount, known.most, f"{where}amount")

    def check_currency(self, currency: str, where: str) -> None:
        """Refuse a currency that this wallet does not have, or has no more."""
        if currency not in self._currencies:
            raise UnknownCurrency(currency, where)

    def check_wallet(self, player_id: str, where: str) -> Player:
        """Refuse a player without a wallet."""
        player = self.view.player(player_id)
        if player is None:
            raise UnknownWallet(player_id, where)
        return player

    def check_holds(self, hold_ids: Sequence[str]) -> list[Hold]:
        """The holds, each once; refuse one that there is not."""
        holds = []
        for number, hold_id in enumerate(dict.fromkeys(hold_ids)):
            hold = self.view.hold(hold_id)
            if hold is None:
                raise UnknownHold(hold_id, f"hold_ids[{number}]")
            holds.append(hold)
        return holds

    def currency(self, currency: str) -> Currency:
        """A currency that was checked before."""
        return self._currencies[currency]

    def has_floor(self, currency: str) -> bool:
        """Whether players can run out of a currency that was checked before."""
        return self._currencies[currency].floor is not None

    def expiry_us(self, lifetime_seconds: int) -> int:
        """When a hold's time is over that is given this lifetime now; 0: the configured one."""
        return self.time_us + (lifetime_seconds or self._hold_seconds) * 1_000_000

    def is_over(self, hold: Hold) -> bool:
        """Whether a hold is over, given back already or not."""
        return hold.released or (
            hold.expires_at_us is not None and hold.expires_at_us <= self.time_us
        )

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
        account = self.accounts.get(key)
        balance, version = self.view.account(key) if account is None else account
        balance, version = balance + amount, version + 1
        # What no bounds but a receivable's forbid needs no look at them.
        if not 0 <= balance <= LARGEST or key[0] is Kind.RECEIVABLE:
            least, most = bounds(key, self._currencies)
            if not least <= balance <= most:
                raise BalanceOutOfRange(str(key), least, most, where)
        self.accounts[key] = Account(balance, version)
        posting = Posting(key, version, amount, balance, reason, reference, memo)
        self.postings.append(posting)
        return posting


def check_unit(
    currency: str, book: str, currencies: Mapping[str, Currency], where: str
) -> Currency:
    """The currency of this id; refuse one that there is not, or a book that it does not have."""
    known = currencies.get(currency)
    if known is None:
        raise UnknownCurrency(currency, f"{where}currency")
    if known.books != bool(book):
        raise InvalidBook(currency, known.books, f"{where}book")
    return known


def bounds(key: AccountKey, currencies: Mapping[str, Currency]) -> tuple[int, int]:
    """The least and the largest balance of an account."""
    kind = key.kind
    if kind is Kind.PLAYER:
        currency = currencies.get(key.currency)
        return _WIDEST if currency is None or currency.floor is None else (currency.floor, LARGEST)
    return _BOUNDS.get(kind, _WIDEST)
