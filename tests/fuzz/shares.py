"""How many inputs each target is given, and from which seed; how far it is.

`FUZZ_INPUTS` is the sum of all targets' inputs (5,000 where it is not set, as in every run of the
tests), `SEED` what they follow from: the same seed gives the same inputs. `make fuzz` sets both.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, seed, settings

INPUTS = int(os.environ.get("FUZZ_INPUTS") or 5_000)
SEED = int(os.environ.get("SEED") or 1)
PERCENT = {
    "notation": 10, "tokens": 2, "packed": 6, "results": 4, "records": 2, "round": 26,
    "calls": 38, "bursts": 10, "sockets": 2,
}  # fmt: skip
"""Of all inputs, by target."""
PATIENCE_SECONDS = 10.0
"""How often `make fuzz` is told how far a target is."""


def share(target: str, parts: int = 1) -> int:
    """Inputs of a target, or of one of so many equal parts of it."""
    return max(1, INPUTS * PERCENT[target] // (100 * parts))


def chance(target: str) -> random.Random:
    """What a target's inputs follow from, where hypothesis does not draw them."""
    return random.Random(f"{target} {SEED}")


def counted(target: str, parts: int = 1) -> Iterator[int]:
    """The numbers of the inputs; says now and then how far they are."""
    count = share(target, parts)
    told = time.monotonic()
    for number in range(count):
        if time.monotonic() - told > PATIENCE_SECONDS:
            told = time.monotonic()
            print(f"  {target}: {number} of {count} inputs", file=sys.stderr, flush=True)
        yield number


def drawn(target: str, parts: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Has hypothesis draw a target's share: the last decorator, above `given`."""
    limits = settings(
        max_examples=share(target, parts),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    return lambda test: seed(SEED)(limits(test))


def in_words(*told: str) -> None:
    """A refusal says what is wrong."""
    assert all(told)
