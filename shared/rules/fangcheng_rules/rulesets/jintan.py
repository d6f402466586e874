"""金坛麻将 `jintan`.

Decided where the page is silent:

- *Play*, 过牌: the four concealed tiles that free a seat are those before the chi, the two that go
  into it included: three melds lay there. Where a kong after the chi leaves nothing but tiles that
  may not be discarded, any may be, since a seat has to discard.
- *Play*, own discards: the exception asks that the turn began with a chi or pong and that one
  concealed tile is left; a kong in between does not matter.
- *Play*, passed wins: where several were passed since the last action, a later win must beat each
  of them. A seat that claimed a chi or pong in place of the win and was outranked has passed it.
- *Dealer*: after a dissolved hand the dealer deals again, since nothing was played out.
- *Play*, 诈胡: a complete hand that may not win now (a lock, no flower and no fan) has no win
  either. Paid with every end of a hand that pays anything, an escape too.
- *Flower points*: they are alike in all readings, since three of an honour are a triplet in any.
- *Fan*, `any_pair_wait`: a tile that could complete the pair or a set counts as whichever is more.
- *Who pays*: a seat that wins does not pay another that wins on the same tile.
- *Options*: clubs also play with one winner (截胡) or another cap. Eight flowers and an escape pay
  the cap; where there is none, the cap of the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fangcheng_rules.analysis import KongChoice, Reading, Wait, winning_readings
from fangcheng_rules.errors import IllegalWin
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels.facts import (
    HONOURS_MASK,
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
    EightFlowers,
    Escape,
    FanCount,
    FinishedHand,
    LoserScore,
    Score,
    Transfer,
    Win,
    WinnerScore,
    from_each_other,
)
from fangcheng_rules.tiles import COPIES, FLOWERS, PLAY_KINDS, is_honour, rank

# ---- Conditions of a win, and the winner's fan by the hand alone (compiled) ----

HAND_ITEMS = ("half_flush", "all_triplets", "single_tile", "full_flush", "seven_pairs")
_HALF_FLUSH, _ALL_TRIPLETS, _SINGLE_TILE, _FULL_FLUSH, _SEVEN_PAIRS = range(0, 20, 4)

ANY_PAIR_WAIT = 1
"""The bit of that option, the only one that matters here."""


def allows(hand: HandBits, reading: ReadingBits) -> bool:
    """Conditions of a win: the shape alone (what a discard win needs more is no condition)."""
    return True


def fan(hand: HandBits, reading: ReadingBits) -> int:
    """Fan of each of `HAND_ITEMS`, in four bits each."""
    kinds = held_kinds(hand)
    suits = suits_in(kinds)
    honours = kinds & HONOURS_MASK
    items = 0
    if suits == 1 and honours == 0:
        items |= 2 << _FULL_FLUSH
    elif suits <= 1:
        items |= 1 << _HALF_FLUSH  # one suit with honours, or honours only
    if reading.shape == SEVEN_PAIRS:
        return items | 2 << _SEVEN_PAIRS  # four alike: two pairs, nothing more; no 独吊
    if reading.sequences == 0:
        items |= 1 << _ALL_TRIPLETS
    if hand.melds == 4 or (hand.options & ANY_PAIR_WAIT != 0 and reading.pair == hand.won):
        items |= 1 << _SINGLE_TILE
    return items


HOT = Hot("jintan", STANDARD | SEVEN_PAIRS, HAND_ITEMS, allows, fan, ("any_pair_wait",))

# ---- What is played, and its options ----

BASE = 10
"""底."""
FLOWER = 5
"""Units of a flower point: half of the 底."""
CAP_AT_DEFAULT = (BASE + 3 * FLOWER) * 4
"""Units of one share of a win at most: 爆和."""
FALSE_WIN_UNITS = 20

OPTIONS = (
    OptionSpec(
        id="false_win_penalty",
        name_zh="诈胡",
        meaning=f"A win may be called that is none; it costs {FALSE_WIN_UNITS} units.",
        default=True,
    ),
    OptionSpec(
        id="several_winners",
        name_zh="一炮多响",
        meaning="All that win on one tile are paid; off: the nearest after its seat alone (截胡).",
        default=True,
    ),
    OptionSpec(
        id="cap",
        name_zh="封顶",
        meaning="Units that one loser pays for one share of a win at most; 0: no cap.",
        default=CAP_AT_DEFAULT,
        maximum=100_000,
    ),
    OptionSpec(
        id="any_pair_wait",
        name_zh="单吊算独吊",
        meaning="独吊 counts for every win that completes the pair, not only for the last tile.",
        default=False,
    ),
)

FAN_ITEMS = (
    FanItemSpec(
        "half_flush",
        "混一色",
        "half flush",
        1,
        "winner",
        "One suit with honours, or honours only.",
        excludes=("full_flush",),
    ),
    FanItemSpec("all_triplets", "对对胡", "all triplets", 1, "winner", "Four triplets or kongs."),
    FanItemSpec(
        "kong_win",
        "杠开",
        "win after a kong",
        1,
        "winner",
        "The winning tile replaced a kong, not a flower.",
    ),
    FanItemSpec(
        "single_tile",
        "独吊",
        "last tile",
        1,
        "winner",
        "One concealed tile left, four melds; with `any_pair_wait` the pair was completed.",
        excludes=("seven_pairs",),
    ),
    FanItemSpec(
        "full_flush", "清一色", "full flush", 2, "winner", "One suit only.", ("half_flush",)
    ),
    FanItemSpec(
        "seven_pairs",
        "七对",
        "seven pairs",
        2,
        "winner",
        "Seven concealed pairs; four alike are two.",
        excludes=("all_triplets", "single_tile"),
    ),
)
_ITEMS = {spec.id: spec for spec in FAN_ITEMS}


def _drawable(wall: WallCount) -> int:
    return wall.left  # all tiles are drawn


def _may_kong(wall: WallCount) -> bool:
    return wall.left > 0  # a replacement exists


# ---- Amount ----


def flower_points(
    concealed: Sequence[int],
    melds: Sequence[Meld],
    flowers: Sequence[int],
    tile: int,
    *,
    discarded: bool,
) -> int:
    """Flower points of a hand that is complete with `tile`, which `concealed` leaves out."""
    points = len(flowers)
    for meld in melds:
        points += MELD_POINTS[meld.kind][is_honour(meld.first)]
    for honour, copies in Counter((*concealed, tile)).items():
        if copies == 3 and is_honour(honour):
            # A triplet that a discard completed is an exposed one.
            points += 1 if discarded and honour == tile else 2
    return points


MELD_POINTS: Mapping[MeldKind, tuple[int, int]] = {
    MeldKind.CHI: (0, 0),
    MeldKind.PONG: (0, 1),
    MeldKind.EXPOSED_KONG: (1, 3),
    MeldKind.ADDED_KONG: (1, 3),
    MeldKind.CONCEALED_KONG: (2, 4),
}
"""Flower points of a meld of suit tiles, and of one of winds or dragons."""


def amount_of(options: Options, points: int, fan: int) -> int:
    """Units of one share of a win."""
    amount: int = (BASE + FLOWER * points) * 2**fan
    cap = int(options["cap"])
    return min(amount, cap) if cap else amount


def _worth(options: Options, hand: Hand, flowers: tuple[int, ...], tile: int) -> tuple[int, int]:
    """Fan and units of a win on another's discard; no units where it may not be won on."""
    points = flower_points(hand.concealed, hand.melds, flowers, tile, discarded=True)
    complete = hand.plus(tile)
    # Flower points are alike in all readings, so that the most fan is paid the most.
    _, items = winning_readings(
        RULE_SET, options, complete.concealed, complete.melds, won=tile, claimed=True
    )[0]
    fan = sum(items.values())
    if points == fan == 0:
        return 0, 0  # 吃炮 needs at least one flower point or one fan
    return fan, amount_of(options, points, fan)


