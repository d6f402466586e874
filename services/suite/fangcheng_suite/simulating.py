"""`fangcheng simulate`: many hands in this process, and how they ended."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fangcheng_rules.errors import RulesError
from fangcheng_rules.events import Discarded
from fangcheng_rules.players import Efficient
from fangcheng_rules.rulesets import RULE_SETS, rule_set
from fangcheng_rules.scoring import EightFlowers, End, Win
from fangcheng_rules.simulate import play_hands

from .errors import SuiteError
from .render import Ink

ENDS = {
    "discard": ("点炮", "win on a discard"),
    "self_draw": ("自摸", "win by self-draw"),
    "rob_kong": ("抢杠", "win by robbing a kong"),
    "eight_flowers": ("八花", "all the flowers laid down"),
    "draw": ("荒庄", "drawn hand"),
}


def simulate(rules_id: str, hands: int, seed: int, ink: Ink) -> list[RenderableType]:
    """Play hands between four efficient players, and tell how they ended; raises SuiteError."""
    try:
        rules = rule_set(rules_id)
    except RulesError:
        known = ", ".join(known.id for known in RULE_SETS)
        raise SuiteError(f"there is no rule set {rules_id}", f"There are: {known}.") from None
    ends: Counter[str] = Counter()
    items: Counter[str] = Counter()
    wins = 0
    fan: list[int] = []
    several = longest = 0
    players = [Efficient(random.Random(seed))] * 4  # noqa: S311 # nosec B311 # repeatable
    for _ in play_hands(rules, players, hands=1, seed=seed):
        pass  # has the rules compiled, which is no part of the pace
    started = time.perf_counter()
    for played, events in play_hands(rules, players, hands=hands, seed=seed):
        ends[_ending(played.end)] += 1
        longest = max(longest, sum(isinstance(event, Discarded) for event in events))
        winners = played.score.winners if played.score is not None else ()
        several += len(winners) > 1
        wins += len(winners)
        for winner in winners:
            items.update(item.id for item in winner.items)
            if winner.flat is None:
                fan.append(winner.fan)
    seconds = time.perf_counter() - started
    names = {item.id: (item.name_zh, item.name_en) for item in rules.fan_items}
    average = f"{sum(fan) / len(fan):.2f}" if fan else "none"
    told = f"Average fan of a winner {average}, longest hand {longest} discards"
    if several:
        told += f", {several:,} hands with several winners"
    name = rules.name_zh if ink.chinese else rules.name_en
    return [
        Text(f"{hands:,} hands of {name}, seed {seed}: {hands / seconds:,.0f} a second", "bold"),
        _table(("how it ended", "hands", "share"), ends, ENDS, hands, ink),
        Text(f"{told}."),
        Text(),
        _table(("fan item of the winner", "wins", "share"), items, names, wins, ink),
    ]


def _ending(end: End | None) -> str:
    match end:
        case Win(by=by):
            return by
        case EightFlowers():
            return "eight_flowers"
        case _:
            return "draw"


def _table(
    columns: Sequence[str],
    counted: Counter[str],
    names: dict[str, tuple[str, str]],
    all_of_them: int,
    ink: Ink,
) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, justify="left" if column == columns[0] else "right", no_wrap=True)
    for name, count in counted.most_common():
        share = f"{100 * count / all_of_them:.1f} %" if all_of_them else ""
        table.add_row(ink.both(*names.get(name, ("", name))), f"{count:,}", share)
    return table
