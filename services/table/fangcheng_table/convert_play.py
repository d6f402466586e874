"""Between the wire and the core: what is played, and what an evaluator is asked and answers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import cast

from google.protobuf.message import Message

from fangcheng.evaluation.v1 import evaluation_pb2 as evaluation
from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng.table.v1 import state_pb2
from fangcheng_rules.actions import Action, ActionKind
from fangcheng_rules.analysis import Analysis, DiscardChoice, KongChoice, Reading, Shape, Wait
from fangcheng_rules.errors import InvalidTile
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.ruleset import RuleSet
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

from .errors import NotOffered
from .ids import BACK, TRUSTEE


@cache
def action_to_wire(action: Action) -> state_pb2.Action:
    """An action as a prompt offers it; made once, to be put into messages, which copy it."""
    return state_pb2.Action(
        kind=action.kind,
        tile=0 if action.tile is None else code(action.tile),
        tiles=[code(tile) for tile in action.tiles],
        meld=action.meld or "",
        declare=action.declare,
        amount=action.amount,
    )


def hands_over(action: state_pb2.Action) -> bool:
    """Whether a player asks the table to play for the seat. Raises `NotOffered`."""
    if action.kind != TRUSTEE:
        return False
    _bare(action)
    return True


def _bare(action: state_pb2.Action) -> None:
    if action != state_pb2.Action(kind=action.kind):
        raise NotOffered(f"{action.kind} has no other field.")


def word_from_wire(action: state_pb2.Action) -> str:
    """What a seat says to a question of all seats. Raises `NotOffered`."""
    _bare(action)
    return action.kind


def action_from_wire(action: state_pb2.Action) -> Action | None:
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

    # The evaluation service has its own of this: services do not import each other, and what they
    # share (`fangcheng_kit`) knows no rules.
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
