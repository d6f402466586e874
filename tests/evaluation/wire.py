"""Golden hands as messages. Written apart from the service's own conversion, so that the two can
disagree."""

from __future__ import annotations

from fangcheng.evaluation.v1 import evaluation_pb2 as ev
from fangcheng.rules.v1 import rules_pb2
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld
from fangcheng_rules.notation import parse_hand
from fangcheng_rules.scoring import Dissolved, Draw, EightFlowers, Escape, FinishedHand, Win
from fangcheng_rules.tiles import code
from tests.rules.golden import GoldenHand

KELE = rules_pb2.RuleSetChoice(id="baishan_kele")


def choice(options: dict[str, object], rule_set: str = "baishan_kele") -> rules_pb2.RuleSetChoice:
    message = rules_pb2.RuleSetChoice(id=rule_set)
    for key, value in options.items():
        if isinstance(value, bool):
            message.options[key].boolean = value
        elif isinstance(value, int):
            message.options[key].integer = value
        else:
            message.options[key].text = str(value)
    return message


def meld(given: Meld) -> rules_pb2.Meld:
    message = rules_pb2.Meld(kind=given.kind.value, tiles=[code(tile) for tile in given.tiles])
    if given.source is not None:
        message.from_seat = given.source
    message.treasure = given.treasure
    return message


def hand(given: Hand | str) -> ev.Hand:
    if isinstance(given, str):
        given = parse_hand(given)
    return ev.Hand(
        concealed=[code(tile) for tile in given.concealed],
        melds=[meld(one) for one in given.melds],
    )


def analyze(given: Hand | str, **more: object) -> ev.AnalyzeRequest:
    return ev.AnalyzeRequest(rules=KELE, hand=hand(given), **more)


def finished(given: FinishedHand) -> rules_pb2.FinishedHand:
    message = rules_pb2.FinishedHand(
        dealer=given.dealer,
        drawn_hands_before=given.drawn_hands_before,
        treasure=0 if given.treasure is None else code(given.treasure),
        false_wins=given.false_wins,
    )
    for seat in given.seats:
        message.seats.add(
            concealed=[code(tile) for tile in seat.concealed or ()],
            melds=[meld(one) for one in seat.melds],
            declared=seat.declared,
            piao=seat.piao,
            first_discard=0 if seat.first_discard is None else code(seat.first_discard),
            flowers=[code(tile) for tile in seat.flowers],
        )
    end = given.end
    if isinstance(end, Win):
        message.win.winners.extend(end.winners)
        message.win.tile = code(end.tile)
        message.win.by = end.by
        if end.source is not None:
            message.win.from_seat = end.source
        message.win.after_kong = end.after_kong or ""
        if end.kong_source is not None:
            message.win.kong_from_seat = end.kong_source
        message.win.discard_after_kong = end.discard_after_kong
        message.win.on_deal = end.on_deal
        message.win.after_flower = end.after_flower
        message.win.first_round.extend(end.first_round)
    elif isinstance(end, Draw):
        message.draw.SetInParent()
    elif isinstance(end, Escape):
        message.escape.seat = end.seat
    elif isinstance(end, EightFlowers):
        message.eight_flowers.seat = end.seat
    elif isinstance(end, Dissolved):
        message.dissolved.SetInParent()
    return message


def golden_request(given: GoldenHand, rule_set: str = "baishan_kele") -> ev.ScoreRequest:
    return ev.ScoreRequest(rules=choice(given.options, rule_set), hand=finished(given.finished))


def net(score: rules_pb2.Score) -> tuple[tuple[int, ...], int]:
    """What the seats and the house have won or lost."""
    seats, house = [0, 0, 0, 0], 0
    for transfer in score.transfers:
        assert transfer.amount > 0
        if transfer.HasField("from_seat"):
            seats[transfer.from_seat] -= transfer.amount
        else:
            house -= transfer.amount
        if transfer.HasField("to_seat"):
            seats[transfer.to_seat] += transfer.amount
        else:
            house += transfer.amount
    return tuple(seats), house
