"""`fangcheng strength`: the bots' strengths against each other, rule set by rule set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from fangcheng_rules.duels import Duel, Lead, duel
from fangcheng_rules.players import PLAYERS
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS

from .chosen import rules_named
from .progress import progress
from .render import Ink

PAIRS = (("efficient", "first_legal"), ("careful", "efficient"))
"""Each strength and the one below it."""
LEAST_TOLD = 0.0001


@dataclass(frozen=True, slots=True)
class Measured:
    """A pair of strengths under a rule set."""

    rules: RuleSet
    one: str
    other: str
    came_to: Duel


def measured(rule_sets: Sequence[str], hands: int, seed: int) -> list[Measured]:
    """Let each pair play so many hands of each rule set (none named: of all); raises SuiteError."""
    chosen = [rules_named(one) for one in rule_sets] or RULE_SETS
    found = []
    walls = hands // 2
    with progress("Playing", total=2 * walls * len(chosen) * len(PAIRS), unit="hands") as bar:
        for one, other in PAIRS:
            for rules in chosen:
                bar.say(f"{one} against {other}, {rules.id}")
                came_to = Duel()
                for so_far in duel(rules, PLAYERS[one], PLAYERS[other], walls=walls, seed=seed):
                    came_to = so_far
                    bar.advance(2)
                found.append(Measured(rules, one, other, came_to))
    return found


def as_table(found: Sequence[Measured], ink: Ink) -> Table:
    """The figures for people."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("", "rule set"):
        table.add_column(column, no_wrap=True)
    for column in ("wins", "dealt in", "units a hand ahead", "by chance"):
        table.add_column(column, no_wrap=True, justify="right")
    for each in found:
        came_to, name = each.came_to, ink.both(each.rules.name_zh, each.rules.id)
        # What the pair is measured for: who wins more, or who deals in less.
        judged = came_to.units if each.other == "first_legal" else _less(came_to.deal_ins)
        table.add_row(
            f"{each.one} : {each.other}",
            name,
            _shares(came_to.one.wins, came_to.other.wins, came_to.hands),
            _shares(came_to.one.deal_ins, came_to.other.deal_ins, came_to.hands),
            f"{came_to.units.mean:+.2f} ± {came_to.units.reach:.2f}",
            f"p < {LEAST_TOLD}" if judged.chance < LEAST_TOLD else f"p = {judged.chance:.4f}",
        )
    return table


def as_json(found: Sequence[Measured]) -> str:
    """The figures for programs: shares and units of a seat's hand, and chances one-sided."""
    return json.dumps(
        [
            {
                "rule_set": each.rules.id,
                "revision": each.rules.revision,
                "one": each.one,
                "other": each.other,
                "hands": each.came_to.hands,
                "wins": [each.came_to.one.wins, each.came_to.other.wins],
                "deal_ins": [each.came_to.one.deal_ins, each.came_to.other.deal_ins],
                "units": [each.came_to.one.units, each.came_to.other.units],
                "units_ahead": each.came_to.units.mean,
                "units_ahead_error": each.came_to.units.error,
                "more_units_by_chance": each.came_to.units.chance,
                "more_wins_by_chance": each.came_to.wins.chance,
                "fewer_deal_ins_by_chance": _less(each.came_to.deal_ins).chance,
            }
            for each in found
        ],
        indent=2,
    )


def _less(lead: Lead) -> Lead:
    return Lead(-lead.mean, lead.error)


def _shares(one: int, other: int, hands: int) -> str:
    """Of a seat's hands; each kind has two seats."""
    return f"{one / hands / 2:.1%} : {other / hands / 2:.1%}"
