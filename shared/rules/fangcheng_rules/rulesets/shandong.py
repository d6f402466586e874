"""山东麻将 `shandong`.

Decided where the page is silent:

- *Dealer*: "random" is one seat in four exactly, from two dice of the shuffle.
- *Play*, 楼: it goes with any discard that leaves the seat waiting, also the one after a chi or
  pong. Waits "stay the same" when they are on the same kinds, whatever each is worth. The discard
  that declares 明楼 is paid double already if it is won. What a 明楼 seat's concealed kong is made
  of is seen by all, as its hand is; the tile that it draws is not.
- *The end of the wall*: the last discard may still be taken by chi or pong; the hand is drawn when
  somebody would have to draw.
- *Amount*, `concealed_honour_flower`: a winner's triplets count, an escaping seat's do not, since
  only a winning hand is read.
- *Fan*, 地和: of several winners of one discard those have it that have not discarded yet.
- *Fan*, 推倒和: a wait is worth 1 fan at the least, its 推倒和.
- *Who pays*: what decides who pays must be told. A win on an exposed kong's replacement without the
  seat that was konged is refused, and so are three open melds of which one has no feeder.
- *Options*: clubs also play with one winner (截胡), without 承包, and with a cap. The cap cuts each
  seat's share after all doublings; who pays for three pays three such shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from fangcheng_rules.analysis import KongChoice, Reading, Wait, winning_readings
from fangcheng_rules.errors import IllegalWin
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels.facts import (
    HONOURS_MASK,
    NEEDS_258,
    ONCE_EACH,
    SEVEN_PAIRS,
    STANDARD,
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
    Declaration,
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
    Draw,
    Escape,
    FanCount,
    FinishedHand,
    LoserScore,
    Score,
    SeatEnd,
    Transfer,
    Win,
    WinnerScore,
)
from fangcheng_rules.tiles import COPIES, FLOWERS, PLAY_KINDS, is_honour
from fangcheng_rules.titles import titles_up_to

# ---- Conditions of a win, and the winner's fan by the hand alone (compiled) ----

HAND_ITEMS = (
    "full_flush",
    "all_258",
    "half_flush",
    "straight",
    "all_triplets",
    "seven_pairs",
    "basic",
)
(
    _FULL_FLUSH,
    _ALL_258,
    _HALF_FLUSH,
    _STRAIGHT,
    _ALL_TRIPLETS,
    _SEVEN_PAIRS,
    _BASIC,
) = range(0, 28, 4)

MASK_258 = sum(1 << (9 * suit + place) for suit in range(3) for place in (1, 4, 7))
MASK_STRAIGHT = 1 | 1 << 9 | 1 << 18
"""The fields of 123, 456 and 789 of the first suit, their lowest bits."""


def allows(hand: HandBits, reading: ReadingBits) -> bool:
    """Conditions of a win: does this reading pass?"""
    if reading.shape == SEVEN_PAIRS:
        return True  # any pairs
    return MASK_258 >> reading.pair & 1 == 1  # the pair is 2, 5 or 8 of a suit


def fan(hand: HandBits, reading: ReadingBits) -> int:
    """Fan of each of `HAND_ITEMS`, in four bits each."""
    kinds = held_kinds(hand)
    honours = kinds & HONOURS_MASK
    suits = suits_in(kinds)
    items = 0
    if suits == 1 and honours == 0:
        items |= 5 << _FULL_FLUSH
    elif suits <= 1:
        # Honours alone are 混一色 too; having no 2, 5 or 8 they can only be seven pairs.
        items |= 2 << _HALF_FLUSH
    if kinds & ~MASK_258 == 0:
        items |= 5 << _ALL_258
    if reading.shape == SEVEN_PAIRS:
        return items | 2 << _SEVEN_PAIRS
    if reading.sequences == 0:
        items |= 2 << _ALL_TRIPLETS
    runs = (reading.sequences | reading.sequences >> 1 | reading.sequences >> 2) & ONCE_EACH
    for suit in range(3):
        if runs >> (21 * suit) & MASK_STRAIGHT == MASK_STRAIGHT:
            items |= 2 << _STRAIGHT
    if items == 0:
        items = 1 << _BASIC
    return items


HOT = Hot("shandong", STANDARD | SEVEN_PAIRS, HAND_ITEMS, allows, fan, needs=NEEDS_258)

# ---- What is played, and its options ----

BASE = 5
"""底: what every amount starts from, in units (one 花 is a unit)."""
MOST_DRAWN_HANDS = 5
"""Drawn hands in a row that double the next: at most 32 times."""
ESCAPE_FACTOR = 10
UNDRAWN_STACKS = 6
FED_FOR_GUARANTOR = 3
"""Melds fed to one seat by another that make it pay alone (承包)."""

OPTIONS = (
    OptionSpec(
        id="concealed_honour_flower",
        name_zh="暗刻算花",
        meaning="A concealed honour triplet, complete before the winning tile, is worth a flower.",
        default=False,
    ),
    OptionSpec(
        id="several_winners",
        name_zh="一炮多响",
        meaning="All that claim one tile win it; off: the nearest seat alone (截胡).",
        default=True,
    ),
    OptionSpec(
        id="guarantor",
        name_zh="承包",
        meaning="A seat that fed three melds to the winner pays alone.",
        default=True,
    ),
    OptionSpec(
        id="cap",
        name_zh="封顶",
        meaning="Units of one seat's share at most, doublings counted; 0: no cap.",
        default=0,
        maximum=100_000,
    ),
)

_BASIC_ONLY = ("basic",)
FAN_ITEMS = (
    FanItemSpec("basic", "推倒和", "plain win", 1, "winner", "No other item counts."),
    FanItemSpec(
        "half_flush",
        "混一色",
        "half flush",
        2,
        "winner",
        "One suit with honours; or honours only, which only seven pairs can be.",
        _BASIC_ONLY,
    ),
    FanItemSpec(
        "straight",
        "一条龙",
        "straight",
        2,
        "winner",
        "1 to 9 of one suit in three sequences.",
        _BASIC_ONLY,
    ),
    FanItemSpec(
        "kong_win",
        "杠上开花",
        "win on a replacement",
        2,
        "winner",
        "The winning tile replaced a kong or a flower.",
        _BASIC_ONLY,
    ),
    FanItemSpec(
        "all_triplets",
        "碰碰和",
        "all triplets",
        2,
        "winner",
        "Four triplets or kongs.",
        _BASIC_ONLY,
    ),
    FanItemSpec(
        "seven_pairs",
        "七对",
        "seven pairs",
        2,
        "winner",
        "Seven pairs, concealed; four alike are two.",
        _BASIC_ONLY,
    ),
    FanItemSpec(
        "earthly",
        "地和",
        "earthly hand",
        5,
        "winner",
        "Not the dealer; before any chi, pong or kong of anyone and its own first discard.",
        _BASIC_ONLY,
    ),
    FanItemSpec("full_flush", "清一色", "full flush", 5, "winner", "One suit only.", _BASIC_ONLY),
    FanItemSpec(
        "all_258",
        "将一色",
        "all 2, 5 and 8",
        5,
        "winner",
        "Every tile is a 2, 5 or 8.",
        _BASIC_ONLY,
    ),
    FanItemSpec(
        "heavenly",
        "天和",
        "heavenly hand",
        6,
        "winner",
        "The dealer wins on the tiles dealt, flowers replaced.",
        ("basic", "kong_win"),
    ),
)

TITLES = titles_up_to(
    {
        "白板": 100,
        "一万": 200,
        "二万": 500,
        "三万": 1_000,
        "四万": 2_000,
        "五万": 5_000,
        "六万": 10_000,
        "七万": 20_000,
        "八万": 50_000,
        "九万": 80_000,
        "东风": 100_000,
        "西风": 200_000,
        "南风": 500_000,
        "北风": 800_000,
        "红中": 1_000_000,
    },
    highest="发财",
)


def _drawable(wall: WallCount) -> int:
    # Six stacks stay; the single tile that an odd number of replacements leaves counts as one.
    return max(0, wall.left - (2 * UNDRAWN_STACKS - wall.replacements % 2))


def _may_kong(wall: WallCount) -> bool:
    return _drawable(wall) > 0


# ---- Permitted calls ----


def _may_claim(table: TableInPlay, seat: SeatInPlay, meld: Meld, waits: tuple[Wait, ...]) -> bool:
    # 楼 locks the hand: it claims nothing but a win.
    return not seat.declared


def _may_kong_now(table: TableInPlay, seat: SeatInPlay, kong: KongChoice) -> bool:
    # After 楼: concealed, with the tile just drawn, and the waits stay what they were.
    return not seat.declared or (
        kong.kind is MeldKind.CONCEALED_KONG
        and kong.tile == seat.drawn
        and [wait.tile for wait in kong.waits] == [wait.tile for wait in seat.waits]
    )


def _may_win(table: TableInPlay, seat: SeatInPlay, tile: int, by: WinBy) -> bool:
    # 明楼 wins by self-draw only, so it cannot rob a kong either.
    return seat.declared != "lou_open" or by == "self_draw"


DECLARES = (
    Declaration(
        id="lou_open",
        name_zh="明楼",
        name_en="open lou",
        meaning="The waiting hand is shown and locked; it wins by self-draw only, and double.",
        worth_from=6,
    ),
    Declaration(
        id="lou_hidden",
        name_zh="暗楼",
        name_en="hidden lou",
        meaning="The waiting hand is locked, but not shown; it wins in any way, as ever.",
        worth_from=None,
    ),
)


def _declarations(
    table: TableInPlay, seat: SeatInPlay, waits: tuple[Wait, ...], kong: MeldKind | None
) -> tuple[str, ...]:
    # Together with the discard that leaves the seat waiting, on however many kinds.
    return () if seat.declared or kong or not waits else ("lou_open", "lou_hidden")


def _spoils(waits: tuple[Wait, ...]) -> bool:
    return False  # a kong that changes the waits is not permitted


def _worth(options: Options, hand: Hand, flowers: tuple[int, ...], tile: int) -> tuple[int, int]:
    """Fan and units of a discard win by the hand alone."""
    seat = SeatEnd(hand.concealed, hand.melds, flowers=flowers)
    best = max(_ways(options, seat, 0, tile, True, Moment(0)), key=_how_much)
    return best.fan, _capped(options, (BASE + best.flower_points) * best.fan)


# ---- Who pays ----


def _score(options: Options, finished: FinishedHand) -> Score:
    end = finished.end
    match end:
        case Win():
            winners: list[WinnerScore] = []
            losers: list[LoserScore] = []
            for number in end.winners:
                winner = _winner(options, finished, end, number)
                winners.append(winner)
                losers += _losers(options, finished, end, winner)
            paid = [
                Transfer(loser.seat, loser.winner, loser.amount, "win")
                for loser in losers
                if loser.amount
            ]
            return Score(tuple(winners), tuple(losers), tuple(paid))
        case Escape():
            points = flower_points(finished.seats[end.seat])
            amount = (BASE + points) * ESCAPE_FACTOR
            return Score(transfers=(Transfer(end.seat, None, amount, "escape"),))
        case _:
            return Score()  # a drawn hand pays nothing, kongs neither


def _winner(options: Options, finished: FinishedHand, end: Win, number: int) -> WinnerScore:
    """One winner's hand in the reading that wins the most."""
    seat = finished.seats[number]
    if seat.declared == "lou_open" and end.by != "self_draw":
        raise IllegalWin(
            "WIN_NOT_ALLOWED", "明楼 wins by self-draw only", f"seats[{number}].declared"
        )
    claimed = end.by != "self_draw"
    ways = _ways(options, seat, number, end.tile, claimed, moment_of(finished, end, number))
    # Each drawn hand in a row before this one doubles, and so does 明楼.
    times = 2 ** min(finished.drawn_hands_before, MOST_DRAWN_HANDS)
    if seat.declared == "lou_open":
        times *= 2
    return replace(max(ways, key=_how_much), multiplier=times)


