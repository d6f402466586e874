"""What operators do at a table, each once for its request id, and seen by all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import (
    DuplicatePlayer,
    HandIsDecided,
    NotAtTable,
    RequestIdReused,
    SatBefore,
    SeatIsTaken,
    StaleHand,
    TableIsClosed,
)
from .events import OperatorActed, PlayerSeated, SeatPlan, Verb

if TYPE_CHECKING:
    from .core import Table


@dataclass(frozen=True, slots=True)
class Order:
    """Who wants something, and why."""

    request_id: str
    operator: str
    reason: str
    case_id: str


def remove(table: Table, order: Order, player_id: str) -> bool:
    """Take a player from the table without a penalty; whether it was a repeat.

    The table plays for the seat until the hand in play has ended. Raises NotAtTable, TableIsClosed
    or RequestIdReused.
    """
    seat = table.state.seat_of(player_id)
    if _is_repeat(table, order, "remove", player_id):
        return True
    if seat is None:
        raise NotAtTable(player_id)
    _open(table)
    _act(table, order, "remove", player_id, seat)
    table.detach(seat)
    table.set_trustee(seat, True, "removed")
    return False


def void_hand(table: Table, order: Order, hand_number: int) -> bool:
    """Dissolve the hand in play: nothing of it is paid, and the table goes on; as `remove`.

    Raises StaleHand, HandIsDecided or RequestIdReused.
    """
    state = table.state
    if _is_repeat(table, order, "void_hand", str(hand_number)):
        return True
    if hand_number != state.hand_number:
        raise StaleHand(hand_number, state.hand_number)
    hand = state.in_play
    if hand is None or hand.end is not None:
        raise HandIsDecided(hand_number)
    _act(table, order, "void_hand", str(hand_number))
    table.dissolve(order.reason)
    return False


def close_table(table: Table, order: Order, *, after_hand: bool) -> bool:
    """Close the table; the hand in play is dissolved, or ends first; as `remove`.

    Raises TableIsClosed or RequestIdReused.
    """
    when = "after_hand" if after_hand else "now"
    if _is_repeat(table, order, "close_table", when):
        return True
    _open(table)
    _act(table, order, "close_table", when)
    if not after_hand:
        table.dissolve(order.reason)
    return False


def seat_player(table: Table, order: Order, seat: int, plan: SeatPlan) -> bool:
    """Give a seat whose player has left to another; as `remove`.

    Raises SeatIsTaken, SatBefore, DuplicatePlayer (a hold), TableIsClosed or RequestIdReused.
    """
    state = table.state
    detail = repr((seat, plan.player_id, plan.profile, plan.hold_ids, plan.is_bot))
    if _is_repeat(table, order, "seat_player", detail):
        return True
    _open(table)
    if not state.seats[seat].vacant:
        raise SeatIsTaken(seat)
    if state.has_sat(plan.player_id):
        raise SatBefore(plan.player_id)
    for hold_id in plan.hold_ids:
        if hold_id in state.hold_ids:
            raise DuplicatePlayer(f"Hold {hold_id}", "player.hold_ids")
    _act(table, order, "seat_player", detail, seat)
    table.tell(PlayerSeated(seat, plan))
    return False


def reveal(table: Table, order: Order) -> int:
    """Let an operator see all tiles of the hand in play, or of the next one: the hand's number.

    Noted once for each hand, by a request id of its own. Nobody at the table is told before the
    record is. Raises TableIsClosed or RequestIdReused.
    """
    _open(table)
    state = table.state
    hand = state.hand_number + (state.in_play is None)
    if not _is_repeat(table, order, "reveal", str(hand)):
        _act(table, order, "reveal", str(hand))
    return hand


def _open(table: Table) -> None:
    if table.state.closed:
        raise TableIsClosed


def _is_repeat(table: Table, order: Order, verb: Verb, detail: str) -> bool:
    before = table.state.orders.get(order.request_id)
    if before is None:
        return False
    if before != _acted(order, verb, detail).fingerprint:
        raise RequestIdReused(order.request_id)
    return True


def _act(table: Table, order: Order, verb: Verb, detail: str, seat: int | None = None) -> None:
    table.tell(_acted(order, verb, detail, seat))


def _acted(order: Order, verb: Verb, detail: str, seat: int | None = None) -> OperatorActed:
    return OperatorActed(
        action_id=order.request_id,
        verb=verb,
        operator=order.operator,
        reason=order.reason,
        case_id=order.case_id,
        seat=seat,
        detail=detail,
    )
