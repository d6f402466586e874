"""The hot functions of shanten and useful tiles, the same ones for all rule sets.

By shape alone a hand's distance follows from its suits' classes (`tables`). What a rule set's
conditions ask besides (`Hot.needs`) is known to the aims (`aims`): each suit gives eight words, its
distances by features and with a pair or without, which are put together suit by suit. They lie in
`room`, a list of `ROOM_WORDS` that the caller lends.
"""

from __future__ import annotations

from typing import Final

from .aims import AIM_RUN_START, AIM_START, AIM_STATES, AIM_WALKS
from .distances import TERMINAL, TRIPLET
from .facts import (
    DRAGON_RUN,
    NEEDS_SUITS,
    NO_KIND,
    ORPHANS_MASK,
    SEVEN_PAIRS,
    THIRTEEN_ORPHANS,
    HandBits,
)
from .hands import Out, Words, moved, one_more, pack
from .records import (
    FIELDS,
    HONOUR_BITS,
    MELDS,
    RESULT_WORDS,
    SUIT_BITS,
    RecordBits,
    held_in,
    key_in,
    opened,
    read,
    record,
)
from .speed import apart, count_bits, entry, inner, lowest_bit
from .tables import (
    CLASSES,
    FINAL,
    FINAL_WIDTH,
    FINAL_WORDS,
    HEADER,
    MERGE,
    MERGE_WIDTH,
    PLAIN_HONOURS,
    RUN_HONOURS,
    RUN_START,
    START,
    STEP,
    SYMBOL,
    WALKS,
    WANTED,
)

ROOM_WORDS: Final = 64
"""Eight slots of eight words: the four suits, the first two and the last two together, and ..."""
FIRST_TWO: Final = 4
LAST_TWO: Final = 5
ONE_CHANGED: Final = 6
"""... a suit with one tile more, with its neighbour."""
TWO_CHANGED: Final = 7

ORPHANS_FIRST: Final = 0o700000007 << 32 | 0o700000007
ORPHANS_SECOND: Final = 0o7777777 << 32 | 0o700000007
"""The fields of terminals and honours, in the words of two suits and of the two others."""

CARRIES: Final = 0o1111111110 << 32 | 0o1111111110
"""Where the ranks of two suits carry from their three bits."""
ONE_OF_HONOURS: Final = FIELDS & HONOUR_BITS << 32

NO_WAY: Final = 15
"""The distance of what cannot be: no tiles that may come make it a win."""

END_SEQUENCES: Final = sum(0o7000007 << (21 * suit) for suit in range(3))
"""The fields of the sequences that have a terminal."""
HONOURS: Final = 0x7F << 27


# ---- By shape alone ----


@inner
def class_in(table: Words, row: int) -> int:
    """The class of a suit's distances, by its row, where no melds matter to it."""
    return (table[CLASSES + (row >> 2)] >> (8 * (row & 3))) & 255


@apart
def walked(table: Words, row: int, laid: int, state: int, ranks: int) -> int:
    """The class of a suit's distances, from a walk's first state; `row` is from 0."""
    for _ in range(ranks):
        held = row // 5
        state = table[WALKS + state + table[SYMBOL + (laid & 7)] + row - 5 * held]
        row, laid = held, laid >> 3
    return state


@inner
def crowded(wanted: int, laid: int) -> int:
    """Not 0 where more is wanted of a rank than melds have left; for one suit, or for two."""
    return ((wanted + laid) ^ wanted ^ laid) & CARRIES


@inner
def class_of(table: Words, row: int, laid: int, melds: int) -> int:
    """The class of a numbered suit's distances, so many tiles of it being laid down."""
    # Melds matter where a tile is wanted of which too many lie in them, which is rare.
    if crowded(table[WANTED + row], laid):
        return walked(table, row, laid, table[START + melds], 9)
    return class_in(table, row)


