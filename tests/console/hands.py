"""Golden hands as links of the page that tries hands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.notation import to_mpsz
from fangcheng_rules.scoring import EightFlowers, Escape, SeatEnd, Win
from tests.rules.golden import GoldenHand


def analysis_link(rules_id: str, hand: Hand, flowers: Iterable[int] = (), **options: Any) -> str:
    """The query of a hand that is analysed."""
    query = {"rules": rules_id, **_options(options), **_held(hand.concealed, hand.melds, flowers)}
    return urlencode(query)


def score_link(rules_id: str, golden: GoldenHand) -> str:
    """The query of a finished hand that is scored."""
    finished = golden.finished
    query: dict[str, Any] = {"mode": "score", "rules": rules_id, **_options(golden.options)}
    query["dealer"] = finished.dealer
    for number, seat in enumerate(finished.seats):
        query |= _seat(seat, number)
    end = finished.end
    match end:
        case Win():
            query |= _win(end)
        case Escape() | EightFlowers():
            query["end"] = "escape" if isinstance(end, Escape) else "eight_flowers"
            query["leaver"] = end.seat
        case _:
            query["end"] = "draw"
    query["drawn"] = finished.drawn_hands_before
    if finished.treasure is not None:
        query["treasure"] = to_mpsz([finished.treasure])
    query["false_wins"] = "".join(map(str, finished.false_wins))
    return urlencode({key: value for key, value in query.items() if value != ""})


def _options(options: dict[str, Any]) -> dict[str, str]:
    return {f"o.{id}": str(value).lower() for id, value in options.items()}


def _held(
    concealed: Iterable[int], melds: Iterable[Meld], flowers: Iterable[int], seat: int = 0
) -> dict[str, str]:
    name = str(seat or "")
    held = {
        f"hand{name}": to_mpsz(concealed),
        f"melds{name}": ".".join(map(_meld, melds)),
        f"flowers{name}": to_mpsz(flowers),
    }
    return {key: text for key, text in held.items() if text}


def _meld(meld: Meld) -> str:
    parts = [meld.kind.removesuffix("_kong"), to_mpsz(meld.tiles)]
    if meld.source is not None and meld.kind is not MeldKind.CONCEALED_KONG:
        parts.append(str(meld.source))
    return "-".join([*parts, *(["treasure"] if meld.treasure else [])])


def _seat(seat: SeatEnd, number: int) -> dict[str, Any]:
    name = str(number or "")
    told: dict[str, Any] = dict(_held(seat.concealed or (), seat.melds, seat.flowers, number))
    told |= {f"declared{name}": seat.declared, f"piao{name}": seat.piao or ""}
    if seat.first_discard is not None:
        told[f"first{name}"] = to_mpsz([seat.first_discard])
    return told


def _win(win: Win) -> dict[str, Any]:
    moments = ("on_deal", "after_flower", "discard_after_kong")
    return {
        "winners": ".".join(map(str, win.winners)),
        "win": to_mpsz([win.tile]),
        "by": win.by,
        "from": "" if win.source is None else win.source,
        "kong": win.after_kong or "",
        "kongfrom": "" if win.kong_source is None else win.kong_source,
        "moment": ".".join(moment for moment in moments if getattr(win, moment)),
        "first_round": ".".join(map(str, win.first_round)),
    }
