"""Python's garbage collector, told that a wallet remembers a great many small things for long."""

from __future__ import annotations

import gc


def relax() -> None:
    """Look for cycles seldom: a settlement makes none, and looking costs it a third of its time."""
    gc.collect()
    gc.freeze()  # what is here now stays
    gc.set_threshold(100_000, 50, 100)