@inner
def live_honours(table: Words, hand: HandBits, shapes: int) -> int:
    """The row of the honours without the fourth of one that was ponged, which fits nothing."""
    row = hand.z
    if shapes & DRAGON_RUN:
        return row  # nothing lies in melds
    dead = hand.fours & hand.triplets & ~hand.kongs & HONOURS
    while dead:
        bit = dead & -dead
        dead ^= bit
        row -= table[STEP + lowest_bit(bit)]
    return row


@inner
def class_of_honours(table: Words, hand: HandBits, shapes: int) -> int:
    """The class of the honours' distances."""
    if shapes & DRAGON_RUN and hand.laid_2 >> 32:
        # Dragons that lie in melds, and yet the fourth of them may be wanted for a run.
        start = table[RUN_START + hand.melds]
        return walked(table, hand.z - RUN_HONOURS, hand.laid_2 >> 32, start, 7)
    return class_in(table, live_honours(table, hand, shapes))


@apart
def class_with(table: Words, hand: HandBits, kind: int, shapes: int) -> int:
    """The class of a kind's suit with one tile more of it."""
    if kind >= 27:
        return class_of_honours(table, moved(table, hand, kind, 1, NO_KIND), shapes)
    row, laid = hand.m, hand.laid & SUIT_BITS
    if kind >= 18:
        row, laid = hand.s, hand.laid_2 & SUIT_BITS
    elif kind >= 9:
        row, laid = hand.p, hand.laid >> 32
    return class_of(table, row + table[STEP + kind], laid, hand.melds)


@inner
def merged(table: Words, a: int, b: int) -> int:
    """The class of two suits together."""
    at = MERGE_WIDTH * a + b
    return (table[MERGE + (at >> 1)] >> (16 * (at & 1))) & 511


@inner
def distance(table: Words, first: int, second: int, melds: int) -> int:
    """Tiles that must come for four sets and a pair, by the classes of two and two suits."""
    at = FINAL_WIDTH * first + second
    return (table[FINAL + FINAL_WORDS * melds + (at >> 3)] >> (4 * (at & 7))) & 15


@inner
def orphans_distance(ones: int, twos: int, fours: int) -> int:
    """Tiles that must come for thirteen orphans."""
    twice = 1 if (twos | fours) & ORPHANS_MASK else 0
    return 14 - count_bits((ones | twos | fours) & ORPHANS_MASK) - twice


@inner
def special_distance(ones: int, twos: int, fours: int, shapes: int) -> int:
    """Tiles that must come for seven pairs or thirteen orphans; only for a hand without melds."""
    nearest = 15
    if shapes & SEVEN_PAIRS:
        # Lone tiles always suffice for the pairs that lack: fourteen tiles less two for each pair.
        nearest = 7 - count_bits(twos) - 2 * count_bits(fours)
    if shapes & THIRTEEN_ORPHANS:
        nearest = min(nearest, orphans_distance(ones, twos, fours))
    return nearest


@inner
def shanten(table: Words, hand: HandBits, shapes: int) -> int:
    """Draws needed to wait, whatever the conditions: 0 when waiting, -1 for a complete shape."""
    a = class_of(table, hand.m, hand.laid & SUIT_BITS, hand.melds)
    b = class_of(table, hand.p, hand.laid >> 32, hand.melds)
    c = class_of(table, hand.s, hand.laid_2 & SUIT_BITS, hand.melds)
    d = class_of_honours(table, hand, shapes)
    first = merged(table, a, b)
    second = merged(table, c, d)
    nearest = distance(table, first, second, hand.melds)
    if hand.melds == 0:
        nearest = min(nearest, special_distance(hand.ones, hand.twos, hand.fours, shapes))
    return nearest - 1


