"""Hands as records of four words, checked and read; `fangcheng_rules.packed` tells the layout.

Words are signed and of 64 bits. A hand's: characters and dots; bamboos and honours; melds, added
dragons, winning tile and moment; options. A result's five are written by the kernels that find
what is in them. Only a record that `check_many` has passed is read by another kernel.
"""

from __future__ import annotations

from typing import Final

from .facts import DRAGON_RUN, HandBits
from .hands import CHI, FIRST_DRAGON, PONG, Out, Words, in_hand, with_dragon, with_meld
from .speed import entry, inner
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

LIMITS: Final = 4 + 256
"""The greatest value of each option, and what each moment asks for."""
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
    """How many tiles a suit's word counts."""
    # Three fields into one, three times over: none has more than 36 in seven bits.
    odd = 0o707070707
    word = (word & odd) + ((word >> 3) & odd)
    return (
        (word & 63) + ((word >> 6) & 63) + ((word >> 12) & 63) + ((word >> 18) & 63) + (word >> 24)
    )


@inner
def more_than_four(word: int) -> bool:
    """Whether a suit's word counts a rank five times or more."""
    fours = (word >> 2) & 0o111111111
    rest = (word | word >> 1) & 0o111111111
    return fours & rest != 0


@inner
def meld_is_known(how: int, kind: int, whirlwind: bool) -> bool:
    """Whether there is such a meld."""
    if kind < 0 or kind > 33:
        return False
    if how != CHI:
        return True
    return (kind < 27 and kind % 9 < 7) or (whirlwind and kind == FIRST_DRAGON)


@inner
def status_of(
    table: Words, hands: Words, i: int, played: int, has_whirlwind: bool, limits: Words
) -> int:
    """13 or 14 for a hand in order, else less than 0: `INVALID_RECORD` and so on, negated."""
    at = HAND_WORDS * i
    first, second, third, last = hands[at], hands[at + 1], hands[at + 2], hands[at + 3]
    if (third >> 56) & 255 != 0 or (last >> 32) & WORD_BITS != 0:
        return -INVALID_RECORD

    # Melds: how many, and whether a tile of one is a fifth already.
    m, p = first & WORD_BITS, (first >> 32) & WORD_BITS
    s, z = second & WORD_BITS, (second >> 32) & WORD_BITS
    laid = third & WORD_BITS
    melds = kongs = whirlwinds = 0
    ones = twos = fours = over = 0
    while laid & 255:
        how, kind = (laid >> 6) & 3, (laid & 63) - 1
        if not meld_is_known(how, kind, has_whirlwind and whirlwinds == 0):
            return -INVALID_MELD
        kinds = 1 << kind
        times = 1
        if how == CHI:
            kinds = 7 << kind
            whirlwinds += kind // FIRST_DRAGON
        elif how == PONG:
            times = 3
        else:
            times = 4
            kongs += 1
        for _ in range(times):
            carry = ones & kinds
            over |= fours & kinds
            ones ^= kinds
            fours |= twos & carry
            twos ^= carry
        melds += 1
        laid >>= 8
    added = (third >> 32) & 255
    if laid != 0 or added >> 6 != 0 or (added != 0 and whirlwinds == 0):
        return -INVALID_MELD
    for dragon in range(3):
        kinds = 1 << (FIRST_DRAGON + dragon)
        for _ in range((added >> (2 * dragon)) & 3):
            carry = ones & kinds
            over |= fours & kinds
            ones ^= kinds
            fours |= twos & carry
            twos ^= carry

    # Concealed tiles, and both together.
    if (m >> 27) | (p >> 27) | (s >> 27) | (z >> 21):
        return -TILE_NOT_PLAYED
    if more_than_four(m) or more_than_four(p) or more_than_four(s) or more_than_four(z):
        return -FIFTH_COPY
    size = tiles_in(m) + tiles_in(p) + tiles_in(s) + tiles_in(z) + 3 * melds
    if size != THIRTEEN and size != FOURTEEN:
        return -WRONG_TILE_COUNT
    hand = concealed_in(table, hands, i, 0)
    # Four and one, three and two, two and three, ...: what the sum of both carries beyond four.
    low = ones & hand.ones
    middle = (twos & hand.twos) | (low & (twos | hand.twos))
    ones ^= hand.ones
    twos ^= hand.twos ^ low
    over |= fours & hand.fours
    fours |= hand.fours
    over |= fours & (middle | ones | twos) | middle & (ones | twos)
    if over:
        return -FIFTH_COPY
    held = ones | twos | fours | middle
    if held & ~played != 0:
        return -TILE_NOT_PLAYED

    # The winning tile, the options, the moment.
    won = (third >> 40) & 255
    own = hand.ones | hand.twos | hand.fours
    if won != 0 and (size == THIRTEEN or won > 34 or (own >> (won - 1)) & 1 == 0):
        return -TILE_NOT_HELD
    if last != 0:
        for place in range(4):
            if (last >> (8 * place)) & 255 > limits[place]:
                return -INVALID_OPTION
    moment = (third >> 48) & 255
    if moment != 0:
        needs = limits[4 + moment]
        if won == 0 or needs == CANNOT_BE:
            return -INVALID_MOMENT
        if needs == NEEDS_KONG and kongs + whirlwinds == 0:
            return -INVALID_MOMENT
        if needs == NO_MELD and melds != 0:
            return -INVALID_MOMENT
        if needs == NO_MELD_BUT_WHIRLWIND and melds != whirlwinds:
            return -INVALID_MOMENT
    return size


@entry
def check_many(
    table: Words, hands: Words, played: int, has_whirlwind: bool, limits: Words, sizes: Out
) -> None:
    """Of each record: `status_of`. `limits`: the greatest value of each option, then moments."""
    for i in range(len(sizes)):
        sizes[i] = status_of(table, hands, i, played, has_whirlwind, limits)
