"""The wallet as a plain dictionary of balances: slow, obvious, and written apart from the real one.

Of a settlement it does not say what is paid, which takes some thinking (see ``clearing``), but it
tells right from wrong: everybody pays all it owes or all it has, the shares are pro rata.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from fangcheng_wallet.ledger import LARGEST, Hold, PlaceHolds, Settle, Transfer
from tests.wallet.ledgers import COINS, POINTS, SILVER

FLOORS = {SILVER.id: 0, COINS.id: -100, POINTS.id: None}
MOST = {SILVER.id: LARGEST, COINS.id: 1_000, POINTS.id: LARGEST}

Money = tuple[str, str, str]
"""Player (``HOUSE``, ``OUTSIDE``), currency, book."""

HOUSE, OUTSIDE = "", "outside"


@dataclass
class HeldMoney:
    """A hold."""

    money: Money
    remaining: int
    released: bool = False


@dataclass
class Model:
    """What everybody has, what is held, and what was asked under which id."""

    wallets: set[str] = field(default_factory=set)
    available: dict[Money, int] = field(default_factory=lambda: defaultdict(int))
    entries: dict[Money, int] = field(default_factory=lambda: defaultdict(int))
    holds: dict[str, HeldMoney] = field(default_factory=dict)
    asked: dict[tuple[str, str], object] = field(default_factory=dict)

    def bad_money(self, currency: str, book: str, amount: int) -> str | None:
        """The reason for which an amount in a currency is refused."""
        if currency not in FLOORS:
            return "UNKNOWN_CURRENCY"
        if bool(book) != (currency == POINTS.id):
            return "INVALID_BOOK"
        return None if 1 <= amount <= MOST[currency] else "INVALID_AMOUNT"

    def spendable(self, money: Money) -> int | None:
        """What can be taken; ``None``: whatever is asked for."""
        floor = FLOORS[money[1]]
        return None if floor is None else self.available[money] - floor

    def leaves(self, money: Money, amount: int) -> bool:
        """Whether an account would leave the range of amounts."""
        return abs(self.available[money] + amount) > LARGEST

    def add(self, money: Money, amount: int) -> None:
        """Change what is available, by one entry."""
        assert not self.leaves(money, amount)
        self.available[money] += amount
        self.entries[money] += 1

    def move(self, verb: str, money: Money, amount: int) -> str | None:
        """A deposit or a withdrawal; the reason for which it is refused."""
        bad = self.bad_money(*money[1:], amount)
        if bad:
            return bad
        if money[0] not in self.wallets:
            return "UNKNOWN_WALLET"
        outside = (OUTSIDE, *money[1:])
        if verb == "withdraw":
            spendable = self.spendable(money)
            if spendable is not None and spendable < amount:
                return "INSUFFICIENT_BALANCE"
            amount = -amount
        elif self.available[money] + amount > MOST[money[1]]:
            return "BALANCE_OUT_OF_RANGE"
        if self.leaves(money, amount) or self.leaves(outside, -amount):
            return "BALANCE_OUT_OF_RANGE"
        self.add(money, amount)
        self.add(outside, -amount)
        return None

    def place(self, command: PlaceHolds) -> str | None:
        """The reason for which holds are refused."""
        monies = [(one.player_id, one.currency, one.book) for one in command.holds]
        for number, one in enumerate(command.holds):
            bad = self.bad_money(one.currency, one.book, one.amount)
            if bad:
                return bad
            if monies[number] in monies[:number]:
                return "DUPLICATE_HOLD"
        if any(one.player_id not in self.wallets for one in command.holds):
            return "UNKNOWN_WALLET"
        for money, one in zip(monies, command.holds, strict=True):
            spendable = self.spendable(money)
            if spendable is not None and spendable < one.amount:
                return "INSUFFICIENT_BALANCE"
        if any(
            self.leaves(money, -one.amount)
            for money, one in zip(monies, command.holds, strict=True)
        ):
            return "BALANCE_OUT_OF_RANGE"
        return None

    def placed(self, holds: tuple[Hold, ...]) -> None:
        """Holds were placed under these ids."""
        for hold in holds:
            assert hold.hold_id not in self.holds
            money = (hold.player_id, hold.currency, hold.book)
            self.holds[hold.hold_id] = HeldMoney(money, hold.amount)
            self.add(money, -hold.amount)

    def release(self, hold_ids: tuple[str, ...]) -> list[int] | str:
        """What each hold gives back, or the reason for which none does."""
        if any(hold_id not in self.holds for hold_id in hold_ids):
            return "UNKNOWN_HOLD"
        back: dict[Money, int] = defaultdict(int)
        for hold_id in hold_ids:
            back[self.holds[hold_id].money] += self.holds[hold_id].remaining
        if any(self.leaves(money, amount) for money, amount in back.items()):
            return "BALANCE_OUT_OF_RANGE"
        given = []
        for hold_id in hold_ids:
            hold = self.holds[hold_id]
            given.append(hold.remaining)
            if hold.remaining:
                self.add(hold.money, hold.remaining)
            hold.remaining, hold.released = 0, True
        return given

    def bad_settlement(self, command: Settle) -> str | None:
        """The reason for which a settlement is refused."""
        for one in command.transfers:
            bad = self.bad_money(one.currency, one.book, one.amount)
            if bad:
                return bad
            for party in (one.from_party, one.to_party):
                if party is not None and party >= len(command.parties):
                    return "UNKNOWN_PARTY"
            if one.from_party == one.to_party:
                return "SELF_TRANSFER"
        if any(party.player_id not in self.wallets for party in command.parties):
            return "UNKNOWN_WALLET"
        for seat in command.parties:
            for hold_id in seat.hold_ids:
                if hold_id not in self.holds or self.holds[hold_id].money[0] != seat.player_id:
                    return "UNKNOWN_HOLD"
        return None

    def could_leave_the_range(self, command: Settle) -> bool:
        """Whether some account would, if everything were paid and nothing came in."""
        most: dict[Money, int] = defaultdict(int)
        for one in command.transfers:
            most[self._money(command, one.from_party, one)] += one.amount
            most[self._money(command, one.to_party, one)] += one.amount
        return any(abs(self.available[money]) + amount > LARGEST for money, amount in most.items())

    def settled(self, command: Settle, paid: tuple[int, ...]) -> None:
        """Check what was paid, and pay it."""
        units = {(one.currency, one.book) for one in command.transfers}
        for unit in units:
            transfers = [
                (one, coins)
                for one, coins in zip(command.transfers, paid, strict=True)
                if (one.currency, one.book) == unit
            ]
            for number in range(len(command.parties)):
                self._check_payer(command, number, unit, transfers)
            for one, coins in transfers:
                assert one.from_party is not None or coins == one.amount, "the house always pays"
        for one, coins in zip(command.transfers, paid, strict=True):
            if coins:
                self.add(self._money(command, one.to_party, one), coins)
        for one, coins in zip(command.transfers, paid, strict=True):
            rest = coins
            party = command.parties[one.from_party] if one.from_party is not None else None
            for hold_id in party.hold_ids if party else ():
                hold = self.holds[hold_id]
                if hold.money[1:] == (one.currency, one.book):
                    captured = min(rest, hold.remaining)
                    hold.remaining -= captured
                    rest -= captured
            if rest:
                self.add(self._money(command, one.from_party, one), -rest)

    def _money(self, command: Settle, party: int | None, transfer: Transfer) -> Money:
        player = HOUSE if party is None else command.parties[party].player_id
        return player, transfer.currency, transfer.book

    def _check_payer(
        self,
        command: Settle,
        number: int,
        unit: tuple[str, str],
        transfers: list[tuple[Transfer, int]],
    ) -> None:
        party = command.parties[number]
        mine = [(one.amount, coins) for one, coins in transfers if one.from_party == number]
        owed, pays = sum(amount for amount, _ in mine), sum(coins for _, coins in mine)
        assert all(0 <= coins <= amount for amount, coins in mine)
        spendable = self.spendable((party.player_id, *unit))
        if spendable is None:
            assert pays == owed
            return
        held = sum(
            self.holds[hold_id].remaining
            for hold_id in party.hold_ids
            if self.holds[hold_id].money[1:] == unit
        )
        comes_in = sum(coins for one, coins in transfers if one.to_party == number)
        assert pays == min(owed, held + spendable + comes_in)
        # A coin for the rounding, and in a circle a part of one for the total that is rounded too.
        assert all(abs(coins * owed - pays * amount) < 2 * owed for amount, coins in mine)