@inner
def special_distance_in(bits: RecordBits, shapes: int) -> int:
    """`special_distance` of a record without melds, from its fields."""
    nearest = 15
    if shapes & SEVEN_PAIRS:
        nearest = 7 - bits.pairs - 2 * bits.fours
    if shapes & THIRTEEN_ORPHANS:
        first, second = bits.first & ORPHANS_FIRST, bits.second & ORPHANS_SECOND
        kinds = count_bits(held_in(first)) + count_bits(held_in(second))
        more = (first >> 1) | (first >> 2) | (second >> 1) | (second >> 2)
        nearest = min(nearest, 14 - kinds - (1 if more & FIELDS else 0))
    return nearest


@inner
def has_crowded(table: Words, m: int, p: int, s: int, laid: int, laid_s: int) -> int:
    """Not 0 where melds matter to one of three suits."""
    # What a suit without melds wants is not looked up: it is a large table.
    in_m = table[WANTED + (m if laid & SUIT_BITS else 0)]
    in_p = table[WANTED + (p if laid >> 32 else 0)]
    in_s = table[WANTED + (s if laid_s else 0)]
    return crowded(in_m | in_p << 32, laid) | crowded(in_s, laid_s)


@apart
def crowded_classes(table: Words, m: int, p: int, s: int, bits: RecordBits) -> int:
    """The classes of three suits, eight bits each, where melds matter to one of them."""
    melds = (bits.facts >> MELDS) & 7
    laid, laid_2 = bits.even + (bits.odd << 3), bits.even_2 + (bits.odd_2 << 3)
    return (
        class_of(table, m, laid & SUIT_BITS, melds)
        | class_of(table, p, laid >> 32, melds) << 8
        | class_of(table, s, laid_2 & SUIT_BITS, melds) << 16
    )


@inner
def shanten_in(table: Words, bits: RecordBits, shapes: int) -> int:
    """`shanten` of a record that is in order, from its fields."""
    melds = (bits.facts >> MELDS) & 7
    laid, laid_2 = bits.even + (bits.odd << 3), bits.even_2 + (bits.odd_2 << 3)
    m, p = key_in(table, bits.first, 0), key_in(table, bits.first, 32)
    s = key_in(table, bits.second, 0)
    if melds != 0 and has_crowded(table, m, p, s, laid, laid_2 & SUIT_BITS):
        classes = crowded_classes(table, m, p, s, bits)
        a, b, c = classes & 255, (classes >> 8) & 255, (classes >> 16) & 255
    else:
        a, b, c = class_in(table, m), class_in(table, p), class_in(table, s)
    if shapes & DRAGON_RUN:
        z = key_in(table, bits.second, 32)
        if laid_2 >> 32:
            d = walked(table, z, laid_2 >> 32, table[RUN_START + melds], 7) & 255
        else:
            d = class_in(table, RUN_HONOURS + z)
    else:
        # The fourth of an honour that was ponged fits nothing.
        dead = laid_2 & (laid_2 >> 1) & ONE_OF_HONOURS & bits.second
        d = class_in(table, PLAIN_HONOURS + key_in(table, bits.second ^ dead, 32))
    first = merged(table, a, b)
    second = merged(table, c, d)
    nearest = distance(table, first, second, melds)
    if melds == 0:
        nearest = min(nearest, special_distance_in(bits, shapes))
    return nearest - 1


# ---- Under the conditions ----


@apart
def walked_aims(aims: Words, row: int, laid: int, state: int, ranks: int) -> int:
    """The state of a suit among the aims, from a walk's first; `row` is from 0."""
    walks = aims[AIM_WALKS]
    for _ in range(ranks):
        held = row // 5
        state = aims[walks + state + aims[SYMBOL + (laid & 7)] + row - 5 * held]
        row, laid = held, laid >> 3
    return state


@inner
def state_of(aims: Words, row: int, laid: int, melds: int) -> int:
    """The state of a numbered suit among the aims."""
    if laid == 0:
        return aims[HEADER + row]
    return walked_aims(aims, row, laid, aims[AIM_START + melds], 9)


