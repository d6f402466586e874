"""The hot functions of one rule set, with what it adds left open.

These are templates: `allows`, `fan`, `marks`, `SHAPES`, `USES_MARKS`, `NEEDS` are free names, which
`bound` gives to the copies that it makes for each rule set. An *inner* function is built into
its callers, an *entry* is called from Python. Inner ones stand before those that call them.

An entry for one hand takes the table, the concealed tiles as bytes (a kind each, sorted) and the
melds as bytes: numba takes bytes as they are, in a tenth of a microsecond. One for many takes
records (see `records`). Results that are more than a number are written to `out`, which the caller
has filled with zeros. Nothing is checked in here: a fifth tile or a flower reads beside the table,
in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

from .facts import (
    NEEDS_TERMINAL,
    NO_KIND,
    ORPHANS_MASK,
    SINGLE_WAIT,
    STANDARD,
    HandBits,
    ReadingBits,
    held_kinds,
    total_fan,
)
from .hands import (
    Out,
    Words,
    count_readings,
    marked,
    moved,
    pack,
    reading_of,
    shape_waits,
    standard_readings,
    worth,
)
from .records import (
    FOURTEEN,
    MOMENT_WORDS,
    RESULT_WORDS,
    THIRTEEN,
    is_open,
    moment_in,
    opened,
    read,
    record,
)
from .speed import lowest_bit

F = TypeVar("F", bound=Callable[..., Any])

# The free names. What stands here is replaced in every copy.
SHAPES = STANDARD
USES_MARKS = False
NEEDS = 0


def allows(hand: HandBits, reading: ReadingBits) -> bool:
    """Stands for the rule set's conditions of a win."""
    return True


def fan(hand: HandBits, reading: ReadingBits) -> int:
    """Stands for the rule set's fan."""
    return 0


def marks(hand: HandBits, reading: ReadingBits) -> int:
    """Stands for what a legal reading tells of the whole hand."""
    return 0


READING_WORDS: Final = 6
"""Shape, pair, triplets, sequences, runs, fan items: what `readings` writes for each."""
MOST_READINGS: Final = 16
SHARE_WORDS: Final = 3 * 256
"""What two items can add to the three words of counts."""
ALL_ITEMS: Final = (1 << 60) - 1
ALL_KINDS: Final = (1 << 34) - 1
WINS: Final = 1 << 34
"""The fourteen tiles win."""
FOUR_ALIKE: Final = 1 << 35
"""All four of a kind are held that are no kong: perhaps they can be one."""
ALL_DRAGONS: Final = 1 << 36
"""All three dragons are held, or lie there as a whirlwind."""
DRAGONS_MASK: Final = 7 << 31

TEMPLATES: list[tuple[Literal["inner", "entry"], Callable[..., Any]]] = []
"""What each is, and the function; in the order in which they are bound."""


def inner(function: F) -> F:
    """Bind it as one that is built into its callers."""
    TEMPLATES.append(("inner", function))
    return function


def entry(function: F) -> F:
    """Bind it as one that Python calls."""
    TEMPLATES.append(("entry", function))
    return function


@inner
def wins(table: Words, hand: HandBits) -> bool:
    """Whether a reading has the shape and passes the conditions."""
    standard = standard_readings(table, hand)
    for number in range(count_readings(table, hand, SHAPES)):
        if allows(hand, reading_of(table, hand, number, standard, SHAPES)):
            return True
    return False


@inner
def with_marks(table: Words, hand: HandBits) -> HandBits:
    """The hand of fourteen tiles with what each of its legal readings tells."""
    found = 0
    if USES_MARKS:
        standard = standard_readings(table, hand)
        for number in range(count_readings(table, hand, SHAPES)):
            reading = reading_of(table, hand, number, standard, SHAPES)
            if allows(hand, reading):
                found |= marks(hand, reading)
    return marked(hand, found)


@inner
def best_items(table: Words, hand: HandBits, kept: int) -> int:
    """The fan items of the reading that is worth most by those that are kept; -1: no win."""
    best = -1
    most = -1
    standard = standard_readings(table, hand)
    count = count_readings(table, hand, SHAPES)
    for number in range(count):
        reading = reading_of(table, hand, number, standard, SHAPES)
        if allows(hand, reading):
            items = fan(hand, reading) & kept
            value = worth(items, reading) if count > 1 else 0
            if value > most:
                best, most = items, value
    return best


@inner
def legal_waits(table: Words, hand: HandBits) -> int:
    """Kinds that complete a win by shape and conditions, as a mask."""
    left = shape_waits(table, hand, SHAPES)
    waits = 0
    while left:
        bit = left & -left
        left ^= bit
        kind = lowest_bit(bit)
        if wins(table, moved(table, hand, kind, 1, kind)):
            waits |= bit
    return waits


@inner
def with_wait(table: Words, hand: HandBits) -> HandBits:
    """The winning hand, marked where its winning tile was its only legal wait.

    Not where it is marked already: one mark is enough.
    """
    if not USES_MARKS or hand.won < 0 or hand.marks != 0:
        return hand
    before = moved(table, hand, hand.won, -1, NO_KIND)
    left = shape_waits(table, before, SHAPES) & ~(1 << hand.won)
    if NEEDS & NEEDS_TERMINAL and held_kinds(before) & ORPHANS_MASK == 0:
        left &= ORPHANS_MASK  # the others cannot be legal
    while left:
        bit = left & -left
        left ^= bit
        kind = lowest_bit(bit)
        if wins(table, moved(table, before, kind, 1, kind)):
            return hand
    return marked(hand, SINGLE_WAIT)


