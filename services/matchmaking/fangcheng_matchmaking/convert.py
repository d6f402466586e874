"""Between the contracts and the core."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256

from google.protobuf.timestamp_pb2 import Timestamp

from fangcheng.matchmaking.v1 import matchmaking_pb2, operations_pb2, rooms_pb2
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import operators_pb2, records_pb2, state_pb2, table_pb2
from fangcheng.wallet.v1 import settlement_pb2

from .board import View
from .core import Away, Fee, Match, MatchSeat, Mode, OptionValue, Pool, Terms, TicketState
from .rooms import Room, RoomState, Template
from .store import Apart, FinishedHand, Pause

AWAY_POLICIES: dict[Away, state_pb2.AwayPolicy.ValueType] = {
    "escape": state_pb2.AWAY_POLICY_ESCAPE,
    "trustee_to_end": state_pb2.AWAY_POLICY_TRUSTEE_TO_END,
}

_STATES = {
    TicketState.WAITING: matchmaking_pb2.TICKET_STATE_WAITING,
    TicketState.MATCHED: matchmaking_pb2.TICKET_STATE_MATCHED,
    TicketState.ASSIGNED: matchmaking_pb2.TICKET_STATE_ASSIGNED,
    TicketState.LEFT: matchmaking_pb2.TICKET_STATE_LEFT,
    TicketState.FAILED: matchmaking_pb2.TICKET_STATE_FAILED,
    # To its player it is a ticket that brought him to a table.
    TicketState.ENDED: matchmaking_pb2.TICKET_STATE_ASSIGNED,
}
_SEATED = frozenset({TicketState.ASSIGNED, TicketState.ENDED})


_ROOM_STATES = {
    RoomState.OPEN: rooms_pb2.ROOM_STATE_OPEN,
    RoomState.STARTING: rooms_pb2.ROOM_STATE_STARTING,
    RoomState.PLAYING: rooms_pb2.ROOM_STATE_PLAYING,
    RoomState.CLOSED: rooms_pb2.ROOM_STATE_CLOSED,
}
_MODES = {
    Mode.CASUAL: matchmaking_pb2.POOL_MODE_CASUAL,
    Mode.RANKED: matchmaking_pb2.POOL_MODE_RANKED,
    Mode.ANTI_CHEAT: matchmaking_pb2.POOL_MODE_ANTI_CHEAT,
    Mode.PRACTICE: matchmaking_pb2.POOL_MODE_PRACTICE,
}
_TABLE_MODES = {
    Mode.CASUAL: table_pb2.TABLE_MODE_CASUAL,
    Mode.RANKED: table_pb2.TABLE_MODE_RANKED,
    Mode.ANTI_CHEAT: table_pb2.TABLE_MODE_ANTI_CHEAT,
    Mode.PRACTICE: table_pb2.TABLE_MODE_PRACTICE,
}


def ticket(view: View, player_id: str) -> matchmaking_pb2.Ticket:
    """A ticket as one of its players sees it."""
    ticket = view.ticket
    message = matchmaking_pb2.Ticket(
        ticket_id=ticket.ticket_id,
        pool_id=ticket.pool_id,
        revision=ticket.revision,
        player_id=ticket.player_id,
        party_ids=ticket.player_ids[1:],
        state=_STATES[ticket.state],
        queued=_timestamp(ticket.queued_ms),
        standby=ticket.standby,
    )
    if ticket.state is TicketState.WAITING:
        message.position = view.position
        if view.estimate_ms is not None:
            message.estimate_ms = min(view.estimate_ms, 2**32 - 1)
    if ticket.state in _SEATED:
        member = ticket.member(player_id)
        message.table_id = ticket.table_id or ""
        message.seat = 0 if member is None else member.seat or 0
        message.endpoint = ticket.endpoint or ""
    if ticket.problem is not None:
        message.problem.reason = ticket.problem.reason
        message.problem.message = ticket.problem.message
    return message


def pool(pool: Pool, waiting: int, pause: Pause | None) -> matchmaking_pb2.Pool:
    """A pool, how many players wait in it, and whether an operator has paused it."""
    message = matchmaking_pb2.Pool(
        pool_id=pool.pool_id,
        name=pool.name,
        revision=pool.revision,
        mode=_MODES[pool.mode],
        rules=rules(pool.terms),
        stakes=_stakes(pool.terms),
        fees=[_fee(fee) for fee in pool.terms.fees],
        hold_only=pool.terms.hold_only,
        hands=pool.terms.hands,
        rounds=pool.terms.rounds,
        starting_chips=pool.terms.starting_chips,
        least_client_version=pool.least_client_version,
        most_party=pool.most_party,
        fill_with_bots_after_ms=pool.fill_with_bots_after_ms,
        backfill=pool.backfill,
        waiting=waiting,
        paused=pause is not None,
        closed=pause is not None and pause.closed,
    )
    if pool.rating is not None:
        message.rating.currency = pool.rating.currency
        message.rating.book = pool.rating.book
        message.rating.spread = pool.rating.spread.points
        message.rating.widen_per_second = pool.rating.spread.widen_per_second
        if pool.rating.spread.widest is not None:
            message.rating.widest = pool.rating.spread.widest
    return message


def room_template(template: Template) -> rooms_pb2.RoomTemplate:
    """A kind of room."""
    terms = template.terms
    return rooms_pb2.RoomTemplate(
        template_id=template.template_id,
        name=template.name,
        rules=rules(terms),
        stakes=_stakes(terms),
        fees=[_fee(fee) for fee in terms.fees if not fee.by_owner],
        owner_fees=[_fee(fee) for fee in terms.fees if fee.by_owner],
        hold_only=terms.hold_only,
        hands=terms.hands,
        rounds=terms.rounds,
        starting_chips=terms.starting_chips,
        choices=[
            rooms_pb2.RoomChoice(option=name, values=[_option(value) for value in values])
            for name, values in template.choices.items()
        ],
    )


def room(room: Room) -> rooms_pb2.Room:
    """A room as those who are in it see it."""
    return rooms_pb2.Room(
        room_id=room.room_id,
        code=room.code,
        template_id=room.template_id,
        rules=rules(room.terms),
        state=_ROOM_STATES[room.state],
        owner_id=room.owner_id,
        guests=[
            rooms_pb2.RoomGuest(
                player_id=one.player_id, profile=one.profile, seat=one.seat, ready=one.ready
            )
            for one in room.guests
        ],
        expires=_timestamp(room.expires_ms),
        table_id=room.table_id or "",
        endpoint=room.endpoint or "",
        labels=dict(room.labels),
    )


def option_value(value: rules_pb2.OptionValue) -> OptionValue:
    """An option as somebody has chosen it; text where nothing is set."""
    kind = value.WhichOneof("value")
    if kind == "boolean":
        return value.boolean
    return value.integer if kind == "integer" else value.text


def barred(pair: Apart) -> operations_pb2.BarredPair:
    """A pair that an operator has barred."""
    return operations_pb2.BarredPair(
        player_id=pair.player_id,
        other_id=pair.other_id,
        reason=pair.reason,
        case_id=pair.case_id,
        time=_timestamp(pair.time_ms),
    )


_FEE = "fee"
"""The reason of a payment that is no loss."""


def finished_hand(hand: records_pb2.FinishedHand) -> FinishedHand:
    """A finished hand with its record, as far as players' standing goes."""
    ended = [event.hand_ended for event in hand.record.events if event.HasField("hand_ended")]
    dissolved = hand.entry.ending == "dissolved" or not ended
    lost: Counter[tuple[str, str, str]] = Counter()
    for event in hand.record.events:
        for payment in event.hand_settled.payments:
            if payment.reason == _FEE:
                continue
            if payment.HasField("from_seat"):
                payer = hand.entry.player_ids[payment.from_seat]
                lost[payer, payment.currency, payment.book] += payment.paid
            if payment.HasField("to_seat"):
                payee = hand.entry.player_ids[payment.to_seat]
                lost[payee, payment.currency, payment.book] -= payment.paid
    return FinishedHand(
        cursor=hand.cursor,
        table_id=hand.entry.table_id,
        number=hand.entry.hand_number,
        rule_set=hand.entry.rule_set,
        player_ids=tuple(hand.entry.player_ids),
        nets=() if dissolved else tuple(ended[-1].net),
        ended_ms=hand.entry.ended.ToMilliseconds(),
        labels=dict(hand.entry.labels),
        lost=tuple((*whose, amount) for whose, amount in lost.items() if amount),
    )