@inner
def state_of_honours(table: Words, aims: Words, hand: HandBits, shapes: int) -> int:
    """The state of the honours among the aims."""
    if shapes & DRAGON_RUN and hand.laid_2 >> 32:
        start = aims[AIM_RUN_START + hand.melds]
        return walked_aims(aims, hand.z - RUN_HONOURS, hand.laid_2 >> 32, start, 7)
    return aims[HEADER + live_honours(table, hand, shapes)]


@inner
def needed(hand: HandBits, needs: int) -> int:
    """What is needed and does not lie in melds yet: `TRIPLET`, `TERMINAL`."""
    need = needs & (TRIPLET | TERMINAL)
    if hand.triplets != 0 or hand.runs > 0:
        need &= ~TRIPLET
    if hand.triplets & ORPHANS_MASK or hand.sequences & END_SEQUENCES or hand.runs > 0:
        need &= ~TERMINAL
    return need


@apart
def put_suit(aims: Words, state: int, is_empty: bool, needs: int, room: Out, slot: int) -> None:
    """A suit's words, in a slot; a suit that must not stay empty has no way with nothing in it."""
    at = aims[AIM_STATES] + 8 * state
    for i in range(8):
        room[8 * slot + i] = aims[at + i]
    if is_empty and needs & NEEDS_SUITS:
        for features in range(4):
            room[8 * slot + 2 * features] |= NO_WAY


@apart
def summed(one: int, other: int) -> int:
    """The least of one and other for each number of sets together; both and it packed."""
    packed = 0
    for sets in range(5):
        least = NO_WAY
        for mine in range(sets + 1):
            way = ((one >> (4 * mine)) & 15) + ((other >> (4 * (sets - mine))) & 15)
            least = min(least, way)
        packed |= least << (4 * sets)
    return packed


@inner
def lesser(one: int, other: int) -> int:
    """The lesser for each number of sets."""
    packed = 0
    for sets in range(5):
        packed |= min((one >> (4 * sets)) & 15, (other >> (4 * sets)) & 15) << (4 * sets)
    return packed


@apart
def put_together(room: Out, one: int, other: int, slot: int, need: int) -> None:
    """The words of two slots together, as far as these features are needed."""
    for features in range(4):
        if features & ~need == 0:
            without = with_pair = 0xFFFFF  # no way with any number of sets
            for mine in range(4):
                if mine & ~features == 0:
                    a = 8 * one + 2 * mine
                    b = 8 * other + 2 * (features ^ mine)
                    without = lesser(without, summed(room[a], room[b]))
                    with_pair = lesser(with_pair, summed(room[a], room[b + 1]))
                    with_pair = lesser(with_pair, summed(room[a + 1], room[b]))
            room[8 * slot + 2 * features] = without
            room[8 * slot + 2 * features + 1] = with_pair


@apart
def at_last(room: Out, one: int, other: int, need: int, sets: int) -> int:
    """Tiles that must come for so many sets and a pair with all that is needed."""
    least = NO_WAY
    for mine in range(4):
        if mine & ~need == 0:
            for pair in range(2):
                a = room[8 * one + 2 * mine + pair]
                b = room[8 * other + 2 * (need ^ mine) + 1 - pair]
                for i in range(sets + 1):
                    way = ((a >> (4 * i)) & 15) + ((b >> (4 * (sets - i))) & 15)
                    least = min(least, way)
    return least


@inner
def put_hand(
    table: Words, aims: Words, hand: HandBits, shapes: int, needs: int, room: Out, need: int
) -> None:
    """The words of all four suits, and of the first two and the last two together."""
    melds = hand.melds
    laid = hand.laid & SUIT_BITS
    put_suit(aims, state_of(aims, hand.m, laid, melds), laid == 0, needs, room, 0)
    laid = hand.laid >> 32
    put_suit(aims, state_of(aims, hand.p, laid, melds), laid == 0, needs, room, 1)
    laid = hand.laid_2 & SUIT_BITS
    put_suit(aims, state_of(aims, hand.s, laid, melds), laid == 0, needs, room, 2)
    put_suit(aims, state_of_honours(table, aims, hand, shapes), False, needs, room, 3)
    put_together(room, 0, 1, FIRST_TWO, need)
    put_together(room, 2, 3, LAST_TWO, need)


