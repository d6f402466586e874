"""Hands as records of four words, checked and read; `fangcheng_rules.packed` tells the layout.

Words are signed and of 64 bits. A hand's: characters and dots; bamboos and honours; melds, added
dragons, winning tile and moment; options. A result's five are written by the kernels that find
what is in them. Only a record that `check_many` has passed is read by another kernel.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .facts import DRAGON_RUN, TREASURE, HandBits
from .hands import CHI, CONCEALED_KONG, FIRST_DRAGON, OPEN_KONG, PONG, Out, Words, place_of
from .speed import CAN_GATHER, GATHERS, count_bits, entry, gather_bits, inner
from .tables import FIRST_THREE, LAST_THREE, MIDDLE_THREE, OCTAL, PLAIN_HONOURS, RUN_HONOURS

HAND_WORDS: Final = 4
RESULT_WORDS: Final = 5
MOMENT_WORDS: Final = 5
"""Of a moment, for a closed winner and then for an open one: the fan items of the hand that it
leaves, the fan that it adds, and what it adds to the three words of counts."""

THIRTEEN: Final = 13
FOURTEEN: Final = 14

SUIT_BITS: Final = (1 << 27) - 1
HONOUR_BITS: Final = (1 << 21) - 1
WORD_BITS: Final = (1 << 32) - 1
SELF_DRAW: Final = 1
ON_DEAL: Final = 8
"""Of the flags of the moment those that matter here."""
NOT_ASKED: Final = 127
NOTHING_ASKED: Final = NOT_ASKED << 16 | NOT_ASKED << 24
"""The first word of a result of which nothing is known."""
FIELDS: Final = 0o111111111 << 32 | 0o111111111
"""The lowest bit of each rank's field, in the words of two suits."""
TWOS: Final = FIELDS << 1
FOURS: Final = FIELDS << 2
EVEN: Final = 0o707070707 << 32 | 0o707070707
"""The fields of every other rank, of the first, third, ... of each suit."""
THREE_EACH: Final = 0o303030303 << 32 | 0o303030303
EIGHT_EACH: Final = 0o3030303030 << 32 | 0o3030303030
"""What to add to fields of six bits, and the bits of which that sets one where it is five to 28."""

(
    INVALID_RECORD,
    INVALID_MELD,
    TILE_NOT_PLAYED,
    WRONG_TILE_COUNT,
    FIFTH_COPY,
    TILE_NOT_HELD,
    INVALID_OPTION,
    INVALID_MOMENT,
) = range(1, 9)
"""What is wrong with a record: its status."""

PLAYED: Final = 4 + 256
"""Where the ranks that are played stand behind the limits of options and moments."""
TREASURES: Final = PLAYED + 3
"""... and behind them the mask of the kinds that can be drawn as a treasure."""
LIMITS: Final = TREASURES + 1
CANNOT_BE, ANY_HAND, NEEDS_KONG, NO_MELD, NO_MELD_BUT_WHIRLWIND = range(5)
"""By moment: whether it can be, and with which melds."""

MELD_WORDS: Final = 8
"""Words of each byte that may stand for a meld, see `meld_words`."""
KINDS: Final = (1 << 34) - 1
GATHERS_AT: Final = 256 * MELD_WORDS
MELDS, OPEN, RUNS, KONGS, UNKNOWN = 40, 43, 46, 49, 52


class RecordBits(NamedTuple):
    """A record as it lies there, its melds added up; it may be anything.

    Ranks are counted in fields of six bits, every other one of a suit in one word: four melds of a
    kind beside four tiles of it do not carry.
    """

    first: int
    """Characters and dots,"""
    second: int
    """... bamboos and honours,"""
    third: int
    """... melds and so on,"""
    fourth: int
    """... options."""
    even: int
    """Tiles in melds: characters and dots, the first, third, ... rank of each,"""
    odd: int
    """... and the second, fourth, ...;"""
    even_2: int
    """... bamboos and honours likewise."""
    odd_2: int
    bits: int
    """How many bits all counts of concealed tiles have together,"""
    pairs: int
    """... those of value 2,"""
    fours: int
    """... and those of value 4."""
    sequences: int
    """Of the other words of `meld_words` the sums."""
    facts: int
    kongs: int
    concealed_kongs: int
    gathers: int
    """1 where `gather_bits` is quick."""


