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
23     treasure     the kind + 1 of the treasure that was drawn (摸宝), for which the winning tile
                    stands; 0: none was
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
worth more than any fan. A drawn treasure may stand for each of the hand's waits: there are as many
records of it as waits, and the one that wins most counts.

What the records do not tell of is left to `scoring.score`: what counts against one loser only,
points and payments, with them flowers (they are worth points, no fan, in every rule set), and what
forbids a seat to win though its hand would: locks, or a discard won on with neither flower nor fan.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from .hand import Hand
from .kernels.bound import NEVER as NEVER
from .kernels.bound import Counting, bind, read_only_words
from .kernels.records import (
    ANY_HAND,
    CANNOT_BE,
    MOMENT_WORDS,
    NEEDS_KONG,
    NO_MELD,
    NO_MELD_BUT_WHIRLWIND,
)
from .kernels.records import NOT_ASKED as NOT_ASKED
from .melds import MeldKind
from .moments import Moment
from .tiles import DRAGONS

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
        ("treasure", "u1"),
        ("options", "u1", (4,)),
        ("reserved", "<u4"),
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

STATUSES: Final = (
    ("", "in order"),
    ("INVALID_RECORD", "reserved bytes that are not 0"),
    ("INVALID_MELD", "no such meld under this rule set, or a meld behind an empty place"),
    ("TILE_NOT_PLAYED", "a tile, or a number of tiles, that the rule set does not have"),
    ("WRONG_TILE_COUNT", "a hand has 13 or 14 tiles, each meld counting as three"),
    ("FIFTH_COPY", "a kind of which there are more than four"),
    ("TILE_NOT_HELD", "the winning tile is not among 14 tiles"),
    ("INVALID_OPTION", "an option's value out of its bounds, or of no option"),
    (
        "INVALID_MOMENT",
        "a moment or treasure that cannot be, or one of a hand that says no winning tile",
    ),
)
"""By status: the reason, and a sentence."""
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
    treasure: int | None = None,
) -> None:
    """Write a hand into one record (`options` as `Hot.pack_options` gives them).

    `treasure`: the kind of the treasure that was drawn, for which `won` stands.
    """
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
    record["treasure"] = 0 if treasure is None else treasure + 1
    record["reserved"] = 0


def pack(hands: list[Hand]) -> Records:
    """Records of these hands, nothing said of a winning tile, the options 0."""
    records: Records = np.zeros(len(hands), HAND)
    for record, hand in zip(records, hands, strict=True):
        put(record, hand)
    return records


def check(rule_set: RuleSet, hands: Records) -> npt.NDArray[np.uint8]:
    """The status of each record."""
    found: npt.NDArray[np.uint8] = evaluate(rule_set, hands, 0)["status"]
    return found


def evaluate(
    rule_set: RuleSet, hands: Records, ask: int = EVERYTHING, out: Records | None = None
) -> Records:
    """What each hand is; written to `out` where it is given, a contiguous array of `RESULT` that
    begins at a multiple of eight bytes, as those that NumPy makes do.

    Nothing is read of a record that is not in order but that it is not.
    """
    results: Records = np.empty(len(hands), RESULT) if out is None else out
    words, found = _as_words(hands, HAND), results.view(np.int64)
    kernels, limits = bind(rule_set.hot), _limits(rule_set)
    sizes = np.zeros(len(hands), np.int64)
    needs = rule_set.hot.needs
    by_shape = ask & SHANTEN or (ask & LEGAL_SHANTEN and not needs)
    # The first of these checks the records.
    if ask & SCORE:
        kernels.score_many(words, limits, sizes, _counting(rule_set), found)
    if by_shape:
        kernels.shanten_of_many(words, limits, sizes, found)
    if not ask & SCORE and not by_shape:
        kernels.check_many(words, limits, sizes, found)
    if ask & WAITS:
        kernels.waits_of_many(words, sizes, found)
    if ask & LEGAL_SHANTEN and needs:
        kernels.legal_shanten_of_many(words, sizes, found)
    elif ask & LEGAL_SHANTEN:
        results["shanten"] = results["shape_shanten"]
        if not ask & SHANTEN:
            results["shape_shanten"][sizes > 0] = NOT_ASKED
    return results


