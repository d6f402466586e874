"""Hands and what they are, many at once, as records of fixed width.

A record is one hand; all records of a call are of one rule set. They are little-endian, without
gaps, and zero wherever nothing is said. Layout 1:

====== ============ =========================================================================
offset field        what it holds, of a hand (32 bytes)
====== ============ =========================================================================
0      concealed    four 32-bit words: characters, dots, bamboos, honours. Three bits for each
                    rank, the first rank's lowest: how many. The winning tile is among them.
16     melds        four bytes, filled from the front: 0 for none, or ``how << 6 | kind + 1``, kind
                    being that of the lowest tile; *how* is 0 for a chi, 1 a pong, 2 an exposed or
                    added kong, 3 a concealed one. A chi of 5z (kind 31) is a whirlwind kong.
20     whirlwind    two bits for each dragon, from 5z: how many were added to the whirlwind kong
21     won          the winning tile's kind + 1; 0: not said, and of 13 tiles
22     moment       how it is won: the flags of `Moment`; 0: on another's tile
23     reserved     0
24     options      four bytes: the options that change conditions or fan (`Hot.options`), in
                    that order; the bytes of options that there are not are 0
28     reserved     0
====== ============ =========================================================================

====== ============= ========================================================================
offset field         what it holds, of a result (40 bytes)
====== ============= ========================================================================
0      status        0, or why the record is no hand (`STATUSES`); all else is 0 then
1      win           1: 14 tiles that win by shape and conditions
2      shanten       signed, under the conditions: -1 wins, 0 waits, `NEVER`; `NOT_ASKED`
3      shape_shanten signed, by shape alone; `NOT_ASKED`
4      fan           16 bits, of a win: sum of what counts against every loser, fixed amounts left
                     aside
6      reserved      0
8      waits         64 bits, of 13 tiles: the legal waits, bit *k* for kind *k*
16     counts        24 bytes, of a win: how often each of `winner_items` counts
====== ============= ========================================================================

A win is counted in the reading that is worth most by the hand and the moment; a fixed amount is
worth more than any fan. What the records do not tell of is left to `scoring.score`: losers,
flowers, a drawn treasure, locks that forbid a seat to win.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from .errors import InvalidHand, InvalidMeld
from .hand import Hand
from .kernels.bound import NEVER as NEVER
from .kernels.bound import bind
from .melds import Meld, MeldKind
from .moments import Moment
from .tiles import DRAGONS, PLAY_KINDS

if TYPE_CHECKING:
    from .ruleset import RuleSet

LAYOUT: Final = 1
"""The version of the layout that this page tells."""

HAND: Final = np.dtype(
    [
        ("concealed", "<u4", (4,)),
        ("melds", "u1", (4,)),
        ("whirlwind", "u1"),
        ("won", "u1"),
        ("moment", "u1"),
        ("reserved", "u1"),
        ("options", "u1", (4,)),
        ("reserved2", "<u4"),
    ]
)
MOST_ITEMS: Final = 24
RESULT: Final = np.dtype(
    [
        ("status", "u1"),
        ("win", "u1"),
        ("shanten", "i1"),
        ("shape_shanten", "i1"),
        ("fan", "<u2"),
        ("reserved", "<u2"),
        ("waits", "<u8"),
        ("counts", "u1", (MOST_ITEMS,)),
    ]
)

SCORE: Final = 1
"""Ask for `win`, `fan`, `counts` of 14 tiles, ..."""
WAITS: Final = 2
"""... for `waits` of 13, ..."""
SHANTEN: Final = 4
"""... for `shape_shanten`, ..."""
LEGAL_SHANTEN: Final = 8
"""... for `shanten`."""
EVERYTHING: Final = SCORE | WAITS | SHANTEN | LEGAL_SHANTEN

NOT_ASKED: Final = 127
"""A shanten that was not asked for."""

STATUSES: Final = (
    ("", "in order"),
    ("INVALID_RECORD", "reserved bytes that are not 0"),
    ("INVALID_MELD", "no such meld under this rule set, or a meld behind an empty place"),
    ("TILE_NOT_PLAYED", "a tile, or a number of tiles, that the rule set does not have"),
    ("WRONG_TILE_COUNT", "a hand has 13 or 14 tiles, each meld counting as three"),
    ("FIFTH_COPY", "a kind of which there are more than four"),
    ("TILE_NOT_HELD", "the winning tile is not among 14 tiles"),
    ("INVALID_OPTION", "an option's value out of its bounds, or of no option"),
    ("INVALID_MOMENT", "a moment that cannot be, or one of a hand that says no winning tile"),
)
"""By status: the reason, and a sentence."""
(
    OK,
    INVALID_RECORD,
    INVALID_MELD,
    TILE_NOT_PLAYED,
    WRONG_TILE_COUNT,
    FIFTH_COPY,
    TILE_NOT_HELD,
    INVALID_OPTION,
    INVALID_MOMENT,
) = range(len(STATUSES))

Records = npt.NDArray[np.void]


def winner_items(rule_set: RuleSet) -> tuple[str, ...]:
    """The items that `counts` counts, in its order: those that count against every loser."""
    return tuple(item.id for item in rule_set.fan_items if item.whose != "loser")


_MELD_KINDS = (MeldKind.CHI, MeldKind.PONG, MeldKind.EXPOSED_KONG, MeldKind.CONCEALED_KONG)
_HOW = {kind: how for how, kind in enumerate(_MELD_KINDS)} | {
    MeldKind.ADDED_KONG: 2,
    MeldKind.WHIRLWIND: 0,
}


def put(
    record: Any,
    hand: Hand,
    *,
    won: int | None = None,
    moment: int = 0,
    options: int = 0,
) -> None:
    """Write a hand into one record (`options` as `Hot.pack_options` gives them)."""
    record["concealed"] = 0
    for tile in hand.concealed:
        record["concealed"][tile // 9] += 1 << (3 * (tile % 9))
    record["melds"] = 0
    record["whirlwind"] = 0
    for place, meld in enumerate(hand.melds):
        record["melds"][place] = _HOW[meld.kind] << 6 | meld.first + 1
        if meld.kind is MeldKind.WHIRLWIND:
            record["whirlwind"] = sum(
                (meld.tiles.count(dragon) - 1) << (2 * i) for i, dragon in enumerate(DRAGONS)
            )
    record["won"] = 0 if won is None else won + 1
    record["moment"] = moment
    record["options"] = [options >> (8 * i) & 255 for i in range(4)]
    record["reserved"] = record["reserved2"] = 0


def pack(hands: list[Hand]) -> Records:
    """Records of these hands, nothing said of a winning tile, the options 0."""
    records: Records = np.zeros(len(hands), HAND)
    for record, hand in zip(records, hands, strict=True):
        put(record, hand)
    return records


def check(rule_set: RuleSet, hands: Records) -> npt.NDArray[np.uint8]:
    """The status of each record."""
    return np.array([_read(rule_set, record)[0] for record in hands], np.uint8)


def evaluate(
    rule_set: RuleSet, hands: Records, ask: int = EVERYTHING, out: Records | None = None
) -> Records:
    """What each hand is; `out` is written to where it is given."""
    results: Records = np.empty(len(hands), RESULT) if out is None else out
    results[:] = np.zeros((), RESULT)
    kernels = bind(rule_set.hot)
    places = {item: i for i, item in enumerate(winner_items(rule_set))}
    for record, result in zip(hands, results, strict=True):
        status, hand = _read(rule_set, record)
        result["status"] = status
        if hand is None:
            continue
        concealed, melds = hand.concealed, hand.melds
        options = int.from_bytes(bytes(record["options"]), "little")
        won = int(record["won"]) - 1
        moment = Moment(int(record["moment"]))
        result["shanten"] = result["shape_shanten"] = NOT_ASKED
        if ask & SCORE and hand.size == 14:
            best: tuple[int, int, dict[str, int]] | None = None
            for reading in kernels.readings(
                concealed,
                melds,
                won if won >= 0 else None,
                claimed=Moment.SELF_DRAW not in moment,
                options=options,
            ):
                items = rule_set.counted(kernels.item_fan(reading.items), moment, hand.is_open)
                worth = sum(fan or 1000 for fan in items.values()), reading.triplets.bit_count()
                if best is None or worth > best[:2]:
                    best = *worth, items
            if best is not None:
                result["win"] = 1
                for item, fan in best[2].items():
                    each = rule_set.items[item].fan
                    result["counts"][places[item]] = fan // each if each else 1
                result["fan"] = sum(best[2].values())
        if ask & WAITS and hand.size == 13:
            result["waits"] = sum(1 << kind for kind in kernels.waits(concealed, melds, options))
        if ask & SHANTEN:
            result["shape_shanten"] = kernels.shanten(concealed, melds)
        if ask & LEGAL_SHANTEN:
            result["shanten"] = kernels.legal_shanten(concealed, melds)
    return results


def _read(rule_set: RuleSet, record: Any) -> tuple[int, Hand | None]:
    """A record's status, and its hand where that is 0."""
    if record["reserved"] or record["reserved2"]:
        return INVALID_RECORD, None
    laid = [int(byte) for byte in record["melds"]]
    melds = []
    added = int(record["whirlwind"])
    whirlwind = False
    for place, byte in enumerate(laid):
        if byte == 0:
            if any(laid[place:]):
                return INVALID_MELD, None
            break
        kind = _MELD_KINDS[byte >> 6]
        first = (byte & 63) - 1
        if not 0 <= first < PLAY_KINDS:
            return INVALID_MELD, None
        size = 4 if byte >> 7 else 3
        tiles = (first,) * size
        if kind is MeldKind.CHI:
            tiles = (first, first + 1, first + 2)
            if first == DRAGONS[0] and rule_set.whirlwind and not whirlwind:
                kind, whirlwind = MeldKind.WHIRLWIND, True
                for i, dragon in enumerate(DRAGONS):
                    tiles += (dragon,) * (added >> (2 * i) & 3)
        try:
            melds.append(Meld(kind, tiles))
        except InvalidMeld:
            return INVALID_MELD, None
    if added >> 6 or (added and not whirlwind):
        return INVALID_MELD, None
    concealed: list[int] = []
    for suit, word in enumerate(record["concealed"]):
        if int(word) >> (21 if suit == 3 else 27):
            return TILE_NOT_PLAYED, None
        for rank in range(9):
            count = int(word) >> (3 * rank) & 7
            if count > 4:
                return FIFTH_COPY, None
            concealed += [9 * suit + rank] * count
    try:
        hand = Hand(tuple(concealed), tuple(melds))
        rule_set.check_tiles(hand)
    except InvalidHand as error:
        return [reason for reason, _ in STATUSES].index(error.reason), None
    won = int(record["won"])
    if won and (hand.size == 13 or won - 1 not in concealed):
        return TILE_NOT_HELD, None
    specs = {spec.id: spec for spec in rule_set.options}
    for i, value in enumerate(record["options"]):
        known = i < len(rule_set.hot.options)
        spec = specs[rule_set.hot.options[i]] if known else None
        most = 0 if spec is None else 1 if isinstance(spec.default, bool) else spec.maximum
        if value > most or (spec is not None and value < spec.minimum):
            return INVALID_OPTION, None
    moment = Moment(int(record["moment"]))
    if moment and not (won and _can_be(moment, hand)):
        return INVALID_MOMENT, None
    return OK, hand


def _can_be(moment: Moment, hand: Hand) -> bool:
    """Whether a hand can have been won in this moment."""
    drawn = Moment.AFTER_KONG | Moment.AFTER_FLOWER | Moment.ON_DEAL
    if moment & drawn and Moment.SELF_DRAW not in moment:
        return False
    if Moment.AFTER_KONG in moment and not any(meld.is_kong for meld in hand.melds):
        return False
    if Moment.ON_DEAL in moment:
        if Moment.AFTER_KONG in moment or Moment.DEALER not in moment:
            return False
        return all(meld.kind is MeldKind.WHIRLWIND for meld in hand.melds)
    return Moment.FIRST_ROUND not in moment or (Moment.DEALER not in moment and not hand.melds)