@inner
def legal_special(ones: int, twos: int, fours: int, shapes: int, needs: int) -> int:
    """Tiles that must come for a special shape with what it needs; only without melds."""
    nearest = NO_WAY
    if shapes & SEVEN_PAIRS:
        nearest = 7 - count_bits(twos) - 2 * count_bits(fours)
        if needs & TERMINAL and (ones | twos | fours) & ORPHANS_MASK == 0:
            # One of the pairs must be of a terminal or honour, both tiles of it fresh.
            nearest = nearest + 1 if nearest > 0 else 2
    if shapes & THIRTEEN_ORPHANS:
        nearest = min(nearest, orphans_distance(ones, twos, fours))
    return nearest


@apart
def legal_distance(
    table: Words, aims: Words, hand: HandBits, shapes: int, needs: int, room: Out
) -> int:
    """Tiles that must come for a legal win."""
    need = needed(hand, needs)
    put_hand(table, aims, hand, shapes, needs, room, need)
    nearest = at_last(room, FIRST_TWO, LAST_TWO, need, 4 - hand.melds)
    if hand.melds == 0:
        nearest = min(nearest, legal_special(hand.ones, hand.twos, hand.fours, shapes, needs))
    return nearest


@apart
def distance_with(
    table: Words,
    aims: Words,
    hand: HandBits,
    kind: int,
    shapes: int,
    needs: int,
    room: Out,
    need: int,
) -> int:
    """The same with one tile more of a kind; the hand itself lies in `room`."""
    melds = hand.melds
    step = table[STEP + kind]
    if kind < 9:
        state = state_of(aims, hand.m + step, hand.laid & SUIT_BITS, melds)
        put_suit(aims, state, hand.laid & SUIT_BITS == 0, needs, room, ONE_CHANGED)
        put_together(room, ONE_CHANGED, 1, TWO_CHANGED, need)
        return at_last(room, TWO_CHANGED, LAST_TWO, need, 4 - melds)
    if kind < 18:
        state = state_of(aims, hand.p + step, hand.laid >> 32, melds)
        put_suit(aims, state, hand.laid >> 32 == 0, needs, room, ONE_CHANGED)
        put_together(room, 0, ONE_CHANGED, TWO_CHANGED, need)
        return at_last(room, TWO_CHANGED, LAST_TWO, need, 4 - melds)
    if kind < 27:
        state = state_of(aims, hand.s + step, hand.laid_2 & SUIT_BITS, melds)
        put_suit(aims, state, hand.laid_2 & SUIT_BITS == 0, needs, room, ONE_CHANGED)
        put_together(room, ONE_CHANGED, 3, TWO_CHANGED, need)
    else:
        state = state_of_honours(table, aims, moved(table, hand, kind, 1, NO_KIND), shapes)
        put_suit(aims, state, False, needs, room, ONE_CHANGED)
        put_together(room, 2, ONE_CHANGED, TWO_CHANGED, need)
    return at_last(room, FIRST_TWO, TWO_CHANGED, need, 4 - melds)


