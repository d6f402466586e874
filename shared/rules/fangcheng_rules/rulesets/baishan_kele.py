"""科乐白山麻将 `baishan_kele`."""

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
    Draw,
    Escape,
    FanCount,
    FinishedHand,
    LoserScore,
    Score,
    Transfer,
    Win,
    WinnerScore,
    from_each_other,
    to_each_other,
)
from fangcheng_rules.tiles import COPIES, PLAY_KINDS

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


HOT = Hot(
    "baishan_kele",
    STANDARD | SEVEN_PAIRS | THIRTEEN_ORPHANS,
    HAND_ITEMS,
    allows,
    fan,
    needs=NEEDS_TRIPLET | NEEDS_TERMINAL,
)

# ---- What is played, and its options ----

CAP_AT_DEFAULT = 50
"""What 十三幺 and 天胡 go by when capping is off."""

OPTIONS = (
    OptionSpec(
        id="cap",
        name_zh="封顶",
        meaning="Units that one loser pays for the win at most; 0: no cap.",
        default=CAP_AT_DEFAULT,
        maximum=100_000,
    ),
    OptionSpec(
        id="discarder_pays",
        name_zh="防作弊场",
        meaning="On a discard win only the discarder pays, its own amount.",
        default=False,
    ),
    OptionSpec(
        id="escape_penalty",
        name_zh="逃跑扣分",
        meaning="Units that a seat which escapes pays to the house.",
        default=100,
        maximum=100_000,
    ),
    OptionSpec(
        id="piao",
        name_zh="飘",
        meaning="Each seat chooses 0, 5 or 10 units before the deal, paid besides the win.",
        default=True,
    ),
)

