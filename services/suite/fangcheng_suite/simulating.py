"""`fangcheng simulate`: many hands in this process, and how they ended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fangcheng_rules.errors import RulesError
from fangcheng_rules.rulesets import RULE_SETS, rule_set
from fangcheng_rules.scoring import Win
from fangcheng_rules.simulate import SimplePlayer, play_hands

from .errors import SuiteError
from .render import Ink

ENDS = {
    "discard": ("点炮", "win on a discard"),
    "self_draw": ("自摸", "win by self-draw"),
    "rob_kong": ("抢杠", "win by robbing a kong"),
    "draw": ("荒庄", "drawn hand"),
}


def simulate(rules_id: str, hands: int, seed: int, ink: Ink) -> list[RenderableType]:
    """Play hands between four simple players, and tell how they ended; raises SuiteError."""
    try:
        rules = rule_set(rules_id)
    except RulesError:
        known = ", ".join(known.id for known in RULE_SETS)
        raise SuiteError(f"there is no rule set {rules_id}", f"There are: {known}.") from None
    ends: Counter[str] = Counter()
    items: Counter[str] = Counter()
    started = time.perf_counter()
    for played, _ in play_hands(rules, [SimplePlayer()] * 4, hands=hands, seed=seed):
        end = played.end
        ends[end.by if isinstance(end, Win) else "draw"] += 1
        if played.score is not None:
            for winner in played.score.winners:
                items.update(item.id for item in winner.items)
    seconds = time.perf_counter() - started
    names = {item.id: (item.name_zh, item.name_en) for item in rules.fan_items}
    wins = hands - ends["draw"]
    name = rules.name_zh if ink.chinese else rules.name_en
    return [
        Text(f"{hands:,} hands of {name}, seed {seed}: {hands / seconds:,.0f} a second", "bold"),
        _table(("how it ended", "hands", "share"), ends, ENDS, hands, ink),
        Text(),
        _table(("fan item of the winner", "wins", "share"), items, names, wins, ink),
    ]


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
