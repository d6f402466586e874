"""Every hand of `tests/golden/<rule set>_waits.txt` waits for what stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fangcheng_rules.analysis import analyze
from fangcheng_rules.notation import parse_hand, parse_tiles, to_mpsz
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import BUILT_IN

FOLDER = Path(__file__).parent.parent / "golden"
LINE = re.compile(r"(?P<hand>.+) waits (?P<waits>\S+) +shanten (?P<shanten>\d+)")


def rows(rules: RuleSet) -> list[tuple[str, str, int]]:
    found = []
    for line in (FOLDER / f"{rules.id}_waits.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match, f"unreadable: {line}"
            found.append((match["hand"].strip(), match["waits"], int(match["shanten"])))
    return found


ROWS = [
    pytest.param(rules, *row, id=f"{rules.id}:{row[0]}")
    for rules in BUILT_IN
    for row in rows(rules)
]


@pytest.mark.parametrize(("rules", "hand", "waits", "shanten"), ROWS)
def test_a_hand_waits_for_what_the_page_says(
    rules: RuleSet, hand: str, waits: str, shanten: int
) -> None:
    analysis = analyze(rules, rules.complete(), parse_hand(hand), progress=True)
    found = tuple(wait.tile for wait in analysis.waits)
    assert found == (parse_tiles(waits) if waits != "-" else ()), to_mpsz(found)
    assert analysis.shape_shanten == shanten


@pytest.mark.parametrize("rules", BUILT_IN, ids=lambda rules: rules.id)
def test_there_are_hands_that_wait_and_hands_that_do_not(rules: RuleSet) -> None:
    waits = [waits for _, waits, _ in rows(rules)]
    assert len(waits) >= 24
    assert 5 <= waits.count("-") <= len(waits) - 5
