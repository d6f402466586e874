"""白城麻将 `baicheng`.

Decided where the page is silent:

- *Sets of their own*, 旋风杠: a seat has one. Dragons that it draws later are added to it (补杠) or
  kept, three of them as a run; so a laid-down kong with a run in hand beside it is "two full runs"
  and pays for what lies on the table alone.
- *Sets of their own*, the forced kong: only a seat without a laid-down 旋风杠 can have to lay one.
  It may make other kongs first, but not a concealed one of four dragons, which would evade it.
- *宝牌*, a change when the last dragon of the treasure's kind is added to a 旋风杠: it comes before
  the replacement, which counts as taken when the four in front are counted. Else it would come
  from those four.
- *Sets of their own*, "its very first turn" of the dealer lasts until its first discard, kongs and
  their replacements included.
- *宝牌*, "wins most": of all the waits, and of all readings with each, the drawn treasure takes
  what pays the most, as itself only where its own kind is waited for.
- *宝中宝*: a 双飘 completed by a triplet is no 夹 wait, even where it is the only legal one; read
  without the 飘, the same hand may be 宝中宝.
- *宝牌*, three of the treasure and *Decided*, three dragons: the winner's own drawn tile counts as
  what it was drawn as and as what it stands for; a tile that was discarded or robbed as neither.
- *Kongs*, after an escape: what is laid down is paid; tiles kept in hand are not, for the hand was
  neither won nor drawn.
- *夹胡*, 两头吊: only the reading at hand is looked at, so a pair that is 夹胡 in another reading
  still makes the hand one; likewise the only legal wait, even a 两头吊 of which the other end is
  gone (all four held) or illegal (no terminal).
- *单飘*: with a run and a pair of the same dragon either may have been completed; it is the pair.
- *Options*: clubs also play without 换宝: a treasure whose other copies are all face up is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fangcheng_rules.analysis import KongChoice, Reading, Wait, analyze, winning_readings
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels.facts import (
    DRAGON_RUN,
    NEEDS_SUITS,
    NEEDS_TERMINAL,
    NEEDS_TRIPLET,
    ORPHANS_MASK,
    OTHER_WAIT,
    SINGLE_WAIT,
    STANDARD,
    TREASURE,
    HandBits,
    Hot,
    ReadingBits,
    held_kinds,
    suits_in,
)
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.moments import Moment, moment_of
from fangcheng_rules.ruleset import (
    Calls,
    FanItemSpec,
    Options,
    OptionSpec,
    RuleSet,
    SeatInPlay,
    TableInPlay,
    WallCount,
    WallPolicy,
    WinBy,
)
from fangcheng_rules.scoring import (
    SEATS,
    Escape,
    FanCount,
    FinishedHand,
    LoserScore,
    Score,
    Transfer,
    Win,
    WinnerScore,
    draws_treasure,
    from_each_other,
)
from fangcheng_rules.tiles import COPIES, DRAGONS, is_suited

# ---- Conditions of a win, and the winner's fan by the hand alone (compiled) ----

HAND_ITEMS = (
    "yaoji",
    "jia",
    "closed",
    "double_piao",
    "single_piao",
    "treasure_draw",
    "double_treasure",
)
_YAOJI, _JIA, _CLOSED, _DOUBLE_PIAO, _SINGLE_PIAO, _TREASURE, _DOUBLE_TREASURE = range(0, 28, 4)

BIRD = 1 << 18
"""幺鸡, the 1s."""

JIA = 1
"""Mark: in some legal reading the winning tile is awaited as a 夹胡 has it."""


def allows(hand: HandBits, reading: ReadingBits) -> bool:
    """Conditions of a win: does this reading pass?"""
    kinds = held_kinds(hand)
    if suits_in(kinds) < 3:
        return False  # 三门全
    if kinds & ORPHANS_MASK == 0:
        return False  # a terminal or a dragon
    if reading.triplets != 0 or reading.runs > 0:
        return True  # 旋风杠, laid down or held, stands in for the triplet
    return reading.pair >= 31  # so does a pair of dragons


def marks(hand: HandBits, reading: ReadingBits) -> int:
    """`JIA`, if the winning tile has such a place in this reading; or `OTHER_WAIT`, where this
    reading shows another legal wait: nearly always, and much sooner than a search for all waits."""
    won = hand.won
    if won < 0:
        return 0
    if won >= 31 and reading.runs > hand.runs:
        return JIA  # the third dragon of a run
    # The suit's own sequences around the winning tile: of three bits each, those that begin three
    # ranks below it to one above. Honours have none. Choices, no branches: how a tile was awaited,
    # nobody can foresee.
    suit, rank = won // 9, won % 9
    own = ((reading.sequences - hand.sequences) >> (21 * suit)) & 0o7777777 if suit < 3 else 0
    near = (own << 9) >> (3 * rank)
    awaited = near & 0o00700  # the middle of a sequence
    awaited |= near & 0o00070 if rank == 2 else 0  # the 3 of 1-2-3
    awaited |= near & 0o07000 if rank == 6 else 0  # the 7 of 7-8-9
    # 两头吊: a sequence right above the pair or right below it makes it no 夹胡.
    is_pair = reading.pair == won
    beside = near & 0o70007 if is_pair else 0
    if (awaited != 0) | (is_pair & (beside == 0)):
        return JIA
    # The other end of a sequence, or of one with the pair beside it; or the pair, where a triplet
    # was completed. What makes this reading legal makes that one so too, but for the terminal or
    # dragon, which may be the winning tile itself.
    ends = near & 0o07070 | beside
    others = 1 << (won + 3) if ends & 0o77000 else 0
    others |= 1 << (won - 3) if ends & 0o00077 else 0
    if (reading.triplets & ~hand.triplets) >> won & 1:
        others |= 1 << reading.pair
    others &= ~hand.fours
    before = (hand.ones & ~(1 << won)) | hand.twos | hand.fours  # the kinds held without it
    if before & ORPHANS_MASK == 0:
        others &= ORPHANS_MASK
    return OTHER_WAIT if others else 0


def fan(hand: HandBits, reading: ReadingBits) -> int:
    """Fan of each of `HAND_ITEMS`, in four bits each."""
    items = 0
    if held_kinds(hand) & BIRD:
        items |= 1 << _YAOJI
    if hand.open_melds == 0:
        items |= 1 << _CLOSED
    if reading.sequences == 0:
        # All triplets, the three dragons being one: neither 飘 counts 夹胡 besides.
        if reading.pair == hand.won:
            items |= 3 << _SINGLE_PIAO
        else:
            items |= 2 << _DOUBLE_PIAO
    elif hand.marks & (JIA | SINGLE_WAIT):
        items |= 1 << _JIA  # as awaited in some legal reading, or the only legal wait
    treasure = hand.options >> TREASURE
    if treasure != 0:
        # 宝中宝: its own kind, awaited as by a 夹胡; 双飘 is so by the dragon run alone.
        narrow = items & (15 << _JIA | 15 << _SINGLE_PIAO) != 0
        if items & (15 << _DOUBLE_PIAO) and hand.won >= 31 and reading.runs > hand.runs:
            narrow = True
        if narrow and treasure - 1 == hand.won:
            items |= 3 << _DOUBLE_TREASURE
        else:
            items |= 2 << _TREASURE
    return items


HOT = Hot(
    "baicheng",
    STANDARD | DRAGON_RUN,
    HAND_ITEMS,
    allows,
    fan,
    marks=marks,
    needs=NEEDS_TRIPLET | NEEDS_TERMINAL | NEEDS_SUITS,
)

# ---- What is played, and its options ----

OPTIONS = (
    OptionSpec(
        id="kong_unit",
        name_zh="杠底",
        meaning="Units that each other seat pays for an exposed kong; a concealed one is double.",
        default=1,
        maximum=1_000,
    ),
    OptionSpec(
        id="cap",
        name_zh="封顶",
        meaning="Units that one loser pays for the win at most; 0: no cap.",
        default=0,
        maximum=100_000,
    ),
    OptionSpec(
        id="escape_penalty",
        name_zh="逃跑扣分",
        meaning="Units that a seat which escapes pays to the house.",
        default=64,
        maximum=100_000,
    ),
    OptionSpec(
        id="length",
        name_zh="圈数",
        meaning="The table ends when the players leave, after a 圈 of four dealers, or a 局.",
        default="open",
        choices=("open", "round", "game"),
    ),
    OptionSpec(
        id="change_treasure",
        name_zh="换宝",
        meaning="A treasure whose other copies are all face up is replaced by the next tile.",
        default=True,
    ),
)

FAN_ITEMS = (
    FanItemSpec("yaoji", "幺鸡", "bird", 1, "winner", "A 1s anywhere in the winning hand."),
    FanItemSpec(
        "jia",
        "夹胡",
        "narrow wait",
        1,
        "winner",
        "The middle of a sequence, 3 of 1-2-3, 7 of 7-8-9, third dragon, pair, or the only wait.",
    ),
    FanItemSpec(
        "closed",
        "站立",
        "closed hand",
        1,
        "both",
        "No chi, pong, exposed or added kong, 旋风杠; a closed loser (门清) pays 1 more.",
    ),
    FanItemSpec(
        "double_piao",
        "双飘",
        "all triplets, a set completed",
        2,
        "winner",
        "Four triplets, a triplet or the dragon run completed last.",
        excludes=("jia",),
    ),
    FanItemSpec(
        "single_piao",
        "单飘",
        "all triplets, the pair completed",
        3,
        "winner",
        "Four triplets, the pair completed last.",
        excludes=("jia", "double_piao"),
    ),
    FanItemSpec(
        "kong_win", "杠开", "win after a kong", 1, "winner", "The winning tile replaced a kong."
    ),
    FanItemSpec("self_draw", "自摸", "self-draw", 1, "winner", "The winner drew the tile."),
    FanItemSpec(
        "treasure_draw",
        "摸宝",
        "treasure drawn",
        2,
        "winner",
        "A waiting hand drew the treasure, which counts as the wait that wins most.",
        excludes=("self_draw",),
    ),
    FanItemSpec(
        "double_treasure",
        "宝中宝",
        "treasure drawn on a narrow wait for it",
        3,
        "winner",
        "The treasure's own kind was waited for as a 夹胡 is.",
        excludes=("self_draw", "treasure_draw"),
    ),
    FanItemSpec("dealer", "坐庄", "dealer", 1, "both", "The dealer wins, or pays as a loser."),
    FanItemSpec("discarder", "点炮", "discarder", 1, "loser", "Its discard or kong was won on."),
)
_FAN = {item.id: item.fan for item in FAN_ITEMS}

# ---- The wall: the treasure's stack is its end ----

SIZE = 120
FIRST_TREASURE = 114
"""The top tile of the third stack from the back."""
DEALT_OUT = 4


def next_replacement(wall: WallCount) -> int:
    """The highest place that is not taken and was never turned up."""
    place = wall.size - 1
    left = wall.replacements
    while left or place in wall.turned:
        left -= place not in wall.turned
        place -= 1
    return place


def _in_front(wall: WallCount, treasure: int) -> int:
    """Tiles that nobody has taken in front of the stack of this treasure."""
    stack = treasure - treasure % 2
    back = next_replacement(wall) + 1  # from here on nothing is left but what was turned up
    untouched = max(0, min(stack, back) - wall.front)
    return untouched - sum(wall.front <= place < min(stack, back) for place in wall.turned)


def _drawable(wall: WallCount) -> int:
    # Draws from the front stop before the stack of the treasure, or of the last that there was.
    return _in_front(wall, wall.turned[-1] if wall.turned else FIRST_TREASURE)


def _may_kong(wall: WallCount) -> bool:
    # A replacement from behind the treasure is always there; one of the four in front is not.
    treasure = wall.turned[-1] if wall.turned else FIRST_TREASURE
    place = next_replacement(wall)
    return place >= treasure - treasure % 2 or _drawable(wall) > DEALT_OUT


def _order() -> Iterator[int]:
    """Where the treasures lie: a stack's top tile, the one under it, then the stack in front."""
    for top in range(FIRST_TREASURE, -1, -2):
        yield from (top, top + 1)