def _ways(
    options: Options,
    seat: SeatEnd,
    number: int,
    tile: int,
    claimed: bool,
    moment: Moment,
) -> Iterator[WinnerScore]:
    """What a hand counts, read in each way."""
    complete = Hand(seat.concealed or (), seat.melds).plus(tile)
    for reading, by_hand in winning_readings(
        RULE_SET, options, complete.concealed, complete.melds, won=tile, claimed=claimed
    ):
        items = _counted(by_hand, moment, seat.is_open)
        points = flower_points(seat)
        if options["concealed_honour_flower"]:
            points += _concealed_honours(seat, reading)
        fan = sum(items.values())
        yield WinnerScore(number, _listed(items), fan, None, reading, flower_points=points)


def _how_much(way: WinnerScore) -> tuple[int, int, int]:
    # The most units; then the most fan; then the most triplets.
    triplets = sum(len(tiles) > 2 and tiles[0] == tiles[-1] for tiles in way.reading.sets)
    return (BASE + way.flower_points) * way.fan, way.fan, triplets


def _counted(by_hand: Mapping[str, int], moment: Moment, is_open: bool) -> dict[str, int]:
    items = dict(by_hand)
    if Moment.ON_DEAL in moment:
        items["heavenly"] = 6  # also on a flower's replacement, without 杠上开花
    else:
        if Moment.FIRST_ROUND in moment:
            items["earthly"] = 5
        if moment & (Moment.AFTER_KONG | Moment.AFTER_FLOWER):
            items["kong_win"] = 2
    if len(items) > 1:
        items.pop("basic", None)
    return items


