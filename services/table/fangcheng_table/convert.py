"""Between the wire and the core: rule sets, options and tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng.table.v1 import operators_pb2, state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_rules.ruleset import OptionValue

from .errors import DuplicateFee
from .events import (
    AwayPolicy,
    Fee,
    SeatPlan,
    Stake,
    TableCreated,
    TableMode,
    TalkRules,
    Timing,
)
from .ids import READY, VOTE, table_question_id
from .state import Phase, TableState
from .store import OperatorAction

AWAY_POLICIES: dict[state_pb2.AwayPolicy.ValueType, AwayPolicy] = {
    state_pb2.AWAY_POLICY_ESCAPE: "escape",
    state_pb2.AWAY_POLICY_TRUSTEE_TO_END: "trustee_to_end",
}

MODES: dict[wire.TableMode.ValueType, TableMode] = {
    wire.TABLE_MODE_UNSPECIFIED: "",
    wire.TABLE_MODE_CASUAL: "casual",
    wire.TABLE_MODE_RANKED: "ranked",
    wire.TABLE_MODE_ANTI_CHEAT: "anti_cheat",
    wire.TABLE_MODE_PRACTICE: "practice",
    wire.TABLE_MODE_ROOM: "room",
}

MODES_TO_WIRE = {mode: wire_mode for wire_mode, mode in MODES.items()}

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
    return tuple(
        Stake(stake.currency, stake.book, stake.per_unit, stake.minimum, stake.loss_cap)
        for stake in stakes
    )


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
        reserve_ms=timing.reserve_ms,
        ready_ms=timing.ready_ms or usual.ready_ms,
        vote_ms=timing.vote_ms or usual.vote_ms,
        vacancy_ms=timing.vacancy_ms,
        away=AWAY_POLICIES.get(timing.away, usual.away),
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
        "stakes": [
            [stake.currency, stake.book, stake.per_unit, *_later_of_stake(stake)]
            for stake in request.stakes
        ],
        "hands": request.hands,
        "timing": [
            timing.turn_ms,
            timing.claim_ms,
            timing.before_deal_ms,
            timing.claim_window_ms if timing.HasField("claim_window_ms") else None,
            timing.between_hands_ms if timing.HasField("between_hands_ms") else None,
            timing.away_grace_ms,
            *_later(timing),
        ],
        "labels": sorted(request.labels.items()),
    }
    # What came into the contract later is left out where it is not used: a request of before is
    # still the same. Mode and pool are left out always: the table is the same one under each.
    if request.fees:
        body["fees"] = [
            [fee.seat if fee.HasField("seat") else None, fee.currency, fee.book, fee.amount]
            for fee in request.fees
        ]
    if request.hold_only:
        body["hold_only"] = True
    if request.rounds:
        body["rounds"] = request.rounds
    if request.starting_chips:
        body["starting_chips"] = request.starting_chips
    if request.HasField("talk"):
        talk = request.talk
        body["talk"] = [talk.off, talk.phrases_only, talk.spectators]
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _later_of_stake(stake: state_pb2.Stake) -> list[int]:
    """What came into the contract later, as far as it is used."""
    if stake.loss_cap:
        return [stake.minimum, stake.loss_cap]
    return [stake.minimum] if stake.minimum else []


def _later(timing: state_pb2.Timing) -> list[object]:
    clocks = [
        ["reserve_ms", timing.reserve_ms],
        ["ready_ms", timing.ready_ms],
        ["vote_ms", timing.vote_ms],
        ["vacancy_ms", timing.vacancy_ms],
        ["away", timing.away],
    ]
    return [clock for clock in clocks if clock[1]]


def table_as_created(created: TableCreated) -> state_pb2.Table:
    """A table at its beginning, as everybody may see it; without its endpoint."""
    timing = created.timing
    table = state_pb2.Table(
        table_id=created.table_id,
        rules=choice_to_wire(created.rule_set, created.revision, created.options),
        phase=state_pb2.TABLE_PHASE_BETWEEN_HANDS,
        hands=created.hands,
        seats=[
            state_pb2.Seat(
                seat=number,
                player_id=plan.player_id,
                profile=plan.profile,
                chips=created.starting_chips,
            )
            for number, plan in enumerate(created.seats)
        ],
        stakes=[
            state_pb2.Stake(
                currency=stake.currency,
                book=stake.book,
                per_unit=stake.per_unit,
                minimum=stake.minimum,
                loss_cap=stake.loss_cap,
            )
            for stake in created.stakes
        ],
        timing=state_pb2.Timing(
            turn_ms=timing.turn_ms,
            claim_ms=timing.claim_ms,
            before_deal_ms=timing.before_deal_ms,
            claim_window_ms=timing.claim_window_ms,
            between_hands_ms=timing.between_hands_ms,
            away_grace_ms=timing.away_grace_ms,
            reserve_ms=timing.reserve_ms,
            ready_ms=timing.ready_ms,
            vote_ms=timing.vote_ms,
            vacancy_ms=timing.vacancy_ms,
            away=next(wire for wire, away in AWAY_POLICIES.items() if away == timing.away),
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
        rounds=created.rounds,
        starting_chips=created.starting_chips,
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
    table.pool_id = state.created.pool_id
    table.phase = PHASES[state.phase]
    table.hand_number = state.hand_number
    table.dealer = state.dealer
    table.closed_reason = state.closed
    if state.checking and not state.closed:
        table.ready_check = table_question_id(READY, state.checks)
    if (vote := state.vote) is not None and vote.is_open and not state.closed:
        table.vote.decision_id = table_question_id(VOTE, vote.number)
        table.vote.seat = vote.seat
        table.vote.agreed.extend(sorted(seat for seat, agrees in vote.answers.items() if agrees))
    for shown, seat in zip(table.seats, state.seats, strict=True):
        shown.player_id, shown.profile = seat.plan.player_id, seat.plan.profile
        shown.ready = seat.ready
        if state.created.starting_chips:
            shown.chips = state.created.starting_chips + seat.standing
        shown.connected = seat.connected
        shown.trustee = seat.trustee
        shown.standing = seat.standing
        shown.is_bot = seat.plan.is_bot
        # One that leaves at once may wait for a claim that nobody may know of.
        shown.leaving = seat.leaving == "after_hand"
    return table


def hide_from_players(table: state_pb2.Table) -> None:
    """Leave in a table what everybody may see."""
    table.ClearField("pool_id")
    for seat in table.seats:
        seat.ClearField("is_bot")


def operator_action_to_wire(action: OperatorAction) -> operators_pb2.OperatorAction:
    """An entry of the operators' log."""
    message = operators_pb2.OperatorAction(
        table_id=action.table_id,
        request_id=action.action_id.removeprefix(f"{action.table_id}/"),
        operator=action.operator,
        verb=action.verb,
        reason=action.reason,
        case_id=action.case_id,
        detail=action.detail,
    )
    message.time.FromMilliseconds(action.time_ms)
    return message
