"""Python's garbage collector, told that a process remembers a great many small things for long."""

from __future__ import annotations

import gc


def relax(young: int, middle: int, old: int) -> None:
    """Look for cycles seldom, and never among what is here now; see `gc.set_threshold`.

    What a service drops without a cycle goes at once all the same. It looks through everything that
    it keeps only after so many allocations more than deallocations as the three multiply to.
    """
    gc.collect()
    gc.freeze()  # what is here now stays
    gc.set_threshold(young, middle, old)
