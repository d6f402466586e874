"""Hands as records of four words, checked and read; `fangcheng_rules.packed` tells the layout.

Words are signed and of 64 bits. A hand's: characters and dots; bamboos and honours; melds, added
dragons, winning tile and moment; options. A result's five are written by the kernels that find
what is in them. Only a record that `check_many` has passed is read by another kernel.
"""

from __future__ import annotations

from typing import Final

from .facts import DRAGON_RUN, HandBits
from .hands import CHI, FIRST_DRAGON, PONG, Out, Words, in_hand, with_dragon, with_meld
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
LIMITS: Final = PLAYED + 2
CANNOT_BE, ANY_HAND, NEEDS_KONG, NO_MELD, NO_MELD_BUT_WHIRLWIND = range(5)
"""By moment: whether it can be, and with which melds."""


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
def concealed_in(table: Words, hands: Words, i: int, shapes: int) -> HandBits:
    """The hand without its melds."""
    at = HAND_WORDS * i
    first, second, third = hands[at], hands[at + 1], hands[at + 2]
    m = first & SUIT_BITS
    p = (first >> 32) & SUIT_BITS
    s = second & SUIT_BITS
    z = (second >> 32) & HONOUR_BITS
    a, b, c = octal(table, m, 0), octal(table, m, 9), octal(table, m, 18)
    row_m, in_m = key_of(a, b, c), masks_of(a, b, c)
    a, b, c = octal(table, p, 0), octal(table, p, 9), octal(table, p, 18)
    row_p, in_p = key_of(a, b, c), masks_of(a, b, c)
    a, b, c = octal(table, s, 0), octal(table, s, 9), octal(table, s, 18)
    row_s, in_s = key_of(a, b, c), masks_of(a, b, c)
    a, b, c = octal(table, z, 0), octal(table, z, 9), octal(table, z, 18)
    row_z, in_z = key_of(a, b, c), masks_of(a, b, c)
    row_z += RUN_HONOURS if shapes & DRAGON_RUN else PLAIN_HONOURS
    ones = (in_m & 511) | (in_p & 511) << 9 | (in_s & 511) << 18 | (in_z & 511) << 27
    in_m, in_p, in_s, in_z = in_m >> 9, in_p >> 9, in_s >> 9, in_z >> 9
    twos = (in_m & 511) | (in_p & 511) << 9 | (in_s & 511) << 18 | (in_z & 511) << 27
    in_m, in_p, in_s, in_z = in_m >> 9, in_p >> 9, in_s >> 9, in_z >> 9
    fours = in_m | in_p << 9 | in_s << 18 | in_z << 27
    won = ((third >> 40) & 255) - 1
    claimed = 1 - ((third >> 48) & 1)
    options = hands[at + 3] & WORD_BITS
    return in_hand(row_m, row_p, row_s, row_z, ones, twos, fours, won, claimed, options)


@inner
def record(table: Words, hands: Words, i: int, shapes: int) -> HandBits:
    """The hand of a record that is in order."""
    hand = concealed_in(table, hands, i, shapes)
    laid = hands[HAND_WORDS * i + 2] & WORD_BITS
    while laid & 255:
        hand = with_meld(table, hand, (laid >> 6) & 3, (laid & 63) - 1, shapes)
        laid >>= 8
    if shapes & DRAGON_RUN:
        added = (hands[HAND_WORDS * i + 2] >> 32) & 63
        for dragon in range(3):
            for _ in range((added >> (2 * dragon)) & 3):
                hand = with_dragon(table, hand, FIRST_DRAGON + dragon)
    return hand


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
def more_than_four(word: int) -> bool:
    """Whether the words of two suits count a rank five times or more."""
    return (word >> 2) & (word | word >> 1) & FIELDS != 0


@inner
def held_in(word: int) -> int:
    """Which ranks the words of two suits have any of: a bit in each field."""
    return (word | word >> 1 | word >> 2) & FIELDS


