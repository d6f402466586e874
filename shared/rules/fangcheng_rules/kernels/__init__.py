"""The hot functions: shapes, readings, waits, shanten, conditions and fan.

They are written once, in the part of Python that numba compiles: integers, masks, named tuples
of integers, no recursion. With numba they are compiled, without it (or with
``FANGCHENG_INTERPRETED=1``) the very same code runs interpreted.

=============  =====================================================================
`speed`        compiled or interpreted; where compiled code is kept
`facts`        a hand and a reading as integers, and what can be asked of them
`distances`    per suit: how far from so many sets and a pair (the shanten tables)
`tables`       per suit: readings, waits, distances; one flat table, kept in a file
`aims`         per suit: how far from what a rule set's conditions ask (`Hot.needs`)
`templates`    the hot functions, with what a rule set adds left open
`nearness`     those of shanten and useful tiles, likewise
`bound`        copies of them for one rule set, and the way to call them from Python
=============  =====================================================================

What a rule set gives is a `Hot`:

``id``
    The rule set's id. Two sets of one id are refused: they would load each other's code.
``shapes``
    Which shapes win: `STANDARD`, `SEVEN_PAIRS`, `THIRTEEN_ORPHANS`, joined by ``|``; with
    `DRAGON_RUN`, one of each dragon is a set of the standard shape.
``items``
    Ids of the winner's fan items that follow from the hand alone; at most fifteen.
``allows(hand: HandBits, reading: ReadingBits) -> bool``
    The conditions of a win, for one reading of a hand of fourteen tiles whose shape is right.
``fan(hand: HandBits, reading: ReadingBits) -> int``
    The fan of each item in four bits, item *i* of ``items`` at bit *4i*: all that counts
    against every loser by the hand alone. `FLAT` (fifteen) stands for a fixed amount.
``options``
    Ids of the options that change either, at most four, each from 0 to 255; they find the value
    of option *i* in ``hand.options`` at bit *8i*.
``marks(hand: HandBits, reading: ReadingBits) -> int``
    For fan that goes by more than the reading that is counted: bits below `OTHER_WAIT` that one
    legal reading gives. ``fan`` finds those of all legal readings together in ``hand.marks``; or,
    where there are none, `SINGLE_WAIT` if the hand had exactly one legal wait. A reading that shows
    that it had another gives `OTHER_WAIT`, which spares the search.
``needs``
    What ``allows`` asks beyond the shape, as far as shanten and useful tiles are to know it:
    `NEEDS_TRIPLET`, `NEEDS_TERMINAL`, `NEEDS_SUITS`, `NEEDS_258`, joined by ``|``.

All see the hand with its winning tile (``hand.won``). They may call the functions of
`facts`, and no others.
"""

from __future__ import annotations
