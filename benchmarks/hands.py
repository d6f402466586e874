"""Whole hands of play in one process, on one core: how many a second, beside RiichiEnv.

    python benchmarks/hands.py

Four random players to a hand, on both sides: any action that is offered, though ours win where they
can. Both play hand after hand from a seed, from the deal to what is paid, and are asked through
their Python interface for every decision. RiichiEnv (Rust) plays its own rules, and keeps a log of
what happens, as ours are told in events; it can leave that, which is quicker, and is told too.
All take turns, round by round, and the median of the rounds counts, in CPU time: each is one
thread, and what else the machine does is not its own.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

from measure import ROUNDS, Line, Lines, cores, pin
from riichienv import RiichiEnv

from fangcheng_rules.players import AtRandom, Efficient, Player
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import BUILT_IN
from fangcheng_rules.simulate import play_hands

HANDS = 100
"""In each round."""
SEED = 20_240_601
GOAL = 2.0

RANDOM = "Whole hands, four random players"
SIMPLE = "Whole hands, four simple bots"


def riichi(log: bool) -> Callable[[int], None]:
    """Their hands."""

    def play(seed: int) -> None:
        chance = random.Random(seed)
        for hand in range(HANDS):
            table = RiichiEnv("4p-red-single", skip_mjai_logging=not log, seed=seed + hand)
            asked = table.reset()
            while not table.done():
                asked = table.step(
                    {seat: chance.choice(seen.legal_actions()) for seat, seen in asked.items()}
                )

    return play


def ours(rules: RuleSet, players: Callable[[int], list[Player]]) -> Callable[[int], None]:
    """Our hands."""

    def play(seed: int) -> None:
        for hand, _ in play_hands(rules, players(seed), hands=HANDS, seed=seed):
            if hand.score is None:
                raise AssertionError("a hand has not been paid")

    return play


def at_random(seed: int) -> list[Player]:
    """Players that do anything."""
    return [AtRandom(random.Random(4 * seed + seat)) for seat in range(4)]


def simple(seed: int) -> list[Player]:
    """Players that mean to win."""
    return [Efficient(random.Random(4 * seed + seat)) for seat in range(4)]


def rates(work: dict[str, Callable[[int], None]]) -> dict[str, float]:
    """Hands a second of each, in turns: the median after a round that does not count."""
    took: dict[str, list[float]] = {name: [] for name in work}
    for number in range(ROUNDS + 1):
        for name, play in work.items():
            started = time.process_time()
            play(SEED + HANDS * number)
            took[name].append(time.process_time() - started)
    return {name: HANDS / statistics.median(rounds[1:]) for name, rounds in took.items()}


def main() -> None:
    """All of it."""
    pin(cores()[-1])
    lines = Lines("hands")
    logged, unlogged = "RiichiEnv", "RiichiEnv without its log"
    found = rates(
        {logged: riichi(log=True), unlogged: riichi(log=False)}
        | {rules.id: ours(rules, at_random) for rules in BUILT_IN}
    )
    for rules in BUILT_IN:
        rate = found[rules.id]
        lines.add(
            Line(
                RANDOM,
                rules.id,
                rate,
                reference=logged,
                reference_per_second=found[logged],
                goal=GOAL,
                note=f"{rate / found[unlogged]:.2f} times {unlogged}",
            )
        )
    for name, rate in rates({rules.id: ours(rules, simple) for rules in BUILT_IN}).items():
        lines.add(Line(SIMPLE, name, rate))
    lines.save()


if __name__ == "__main__":
    main()