def meld_words() -> npt.NDArray[np.int64]:
    """What each byte means that stands for a meld: `MELD_WORDS` for each.

    Its tiles, as `RecordBits` has them; its sequence; its triplet as a mask, and above that 1 at
    `MELDS`, at `OPEN` if it opens the hand, at `RUNS` or `KONGS` (a whirlwind is both), at
    `UNKNOWN` if there is no such meld; its kong, and its concealed kong, as masks. All can be
    added up; four times none of them carries into the next. Behind them, 1 where `gather_bits` is
    quick: kept code cannot know which processor it will run on.
    """
    # Nothing compiled is called: each start would wait for the compiler to make it for Python.
    words = np.zeros((256 + 1, MELD_WORDS), np.int64)
    words.ravel()[GATHERS_AT] = GATHERS
    for byte in range(1, 256):
        how, kind = byte >> 6, (byte & 63) - 1
        is_run = how == CHI and kind == FIRST_DRAGON
        is_chi = how == CHI and kind < 27 and kind % 9 < 7
        words[byte, 5] = 1 << MELDS
        if not 0 <= kind < 34 or (how == CHI and not is_chi and not is_run):
            words[byte, 5] |= 1 << UNKNOWN
            continue
        suit = kind // 9
        place = 3 * (kind % 9) + 32 * (suit & 1)
        tiles = (0o111 if how == CHI else 3 if how == PONG else 4) << place
        words[byte, suit // 2 * 2 : suit // 2 * 2 + 2] = tiles & EVEN, tiles >> 3 & EVEN
        words[byte, 4] = 1 << (3 * (kind - 2 * suit)) if is_chi else 0
        words[byte, 5] |= 0 if how == CHI else 1 << kind
        words[byte, 5] |= 0 if how == CONCEALED_KONG else 1 << OPEN
        words[byte, 5] |= 1 << RUNS if is_run else 0
        words[byte, 5] |= 1 << KONGS if is_run or how >= OPEN_KONG else 0
        words[byte, 6] = 1 << kind if how >= OPEN_KONG else 0
        words[byte, 7] = 1 << kind if how == CONCEALED_KONG else 0
    words.flags.writeable = False
    return words.ravel()


@inner
def every_other(word: int) -> int:
    """Of the ranks of two suits the first, third, ...: in fields of six bits."""
    return word & EVEN


@inner
def beyond_four(even: int, odd: int) -> int:
    """Not 0 if a rank counts five or more; its ranks every other one in each word."""
    return ((even + THREE_EACH) | (odd + THREE_EACH)) & EIGHT_EACH


@inner
def read(laid_down: Words, hands: Words, i: int) -> RecordBits:
    """A record, whatever it is; `laid_down` is `meld_words`."""
    at = HAND_WORDS * i
    first, second, third = hands[at], hands[at + 1], hands[at + 2]
    even = odd = even_2 = odd_2 = sequences = facts = kongs = concealed_kongs = 0
    # All four places or none: how many melds there are, nobody can foresee.
    for place in range(4 if third & WORD_BITS else 0):
        row = MELD_WORDS * ((third >> (8 * place)) & 255)
        even += laid_down[row]
        odd += laid_down[row + 1]
        even_2 += laid_down[row + 2]
        odd_2 += laid_down[row + 3]
        sequences += laid_down[row + 4]
        facts += laid_down[row + 5]
        kongs += laid_down[row + 6]
        concealed_kongs += laid_down[row + 7]
    # Dragons added to a whirlwind: the first and the third, and the second.
    even_2 += ((third >> 32) & 3) << 44 | ((third >> 36) & 3) << 50
    odd_2 += ((third >> 34) & 3) << 44
    return RecordBits(
        first,
        second,
        third,
        hands[at + 3],
        even,
        odd,
        even_2,
        odd_2,
        count_bits(first) + count_bits(second),
        count_bits(first & TWOS) + count_bits(second & TWOS),
        count_bits(first & FOURS) + count_bits(second & FOURS),
        sequences,
        facts,
        kongs,
        concealed_kongs,
        laid_down[GATHERS_AT],
    )


@inner
def octal(table: Words, word: int, lowest: int) -> int:
    """Of three ranks, from bit `lowest`: see `tables.octal_words`."""
    return table[OCTAL + ((word >> lowest) & 511)]


@inner
def key_in(table: Words, word: int, lowest: int) -> int:
    """The key of the suit that begins at bit `lowest`; of nine ranks, above which nothing is."""
    return (
        table[FIRST_THREE + ((word >> lowest) & 511)]
        + table[MIDDLE_THREE + ((word >> (lowest + 9)) & 511)]
        + table[LAST_THREE + ((word >> (lowest + 18)) & 511)]
    )


@inner
def masks_of(a: int, b: int, c: int) -> int:
    """A suit's counts as three masks of nine ranks: ones, twos, fours."""
    return a | b << 3 | c << 6


@inner
def masks_in(table: Words, first: int, second: int, gathers: int) -> tuple[int, int, int]:
    """Of the words of two suits and of the two others the masks over all kinds: ones, twos, fours.

    Looked up where there is no quick instruction for it.
    """
    if CAN_GATHER and gathers:
        return (
            gather_bits(first, FIELDS) | gather_bits(second, FIELDS) << 18,
            gather_bits(first, TWOS) | gather_bits(second, TWOS) << 18,
            gather_bits(first, FOURS) | gather_bits(second, FOURS) << 18,
        )
    m, p, s, z = first & SUIT_BITS, first >> 32, second & SUIT_BITS, second >> 32
    in_m = masks_of(octal(table, m, 0), octal(table, m, 9), octal(table, m, 18))
    in_p = masks_of(octal(table, p, 0), octal(table, p, 9), octal(table, p, 18))
    in_s = masks_of(octal(table, s, 0), octal(table, s, 9), octal(table, s, 18))
    in_z = masks_of(octal(table, z, 0), octal(table, z, 9), octal(table, z, 18))
    ones = (in_m & 511) | (in_p & 511) << 9 | (in_s & 511) << 18 | (in_z & 511) << 27
    in_m, in_p, in_s, in_z = in_m >> 9, in_p >> 9, in_s >> 9, in_z >> 9
    twos = (in_m & 511) | (in_p & 511) << 9 | (in_s & 511) << 18 | (in_z & 511) << 27
    in_m, in_p, in_s, in_z = in_m >> 9, in_p >> 9, in_s >> 9, in_z >> 9
    fours = (in_m & 511) | (in_p & 511) << 9 | (in_s & 511) << 18 | (in_z & 511) << 27
    return ones, twos, fours


@inner
def treasure_in(bits: RecordBits) -> int:
    """The kind + 1 of the treasure that was drawn; 0: none."""
    return (bits.third >> 56) & 255


@inner
def record(table: Words, bits: RecordBits, shapes: int) -> HandBits:
    """The hand of a record that is in order."""
    first, second = bits.first, bits.second
    row_m, row_p = key_in(table, first, 0), key_in(table, first, 32)
    row_s, row_z = key_in(table, second, 0), key_in(table, second, 32)
    row_z += RUN_HONOURS if shapes & DRAGON_RUN else PLAIN_HONOURS

    # What is held, concealed or not.
    laid, laid_2 = bits.even + (bits.odd << 3), bits.even_2 + (bits.odd_2 << 3)
    first += laid
    second += laid_2
    ones, twos, fours = masks_in(table, first, second, bits.gathers)
    facts = bits.facts
    return HandBits(
        row_m,
        row_p,
        row_s,
        row_z,
        laid,
        laid_2,
        ones,
        twos,
        fours,
        bits.sequences,
        (facts >> RUNS) & 7,
        facts & KINDS,
        bits.kongs,
        bits.concealed_kongs,
        (facts >> MELDS) & 7,
        (facts >> OPEN) & 7,
        ((bits.third >> 40) & 255) - 1,
        1 - ((bits.third >> 48) & 1),
        bits.fourth & WORD_BITS | treasure_in(bits) << TREASURE,
        0,
    )


@inner
def moment_in(bits: RecordBits) -> int:
    """The flags of the moment; a drawn treasure counts in place of the self-draw."""
    moment = (bits.third >> 48) & 255
    return moment & ~SELF_DRAW if treasure_in(bits) else moment


@inner
def is_open(hand: HandBits) -> int:
    """1 if a meld opens the hand, else 0."""
    return 1 if hand.open_melds > 0 else 0


@inner
def held_in(word: int) -> int:
    """Which ranks the words of two suits have any of: a bit in each field."""
    return (word | word >> 1 | word >> 2) & FIELDS


@inner
def status_of(bits: RecordBits, limits: Words) -> int:
    """13 or 14 for a hand in order, else less than 0: `INVALID_RECORD` and so on, negated.

    `limits` are the greatest value of each option, what each moment asks for, which ranks are
    played, a bit in each field of two suits and of the two others, how many whirlwinds may be, and
    which kinds can be a treasure.
    """
    first, second, third, last = bits.first, bits.second, bits.third, bits.fourth
    facts = bits.facts
    if (last >> 32) & WORD_BITS != 0:
        return -INVALID_RECORD

    melds, runs = (facts >> MELDS) & 7, (facts >> RUNS) & 7
    added = (third >> 32) & 255
    is_gap = (third & WORD_BITS) >> (8 * melds) != 0
    if facts >> UNKNOWN != 0 or is_gap or runs > limits[PLAYED + 2]:
        return -INVALID_MELD
    if added >> 6 != 0 or (added != 0 and runs == 0):
        return -INVALID_MELD

    if first & ~(SUIT_BITS | SUIT_BITS << 32) or second & ~(SUIT_BITS | HONOUR_BITS << 32):
        return -TILE_NOT_PLAYED
    even, odd = every_other(first) + bits.even, every_other(first >> 3) + bits.odd
    even_2, odd_2 = every_other(second) + bits.even_2, every_other(second >> 3) + bits.odd_2
    if beyond_four(even, odd) | beyond_four(even_2, odd_2):
        return -FIFTH_COPY
    size = bits.bits + bits.pairs + 3 * bits.fours + 3 * melds
    if size != THIRTEEN and size != FOURTEEN:
        return -WRONG_TILE_COUNT
    # No rank counts more than four: the fields are those of a record again.
    if (
        held_in(even | odd << 3) & ~limits[PLAYED]
        | held_in(even_2 | odd_2 << 3) & ~limits[PLAYED + 1]
    ):
        return -TILE_NOT_PLAYED

    # The winning tile, the options, the moment.
    won = ((third >> 40) & 255) - 1
    if won >= 0:
        if size == THIRTEEN or won > 33:
            return -TILE_NOT_HELD
        suit = won // 9
        own = second if suit > 1 else first
        if (own >> (3 * (won - 9 * suit) + 32 * (suit & 1))) & 7 == 0:
            return -TILE_NOT_HELD
    if last != 0:
        for place in range(4):
            if (last >> (8 * place)) & 255 > limits[place]:
                return -INVALID_OPTION
    moment = (third >> 48) & 255
    if moment != 0:
        needs = limits[4 + moment]
        if won < 0 or needs == CANNOT_BE:
            return -INVALID_MOMENT
        # A whirlwind that no dragon was added to has had no replacement.
        if needs == NEEDS_KONG and (facts >> KONGS) & 7 == (0 if added else runs):
            return -INVALID_MOMENT
        if needs == NO_MELD and melds != 0:
            return -INVALID_MOMENT
        if needs == NO_MELD_BUT_WHIRLWIND and melds != runs:
            return -INVALID_MOMENT
    treasure = treasure_in(bits) - 1
    if treasure >= 0:
        if treasure > 33 or (limits[TREASURES] >> treasure) & 1 == 0:
            return -INVALID_MOMENT
        if won < 0 or moment & SELF_DRAW == 0 or moment & ON_DEAL != 0:
            return -INVALID_MOMENT
        # The hand has the tile that the treasure stands for; besides its own tiles there are the
        # treasure that was drawn and the one that lies on the wall.
        own = even_2 | odd_2 << 3 if treasure > 17 else even | odd << 3
        if (own >> place_of(treasure)) & 7 > (3 if won == treasure else 2):
            return -FIFTH_COPY
    return size


@inner
def opened(bits: RecordBits, i: int, limits: Words, sizes: Out, out: Out) -> int:
    """`status_of` record `i`, kept in `sizes`, which is 0 before; and its result begun."""
    size = sizes[i]
    if size == 0:
        size = status_of(bits, limits)
        sizes[i] = size
        at = RESULT_WORDS * i
        out[at] = NOTHING_ASKED if size > 0 else -size
        out[at + 1] = 0
        out[at + 2] = 0
        out[at + 3] = 0
        out[at + 4] = 0
    return size


@entry
def check_many(laid_down: Words, hands: Words, limits: Words, sizes: Out, out: Out) -> None:
    """`opened` of each record, for those that rely on it."""
    for i in range(len(sizes)):
        opened(read(laid_down, hands, i), i, limits, sizes, out)