def traits(origin: matchmaking_pb2.Origin) -> frozenset[str]:
    """What tells that two players come from one place; digests, for it is nobody's to read."""
    return frozenset(
        sha256(f"{name} {value}".encode()).hexdigest()[:24]
        for name, value in (
            ("device", origin.device),
            ("address", origin.address),
            ("referrer", origin.referrer),
        )
        if value
    )


def rules(terms: Terms) -> rules_pb2.RuleSetChoice:
    """What is played, for pool and table alike."""
    return rules_pb2.RuleSetChoice(
        id=terms.rule_set, revision=terms.revision, options=_options(terms.options)
    )


def holds_request(match: Match) -> settlement_pb2.PlaceHoldsRequest:
    """The buy-ins of a match. Of one match it is always the same, and so is its key."""
    return settlement_pb2.PlaceHoldsRequest(
        request_id=match.match_id,
        holds=[
            settlement_pb2.HoldRequest(
                player_id=seat.player_id,
                currency=stake.currency,
                book=stake.book,
                amount=stake.buy_in,
            )
            for seat in match.seats
            for stake in match.terms.buy_ins
        ],
    )


def table_request(match: Match) -> table_pb2.CreateTableRequest:
    """The table of a match. Of one match it is always the same, and so is its key."""
    request = table_pb2.CreateTableRequest(
        request_id=match.match_id,
        rules=rules(match.terms),
        seats=[_assignment(seat) for seat in match.seats],
        stakes=[
            state_pb2.Stake(
                currency=stake.currency,
                book=stake.book,
                per_unit=stake.per_unit,
                minimum=stake.minimum,
                loss_cap=stake.loss_cap_per_hand,
            )
            for stake in match.terms.stakes
        ],
        fees=[
            state_pb2.TableFee(
                currency=fee.currency, book=fee.book, amount=fee.amount, seat=fee.seat
            )
            for fee in match.terms.fees
        ],
        hold_only=match.terms.hold_only,
        hands=match.terms.hands,
        rounds=match.terms.rounds,
        starting_chips=match.terms.starting_chips,
        labels=dict(match.labels),
        mode=_TABLE_MODES[match.mode] if match.mode else table_pb2.TABLE_MODE_ROOM,
        pool_id=match.pool_id,
    )
    for clock in fields(match.terms.timing):
        value = getattr(match.terms.timing, clock.name)
        if clock.name == "away" and value is not None:
            request.timing.away = AWAY_POLICIES[value]
        elif value is not None:
            setattr(request.timing, clock.name, value)
    return request


