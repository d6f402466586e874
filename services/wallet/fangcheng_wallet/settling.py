"""What a settlement does to the ledger, and what taking it back does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fangcheng_wallet.clearing import HOUSE, Debt, clear
from fangcheng_wallet.desk import Desk
from fangcheng_wallet.errors import (
    DuplicateFee,
    DuplicateParty,
    SelfTransfer,
    UnknownHold,
    UnknownParty,
    UnknownSettlement,
)
from fangcheng_wallet.ledger import (
    LARGEST,
    AccountKey,
    Decision,
    Hold,
    Kind,
    PartyBalance,
    PartyReversal,
    Reversal,
    Reverse,
    Settle,
    Settled,
    Settlement,
)

Unit = tuple[str, str]
"""Currency and book."""


class _Purses:
    """What the parties of a settlement have, and the house."""

    def __init__(self, desk: Desk, command: Settle, units: Iterable[Unit]) -> None:
        self._desk = desk
        self._key = command.key
        self._hold_only = command.hold_only
        self.holds = _holds_of(desk, command)
        self._accounts: dict[tuple[int | None, Unit], AccountKey] = {}
        for unit in units:
            self._accounts[None, unit] = AccountKey(Kind.HOUSE, "", *unit)
            for number, party in enumerate(command.parties):
                key = AccountKey(Kind.PLAYER, party.player_id, *unit)
                self._accounts[number, unit] = key

    def available(self, party: int, unit: Unit) -> int:
        """What is available to a party now."""
        return self._desk.account(self._accounts[party, unit]).balance

    def held(self, party: int, unit: Unit) -> int:
        """What is left in a party's holds now."""
        held = 0
        for hold in self.holds[party]:
            if (hold.currency, hold.book) == unit:
                held += self._desk.account(hold.account).balance
        return held

    def means(self, party: int, unit: Unit) -> int | None:
        """What a party can pay before the hand brings it anything; ``None``: whatever it owes."""
        if not self._desk.has_floor(unit[0]):
            return None
        available = self._desk.spendable(self._accounts[party, unit])
        if self._hold_only:
            # A hold that is over must not let its player off.
            over = [h.given_back for h in self.holds[party] if (h.currency, h.book) == unit]
            available = min(available, sum(over))
        return available + self.held(party, unit)

    def used(self, units: Iterable[Unit]) -> Iterator[Hold]:
        """The holds that the settlement has changed, as they are now."""
        for party, holds in enumerate(self.holds):
            for unit in units:
                # What a hold that is over lets be taken, it lets be taken once.
                taken = 0
                if self._hold_only and self._desk.has_floor(unit[0]):
                    key = self._accounts[party, unit]
                    taken = self._desk.view.account(key).balance - self._desk.account(key).balance
                for hold in holds:
                    if (hold.currency, hold.book) != unit:
                        continue
                    left = self._desk.account(hold.account).balance
                    again = hold.given_back - max(0, min(taken, hold.given_back))
                    taken -= hold.given_back - again
                    if (left, again) != (hold.remaining, hold.given_back):
                        yield replace(hold, remaining=left, given_back=again)

    def take_in(self, party: int | None, unit: Unit, coins: int, reason: str, where: str) -> None:
        """Pay a party, or the house."""
        self._desk.post(self._accounts[party, unit], coins, reason, self._key, where=where)

    def pay_out(self, party: int | None, unit: Unit, coins: int, reason: str, where: str) -> None:
        """Let a party, or the house, pay: from holds first."""
        for hold in () if party is None else self.holds[party]:
            if (hold.currency, hold.book) == unit:
                captured = min(coins, self._desk.account(hold.account).balance)
                if captured:
                    self._desk.post(hold.account, -captured, reason, self._key, where=where)
                    coins -= captured
        if coins:
            self._desk.post(self._accounts[party, unit], -coins, reason, self._key, where=where)


def settle(desk: Desk, command: Settle) -> Decision[Settled]:
    """Pay the fees of a table and the transfers of a hand, from holds first, then from what is
    available.

    Who cannot pay everything pays all there is: fees first, then see ``clearing``. A hold that is
    over has nothing left, so what is available pays; nothing about a hold or a frozen player
    refuses a settlement.
    """
    _check(desk, command)
    units = units_of(command)
    parties = range(len(command.parties))
    purses = _Purses(desk, command, units)
    means = {(number, unit): purses.means(number, unit) for unit in units for number in parties}
    fees_paid = []
    for number, fee in enumerate(command.fees):
        unit = (fee.currency, fee.book)
        has = means[fee.party, unit]
        coins = fee.amount if has is None else min(fee.amount, has)
        means[fee.party, unit] = None if has is None else has - coins
        fees_paid.append(coins)
        if coins:
            where = f"fees[{number}].amount"
            purses.take_in(None, unit, coins, "fee", where)
            purses.pay_out(fee.party, unit, coins, "fee", where)
    paid = _clear(command, units, means)
    # What comes in is posted before what goes out: it may be what goes out.
    for payment in _sums(command, paid, payees=True):
        purses.take_in(*payment)
    for payment in _sums(command, paid, payees=False):
        purses.pay_out(*payment)
    balances = tuple(
        [
            PartyBalance(number, *unit, purses.available(number, unit), purses.held(number, unit))
            for unit in units
            for number in parties
        ]
    )
    settled = Settled(tuple(paid), balances, desk.time_us, tuple(fees_paid))
    return Decision(tuple(desk.postings), settled, tuple(purses.used(units)))


