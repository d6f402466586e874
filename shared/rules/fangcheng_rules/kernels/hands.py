"""A hand as integers: read, changed, and what shapes it has. Not the rule sets' affair.

`shapes` says which shapes there are (`Hot.shapes`); where a rule set's own functions call these
it is a constant, and what is not its own falls away.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Final

from .facts import (
    DRAGON_RUN,
    NO_KIND,
    ORPHANS_MASK,
    SEVEN_PAIRS,
    STANDARD,
    THIRTEEN_ORPHANS,
    HandBits,
    ReadingBits,
    held_kinds,
    total_fan,
)
from .speed import count_bits, inner, lowest_bit
from .tables import PLAIN_HONOURS, ROWS, RUN_HONOURS, SPLITS, STEP

Words = Sequence[int]
Out = MutableSequence[int]

CHI, PONG, OPEN_KONG, CONCEALED_KONG = range(4)
"""How a meld was laid down."""
FIRST_DRAGON: Final = 31
"""The kind of a whirlwind kong, which counts as a chi, and ..."""
ADDED_DRAGON: Final = 34
"""... in `pack`, the first of the bytes for dragons added to it: 34 for 5z up to 36 for 7z."""


# ---- A hand as integers ----


@inner
def one_more(ones: int, twos: int, fours: int, kinds: int) -> tuple[int, int, int]:
    """The counts with one more of each of these kinds."""
    carry = ones & kinds
    return ones ^ kinds, twos ^ carry, fours | (twos & carry)


@inner
def pack(
    table: Words, concealed: bytes, melds: bytes, won: int, claimed: int, options: int, shapes: int
) -> HandBits:
    """The hand of these tiles (a kind each, sorted) and melds (see `bound.melds_as_bytes`)."""
    m = p = s = 0
    z = RUN_HONOURS if shapes & DRAGON_RUN else PLAIN_HONOURS
    ones = twos = fours = 0
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
    hand = in_hand(m, p, s, z, ones, twos, fours, won, claimed, options)
    for i in range(len(melds)):
        byte = int(melds[i])
        if byte < ADDED_DRAGON or byte >> 6 != CHI:
            hand = with_meld(hand, byte >> 6, byte & 63)
        else:
            hand = with_dragon(hand, (byte & 63) - ADDED_DRAGON + FIRST_DRAGON)
    return hand


@inner
def in_hand(
    m: int,
    p: int,
    s: int,
    z: int,
    ones: int,
    twos: int,
    fours: int,
    won: int,
    claimed: int,
    options: int,
) -> HandBits:
    """A hand without melds."""
    return HandBits(
        m, p, s, z, 0, 0, ones, twos, fours, 0, 0, 0, 0, 0, 0, 0, won, claimed, options, 0
    )


@inner
def place_of(kind: int) -> int:
    """Where a kind's three bits begin among the tiles of a record, in the word of its suit."""
    suit = kind // 9
    return 3 * (kind - 9 * suit) + 32 * (suit & 1)


@inner
def with_meld(hand: HandBits, how: int, kind: int) -> HandBits:
    """The hand with one meld more, of this lowest tile; `how` is one of `CHI`, `PONG`, ..."""
    # No branches, but choices between two numbers: what melds there are nobody can foresee, the
    # processor neither.
    bit = 1 << kind
    is_chi = how == CHI
    is_run = kind == FIRST_DRAGON and is_chi
    three = bit if how == PONG else 0
    four = bit if how > PONG else 0
    once = 7 * bit if is_chi else 0
    ones, twos, fours = one_more(hand.ones, hand.twos, hand.fours, once)
    # Three more of what is held once already makes four.
    fours |= four | (ones & three)
    twos ^= three & ~ones
    ones ^= three
    concealed = bit if how == CONCEALED_KONG else 0
    suit = kind // 9
    laid = (0o111 if is_chi else 3 if how == PONG else 4) << place_of(kind)
    return HandBits(
        hand.m,
        hand.p,
        hand.s,
        hand.z,
        hand.laid + (laid if suit < 2 else 0),
        hand.laid_2 + (laid if suit >= 2 else 0),
        ones,
        twos,
        fours,
        hand.sequences + (1 << (3 * (kind - 2 * suit)) if is_chi and not is_run else 0),
        hand.runs + (1 if is_run else 0),
        hand.triplets | three | four,
        hand.kongs | four,
        hand.concealed_kongs | concealed,
        hand.melds + 1,
        hand.open_melds + (0 if concealed else 1),
        hand.won,
        hand.claimed,
        hand.options,
        hand.marks,
    )


