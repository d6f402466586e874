"""科乐白山麻将 `baishan_kele`."""

from __future__ import annotations

from fangcheng_rules.kernels.facts import (
    FLAT,
    HONOURS_MASK,
    ORPHANS_MASK,
    SEVEN_PAIRS,
    STANDARD,
    SUITED_MASK,
    THIRTEEN_ORPHANS,
    HandBits,
    Hot,
    ReadingBits,
    held_kinds,
    suits_in,
    triple_sequences,
    twin_sequences,
)
from fangcheng_rules.kernels.speed import count_bits

# ---- Conditions of a win, and the winner's fan by the hand alone (compiled) ----

HAND_ITEMS = (
    "thirteen_orphans",
    "seven_pairs",
    "full_flush",
    "half_flush",
    "all_triplets",
    "triple_seq",
    "twin_seq",
    "four_in_one",
    "last_tile",
    "closed",
)
(
    _THIRTEEN_ORPHANS,
    _SEVEN_PAIRS,
    _FULL_FLUSH,
    _HALF_FLUSH,
    _ALL_TRIPLETS,
    _TRIPLE_SEQ,
    _TWIN_SEQ,
    _FOUR_IN_ONE,
    _LAST_TILE,
    _CLOSED,
) = range(0, 40, 4)


def allows(hand: HandBits, reading: ReadingBits) -> bool:
    """Conditions of a win: does this reading pass?"""
    if reading.shape == THIRTEEN_ORPHANS:
        return True
    if held_kinds(hand) & ORPHANS_MASK == 0:
        return False  # at least one terminal or honour among all tiles
    # Seven pairs ask for no triplet; that they have no meld lies in the shape.
    return reading.shape == SEVEN_PAIRS or reading.triplets != 0


def fan(hand: HandBits, reading: ReadingBits) -> int:
    """Fan of each of `HAND_ITEMS`, in four bits each."""
    if reading.shape == THIRTEEN_ORPHANS:
        return FLAT << _THIRTEEN_ORPHANS  # nothing is added
    kinds = held_kinds(hand)
    suits = suits_in(kinds)
    honours = kinds & HONOURS_MASK
    items = 0
    if suits == 0 or (suits == 1 and honours == 0):
        items |= 3 << _FULL_FLUSH  # one suit only, or honours only
    elif suits == 1:
        items |= 2 << _HALF_FLUSH
    # 四归一 is counted from the tiles, so for every reading alike; honours and kongs never.
    items |= count_bits(hand.fours & SUITED_MASK & ~hand.kongs) << _FOUR_IN_ONE
    if reading.shape == SEVEN_PAIRS:
        return items | 3 << _SEVEN_PAIRS  # the winner's own 立门 is not counted
    if reading.sequences == 0:
        items |= 2 << _ALL_TRIPLETS
    items |= twin_sequences(reading.sequences) << _TWIN_SEQ
    items |= 2 * triple_sequences(reading.sequences) << _TRIPLE_SEQ
    if hand.melds == 4 and hand.concealed_kongs == 0:
        items |= 1 << _LAST_TILE  # any concealed kong spoils 手把一
    if hand.open_melds == 0:
        items |= 1 << _CLOSED
    return items


HOT = Hot("baishan_kele", STANDARD | SEVEN_PAIRS | THIRTEEN_ORPHANS, HAND_ITEMS, allows, fan)