# ---- Permitted calls ----


def _swaps(chi: Meld) -> set[int]:
    """过牌: what may not be discarded after this chi.

    The tile taken, and the one at the other end of the run that the two from hand would also
    complete.
    """
    claimed = chi.claimed
    if claimed is None:
        return set()
    low, _, high = chi.tiles
    if claimed == low and rank(high) < 9:
        return {low, high + 1}
    if claimed == high and rank(low) > 1:
        return {high, low - 1}
    return {claimed}


def _may_claim(table: TableInPlay, seat: SeatInPlay, meld: Meld, waits: tuple[Wait, ...]) -> bool:
    # A chi that would leave no permitted discard is not offered.
    if meld.kind is not MeldKind.CHI or len(seat.melds) == 3:
        return True
    left = Counter(seat.concealed) - Counter(tile for tile in meld.tiles if tile != meld.claimed)
    return not set(left) <= _swaps(meld)


def _may_discard(table: TableInPlay, seat: SeatInPlay, tile: int) -> bool:
    # For the whole turn, also after a kong in it.
    chi = seat.turn_claim
    if chi is None or chi.kind is not MeldKind.CHI:
        return True
    if len(seat.melds) == 4 and seat.melds[3] == chi:
        return True  # it had exactly four concealed tiles when it took the chi
    return tile not in _swaps(chi)


