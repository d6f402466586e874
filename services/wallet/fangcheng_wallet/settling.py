"""What a settlement does to the ledger, and what taking it back does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NoReturn

from msgspec.structs import replace

from fangcheng_wallet.clearing import HOUSE, Debt, clear
from fangcheng_wallet.desk import Desk
from fangcheng_wallet.errors import (
    DuplicateCap,
    DuplicateFee,
    DuplicateParty,
    SelfTransfer,
    UnknownHold,
    UnknownParty,
    UnknownSettlement,
    UnknownWallet,
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
    Transfer,
)

Unit = tuple[str, str]
"""Currency and book."""

_Sum = tuple[int, str, int, int]
"""Party, reason, amount, number of the transfer."""


class _Purses:
    """What the parties of a settlement, and the house, have in one currency and book.

    Lists by party have the house at their end, where the index ``HOUSE`` finds it.
    """

    def __init__(
        self, desk: Desk, command: Settle, unit: Unit, holds: Sequence[Sequence[Hold]]
    ) -> None:
        self._desk = desk
        self._key = command.key
        self._unit = currency, book = unit
        self._floor = desk.currency(currency).floor
        self._hold_only = command.hold_only and self._floor is not None
        self._cap = next(
            (one.most for one in command.caps if (one.currency, one.book) == unit), None
        )
        self._accounts = [
            AccountKey(Kind.PLAYER, party.player_id, currency, book) for party in command.parties
        ]
        self._accounts.append(AccountKey(Kind.HOUSE, "", currency, book))
        self._holds: list[Sequence[tuple[Hold, AccountKey]]] = [
            [(one, one.account) for one in mine if one.unit == unit] if mine else ()
            for mine in holds
        ]
        self._holds.append(())

    def means(self) -> list[int | None]:
        """What each can pay before the hand brings it anything; ``None``: whatever it owes."""
        accounts = self._accounts[:HOUSE]
        floor = self._floor
        if floor is None:
            return [None] * len(accounts)
        means: list[int | None] = []
        for party, account in enumerate(accounts):
            available = self._desk.balance(account) - floor
            if self._hold_only:
                # A hold that is over must not let its player off.
                over = sum(hold.given_back for hold, _ in self._holds[party])
                available = min(available, over)
            means.append(available + self._held(party) if self._holds[party] else available)
        return means

    def capped(self, means: list[int | None]) -> list[int | None]:
        """What each can pay of the hand, of what it can pay at all."""
        if self._cap is None:
            return means
        return [self._cap if has is None else min(has, self._cap) for has in means]

    def balances(self) -> list[PartyBalance]:
        """What the parties have now."""
        balance = self._desk.balance
        currency, book = self._unit
        return [
            PartyBalance(party, currency, book, balance(account), self._held(party) if holds else 0)
            for party, (account, holds) in enumerate(
                zip(self._accounts[:HOUSE], self._holds[:HOUSE], strict=True)
            )
        ]

    def used(self) -> Iterator[Hold]:
        """The holds that the settlement has changed, as they are now."""
        for party, holds in enumerate(self._holds):
            if not holds:
                continue
            # What a hold that is over lets be taken, it lets be taken once.
            taken = 0
            if self._hold_only:
                account = self._accounts[party]
                taken = self._desk.view.account(account).balance - self._desk.balance(account)
            for hold, key in holds:
                left = self._desk.balance(key)
                again = hold.given_back - max(0, min(taken, hold.given_back))
                taken -= hold.given_back - again
                if (left, again) != (hold.remaining, hold.given_back):
                    yield replace(hold, remaining=left, given_back=again)

    def take_in(self, party: int, coins: int, reason: str, where: str) -> None:
        """Pay a party, or the house."""
        self._desk.post(self._accounts[party], coins, reason, self._key, where=where)

    def pay_out(self, party: int, coins: int, reason: str, where: str) -> None:
        """Let a party, or the house, pay: from holds first."""
        for _, key in self._holds[party]:
            captured = min(coins, self._desk.balance(key))
            if captured:
                self._desk.post(key, -captured, reason, self._key, where=where)
                coins -= captured
        if coins:
            self._desk.post(self._accounts[party], -coins, reason, self._key, where=where)

    def _held(self, party: int) -> int:
        """What is left in a party's holds now."""
        return sum([self._desk.balance(key) for _, key in self._holds[party]])


def settle(desk: Desk, command: Settle) -> Decision[Settled]:
    """Pay the fees of a table and the transfers of a hand, from holds first, then from what is
    available.

    Who cannot pay everything, or because of a cap need not, pays all there is for it: fees first,
    then see ``clearing``. A hold that is over has nothing left, so what is available pays; nothing
    about a hold or a frozen player refuses a settlement.
    """
    _check(desk, command)
    holds = _holds_of(desk, command)
    paid = [0] * len(command.transfers)
    fees_paid = [0] * len(command.fees)
    balances: list[PartyBalance] = []
    used: list[Hold] = []
    for unit in units_of(command):
        purses = _Purses(desk, command, unit, holds)
        means = purses.means()
        _pay_fees(purses, command, unit, means, fees_paid)
        _pay_transfers(purses, command, unit, purses.capped(means), paid)
        balances += purses.balances()
        used += purses.used()
    settled = Settled(tuple(paid), tuple(balances), desk.time_us, tuple(fees_paid))
    return Decision(tuple(desk.postings), settled, tuple(used))


def _pay_fees(
    purses: _Purses, command: Settle, unit: Unit, means: list[int | None], paid: list[int]
) -> None:
    """Pay the fees in one currency and book, out of the means; ``paid``: of each fee."""
    for number, fee in enumerate(command.fees):
        if (fee.currency, fee.book) != unit:
            continue
        has = means[fee.party]
        coins = fee.amount if has is None else min(fee.amount, has)
        means[fee.party] = None if has is None else has - coins
        paid[number] = coins
        if coins:
            where = f"fees[{number}].amount"
            purses.take_in(HOUSE, coins, "fee", where)
            purses.pay_out(fee.party, coins, "fee", where)


