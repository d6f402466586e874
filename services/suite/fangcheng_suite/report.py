"""A finished hand in words: who won how, with which tiles, for what, and who paid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from rich.text import Text

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2
from fangcheng_client.view import TableView

from . import render
from .render import Ink

INDENT = "   "
LABEL_COLUMNS = 9

REASONS = {
    "win": ("胡", "win"),
    "kong": ("杠", "kongs"),
    "piao": ("飘", "piao"),
    "follow_dealer": ("撵庄", "following the dealer"),
    "draw": ("荒庄", "drawn hand"),
    "escape": ("逃跑", "escape"),
    "false_win": ("诈胡", "false win"),
}


def headline(view: TableView, ended: events_pb2.HandEnded, ink: Ink) -> str:
    """How a hand ended, in a sentence: `Mei wins on 五饼 (5p), discarded by Zhu`."""
    hand = ended.hand
    names = [seat.name for seat in view.seats]
    end = hand.WhichOneof("end")
    if end == "win":
        win = hand.win
        winners = " and ".join(names[seat] for seat in win.winners)
        tile = render.spoken(win.tile, ink)
        verb = "win" if len(win.winners) > 1 else "wins"
        if win.by == "discard":
            return f"{winners} {verb} on {tile}, discarded by {names[win.from_seat]}"
        if win.by == "rob_kong":
            return f"{winners} {verb} by robbing {names[win.from_seat]}'s kong of {tile}"
        if win.on_deal:
            return f"{winners} {verb} on the tiles dealt"
        if win.after_flower:
            return f"{winners} {verb} on {tile}, drawn for a flower"
        if win.after_kong:
            return f"{winners} {verb} on {tile}, drawn after a kong"
        return f"{winners} {verb} by self-draw on {tile}"
    if end == "draw":
        return "Drawn hand: the wall is at its end and nobody has won"
    if end == "eight_flowers":
        return f"{names[hand.eight_flowers.seat]} has laid down all the flowers, which wins"
    if end == "escape":
        return f"{names[hand.escape.seat]} left for good, which ends the hand"
    reason = hand.dissolved.reason
    return f"The hand was dissolved{f' ({reason})' if reason else ''}"


def hand_report(view: TableView, ink: Ink) -> list[Text]:
    """The result of the hand that has ended and been settled, a line each."""
    ended = view.ended
    if ended is None:
        return []
    lines: list[Text] = []
    hand = ended.hand
    if hand.WhichOneof("end") == "win":
        for winner in ended.score.winners:
            lines += _winner(view, hand, winner, ended.score.losers, ink)
    lines += money(view, ink)
    return lines


def _winner(
    view: TableView,
    hand: rules_pb2.FinishedHand,
    winner: rules_pb2.WinnerScore,
    losers: Iterable[rules_pb2.LoserScore],
    ink: Ink,
) -> list[Text]:
    seat = hand.seats[winner.seat]
    groups = render.hand_groups(seat.concealed, seat.melds, hand.win.tile)
    lines = [Text(INDENT).append_text(line) for line in render.drawn(groups, ink)]
    if len(hand.win.winners) > 1:
        lines.append(_labelled("winner", view.seats[winner.seat].name))
    lines.append(
        _labelled("tiles", render.hand_text(seat.concealed, seat.melds, hand.win.tile), "dim")
    )
    worth = f"{winner.flat} units" if winner.flat else f"{winner.fan} fan"
    items = render.fan_list(winner.items, ink)
    lines.append(_labelled("fan", f"{items}  =  {worth}" if items else f"{worth}, no item counts"))
    if winner.flower_points or winner.multiplier > 1:
        times = f", all times {winner.multiplier}" if winner.multiplier > 1 else ""
        lines.append(_labelled("", f"flower points: {winner.flower_points}{times}"))
    wide = max(len(known.name) for known in view.seats)
    for loser in losers:
        if loser.winner != winner.seat or not (loser.amount or loser.items):
            continue
        units = "unit" if loser.amount == 1 else "units"
        line = f"{view.seats[loser.seat].name:{wide}} pays {loser.amount:3} {units}"
        if loser.amount and not winner.flat:
            line += f", {loser.fan} fan"
        if loser.multiplier > 1:
            line += f", times {loser.multiplier}"
        if loser.capped:
            line += ", capped"
        if loser.items:
            line += f", with {render.fan_list(loser.items, ink)}"
        lines.append(_labelled("", line, "dim"))
    return lines


def money(view: TableView, ink: Ink) -> list[Text]:
    """What each player got or paid, and what for: in the table's first currency.

    Its other stakes move together with the first.
    """
    settled = view.settled
    if settled is None:
        net = view.ended.net if view.ended is not None else ()
        return [_labelled("units", _nets(view, net, ink))] if net else []
    if not settled.payments:
        return [_labelled("", "nobody pays", "dim")]
    currency = view.stakes[0].currency if view.stakes else settled.payments[0].currency
    paid = [payment for payment in settled.payments if payment.currency == currency]
    lines = [_labelled(currency, _nets(view, _net(paid), ink))]
    by_reason: defaultdict[str, list[events_pb2.SettledPayment]] = defaultdict(list)
    for payment in paid:
        by_reason[payment.reason].append(payment)
    if set(by_reason) != {"win"}:
        for reason, of_it in by_reason.items():
            zh, en = REASONS.get(reason, ("", reason))
            told = Text(f"{ink.both(zh, en)}: ")
            told.append_text(_nets(view, _net(of_it), ink, zeros=False))
            told.stylize("dim")
            lines.append(_labelled("", told))
    short = sum(payment.due - payment.paid for payment in paid)
    if short:
        lines.append(_labelled("", f"{short:,} {currency} could not be paid", "yellow"))
    return lines


def _net(payments: Iterable[events_pb2.SettledPayment]) -> list[int]:
    net = [0, 0, 0, 0]
    for payment in payments:
        if payment.HasField("from_seat"):
            net[payment.from_seat] -= payment.paid
        if payment.HasField("to_seat"):
            net[payment.to_seat] += payment.paid
    return net


def _nets(view: TableView, net: Sequence[int], ink: Ink, *, zeros: bool = True) -> Text:
    parts = []
    for seat, amount in zip(view.seats, net, strict=True):
        if amount or zeros:
            colour = "green" if amount > 0 else "red" if amount < 0 else "dim"
            parts.append(Text(f"{seat.name} ").append(ink.signed(amount), colour))
    house = -sum(net)
    if house:
        parts.append(Text("house ").append(ink.signed(house)))
    return Text(ink.dot).join(parts)


def _labelled(label: str, content: str | Text, style: str = "") -> Text:
    line = Text(INDENT).append(f"{label:{LABEL_COLUMNS}}", "dim")
    return line.append_text(content) if isinstance(content, Text) else line.append(content, style)
