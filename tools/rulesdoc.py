"""Render docs/rules/ from the rule sets, or check that the pages are fresh.

    python tools/rulesdoc.py [--check]

Each page is written out of `tools/rules/<id>.md`, where every number is a `{{ expression }}`: a
constant of the rule set's file, a value of its catalogue, or what its own scorer pays for a hand
(`Page` has what an expression may use). Tables and worked examples are rendered whole; the examples
are golden hands of the tests, scored anew. README.md is what all of them share.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fangcheng_rules import notation  # noqa: E402
from fangcheng_rules.hand import Hand  # noqa: E402
from fangcheng_rules.ruleset import RuleSet, WallCount  # noqa: E402
from fangcheng_rules.rulesets import BUILT_IN  # noqa: E402
from fangcheng_rules.scoring import (  # noqa: E402
    FanCount,
    LoserScore,
    Score,
    SeatEnd,
    Win,
    WinnerScore,
    score,
)
from fangcheng_rules.tiles import code, name, name_zh  # noqa: E402
from fangcheng_rules.wall import DEALT, dealt_indices  # noqa: E402
from fangcheng_suite import cataloguing, render  # noqa: E402
from tests.rules.golden import GoldenHand, golden_hands, parse  # noqa: E402

SOURCES = ROOT / "tools" / "rules"
PAGES = ROOT / "docs" / "rules"
NOTE = "<!-- Generated from tools/rules/{id}.md by `make docs`; change it there. -->\n\n"
INK = render.Ink(chinese=True)
PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)

WHOSE = {"winner": "winner", "loser": "that loser", "both": "winner; a loser for its own"}
KONG_MELDS = {
    "exposed or added kong": ("exposed {0}{0}{0}{0}", "added {0}{0}{0}{0}"),
    "concealed kong": ("concealed {0}{0}{0}{0}",),
}


def page_of(rules: RuleSet) -> str:
    """The page of a rule set."""
    page = Page(rules)
    names: dict[str, Any] = {**vars(page.module)}
    names |= {key: getattr(page, key) for key in dir(page) if not key.startswith("_")}
    return _filled(rules.id, names)


def overview(pages: Iterable[RuleSet]) -> str:
    """The page of what these rule sets share."""
    rows = [
        (
            f"[{rules.id}]({rules.id}.md)",
            f"{rules.name_zh} {rules.name_en}",
            len(rules.wall_tiles),
            len(rules.fan_items),
            len(rules.options),
            len(rules.titles) or "none",
        )
        for rules in pages
    ]
    head = ("rule set", "", "tiles", "fan items", "options", "titles")
    return _filled("README", {"rule_sets": _table(head, rows), "deal": dealt_indices(0)})


def _filled(name: str, names: dict[str, Any]) -> str:
    """A page with the values of its expressions."""

    def value(match: re.Match[str]) -> str:
        found = eval(match[1].strip(), names)  # noqa: S307 # nosec B307 # expressions of our own pages
        return f"{found:,}" if type(found) is int else str(found)

    source = (SOURCES / f"{name}.md").read_text(encoding="utf-8")
    return NOTE.format(id=name) + PLACEHOLDER.sub(value, source)


class Page:
    """What the expressions of a page may use, besides the constants of the rule set's file."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        self.module: ModuleType = importlib.import_module(f"fangcheng_rules.rulesets.{rules.id}")
        self.golden = golden_hands(rules.id)

    # Numbers.

    def fan(self, item: str) -> int:
        """Fan of an item."""
        return self.rules.items[item].fan

    def option(self, option: str) -> str:
        """An option's default."""
        (found,) = (spec for spec in self.rules.options if spec.id == option)
        return cataloguing.value_text(found.default)

    def net(self, hand: str) -> tuple[int, ...]:
        """What the seats get for a finished hand, written as in the golden files (; for lines)."""
        return self._score(hand).net

    def house(self, hand: str) -> int:
        """What the house gets for it."""
        return self._score(hand).house

    def points(self, hand: str) -> int:
        """Flower points of seat 0, which holds this and wins by drawing the 5s."""
        return self._score(f"dealer: 1; 0: {hand}; end: 0 draws 5s").winners[0].flower_points

    def front_draws(self, kongs: int, *turned: int) -> int:
        """Tiles drawn from the front after the deal, those dealt out at the end left aside."""
        policy = self.rules.wall
        wall = WallCount(len(self.rules.wall_tiles), DEALT, kongs, kongs, turned)
        left = policy.drawable(wall) - policy.dealt_out
        for drawn in range(1, left + 1):
            # A later draw may not be asked for: the rule looks at each anew.
            wall = WallCount(wall.size, DEALT + drawn, kongs, kongs, turned)
            if policy.drawable(wall) <= policy.dealt_out:
                return drawn
        return max(left, 0)

    def _score(self, hand: str) -> Score:
        (found,) = parse("== a hand\n" + hand.replace(";", "\n"))
        return score(self.rules, found.options, found.finished)

    # Tables.

    @property
    def fan_table(self) -> str:
        """The fan items."""
        rows = [
            (
                item.name_zh,
                item.name_en,
                f"`{item.id}`",
                "flat" if item.is_flat else item.fan,
                WHOSE[item.whose],
                item.meaning,
                ", ".join(self.rules.items[other].name_zh for other in item.excludes),
            )
            for item in self.rules.fan_items
        ]
        return _table(("item", "", "id", "fan", "whose", "when", "not beside it"), rows)

    @property
    def option_table(self) -> str:
        """The options."""
        rows = [
            (
                f"`{option.id}`",
                option.name_zh,
                cataloguing.value_text(option.default),
                cataloguing.bounds_text(option),
                option.meaning,
            )
            for option in self.rules.options
        ]
        return _table(("option", "", "default", "may be", "what it changes"), rows)

    @property
    def title_table(self) -> str:
        """The rank titles."""
        rows = [
            (
                title.name_zh,
                title.name_en,
                "the lowest" if title.from_points is None else f"{title.from_points:,}",
            )
            for title in self.rules.titles
        ]
        return _table(("title", "", "from points"), rows)

    def wall_table(self, *turned: int, what: str = "kongs") -> str:
        """How many tiles are drawn, by the number of kongs or replacements."""
        head = (what, *range(5))
        drawn = ("drawn after the deal", *(self.front_draws(n, *turned) for n in range(5)))
        return _table(head, [drawn])

    @property
    def kong_table(self) -> str:
        """What kongs pay."""
        rows = []
        for label, kinds in KONG_MELDS.items():
            for tiles, suits in (("", "9p"), ("of 1m, 1p or 1s", "1m")):
                amounts = {self._kong(meld.format(suits[0]) + suits[1]) for meld in kinds}
                (paid,) = amounts
                rows.append((f"{label} {tiles}".strip(), *paid))
        if all(rows[i][1:] == rows[i + 1][1:] for i in (0, 2)):
            rows = rows[::2]
        if all(len({*row[1:]}) == 1 for row in rows):
            return _table(("kong", "from each"), (row[:2] for row in rows))
        return _table(("kong", "from each", "from the dealer", "each to the dealer"), rows)

    def _kong(self, meld: str) -> tuple[int, int, int]:
        def paid(owner: int, dealer: int, payer: int) -> int:
            told = self._score(f"dealer: {dealer}; {owner}: ? | {meld}; end: draw")
            return sum(t.amount for t in told.transfers if (t.source, t.reason) == (payer, "kong"))

        return paid(0, 3, 1), paid(0, 3, 3), paid(0, 0, 1)

    # Worked examples.

    @property
    def examples(self) -> str:
        """For each fan item a hand in which it counts, drawn and worked out."""
        parts = []
        for item in self.rules.fan_items:
            worth = "a fixed amount" if item.is_flat else f"{item.fan} fan"
            parts.append(f"### {item.name_zh} {item.name_en}: {worth}\n\n{item.meaning}")
            parts.append(self._example(self._plainest(item.id)))
        return "\n\n".join(parts)

    def _plainest(self, item: str) -> GoldenHand:
        """The golden hand with as little else in it as there is."""

        def weight(hand: GoldenHand) -> tuple[int, int, int]:
            winners = getattr(hand.end, "winners", ())
            own = any(item in hand.fan.get(winner, ()) for winner in winners)
            others = sum(map(len, hand.fan.values()))
            extra = len(hand.options) + (hand.drawn_hands_before > 0) + len(winners)
            return 0 if own else 1, extra, others

        counted = [hand for hand in self.golden if any(item in fan for fan in hand.fan.values())]
        return min(counted, key=weight)

    def _example(self, hand: GoldenHand) -> str:
        told = score(self.rules, hand.options, hand.finished)
        lines = [f"*{hand.title}.*"]
        for winner in told.winners:
            lines += self._winner(hand, winner, told)
        nets = ", ".join(f"seat {seat} {net:+,}" for seat, net in enumerate(told.net) if net)
        lines.append(f"After everything: {nets}.")
        return "\n\n".join(lines)

    def _winner(self, hand: GoldenHand, winner: WinnerScore, told: Score) -> Iterator[str]:
        end = hand.end
        if not isinstance(end, Win):
            raise ValueError(f"nobody wins in {hand.title}")
        seat = hand.seats[winner.seat]
        groups = [[code(tile) for tile in seat.concealed or ()]]
        groups += [[code(tile) for tile in meld.tiles] for meld in seat.melds]
        groups += [[code(end.tile)]]
        drawn = [line.plain.rstrip() for line in render.drawn([g for g in groups if g], INK)]
        written = notation.hand_to_mpsz(Hand(seat.concealed or (), seat.melds))
        yield "\n".join(["```text", *drawn, f"{written} + {name(end.tile)}{_flowers(seat)}", "```"])
        yield f"{_how(end, winner.seat)} {self._circumstances(hand)}"
        total = "" if winner.flat is not None else f", together {winner.fan} fan"
        points = f"; flower points: {winner.flower_points}" if self._has_flowers else ""
        yield f"It counts {self._items(winner.items) or 'no item'}{total}{points}."
        paying = [
            f"- seat {loser.seat} {self._pays(hand, winner, loser)}"
            for loser in told.losers
            if loser.winner == winner.seat and loser.amount
        ]
        yield "\n".join(paying)

    def _circumstances(self, hand: GoldenHand) -> str:
        parts = [f"Seat {hand.dealer} deals."]
        if hand.drawn_hands_before:
            parts.append(f"{hand.drawn_hands_before} drawn hands came before.")
        if hand.treasure is not None:
            parts.append(f"The treasure is {name_zh(hand.treasure)} ({name(hand.treasure)}).")
        for seat, end in enumerate(hand.seats):
            if end.declared:
                parts.append(f"Seat {seat} has declared `{end.declared}`.")
        if "closed" in self.rules.items:
            closed = [str(seat) for seat, end in enumerate(hand.seats) if not end.is_open]
            parts.append(f"Closed seats: {', '.join(closed) or 'none'}.")
        if hand.options:
            chosen = ", ".join(
                f"`{key}` {cataloguing.value_text(value)}"
                for key, value in hand.options.items()
                if isinstance(value, bool | int | str)
            )
            parts.append(f"Options: {chosen}.")
        return " ".join(parts)

    @property
    def _has_flowers(self) -> bool:
        return any(tile >= 34 for tile in self.rules.wall_tiles)

    def _items(self, items: Iterable[FanCount]) -> str:
        parts = []
        for item in items:
            times = f" ×{item.count}" if item.count > 1 else ""
            parts.append(f"{self.rules.items[item.id].name_zh}{times} {item.fan or ''}".rstrip())
        return " + ".join(parts)

    def _pays(self, hand: GoldenHand, winner: WinnerScore, loser: LoserScore) -> str:
        if winner.flat is not None:
            return f"pays {loser.amount:,}"
        formula, units = AMOUNTS.get(self.rules.id, _doubled)(self.module, winner, loser)
        more = self._items(loser.items)
        own = f" (its own {more})" if more else ""
        if loser.capped:
            return f"pays {formula} = {units:,}, cut at {loser.amount:,}{own}"
        if units != loser.amount:
            raise ValueError(f"AMOUNTS has no formula of {self.rules.id}: {hand.title}")
        return f"pays {formula} = {units:,}{own}"