def _losers(
    options: Options, finished: FinishedHand, end: Win, winner: WinnerScore
) -> list[LoserScore]:
    """What each other seat pays one winner."""
    times = _times(options, finished, end, winner.seat)
    amount = (BASE + winner.flower_points) * winner.fan * winner.multiplier
    losers = []
    for seat in SEATS:
        # Another winner is told of only where it pays (承包).
        if seat != winner.seat and (seat in times or seat not in end.winners):
            shares, doubled = times.get(seat, (0, 1))
            share = _capped(options, amount * doubled)
            losers.append(
                LoserScore(
                    seat,
                    winner.seat,
                    (),
                    winner.fan,
                    shares * share,
                    multiplier=max(1, shares) * doubled,
                    capped=shares > 0 and share < amount * doubled,
                )
            )
    return losers


def _times(
    options: Options, finished: FinishedHand, end: Win, number: int
) -> dict[int, tuple[int, int]]:
    """By seat that pays: how many seats' shares, and 2 where a share is doubled.

    The first line of "Who pays" that fits.
    """
    is_blown = end.after_kong == "exposed" and not end.after_flower
    if is_blown and end.kong_source is None:
        raise IllegalWin(
            "INVALID_END", "杠爆 is paid by whoever discarded the kong's tile", "end.kong_source"
        )
    if is_blown and not any(
        meld.kind is MeldKind.EXPOSED_KONG and meld.source in (None, end.kong_source)
        for meld in finished.seats[number].melds
    ):
        raise IllegalWin(
            "INVALID_END", "none of its exposed kongs came from that seat", "end.kong_source"
        )
    discarder = end.source if end.by == "discard" else None
    # A 明楼 discarder pays double: not for a robbed kong, nor for 杠爆.
    doubled = discarder is not None and finished.seats[discarder].declared == "lou_open"
    guarantor = _guarantor(finished, number) if options["guarantor"] else None
    if guarantor is not None:  # 承包: alone, all that the others would have paid together
        shares = 3 if discarder is None else 1
        return {guarantor: (shares, 2 if doubled and guarantor == discarder else 1)}
    if end.by == "rob_kong" and end.source is not None:  # 抢杠
        return {end.source: (3, 1)}
    if is_blown and end.kong_source is not None:  # 杠爆
        return {end.kong_source: (3, 1)}
    if discarder is None:  # 自摸
        return {seat: (1, 1) for seat in SEATS if seat != number}
    return {discarder: (1, 2 if doubled else 1)}  # 点炮