@inner
def meld_is_known(how: int, kind: int, whirlwind: bool) -> bool:
    """Whether there is such a meld."""
    if kind < 0 or kind > 33:
        return False
    if how != CHI:
        return True
    return (kind < 27 and kind % 9 < 7) or (whirlwind and kind == FIRST_DRAGON)


@inner
def status_of(hands: Words, i: int, has_whirlwind: bool, limits: Words) -> int:
    """13 or 14 for a hand in order, else less than 0: `INVALID_RECORD` and so on, negated."""
    at = HAND_WORDS * i
    first, second, third, last = hands[at], hands[at + 1], hands[at + 2], hands[at + 3]
    if (third >> 56) & 255 != 0 or (last >> 32) & WORD_BITS != 0:
        return -INVALID_RECORD

    # Melds: their tiles are added to the concealed ones later, suits by two.
    laid = third & WORD_BITS
    melds = kongs = whirlwinds = 0
    while laid & 255:
        how, kind = (laid >> 6) & 3, (laid & 63) - 1
        if not meld_is_known(how, kind, has_whirlwind and whirlwinds == 0):
            return -INVALID_MELD
        if how == CHI:
            whirlwinds += 1 if kind == FIRST_DRAGON else 0
        kongs += how >> 1
        melds += 1
        laid >>= 8
    added = (third >> 32) & 255
    if laid != 0 or added >> 6 != 0 or (added != 0 and whirlwinds == 0):
        return -INVALID_MELD

    if first & ~(SUIT_BITS | SUIT_BITS << 32) or second & ~(SUIT_BITS | HONOUR_BITS << 32):
        return -TILE_NOT_PLAYED
    if more_than_four(first) or more_than_four(second):
        return -FIFTH_COPY
    size = tiles_in(first) + tiles_in(second) + 3 * melds
    if size != THIRTEEN and size != FOURTEEN:
        return -WRONG_TILE_COUNT
    own_first, own_second = first, second
    laid = third & WORD_BITS
    for _ in range(melds):
        how, kind = (laid >> 6) & 3, (laid & 63) - 1
        suit = kind // 9
        field = 3 * (kind % 9) + 32 * (suit & 1)
        tiles = (0o111 if how == CHI else 3 if how == PONG else 4) << field
        held = second if suit > 1 else first
        # Four and four would carry into the next rank's field.
        if how > PONG and (held >> field) & 7 != 0:
            return -FIFTH_COPY
        held += tiles
        if more_than_four(held):
            return -FIFTH_COPY
        first = first if suit > 1 else held
        second = held if suit > 1 else second
        laid >>= 8
    for dragon in range(3):
        field = 32 + 3 * (FIRST_DRAGON - 27 + dragon)
        second += ((added >> (2 * dragon)) & 3) << field  # seven at the most
    if more_than_four(second):
        return -FIFTH_COPY
    if held_in(first) & ~limits[PLAYED] or held_in(second) & ~limits[PLAYED + 1]:
        return -TILE_NOT_PLAYED

    # The winning tile, the options, the moment.
    won = ((third >> 40) & 255) - 1
    if won >= 0:
        if size == THIRTEEN or won > 33:
            return -TILE_NOT_HELD
        suit = won // 9
        own = own_second if suit > 1 else own_first
        if (own >> (3 * (won % 9) + 32 * (suit & 1))) & 7 == 0:
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
        if needs == NEEDS_KONG and kongs + whirlwinds == 0:
            return -INVALID_MOMENT
        if needs == NO_MELD and melds != 0:
            return -INVALID_MOMENT
        if needs == NO_MELD_BUT_WHIRLWIND and melds != whirlwinds:
            return -INVALID_MOMENT
    return size


@entry
def check_many(hands: Words, has_whirlwind: bool, limits: Words, sizes: Out) -> None:
    """Of each record: `status_of`. `limits`: `LIMITS` words.

    They are the greatest value of each option, what each moment asks for, and which ranks are
    played, a bit in each field of two suits, and of the two others.
    """
    for i in range(len(sizes)):
        sizes[i] = status_of(hands, i, has_whirlwind, limits)
