"""Between what a client was sent and what a player of `fangcheng_rules.players` looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client.view import FACE_DOWN, SeatView, TableView
from fangcheng_rules.actions import Action, ActionKind, Prompt, PromptKind
from fangcheng_rules.analysis import Analysis, DiscardChoice, Wait
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.players import SeatSeen, Situation
from fangcheng_rules.ruleset import OptionValue
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.tiles import code, from_code

PROMPT_KINDS: Mapping[str, PromptKind] = {
    "before_deal": "piao",
    "turn": "turn",
    "claim": "claim",
    "dealt_out": "dealt_out",
}


def situation_from(view: TableView, analyse: Callable[[Hand], Analysis]) -> Situation:
    """What the viewer's seat knows; raises ValueError for a spectator's view, and RulesError for
    a rule set that is not known here.
    """
    if view.own_seat is None:
        raise ValueError("a spectator has no seat")
    rules = rule_set(view.rules.id, view.rules.revision)
    claimed = view.last_discard
    return Situation(
        rule_set=rules,
        options=rules.complete(_options(view.rules.options)),
        own=view.own_seat,
        dealer=view.dealer,
        seats=[_seat(seat) for seat in view.seats],
        wall_left=view.wall_tiles,
        analyse=analyse,
        claimed=None if claimed is None else (claimed[0], from_code(claimed[1])),
        turned=_kinds(view.turned),
        treasure=from_code(view.treasure) if view.treasure else None,
    )


def prompt_from(message: events_pb2.Prompt) -> Prompt:
    """A prompt of a hand; its actions in the same order."""
    return Prompt(0, PROMPT_KINDS[message.kind], tuple(map(_action, message.actions)))


def hand_to_wire(hand: Hand) -> evaluation_pb2.Hand:
    """A hand to ask the evaluator about."""
    return evaluation_pb2.Hand(
        concealed=map(code, hand.concealed),
        melds=[
            rules_pb2.Meld(
                kind=meld.kind,
                tiles=map(code, meld.tiles),
                from_seat=meld.source,
                claimed_tile=0 if meld.claimed is None else code(meld.claimed),
                treasure=meld.treasure,
            )
            for meld in hand.melds
        ],
    )


def analysis_from(message: evaluation_pb2.Analysis) -> Analysis:
    """What players look at of an analysis with progress."""
    return Analysis(
        wins=message.wins,
        waits=_waits(message.waits),
        discards=tuple(
            DiscardChoice(
                from_code(choice.tile),
                _waits(choice.waits),
                choice.shanten,
                tuple(_kinds(choice.useful_tiles)),
            )
            for choice in message.discards
        ),
        shanten=message.shanten,
        useful=tuple(_kinds(message.useful_tiles)),
    )


def _waits(waits: Iterable[evaluation_pb2.Wait]) -> tuple[Wait, ...]:
    return tuple(Wait(from_code(wait.tile), wait.least_fan, wait.least_units) for wait in waits)


def _action(action: state_pb2.Action) -> Action:
    return Action(
        kind=cast(ActionKind, action.kind),
        tile=from_code(action.tile) if action.tile else None,
        tiles=tuple(_kinds(action.tiles)),
        declare=action.declare,
        amount=action.amount,
        meld=MeldKind(action.meld) if action.meld else None,
    )


def _seat(seat: SeatView) -> SeatSeen:
    melds = [_meld(meld) for meld in seat.melds if FACE_DOWN not in meld.tiles]
    return SeatSeen(
        river=_kinds(seat.river),
        melds=melds,
        hidden_kongs=len(seat.melds) - len(melds),
        declared=seat.declared,
        shown=sorted(_kinds(seat.concealed)),
        flowers=_kinds(seat.flowers),
    )


def _meld(meld: rules_pb2.Meld) -> Meld:
    return Meld(
        MeldKind(meld.kind),
        tuple(_kinds(meld.tiles)),
        meld.from_seat if meld.HasField("from_seat") else None,
        from_code(meld.claimed_tile) if meld.claimed_tile else None,
        meld.treasure,
    )


def _kinds(codes: Sequence[int]) -> list[int]:
    return [from_code(one) for one in codes if one != FACE_DOWN]


def _options(options: Mapping[str, rules_pb2.OptionValue]) -> dict[str, OptionValue]:
    return {
        key: getattr(option, option.WhichOneof("value") or "text")
        for key, option in options.items()
    }