def _doubled(module: ModuleType, winner: WinnerScore, loser: LoserScore) -> tuple[str, int]:
    """Fan double: the rule sets of the north-east."""
    return f"2^{loser.fan}", 2**loser.fan


def _shandong(module: ModuleType, winner: WinnerScore, loser: LoserScore) -> tuple[str, int]:
    times = winner.multiplier * loser.multiplier
    formula = f"({module.BASE} + {winner.flower_points}) × {winner.fan}"
    units = (module.BASE + winner.flower_points) * winner.fan
    return (f"{formula} × {times}" if times > 1 else formula), units * times


def _jintan(module: ModuleType, winner: WinnerScore, loser: LoserScore) -> tuple[str, int]:
    formula = f"({module.BASE} + {winner.flower_points} × {module.FLOWER}) × 2^{winner.fan}"
    units = (module.BASE + winner.flower_points * module.FLOWER) * 2**winner.fan
    times = loser.multiplier
    return (f"{times} × {formula}" if times > 1 else formula), units * times


AMOUNTS: dict[str, Callable[[ModuleType, WinnerScore, LoserScore], tuple[str, int]]] = {
    "shandong": _shandong,
    "jintan": _jintan,
}
"""How a rule set counts an amount, as a formula and its value before a cap; else `_doubled`."""