def _guarantor(finished: FinishedHand, number: int) -> int | None:
    """The seat that fed three or more of the winner's chi, pong and exposed kongs (承包).

    An added kong was fed as the pong that it was; a concealed kong by nobody.
    """
    fed: Counter[int | None] = Counter()
    for meld in finished.seats[number].melds:
        if meld.kind is MeldKind.CHI:
            fed[(number - 1) % 4] += 1  # always from the seat before
        elif meld.is_open:
            fed[meld.source] += 1
    if None in fed and fed.total() >= FED_FOR_GUARANTOR:
        raise IllegalWin("INVALID_END", "who fed a meld decides who pays", f"seats[{number}].melds")
    return next((seat for seat, melds in fed.items() if melds >= FED_FOR_GUARANTOR), None)


def _capped(options: Options, share: int) -> int:
    cap = int(options["cap"])
    return min(share, cap) if cap else share


# ---- Flower points ----


def flower_points(seat: SeatEnd) -> int:
    """What flowers and melds are worth, of a winner or of a seat that escapes."""
    return len(seat.flowers) + sum(map(_meld_points, seat.melds))


def _meld_points(meld: Meld) -> int:
    honour = 1 if is_honour(meld.first) else 0
    match meld.kind:
        case MeldKind.PONG:
            return honour
        case MeldKind.EXPOSED_KONG | MeldKind.ADDED_KONG:
            return 1 + honour
        case MeldKind.CONCEALED_KONG:
            return 2 + honour
        case _:
            return 0


