"""What the verbs of holds do to the ledger: money is set aside and given back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from fangcheng_wallet.desk import Desk
from fangcheng_wallet.errors import (
    BalanceOutOfRange,
    DuplicateHold,
    HoldNotOpen,
    HoldTaken,
    InsufficientBalance,
    PlayerFrozen,
    TooManyPlayers,
    UnknownHold,
)
from fangcheng_wallet.ledger import (
    LARGEST,
    MOST_PLAYERS,
    Decision,
    ExpireHold,
    ExtendHolds,
    HandOver,
    Hold,
    HoldState,
    PlaceHolds,
    ReleaseHolds,
    TopUpHold,
)


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
    frozen = []
    for number, wanted in enumerate(command.holds):
        if desk.check_wallet(wanted.player_id, f"holds[{number}].player_id").frozen:
            frozen.append((number, wanted.player_id))
    if frozen:
        players = list(dict.fromkeys(player for _, player in frozen))
        raise PlayerFrozen(players, f"holds[{frozen[0][0]}].player_id")
    expires_at_us = desk.expiry_us(command.lifetime_seconds)
    holds = tuple(
        Hold(
            *(new_id(), one.player_id, one.currency, one.book, one.amount, one.amount),
            expires_at_us=expires_at_us,
        )
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
        _set_aside(desk, hold, hold.amount, "hold", f"holds[{number}].amount")
    return Decision(tuple(desk.postings), holds, holds)


def hand_over(desk: Desk, command: HandOver) -> Decision[tuple[Hold, ...]]:
    """Give holds to a table, and time with it; none is shortened or taken from another table."""
    holds = desk.check_holds(command.hold_ids)
    _check_open(desk, holds)
    taken = [hold.hold_id for hold in holds if hold.table_id not in ("", command.table_id)]
    if taken:
        raise HoldTaken(taken, "hold_ids")
    given = [replace(hold, table_id=command.table_id) for hold in holds]
    return _changed(holds, _prolonged(desk, given, command.lifetime_seconds))


def extend_holds(desk: Desk, command: ExtendHolds) -> Decision[tuple[Hold, ...]]:
    """Give holds time; none is shortened."""
    holds = desk.check_holds(command.hold_ids)
    _check_open(desk, holds)
    return _changed(holds, _prolonged(desk, holds, command.lifetime_seconds))


def top_up_hold(desk: Desk, command: TopUpHold) -> Decision[Hold]:
    """Set more aside in an open hold."""
    hold = desk.view.hold(command.hold_id)
    if hold is None:
        raise UnknownHold(command.hold_id, "hold_id")
    desk.check_money(hold.currency, hold.book, command.amount, "")
    if desk.is_over(hold):
        raise HoldNotOpen([hold.hold_id], "hold_id")
    if desk.check_wallet(hold.player_id, "hold_id").frozen:
        raise PlayerFrozen([hold.player_id], "hold_id")
    if desk.has_floor(hold.currency) and desk.spendable(hold.home) < command.amount:
        raise InsufficientBalance([hold.player_id], "amount")
    if hold.amount + command.amount > LARGEST:
        # What was paid out of it counts: the hold tells all that was ever set aside in it.
        raise BalanceOutOfRange(str(hold.account), 0, LARGEST, "amount")
    _set_aside(desk, hold, command.amount, "top_up", "amount")
    fuller = replace(
        hold, amount=hold.amount + command.amount, remaining=hold.remaining + command.amount
    )
    return Decision(tuple(desk.postings), fuller, (fuller,))


def release_holds(desk: Desk, command: ReleaseHolds) -> Decision[tuple[Hold, ...]]:
    """Give back what remains of holds; of one that is over already nothing does."""
    holds = desk.check_holds(command.hold_ids)
    over = tuple(
        hold if hold.released else _give_back(desk, hold, HoldState.RELEASED, f"hold_ids[{number}]")
        for number, hold in enumerate(holds)
    )
    return Decision(
        tuple(desk.postings),
        tuple(replace(now, remaining=was.remaining) for was, now in zip(holds, over, strict=True)),
        tuple(now for was, now in zip(holds, over, strict=True) if not was.released),
    )


def expire_hold(desk: Desk, command: ExpireHold) -> Decision[Hold]:
    """Give back what remains of a hold whose time is over; another one is left alone."""
    (hold,) = desk.check_holds([command.hold_id])
    if hold.released or not desk.is_over(hold):
        return Decision((), hold)
    over = _give_back(desk, hold, HoldState.EXPIRED, "hold_id")
    return Decision(tuple(desk.postings), over, (over,))


def _set_aside(desk: Desk, hold: Hold, amount: int, reason: str, where: str) -> None:
    desk.post(hold.home, -amount, reason, hold.hold_id, where=where)
    desk.post(hold.account, amount, reason, hold.hold_id, where=where)


def _give_back(desk: Desk, hold: Hold, state: HoldState, where: str) -> Hold:
    reason = "release" if state is HoldState.RELEASED else "expire"
    if hold.remaining:
        desk.post(hold.account, -hold.remaining, reason, hold.hold_id, where=where)
        desk.post(hold.home, hold.remaining, reason, hold.hold_id, where=where)
    return replace(hold, remaining=0, state=state, given_back=hold.remaining)


def _check_open(desk: Desk, holds: Iterable[Hold]) -> None:
    over = [hold.hold_id for hold in holds if desk.is_over(hold)]
    if over:
        raise HoldNotOpen(over, "hold_ids")


def _prolonged(desk: Desk, holds: Iterable[Hold], lifetime_seconds: int) -> list[Hold]:
    until_us = desk.expiry_us(lifetime_seconds)
    return [
        hold
        if hold.expires_at_us is None or hold.expires_at_us >= until_us
        else replace(hold, expires_at_us=until_us)
        for hold in holds
    ]


def _changed(before: Sequence[Hold], after: Sequence[Hold]) -> Decision[tuple[Hold, ...]]:
    changed = tuple(now for was, now in zip(before, after, strict=True) if now != was)
    return Decision((), tuple(after), changed)
