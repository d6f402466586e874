"""Finished hands of four seats, and what they pay.

`score` checks that the hand can have ended so, then lets its rule set settle it. A score is a
list of transfers, each between two seats or a seat and the house, so that all of them together
come to zero whatever the rule set does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from .analysis import Reading, analyze, winning_readings
from .errors import IllegalWin, InvalidHand
from .hand import Hand
from .melds import Meld, MeldKind
from .ruleset import Options, RuleSet, WinBy
from .tiles import ALL_KINDS, COPIES, DRAGONS, PLAY_KINDS, is_flower, name

SEATS = (0, 1, 2, 3)

KongKind = Literal["exposed", "added", "concealed"]
TransferReason = Literal["win", "kong", "piao", "follow_dealer", "draw", "escape", "false_win"]


@dataclass(frozen=True, slots=True)
class SeatEnd:
    """One seat at the end of a hand."""

    concealed: tuple[int, ...] | None = None
    """Concealed tiles without the winning tile, sorted; None: not known (never a winner's)."""
    melds: tuple[Meld, ...] = ()
    """Melds; the owner of a robbed kong is shown with its pong."""
    declared: str = ""
    """'' or what the seat declared ('ting', 'lou_open')."""
    piao: int = 0
    """Units chosen before the deal."""
    first_discard: int | None = None
    flowers: tuple[int, ...] = ()
    """Flowers laid down."""

    @property
    def is_open(self) -> bool:
        """开门: a chi, a pong, an exposed or an added kong lies there."""
        return any(meld.is_open for meld in self.melds)


@dataclass(frozen=True, slots=True)
class Win:
    """One or more seats won on a tile."""

    winners: tuple[int, ...]
    tile: int
    by: WinBy
    source: int | None = None
    """The discarder, or the owner of the robbed kong; None on a self-draw."""
    after_kong: KongKind | None = None
    """The winning tile is the replacement of the winner's own kong of this kind."""
    kong_source: int | None = None
    """Whose discard became that exposed kong."""
    discard_after_kong: bool = False
    """杠后炮: the discard followed the discarder's own kong and its replacement."""
    on_deal: bool = False
    """天胡: the dealer won on the fourteen tiles dealt (flowers replaced)."""
    after_flower: bool = False
    """The winning tile itself replaced a flower; with `after_kong`: kong, flower, winning tile."""
    first_round: tuple[int, ...] = ()
    """地和: the winners, not the dealer, that won before any meld of anyone and before their own
    first discard."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Nobody won and no tile may be drawn."""


@dataclass(frozen=True, slots=True)
class Escape:
    """A seat left for good, or longer than its grace (逃跑)."""

    seat: int


@dataclass(frozen=True, slots=True)
class EightFlowers:
    """A seat laid down all the flowers, which wins at once (`RuleSet.flowers_win`)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Dissolved:
    """The hand was ended unpaid (解散)."""

    reason: str = ""


End = Win | Draw | Escape | Dissolved | EightFlowers


@dataclass(frozen=True, slots=True)
class FinishedHand:
    """Everything that a settlement depends on."""

    dealer: int
    seats: tuple[SeatEnd, ...]
    end: End
    drawn_hands_before: int = 0
    """Drawn hands in a row before this one."""
    treasure: int | None = None
    """The kind turned up at the end; one copy of it lies on the wall."""
    false_wins: tuple[int, ...] = ()
    """Seats that called a win without having one (诈胡), once for each call."""


@dataclass(frozen=True, slots=True)
class FanCount:
    """A fan item with the number of times that it counts."""

    id: str
    fan: int
    """Fan of all counts together; 0 for a flat amount."""
    count: int = 1


@dataclass(frozen=True, slots=True)
class WinnerScore:
    """What counts against every loser of one winner."""

    seat: int
    items: tuple[FanCount, ...]
    fan: int
    """Sum of the items."""
    flat: int | None
    """Units that every paying loser pays instead of counting fan."""
    reading: Reading
    """How the winning hand was read."""
    flower_points: int = 0
    """花: points that are added before the fan multiply."""
    multiplier: int = 1
    """What the amount is multiplied by besides its fan, whoever pays (明楼, drawn hands)."""


@dataclass(frozen=True, slots=True)
class LoserScore:
    """What one loser pays for one win, piao and kongs left aside."""

    seat: int
    winner: int
    items: tuple[FanCount, ...]
    """What this loser pays more than the winner's own items."""
    fan: int
    """The winner's fan and this loser's own together."""
    amount: int
    """Units after the cap; 0 for a loser who does not pay this win."""
    multiplier: int = 1
    """What this loser's own state multiplies the amount by (明楼, or paying for all three)."""
    capped: bool = False
    """The cap cut the amount."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Units that go from one seat to another; None is the house."""

    source: int | None
    target: int | None
    amount: int
    """More than 0."""
    reason: TransferReason


@dataclass(frozen=True, slots=True)
class Score:
    """The settlement of one hand."""

    winners: tuple[WinnerScore, ...] = ()
    losers: tuple[LoserScore, ...] = ()
    transfers: tuple[Transfer, ...] = ()

    @property
    def net(self) -> tuple[int, ...]:
        """What each seat has won or lost after everything."""
        units = [0, 0, 0, 0]
        for transfer in self.transfers:
            if transfer.source is not None:
                units[transfer.source] -= transfer.amount
            if transfer.target is not None:
                units[transfer.target] += transfer.amount
        return tuple(units)

    @property
    def house(self) -> int:
        """What the house has taken."""
        return -sum(self.net)


def score(rule_set: RuleSet, options: Mapping[str, object], finished: FinishedHand) -> Score:
    """What a finished hand pays.

    Raises InvalidOption; InvalidHand for tiles that four seats cannot hold; IllegalWin for a win
    that is none (NOT_A_WIN), that the rule set does not allow (WIN_NOT_ALLOWED), or that cannot
    have come about (INVALID_END). Each names the field, such as `seats[0].concealed`.
    """
    complete = rule_set.complete(options)
    _check_seats(rule_set, complete, finished)
    _check_table(rule_set, complete, finished)
    end = finished.end
    match end:
        case Win():
            _check_win(rule_set, complete, finished, end)
        case Escape() | EightFlowers() if end.seat not in SEATS:
            raise IllegalWin("INVALID_END", f"there is no seat {end.seat}", "end.seat")
        case EightFlowers(seat=seat):
            enough = rule_set.flowers_win
            if not enough or len(finished.seats[seat].flowers) < enough:
                raise IllegalWin("NOT_A_WIN", "not all the flowers", f"seats[{seat}].flowers")
        case Dissolved():
            return Score()
    return rule_set.score(complete, finished)


def _check_seats(rule_set: RuleSet, options: Options, finished: FinishedHand) -> None:
    if finished.dealer not in SEATS:
        raise InvalidHand("INVALID_SEAT", f"there is no seat {finished.dealer}", "dealer")
    if len(finished.seats) != len(SEATS):
        raise InvalidHand("WRONG_SEAT_COUNT", "a hand has four seats", "seats")
    held = [0] * ALL_KINDS
    for number, seat in enumerate(finished.seats):
        where = f"seats[{number}]"
        if len(seat.melds) > 4:
            raise InvalidHand("WRONG_TILE_COUNT", "more than four melds", f"{where}.melds")
        is_unreplaced = isinstance(finished.end, EightFlowers) and finished.end.seat == number
        _check_concealed(seat, is_unreplaced, f"{where}.concealed")
        if seat.declared and seat.declared not in rule_set.declarations:
            raise InvalidHand("UNKNOWN_DECLARATION", seat.declared, f"{where}.declared")
        if seat.piao not in (rule_set.piao_choices(options) or (0,)):
            raise InvalidHand("INVALID_PIAO", f"{seat.piao} cannot be chosen", f"{where}.piao")
        for tile in seat.flowers:
            if not is_flower(tile) or tile not in rule_set.kinds:
                raise InvalidHand("TILE_NOT_PLAYED", f"no flower {tile}", f"{where}.flowers")
        for tile in _tiles_of(seat):
            held[tile] += 1
    if isinstance(finished.end, Win) and 0 <= finished.end.tile < PLAY_KINDS:
        held[finished.end.tile] += 1
    if finished.treasure is not None and 0 <= finished.treasure < PLAY_KINDS:
        held[finished.treasure] += 1  # it lies on the wall
    for tile, copies in enumerate(held):
        if copies and tile not in rule_set.kinds:
            raise InvalidHand("TILE_NOT_PLAYED", f"{rule_set.id} has no {name(tile)}", "seats")
        if copies > (1 if is_flower(tile) else COPIES):
            there_are = "there is one" if is_flower(tile) else "there are four"
            message = f"{copies} copies of {name(tile)}; {there_are}"
            raise InvalidHand("FIFTH_COPY", message, "seats")


def _check_table(rule_set: RuleSet, options: Options, finished: FinishedHand) -> None:
    if finished.drawn_hands_before < 0:
        raise InvalidHand("INVALID_COUNT", "fewer than no drawn hands", "drawn_hands_before")
    treasure = finished.treasure
    if treasure is not None and (rule_set.turn_up is None or treasure not in rule_set.kinds):
        raise InvalidHand("TILE_NOT_PLAYED", f"{treasure} is no treasure here", "treasure")
    melds = [meld for seat in finished.seats for meld in seat.melds]
    if not rule_set.whirlwind and any(meld.kind is MeldKind.WHIRLWIND for meld in melds):
        raise InvalidHand("INVALID_MELD", f"{rule_set.id} has no whirlwind", "seats")
    if rule_set.turn_up is None and any(meld.treasure for meld in melds):
        raise InvalidHand("INVALID_MELD", f"{rule_set.id} has no treasure", "seats")
    if finished.false_wins:
        if not rule_set.calls.false_wins(options):
            raise IllegalWin("WIN_NOT_ALLOWED", "a false win cannot be called", "false_wins")
        if not set(finished.false_wins) <= set(SEATS):
            raise InvalidHand("INVALID_SEAT", "no such seat", "false_wins")


def _check_concealed(seat: SeatEnd, is_unreplaced: bool, where: str) -> None:
    """Tiles that a seat can hold; one less where the last flower of all was not replaced."""
    if seat.concealed is None:
        return
    size = len(seat.concealed) + 3 * len(seat.melds)
    if is_unreplaced and size == 12 and all(0 <= tile < PLAY_KINDS for tile in seat.concealed):
        return
    try:
        Hand(seat.concealed, seat.melds)
    except InvalidHand as error:
        raise InvalidHand(error.reason, error.message, where) from None


def _tiles_of(seat: SeatEnd) -> Iterator[int]:
    yield from seat.concealed or ()
    yield from seat.flowers
    for meld in seat.melds:
        yield from meld.tiles


def _check_win(rule_set: RuleSet, options: Options, finished: FinishedHand, end: Win) -> None:
    _check_moment(rule_set, options, finished, end)
    for winner in end.winners:
        seat = finished.seats[winner]
        where = f"seats[{winner}].concealed"
        if seat.concealed is None:
            raise IllegalWin("NOT_A_WIN", "a winner's tiles are not known", where)
        hand = Hand(seat.concealed, seat.melds)
        if hand.size != 13:
            raise IllegalWin("NOT_A_WIN", "13 tiles and the winning tile make a win", where)
        if draws_treasure(finished, end):
            if not analyze(rule_set, options, hand).waits:
                raise IllegalWin("NOT_A_WIN", "the treasure wins for a hand that waits", where)
            continue
        complete = hand.plus(end.tile)
        if not winning_readings(
            rule_set,
            options,
            complete.concealed,
            complete.melds,
            won=end.tile,
            claimed=end.by != "self_draw",
        ):
            raise IllegalWin("NOT_A_WIN", f"no win with {name(end.tile)}", where)


def draws_treasure(finished: FinishedHand, end: Win) -> bool:
    """摸宝: the winner drew the treasure, which wins whatever the hand waits for."""
    return end.by == "self_draw" and end.tile == finished.treasure and not end.on_deal


def _check_moment(rule_set: RuleSet, options: Options, finished: FinishedHand, end: Win) -> None:
    """Refuse a win whose circumstances do not fit together, in the order of its fields."""

    def refuse(message: str, field: str) -> IllegalWin:
        return IllegalWin("INVALID_END", message, f"end.{field}")

    winners = set(end.winners)
    several = rule_set.calls.several_winners(options)
    if not winners or len(winners) < len(end.winners) or not winners <= set(SEATS):
        raise refuse("winners are one or more different seats", "winners")
    if len(winners) > 1 and (end.by == "self_draw" or not several):
        raise IllegalWin("WIN_NOT_ALLOWED", "one seat wins", "end.winners")
    if not 0 <= end.tile < PLAY_KINDS:
        raise refuse("no hand is won on this tile", "tile")
    laid = [meld for winner in winners for meld in finished.seats[winner].melds]
    kinds = {meld.kind for meld in laid}
    if end.by == "self_draw":
        if end.source is not None:
            raise refuse("a tile drawn by the winner comes from no seat", "source")
    else:
        if end.source not in SEATS or end.source in winners:
            raise refuse("the tile comes from one of the losers", "source")
        melds = finished.seats[end.source].melds
        if end.by == "rob_kong" and not any(meld.takes(end.tile) for meld in melds):
            raise refuse("only a tile added to a pong or a whirlwind can be robbed", "by")
    if end.after_kong is not None and (
        end.by != "self_draw" or not any(_replaced(end.after_kong, meld) for meld in laid)
    ):
        raise refuse("a kong's replacement is drawn by the winner who made it", "after_kong")
    if end.kong_source is not None and (
        end.after_kong != "exposed" or end.kong_source not in SEATS or end.kong_source in winners
    ):
        raise refuse("only an exposed kong comes from another seat", "kong_source")
    if end.discard_after_kong and (
        end.by != "discard"
        or not any(meld.is_kong for meld in finished.seats[end.source or 0].melds)
    ):
        raise refuse("the discarder has made no kong", "discard_after_kong")
    if end.on_deal and (
        end.by != "self_draw"
        or winners != {finished.dealer}
        or kinds - {MeldKind.WHIRLWIND}
        or end.after_kong
    ):
        raise refuse("only the dealer wins on the tiles dealt", "on_deal")
    if end.after_flower and (end.by != "self_draw" or not finished.seats[end.winners[0]].flowers):
        raise refuse("the winner has laid down no flower", "after_flower")
    first = set(end.first_round)
    if not first <= winners - {finished.dealer} or (
        first and any(seat.melds for seat in finished.seats)
    ):
        raise refuse("others than the dealer win so, before anyone has a meld", "first_round")


def _replaced(kong: KongKind, meld: Meld) -> bool:
    """Whether the meld is such a kong; that of a dragon added is part of a whirlwind."""
    if meld.kind is MeldKind.WHIRLWIND:
        return kong == "added" and len(meld.tiles) > len(DRAGONS)
    return meld.kind is MeldKind(f"{kong}_kong")


def from_each_other(target: int, amount: int, reason: TransferReason) -> list[Transfer]:
    """Each of the three others pays one seat the same amount."""
    return [Transfer(seat, target, amount, reason) for seat in SEATS if seat != target]


def to_each_other(source: int, amount: int, reason: TransferReason) -> list[Transfer]:
    """One seat pays each of the three others the same amount."""
    return [Transfer(source, seat, amount, reason) for seat in SEATS if seat != source]