FAN_ITEMS = (
    FanItemSpec(
        "ting", "听牌", "declared wait", 1, "both", "The wait was declared; a loser pays its own."
    ),
    FanItemSpec("closed", "立门", "closed hand", 1, "both", "No chi, pong, exposed or added kong."),
    FanItemSpec("self_draw", "自摸", "self-draw", 1, "winner", "The winner drew the tile."),
    FanItemSpec("discarder", "点炮", "discarder", 1, "loser", "Its discard or kong was won on."),
    FanItemSpec("dealer", "坐庄", "dealer", 1, "both", "The dealer wins, or pays as a loser."),
    FanItemSpec(
        "last_tile", "手把一", "last tile", 1, "both", "Four melds, none a concealed kong."
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
    FanItemSpec("all_triplets", "碰碰糊", "all triplets", 2, "winner", "Four triplets or kongs."),
    FanItemSpec(
        "three_closed",
        "三家清",
        "three others closed",
        2,
        "winner",
        "The winner is open and the three others are closed.",
        excludes=("closed",),
    ),
    FanItemSpec("half_flush", "混一色", "half flush", 2, "winner", "One suit with honours."),
    FanItemSpec(
        "triple_seq",
        "两般高",
        "three identical sequences",
        2,
        "both",
        "A loser's only if all three are chi.",
        excludes=("twin_seq",),
    ),
    FanItemSpec(
        "kong_win",
        "杠上开花",
        "win after a kong",
        2,
        "winner",
        "The winning tile replaced a kong.",
        excludes=("self_draw",),
    ),
    FanItemSpec(
        "kong_discard",
        "杠后炮",
        "discard after a kong",
        2,
        "loser",
        "Its discard followed its own kong and replacement.",
        excludes=("discarder",),
    ),
    FanItemSpec(
        "seven_pairs",
        "七小对",
        "seven pairs",
        3,
        "winner",
        "Seven pairs; four alike are two.",
        excludes=("closed", "twin_seq"),
    ),
    FanItemSpec(
        "full_flush", "清一色", "full flush", 3, "winner", "One suit only, or honours only."
    ),
    FanItemSpec(
        "four_closed", "四家清", "all four closed", 4, "winner", "Nobody is open.", ("closed",)
    ),
    FanItemSpec(
        "thirteen_orphans", "十三幺", "thirteen orphans", 0, "winner", "Twice the cap, flat."
    ),
    FanItemSpec(
        "heavenly", "天胡", "heavenly hand", 0, "winner", "The dealer wins as dealt: the cap, flat."
    ),
)


# ---- Permitted calls ----


def _may_claim(table: TableInPlay, seat: SeatInPlay, meld: Meld, waits: tuple[Wait, ...]) -> bool:
    # 听: no chi and no pong; a seat that was open when it declared may still kong.
    return not seat.declared or (meld.is_kong and seat.declared_open)


def _may_kong_now(table: TableInPlay, seat: SeatInPlay, kong: KongChoice) -> bool:
    # A kong after 听 uses the tile just drawn. A seat that was closed when it declared has no
    # pong to add to, so that its kongs are concealed ones by themselves. It may spoil the wait.
    return not seat.declared or kong.tile == seat.drawn


def _may_win(table: TableInPlay, seat: SeatInPlay, tile: int, by: WinBy) -> bool:
    return not seat.spoilt


def _spoils(waits: tuple[Wait, ...]) -> bool:
    return len(waits) != 1


# ---- Who pays ----


def _score(options: Options, finished: FinishedHand) -> Score:
    winners: list[WinnerScore] = []
    losers: list[LoserScore] = []
    transfers: list[Transfer] = []
    end = finished.end
    if isinstance(end, Win):
        winner, losers = _win(options, finished, end)
        winners.append(winner)
        transfers += _win_payments(finished, losers)
    for number, seat in enumerate(finished.seats):
        for meld in seat.melds:
            if meld.is_kong:
                transfers += from_each_other(number, _kong_amount(meld), "kong")
    if isinstance(end, Escape):
        # Kongs first, then the penalty to the house; nothing else of the hand counts.
        if penalty := int(options["escape_penalty"]):
            transfers.append(Transfer(end.seat, None, penalty, "escape"))
        return Score((), (), tuple(transfers))
    first = {seat.first_discard for seat in finished.seats}
    if len(first) == 1 and (tile := first.pop()) is not None:
        transfers += to_each_other(
            finished.dealer, 4 if tile in baishan.GREAT_KONGS else 2, "follow_dealer"
        )
    if isinstance(end, Draw):
        transfers += to_each_other(finished.dealer, 2, "draw")
    return Score(tuple(winners), tuple(losers), tuple(transfers))


def _kong_amount(meld: Meld) -> int:
    # Added kongs are paid as exposed ones.
    amount = 2 if meld.is_open else 4
    return 2 * amount if baishan.is_great(meld) else amount


def _win(
    options: Options, finished: FinishedHand, end: Win
) -> tuple[WinnerScore, list[LoserScore]]:
    """What the winner's hand counts, and each loser, in the reading that wins the most."""
    (number,) = end.winners
    seat = finished.seats[number]
    hand = Hand(seat.concealed or (), seat.melds)
    baishan.check_declared(RULE_SET, options, finished, number)
    moment = moment_of(finished, end, number)
    # 三家清 and 四家清 stand in for the losers' 立门; the losers' items are alike in all readings.
    counts_closed = Moment.OTHERS_CLOSED not in moment
    by_loser = {
        other: _loser_items(finished, end, other, counts_closed)
        for other in SEATS
        if other != number
    }
    complete = hand.plus(end.tile)
    ways = [
        _count(options, end, reading, _counted(by_hand, moment, seat.is_open), by_loser)
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
    if "thirteen_orphans" in by_hand:
        return {"thirteen_orphans": 0}  # also on the deal; nothing is added
    if Moment.ON_DEAL in moment:
        return {"heavenly": 0}
    items = dict(by_hand)
    if Moment.DECLARED in moment:
        items["ting"] = 1
    if Moment.AFTER_KONG in moment:
        items["kong_win"] = 2
    elif Moment.SELF_DRAW in moment:
        items["self_draw"] = 1
    if Moment.DEALER in moment:
        items["dealer"] = 1
    if Moment.OTHERS_CLOSED in moment and is_open:
        items["three_closed"] = 2
    elif Moment.OTHERS_CLOSED in moment:
        items["four_closed"] = 4
        items.pop("closed", None)
    return items


def _loser_items(
    finished: FinishedHand, end: Win, number: int, counts_closed: bool
) -> dict[str, int]:
    """Fan of what one loser pays more, from its own melds and state."""
    seat = finished.seats[number]
    chi = baishan.exposed_sequences(seat)
    is_source = number == end.source
    items = {
        "ting": 1 if seat.declared else 0,
        "closed": 1 if counts_closed and not seat.is_open else 0,
        "discarder": 1 if is_source and not end.discard_after_kong else 0,
        "dealer": 1 if number == finished.dealer else 0,
        "last_tile": 1 if sum(meld.is_open for meld in seat.melds) == 4 else 0,
        "twin_seq": sum(count == 2 for count in chi.values()),
        "four_in_one": baishan.exposed_fours(seat),
        "triple_seq": 2 * sum(count >= 3 for count in chi.values()),
        "kong_discard": 2 if is_source and end.discard_after_kong else 0,
    }
    return {item: fan for item, fan in items.items() if fan}


def _count(
    options: Options,
    end: Win,
    reading: Reading,
    items: Mapping[str, int],
    by_loser: Mapping[int, Mapping[str, int]],
) -> tuple[WinnerScore, list[LoserScore]]:
    cap = int(options["cap"])
    flat: int | None = None
    if "thirteen_orphans" in items:
        flat = 2 * (cap or CAP_AT_DEFAULT)
    elif "heavenly" in items:
        flat = cap or CAP_AT_DEFAULT
    (number,) = end.winners
    fan = sum(items.values())
    losers = []
    for other, own in by_loser.items():
        own_fan = 0 if flat is not None else fan + sum(own.values())
        amount = 2**own_fan if flat is None else flat
        capped = flat is None and 0 < cap < amount
        if capped:
            amount = cap
        if options["discarder_pays"] and end.source not in (None, other):
            amount, capped = 0, False
        counted = () if flat is not None else _listed(own)
        losers.append(LoserScore(other, number, counted, own_fan, amount, capped=capped))
    return WinnerScore(number, _listed(items), fan, flat, reading), losers


def _listed(items: Mapping[str, int]) -> tuple[FanCount, ...]:
    """Items in the order of the rule page, with how often each counts."""
    return tuple(
        FanCount(spec.id, items[spec.id], 1 if spec.is_flat else items[spec.id] // spec.fan)
        for spec in FAN_ITEMS
        if spec.id in items
    )


def _win_payments(finished: FinishedHand, losers: list[LoserScore]) -> list[Transfer]:
    transfers = []
    for loser in losers:
        if loser.amount:
            transfers.append(Transfer(loser.seat, loser.winner, loser.amount, "win"))
            # 飘 comes after the cap; a seat that does not pay the win pays none.
            piao = finished.seats[loser.winner].piao + finished.seats[loser.seat].piao
            if piao:
                transfers.append(Transfer(loser.seat, loser.winner, piao, "piao"))
    return transfers


def _next_dealer(finished: FinishedHand) -> int | None:
    end = finished.end
    if isinstance(end, Escape):
        return None
    if isinstance(end, Win) and finished.dealer not in end.winners:
        return (finished.dealer + 1) % 4
    return finished.dealer  # after winning or a drawn hand; a dissolved one never was


RULE_SET = RuleSet(
    id="baishan_kele",
    revision=1,
    name_zh="科乐白山麻将",
    name_en="Baishan mahjong (Kele)",
    wall_tiles=tuple(kind for kind in range(PLAY_KINDS) for _ in range(COPIES)),
    hand_dice=1,
    first_dealer_dice=1,
    options=OPTIONS,
    fan_items=FAN_ITEMS,
    wall=baishan.WALL,
    calls=Calls(
        may_claim=_may_claim,
        may_kong=_may_kong_now,
        may_win=_may_win,
        declarations=baishan.declarations,
        spoils=_spoils,
    ),
    hot=HOT,
    score=_score,
    counted=_counted,
    next_dealer=_next_dealer,
    declares=(baishan.ting("听"),),
    piao_choices=lambda options: (0, 5, 10) if options["piao"] else (),
)
