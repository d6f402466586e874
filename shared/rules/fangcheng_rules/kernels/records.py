"""Hands as records of four words, checked and read; `fangcheng_rules.packed` tells the layout.

Words are signed and of 64 bits. A hand's: characters and dots; bamboos and honours; melds, added
dragons, winning tile and moment; options. A result's five are written by the kernels that find
what is in them. Only a record that `check_many` has passed is read by another kernel.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from .facts import DRAGON_RUN, HandBits
from .hands import CHI, CONCEALED_KONG, FIRST_DRAGON, OPEN_KONG, PONG, Out, Words
from .speed import count_bits, entry, inner
from .tables import OCTAL, PLAIN_HONOURS, RUN_HONOURS

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
NOT_ASKED: Final = 127
NOTHING_ASKED: Final = NOT_ASKED << 16 | NOT_ASKED << 24
"""The first word of a result of which nothing is known."""
FIELDS: Final = 0o111111111 << 32 | 0o111111111
"""The lowest bit of each rank's field, in the words of two suits."""

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
LIMITS: Final = PLAYED + 3
CANNOT_BE, ANY_HAND, NEEDS_KONG, NO_MELD, NO_MELD_BUT_WHIRLWIND = range(5)
"""By moment: whether it can be, and with which melds."""

MELD_WORDS: Final = 8
"""Words of each byte that may stand for a meld, see `meld_words`."""
KINDS: Final = (1 << 34) - 1
MELDS, OPEN, RUNS, KONGS, UNKNOWN = 40, 43, 46, 49, 52


