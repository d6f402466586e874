"""Between the wire and the core: rule sets, options and tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_rules.ruleset import OptionValue

from .errors import DuplicateFee
from .events import Fee, SeatPlan, Stake, TableCreated, TalkRules, Timing
from .state import Phase, TableState

PHASES: dict[Phase, state_pb2.TablePhase.ValueType] = {
    "before_deal": state_pb2.TABLE_PHASE_BEFORE_DEAL,
    "playing": state_pb2.TABLE_PHASE_PLAYING,
    "between_hands": state_pb2.TABLE_PHASE_BETWEEN_HANDS,
    "closed": state_pb2.TABLE_PHASE_CLOSED,
}


def options_from_wire(options: Mapping[str, rules.OptionValue]) -> dict[str, OptionValue]:
    """The options that a choice names."""
    values: dict[str, OptionValue] = {}
    for key, option in options.items():
        match option.WhichOneof("value"):
            case "boolean":
                values[key] = option.boolean
            case "integer":
                values[key] = option.integer
            case _:
                values[key] = option.text
    return values


def choice_to_wire(
    rule_set: str, revision: int, options: Mapping[str, OptionValue]
) -> rules.RuleSetChoice:
    """A rule set with all its options."""
    choice = rules.RuleSetChoice(id=rule_set, revision=revision)
    for key, value in sorted(options.items()):
        if isinstance(value, bool):
            choice.options[key].boolean = value
        elif isinstance(value, int):
            choice.options[key].integer = value
        else:
            choice.options[key].text = value
    return choice


def seats_from_wire(seats: Iterable[wire.SeatAssignment]) -> tuple[SeatPlan, ...]:
    """Who sits where."""
    return tuple(
        SeatPlan(seat.player_id, seat.profile, tuple(seat.hold_ids), seat.is_bot) for seat in seats
    )


def stakes_from_wire(stakes: Iterable[state_pb2.Stake]) -> tuple[Stake, ...]:
    """What a unit is worth."""
    return tuple(Stake(stake.currency, stake.book, stake.per_unit) for stake in stakes)


def fees_from_wire(fees: Iterable[state_pb2.TableFee]) -> tuple[Fee, ...]:
    """What the table costs; raises `DuplicateFee`."""
    found: list[Fee] = []
    for number, fee in enumerate(fees):
        seat = fee.seat if fee.HasField("seat") else None
        for other in found:
            if (other.currency, other.book) == (fee.currency, fee.book) and (
                seat is None or other.seat in (None, seat)
            ):
                raise DuplicateFee(f"fees[{number}]")
        found.append(Fee(seat, fee.currency, fee.book, fee.amount))
    return tuple(found)


def timing_from_wire(timing: state_pb2.Timing, *, bots_only: bool) -> Timing:
    """The clocks, defaults filled in as the contract says."""
    usual = Timing()
    window_ms = 0 if bots_only else usual.claim_window_ms
    pause_ms = usual.between_hands_ms
    if timing.HasField("claim_window_ms"):
        window_ms = timing.claim_window_ms
    if timing.HasField("between_hands_ms"):
        pause_ms = timing.between_hands_ms
    return Timing(
        turn_ms=timing.turn_ms or usual.turn_ms,
        claim_ms=timing.claim_ms or usual.claim_ms,
        before_deal_ms=timing.before_deal_ms or usual.before_deal_ms,
        claim_window_ms=window_ms,
        between_hands_ms=pause_ms,
        away_grace_ms=timing.away_grace_ms or usual.away_grace_ms,
    )


def talk_from_wire(talk: state_pb2.TalkRules) -> TalkRules:
    """What may be said at a table."""
    return TalkRules(talk.off, talk.phrases_only, talk.spectators)


def canonical(request: wire.CreateTableRequest) -> str:
    """What a caller asked for, so that equal requests are equal texts.

    Made from the fields, since the bytes of a message may differ between writers.
    """
    timing = request.timing
    body = {
        "rules": [
            request.rules.id,
            request.rules.revision,
            sorted(options_from_wire(request.rules.options).items()),
        ],
        "seats": [
            [seat.player_id, seat.profile.hex(), list(seat.hold_ids), seat.is_bot]
            for seat in request.seats
        ],
        "stakes": [[stake.currency, stake.book, stake.per_unit] for stake in request.stakes],
        "hands": request.hands,
        "timing": [
            timing.turn_ms,
            timing.claim_ms,
            timing.before_deal_ms,
            timing.claim_window_ms if timing.HasField("claim_window_ms") else None,
            timing.between_hands_ms if timing.HasField("between_hands_ms") else None,
            timing.away_grace_ms,
        ],
        "labels": sorted(request.labels.items()),
    }
    # What came into the contract later is left out where it is not used: a request of before is
    # still the same.
    if request.fees:
        body["fees"] = [
            [fee.seat if fee.HasField("seat") else None, fee.currency, fee.book, fee.amount]
            for fee in request.fees
        ]
    if request.hold_only:
        body["hold_only"] = True
    if request.HasField("talk"):
        talk = request.talk
        body["talk"] = [talk.off, talk.phrases_only, talk.spectators]
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def table_as_created(created: TableCreated) -> state_pb2.Table:
    """A table at its beginning, as everybody may see it; without its endpoint."""
    timing = created.timing
    table = state_pb2.Table(
        table_id=created.table_id,
        rules=choice_to_wire(created.rule_set, created.revision, created.options),
        phase=state_pb2.TABLE_PHASE_BETWEEN_HANDS,
        hands=created.hands,
        seats=[
            state_pb2.Seat(seat=number, player_id=plan.player_id, profile=plan.profile)
            for number, plan in enumerate(created.seats)
        ],
        stakes=[
            state_pb2.Stake(currency=stake.currency, book=stake.book, per_unit=stake.per_unit)
            for stake in created.stakes
        ],
        timing=state_pb2.Timing(
            turn_ms=timing.turn_ms,
            claim_ms=timing.claim_ms,
            before_deal_ms=timing.before_deal_ms,
            claim_window_ms=timing.claim_window_ms,
            between_hands_ms=timing.between_hands_ms,
            away_grace_ms=timing.away_grace_ms,
        ),
        labels=created.labels,
        commitment=created.commitment,
        fees=[
            state_pb2.TableFee(
                seat=fee.seat, currency=fee.currency, book=fee.book, amount=fee.amount
            )
            for fee in created.fees
        ],
        hold_only=created.hold_only,
        talk=state_pb2.TalkRules(
            off=created.talk.off,
            phrases_only=created.talk.phrases_only,
            spectators=created.talk.spectators,
        ),
    )
    table.created.FromMilliseconds(created.created_ms)
    return table


def table_to_wire(state: TableState) -> state_pb2.Table:
    """A table as it stands, for operators and services; without its endpoint."""
    table = table_as_created(state.created)
    table.phase = PHASES[state.phase]
    table.hand_number = state.hand_number
    table.dealer = state.dealer
    table.closed_reason = state.closed
    for shown, seat in zip(table.seats, state.seats, strict=True):
        shown.connected = seat.connected
        shown.trustee = seat.trustee
        shown.standing = seat.standing
        shown.is_bot = seat.plan.is_bot
        # One that leaves at once may wait for a claim that nobody may know of.
        shown.leaving = seat.leaving == "after_hand"
    return table
