"""A hand and a reading of it as integers, and what can be asked of them.

Masks have a bit for each of the 34 kinds that are played, bit *k* for kind *k*. Sequences are
counted in 21 fields of three bits: field *7 * suit + rank - 1* of the lowest tile. A dragon run,
one of each dragon as a set, is counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .speed import count_bits, inner

STANDARD = 1
SEVEN_PAIRS = 2
THIRTEEN_ORPHANS = 4
DRAGON_RUN = 8
"""Not a shape of its own: in the standard one, one of each dragon is a set, like a sequence."""

ORPHANS_MASK = sum(1 << kind for kind in (0, 8, 9, 17, 18, 26, *range(27, 34)))
"""Terminals and honours."""
HONOURS_MASK = 0x7F << 27
DRAGONS_MASK = 7 << 31
SUITED_MASK = (1 << 27) - 1
SUIT_MASK = 0x1FF
"""The first suit; shifted by nine the second."""

ONCE_EACH = sum(1 << (3 * field) for field in range(21))
"""The lowest bit of each sequence's field."""

NEEDS_TRIPLET = 1
"""Of a win in the standard shape: a triplet or kong; where there are dragon runs, one of them or a
pair of dragons stands in for it."""
NEEDS_TERMINAL = 2
"""Of a win in the standard shape or seven pairs: a terminal or honour."""
NEEDS_SUITS = 4
"""Of a win in the standard shape: tiles of all three suits."""
NEEDS_258 = 8
"""Of a win in the standard shape: a pair of 2, 5 or 8 of a suit."""

FLAT = 15
"""What `fan` gives an item that stands for a fixed amount."""

NO_KIND = -1

TREASURE = 32
"""Where in `HandBits.options` a drawn treasure begins; nothing is set there if none was."""

SINGLE_WAIT = 1 << 30
"""Mark of a hand that had exactly one legal wait."""

OTHER_WAIT = 1 << 29
"""Mark by which a legal reading spares the search for another legal wait: there is one for sure."""


class HandBits(NamedTuple):
    """A hand. *Held* means in hand and in melds together."""

    m: int
    """Row of the concealed characters in the table."""
    p: int
    s: int
    z: int
    laid: int
    """The tiles in melds as records have tiles, three bits for each rank: characters and dots,"""
    laid_2: int
    """... and bamboos and honours; the second suit 32 bits above the first."""
    ones: int
    """How many of each kind are held, as three masks: this is the bit of value 1,"""
    twos: int
    """... this that of value 2,"""
    fours: int
    """... and this that of value 4: the kinds of which all four are held."""
    sequences: int
    """Chi melds, counted in fields."""
    runs: int
    """Dragon runs laid down (旋风杠)."""
    triplets: int
    """Pongs and kongs laid down, as a mask."""
    kongs: int
    """Those of them that are kongs."""
    concealed_kongs: int
    """Those of them that are concealed kongs."""
    melds: int
    """How many melds there are,"""
    open_melds: int
    """... and how many of them open the hand."""
    won: int
    """The winning tile's kind, held already; `NO_KIND` where there is none."""
    claimed: int
    """1 where the winning tile is another's, 0 where it was drawn."""
    options: int
    """The table's options that matter here, eight bits for each of `Hot.options`; and from bit
    `TREASURE` the kind + 1 of the treasure that was drawn, for which the winning tile stands."""
    marks: int
    """What `Hot.marks` found in any of its legal readings, or if nothing, `SINGLE_WAIT` or not."""


class ReadingBits(NamedTuple):
    """One reading of a hand of fourteen tiles, its melds included."""

    shape: int
    """`STANDARD`, `SEVEN_PAIRS` or `THIRTEEN_ORPHANS`."""
    pair: int
    """The pair's kind (thirteen orphans: the kind held twice); `NO_KIND` for seven pairs."""
    triplets: int
    """Triplets and kongs, as a mask."""
    sequences: int
    """Sequences, counted in fields."""
    runs: int
    """Dragon runs."""


class Hot(NamedTuple):
    """What a rule set gives the kernels; see the package's page."""

    id: str
    shapes: int
    items: tuple[str, ...]
    allows: Callable[[HandBits, ReadingBits], Any]
    fan: Callable[[HandBits, ReadingBits], Any]
    options: tuple[str, ...] = ()
    marks: Callable[[HandBits, ReadingBits], Any] | None = None
    needs: int = 0

    def pack_options(self, options: Mapping[str, Any]) -> int:
        """The options that change conditions or fan, as `HandBits.options` has them."""
        return sum(int(options[option]) << (8 * i) for i, option in enumerate(self.options))


@inner
def held_kinds(hand: HandBits) -> int:
    """Every kind that is held, as a mask."""
    return hand.ones | hand.twos | hand.fours


@inner
def suits_in(kinds: int) -> int:
    """How many of the three numbered suits a mask has tiles of."""
    first = 1 if kinds & SUIT_MASK else 0
    second = 1 if kinds & (SUIT_MASK << 9) else 0
    third = 1 if kinds & (SUIT_MASK << 18) else 0
    return first + second + third


@inner
def twin_sequences(sequences: int) -> int:
    """How many sequences are there exactly twice."""
    return count_bits((sequences >> 1) & ~sequences & ONCE_EACH)


@inner
def triple_sequences(sequences: int) -> int:
    """How many sequences are there three or four times."""
    three = (sequences >> 1) & sequences
    four = sequences >> 2
    return count_bits((three | four) & ONCE_EACH)


@inner
def total_fan(items: int) -> int:
    """The sum of what `fan` gave to each item."""
    # Fifteen at the most: by twos, by fours, by eights, all.
    items = (items & 0x0F0F0F0F0F0F0F0F) + ((items >> 4) & 0x0F0F0F0F0F0F0F0F)
    items = (items & 0x00FF00FF00FF00FF) + ((items >> 8) & 0x00FF00FF00FF00FF)
    items = (items & 0x0000FFFF0000FFFF) + ((items >> 16) & 0x0000FFFF0000FFFF)
    return (items + (items >> 32)) & 0xFFFF