def _may_kong_now(table: TableInPlay, seat: SeatInPlay, kong: KongChoice) -> bool:
    return True


def _may_win(table: TableInPlay, seat: SeatInPlay, tile: int, by: WinBy) -> bool:
    if by == "self_draw":
        return True
    if tile == seat.last_discard and not _broke_its_pair(seat):
        return False
    if by == "rob_kong":
        return True  # needs neither flower nor fan, and passed wins do not bar it
    wait = next(wait for wait in seat.waits if wait.tile == tile)
    points = flower_points(seat.concealed, seat.melds, seat.flowers, tile, discarded=True)
    if points == wait.least_fan == 0:
        return False  # 吃炮 needs at least one flower point or one fan
    # Passed wins: more fan than the passed one, and paid more, capped amounts compared.
    return all(
        wait.least_fan > passed.least_fan and wait.least_units > passed.least_units
        for passed in seat.passed
    )


def _broke_its_pair(seat: SeatInPlay) -> bool:
    # Its discard followed a chi or pong and left it in 独吊.
    claim = seat.turn_claim
    return claim is not None and not claim.is_kong and len(seat.concealed) == 1


def _declarations(
    table: TableInPlay, seat: SeatInPlay, waits: tuple[Wait, ...], kong: MeldKind | None
) -> tuple[str, ...]:
    return ()


def _never_spoils(waits: tuple[Wait, ...]) -> bool:
    return False


# ---- Who pays ----


def _score(options: Options, finished: FinishedHand) -> Score:
    winners: list[WinnerScore] = []
    losers: list[LoserScore] = []
    transfers: list[Transfer] = []
    end = finished.end
    the_cap = int(options["cap"]) or CAP_AT_DEFAULT
    match end:
        case Win():
            for number in end.winners:
                winner = _win(options, finished, end, number)
                winners.append(winner)
                losers += _losers(options, end, winner)
            transfers += [
                Transfer(loser.seat, loser.winner, loser.amount, "win")
                for loser in losers
                if loser.amount
            ]
        case EightFlowers():
            transfers += from_each_other(end.seat, the_cap, "win")
        case Escape():
            transfers.append(Transfer(end.seat, None, the_cap, "escape"))
    transfers += [
        Transfer(seat, None, FALSE_WIN_UNITS, "false_win") for seat in finished.false_wins
    ]
    return Score(tuple(winners), tuple(losers), tuple(transfers))


