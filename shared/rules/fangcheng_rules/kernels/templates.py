"""The hot functions, with what a rule set adds left open.

These are templates: `allows`, `fan`, `SHAPES` and the layout of the table are free names, which
`bound` gives to the copies that it makes for each rule set. An *inner* function is built into
its callers, an *entry* is called from Python. Inner ones stand before those that call them.

An entry takes the table, the concealed tiles as bytes (a kind each, sorted) and the melds as
bytes (see `MELD_CODES`): numba takes bytes as they are, in a tenth of a microsecond. Results
that are more than a number are written to `out`, which the caller has filled with zeros.
Nothing is checked in here: a fifth tile or a flower reads beside the table, in silence.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from typing import Any, Final, Literal, TypeVar

from .facts import (
    DRAGON_RUN,
    DRAGONS_MASK,
    NO_KIND,
    ORPHANS_MASK,
    SEVEN_PAIRS,
    SINGLE_WAIT,
    STANDARD,
    THIRTEEN_ORPHANS,
    HandBits,
    ReadingBits,
    held_kinds,
    total_fan,
)
from .speed import count_bits
from .tables import PLAIN_HONOURS, RUN_HONOURS, STEP

Words = Sequence[int]
Out = MutableSequence[int]
F = TypeVar("F", bound=Callable[..., Any])

# The free names. What stands here is replaced in every copy.
ROWS = SPLITS = WALKS = MERGE = FINAL = MERGE_WIDTH = FINAL_WIDTH = 0
SHAPES = STANDARD
USES_MARKS = False


def allows(hand: HandBits, reading: ReadingBits) -> bool:
    """Stands for the rule set's conditions of a win."""
    return True


def fan(hand: HandBits, reading: ReadingBits) -> int:
    """Stands for the rule set's fan."""
    return 0


def marks(hand: HandBits, reading: ReadingBits) -> int:
    """Stands for what a legal reading tells of the whole hand."""
    return 0


CHI, PONG, OPEN_KONG, CONCEALED_KONG = range(4)
"""The upper two bits of a meld's byte; the lower six are its lowest tile's kind."""
RUN_MELD: Final = 31
"""The kind of a whirlwind kong's byte (its upper bits are those of a chi), and ..."""
ADDED_DRAGON: Final = 34
"""... the first of the bytes, one for each dragon added to it: 34 for 5z, 35 for 6z, 36 for 7z."""

READING_WORDS: Final = 6
"""Shape, pair, triplets, sequences, runs, fan items: what `readings` writes for each."""
MOST_READINGS: Final = 16

TEMPLATES: list[tuple[Literal["inner", "apart", "entry"], Callable[..., Any]]] = []
"""What each is, and the function; in the order in which they are bound."""


def inner(function: F) -> F:
    """Bind it as one that is built into its callers."""
    TEMPLATES.append(("inner", function))
    return function


def apart(function: F) -> F:
    """Bind it as one that others call and that is compiled by itself."""
    TEMPLATES.append(("apart", function))
    return function


def entry(function: F) -> F:
    """Bind it as one that Python calls."""
    TEMPLATES.append(("entry", function))
    return function


# ---- A hand as integers ----


@inner
def one_more(ones: int, twos: int, fours: int, kinds: int) -> tuple[int, int, int]:
    """The counts with one more of each of these kinds."""
    carry = ones & kinds
    return ones ^ kinds, twos ^ carry, fours | (twos & carry)