@inner
def with_dragon(hand: HandBits, kind: int) -> HandBits:
    """The hand with a dragon added to its whirlwind kong."""
    ones, twos, fours = one_more(hand.ones, hand.twos, hand.fours, 1 << kind)
    return HandBits(
        hand.m,
        hand.p,
        hand.s,
        hand.z,
        hand.laid,
        hand.laid_2 + (1 << place_of(kind)),
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
        hand.won,
        hand.claimed,
        hand.options,
        hand.marks,
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
    step = by * table[STEP + kind]
    suit = kind // 9
    return HandBits(
        hand.m + (step if suit == 0 else 0),
        hand.p + (step if suit == 1 else 0),
        hand.s + (step if suit == 2 else 0),
        hand.z + (step if suit == 3 else 0),
        hand.laid,
        hand.laid_2,
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
        hand.laid,
        hand.laid_2,
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
    a = table[ROWS + hand.m]
    b = table[ROWS + hand.p]
    c = table[ROWS + hand.s]
    d = table[ROWS + hand.z]
    readings = ((a >> 10) & 7) * ((b >> 10) & 7) * ((c >> 10) & 7) * ((d >> 10) & 7)
    # Four complete suits have one pair or four: 2, 2, 5 and 5 tiles are no win.
    pairs = ((a >> 9) & 1) + ((b >> 9) & 1) + ((c >> 9) & 1) + ((d >> 9) & 1)
    return readings if pairs == 1 else 0


@inner
def standard_reading(table: Words, hand: HandBits, number: int, shapes: int) -> ReadingBits:
    """Reading `number`, counted through the suits' own readings as the digits of a number."""
    a = table[ROWS + hand.m]
    b = table[ROWS + hand.p]
    c = table[ROWS + hand.s]
    d = table[ROWS + hand.z]
    place_a, place_b, place_c = a >> 13, b >> 13, c >> 13
    place_d = d >> 13
    if number > 0:  # the first reading is the only one nearly always
        radix = (a >> 10) & 7
        place_a += number % radix
        number //= radix
        radix = (b >> 10) & 7
        place_b += number % radix
        number //= radix
        radix = (c >> 10) & 7
        place_c += number % radix
        if shapes & DRAGON_RUN:  # else honours are read in one way
            place_d += number // radix
    place_a, place_b = SPLITS + 2 * place_a, SPLITS + 2 * place_b
    place_c, place_d = SPLITS + 2 * place_c, SPLITS + 2 * place_d
    a, b, c, d = table[place_a], table[place_b], table[place_c], table[place_d]
    triplets = (a & 511) | (b & 511) << 9 | (c & 511) << 18 | (d & 511) << 27
    sequences = table[place_a + 1] + (table[place_b + 1] << 21) + (table[place_c + 1] << 42)
    # One suit has the pair, its rank counted from 1; the others have 0.
    pair = (a >> 9) + (b >> 9) + (c >> 9) + (d >> 9) - 1
    pair += (9 if b >> 9 else 0) + (18 if c >> 9 else 0) + (27 if d >> 9 else 0)
    runs = hand.runs + table[place_d + 1] if shapes & DRAGON_RUN else 0
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
    return ReadingBits(THIRTEEN_ORPHANS, lowest_bit(hand.twos), 0, 0, 0)


@inner
def count_readings(table: Words, hand: HandBits, shapes: int) -> int:
    """How many readings there are of any of these shapes."""
    readings = standard_readings(table, hand)
    if shapes & SEVEN_PAIRS and is_seven_pairs(hand):
        readings += 1
    if shapes & THIRTEEN_ORPHANS and is_thirteen_orphans(hand):
        readings += 1
    return readings


@inner
def reading_of(
    table: Words, hand: HandBits, number: int, standard: int, shapes: int
) -> ReadingBits:
    """Reading `number`, `standard` of them being of the standard shape, which come first."""
    if number < standard:
        return standard_reading(table, hand, number, shapes)
    if shapes & SEVEN_PAIRS and hand.ones == 0:
        return seven_pairs_reading()
    return thirteen_orphans_reading(hand)


@inner
def worth(items: int, reading: ReadingBits) -> int:
    """What puts readings in order: the most fan, then the most triplets."""
    return 8 * total_fan(items) + count_bits(reading.triplets)


# ---- Waits of thirteen tiles ----


@inner
def standard_waits(table: Words, hand: HandBits) -> int:
    """Kinds that complete four sets and a pair, as a mask."""
    a = table[ROWS + hand.m]
    b = table[ROWS + hand.p]
    c = table[ROWS + hand.s]
    d = table[ROWS + hand.z]
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
def shape_waits(table: Words, hand: HandBits, shapes: int) -> int:
    """Kinds that complete a shape and of which a copy is left, as a mask."""
    waits = standard_waits(table, hand)
    if hand.melds == 0:
        if shapes & SEVEN_PAIRS and hand.ones & (hand.ones - 1) == 0:
            waits |= hand.ones
        if shapes & THIRTEEN_ORPHANS:
            kinds = held_kinds(hand)
            lacking = ORPHANS_MASK & ~kinds
            if kinds & ~ORPHANS_MASK == 0 and lacking & (lacking - 1) == 0:
                waits |= lacking if lacking else ORPHANS_MASK
    return waits & ~hand.fours