def _win(options: Options, finished: FinishedHand, end: Win, number: int) -> WinnerScore:
    """What one winner's hand counts, in the reading that wins the most."""
    seat = finished.seats[number]
    concealed = seat.concealed or ()
    points = flower_points(
        concealed, seat.melds, seat.flowers, end.tile, discarded=end.by == "discard"
    )
    moment = moment_of(finished, end, number)
    complete = Hand(concealed, seat.melds).plus(end.tile)
    ways = [
        _count(number, reading, _counted(by_hand, moment, seat.is_open), points)
        for reading, by_hand in winning_readings(
            RULE_SET,
            options,
            complete.concealed,
            complete.melds,
            won=end.tile,
            claimed=end.by != "self_draw",
        )
    ]
    best = max(ways, key=_how_much)
    if end.by == "discard" and points == best.fan == 0:
        raise IllegalWin(
            "WIN_NOT_ALLOWED",
            "a win on a discard needs a flower point or a fan",
            f"seats[{number}].concealed",
        )
    return best


def _counted(by_hand: Mapping[str, int], moment: Moment, is_open: bool) -> dict[str, int]:
    # A flower between a kong and the win ends 杠开; a robbed kong has no fan for it.
    if Moment.AFTER_KONG in moment and Moment.AFTER_FLOWER not in moment:
        return {**by_hand, "kong_win": 1}
    return dict(by_hand)


def _count(number: int, reading: Reading, items: Mapping[str, int], points: int) -> WinnerScore:
    counted = tuple(
        FanCount(spec.id, items[spec.id], items[spec.id] // spec.fan)
        for spec in FAN_ITEMS
        if spec.id in items
    )
    fan = sum(item.fan for item in counted)
    return WinnerScore(number, counted, fan, None, reading, flower_points=points)


def _how_much(winner: WinnerScore) -> tuple[int, int]:
    # Flower points are alike in all readings: the most fan wins the most; then the most triplets.
    triplets = sum(len(tiles) > 2 and tiles[0] == tiles[-1] for tiles in winner.reading.sets)
    return winner.fan, triplets


def _losers(options: Options, end: Win, winner: WinnerScore) -> list[LoserScore]:
    """What each loser pays one winner."""
    amount = amount_of(options, winner.flower_points, winner.fan)
    capped = amount < amount_of({**options, "cap": 0}, winner.flower_points, winner.fan)
    # A robbed kong counts as a self-draw that its owner pays for all three.
    times = 3 if end.by == "rob_kong" else 1
    return [
        LoserScore(seat, winner.seat, (), winner.fan, times * amount, times, capped)
        if end.source in (None, seat)
        else LoserScore(seat, winner.seat, (), winner.fan, 0)
        for seat in SEATS
        if seat not in end.winners
    ]


def _next_dealer(finished: FinishedHand) -> int | None:
    end = finished.end
    if isinstance(end, Escape):
        return None
    winners: tuple[int, ...] = ()
    if isinstance(end, Win):
        winners = end.winners
    elif isinstance(end, EightFlowers):
        winners = (end.seat,)
    if winners and finished.dealer not in winners:
        return (finished.dealer + 1) % 4
    return finished.dealer  # after winning, also as one of several, or a drawn hand


RULE_SET = RuleSet(
    id="jintan",
    revision=1,
    name_zh="金坛麻将",
    name_en="Jintan mahjong",
    wall_tiles=(*(kind for kind in range(PLAY_KINDS) for _ in range(COPIES)), *FLOWERS),
    hand_dice=2,
    first_dealer_dice=0,
    options=OPTIONS,
    fan_items=FAN_ITEMS,
    wall=WallPolicy(drawable=_drawable, may_kong=_may_kong),
    calls=Calls(
        may_claim=_may_claim,
        may_kong=_may_kong_now,
        may_win=_may_win,
        declarations=_declarations,
        spoils=_never_spoils,
        may_discard=_may_discard,
        kongs_after_claim=True,
        several_winners=lambda options: bool(options["several_winners"]),
        false_wins=lambda options: bool(options["false_win_penalty"]),
    ),
    hot=HOT,
    score=_score,
    counted=_counted,
    next_dealer=_next_dealer,
    flowers_win=len(FLOWERS),
    worth=_worth,
)
