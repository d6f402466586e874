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
its melds, and its state: `ting`, `open lou`, `hidden lou`, `flowers 1f3f`, `piao 5`, `first 3z`. A
seat without a line is closed and unknown. Melds: `chi 234s`, `pong 555p from 2`, `treasure pong`
(of what was the treasure then), `exposed 5555p from 2`, `added`, `concealed`, `whirlwind 5567z`.

Ends: `0 draws 9m`, `0 wins 8s from 3`, `0 robs 8s from 1`, with several winners `0 and 2 win 8s
from 3` and `0 and 2 rob 8s from 1`. Behind it may stand ` after exposed kong from 3`, ` after added
kong` or ` after concealed kong`, each followed by ` and a flower` where the kong's replacement was
one; ` after a flower`; ` after its kong` (杠后炮); ` on the deal`; ` in the first round` (地和),
with ` for 3` where it holds for one of several winners. The other ends are `draw`, `escape 2`,
`dissolved` and `eight flowers 0`.

What came before: `drawn before: 2` (drawn hands in a row), `treasure: 3m` (the kind turned up now),
`false wins: 1 3` (seats that called a win they did not have).

What counts is told whole: `fan` of a winner is what counts against every loser, `fan` of a loser
what it pays more, `flowers` of a winner its flower points; what has no line counts nothing. A hand
that must be refused has `refused: REASON field` instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.ruleset import WinBy
from fangcheng_rules.scoring import (
    Dissolved,
    Draw,
    EightFlowers,
    End,
    Escape,
    FinishedHand,
    KongKind,
    SeatEnd,
    Win,
)
from fangcheng_rules.tiles import from_name, name

VERBS: dict[str, WinBy] = {"draw": "self_draw", "win": "discard", "rob": "rob_kong"}
KONGS: dict[str, KongKind] = {"exposed": "exposed", "added": "added", "concealed": "concealed"}
FOLDER = Path(__file__).parent.parent / "golden"
MELDS = {
    "chi": MeldKind.CHI,
    "pong": MeldKind.PONG,
    "exposed": MeldKind.EXPOSED_KONG,
    "added": MeldKind.ADDED_KONG,
    "concealed": MeldKind.CONCEALED_KONG,
    "whirlwind": MeldKind.WHIRLWIND,
}
DECLARED = {"ting": "ting", "open lou": "lou_open", "hidden lou": "lou_hidden"}


@dataclass
class GoldenHand:
    title: str
    line: int
    options: dict[str, object] = field(default_factory=dict)
    dealer: int = 0
    drawn_hands_before: int = 0
    treasure: int | None = None
    false_wins: tuple[int, ...] = ()
    seats: list[SeatEnd] = field(default_factory=lambda: [SeatEnd()] * 4)
    end: End = field(default_factory=Draw)
    fan: dict[int, dict[str, int | str]] = field(default_factory=dict)
    flowers: dict[int, int] = field(default_factory=dict)
    net: tuple[int, ...] = ()
    house: int = 0
    refused: tuple[str, str] | None = None

    @property
    def finished(self) -> FinishedHand:
        return FinishedHand(
            self.dealer,
            tuple(self.seats),
            self.end,
            self.drawn_hands_before,
            treasure=self.treasure,
            false_wins=self.false_wins,
        )


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
    elif key == "drawn before":
        hand.drawn_hands_before = int(value)
    elif key == "treasure":
        hand.treasure = from_name(value)
    elif key == "false wins":
        hand.false_wins = tuple(map(int, value.split()))
    elif key in ("0", "1", "2", "3"):
        hand.seats[int(key)] = _seat(value)
    elif key == "end":
        hand.end = _end(value)
    elif key.startswith("fan "):
        pairs = (part.split() for part in value.split(", "))
        hand.fan[int(key[4:])] = {i: "flat" if n == "flat" else int(n) for i, n in pairs}
    elif key.startswith("flowers "):
        hand.flowers[int(key[8:])] = int(value)
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
    declared = ""
    words: dict[str, str] = {}
    for part in filter(None, state.split(", ")):
        if part in DECLARED:
            declared = DECLARED[part]
        else:
            key, _, value = part.partition(" ")
            words[key] = value
    first = words.pop("first", None)
    seat = SeatEnd(
        concealed=None if concealed == "?" else tiles(concealed),
        melds=tuple(_meld(part) for part in melds.split(", ") if part),
        declared=declared,
        piao=int(words.pop("piao", 0)),
        first_discard=from_name(first) if first else None,
        flowers=tiles(words.pop("flowers", "")),
    )
    if words:
        raise ValueError(f"what is {words}?")
    return seat


def _meld(text: str) -> Meld:
    of_treasure = text.startswith("treasure ")
    kind, shown, *source = text.removeprefix("treasure ").split()
    return Meld(MELDS[kind], tiles(shown), int(source[1]) if source else None, treasure=of_treasure)


def _end(text: str) -> End:
    if text == "draw":
        return Draw()
    if text == "dissolved":
        return Dissolved()
    if match := re.fullmatch(r"escape (\d)", text):
        return Escape(int(match[1]))
    if match := re.fullmatch(r"eight flowers (\d)", text):
        return EightFlowers(int(match[1]))
    match = re.fullmatch(
        r"(?P<seats>\d(?:(?:, | and )\d)*) (?P<verb>draw|win|rob)s? (?P<tile>\d[mpsz])"
        r"(?: from (?P<source>\d))?"
        r"(?: after (?P<kong>exposed|added|concealed) kong(?: from (?P<fed>\d))?)?"
        r"(?P<flower> (?:after|and) a flower)?"
        r"(?P<late> after its kong)?(?P<dealt> on the deal)?"
        r"(?P<first> in the first round(?: for (?P<of>\d))?)?",
        text,
    )
    if match is None:
        raise ValueError(f"no such end: {text}")
    return Win(
        winners=_seats(match["seats"]),
        tile=from_name(match["tile"]),
        by=VERBS[match["verb"]],
        source=int(match["source"]) if match["source"] else None,
        after_kong=KONGS.get(match["kong"]),
        kong_source=int(match["fed"]) if match["fed"] else None,
        after_flower=bool(match["flower"]),
        discard_after_kong=bool(match["late"]),
        on_deal=bool(match["dealt"]),
        first_round=_seats(match["of"] or (match["first"] and match["seats"]) or ""),
    )


def _seats(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d", text)))


def tiles(text: str) -> tuple[int, ...]:
    """Kinds from notation such as 123m55z, sorted."""
    kinds = [
        from_name(rank + suit)
        for ranks, suit in re.findall(r"(\d+)([mpszf])", text)
        for rank in ranks
    ]
    if re.sub(r"\d+[mpszf]", "", text):
        raise ValueError(f"these are no tiles: {text}")
    return tuple(sorted(kinds))


def shown(kinds: tuple[int, ...] | list[int]) -> str:
    """Notation for kinds: 123m55z."""
    parts = []
    for suit in "mpszf":
        ranks = "".join(name(kind)[0] for kind in sorted(kinds) if name(kind)[1] == suit)
        if ranks:
            parts.append(ranks + suit)
    return "".join(parts)