def _how(end: Win, seat: int) -> str:
    tile = f"{name_zh(end.tile)} ({name(end.tile)})"
    if end.by == "discard":
        return f"Seat {seat} wins on {tile}, discarded by seat {end.source}."
    if end.by == "rob_kong":
        return f"Seat {seat} robs {tile} of seat {end.source}'s kong."
    how = "draws"
    if end.on_deal:
        return f"Seat {seat} is dealt its last tile, {tile}."
    replaced = [f"its {end.after_kong} kong"] if end.after_kong else []
    replaced += ["a flower"] if end.after_flower else []
    after = f" as the replacement of {' and '.join(replaced)}" if replaced else ""
    return f"Seat {seat} {how} {tile}{after}."


def _flowers(seat: SeatEnd) -> str:
    return f"   flowers {notation.to_mpsz(seat.flowers)}" if seat.flowers else ""


def _table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    def line(cells: Iterable[object]) -> str:
        return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"

    columns = list(head)
    return "\n".join([line(columns), line(["---"] * len(columns)), *map(line, rows)])


def main(check: bool) -> None:
    """Write the pages, or with ``check`` fail where one is not what would be written."""
    PAGES.mkdir(parents=True, exist_ok=True)
    pages = {f"{rules.id}.md": page_of(rules) for rules in BUILT_IN}
    pages["README.md"] = overview(BUILT_IN)
    for file, page in pages.items():
        path = PAGES / file
        if not check:
            path.write_text(page, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != page:
            raise SystemExit(f"{path.relative_to(ROOT)} is not fresh: run `make docs`")


if __name__ == "__main__":
    main(check="--check" in sys.argv[1:])
