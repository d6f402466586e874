"""Between the wire and the core."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import cast

from google.protobuf.message import Message

from fangcheng.evaluation.v1 import evaluation_pb2 as evaluation
from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.wallet.v1 import settlement_pb2 as wallet
from fangcheng_rules.actions import Action, ActionKind
from fangcheng_rules.analysis import Analysis, DiscardChoice, KongChoice, Reading, Shape, Wait
from fangcheng_rules.errors import InvalidTile
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.ruleset import OptionValue, RuleSet
from fangcheng_rules.scoring import (
    Draw,
    EightFlowers,
    Escape,
    FanCount,
    FinishedHand,
    LoserScore,
    Score,
    Transfer,
    TransferReason,
    Win,
    WinnerScore,
)
from fangcheng_rules.tiles import code, from_code

from .errors import DuplicateFee, NotOffered
from .events import Fee, Payment, SeatPlan, Stake, TableCreated, Timing
from .ids import BACK, TRUSTEE
from .settlement import Settlement
from .state import Phase, TableState

FEE = "fee"
"""The reason of the payment of a fee."""

PHASES: dict[Phase, wire.TablePhase.ValueType] = {
    "before_deal": wire.TABLE_PHASE_BEFORE_DEAL,
    "playing": wire.TABLE_PHASE_PLAYING,
    "between_hands": wire.TABLE_PHASE_BETWEEN_HANDS,
    "closed": wire.TABLE_PHASE_CLOSED,
}

# Rule sets and options.


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


# Tables.


def seats_from_wire(seats: Iterable[wire.SeatAssignment]) -> tuple[SeatPlan, ...]:
    """Who sits where."""
    return tuple(
        SeatPlan(seat.player_id, seat.profile, tuple(seat.hold_ids), seat.is_bot) for seat in seats
    )


def stakes_from_wire(stakes: Iterable[wire.Stake]) -> tuple[Stake, ...]:
    """What a unit is worth."""
    return tuple(Stake(stake.currency, stake.book, stake.per_unit) for stake in stakes)


def fees_from_wire(fees: Iterable[wire.TableFee]) -> tuple[Fee, ...]:
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


def timing_from_wire(timing: wire.Timing, *, bots_only: bool) -> Timing:
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
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def table_as_created(created: TableCreated) -> wire.Table:
    """A table at its beginning, as everybody may see it; without its endpoint."""
    timing = created.timing
    table = wire.Table(
        table_id=created.table_id,
        rules=choice_to_wire(created.rule_set, created.revision, created.options),
        phase=wire.TABLE_PHASE_BETWEEN_HANDS,
        hands=created.hands,
        seats=[
            wire.Seat(seat=number, player_id=plan.player_id, profile=plan.profile)
            for number, plan in enumerate(created.seats)
        ],
        stakes=[
            wire.Stake(currency=stake.currency, book=stake.book, per_unit=stake.per_unit)
            for stake in created.stakes
        ],
        timing=wire.Timing(
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
            wire.TableFee(seat=fee.seat, currency=fee.currency, book=fee.book, amount=fee.amount)
            for fee in created.fees
        ],
        hold_only=created.hold_only,
    )
    table.created.FromMilliseconds(created.created_ms)
    return table


def table_to_wire(state: TableState) -> wire.Table:
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


# Acts.


def action_to_wire(action: Action) -> wire.Action:
    """An action as a prompt offers it."""
    return wire.Action(
        kind=action.kind,
        tile=0 if action.tile is None else code(action.tile),
        tiles=[code(tile) for tile in action.tiles],
        meld=action.meld or "",
        declare=action.declare,
        amount=action.amount,
    )


def hands_over(action: wire.Action) -> bool:
    """Whether a player asks the table to play for the seat. Raises `NotOffered`."""
    if action.kind != TRUSTEE:
        return False
    _bare(action)
    return True


def _bare(action: wire.Action) -> None:
    if action != wire.Action(kind=action.kind):
        raise NotOffered(f"{action.kind} has no other field.")


def action_from_wire(action: wire.Action) -> Action | None:
    """What a player answers; None for taking the seat back. Raises `NotOffered`."""
    if action.kind == BACK:
        _bare(action)
        return None
    try:
        return Action(
            # One that nobody knows equals no action that was offered.
            kind=cast(ActionKind, action.kind),
            tile=from_code(action.tile, "action.tile") if action.tile else None,
            tiles=tuple(from_code(tile, "action.tiles") for tile in action.tiles),
            declare=action.declare,
            amount=action.amount,
            meld=MeldKind(action.meld) if action.meld else None,
        )
    except InvalidTile as error:
        raise NotOffered(error.message, error.field or "action") from error
    except ValueError as error:
        raise NotOffered(f"There is no meld {action.meld}.", "action.meld") from error


# Hands and scores.


def meld_to_wire(meld: Meld) -> rules.Meld:
    """A meld, face up."""
    return rules.Meld(
        kind=meld.kind,
        tiles=[code(tile) for tile in meld.tiles],
        from_seat=meld.source,
        claimed_tile=0 if meld.claimed is None else code(meld.claimed),
        treasure=meld.treasure,
    )


def hand_to_wire(hand: Hand) -> evaluation.Hand:
    """A hand to be analysed."""
    return evaluation.Hand(
        concealed=[code(tile) for tile in hand.concealed],
        melds=[meld_to_wire(meld) for meld in hand.melds],
    )


def finished_to_wire(hand: FinishedHand) -> rules.FinishedHand:
    """A finished hand, everything shown."""
    message = rules.FinishedHand(
        dealer=hand.dealer,
        seats=[
            rules.SeatHand(
                concealed=[code(tile) for tile in seat.concealed or ()],
                melds=[meld_to_wire(meld) for meld in seat.melds],
                declared=seat.declared,
                piao=seat.piao,
                first_discard=0 if seat.first_discard is None else code(seat.first_discard),
                flowers=[code(tile) for tile in seat.flowers],
            )
            for seat in hand.seats
        ],
        drawn_hands_before=hand.drawn_hands_before,
        treasure=0 if hand.treasure is None else code(hand.treasure),
        false_wins=hand.false_wins,
    )
    match hand.end:
        case Win() as win:
            message.win.CopyFrom(
                rules.WinEnd(
                    winners=win.winners,
                    tile=code(win.tile),
                    by=win.by,
                    from_seat=win.source,
                    after_kong=win.after_kong or "",
                    kong_from_seat=win.kong_source,
                    discard_after_kong=win.discard_after_kong,
                    on_deal=win.on_deal,
                    after_flower=win.after_flower,
                    first_round=win.first_round,
                )
            )
        case Draw():
            message.draw.SetInParent()
        case Escape(seat):
            message.escape.seat = seat
        case EightFlowers(seat):
            message.eight_flowers.seat = seat
        case _:
            message.dissolved.reason = hand.end.reason
            message.dissolved.SetInParent()
    return message


def score_to_wire(score: Score, rule_set: RuleSet) -> rules.Score:
    """A score, its items with their names."""

    def items(counts: Iterable[FanCount]) -> list[rules.FanItem]:
        return [
            rules.FanItem(
                id=count.id,
                name_zh=rule_set.items[count.id].name_zh,
                name_en=rule_set.items[count.id].name_en,
                fan=count.fan,
                count=count.count,
            )
            for count in counts
        ]

    return rules.Score(
        winners=[
            rules.WinnerScore(
                seat=winner.seat,
                items=items(winner.items),
                fan=winner.fan,
                flat=winner.flat or 0,
                reading=reading_to_wire(winner.reading),
                flower_points=winner.flower_points,
                multiplier=winner.multiplier,
            )
            for winner in score.winners
        ],
        losers=[
            rules.LoserScore(
                seat=loser.seat,
                winner=loser.winner,
                items=items(loser.items),
                fan=loser.fan,
                amount=loser.amount,
                multiplier=loser.multiplier,
                capped=loser.capped,
            )
            for loser in score.losers
        ],
        transfers=[
            rules.Transfer(
                from_seat=transfer.source,
                to_seat=transfer.target,
                amount=transfer.amount,
                reason=transfer.reason,
            )
            for transfer in score.transfers
        ],
    )


def score_from_wire(score: rules.Score) -> Score:
    """What an evaluator answered."""

    def items(counts: Iterable[rules.FanItem]) -> tuple[FanCount, ...]:
        return tuple(FanCount(item.id, item.fan, item.count) for item in counts)

    return Score(
        winners=tuple(
            WinnerScore(
                seat=winner.seat,
                items=items(winner.items),
                fan=winner.fan,
                flat=winner.flat or None,
                reading=reading_from_wire(winner.reading),
                flower_points=winner.flower_points,
                multiplier=winner.multiplier,
            )
            for winner in score.winners
        ),
        losers=tuple(
            LoserScore(
                loser.seat,
                loser.winner,
                items(loser.items),
                loser.fan,
                loser.amount,
                loser.multiplier,
                loser.capped,
            )
            for loser in score.losers
        ),
        transfers=tuple(
            Transfer(
                source=_seat(transfer, "from_seat"),
                target=_seat(transfer, "to_seat"),
                amount=transfer.amount,
                # The evaluator's word for it, which is passed on.
                reason=cast(TransferReason, transfer.reason),
            )
            for transfer in score.transfers
        ),
    )


def reading_to_wire(reading: Reading) -> rules.Reading:
    """How a hand was read."""
    return rules.Reading(
        shape=reading.shape,
        sets=[rules.TileSet(tiles=[code(tile) for tile in tiles]) for tiles in reading.sets],
    )


def reading_from_wire(reading: rules.Reading) -> Reading:
    """How a hand was read."""
    return Reading(
        shape=cast(Shape, reading.shape),  # the evaluator's word for it, which is passed on
        sets=tuple(tuple(from_code(tile) for tile in entry.tiles) for entry in reading.sets),
    )


def _seat(message: Message, field: str) -> int | None:
    return getattr(message, field) if message.HasField(field) else None


def _waits(waits: Iterable[evaluation.Wait]) -> tuple[Wait, ...]:
    return tuple(Wait(from_code(wait.tile), wait.least_fan, wait.least_units) for wait in waits)


def _kongs(choices: Iterable[evaluation.KongChoice]) -> tuple[KongChoice, ...]:
    return tuple(
        KongChoice(from_code(choice.tile), MeldKind(choice.kind), _waits(choice.waits))
        for choice in choices
    )


def analysis_from_wire(analysis: evaluation.Analysis) -> Analysis:
    """What an evaluator answered, as far as a hand is played by it."""
    return Analysis(
        wins=analysis.wins,
        waits=_waits(analysis.waits),
        discards=tuple(
            DiscardChoice(
                from_code(choice.tile),
                _waits(choice.waits),
                claim_kongs=_kongs(choice.claim_kongs),
            )
            for choice in analysis.discards
        ),
        kongs=_kongs(analysis.kongs),
        claim_kongs=_kongs(analysis.claim_kongs),
    )


# Settlements.


def settle_request(settlement: Settlement, labels: Mapping[str, str]) -> wallet.SettleRequest:
    """The request that settles a hand."""
    place = {seat: index for index, (seat, _) in enumerate(settlement.parties)}
    return wallet.SettleRequest(
        key=settlement.key,
        parties=[
            wallet.SettlementParty(player_id=plan.player_id, hold_ids=plan.hold_ids)
            for _, plan in settlement.parties
        ],
        transfers=[
            wallet.SettlementTransfer(
                currency=posting.currency,
                book=posting.book,
                from_party=None if posting.source is None else place[posting.source],
                to_party=None if posting.target is None else place[posting.target],
                amount=posting.amount,
                reason=posting.reason,
            )
            for posting in settlement.postings
        ],
        labels=labels,
        fees=[
            wallet.SettlementFee(
                party=place[fee.seat], currency=fee.currency, book=fee.book, amount=fee.amount
            )
            for fee in settlement.fees
        ],
        hold_only=settlement.hold_only,
    )


def payments_from_wire(settled: wallet.Settlement, settlement: Settlement) -> tuple[Payment, ...]:
    """What was paid, in seats instead of parties; fees last, to the house."""
    seats = [seat for seat, _ in settlement.parties]

    def seat(transfer: wallet.SettlementTransfer, field: str) -> int | None:
        party = _seat(transfer, field)
        return None if party is None else seats[party]

    return tuple(
        Payment(
            currency=item.transfer.currency,
            book=item.transfer.book,
            source=seat(item.transfer, "from_party"),
            target=seat(item.transfer, "to_party"),
            due=item.transfer.amount,
            paid=item.paid,
            reason=item.transfer.reason,
        )
        for item in settled.transfers
    ) + tuple(
        Payment(
            currency=item.fee.currency,
            book=item.fee.book,
            source=seats[item.fee.party],
            target=None,
            due=item.fee.amount,
            paid=item.paid,
            reason=FEE,
        )
        for item in settled.fees
    )


def payment_to_wire(payment: Payment) -> wire.SettledPayment:
    """A payment as viewers see it."""
    return wire.SettledPayment(
        currency=payment.currency,
        book=payment.book,
        from_seat=payment.source,
        to_seat=payment.target,
        due=payment.due,
        paid=payment.paid,
        reason=payment.reason,
    )
