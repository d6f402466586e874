"""What a settlement does to the ledger, and what taking it back does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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


def settle(desk: Desk, command: Settle) -> Decision[Settled]:
    """Pay the fees of a table and the transfers of a hand, from holds first, then from what is
    available.

    Who cannot pay everything pays all there is: fees first, then see ``clearing``. A hold that is
    over has nothing left, so what is available pays; nothing about a hold or a frozen player
    refuses a settlement.
    """
    _check(desk, command)
    holds = _holds_of(desk, command)
    parties = range(len(command.parties))
    units = units_of(command)
    means = {
        (number, unit): _means(desk, command, number, unit, holds[number])
        for unit in units
        for number in parties
    }
    fees_paid = []
    for number, fee in enumerate(command.fees):
        unit = (fee.currency, fee.book)
        has = means[fee.party, unit]
        coins = fee.amount if has is None else min(fee.amount, has)
        means[fee.party, unit] = None if has is None else has - coins
        fees_paid.append(coins)
        if coins:
            where = f"fees[{number}].amount"
            desk.post(_house(unit), coins, "fee", command.key, where=where)
            _pay_out(desk, command, fee.party, unit, coins, "fee", where, holds)
    paid = _clear(command, units, means)
    # What comes in is posted before what goes out: it may be what goes out.
    for party, unit, reason, coins, where in _sums(command, paid, payees=True):
        desk.post(_account_of(command, party, unit), coins, reason, command.key, where=where)
    for party, unit, reason, coins, where in _sums(command, paid, payees=False):
        _pay_out(desk, command, party, unit, coins, reason, where, holds)
    balances = tuple(
        PartyBalance(
            number,
            *unit,
            desk.account(_account_of(command, number, unit)).balance,
            sum(desk.account(hold.account).balance for hold in _in(unit, holds[number])),
        )
        for unit in units
        for number in parties
    )
    used = tuple(
        replace(hold, remaining=left)
        for held in holds
        for hold in held
        if (left := desk.account(hold.account).balance) != hold.remaining
    )
    settled = Settled(tuple(paid), balances, desk.time_us, tuple(fees_paid))
    return Decision(tuple(desk.postings), settled, used)


def _sums(
    command: Settle, paid: Sequence[int], *, payees: bool
) -> Iterator[tuple[int | None, Unit, str, int, str]]:
    """What each payee, or payer, is to be posted: one sum for each reason.

    Party, currency and book, reason, amount, and the field of the first transfer in it. A sum that
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
            yield key[0], key[1:3], key[3], so_far[0], f"transfers[{so_far[1]}].amount"
            sums[key] = [coins, number]
    for key, (coins, number) in sums.items():
        yield key[0], key[1:3], key[3], coins, f"transfers[{number}].amount"


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


def _means(
    desk: Desk, command: Settle, party: int, unit: Unit, holds: Sequence[Hold]
) -> int | None:
    """What a party can pay before the hand brings it anything; ``None``: whatever it owes."""
    if not desk.has_floor(unit[0]):
        return None
    held = gave_back = 0
    for hold in _in(unit, holds):
        held += hold.remaining
        gave_back += hold.given_back
    available = desk.spendable(AccountKey(Kind.PLAYER, command.parties[party].player_id, *unit))
    if command.hold_only:
        # A hold that is over must not let its player off.
        available = min(available, gave_back)
    return held + available


def _clear(
    command: Settle, units: Iterable[Unit], means: dict[tuple[int, Unit], int | None]
) -> list[int]:
    """What is paid of each transfer."""
    paid = [0] * len(command.transfers)
    for unit in units:
        numbers = [n for n, one in enumerate(command.transfers) if (one.currency, one.book) == unit]
        debts = [
            Debt(
                HOUSE if one.from_party is None else one.from_party,
                HOUSE if one.to_party is None else one.to_party,
                one.amount,
            )
            for one in (command.transfers[n] for n in numbers)
        ]
        has = [means[party, unit] for party in range(len(command.parties))]
        for number, coins in zip(numbers, clear(has, debts), strict=True):
            paid[number] = coins
    return paid


def _pay_out(
    desk: Desk,
    command: Settle,
    party: int | None,
    unit: Unit,
    coins: int,
    reason: str,
    where: str,
    holds: Sequence[Sequence[Hold]],
) -> None:
    for hold in _in(unit, holds[party]) if party is not None else ():
        captured = min(coins, desk.account(hold.account).balance)
        if captured:
            desk.post(hold.account, -captured, reason, command.key, where=where)
            coins -= captured
    if coins:
        payer = _account_of(command, party, unit)
        desk.post(payer, -coins, reason, command.key, where=where)


def _in(unit: Unit, holds: Sequence[Hold]) -> Sequence[Hold]:
    return holds and [hold for hold in holds if (hold.currency, hold.book) == unit]


def _account_of(command: Settle, party: int | None, unit: Unit) -> AccountKey:
    if party is None:
        return _house(unit)
    return AccountKey(Kind.PLAYER, command.parties[party].player_id, *unit)


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
