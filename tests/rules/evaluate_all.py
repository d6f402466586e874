"""Evaluate 2,000 hands of each rule set and print what was found; run as a process of its own."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator

from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels import speed
from fangcheng_rules.kernels.bound import bind
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS
from tests.rules.random_hands import random_hand, with_whirlwind

HANDS = 2_000


def hands_of(rules: RuleSet, seed: int, count: int) -> Iterator[Hand]:
    """Hands of 13 and 14 tiles in turn, of the kinds that the rule set has."""
    rng = random.Random(seed)
    made = 0
    while made < count:
        hand = random_hand(rng, 13 + made % 2)
        if rules.whirlwind and rng.random() < 0.3:
            hand = with_whirlwind(rng, hand)
        if all(kind in rules.kinds for kind, copies in enumerate(hand.held) if copies):
            made += 1
            yield hand


def evaluated(rules: RuleSet, count: int) -> list[object]:
    kernels = bind(rules.hot)
    options = rules.hot.pack_options(rules.complete())
    found: list[object] = []
    for i, hand in enumerate(hands_of(rules, 21, count)):
        tiles = hand.concealed, hand.melds
        shanten = kernels.shanten(*tiles), kernels.legal_shanten(*tiles)
        if hand.size == 13:
            found.append([shanten, kernels.waits(*tiles, options), kernels.progress(*tiles)])
        else:
            won = hand.concealed[0]
            readings = kernels.readings(*tiles, won, claimed=True, options=options)
            found.append([shanten, readings, kernels.discards(*tiles)])
            if i % 10 == 1:
                found.append(kernels.discard_progress(*tiles))
    return found


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else HANDS
    found = {rules.id: evaluated(rules, count) for rules in RULE_SETS}
    json.dump({"compiled": speed.COMPILED, "found": found}, sys.stdout)


if __name__ == "__main__":
    main()
