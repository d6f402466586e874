"""A sixth rule set, of nobody's region: what one file and one line are enough for.

112 tiles, the suits and the four seasons. Standard shape or seven pairs, without further
conditions; a season is worth a unit, all four together win at once. All who claim a tile win on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fangcheng_rules.analysis import KongChoice, Wait, winning_readings
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels.facts import (
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
    Dissolved,
    Draw,
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

SEASONS = (34, 35, 36, 37)


def allows(hand: HandBits, reading: ReadingBits) -> bool:
    """Conditions of a win: none."""
    return True


def fan(hand: HandBits, reading: ReadingBits) -> int:
    """One suit 3; seven pairs 2; all triplets 1."""
    items = 0
    if suits_in(held_kinds(hand)) == 1:
        items |= 3
    if reading.shape == SEVEN_PAIRS:
        items |= 2 << 4
    elif reading.sequences == 0:
        items |= 1 << 8
    return items


HOT = Hot("riverside", STANDARD | SEVEN_PAIRS, ("one_suit", "pairs", "triplets"), allows, fan)

FAN_ITEMS = (
    FanItemSpec("one_suit", "清一色", "one suit", 3, "winner", "All tiles of one suit."),
    FanItemSpec("pairs", "七对", "seven pairs", 2, "winner", "Seven pairs, concealed."),
    FanItemSpec("triplets", "碰碰和", "all triplets", 1, "winner", "Four triplets or kongs."),
    FanItemSpec("self_draw", "自摸", "self-draw", 1, "winner", "The winner drew the tile."),
)

OPTIONS = (
    OptionSpec(
        id="escape_penalty",
        name_zh="逃跑扣分",
        meaning="Units that a seat which escapes pays to the house.",
        default=20,
        maximum=1_000,
    ),
)


def _drawable(wall: WallCount) -> int:
    return wall.left - 8


def _may_claim(table: TableInPlay, seat: SeatInPlay, meld: Meld, waits: tuple[Wait, ...]) -> bool:
    return True


def _may_kong(table: TableInPlay, seat: SeatInPlay, kong: KongChoice) -> bool:
    return True


def _may_win(table: TableInPlay, seat: SeatInPlay, tile: int, by: WinBy) -> bool:
    return True


def _declarations(
    table: TableInPlay, seat: SeatInPlay, waits: tuple[Wait, ...], kong: MeldKind | None
) -> tuple[str, ...]:
    return ()


def _score(options: Options, finished: FinishedHand) -> Score:
    match finished.end:
        case Win() as end:
            winners = [_winner(options, finished, end, seat) for seat in end.winners]
            losers = [
                LoserScore(seat, winner.seat, (), winner.fan, _amount(winner))
                for winner in winners
                for seat in SEATS
                if seat not in end.winners and end.source in (None, seat)
            ]
            transfers = [Transfer(one.seat, one.winner, one.amount, "win") for one in losers]
            return Score(tuple(winners), tuple(losers), tuple(transfers))
        case EightFlowers(seat):
            return Score(transfers=tuple(from_each_other(seat, 8, "win")))
        case Escape(seat) if penalty := int(options["escape_penalty"]):
            return Score(transfers=(Transfer(seat, None, penalty, "escape"),))
        case Draw() | Escape() | Dissolved():
            return Score()


def _winner(options: Options, finished: FinishedHand, end: Win, number: int) -> WinnerScore:
    seat = finished.seats[number]
    hand = Hand(seat.concealed or (), seat.melds).plus(end.tile)
    reading, items = winning_readings(
        RULE_SET,
        options,
        hand.concealed,
        hand.melds,
        won=end.tile,
        claimed=end.by != "self_draw",
    )[0]
    items = _counted(items, moment_of(finished, end, number), seat.is_open)
    counted = tuple(FanCount(item, worth) for item, worth in items.items())
    return WinnerScore(
        number, counted, sum(items.values()), None, reading, flower_points=len(seat.flowers)
    )


def _counted(by_hand: Mapping[str, int], moment: Moment, is_open: bool) -> dict[str, int]:
    drawn = {"self_draw": 1} if Moment.SELF_DRAW in moment else {}
    return {**by_hand, **drawn}


def _amount(winner: WinnerScore) -> int:
    return int((1 + winner.flower_points) * 2**winner.fan)


def _next_dealer(finished: FinishedHand) -> int | None:
    end = finished.end
    if isinstance(end, Escape):
        return None
    if isinstance(end, Win) and finished.dealer not in end.winners:
        return (finished.dealer + 1) % 4
    return finished.dealer


RULE_SET = RuleSet(
    id="riverside",
    revision=1,
    name_zh="河边麻将",
    name_en="Riverside mahjong",
    wall_tiles=(*(kind for kind in range(27) for _ in range(4)), *SEASONS),
    hand_dice=2,
    first_dealer_dice=2,
    options=OPTIONS,
    fan_items=FAN_ITEMS,
    wall=WallPolicy(drawable=_drawable, may_kong=lambda wall: _drawable(wall) > 0),
    calls=Calls(
        may_claim=_may_claim,
        may_kong=_may_kong,
        may_win=_may_win,
        declarations=_declarations,
        spoils=lambda waits: False,
        several_winners=lambda options: True,
    ),
    hot=HOT,
    score=_score,
    counted=_counted,
    next_dealer=_next_dealer,
    flowers_win=len(SEASONS),
)