def _turn_up(options: Options, wall: WallCount) -> int | None:
    """The place of the next treasure."""
    if not wall.turned:
        return FIRST_TREASURE
    if not options["change_treasure"]:
        return None
    free = next_replacement(wall)
    for place in _order():
        # Not taken: neither from the front nor from the back, nor turned up before.
        if wall.front <= place <= free and place not in wall.turned:
            # A change that leaves fewer than four tiles in front is not made; a replacement that
            # is drawn next counts as taken.
            after = replace(
                wall, turned=(*wall.turned, place), replacements=wall.replacements + wall.due
            )
            return place if _in_front(after, place) >= DEALT_OUT else None
    return None


# ---- Permitted calls ----


def _may_claim(table: TableInPlay, seat: SeatInPlay, meld: Meld, waits: tuple[Wait, ...]) -> bool:
    return True  # 暗叫: a waiting hand may still chi, pong, kong or change its wait


def _may_kong_now(table: TableInPlay, seat: SeatInPlay, kong: KongChoice) -> bool:
    if kong.kind is MeldKind.ADDED_KONG and _added_to_whirlwind(seat, kong.tile):
        # In its very first turn the dealer adds nothing to its 旋风杠.
        return seat.number != table.dealer or seat.first_discard is not None
    # Four of a dragon beside both others: the 旋风杠 must be laid down, and takes one of them.
    return not (
        kong.kind is MeldKind.CONCEALED_KONG
        and kong.tile in DRAGONS
        and {*DRAGONS} <= {*seat.concealed}
    )