def _as_words(hands: Records, layout: np.dtype[np.void]) -> npt.NDArray[np.int64]:
    """Records as the kernels read them, copied only where they lie at an odd place."""
    if hands.dtype != layout:
        raise TypeError(f"records of another layout: {hands.dtype}")
    words = np.ascontiguousarray(hands).view(np.int64)
    # Of words, not of records: these have no alignment, and may begin anywhere.
    found: npt.NDArray[np.int64] = read_only_words(np.require(words, requirements="A"))
    return found


@cache
def _limits(rule_set: RuleSet) -> npt.NDArray[np.int64]:
    """What `records.status_of` wants: the options' greatest values, and what moments ask for."""
    specs = {spec.id: spec for spec in rule_set.options}
    options = [specs[option] for option in rule_set.hot.options]
    if any(spec.minimum != 0 for spec in options):
        raise ValueError(f"{rule_set.id}: an option with a minimum other than 0 is not packed")
    limits = [1 if isinstance(spec.default, bool) else spec.maximum for spec in options]
    limits += [0] * (4 - len(limits))
    limits += [_asked_of(Moment(moment)) for moment in range(256)]
    for first in (0, 18):  # two suits each
        played = [kind - first for kind in rule_set.kinds if first <= kind < first + 18]
        limits.append(sum(1 << (3 * (place % 9) + 32 * (place // 9)) for place in played))
    limits.append(int(rule_set.whirlwind))
    has_treasure = rule_set.turn_up is not None
    limits.append(sum(1 << kind for kind in rule_set.kinds if kind < 34 and has_treasure))
    return np.array(limits)


def _asked_of(moment: Moment) -> int:
    """Which melds a win of this moment can have."""
    drawn = Moment.AFTER_KONG | Moment.AFTER_FLOWER | Moment.ON_DEAL
    if moment & drawn and Moment.SELF_DRAW not in moment:
        return CANNOT_BE
    if Moment.FIRST_ROUND in moment:
        alone = not moment & (Moment.DEALER | Moment.AFTER_KONG)
        return NO_MELD if alone else CANNOT_BE
    if Moment.ON_DEAL in moment:
        dealt = Moment.DEALER in moment and Moment.AFTER_KONG not in moment
        return NO_MELD_BUT_WHIRLWIND if dealt else CANNOT_BE
    return NEEDS_KONG if Moment.AFTER_KONG in moment else ANY_HAND


@cache
def _counting(rule_set: RuleSet) -> Counting:
    """What counts beside the hand, by moment, drawn from `RuleSet.counted`."""
    items = rule_set.hot.items
    places = {item: place for place, item in enumerate(winner_items(rule_set))}

    def counted(by_hand: tuple[str, ...], moment: Moment, is_open: bool) -> dict[str, int]:
        return rule_set.counted({item: _fan(rule_set, item) for item in by_hand}, moment, is_open)

    def share(item: str, fan: int) -> list[int]:
        words = [0, 0, 0]
        place = places[item]
        words[place // 8] = (fan // (_fan(rule_set, item) or fan or 1) or 1) << (8 * (place % 8))
        return words

    # Most moments cannot be, and to ask for them all takes long. In place of the self-draw a drawn
    # treasure may count, which leaves moments that none is otherwise.
    can_be = {flags for flags in range(256) if _asked_of(Moment(flags)) != CANNOT_BE}
    can_be |= {flags & ~Moment.SELF_DRAW for flags in can_be}
    moments: list[int] = []
    for flags in range(256):
        for is_open in (False, True):
            if flags not in can_be:
                moments += [0] * MOMENT_WORDS
                continue
            moment = Moment(flags)
            beside = counted((), moment, is_open)
            kept = sum(
                15 << (4 * place)
                for place, item in enumerate(items)
                if item in counted((item,), moment, is_open)
            )
            counts = [share(item, fan) for item, fan in beside.items()]
            moments += [kept, sum(beside.values()), *np.sum([[0, 0, 0], *counts], axis=0)]
    # What each fan of an item adds; then by two items, the first one's fan in the lower bits.
    own = [[[0, 0, 0], *(share(item, fan) for fan in range(1, 16))] for item in items]
    own += [[[0, 0, 0]] * 16] * (len(own) % 2)
    added = np.array(own, np.int64).reshape(-1, 2, 16, 3)
    shares = added[:, 1, :, None] + added[:, 0, None, :]
    return Counting(
        np.array(moments, np.int64),
        shares.ravel(),
        sum(15 << (4 * i) for i, item in enumerate(items) if not _fan(rule_set, item)),
    )


def _fan(rule_set: RuleSet, item: str) -> int:
    return rule_set.items[item].fan