@inner
def best_of_marked(table: Words, hand: HandBits, kept: int) -> int:
    """`best_items` of a hand that is not marked yet.

    The one reading that nearly all hands have is looked at once.
    """
    if not USES_MARKS:
        return best_items(table, hand, kept)
    if count_readings(table, hand, SHAPES) > 1:
        hand = with_marks(table, hand)
        if hand.marks == 0 and wins(table, hand):
            hand = with_wait(table, hand)
        return best_items(table, hand, kept)
    reading = reading_of(table, hand, 0, standard_readings(table, hand), SHAPES)
    if not allows(hand, reading):
        return -1
    return fan(with_wait(table, marked(hand, marks(hand, reading))), reading) & kept


# ---- What Python calls for one hand ----


@entry
def readings(
    table: Words,
    concealed: bytes,
    melds: bytes,
    won: int,
    claimed: int,
    options: int,
    out: Out,
) -> int:
    """The readings of fourteen tiles that win: how many; `READING_WORDS` of each in `out`."""
    hand = pack(table, concealed, melds, won, claimed, options, SHAPES)
    standard = standard_readings(table, hand)
    count = count_readings(table, hand, SHAPES)
    if count == 0:
        return 0
    hand = with_wait(table, with_marks(table, hand))
    found = 0
    for number in range(count):
        reading = reading_of(table, hand, number, standard, SHAPES)
        if allows(hand, reading):
            at = READING_WORDS * found
            out[at] = reading.shape
            out[at + 1] = reading.pair
            out[at + 2] = reading.triplets
            out[at + 3] = reading.sequences
            out[at + 4] = reading.runs
            out[at + 5] = fan(hand, reading)
            found += 1
    return found


@entry
def waits(table: Words, concealed: bytes, melds: bytes, options: int, out: Out) -> int:
    """The legal waits of thirteen tiles as a mask; in `out`, by kind, the fan items of each.

    They are those of the best reading when another's discard completes it.
    """
    hand = pack(table, concealed, melds, NO_KIND, 1, options, SHAPES)
    left = shape_waits(table, hand, SHAPES)
    if USES_MARKS:
        left = legal_waits(table, hand)
        hand = marked(hand, SINGLE_WAIT if left & (left - 1) == 0 else 0)
    legal = 0
    while left:
        bit = left & -left
        left ^= bit
        kind = lowest_bit(bit)
        complete = with_marks(table, moved(table, hand, kind, 1, kind))
        items = best_items(table, complete, ALL_ITEMS)
        if items >= 0:
            legal |= bit
            out[kind] = items
    return legal


@entry
def discards(table: Words, concealed: bytes, melds: bytes, options: int, out: Out) -> int:
    """Kinds after whose discard fourteen tiles wait, as a mask; in `out`, by kind, the waits.

    What else a turn may bring stands in the bits above: `WINS`, `FOUR_ALIKE`, `ALL_DRAGONS`.
    """
    hand = pack(table, concealed, melds, NO_KIND, 1, options, SHAPES)
    found = 0
    last = NO_KIND
    for i in range(len(concealed)):
        kind = int(concealed[i])
        if kind != last:
            last = kind
            legal = legal_waits(table, moved(table, hand, kind, -1, NO_KIND))
            if legal:
                found |= 1 << kind
                out[kind] = legal
    if hand.fours & ~hand.kongs:
        found |= FOUR_ALIKE
    if held_kinds(hand) & DRAGONS_MASK == DRAGONS_MASK:
        found |= ALL_DRAGONS
    if wins(table, pack(table, concealed, melds, NO_KIND, 0, options, SHAPES)):
        found |= WINS
    return found


# ---- What Python calls for many hands ----


@entry
def score_many(
    table: Words,
    laid_down: Words,
    hands: Words,
    limits: Words,
    sizes: Out,
    moments: Words,
    shares: Words,
    flat: int,
    out: Out,
) -> None:
    """Of each record of fourteen tiles, checked if it is not yet: if it wins, and what counts then.

    `moments` are the rows of `records.MOMENT_WORDS`, `shares` what to add to the counts by two
    items and their fan, `flat` the fan items that stand for a fixed amount.
    """
    for i in range(len(sizes)):
        bits = read(laid_down, hands, i)
        if opened(bits, i, limits, sizes, out) != FOURTEEN:
            continue
        hand = record(table, bits, SHAPES)
        if count_readings(table, hand, SHAPES) == 0:
            continue
        row = MOMENT_WORDS * (2 * moment_in(bits) + is_open(hand))
        items = best_of_marked(table, hand, moments[row])
        if items < 0:
            continue
        at = RESULT_WORDS * i
        if items & flat:
            items &= flat
            total = 0
            first = second = third = 0
        else:
            total = moments[row + 1] + total_fan(items)
            first, second, third = moments[row + 2], moments[row + 3], moments[row + 4]
        for eight in range(len(shares) // SHARE_WORDS):
            share = SHARE_WORDS * eight + 3 * ((items >> (8 * eight)) & 255)
            first += shares[share]
            second += shares[share + 1]
            third += shares[share + 2]
        out[at] |= 1 << 8 | total << 32
        out[at + 2] = first
        out[at + 3] = second
        out[at + 4] = third


@entry
def waits_of_many(table: Words, laid_down: Words, hands: Words, sizes: Words, out: Out) -> None:
    """Of each record of thirteen tiles: the mask of its legal waits."""
    for i in range(len(sizes)):
        if sizes[i] == THIRTEEN:
            hand = record(table, read(laid_down, hands, i), SHAPES)
            out[RESULT_WORDS * i + 1] = legal_waits(table, hand)
