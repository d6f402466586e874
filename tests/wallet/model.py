"""The wallet as a plain dictionary of balances: slow, obvious, and written apart from the real one.

Of a settlement it does not say what is paid, which takes some thinking (see ``clearing``), but it
tells right from wrong: everybody pays all it owes or all it has, the shares are pro rata.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from fangcheng_wallet.ledger import LARGEST, Hold, HoldState, PlaceHolds, Settle, Transfer
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
    amount: int
    remaining: int
    expires_at_us: int
    state: HoldState = HoldState.OPEN
    given_back: int = 0
    table_id: str = ""

    @property
    def released(self) -> bool:
        return self.state is not HoldState.OPEN

    def end(self, state: HoldState) -> None:
        self.given_back, self.remaining, self.state = self.remaining, 0, state


@dataclass
class Model:
    """What everybody has, what is held, and what was asked under which id."""

    wallets: set[str] = field(default_factory=set)
    bots: set[str] = field(default_factory=set)
    available: dict[Money, int] = field(default_factory=lambda: defaultdict(int))
    entries: dict[Money, int] = field(default_factory=lambda: defaultdict(int))
    holds: dict[str, HeldMoney] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)
    owed: dict[Money, int] = field(default_factory=lambda: defaultdict(int))
    settlements: dict[str, tuple[Settle, tuple[int, ...]]] = field(default_factory=dict)
    now_us: int = 0

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
        outside = (HOUSE if money[0] in self.bots else OUTSIDE, *money[1:])
        if verb == "withdraw":
            if money[0] in self.frozen:
                return "PLAYER_FROZEN"
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
        if any(one.player_id in self.frozen for one in command.holds):
            return "PLAYER_FROZEN"
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
            assert hold.expires_at_us is not None
            self.holds[hold.hold_id] = HeldMoney(
                money, hold.amount, hold.amount, hold.expires_at_us
            )
            self.add(money, -hold.amount)

    def prolong(self, hold_ids: tuple[str, ...], seconds: int, table_id: str | None) -> str | None:
        """Give holds time, and to a table; the reason for which that is refused."""
        if any(hold_id not in self.holds for hold_id in hold_ids):
            return "UNKNOWN_HOLD"
        holds = [self.holds[hold_id] for hold_id in hold_ids]
        if any(hold.released for hold in holds):
            return "HOLD_NOT_OPEN"
        if table_id is not None and any(hold.table_id not in ("", table_id) for hold in holds):
            return "HOLD_TAKEN"
        for hold in holds:
            hold.expires_at_us = max(hold.expires_at_us, self.now_us + seconds * 1_000_000)
            hold.table_id = hold.table_id if table_id is None else table_id
        return None

    def top_up(self, hold_id: str, amount: int) -> str | None:
        """More into a hold; the reason for which that is refused."""
        if hold_id not in self.holds:
            return "UNKNOWN_HOLD"
        hold = self.holds[hold_id]
        bad = self.bad_money(*hold.money[1:], amount)
        if bad:
            return bad
        if hold.released:
            return "HOLD_NOT_OPEN"
        if hold.money[0] in self.frozen:
            return "PLAYER_FROZEN"
        spendable = self.spendable(hold.money)
        if spendable is not None and spendable < amount:
            return "INSUFFICIENT_BALANCE"
        if self.leaves(hold.money, -amount):
            return "BALANCE_OUT_OF_RANGE"
        if hold.remaining + amount > LARGEST:
            return "BALANCE_OUT_OF_RANGE"
        self.add(hold.money, -amount)
        hold.amount += amount
        hold.remaining += amount
        return None

    def pass_time(self, seconds: int) -> bool:
        """Holds whose time is over are given back; whether all of them can be."""
        self.now_us += seconds * 1_000_000
        whole = True
        for hold in self.holds.values():
            if not hold.released and hold.expires_at_us <= self.now_us:
                if self.leaves(hold.money, hold.remaining):
                    whole = False
                    continue
                if hold.remaining:
                    self.add(hold.money, hold.remaining)
                hold.end(HoldState.EXPIRED)
        return whole

    def freeze(self, player_id: str, frozen: bool) -> str | None:
        """Freeze a player or not; the reason for which that is refused."""
        if player_id not in self.wallets:
            return "UNKNOWN_WALLET"
        (self.frozen.add if frozen else self.frozen.discard)(player_id)
        return None

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
            if not hold.released:
                hold.end(HoldState.RELEASED)
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
        seen = set()
        for fee in command.fees:
            bad = self.bad_money(fee.currency, fee.book, fee.amount)
            if bad:
                return bad
            if fee.party >= len(command.parties):
                return "UNKNOWN_PARTY"
            if (fee.party, fee.currency, fee.book) in seen:
                return "DUPLICATE_FEE"
            seen.add((fee.party, fee.currency, fee.book))
        for place, cap in enumerate(command.caps):
            bad = self.bad_money(cap.currency, cap.book, cap.most)
            if bad:
                return bad
            if any(cap.currency == one.currency and cap.book == one.book
                   for one in command.caps[:place]):  # fmt: skip
                return "DUPLICATE_CAP"
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
        for fee in command.fees:
            player = command.parties[fee.party].player_id
            most[player, fee.currency, fee.book] += fee.amount
            most[HOUSE, fee.currency, fee.book] += fee.amount
        return any(abs(self.available[money]) + amount > LARGEST for money, amount in most.items())

    def settled(self, command: Settle, paid: tuple[int, ...], fees_paid: tuple[int, ...]) -> None:
        """Check what was paid, and pay it."""
        before = dict(self.available)
        fees: dict[tuple[int, str, str], int] = {}
        means_of = {
            (number, one.currency, one.book): self.means(command, number, (one.currency, one.book))
            for one in (*command.transfers, *command.fees)
            for number in range(len(command.parties))
        }
        for fee, coins in zip(command.fees, fees_paid, strict=True):
            unit = (fee.currency, fee.book)
            means = means_of[fee.party, fee.currency, fee.book]
            assert coins == (fee.amount if means is None else min(fee.amount, means))
            fees[fee.party, fee.currency, fee.book] = coins
            if coins:
                self.add((HOUSE, *unit), coins)
                self.pay(command, fee.party, unit, coins)
        units = {(one.currency, one.book) for one in command.transfers}
        for unit in units:
            transfers = [
                (one, coins)
                for one, coins in zip(command.transfers, paid, strict=True)
                if (one.currency, one.book) == unit
            ]
            for number in range(len(command.parties)):
                means = means_of[number, unit[0], unit[1]]
                if means is not None:
                    means -= fees.get((number, unit[0], unit[1]), 0)
                for cap in command.caps:
                    if (cap.currency, cap.book) == unit:
                        means = cap.most if means is None else min(means, cap.most)
                self._check_payer(number, means, transfers)
            for one, coins in transfers:
                assert one.from_party is not None or coins == one.amount, "the house always pays"
        # One entry for each party and reason, in and out.
        for payees in (True, False):
            sums: dict[tuple[int | None, tuple[str, str], str], list[int]] = {}
            for one, coins in zip(command.transfers, paid, strict=True):
                party = one.to_party if payees else one.from_party
                parts = sums.setdefault((party, (one.currency, one.book), one.reason), [0])
                if parts[-1] + coins > LARGEST:
                    parts.append(0)
                parts[-1] += coins
            for (party, unit, _), parts in sums.items():
                for coins in filter(None, parts):
                    if payees:
                        self.add(self._purse(command, party, unit), coins)
                    else:
                        self.pay(command, party, unit, coins)
        if command.hold_only:
            self._use_up(command, before)
        self.settlements[command.key] = (command, paid)

    def _use_up(self, command: Settle, before: dict[Money, int]) -> None:
        """What a hold that is over has let be taken is not taken again."""
        taken = {
            money: max(0, before.get(money, 0) - had)
            for money, had in self.available.items()
            if FLOORS.get(money[1]) is not None
        }
        for party in command.parties:
            for hold_id in party.hold_ids:
                hold = self.holds[hold_id]
                part = min(hold.given_back, taken.get(hold.money, 0))
                hold.given_back -= part
                taken[hold.money] = taken.get(hold.money, 0) - part

    def pay(self, command: Settle, party: int | None, unit: tuple[str, str], coins: int) -> None:
        """Take from holds, then from what is available."""
        for hold_id in command.parties[party].hold_ids if party is not None else ():
            hold = self.holds[hold_id]
            if hold.money[1:] == unit:
                captured = min(coins, hold.remaining)
                hold.remaining -= captured
                coins -= captured
        if coins:
            self.add(self._purse(command, party, unit), -coins)

    def means(self, command: Settle, party: int, unit: tuple[str, str]) -> int | None:
        """What a party can pay before anything comes in; ``None``: whatever is asked for."""
        player = command.parties[party]
        spendable = self.spendable((player.player_id, *unit))
        if spendable is None:
            return None
        holds = [self.holds[hold_id] for hold_id in player.hold_ids]
        holds = [hold for hold in holds if hold.money[1:] == unit]
        if command.hold_only:
            spendable = min(spendable, sum(hold.given_back for hold in holds))
        return spendable + sum(hold.remaining for hold in holds)

    def reverse(self, key: str) -> str | None:
        """Take a settlement back; the reason for which that is refused."""
        if key not in self.settlements:
            return "UNKNOWN_SETTLEMENT"
        command, paid = self.settlements[key]
        gains: dict[Money, int] = defaultdict(int)
        for one, coins in zip(command.transfers, paid, strict=True):
            gains[self._money(command, one.to_party, one)] += coins
            gains[self._money(command, one.from_party, one)] -= coins
        changes: dict[Money, int] = {}
        for money, gain in gains.items():
            spendable = self.spendable(money) if money[0] != HOUSE else None
            back = gain if spendable is None or gain < 0 else min(gain, max(0, spendable))
            changes[money] = -back
        if any(self.leaves(money, change) for money, change in changes.items()):
            return "BALANCE_OUT_OF_RANGE"
        for money, change in changes.items():
            if change:
                self.add(money, change)
            self.owed[money] += gains[money] + change
        return None

    def collect(self, money: Money, amount: int, *, write_off: bool) -> str | None:
        """Settle what is owed; the reason for which that is refused."""
        bad = self.bad_money(*money[1:], amount)
        if bad:
            return bad
        if money[0] not in self.wallets:
            return "UNKNOWN_WALLET"
        if amount > self.owed[money]:
            return "NOT_OWED"
        payer = (HOUSE, *money[1:]) if write_off else money
        spendable = None if write_off else self.spendable(money)
        if spendable is not None and spendable < amount:
            return "INSUFFICIENT_BALANCE"
        if self.leaves(payer, -amount):
            return "BALANCE_OUT_OF_RANGE"
        self.add(payer, -amount)
        self.owed[money] -= amount
        return None

    def _purse(self, command: Settle, party: int | None, unit: tuple[str, str]) -> Money:
        player = HOUSE if party is None else command.parties[party].player_id
        return player, unit[0], unit[1]

    def _money(self, command: Settle, party: int | None, transfer: Transfer) -> Money:
        player = HOUSE if party is None else command.parties[party].player_id
        return player, transfer.currency, transfer.book

    def _check_payer(
        self, number: int, means: int | None, transfers: list[tuple[Transfer, int]]
    ) -> None:
        mine = [(one.amount, coins) for one, coins in transfers if one.from_party == number]
        owed, pays = sum(amount for amount, _ in mine), sum(coins for _, coins in mine)
        assert all(0 <= coins <= amount for amount, coins in mine)
        if means is None:
            assert pays == owed
            return
        comes_in = sum(coins for one, coins in transfers if one.to_party == number)
        assert pays == min(owed, means + comes_in)
        # A coin for the rounding, and in a circle a part of one for the total that is rounded too.
        assert all(abs(coins * owed - pays * amount) < 2 * owed for amount, coins in mine)