def _added_to_whirlwind(seat: SeatInPlay, tile: int) -> bool:
    return any(meld.kind is MeldKind.WHIRLWIND and meld.takes(tile) for meld in seat.melds)


def _must_kong(table: TableInPlay, seat: SeatInPlay, kong: KongChoice) -> bool:
    # All three kinds and four or more dragons after a draw: the 旋风杠 must be laid down.
    dragons = sum(tile in DRAGONS for tile in seat.concealed)
    return kong.kind is MeldKind.WHIRLWIND and dragons >= 4


def _may_win(table: TableInPlay, seat: SeatInPlay, tile: int, by: WinBy) -> bool:
    return True  # a win that was passed binds nothing


def _declarations(
    table: TableInPlay, seat: SeatInPlay, waits: tuple[Wait, ...], kong: MeldKind | None
) -> tuple[str, ...]:
    return ()  # no declared waits


def _never_spoils(waits: tuple[Wait, ...]) -> bool:
    return False


# ---- Who pays ----


def _score(options: Options, finished: FinishedHand) -> Score:
    end = finished.end
    if not isinstance(end, Win):
        transfers = _kongs(options, finished, None)
        if isinstance(end, Escape) and (penalty := int(options["escape_penalty"])):
            transfers.append(Transfer(end.seat, None, penalty, "escape"))
        return Score(transfers=tuple(transfers))
    way = _win(options, finished, end)
    transfers = [
        Transfer(loser.seat, loser.winner, loser.amount, "win") for loser in way.losers
    ] + _kongs(options, finished, way)
    return Score((way.winner,), way.losers, tuple(transfers))


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to count a win."""

    tile: int
    """The winning tile, or the one that the drawn treasure stands for."""
    winner: WinnerScore
    losers: tuple[LoserScore, ...]

    @property
    def worth(self) -> tuple[int, int, int]:
        """The most win transfers of all losers; then the most fan; then the most triplets."""
        triplets = sum(
            len(tiles) > 2 and tiles[0] == tiles[-1] for tiles in self.winner.reading.sets
        )
        return sum(loser.amount for loser in self.losers), self.winner.fan, triplets


def _win(options: Options, finished: FinishedHand, end: Win) -> _Way:
    """The win in the reading, and with the tile for the treasure, that wins the most."""
    (number,) = end.winners
    seat = finished.seats[number]
    hand = Hand(seat.concealed or (), seat.melds)
    drawn_treasure = draws_treasure(finished, end)
    tiles = [end.tile]
    if drawn_treasure:
        # 摸宝: as the waited-for tile that wins most, and not as itself.
        tiles = [wait.tile for wait in analyze(RULE_SET, options, hand).waits]
    moment = moment_of(finished, end, number)
    ways = []
    for tile in tiles:
        complete = hand.plus(tile)
        for reading, by_hand in winning_readings(
            RULE_SET,
            options,
            complete.concealed,
            complete.melds,
            won=tile,
            claimed=end.by != "self_draw",
        ):
            items = _counted(by_hand, moment, seat.is_open)
            if drawn_treasure:
                own_wait = tile == finished.treasure and _is_jia(hand, tile, reading, by_hand)
                items["double_treasure" if own_wait else "treasure_draw"] = 0
                items.pop("self_draw")
            ways.append(_count(options, finished, end, tile, reading, items))
    return max(ways, key=lambda way: way.worth)


def _is_jia(hand: Hand, tile: int, reading: Reading, by_hand: Mapping[str, int]) -> bool:
    """Whether the wait is a 夹 one as 宝中宝 asks for it."""
    if "double_piao" in by_hand:
        # By the dragon run it is, by a triplet it is not.
        own = reading.sets[len(hand.melds) :]
        return tile in DRAGONS and tuple(DRAGONS) in own
    return "jia" in by_hand or "single_piao" in by_hand


def _counted(by_hand: Mapping[str, int], moment: Moment, is_open: bool) -> dict[str, int]:
    holds = {
        "self_draw": Moment.SELF_DRAW in moment,  # until a treasure takes its place
        "kong_win": Moment.AFTER_KONG in moment,  # with 自摸, 摸宝 or 宝中宝
        "dealer": Moment.DEALER in moment,
    }
    return {**by_hand, **{item: _FAN[item] for item, held in holds.items() if held}}


def _count(
    options: Options,
    finished: FinishedHand,
    end: Win,
    tile: int,
    reading: Reading,
    items: Mapping[str, int],
) -> _Way:
    (number,) = end.winners
    cap = int(options["cap"])
    counted = _listed(items)
    fan = sum(item.fan for item in counted)
    losers = []
    for other in SEATS:
        if other == number:
            continue
        own = _listed(dict.fromkeys(_loser_items(finished, end, other), 0))
        own_fan = fan + sum(item.fan for item in own)
        capped = 0 < cap < 2**own_fan
        amount = cap if capped else 2**own_fan
        losers.append(LoserScore(other, number, own, own_fan, amount, capped=capped))
    return _Way(tile, WinnerScore(number, counted, fan, None, reading), tuple(losers))


def _loser_items(finished: FinishedHand, end: Win, number: int) -> Iterator[str]:
    """What one loser pays more: 门清, 坐庄, 点炮 (also the owner of a robbed kong)."""
    if not finished.seats[number].is_open:
        yield "closed"
    if number == finished.dealer:
        yield "dealer"
    if number == end.source:
        yield "discarder"


def _listed(items: Mapping[str, int]) -> tuple[FanCount, ...]:
    """Items in the order of the rule page; each counts once."""
    return tuple(FanCount(spec.id, spec.fan) for spec in FAN_ITEMS if spec.id in items)


def _kongs(options: Options, finished: FinishedHand, way: _Way | None) -> list[Transfer]:
    """What each of the three others pays for kongs, and for what counts as one."""
    unit = int(options["kong_unit"])
    transfers = []
    for number, seat in enumerate(finished.seats):
        units = sum(_kong_units(meld) for meld in seat.melds)
        if not isinstance(finished.end, Escape):
            units += _held_units(finished, number, way)
        if units * unit:
            transfers += from_each_other(number, units * unit, "kong")
    return transfers


def _kong_units(meld: Meld) -> int:
    if meld.kind is MeldKind.WHIRLWIND:
        return len(meld.tiles) - 2  # 1, and 1 more for each dragon added
    if meld.kind is MeldKind.CONCEALED_KONG:
        return 2
    return 1 if meld.is_kong or meld.treasure else 0


def _held_units(finished: FinishedHand, number: int, way: _Way | None) -> int:
    """Three treasures concealed are a concealed kong, the three dragons an exposed one."""
    seat = finished.seats[number]
    end = finished.end
    tiles = list(seat.concealed or ())
    if way is not None and isinstance(end, Win) and number in end.winners:
        # Not what only the discard that was won on, or a robbed tile, brought.
        tiles += {end.tile, way.tile} if end.by == "self_draw" else ()
    units = 0
    if finished.treasure is not None and tiles.count(finished.treasure) >= 3:
        units += 2
    laid = any(meld.kind is MeldKind.WHIRLWIND for meld in seat.melds)
    if not laid and {*DRAGONS} <= {*tiles}:
        units += 1  # two full runs are one kong
    return units


def _next_dealer(finished: FinishedHand) -> int | None:
    end = finished.end
    if isinstance(end, Escape):
        return None
    if isinstance(end, Win) and finished.dealer not in end.winners:
        return (finished.dealer + 1) % 4
    return finished.dealer  # after winning or a drawn hand; a dissolved one never was


def _table_length(options: Options) -> int:
    # A 圈 is over when all four have dealt, a 局 after four of those.
    return {"open": 0, "round": 4, "game": 16}[str(options["length"])]


RULE_SET = RuleSet(
    id="baicheng",
    revision=1,
    name_zh="白城麻将",
    name_en="Baicheng mahjong",
    wall_tiles=tuple(
        kind for kind in range(34) if is_suited(kind) or kind in DRAGONS for _ in range(COPIES)
    ),
    hand_dice=0,
    first_dealer_dice=0,
    options=OPTIONS,
    fan_items=FAN_ITEMS,
    wall=WallPolicy(
        drawable=_drawable,
        may_kong=_may_kong,
        dealt_out=DEALT_OUT,
        replacement=next_replacement,
    ),
    calls=Calls(
        may_claim=_may_claim,
        may_kong=_may_kong_now,
        may_win=_may_win,
        declarations=_declarations,
        spoils=_never_spoils,
        must_kong=_must_kong,
    ),
    hot=HOT,
    score=_score,
    counted=_counted,
    next_dealer=_next_dealer,
    whirlwind=True,
    turn_up=_turn_up,
    table_length=_table_length,
)