def _concealed_honours(seat: SeatEnd, reading: Reading) -> int:
    """Honour triplets in hand that were complete before the winning tile."""
    held = Counter(seat.concealed or ())
    laid = len(seat.melds)
    return sum(
        len(tiles) == 3 and is_honour(tiles[0]) and held[tiles[0]] >= 3
        for tiles in reading.sets[laid:]
    )


def _listed(items: Mapping[str, int]) -> tuple[FanCount, ...]:
    """Items in the order of the rule page."""
    return tuple(FanCount(spec.id, items[spec.id]) for spec in FAN_ITEMS if spec.id in items)


def _next_dealer(finished: FinishedHand) -> int | None:
    match finished.end:
        case Win(winners=(winner,)):
            return winner
        case Win(source=source):
            return source  # several won: the discarder, or the robbed kong's owner
        case Draw():
            return (finished.dealer + 1) % 4
        case _:
            return None  # after an escape or a dissolved hand the table starts over


def _first_dealer(dice: tuple[int, ...]) -> int:
    # Random, each seat in nine of the 36 throws; counted round they would not be alike.
    first, second = dice
    return (6 * (second - 1) + first - 1) % 4


RULE_SET = RuleSet(
    id="shandong",
    revision=1,
    name_zh="山东麻将",
    name_en="Shandong mahjong",
    wall_tiles=(*(kind for kind in range(PLAY_KINDS) for _ in range(COPIES)), *FLOWERS),
    hand_dice=4,
    first_dealer_dice=2,
    options=OPTIONS,
    fan_items=FAN_ITEMS,
    wall=WallPolicy(drawable=_drawable, may_kong=_may_kong),
    calls=Calls(
        may_claim=_may_claim,
        may_kong=_may_kong_now,
        may_win=_may_win,
        declarations=_declarations,
        spoils=_spoils,
        several_winners=lambda options: bool(options["several_winners"]),
        shown=("lou_open",),
    ),
    hot=HOT,
    score=_score,
    counted=_counted,
    next_dealer=_next_dealer,
    first_dealer=_first_dealer,
    # After a drawn hand the next one starts without a ready check; when a player leaves, the table
    # starts over (Dealer).
    ready_check="unless_drawn",
    starts_over=True,
    declares=DECLARES,
    worth=_worth,
    titles=TITLES,
)
