"""The rules in one process, on one core: how many a second, and the ratio to the reference.

    python benchmarks/rules.py

The reference is `xiangting` (Rust), run on the same hands in the same process. It knows shapes
only, while legal waits also pass the rule set's conditions and carry their fan. Both are called
once for each hand from Python, which is a good part of the time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import xiangting
from measure import ROUNDS, cores, pin

from fangcheng_evaluation.core import warm_up
from fangcheng_rules.analysis import analyze
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels import speed
from fangcheng_rules.kernels.bound import bind
from fangcheng_rules.players import Efficient
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_rules.scoring import Win, score
from fangcheng_rules.simulate import play_hands

HANDS = 20_000
WHOLE_HANDS = 200
SEED = 20_240_601

T = TypeVar("T")


def rate(work: Callable[[T], object], items: Sequence[T]) -> float:
    """Items done a second: the best of some rounds, since others disturb and none helps."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for item in items:
            work(item)
        best = min(best, time.perf_counter() - started)
    return len(items) / best


def show(what: str, ours: float, reference: float | None = None) -> None:
    """One line of the result."""
    ratio = f"{ours / reference:6.2f} × xiangting ({reference:,.0f}/s)" if reference else ""
    print(f"  {what:44} {ours:12,.0f}/s  {ratio}".rstrip(), flush=True)


def random_hands(size: int) -> list[tuple[int, ...]]:
    """Hands drawn from a full wall without flowers, sorted."""
    chance = random.Random(SEED)
    wall = [kind for kind in range(34) for _ in range(4)]
    return [tuple(sorted(chance.sample(wall, size))) for _ in range(HANDS)]


def ready_hands() -> list[tuple[int, ...]]:
    """Hands of thirteen that lack one tile of four sets and a pair."""
    chance = random.Random(SEED)
    firsts = [kind for kind in range(27) if kind % 9 < 7]
    found: list[tuple[int, ...]] = []
    while len(found) < HANDS:
        tiles = [chance.randrange(34)] * 2
        for _ in range(4):
            if chance.random() < 0.7:
                first = chance.choice(firsts)
                tiles += [first, first + 1, first + 2]
            else:
                tiles += [chance.randrange(34)] * 3
        if max(tiles.count(kind) for kind in tiles) <= 4:
            tiles.pop(chance.randrange(14))
            found.append(tuple(sorted(tiles)))
    return found


def counts(hands: list[tuple[int, ...]]) -> list[list[int]]:
    """The same hands as the reference wants them."""
    return [[hand.count(kind) for kind in range(34)] for hand in hands]


def measure(rules: RuleSet) -> None:
    """One rule set, each line beside what the reference does on the same hands."""
    kernels = bind(rules.hot)
    options = rules.complete({})
    bits = rules.hot.pack_options(options)
    any14, ready = random_hands(14), ready_hands()
    four = xiangting.PlayerCount.FOUR
    show(
        "shanten, random 14 tiles",
        rate(lambda hand: kernels.shanten(hand, ()), any14),
        rate(lambda hand: xiangting.calculate_replacement_number(hand, four), counts(any14)),
    )
    show(
        "legal waits with fan, ready hands",
        rate(lambda hand: kernels.waits(hand, (), bits), ready),
        rate(lambda hand: xiangting.calculate_necessary_tiles(hand, four), counts(ready)),
    )
    for size in (13, 14):
        hands = [Hand(tiles) for tiles in random_hands(size)[: HANDS // 10]]
        show(
            f"analyze with progress, random {size} tiles",
            rate(lambda hand: analyze(rules, options, hand, progress=True), hands),
        )
    players = [Efficient(random.Random(SEED))] * 4
    wins = [
        play.finished
        for play, _ in play_hands(rules, players, hands=WHOLE_HANDS, seed=SEED)
        if isinstance(play.end, Win)
    ]
    show("score, all payments of a won hand", rate(lambda won: score(rules, options, won), wins))


if __name__ == "__main__":
    pin(cores()[0])
    warm_up()
    print(f"The rules, {'compiled' if speed.COMPILED else 'interpreted'}, one core")
    for each in RULE_SETS:
        print(each.id)
        measure(each)