def _pay_transfers(
    purses: _Purses, command: Settle, unit: Unit, means: Sequence[int | None], paid: list[int]
) -> None:
    """Pay the transfers in one currency and book; ``paid``: of each transfer."""
    numbers: list[int] = []
    transfers: list[Transfer] = []
    for number, one in enumerate(command.transfers):
        if (one.currency, one.book) == unit:
            numbers.append(number)
            transfers.append(one)
    incoming: list[_Sum] = []
    outgoing: list[_Sum] = []
    for number, one, coins in zip(numbers, transfers, shares(means, transfers), strict=True):
        if coins:
            paid[number] = coins
            payer, payee, reason = one.from_party, one.to_party, one.reason
            incoming.append((HOUSE if payee is None else payee, reason, coins, number))
            outgoing.append((HOUSE if payer is None else payer, reason, coins, number))
    # What comes in is posted before what goes out: it may be what goes out.
    for party, reason, coins, number in _summed(incoming):
        purses.take_in(party, coins, reason, f"transfers[{number}].amount")
    for party, reason, coins, number in _summed(outgoing):
        purses.pay_out(party, coins, reason, f"transfers[{number}].amount")


def shares(means: Sequence[int | None], transfers: Sequence[Transfer]) -> list[int]:
    """How much is paid of each transfer in one currency and book: see ``clearing``.

    Mostly everybody has what he owes before he is paid anything, and nothing is to be shared.
    """
    left = list(means)
    for one in transfers:
        if one.from_party is not None and (has := left[one.from_party]) is not None:
            if has < one.amount:
                return clear(means, list(map(_debt, transfers)))
            left[one.from_party] = has - one.amount
    return [one.amount for one in transfers]


def _debt(one: Transfer) -> Debt:
    payer = HOUSE if one.from_party is None else one.from_party
    payee = HOUSE if one.to_party is None else one.to_party
    return Debt(payer, payee, one.amount)


def _summed(payments: Sequence[_Sum]) -> list[_Sum]:
    """One sum for each party and reason, with the number of its first transfer.

    A sum that would leave the range of amounts is told in parts.
    """
    whole: list[_Sum] = []
    last: dict[tuple[int, str], _Sum] = {}
    for payment in payments:
        party, reason, coins, _ = payment
        before = last.get((party, reason))
        if before is not None:
            if before[2] + coins <= LARGEST:
                payment = (party, reason, before[2] + coins, before[3])
            else:
                whole.append(before)
        last[party, reason] = payment
    whole += last.values()
    return whole


def units_of(command: Settle) -> list[Unit]:
    """The currencies and books in which something is paid."""
    units = {(one.currency, one.book): None for one in command.transfers}
    for fee in command.fees:
        units[fee.currency, fee.book] = None
    return list(units)


def _check(desk: Desk, command: Settle) -> None:
    parties = [party.player_id for party in command.parties]
    count = len(parties)
    if len(set(parties)) < count:
        _refuse_duplicate(parties)
    for number, one in enumerate(command.transfers):
        if not desk.is_money(one.currency, one.book, one.amount):
            desk.check_money(one.currency, one.book, one.amount, f"transfers[{number}].")
        payer, payee = one.from_party, one.to_party
        if payer is not None and not 0 <= payer < count:
            raise UnknownParty(payer, count, f"transfers[{number}].from_party")
        if payee is not None and not 0 <= payee < count:
            raise UnknownParty(payee, count, f"transfers[{number}].to_party")
        if payer == payee:
            raise SelfTransfer(f"transfers[{number}].to_party")
    seen: set[tuple[int, str, str]] = set()
    for number, fee in enumerate(command.fees):
        where = f"fees[{number}]."
        desk.check_money(fee.currency, fee.book, fee.amount, where)
        if not 0 <= fee.party < count:
            raise UnknownParty(fee.party, count, f"{where}party")
        if (fee.party, fee.currency, fee.book) in seen:
            raise DuplicateFee(f"{where}party")
        seen.add((fee.party, fee.currency, fee.book))
    capped: set[Unit] = set()
    for number, cap in enumerate(command.caps):
        where = f"caps[{number}]."
        desk.check_money(cap.currency, cap.book, cap.most, where)
        if (cap.currency, cap.book) in capped:
            raise DuplicateCap(f"{where}currency")
        capped.add((cap.currency, cap.book))
    for number, player_id in enumerate(parties):
        if desk.view.player(player_id) is None:
            raise UnknownWallet(player_id, f"parties[{number}].player_id")


def _refuse_duplicate(parties: Sequence[str]) -> NoReturn:
    number = next(n for n, player_id in enumerate(parties) if player_id in parties[:n])
    raise DuplicateParty(parties[number], f"parties[{number}].player_id")


def _holds_of(desk: Desk, command: Settle) -> list[list[Hold]]:
    """The holds of each party. Another player's is no hold of this party's."""
    holds: list[list[Hold]] = []
    for number, party in enumerate(command.parties):
        if not party.hold_ids:
            holds.append([])
            continue
        mine: dict[str, Hold] = {}
        for place, hold_id in enumerate(party.hold_ids):
            hold = desk.view.hold(hold_id)
            if hold is None or hold.player_id != party.player_id:
                raise UnknownHold(hold_id, f"parties[{number}].hold_ids[{place}]")
            mine[hold_id] = hold
        holds.append(list(mine.values()))
    return holds


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
        desk.check_currency(unit[0], "key")
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
