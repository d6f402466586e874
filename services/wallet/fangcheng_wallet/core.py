"""What each verb does to the ledger.

``decide(command, desk, ...)`` says which postings a command makes, or raises what is wrong with it.
It reads through the desk's ``View`` and writes nothing: the store puts the whole decision on disk,
or nothing. Chance and time are handed in.

A store cannot read while a decision is made. It asks beforehand which ``names`` a command mentions,
reads those, and then asks which ``accounts`` that comes down to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from fangcheng_wallet.desk import Desk, View
from fangcheng_wallet.errors import (
    BalanceOutOfRange,
    InsufficientBalance,
    NotOwed,
    PlayerFrozen,
    WalletDiffers,
)
from fangcheng_wallet.holding import (
    expire_hold,
    extend_holds,
    hand_over,
    place_holds,
    release_holds,
    top_up_hold,
)
from fangcheng_wallet.ledger import (
    AccountKey,
    Collect,
    Collected,
    Command,
    Decision,
    Deposit,
    Entry,
    Erase,
    ExpireHold,
    ExtendHolds,
    Freeze,
    HandOver,
    Kind,
    Mask,
    OpenWallet,
    PlaceHolds,
    Player,
    ReleaseHolds,
    Reverse,
    Settle,
    TopUpHold,
    Withdraw,
)
from fangcheng_wallet.masking import erase, mask
from fangcheng_wallet.settling import reverse, settle, units_of

SETTLE = "settle"


def identity(command: Command[Any]) -> tuple[str, str | None]:
    """The verb of a command, and the id under which it is done once, if it has one."""
    match command:
        case Settle():
            return SETTLE, command.key
        case OpenWallet():
            return "open_wallet", None
        case Freeze():
            return "freeze", command.request_id
        case Deposit():
            return "deposit", command.request_id
        case Withdraw():
            return "withdraw", command.request_id
        case Collect():
            return "collect", command.request_id
        case PlaceHolds():
            return "place_holds", command.request_id
        case HandOver():
            return "hand_over", None
        case ExtendHolds():
            return "extend_holds", None
        case TopUpHold():
            return "top_up_hold", command.request_id
        case ReleaseHolds():
            return "release_holds", None
        case ExpireHold():
            return "expire_hold", None
        case Reverse():
            return "reverse", command.key
        case Mask():
            return "mask", None
        case Erase():
            return "erase", command.request_id
        case _:
            raise TypeError(f"no such command: {command!r}")


@dataclass(slots=True)
class Names:
    """What commands mention."""

    players: set[str] = field(default_factory=set)
    holds: set[str] = field(default_factory=set)
    operations: set[tuple[str, str]] = field(default_factory=set)
    """Verb and key."""
    written: set[int] = field(default_factory=set)
    """Numbers of operations that are to be read as a whole."""

    def add(self, command: Command[Any]) -> None:
        """Add what a command mentions."""
        verb, key = identity(command)
        if key is not None:
            self.operations.add((verb, key))
        match command:
            case OpenWallet() | Freeze() | Deposit() | Withdraw() | Collect() | Erase():
                self.players.add(command.player_id)
            case PlaceHolds():
                self.players.update(one.player_id for one in command.holds)
            case HandOver() | ExtendHolds() | ReleaseHolds():
                self.holds.update(command.hold_ids)
            case TopUpHold() | ExpireHold():
                self.holds.add(command.hold_id)
            case Settle():
                for party in command.parties:
                    self.players.add(party.player_id)
                    self.holds.update(party.hold_ids)
            case Reverse():
                self.operations.add((SETTLE, command.key))
            case Mask():
                self.written.update(command.numbers)


def accounts(command: Command[Any], view: View) -> Iterator[AccountKey]:
    """The accounts that a command may read or change, once its names are in the view.

    Of a hold that an earlier command of the same batch places, nothing needs to be read.
    """
    match command:
        case Deposit() | Withdraw():
            yield AccountKey(Kind.PLAYER, command.player_id, command.currency, command.book)
            # Which of the two, a wallet that the very same batch opens does not tell yet.
            yield AccountKey(Kind.EXTERNAL, "", command.currency, command.book)
            yield AccountKey(Kind.HOUSE, "", command.currency, command.book)
        case Collect():
            yield AccountKey(Kind.PLAYER, command.player_id, command.currency, command.book)
            yield AccountKey(Kind.RECEIVABLE, command.player_id, command.currency, command.book)
            yield AccountKey(Kind.HOUSE, "", command.currency, command.book)
        case PlaceHolds():
            for one in command.holds:
                yield AccountKey(Kind.PLAYER, one.player_id, one.currency, one.book)
        case ReleaseHolds() | TopUpHold() | ExpireHold():
            ids = command.hold_ids if isinstance(command, ReleaseHolds) else (command.hold_id,)
            for hold in map(view.hold, ids):
                if hold is not None:
                    yield from (hold.account, hold.home)
        case Settle():
            for unit in units_of(command):
                yield AccountKey(Kind.HOUSE, "", *unit)
                for party in command.parties:
                    yield AccountKey(Kind.PLAYER, party.player_id, *unit)
            for party in command.parties:
                for hold in map(view.hold, party.hold_ids):
                    if hold is not None:
                        yield hold.account
        case Reverse():
            settlement = view.settlement(command.key)
            if settlement is not None:
                yield from reversal_accounts(settlement.request)


def reversal_accounts(settled: Settle) -> Iterator[AccountKey]:
    """The accounts that a reversal of this settlement may read or change."""
    for unit in units_of(settled):
        yield AccountKey(Kind.HOUSE, "", *unit)
        for party in settled.parties:
            yield AccountKey(Kind.PLAYER, party.player_id, *unit)
            yield AccountKey(Kind.RECEIVABLE, party.player_id, *unit)


def labels(command: Command[Any], view: View) -> dict[str, str]:
    """The labels that the entries of a command can be found by."""
    match command:
        case Settle():
            return command.labels
        case Reverse():
            settlement = view.settlement(command.key)
            return settlement.request.labels if settlement else {}
        case _:
            return {}


def open_wallet(desk: Desk, command: OpenWallet) -> Decision[bool]:
    """Open a wallet; one that is open is left alone, and never changes whose it is."""
    player = desk.view.player(command.player_id)
    if player is None:
        player = Player(command.player_id, is_bot=command.is_bot)
        return Decision((), answer=True, player=player)
    if player.is_bot != command.is_bot:
        raise WalletDiffers(command.player_id, player.is_bot)
    return Decision((), answer=False)


def freeze(desk: Desk, command: Freeze) -> Decision[Player]:
    """Forbid a player to stake and to withdraw, or allow it again."""
    player = replace(
        desk.check_wallet(command.player_id, "player_id"),
        frozen=command.frozen,
        reason=command.reason,
        case_id=command.case_id,
        time_us=desk.time_us,
    )
    return Decision((), player, player=player)


def deposit(desk: Desk, command: Deposit) -> Decision[Entry]:
    """Money from outside into a player's account, or from the house into a bot's."""
    desk.check_money(command.currency, command.book, command.amount, "")
    player = desk.check_wallet(command.player_id, "player_id")
    account = AccountKey(Kind.PLAYER, command.player_id, command.currency, command.book)
    least, most = desk.bounds(account)[0], desk.currency(command.currency).most
    if desk.account(account).balance + command.amount > most:
        raise BalanceOutOfRange(str(account), least, most, "amount")
    return _move(desk, command, player, command.amount)


def withdraw(desk: Desk, command: Withdraw) -> Decision[Entry]:
    """Money from a player's account to the outside, or from a bot's back to the house; what is
    held is not there to be taken.
    """
    desk.check_money(command.currency, command.book, command.amount, "")
    player = desk.check_wallet(command.player_id, "player_id")
    if player.frozen:
        raise PlayerFrozen([command.player_id], "player_id")
    account = AccountKey(Kind.PLAYER, command.player_id, command.currency, command.book)
    if desk.has_floor(command.currency) and desk.spendable(account) < command.amount:
        raise InsufficientBalance([command.player_id], "amount")
    return _move(desk, command, player, -command.amount)


def collect(desk: Desk, command: Collect) -> Decision[Collected]:
    """Settle what a player owes: he pays it out of what is available, or the house bears it."""
    desk.check_money(command.currency, command.book, command.amount, "")
    desk.check_wallet(command.player_id, "player_id")
    unit = (command.currency, command.book)
    player = AccountKey(Kind.PLAYER, command.player_id, *unit)
    receivable = AccountKey(Kind.RECEIVABLE, command.player_id, *unit)
    owed = -desk.balance(receivable)
    if command.amount > owed:
        raise NotOwed(owed, "amount")
    limited = desk.has_floor(command.currency) and not command.write_off
    if limited and desk.spendable(player) < command.amount:
        raise InsufficientBalance([command.player_id], "amount")
    payer = AccountKey(Kind.HOUSE, "", *unit) if command.write_off else player
    why = "write_off" if command.write_off else "collect"
    caused = (why, command.request_id, command.reason)
    desk.post(payer, -command.amount, *caused, where="amount")
    desk.post(receivable, command.amount, *caused, where="amount")
    answer = Collected(owed - command.amount, desk.balance(player), desk.time_us)
    return Decision(tuple(desk.postings), answer)


def _move(desk: Desk, command: Deposit | Withdraw, player: Player, amount: int) -> Decision[Entry]:
    unit = (command.currency, command.book)
    source = AccountKey(Kind.HOUSE if player.is_bot else Kind.EXTERNAL, "", *unit)
    reasons = ("fund", "give_back") if player.is_bot else ("deposit", "withdraw")
    caused = (reasons[amount < 0], command.request_id, command.memo)
    account = AccountKey(Kind.PLAYER, command.player_id, *unit)
    posting = desk.post(account, amount, *caused, where="amount")
    desk.post(source, -amount, *caused, where="amount")
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


def decide(command: Command[Any], desk: Desk, new_id: Callable[[], str]) -> Decision[Any]:
    """What a command changes, and its answer; see the function of its verb."""
    match command:
        case Settle():
            return settle(desk, command)
        case OpenWallet():
            return open_wallet(desk, command)
        case Freeze():
            return freeze(desk, command)
        case Deposit():
            return deposit(desk, command)
        case Withdraw():
            return withdraw(desk, command)
        case Collect():
            return collect(desk, command)
        case PlaceHolds():
            return place_holds(desk, command, new_id)
        case HandOver():
            return hand_over(desk, command)
        case ExtendHolds():
            return extend_holds(desk, command)
        case TopUpHold():
            return top_up_hold(desk, command)
        case ReleaseHolds():
            return release_holds(desk, command)
        case ExpireHold():
            return expire_hold(desk, command)
        case Reverse():
            return reverse(desk, command)
        case Mask():
            return mask(desk, command)
        case Erase():
            return erase(desk, command)
        case _:
            raise TypeError(f"no such command: {command!r}")
