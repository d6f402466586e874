"""`fangcheng rules`: the rule sets, and what a client may show of one."""

from __future__ import annotations

from collections import Counter

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fangcheng_rules import notation
from fangcheng_rules.errors import RulesError
from fangcheng_rules.ruleset import FanItemSpec, OptionSpec, OptionValue, RuleSet
from fangcheng_rules.rulesets import RULE_SETS, rule_set
from fangcheng_rules.tiles import suit

from .errors import SuiteError
from .render import Ink

WHOSE = {"winner": "winner", "loser": "a loser", "both": "winner, and a loser for its own"}


def list_rule_sets(ink: Ink) -> list[RenderableType]:
    """Every rule set in a line."""
    table = _table("rule set", "name", "revision", "tiles", "fan items", "options")
    for rules in RULE_SETS:
        table.add_row(
            rules.id,
            ink.both(rules.name_zh, rules.name_en),
            str(rules.revision),
            str(len(rules.wall_tiles)),
            str(len(rules.fan_items)),
            ", ".join(option.id for option in rules.options),
        )
    return [table, Text("`fangcheng rules ID` tells one of them whole.", "dim")]


def show_rule_set(rules_id: str, ink: Ink) -> list[RenderableType]:
    """The catalogue of one rule set; raises SuiteError for one that there is not."""
    try:
        rules = rule_set(rules_id)
    except RulesError:
        known = ", ".join(known.id for known in RULE_SETS)
        raise SuiteError(f"there is no rule set {rules_id}", f"There are: {known}.") from None
    name = ink.both(rules.name_zh, rules.name_en)
    parts: list[RenderableType] = [
        Text(f"{name}   {rules.id}, revision {rules.revision}", "bold"),
        Text(f"{len(rules.wall_tiles)} tiles: {_tiles(rules)}"),
    ]
    parts += [Text(), _fan_items(rules, ink)]
    if rules.declares:
        parts += [Text(), _declarations(rules, ink)]
    if rules.options:
        parts += [Text(), _options(rules, ink)]
    if rules.titles:
        parts += [Text(), _titles(rules, ink)]
    return parts


def _tiles(rules: RuleSet) -> str:
    """`four each of 123456789m, one each of 12345678f`."""
    by_copies: dict[int, list[int]] = {}
    for kind, copies in sorted(Counter(rules.wall_tiles).items()):
        by_copies.setdefault(copies, []).append(kind)
    words = {1: "one", 2: "two", 3: "three", 4: "four"}
    return ", ".join(
        f"{words.get(copies, str(copies))} each of "
        + " ".join(
            notation.to_mpsz(kind for kind in kinds if suit(kind) == of)
            for of in sorted({suit(kind) for kind in kinds})
        )
        for copies, kinds in sorted(by_copies.items(), reverse=True)
    )


def _fan_items(rules: RuleSet, ink: Ink) -> Table:
    table = _table("fan item", "name", "fan", "whose", "not beside", "when")
    for item in rules.fan_items:
        table.add_row(
            item.id,
            ink.both(item.name_zh, item.name_en),
            _fan(item),
            WHOSE[item.whose],
            ", ".join(item.excludes),
            item.meaning,
        )
    return table


def _fan(item: FanItemSpec) -> str:
    return "flat" if item.is_flat else str(item.fan)


def _declarations(rules: RuleSet, ink: Ink) -> Table:
    table = _table("can be declared", "name", "what it does")
    for one in rules.declares:
        table.add_row(one.id, ink.both(one.name_zh, one.name_en), one.meaning)
    return table


def _options(rules: RuleSet, ink: Ink) -> Table:
    table = _table("option", "name", "default", "may be", "what it changes")
    for option in rules.options:
        table.add_row(
            option.id,
            option.name_zh if ink.chinese else "",
            value_text(option.default),
            bounds_text(option),
            option.meaning,
        )
    return table


def _titles(rules: RuleSet, ink: Ink) -> Table:
    table = _table("title", "held from")
    for title in rules.titles:
        bound = "the lowest" if title.from_points is None else f"{title.from_points:,} points"
        table.add_row(ink.both(title.name_zh, title.name_en), bound)
    return table


def value_text(value: OptionValue) -> str:
    """An option's value as a person writes it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def bounds_text(option: OptionSpec) -> str:
    """What an option may be: `on, off`, `0 to 1,000`, `open, round, game`."""
    if isinstance(option.default, bool):
        return "on, off"
    if isinstance(option.default, int):
        return f"{option.minimum:,} to {option.maximum:,}"
    return ", ".join(option.choices)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