def _sums(
    command: Settle, paid: Sequence[int], *, payees: bool
) -> Iterator[tuple[int | None, Unit, int, str, str]]:
    """What each payee, or payer, is to be posted: one sum for each reason.

    Party, currency and book, amount, reason, and the field of the first transfer in it. A sum that
    would leave the range of amounts is told in parts.
    """
    sums: dict[tuple[int | None, str, str, str], list[int]] = {}
    for number, (one, coins) in enumerate(zip(command.transfers, paid, strict=True)):
        if not coins:
            continue
        key = (one.to_party if payees else one.from_party, one.currency, one.book, one.reason)
        so_far = sums.get(key)
        if so_far is None:
            sums[key] = [coins, number]
        elif so_far[0] + coins <= LARGEST:
            so_far[0] += coins
        else:
            yield key[0], key[1:3], so_far[0], key[3], f"transfers[{so_far[1]}].amount"
            sums[key] = [coins, number]
    for key, (coins, number) in sums.items():
        yield key[0], key[1:3], coins, key[3], f"transfers[{number}].amount"


def units_of(command: Settle) -> list[Unit]:
    """The currencies and books in which something is paid."""
    units = dict.fromkeys((one.currency, one.book) for one in command.transfers)
    return list(units | dict.fromkeys((fee.currency, fee.book) for fee in command.fees))


def _check(desk: Desk, command: Settle) -> None:
    parties = [party.player_id for party in command.parties]
    for number, player_id in enumerate(parties):
        if player_id in parties[:number]:
            raise DuplicateParty(player_id, f"parties[{number}].player_id")
    for number, transfer in enumerate(command.transfers):
        where = f"transfers[{number}]."
        desk.check_money(transfer.currency, transfer.book, transfer.amount, where)
        for name, party in (("from_party", transfer.from_party), ("to_party", transfer.to_party)):
            if party is not None and not 0 <= party < len(parties):
                raise UnknownParty(party, len(parties), where + name)
        if transfer.from_party == transfer.to_party:
            raise SelfTransfer(f"{where}to_party")
    seen: set[tuple[int, str, str]] = set()
    for number, fee in enumerate(command.fees):
        where = f"fees[{number}]."
        desk.check_money(fee.currency, fee.book, fee.amount, where)
        if not 0 <= fee.party < len(parties):
            raise UnknownParty(fee.party, len(parties), f"{where}party")
        if (fee.party, fee.currency, fee.book) in seen:
            raise DuplicateFee(f"{where}party")
        seen.add((fee.party, fee.currency, fee.book))
    for number, player_id in enumerate(parties):
        desk.check_wallet(player_id, f"parties[{number}].player_id")


def _holds_of(desk: Desk, command: Settle) -> list[list[Hold]]:
    """The holds of each party. Another player's is no hold of this party's."""
    holds: list[list[Hold]] = []
    for number, party in enumerate(command.parties):
        mine: dict[str, Hold] = {}
        for place, hold_id in enumerate(party.hold_ids):
            hold = desk.view.hold(hold_id)
            if hold is None or hold.player_id != party.player_id:
                raise UnknownHold(hold_id, f"parties[{number}].hold_ids[{place}]")
            mine[hold_id] = hold
        holds.append(list(mine.values()))
    return holds


def _clear(
    command: Settle, units: Iterable[Unit], means: Mapping[tuple[int, Unit], int | None]
) -> list[int]:
    """What is paid of each transfer."""
    paid = [0] * len(command.transfers)
    for unit in units:
        numbers = []
        debts = []
        for number, one in enumerate(command.transfers):
            if (one.currency, one.book) == unit:
                numbers.append(number)
                payer = HOUSE if one.from_party is None else one.from_party
                payee = HOUSE if one.to_party is None else one.to_party
                debts.append(Debt(payer, payee, one.amount))
        has = [means[party, unit] for party in range(len(command.parties))]
        for number, coins in zip(numbers, clear(has, debts), strict=True):
            paid[number] = coins
    return paid


def _house(unit: Unit) -> AccountKey:
    return AccountKey(Kind.HOUSE, "", *unit)


def gains(settlement: Settlement) -> dict[tuple[int | None, Unit], int]:
    """What the transfers of a settlement brought each party, and the house (``None``)."""
    net: Counter[tuple[int | None, Unit]] = Counter()
    request, outcome = settlement.request, settlement.outcome
    for one, coins in zip(request.transfers, outcome.paid, strict=True):
        unit = (one.currency, one.book)
        net[one.to_party, unit] += coins
        net[one.from_party, unit] -= coins
    return {who: gain for who, gain in net.items() if gain}


def reverse(desk: Desk, command: Reverse) -> Decision[Reversal]:
    """Give back to the losers what they lost, and take it from the winners as far as it is there.

    What a winner has no more is put down as owed: the losers have theirs in full all the same.
    """
    settlement = desk.view.settlement(command.key)
    if settlement is None:
        raise UnknownSettlement(command.key)
    caused = ("reverse", command.key, command.reason)
    parties = []
    for (number, unit), gain in sorted(
        gains(settlement).items(), key=lambda one: (one[0][1], one[0][0] is None, one[0][0] or 0)
    ):
        if number is None:
            desk.post(_house(unit), -gain, *caused, where="key")
            continue
        player_id = settlement.request.parties[number].player_id
        account = AccountKey(Kind.PLAYER, player_id, *unit)
        back = -gain
        if gain > 0 and desk.has_floor(unit[0]):
            back = -min(gain, max(0, desk.spendable(account)))
        owed = gain + back
        if back:
            desk.post(account, back, *caused, where="key")
        if owed:
            desk.post(AccountKey(Kind.RECEIVABLE, player_id, *unit), -owed, *caused, where="key")
        parties.append(PartyReversal(number, *unit, back, owed, desk.account(account).balance))
    reversal = Reversal(command.key, command.reason, command.case_id, tuple(parties), desk.time_us)
    return Decision(tuple(desk.postings), reversal)
