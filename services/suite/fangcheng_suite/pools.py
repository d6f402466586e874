"""Pools for whatever rule sets there are, written to a file for matchmaking to read.

What comes with matchmaking is an example of a real game's pools; these are the suite's own, three
for each rule set and a kind of private room, so that a new rule set is played here without another
word.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS

FILL_WITH_BOTS_MS = 1500
"""How long a person waits at a practice table before bots sit down."""
PRACTICE_HANDS = 8
SILVER_HANDS = 16
DEMO_HANDS = 8


def practice_pool(rules: RuleSet) -> str:
    """The id of the practice pool of a rule set: points alone, filled up with bots."""
    return f"{rules.id}-practice"


def demo_pool(rules: RuleSet) -> str:
    """The id of the demo's pool of a rule set: bots at full speed, for silver."""
    return f"{rules.id}-demo"


def write_pools(
    path: Path, demo_hands: Callable[[RuleSet], int] = lambda rules: DEMO_HANDS
) -> Path:
    """Write the file; a table of the demo's pool of a rule set plays so many hands."""
    pools = [pool for rules in RULE_SETS for pool in _pools(rules, demo_hands(rules))]
    rooms = [_room(rules) for rules in RULE_SETS]
    path.write_text(f"pools:\n{_entries(pools)}rooms:\n{_entries(rooms)}", encoding="utf-8")
    return path


def _entries(entries: list[dict[str, Any]]) -> str:
    return "".join(f"  - {json.dumps(entry, ensure_ascii=False)}\n" for entry in entries)


def _room(rules: RuleSet) -> dict[str, Any]:
    return {
        "id": f"{rules.id}-friends",
        "name": f"约局 With friends: {rules.name_zh} {rules.name_en}",
        "rules": {"id": rules.id},
        "hands": PRACTICE_HANDS,
    }


def _pools(rules: RuleSet, demo_hands: int) -> list[dict[str, Any]]:
    name = f"{rules.name_zh} {rules.name_en}"
    points = {"currency": "points", "book": rules.id, "per_unit": 1}
    silver = {"currency": "silver", "per_unit": 10, "buy_in": 5000}
    return [
        {
            # Points alone: silver never meets a bot that fills a table up.
            "id": practice_pool(rules),
            "name": f"练习 Practice: {name}",
            "mode": "practice",
            "rules": {"id": rules.id},
            "stakes": [points],
            "hands": PRACTICE_HANDS,
            "fill_with_bots_after_ms": FILL_WITH_BOTS_MS,
        },
        {
            "id": f"{rules.id}-silver",
            "name": f"银子 Silver: {name}",
            "rules": {"id": rules.id},
            "stakes": [silver, points],
            "hands": SILVER_HANDS,
        },
        {
            "id": demo_pool(rules),
            "name": f"演示 Demo: {name}",
            "rules": {"id": rules.id},
            "stakes": [silver, points],
            "hands": demo_hands,
            "timing": {"claim_window_ms": 0, "between_hands_ms": 0},
        },
    ]
