"""Finished hands as text that a player can read, in `tests/golden/<rule set>.txt`.

A hand is a block::

    == Closed half flush, drawn; the dealer is the only open loser
    options: cap 0, discarder_pays on
    dealer: 3
    0: 123456m111z77z99m
    3: 222p456s11z | chi 234s | ting, piao 5, first 3z
    end: 0 draws 9m
    fan 0: self_draw 1, half_flush 2, closed 1
    fan 3: dealer 1
    net: 96 -32 -32 -32

A seat's line has its concealed tiles without the winning one (? where nobody needs to know them),
its melds, and its state; a seat without a line is closed and unknown. Ends: `0 draws 9m`,
`0 wins 8s from 3`, `0 robs 8s from 1`, each with ` after exposed kong from 3`, ` after added kong`,
` after concealed kong`, ` after its kong` (杠后炮) or ` on the deal` behind it; `draw`; `escape 2`;
`dissolved`. What counts is told whole: `fan` of the winner is what counts against every loser,
`fan` of a loser what it pays more; what has no line counts nothing. A hand that must be refused
has `refused: REASON field` instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.scoring import Dissolved, Draw, End, Escape, FinishedHand, SeatEnd, Win
from fangcheng_rules.tiles import from_name, name

FOLDER = Path(__file__).parent.parent / "golden"
MELDS = {
    "chi": MeldKind.CHI,
    "pong": MeldKind.PONG,
    "exposed": MeldKind.EXPOSED_KONG,
    "added": MeldKind.ADDED_KONG,
    "concealed": MeldKind.CONCEALED_KONG,
}


@dataclass
class GoldenHand:
    title: str
    line: int
    options: dict[str, object] = field(default_factory=dict)
    dealer: int = 0
    seats: list[SeatEnd] = field(default_factory=lambda: [SeatEnd()] * 4)
    end: End = field(default_factory=Draw)
    fan: dict[int, dict[str, int | str]] = field(default_factory=dict)
    net: tuple[int, ...] = ()
    house: int = 0
    refused: tuple[str, str] | None = None

    @property
    def finished(self) -> FinishedHand:
        return FinishedHand(self.dealer, tuple(self.seats), self.end)


def golden_hands(rule_set: str) -> list[GoldenHand]:
    return list(parse((FOLDER / f"{rule_set}.txt").read_text(encoding="utf-8")))


def parse(text: str) -> Iterator[GoldenHand]:
    hand: GoldenHand | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("== "):
            if hand is not None:
                yield hand
            hand = GoldenHand(line[3:], number)
        elif line and not line.startswith("#"):
            if hand is None:
                raise ValueError(f"line {number}: no hand has begun")
            key, _, value = line.partition(":")
            _read(hand, key.strip(), value.strip())
    if hand is not None:
        yield hand


def _read(hand: GoldenHand, key: str, value: str) -> None:
    if key == "options":
        for part in value.split(", "):
            option, setting = part.split()
            hand.options[option] = {"on": True, "off": False}.get(setting, setting)
            if setting.isdigit():
                hand.options[option] = int(setting)
    elif key == "dealer":
        hand.dealer = int(value)
    elif key in "0123":
        hand.seats[int(key)] = _seat(value)
    elif key == "end":
        hand.end = _end(value)
    elif key.startswith("fan "):
        pairs = (part.split() for part in value.split(", "))
        hand.fan[int(key[4:])] = {i: "flat" if n == "flat" else int(n) for i, n in pairs}
    elif key == "net":
        hand.net = tuple(map(int, value.split()))
    elif key == "house":
        hand.house = int(value)
    elif key == "refused":
        reason, where = value.split()
        hand.refused = (reason, where)
    else:
        raise ValueError(f"{hand.title}: what is {key!r}?")


def _seat(text: str) -> SeatEnd:
    concealed, melds, state = (*(part.strip() for part in text.split("|")), "", "")[:3]
    words = {part.split()[0]: part.split()[-1] for part in state.split(", ") if part}
    first = words.pop("first", None)
    seat = SeatEnd(
        concealed=None if concealed == "?" else tiles(concealed),
        melds=tuple(_meld(part) for part in melds.split(", ") if part),
        declared="ting" if words.pop("ting", None) else "",
        piao=int(words.pop("piao", 0)),
        first_discard=from_name(first) if first else None,
    )
    if words:
        raise ValueError(f"what is {words}?")
    return seat


def _meld(text: str) -> Meld:
    kind, shown, *source = text.split()
    return Meld(MELDS[kind], tiles(shown), int(source[1]) if source else None)


def _end(text: str) -> End:
    words = text.split()
    if words[0] == "draw":
        return Draw()
    if words[0] == "escape":
        return Escape(int(words[1]))
    if words[0] == "dissolved":
        return Dissolved()
    by = {"draws": "self_draw", "wins": "discard", "robs": "rob_kong"}[words[1]]
    match = re.fullmatch(
        r"(?P<seat>\d) \w+ (?P<tile>\d[mpsz])(?: from (?P<source>\d))?"
        r"(?: after (?P<kong>exposed|added|concealed) kong(?: from (?P<fed>\d))?)?"
        r"(?P<late> after its kong)?(?P<dealt> on the deal)?",
        text,
    )
    if match is None:
        raise ValueError(f"no such end: {text}")
    return Win(
        winners=(int(match["seat"]),),
        tile=from_name(match["tile"]),
        by=by,  # type: ignore[arg-type]  # one of the three, by the table above
        source=int(match["source"]) if match["source"] else None,
        after_kong=match["kong"],  # type: ignore[arg-type]  # one of the three, by the pattern
        kong_source=int(match["fed"]) if match["fed"] else None,
        discard_after_kong=bool(match["late"]),
        on_deal=bool(match["dealt"]),
    )


def tiles(text: str) -> tuple[int, ...]:
    """Kinds from notation such as 123m55z, sorted."""
    kinds = [
        from_name(rank + suit)
        for ranks, suit in re.findall(r"(\d+)([mpsz])", text)
        for rank in ranks
    ]
    if re.sub(r"\d+[mpsz]", "", text):
        raise ValueError(f"these are no tiles: {text}")
    return tuple(sorted(kinds))


def shown(kinds: tuple[int, ...] | list[int]) -> str:
    """Notation for kinds: 123m55z."""
    parts = []
    for suit in "mpsz":
        ranks = "".join(name(kind)[0] for kind in sorted(kinds) if name(kind)[1] == suit)
        if ranks:
            parts.append(ranks + suit)
    return "".join(parts)
