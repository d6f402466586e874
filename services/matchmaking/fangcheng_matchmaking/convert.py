"""Between the contracts and the core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from google.protobuf.timestamp_pb2 import Timestamp

from fangcheng.matchmaking.v1 import matchmaking_pb2
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import state_pb2, table_pb2
from fangcheng.wallet.v1 import settlement_pb2

from .core import Away, Match, OptionValue, Pool, Terms, Ticket, TicketState

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


def ticket(ticket: Ticket, position: int) -> matchmaking_pb2.Ticket:
    """A ticket as its player sees it; `position` 0 unless it waits."""
    queued = Timestamp()
    queued.FromMilliseconds(ticket.queued_ms)
    message = matchmaking_pb2.Ticket(
        ticket_id=ticket.ticket_id,
        pool_id=ticket.pool_id,
        player_id=ticket.player_id,
        state=_STATES[ticket.state],
        queued=queued,
        position=position if ticket.state is TicketState.WAITING else 0,
        standby=ticket.standby,
    )
    if ticket.state in _SEATED:
        message.table_id = ticket.table_id or ""
        message.seat = ticket.seat or 0
        message.endpoint = ticket.endpoint or ""
    if ticket.problem is not None:
        message.problem.reason = ticket.problem.reason
        message.problem.message = ticket.problem.message
    return message


def pool(pool: Pool, waiting: int) -> matchmaking_pb2.Pool:
    """A pool and how many players wait in it."""
    return matchmaking_pb2.Pool(
        pool_id=pool.pool_id,
        name=pool.name,
        rules=rules(pool.terms),
        stakes=[
            matchmaking_pb2.PoolStake(
                currency=stake.currency,
                book=stake.book,
                per_unit=stake.per_unit,
                buy_in=stake.buy_in,
            )
            for stake in pool.terms.stakes
        ],
        hands=pool.terms.hands,
        least_client_version=pool.least_client_version,
        fill_with_bots_after_ms=pool.fill_with_bots_after_ms,
        waiting=waiting,
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
        seats=[
            table_pb2.SeatAssignment(
                player_id=seat.player_id,
                profile=seat.profile,
                hold_ids=seat.hold_ids,
                is_bot=seat.is_bot,
            )
            for seat in match.seats
        ],
        stakes=[
            state_pb2.Stake(
                currency=stake.currency,
                book=stake.book,
                per_unit=stake.per_unit,
                minimum=stake.minimum,
            )
            for stake in match.terms.stakes
        ],
        hands=match.terms.hands,
        rounds=match.terms.rounds,
        starting_chips=match.terms.starting_chips,
        labels=dict(match.labels),
    )
    for clock in fields(match.terms.timing):
        value = getattr(match.terms.timing, clock.name)
        if clock.name == "away" and value is not None:
            request.timing.away = AWAY_POLICIES[value]
        elif value is not None:
            setattr(request.timing, clock.name, value)
    return request


def _options(options: Mapping[str, OptionValue]) -> dict[str, rules_pb2.OptionValue]:
    return {key: _option(value) for key, value in options.items()}


def _option(value: OptionValue) -> rules_pb2.OptionValue:
    if isinstance(value, bool):
        return rules_pb2.OptionValue(boolean=value)
    if isinstance(value, int):
        return rules_pb2.OptionValue(integer=value)
    return rules_pb2.OptionValue(text=value)