@apart
def shanten_and_useful(
    table: Words, aims: Words, hand: HandBits, shapes: int, needs: int, room: Out
) -> int:
    """Shanten plus 1 in the lowest four bits; above them the mask of kinds that lower it."""
    melds = hand.melds
    a = class_of(table, hand.m, hand.laid & SUIT_BITS, melds)
    b = class_of(table, hand.p, hand.laid >> 32, melds)
    c = class_of(table, hand.s, hand.laid_2 & SUIT_BITS, melds)
    d = class_of_honours(table, hand, shapes)
    first = merged(table, a, b)
    second = merged(table, c, d)
    need = needed(hand, needs)
    if needs:
        before = legal_distance(table, aims, hand, shapes, needs, room)
    else:
        before = distance(table, first, second, melds)
        if melds == 0:
            before = min(before, special_distance(hand.ones, hand.twos, hand.fours, shapes))
    useful = 0
    # A tile moves the class of its own suit only.
    for kind in range(34):
        bit = 1 << kind
        if hand.fours & bit:
            continue
        e = class_with(table, hand, kind, shapes)
        if kind < 9:
            after = distance(table, merged(table, e, b), second, melds)
        elif kind < 18:
            after = distance(table, merged(table, a, e), second, melds)
        elif kind < 27:
            after = distance(table, first, merged(table, e, d), melds)
        else:
            after = distance(table, first, merged(table, c, e), melds)
        ones, twos, fours = one_more(hand.ones, hand.twos, hand.fours, bit)
        if melds == 0:
            after = min(after, special_distance(ones, twos, fours, shapes))
        if needs and after < before:
            # By shape it helps; does it bring a legal win nearer?
            after = distance_with(table, aims, hand, kind, shapes, needs, room, need)
            if melds == 0:
                after = min(after, legal_special(ones, twos, fours, shapes, needs))
        if after < before:
            useful |= bit
    return before | useful << 4


# ---- What Python calls ----


@entry
def progress(
    table: Words,
    aims: Words,
    concealed: bytes,
    melds: bytes,
    shapes: int,
    needs: int,
    room: Out,
    out: Out,
) -> int:
    """Thirteen tiles: shanten plus 1 in the lowest four bits, above them the useful kinds.

    Fourteen tiles: in `out`, by kind, the same after the kind's discard.
    """
    hand = pack(table, concealed, melds, NO_KIND, 0, 0, shapes)
    if len(concealed) % 3 == 1:
        return shanten_and_useful(table, aims, hand, shapes, needs, room)
    last = NO_KIND
    for i in range(len(concealed)):
        kind = int(concealed[i])
        if kind != last:
            last = kind
            rest = moved(table, hand, kind, -1, NO_KIND)
            out[kind] = shanten_and_useful(table, aims, rest, shapes, needs, room)
    return 0


@entry
def shanten_of(
    table: Words,
    aims: Words,
    concealed: bytes,
    melds: bytes,
    shapes: int,
    needs: int,
    room: Out,
) -> int:
    """Shanten of thirteen or fourteen tiles under what is needed; if nothing is, by shape alone."""
    hand = pack(table, concealed, melds, NO_KIND, 0, 0, shapes)
    if needs:
        return legal_distance(table, aims, hand, shapes, needs, room) - 1
    return shanten(table, hand, shapes)


@entry
def shanten_of_many(
    table: Words,
    laid_down: Words,
    hands: Words,
    limits: Words,
    sizes: Out,
    shapes: int,
    out: Out,
) -> None:
    """Of each record, checked if it is not yet: shanten by shape alone."""
    for i in range(len(sizes)):
        bits = read(laid_down, hands, i)
        if opened(bits, i, limits, sizes, out) > 0:
            found = shanten_in(table, bits, shapes)
            at = RESULT_WORDS * i
            out[at] = out[at] & ~(255 << 24) | (found & 255) << 24


@entry
def legal_shanten_of_many(
    table: Words,
    laid_down: Words,
    aims: Words,
    hands: Words,
    sizes: Words,
    shapes: int,
    needs: int,
    room: Out,
    out: Out,
) -> None:
    """Of each record: shanten under what is needed, which is something."""
    for i in range(len(sizes)):
        if sizes[i] > 0:
            hand = record(table, read(laid_down, hands, i), shapes)
            found = legal_distance(table, aims, hand, shapes, needs, room) - 1
            at = RESULT_WORDS * i
            out[at] = out[at] & ~(255 << 16) | (found & 255) << 16
