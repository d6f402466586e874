"""白山麻将 (大嘴) `baishan_dazui`.

Decided where the page is silent:

- *Play*, 报听 "as in `baishan_kele`": so it may also go with a kong in place of a discard
  (允许杠前报听), and stands when another wins on the very discard that declares.
- *Play*, kongs after 报听: "exactly one legal wait" is any one, not the one that was declared.
- *Fan*, 七对 and 十三幺: a fixed amount has no fan, so that a reading with fan is told where both
  pay the same.
- *Fan*, 点炮 and 杠后点炮 go together; the owner of a robbed kong has 点炮 alone.
- *Options*: clubs also play with another cap, and with the discarder paying alone. 七对 pays the
  cap and 十三幺 twice the cap (六番牌 封顶, 七番牌 封顶×2); without a cap 64 and 128, as on the
  page. A discarder that pays alone pays no more than its own share; a robbed kong's owner likewise.
"""

from __future__ import annotations

from collections.abc import Mapping

from fangcheng_rules import baishan
from fangcheng_rules.analysis import KongChoice, Reading, Wait, winning_readings
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels.facts import (
    FLAT,
    HONOURS_MASK,
    NEEDS_TERMINAL,
    NEEDS_TRIPLET,
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
from fangcheng_rules.melds import Meld
from fangcheng_rules.moments import Moment, moment_of
from fangcheng_rules.ruleset import (
    Calls,
    FanItemSpec,
    Options,
    OptionSpec,
    RuleSet,
    SeatInPlay,
    TableInPlay,
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
)
from fangcheng_rules.tiles import COPIES, PLAY_KINDS
from fangcheng_rules.titles import titles_from

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
        return False  # at least one terminal or honour
    # Seven pairs ask for no triplet; a pair of dragons does not stand in for one.
    return reading.shape == SEVEN_PAIRS or reading.triplets != 0


def fan(hand: HandBits, reading: ReadingBits) -> int:
    """Fan of each of `HAND_ITEMS`, in four bits each."""
    # 十三幺 and 七对 are flat; nothing is added.
    if reading.shape == THIRTEEN_ORPHANS:
        return FLAT << _THIRTEEN_ORPHANS
    if reading.shape == SEVEN_PAIRS:
        return FLAT << _SEVEN_PAIRS
    kinds = held_kinds(hand)
    suits = suits_in(kinds)
    honours = kinds & HONOURS_MASK
    items = 0
    if suits == 1 and honours == 0:
        items |= 2 << _FULL_FLUSH
    elif suits <= 1:
        items |= 1 << _HALF_FLUSH  # honours with one suit, or honours only
    if reading.sequences == 0:
        items |= 1 << _ALL_TRIPLETS
    items |= 2 * triple_sequences(reading.sequences) << _TRIPLE_SEQ
    items |= twin_sequences(reading.sequences) << _TWIN_SEQ
    # 四归一 is counted from the tiles, so for every reading alike; honours and kongs never.
    items |= count_bits(hand.fours & SUITED_MASK & ~hand.kongs) << _FOUR_IN_ONE
    if hand.melds == 4:
        items |= 1 << _LAST_TILE  # four melds of any kind
    if hand.open_melds == 0:
        items |= 1 << _CLOSED
    return items


HOT = Hot(
    "baishan_dazui",
    STANDARD | SEVEN_PAIRS | THIRTEEN_ORPHANS,
    HAND_ITEMS,
    allows,
    fan,
    needs=NEEDS_TRIPLET | NEEDS_TERMINAL,
)

# ---- What is played, its options and titles ----

CAP_AT_DEFAULT = 64
"""Units that one loser pays for the win at most: 6 fan."""
FLAT_CAPS = {"seven_pairs": 1, "thirteen_orphans": 2}
"""Fixed amounts, as so many times the cap."""
ESCAPE_UNITS = 64

OPTIONS = (
    OptionSpec(
        id="kong_unit",
        name_zh="杠底",
        meaning="Units that each of the three others pays for a plain exposed kong.",
        default=1,
        maximum=1_000,
    ),
    OptionSpec(
        id="cap",
        name_zh="封顶",
        meaning="Units that one loser pays for the win at most; 0: no cap.",
        default=CAP_AT_DEFAULT,
        maximum=100_000,
    ),
    OptionSpec(
        id="discarder_pays",
        name_zh="点炮包付",
        meaning="On a discard win only the discarder pays, its own amount.",
        default=False,
    ),
)

FAN_ITEMS = (
    FanItemSpec(
        "ting", "报听", "declared wait", 1, "both", "The wait was declared; a loser pays its own."
    ),
    FanItemSpec("closed", "立门", "closed hand", 1, "both", "No chi, pong, exposed or added kong."),
    FanItemSpec(
        "discarder", "点炮", "discarder", 1, "loser", "Its discard or the tile of its kong was won."
    ),
    FanItemSpec("self_draw", "自摸", "self-draw", 1, "winner", "The winner drew the tile."),
    FanItemSpec("dealer", "坐庄", "dealer", 1, "both", "The dealer wins, or pays as a loser."),
    FanItemSpec("all_triplets", "碰碰胡", "all triplets", 1, "winner", "Four triplets or kongs."),
    FanItemSpec(
        "half_flush",
        "混一色",
        "half flush",
        1,
        "winner",
        "One suit with honours, or honours only.",
        excludes=("full_flush",),
    ),
    FanItemSpec(
        "last_tile",
        "手把一",
        "last tile",
        1,
        "both",
        "One tile left in hand, four melds of any kind.",
    ),
    FanItemSpec(
        "kong_win",
        "杠后胡",
        "win after a kong",
        1,
        "winner",
        "The winning tile replaced a kong; together with self-draw.",
    ),
    FanItemSpec(
        "kong_discard",
        "杠后点炮",
        "discard after a kong",
        1,
        "loser",
        "Its discard followed its own kong and replacement; together with discarder.",
    ),
    FanItemSpec(
        "twin_seq",
        "一般高",
        "two identical sequences",
        1,
        "both",
        "Once for each pair of identical sequences; a loser's only if both are chi.",
    ),
    FanItemSpec(
        "four_in_one",
        "四归一",
        "four alike without a kong",
        1,
        "both",
        "Once for each suit tile held four times; a loser's only in chi and pong.",
    ),
    FanItemSpec(
        "full_flush",
        "清一色",
        "full flush",
        2,
        "winner",
        "One suit only.",
        excludes=("half_flush",),
    ),
    FanItemSpec(
        "triple_seq",
        "三花同顺",
        "three identical sequences",
        2,
        "both",
        "A loser's only if all three are chi.",
        excludes=("twin_seq",),
    ),
    FanItemSpec(
        "three_closed",
        "三家清",
        "three others closed",
        2,
        "winner",
        "The winner is open and the three others are closed.",
        excludes=("closed",),
    ),
    FanItemSpec(
        "four_closed",
        "四家清",
        "all four closed",
        3,
        "winner",
        "Nobody is open.",
        excludes=("closed", "three_closed"),
    ),
    FanItemSpec(
        "seven_pairs",
        "七对",
        "seven pairs",
        0,
        "winner",
        "Seven pairs, four alike being two: the cap from each, nothing added.",
    ),
    FanItemSpec(
        "thirteen_orphans",
        "十三幺",
        "thirteen orphans",
        0,
        "winner",
        "Every terminal and honour: twice the cap from each, nothing added.",
    ),
)
_ITEMS = {spec.id: spec for spec in FAN_ITEMS}

TITLES = titles_from(
    "白板",
    {
        "一万": 100,
        "二万": 200,
        "三万": 500,
        "四万": 1_000,
        "五万": 2_000,
        "六万": 5_000,
        "七万": 10_000,
        "八万": 20_000,
        "九万": 50_000,
        "东风": 80_000,
        "西风": 100_000,
        "南风": 200_000,
        "北风": 500_000,
        "红中": 800_000,
        "发财": 1_200_000,
        "雀神": 2_000_000,
    },
)

# ---- Permitted calls ----


def _may_claim(table: TableInPlay, seat: SeatInPlay, meld: Meld, waits: tuple[Wait, ...]) -> bool:
    # 报听: no chi and no pong. A seat that was open when it declared may still kong, as long as
    # exactly one legal wait is left.
    return not seat.declared or (meld.is_kong and seat.declared_open and len(waits) == 1)


def _may_kong(table: TableInPlay, seat: SeatInPlay, kong: KongChoice) -> bool:
    # After 报听 with the tile just drawn, and as long as exactly one legal wait is left. A seat
    # that was closed when it declared has no pong to add to.
    return not seat.declared or (kong.tile == seat.drawn and len(kong.waits) == 1)


def _may_win(table: TableInPlay, seat: SeatInPlay, tile: int, by: WinBy) -> bool:
    return True  # undeclared waits win too, and nothing spoils a declared one


def _never_spoils(waits: tuple[Wait, ...]) -> bool:
    return False


# ---- Who pays ----


def _score(options: Options, finished: FinishedHand) -> Score:
    winners: list[WinnerScore] = []
    losers: list[LoserScore] = []
    end = finished.end
    if isinstance(end, Win):
        winner, losers = _win(options, finished, end)
        winners.append(winner)
    transfers = [
        Transfer(loser.seat, loser.winner, loser.amount, "win") for loser in losers if loser.amount
    ]
    # Kongs are paid in drawn hands too, and before an escape's penalty.
    for number, seat in enumerate(finished.seats):
        for meld in seat.melds:
            if meld.is_kong:
                transfers += _kong(options, finished.dealer, number, meld)
    if isinstance(end, Escape):
        transfers.append(Transfer(end.seat, None, ESCAPE_UNITS, "escape"))
    return Score(tuple(winners), tuple(losers), tuple(transfers))


def _kong(options: Options, dealer: int, owner: int, meld: Meld) -> list[Transfer]:
    """杠随庄走: doubled between the dealer and anyone."""
    amount = int(options["kong_unit"])
    if not meld.is_open:
        amount *= 2
    if baishan.is_great(meld):
        amount *= 2
    paid = {
        other: 2 * amount if dealer in (owner, other) else amount
        for other in SEATS
        if other != owner
    }
    return [Transfer(other, owner, units, "kong") for other, units in paid.items() if units]


def _win(
    options: Options, finished: FinishedHand, end: Win
) -> tuple[WinnerScore, list[LoserScore]]:
    """What the winner's hand counts, and each loser, in the reading that wins the most."""
    (number,) = end.winners
    seat = finished.seats[number]
    baishan.check_declared(RULE_SET, options, finished, number)
    moment = moment_of(finished, end, number)
    # 三家清 and 四家清 stand in for the losers' 立门; the losers' items are alike in all readings.
    counts_closed = Moment.OTHERS_CLOSED not in moment
    by_loser = {
        other: _loser_items(finished, end, other, counts_closed)
        for other in SEATS
        if other != number
    }
    complete = Hand(seat.concealed or (), seat.melds).plus(end.tile)
    ways = [
        _count(options, end, reading, _counts(by_hand, moment, seat.is_open), by_loser)
        for reading, by_hand in winning_readings(
            RULE_SET,
            options,
            complete.concealed,
            complete.melds,
            won=end.tile,
            claimed=end.by != "self_draw",
        )
    ]
    return max(ways, key=_how_much)


def _how_much(way: tuple[WinnerScore, list[LoserScore]]) -> tuple[int, int, int]:
    # The most win transfers of all losers; then the most fan; then the most triplets.
    winner, losers = way
    triplets = sum(len(tiles) > 2 and tiles[0] == tiles[-1] for tiles in winner.reading.sets)
    return sum(loser.amount for loser in losers), winner.fan, triplets


def _counted(by_hand: Mapping[str, int], moment: Moment, is_open: bool) -> dict[str, int]:
    flat = [item for item in by_hand if item in FLAT_CAPS]
    if flat:
        return {flat[0]: 0}  # nothing is added
    items = dict(by_hand)
    holds = {
        "ting": Moment.DECLARED in moment,
        "self_draw": Moment.SELF_DRAW in moment,
        "dealer": Moment.DEALER in moment,
        "kong_win": Moment.AFTER_KONG in moment,  # together with 自摸
        "three_closed": Moment.OTHERS_CLOSED in moment and is_open,
        "four_closed": Moment.OTHERS_CLOSED in moment and not is_open,
    }
    items |= {item: _ITEMS[item].fan for item, held in holds.items() if held}
    if holds["four_closed"]:
        items.pop("closed", None)  # no 立门 counted for anyone
    return items


def _counts(by_hand: Mapping[str, int], moment: Moment, is_open: bool) -> dict[str, int]:
    """How often each item counts against every loser in one reading."""
    items = _counted(by_hand, moment, is_open)
    return {item: fan // (_ITEMS[item].fan or 1) or 1 for item, fan in items.items()}


def _loser_items(
    finished: FinishedHand, end: Win, number: int, counts_closed: bool
) -> dict[str, int]:
    """How often each item counts that one loser pays more, from its own melds and state."""
    seat = finished.seats[number]
    chi = baishan.exposed_sequences(seat).values()
    is_source = number == end.source
    counts = {
        "ting": int(seat.declared != ""),
        "closed": int(counts_closed and not seat.is_open),
        "discarder": int(is_source),
        "dealer": int(number == finished.dealer),
        "last_tile": int(len(seat.melds) == 4),
        "kong_discard": int(is_source and end.discard_after_kong),  # together with 点炮
        "twin_seq": sum(count == 2 for count in chi),
        "four_in_one": baishan.exposed_fours(seat),
        "triple_seq": sum(count >= 3 for count in chi),
    }
    return {item: count for item, count in counts.items() if count}


def _count(
    options: Options,
    end: Win,
    reading: Reading,
    items: Mapping[str, int],
    by_loser: Mapping[int, Mapping[str, int]],
) -> tuple[WinnerScore, list[LoserScore]]:
    (number,) = end.winners
    cap = int(options["cap"])
    flat = next(
        ((cap or CAP_AT_DEFAULT) * FLAT_CAPS[item] for item in items if item in FLAT_CAPS), None
    )
    counted = _listed(items)
    fan = sum(item.fan for item in counted)
    losers = []
    for other, own in by_loser.items():
        more = () if flat is not None else _listed(own)
        own_fan = fan + sum(item.fan for item in more)
        amount = 2**own_fan if flat is None else flat
        capped = flat is None and 0 < cap < amount
        if capped:
            amount = cap
        # All three losers pay on every win, each its own amount.
        if options["discarder_pays"] and end.source not in (None, other):
            amount, capped = 0, False
        losers.append(LoserScore(other, number, more, own_fan, amount, capped=capped))
    return WinnerScore(number, counted, fan, flat, reading), losers


def _listed(counts: Mapping[str, int]) -> tuple[FanCount, ...]:
    """Items in the order of the rule page, with their fan and how often each counts."""
    return tuple(
        FanCount(spec.id, counts[spec.id] * spec.fan, counts[spec.id])
        for spec in FAN_ITEMS
        if spec.id in counts
    )


def _next_dealer(finished: FinishedHand) -> int | None:
    end = finished.end
    if isinstance(end, Escape):
        return None  # a player is replaced: the table starts over with a new first dealer
    if isinstance(end, Win) and finished.dealer not in end.winners:
        return (finished.dealer + 1) % 4
    return finished.dealer  # after winning or a drawn hand; a dissolved one never was


RULE_SET = RuleSet(
    id="baishan_dazui",
    revision=1,
    name_zh="白山麻将 (大嘴)",
    name_en="Baishan mahjong (Dazui)",
    wall_tiles=tuple(kind for kind in range(PLAY_KINDS) for _ in range(COPIES)),
    hand_dice=2,
    first_dealer_dice=2,
    options=OPTIONS,
    fan_items=FAN_ITEMS,
    wall=baishan.WALL,
    calls=Calls(
        may_claim=_may_claim,
        may_kong=_may_kong,
        may_win=_may_win,
        declarations=baishan.declarations,
        spoils=_never_spoils,
    ),
    hot=HOT,
    score=_score,
    counted=_counted,
    next_dealer=_next_dealer,
    declares=(baishan.ting("报听"),),
    titles=TITLES,
)