@inner
def pack(
    table: Words, concealed: bytes, melds: bytes, won: int, claimed: int, options: int
) -> HandBits:
    """The hand of these tiles and melds."""
    m = p = s = laid_m = laid_p = laid_s = laid_z = 0
    z = RUN_HONOURS if SHAPES & DRAGON_RUN else PLAIN_HONOURS
    ones = twos = fours = 0
    sequences = runs = triplets = kongs = concealed_kongs = open_melds = 0
    laid_down = len(melds)
    for i in range(len(concealed)):
        kind = int(concealed[i])
        step = table[STEP + kind]
        if kind < 9:
            m += step
        elif kind < 18:
            p += step
        elif kind < 27:
            s += step
        else:
            z += step
        ones, twos, fours = one_more(ones, twos, fours, 1 << kind)
    for i in range(len(melds)):
        how = int(melds[i]) >> 6
        kind = int(melds[i]) & 63
        if SHAPES & DRAGON_RUN and how == CHI and kind >= RUN_MELD:
            if kind == RUN_MELD:
                runs += 1
                open_melds += 1
                laid_z += 31 * table[STEP + kind]
                ones, twos, fours = one_more(ones, twos, fours, DRAGONS_MASK)
            else:
                laid_down -= 1  # no meld of its own
                kind -= ADDED_DRAGON - RUN_MELD
                laid_z += table[STEP + kind]
                ones, twos, fours = one_more(ones, twos, fours, 1 << kind)
            continue
        bit = 1 << kind
        step = table[STEP + kind]
        open_melds += 1
        if how == CHI:
            laid = 31 * step  # this rank and the next two: 1 + 5 + 25
            sequences += 1 << (3 * (kind - 2 * (kind // 9)))
            ones, twos, fours = one_more(ones, twos, fours, 7 * bit)
        elif how == PONG:
            laid = 3 * step
            triplets |= bit
            for _ in range(3):
                ones, twos, fours = one_more(ones, twos, fours, bit)
        else:
            laid = 4 * step
            triplets |= bit
            kongs |= bit
            fours |= bit
            if how == CONCEALED_KONG:
                concealed_kongs |= bit
                open_melds -= 1
        if kind < 9:
            laid_m += laid
        elif kind < 18:
            laid_p += laid
        elif kind < 27:
            laid_s += laid
        elif SHAPES & DRAGON_RUN:
            laid_z += laid
    return HandBits(
        m,
        p,
        s,
        z,
        laid_m,
        laid_p,
        laid_s,
        laid_z,
        ones,
        twos,
        fours,
        sequences,
        runs,
        triplets,
        kongs,
        concealed_kongs,
        laid_down,
        open_melds,
        won,
        claimed,
        options,
        0,
    )


@inner
def moved(table: Words, hand: HandBits, kind: int, by: int, won: int) -> HandBits:
    """The hand with one concealed tile of a kind more (`by` 1) or less (-1)."""
    bit = 1 << kind
    ones, twos, fours = hand.ones, hand.twos, hand.fours
    if by > 0:
        ones, twos, fours = one_more(ones, twos, fours, bit)
    else:
        borrow = ~ones & bit
        ones ^= bit
        fours &= ~(borrow & ~twos)
        twos ^= borrow
    m, p, s, z = hand.m, hand.p, hand.s, hand.z
    step = by * table[STEP + kind]
    if kind < 9:
        m += step
    elif kind < 18:
        p += step
    elif kind < 27:
        s += step
    else:
        z += step
    return HandBits(
        m,
        p,
        s,
        z,
        hand.laid_m,
        hand.laid_p,
        hand.laid_s,
        hand.laid_z,
        ones,
        twos,
        fours,
        hand.sequences,
        hand.runs,
        hand.triplets,
        hand.kongs,
        hand.concealed_kongs,
        hand.melds,
        hand.open_melds,
        won,
        hand.claimed,
        hand.options,
        hand.marks,
    )


@inner
def marked(hand: HandBits, found: int) -> HandBits:
    """The hand with these marks besides its own."""
    return HandBits(
        hand.m,
        hand.p,
        hand.s,
        hand.z,
        hand.laid_m,
        hand.laid_p,
        hand.laid_s,
        hand.laid_z,
        hand.ones,
        hand.twos,
        hand.fours,
        hand.sequences,
        hand.runs,
        hand.triplets,
        hand.kongs,
        hand.concealed_kongs,
        hand.melds,
        hand.open_melds,
        hand.won,
        hand.claimed,
        hand.options,
        hand.marks | found,
    )


# ---- Shapes and readings of fourteen tiles ----


@inner
def standard_readings(table: Words, hand: HandBits) -> int:
    """How many ways there are to read four sets and a pair."""
    a = table[ROWS + 2 * hand.m]
    b = table[ROWS + 2 * hand.p]
    c = table[ROWS + 2 * hand.s]
    d = table[ROWS + 2 * hand.z]
    readings = ((a >> 10) & 7) * ((b >> 10) & 7) * ((c >> 10) & 7) * ((d >> 10) & 7)
    # Four complete suits have one pair or four: 2, 2, 5 and 5 tiles are no win.
    pairs = ((a >> 9) & 1) + ((b >> 9) & 1) + ((c >> 9) & 1) + ((d >> 9) & 1)
    return readings if pairs == 1 else 0


@inner
def standard_reading(table: Words, hand: HandBits, number: int) -> ReadingBits:
    """Reading `number`, counted through the suits' own readings as the digits of a number."""
    a = table[ROWS + 2 * hand.m]
    b = table[ROWS + 2 * hand.p]
    c = table[ROWS + 2 * hand.s]
    d = table[ROWS + 2 * hand.z]
    radix = (a >> 10) & 7
    place_a = SPLITS + 2 * ((a >> 13) + number % radix)
    number //= radix
    radix = (b >> 10) & 7
    place_b = SPLITS + 2 * ((b >> 13) + number % radix)
    number //= radix
    radix = (c >> 10) & 7
    place_c = SPLITS + 2 * ((c >> 13) + number % radix)
    if SHAPES & DRAGON_RUN:
        number //= radix
        place_d = SPLITS + 2 * ((d >> 13) + number)
    else:
        place_d = SPLITS + 2 * (d >> 13)  # honours are read in one way
    a, b, c, d = table[place_a], table[place_b], table[place_c], table[place_d]
    triplets = (a & 511) | (b & 511) << 9 | (c & 511) << 18 | (d & 511) << 27
    sequences = table[place_a + 1] + (table[place_b + 1] << 21) + (table[place_c + 1] << 42)
    if a >> 9:
        pair = (a >> 9) - 1
    elif b >> 9:
        pair = (b >> 9) + 8
    elif c >> 9:
        pair = (c >> 9) + 17
    else:
        pair = (d >> 9) + 26
    runs = hand.runs + table[place_d + 1] if SHAPES & DRAGON_RUN else 0
    return ReadingBits(STANDARD, pair, hand.triplets | triplets, hand.sequences + sequences, runs)


@inner
def is_seven_pairs(hand: HandBits) -> bool:
    """Fourteen concealed tiles in pairs; four alike are two."""
    return hand.melds == 0 and hand.ones == 0


@inner
def is_thirteen_orphans(hand: HandBits) -> bool:
    """All thirteen kinds and one of them twice, concealed."""
    return hand.melds == 0 and held_kinds(hand) == ORPHANS_MASK


@inner
def seven_pairs_reading() -> ReadingBits:
    """The reading as seven pairs, which needs no more than the hand tells."""
    return ReadingBits(SEVEN_PAIRS, NO_KIND, 0, 0, 0)


@inner
def thirteen_orphans_reading(hand: HandBits) -> ReadingBits:
    """The reading as thirteen orphans, with the kind that is held twice."""
    return ReadingBits(THIRTEEN_ORPHANS, count_bits(hand.twos - 1), 0, 0, 0)


@inner
def wins(table: Words, hand: HandBits) -> bool:
    """Whether a reading has the shape and passes the conditions."""
    for number in range(standard_readings(table, hand)):
        if allows(hand, standard_reading(table, hand, number)):
            return True
    if SHAPES & SEVEN_PAIRS and is_seven_pairs(hand) and allows(hand, seven_pairs_reading()):
        return True
    if SHAPES & THIRTEEN_ORPHANS and is_thirteen_orphans(hand):
        return allows(hand, thirteen_orphans_reading(hand))
    return False


@inner
def worth(items: int, reading: ReadingBits) -> int:
    """What puts readings in order: the most fan, then the most triplets."""
    return 8 * total_fan(items) + count_bits(reading.triplets)


@inner
def with_marks(table: Words, hand: HandBits) -> HandBits:
    """The hand of fourteen tiles with what each of its legal readings tells."""
    if not USES_MARKS:
        return hand
    found = 0
    for number in range(standard_readings(table, hand)):
        reading = standard_reading(table, hand, number)
        if allows(hand, reading):
            found |= marks(hand, reading)
    if SHAPES & SEVEN_PAIRS and is_seven_pairs(hand):
        reading = seven_pairs_reading()
        if allows(hand, reading):
            found |= marks(hand, reading)
    if SHAPES & THIRTEEN_ORPHANS and is_thirteen_orphans(hand):
        reading = thirteen_orphans_reading(hand)
        if allows(hand, reading):
            found |= marks(hand, reading)
    return marked(hand, found)


@inner
def best_items(table: Words, hand: HandBits) -> int:
    """The fan items of the reading that is worth most by the hand alone; -1: no win."""
    hand = with_marks(table, hand)
    best = -1
    most = -1
    for number in range(standard_readings(table, hand)):
        reading = standard_reading(table, hand, number)
        if allows(hand, reading):
            items = fan(hand, reading)
            value = worth(items, reading)
            if value > most:
                best, most = items, value
    if SHAPES & SEVEN_PAIRS and is_seven_pairs(hand):
        reading = seven_pairs_reading()
        if allows(hand, reading):
            items = fan(hand, reading)
            value = worth(items, reading)
            if value > most:
                best, most = items, value
    if SHAPES & THIRTEEN_ORPHANS and is_thirteen_orphans(hand):
        reading = thirteen_orphans_reading(hand)
        if allows(hand, reading):
            items = fan(hand, reading)
            if worth(items, reading) > most:
                best = items
    return best


@inner
def put_reading(hand: HandBits, reading: ReadingBits, out: Out, place: int) -> int:
    """Write the reading if it passes the conditions; 1 if it does, else 0."""
    if not allows(hand, reading):
        return 0
    at = READING_WORDS * place
    out[at] = reading.shape
    out[at + 1] = reading.pair
    out[at + 2] = reading.triplets
    out[at + 3] = reading.sequences
    out[at + 4] = reading.runs
    out[at + 5] = fan(hand, reading)
    return 1


# ---- Legal waits of thirteen tiles ----


@inner
def standard_waits(table: Words, hand: HandBits) -> int:
    """Kinds that complete four sets and a pair, as a mask."""
    a = table[ROWS + 2 * hand.m]
    b = table[ROWS + 2 * hand.p]
    c = table[ROWS + 2 * hand.s]
    d = table[ROWS + 2 * hand.z]
    open_a = 0 if (a >> 10) & 7 else 1
    open_b = 0 if (b >> 10) & 7 else 1
    open_c = 0 if (c >> 10) & 7 else 1
    open_d = 0 if (d >> 10) & 7 else 1
    if open_a + open_b + open_c + open_d > 1:
        return 0
    pair_a, pair_b, pair_c, pair_d = (a >> 9) & 1, (b >> 9) & 1, (c >> 9) & 1, (d >> 9) & 1
    pairs = pair_a + pair_b + pair_c + pair_d
    if open_a + open_b + open_c + open_d == 1:
        # One suit lacks a tile: for its pair, or, where another suit has that, for a set.
        if pairs > 1:
            return 0
        return (
            open_a * (a & 511)
            | open_b * (b & 511) << 9
            | open_c * (c & 511) << 18
            | open_d * (d & 511) << 27
        )
    # Two complete suits with a pair each: a tile makes a triplet or sequences of either.
    if pairs != 2:
        return 0
    return (
        pair_a * (a & 511)
        | pair_b * (b & 511) << 9
        | pair_c * (c & 511) << 18
        | pair_d * (d & 511) << 27
    )


@inner
def shape_waits(table: Words, hand: HandBits) -> int:
    """Kinds that complete a shape and of which a copy is left, as a mask."""
    waits = standard_waits(table, hand)
    if hand.melds == 0:
        if SHAPES & SEVEN_PAIRS and hand.ones & (hand.ones - 1) == 0:
            waits |= hand.ones
        if SHAPES & THIRTEEN_ORPHANS:
            kinds = held_kinds(hand)
            lacking = ORPHANS_MASK & ~kinds
            if kinds & ~ORPHANS_MASK == 0 and lacking & (lacking - 1) == 0:
                waits |= lacking if lacking else ORPHANS_MASK
    return waits & ~hand.fours


@inner
def legal_waits(table: Words, hand: HandBits) -> int:
    """Kinds that complete a win by shape and conditions, as a mask."""
    left = shape_waits(table, hand)
    waits = 0
    while left:
        bit = left & -left
        left ^= bit
        kind = count_bits(bit - 1)
        if wins(table, moved(table, hand, kind, 1, kind)):
            waits |= bit
    return waits


@inner
def with_wait(table: Words, hand: HandBits) -> HandBits:
    """The hand of fourteen tiles, marked where its winning tile was its only legal wait."""
    if not USES_MARKS or hand.won < 0:
        return hand
    waits = legal_waits(table, moved(table, hand, hand.won, -1, NO_KIND))
    return marked(hand, SINGLE_WAIT if waits & (waits - 1) == 0 else 0)


# ---- What Python calls ----


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
    hand = pack(table, concealed, melds, won, claimed, options)
    hand = with_marks(table, with_wait(table, hand))
    found = 0
    for number in range(standard_readings(table, hand)):
        found += put_reading(hand, standard_reading(table, hand, number), out, found)
    if SHAPES & SEVEN_PAIRS and is_seven_pairs(hand):
        found += put_reading(hand, seven_pairs_reading(), out, found)
    if SHAPES & THIRTEEN_ORPHANS and is_thirteen_orphans(hand):
        found += put_reading(hand, thirteen_orphans_reading(hand), out, found)
    return found


@entry
def best(table: Words, concealed: bytes, melds: bytes, won: int, claimed: int, options: int) -> int:
    """The fan items of the best reading of fourteen tiles by the hand alone; -1: no win."""
    hand = pack(table, concealed, melds, won, claimed, options)
    return best_items(table, with_wait(table, hand))


@entry
def waits(table: Words, concealed: bytes, melds: bytes, options: int, out: Out) -> int:
    """The legal waits of thirteen tiles as a mask; in `out`, by kind, the fan items of each.

    They are those of the best reading when another's discard completes it.
    """
    hand = pack(table, concealed, melds, NO_KIND, 1, options)
    left = shape_waits(table, hand)
    if USES_MARKS:
        left = legal_waits(table, hand)
        hand = marked(hand, SINGLE_WAIT if left & (left - 1) == 0 else 0)
    legal = 0
    while left:
        bit = left & -left
        left ^= bit
        kind = count_bits(bit - 1)
        items = best_items(table, moved(table, hand, kind, 1, kind))
        if items >= 0:
            legal |= bit
            out[kind] = items
    return legal


@entry
def discards(table: Words, concealed: bytes, melds: bytes, options: int, out: Out) -> int:
    """Kinds after whose discard fourteen tiles wait, as a mask; in `out`, by kind, the waits."""
    hand = pack(table, concealed, melds, NO_KIND, 1, options)
    ready = 0
    last = NO_KIND
    for i in range(len(concealed)):
        kind = int(concealed[i])
        if kind != last:
            last = kind
            legal = legal_waits(table, moved(table, hand, kind, -1, NO_KIND))
            if legal:
                ready |= 1 << kind
                out[kind] = legal
    return ready