def meld_words() -> npt.NDArray[np.int64]:
    """What each byte means that stands for a meld: `MELD_WORDS` for each.

    Its tiles, in the words of two suits and of the two others; its tiles as keys of three suits
    (`HandBits.laid`) and of the honours; its sequence; its triplet as a mask, and above that 1 at
    `MELDS`, at `OPEN` if it opens the hand, at `RUNS` or `KONGS` (a whirlwind is both), at
    `UNKNOWN` if there is no such meld; its kong, and its concealed kong, as masks. All can be
    added up; four times none of them carries into the next.
    """
    words = np.zeros((256, MELD_WORDS), np.int64)
    for byte in range(1, 256):
        how, kind = byte >> 6, (byte & 63) - 1
        is_run = how == CHI and kind == FIRST_DRAGON
        is_chi = how == CHI and kind < 27 and kind % 9 < 7
        words[byte, 5] = 1 << MELDS
        if not 0 <= kind < 34 or (how == CHI and not is_chi and not is_run):
            words[byte, 5] |= 1 << UNKNOWN
            continue
        suit, place = divmod(kind, 9)
        tiles = 0o111 if how == CHI else 3 if how == PONG else 4
        words[byte, suit // 2] = tiles << (3 * place + 32 * (suit % 2))
        key = 31 if how == CHI else tiles
        words[byte, 2 if suit < 3 else 3] = key * 5**place << (21 * suit if suit < 3 else 0)
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
def octal(table: Words, word: int, lowest: int) -> int:
    """Of three ranks, from bit `lowest`: see `tables.octal_words`."""
    return table[OCTAL + ((word >> lowest) & 511)]


@inner
def key_of(a: int, b: int, c: int) -> int:
    """A suit's key, from the words of its ranks three by three."""
    return (a & 127) + 125 * (b & 127) + 15625 * (c & 127)


@inner
def masks_of(a: int, b: int, c: int) -> int:
    """A suit's counts as three masks of nine ranks: ones, twos, fours."""
    return (a >> 7) | (b >> 7) << 3 | (c >> 7) << 6


@inner
def record(table: Words, laid_down: Words, hands: Words, i: int, shapes: int) -> HandBits:
    """The hand of a record that is in order; `laid_down` is `meld_words`."""
    at = HAND_WORDS * i
    first, second, third = hands[at], hands[at + 1], hands[at + 2]
    m, p, s, z = first & SUIT_BITS, first >> 32, second & SUIT_BITS, second >> 32
    row_m = key_of(octal(table, m, 0), octal(table, m, 9), octal(table, m, 18))
    row_p = key_of(octal(table, p, 0), octal(table, p, 9), octal(table, p, 18))
    row_s = key_of(octal(table, s, 0), octal(table, s, 9), octal(table, s, 18))
    row_z = key_of(octal(table, z, 0), octal(table, z, 9), octal(table, z, 18))
    row_z += RUN_HONOURS if shapes & DRAGON_RUN else PLAIN_HONOURS

    # All four places, empty ones too: how many melds there are, nobody can foresee.
    laid = laid_z = sequences = facts = kongs = concealed_kongs = 0
    for place in range(4):
        row = MELD_WORDS * ((third >> (8 * place)) & 255)
        first += laid_down[row]
        second += laid_down[row + 1]
        laid += laid_down[row + 2]
        laid_z += laid_down[row + 3]
        sequences += laid_down[row + 4]
        facts += laid_down[row + 5]
        kongs += laid_down[row + 6]
        concealed_kongs += laid_down[row + 7]
    if shapes & DRAGON_RUN:
        added = (third >> 32) & 63
        second += added_dragons(added)
        laid_z += (added & 3) * 5**4 + ((added >> 2) & 3) * 5**5 + (added >> 4) * 5**6
    else:
        laid_z = 0

    # What is held, concealed or not.
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
    return HandBits(
        row_m,
        row_p,
        row_s,
        row_z,
        laid,
        laid_z,
        ones,
        twos,
        fours,
        sequences,
        (facts >> RUNS) & 7,
        facts & KINDS,
        kongs,
        concealed_kongs,
        (facts >> MELDS) & 7,
        (facts >> OPEN) & 7,
        ((third >> 40) & 255) - 1,
        1 - ((third >> 48) & 1),
        hands[at + 3] & WORD_BITS,
        0,
    )


@inner
def added_dragons(added: int) -> int:
    """What the dragons added to a whirlwind kong count, in the word of the honours."""
    return (added & 3) << 44 | ((added >> 2) & 3) << 47 | ((added >> 4) & 3) << 50


@inner
def moment_in(hands: Words, i: int) -> int:
    """The flags of the moment."""
    return (hands[HAND_WORDS * i + 2] >> 48) & 255


@inner
def is_open(hand: HandBits) -> int:
    """1 if a meld opens the hand, else 0."""
    return 1 if hand.open_melds > 0 else 0


@inner
def tiles_in(word: int) -> int:
    """How many tiles the words of two suits count."""
    twos, fours = word >> 1, word >> 2
    return (
        count_bits(word & FIELDS) + 2 * count_bits(twos & FIELDS) + 4 * count_bits(fours & FIELDS)
    )


@inner
def beyond_four(word: int) -> int:
    """Which ranks the words of two suits count five times or more: a bit in each field."""
    return (word >> 2) & (word | word >> 1) & FIELDS


@inner
def held_in(word: int) -> int:
    """Which ranks the words of two suits have any of: a bit in each field."""
    return (word | word >> 1 | word >> 2) & FIELDS


@inner
def status_of(laid_down: Words, hands: Words, i: int, limits: Words) -> int:
    """13 or 14 for a hand in order, else less than 0: `INVALID_RECORD` and so on, negated.

    `limits` are the greatest value of each option, what each moment asks for, which ranks are
    played, a bit in each field of two suits and of the two others, and how many whirlwinds may be.
    """
    at = HAND_WORDS * i
    first, second, third, last = hands[at], hands[at + 1], hands[at + 2], hands[at + 3]
    if (third >> 56) & 255 != 0 or (last >> 32) & WORD_BITS != 0:
        return -INVALID_RECORD

    # The tiles of the melds are added to the concealed ones, suits by two, and a fifth is noted.
    more_first, more_second, facts, over = first, second, 0, 0
    for place in range(4):
        row = MELD_WORDS * ((third >> (8 * place)) & 255)
        one, two = laid_down[row], laid_down[row + 1]
        # Four and four would carry into the next rank's field.
        over |= (one >> 2) & held_in(more_first) | (two >> 2) & held_in(more_second)
        more_first += one
        more_second += two
        over |= beyond_four(more_first) | beyond_four(more_second)
        facts += laid_down[row + 5]
    melds, runs = (facts >> MELDS) & 7, (facts >> RUNS) & 7
    added = (third >> 32) & 255
    more_second += added_dragons(added)  # seven of one at the most
    over |= beyond_four(more_second)
    is_gap = (third & WORD_BITS) >> (8 * melds) != 0
    if facts >> UNKNOWN != 0 or is_gap or runs > limits[PLAYED + 2]:
        return -INVALID_MELD
    if added >> 6 != 0 or (added != 0 and runs == 0):
        return -INVALID_MELD

    if first & ~(SUIT_BITS | SUIT_BITS << 32) or second & ~(SUIT_BITS | HONOUR_BITS << 32):
        return -TILE_NOT_PLAYED
    if beyond_four(first) | beyond_four(second):
        return -FIFTH_COPY
    size = tiles_in(first) + tiles_in(second) + 3 * melds
    if size != THIRTEEN and size != FOURTEEN:
        return -WRONG_TILE_COUNT
    if over:
        return -FIFTH_COPY
    if held_in(more_first) & ~limits[PLAYED] or held_in(more_second) & ~limits[PLAYED + 1]:
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
    return size


@inner
def opened(laid_down: Words, hands: Words, i: int, limits: Words, sizes: Out, out: Out) -> int:
    """`status_of` a record, kept in `sizes`, which is 0 before; and its result begun."""
    size = sizes[i]
    if size == 0:
        size = status_of(laid_down, hands, i, limits)
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
        opened(laid_down, hands, i, limits, sizes, out)