def seat_request(match: Match) -> operators_pb2.SeatPlayerRequest:
    """The seat that a match offers. Of one match it is always the same, and so is its key."""
    (player,) = match.seats
    return operators_pb2.SeatPlayerRequest(
        request_id=match.match_id,
        table_id=match.table_id or "",
        seat=match.seat or 0,
        player=_assignment(player),
        reason=f"from the queue of {match.pool_id}",
    )


def _assignment(seat: MatchSeat) -> table_pb2.SeatAssignment:
    return table_pb2.SeatAssignment(
        player_id=seat.player_id,
        profile=seat.profile,
        hold_ids=seat.hold_ids,
        is_bot=seat.is_bot,
    )


def _stakes(terms: Terms) -> list[matchmaking_pb2.PoolStake]:
    return [
        matchmaking_pb2.PoolStake(
            currency=stake.currency,
            book=stake.book,
            per_unit=stake.per_unit,
            buy_in=stake.buy_in,
            entry_minimum=stake.entry_minimum,
            minimum=stake.minimum,
            loss_cap_per_hand=stake.loss_cap_per_hand,
            loss_cap_per_day=stake.loss_cap_per_day,
        )
        for stake in terms.stakes
    ]


def _fee(fee: Fee) -> matchmaking_pb2.PoolFee:
    return matchmaking_pb2.PoolFee(currency=fee.currency, book=fee.book, amount=fee.amount)


def _timestamp(time_ms: int) -> Timestamp:
    time = Timestamp()
    time.FromMilliseconds(time_ms)
    return time


def _options(options: Mapping[str, OptionValue]) -> dict[str, rules_pb2.OptionValue]:
    return {key: _option(value) for key, value in options.items()}


def _option(value: OptionValue) -> rules_pb2.OptionValue:
    if isinstance(value, bool):
        return rules_pb2.OptionValue(boolean=value)
    if isinstance(value, int):
        return rules_pb2.OptionValue(integer=value)
    return rules_pb2.OptionValue(text=value)
