"""What is asked of an evaluator, answered by the rules.

Plain data in and out; the wire is `convert`'s. Everything here may run in any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar

import numpy as np

from fangcheng_rules import packed
from fangcheng_rules.analysis import analyze
from fangcheng_rules.hand import Hand
from fangcheng_rules.ruleset import Options, RuleSet
from fangcheng_rules.rulesets import known, rule_set

_MOST_REMEMBERED = 1_024

T = TypeVar("T")


class _Spent(threading.local):
    """What a thread has spent in the rules."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}


_spent = _Spent()


def timed(rules: RuleSet, work: Callable[[], T]) -> T:
    """Has something of a rule set computed, and notes how long it took."""
    begun = time.perf_counter()
    try:
        return work()
    finally:
        seconds = _spent.seconds
        seconds[rules.id] = seconds.get(rules.id, 0.0) + time.perf_counter() - begun


def spent() -> dict[str, float]:
    """The seconds that this thread has spent in each rule set since it was last asked."""
    seconds, _spent.seconds = _spent.seconds, {}
    return seconds


def chosen(id: str, revision: int, given: Mapping[str, object]) -> tuple[RuleSet, Options]:
    """The rule set, and all of its options with their values.

    Raises UnknownRuleSet, UnknownRevision and InvalidOption, with the fields `rules.id`,
    `rules.revision` and `options.<id>`.
    """
    # True equals 1 as a key, and is another value as an option.
    return _chosen(id, revision, tuple((key, type(value), value) for key, value in given.items()))


@lru_cache(_MOST_REMEMBERED)
def _chosen(
    id: str, revision: int, given: tuple[tuple[str, type, object], ...]
) -> tuple[RuleSet, Options]:
    found = rule_set(id, revision)
    return found, found.complete({key: value for key, _, value in given})


def warm_up() -> int:
    """Has every kernel compiled or read from its cache, so that no call has to wait for it.

    Of how many rule sets, each revision counted.
    """
    waiting = Hand((*range(9), 9, 9, 30, 30))
    rule_sets = [*known()]
    for rules in rule_sets:
        options = rules.complete()
        for hand in (waiting, waiting.plus(9)):
            for progress in (False, True):
                analyze(rules, options, hand, progress=progress)
        # As they come in: bytes that nobody may write to are of another type to a compiler.
        record = np.frombuffer(packed.pack([waiting]).tobytes(), packed.HAND)
        # Where waits alone are asked for, records are checked by a kernel of its own.
        for ask in (packed.WAITS, packed.EVERYTHING):
            packed.evaluate(rules, record, ask, np.empty(1, packed.RESULT))
    return len(rule_sets)
