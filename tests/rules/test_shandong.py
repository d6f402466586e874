"""The scorer of `shandong` against a second one (`shandong_oracle.py`), and its calls."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import pytest

from fangcheng_rules.analysis import KongChoice, Wait
from fangcheng_rules.errors import IllegalWin
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.ruleset import SeatInPlay, TableInPlay, WallCount, first_dealer
from fangcheng_rules.rulesets.shandong import RULE_SET
from fangcheng_rules.scoring import (
    SEATS,
    Dissolved,
    Draw,
    End,
    Escape,
    FinishedHand,
    SeatEnd,
    Win,
    score,
)
from fangcheng_rules.tiles import FLOWERS, from_name, name
from tests.rules import shandong_oracle as oracle
from tests.rules.golden import GoldenHand, golden_hands
from tests.rules.test_scoring import KONGS, SUITS, Box

MIDDLES = [[kind] for kind in range(27) if kind % 9 in (1, 4, 7)]
DECLARED = {"": "", "lou_open": "open", "lou_hidden": "hidden"}


def as_player(seat: SeatEnd) -> oracle.Player:
    return oracle.Player(
        concealed=[name(tile) for tile in seat.concealed or ()],
        melds=[
            oracle.Laid(str(meld.kind), [name(tile) for tile in meld.tiles], meld.source)
            for meld in seat.melds
        ],
        flowers=len(seat.flowers),
        lou=DECLARED[seat.declared],
        has_discarded=seat.first_discard is not None,
    )


def as_ending(win: Win) -> oracle.Ending:
    return oracle.Ending(
        winners=list(win.winners),
        tile=name(win.tile),
        how=win.by,
        source=win.source,
        kong=win.after_kong or "",
        kong_from=win.kong_source,
        flower=win.after_flower,
        dealt=win.on_deal,
        first_round=bool(win.first_round),
    )


class Dealing:
    """Finished hands at random: complete by shape, and mostly with a pair of 2, 5 or 8."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.box = Box(chance)
        self.flowers = list(FLOWERS)
        chance.shuffle(self.flowers)

    def whole(self) -> tuple[list[int], list[list[int]]]:
        """The concealed tiles of a complete hand, and the sets that are laid down."""
        chance, box = self.chance, self.box
        suits = chance.choice((SUITS, SUITS, SUITS[:1], SUITS[1:2], SUITS[2:], SUITS[3:]))
        style = chance.choice(("any", "any", "triplets", "pairs", "straight", "middles"))
        if style == "middles":
            suits, style = MIDDLES, chance.choice(("triplets", "pairs"))
        if style == "pairs":
            return [tile for _ in range(7) for tile in self._pair(suits)], []
        middles = [[kind] for suit in suits for kind in suit if kind < 27 and kind % 9 in (1, 4, 7)]
        pair = self._pair(middles if middles and chance.random() < 0.95 else SUITS)
        sets: list[list[int]] = []
        if style == "straight":
            start = 9 * (suits[0][0] // 9 % 3)
            runs = [[start + low + step for step in range(3)] for low in (0, 3, 6)]
            sets += [run for run in runs if box.take(run)]
        while len(sets) < 4:
            kind = self._kind(suits)
            made = [kind] * chance.choice((3, 3, 4))
            if style != "triplets" and kind < 27 and kind % 9 < 7 and chance.random() < 0.6:
                made = [kind, kind + 1, kind + 2]
            sets += [made] if box.take(made) else []
        chance.shuffle(sets)
        laid = chance.choice((0, 1, 2, 3, 3, 4))
        down = [made for place, made in enumerate(sets) if len(made) == 4 or place < laid]
        hidden = [made for place, made in enumerate(sets) if len(made) == 3 and place >= laid]
        return [*pair, *(tile for made in hidden for tile in made)], down

    def _pair(self, suits: Sequence[Sequence[int]]) -> list[int]:
        while True:
            pair = [self._kind(suits)] * 2
            if self.box.take(pair):
                return pair

    def _kind(self, suits: Sequence[Sequence[int]]) -> int:
        # Now and then another, for these may have run out.
        return self.chance.choice(
            self.chance.choice(suits if self.chance.random() < 0.97 else SUITS)
        )

    def meld(self, seat: int, made: list[int], feeder: int) -> Meld:
        chance = self.chance
        source = feeder if chance.random() < 0.8 else chance.choice(others(seat))
        if len(made) == 4:
            kind = chance.choice(list(KONGS))
            return Meld(kind, tuple(made), None if kind is MeldKind.CONCEALED_KONG else source)
        if made[0] == made[-1]:
            return Meld(MeldKind.PONG, tuple(made), source)
        return Meld(MeldKind.CHI, tuple(made), (seat - 1) % 4)

    def some_flowers(self) -> tuple[int, ...]:
        count = self.chance.choice((0, 0, 1, 2, 3))
        taken, self.flowers = self.flowers[:count], self.flowers[count:]
        return tuple(taken)

    def finished(self) -> FinishedHand:
        """A winner by any way, and three whose hands nobody needs to know."""
        chance = self.chance
        dealer, winner = chance.randrange(4), chance.randrange(4)
        feeder, other = chance.choice(others(winner)), chance.choice(others(winner))
        concealed, down = self.whole()
        tile = chance.choice(concealed)
        concealed.remove(tile)
        seats = [
            SeatEnd(
                declared=chance.choice(("", "", "lou_open", "lou_hidden")),
                flowers=self.some_flowers(),
            )
            for _ in SEATS
        ]
        melds = tuple(self.meld(winner, made, feeder) for made in down)
        seats[winner] = replace(seats[winner], concealed=tuple(sorted(concealed)), melds=melds)
        end = self._end(seats, dealer, winner, other, tile)
        if end.by != "self_draw" and seats[winner].declared == "lou_open":
            seats[winner] = replace(seats[winner], declared="")
        return FinishedHand(dealer, tuple(seats), end, chance.choice((0, 0, 0, 1, 2, 4, 5, 7)))

    def _end(self, seats: list[SeatEnd], dealer: int, winner: int, other: int, tile: int) -> Win:
        chance = self.chance
        melds = seats[winner].melds
        first = (winner,) if winner != dealer and not melds and chance.random() < 0.4 else ()
        kongs = [meld for meld in melds if meld.is_kong]
        has_flower = bool(seats[winner].flowers)
        how = chance.choice(("discard", "discard", "draw", "kong", "flower", "rob", "deal"))
        if how == "discard":
            return Win((winner,), tile, "discard", other, first_round=first)
        if how == "deal" and winner == dealer and not melds:
            flower = has_flower and chance.random() < 0.5
            return Win((winner,), tile, "self_draw", on_deal=True, after_flower=flower)
        if how == "kong" and kongs:
            kong = chance.choice(kongs)
            return Win(
                (winner,),
                tile,
                "self_draw",
                after_kong=KONGS[kong.kind],
                kong_source=kong.source if kong.kind is MeldKind.EXPOSED_KONG else None,
                after_flower=has_flower and chance.random() < 0.3,
            )
        if how == "rob" and self.box.take([tile] * 3):
            pong = Meld(MeldKind.PONG, (tile,) * 3, chance.choice(others(other)))
            seats[other] = replace(seats[other], melds=(pong,), declared="")
            return Win((winner,), tile, "rob_kong", other)
        return Win(
            (winner,),
            tile,
            "self_draw",
            after_flower=has_flower and how == "flower",
            first_round=first,
        )


def others(seat: int) -> list[int]:
    return [other for other in SEATS if other != seat]


@pytest.mark.parametrize("seed", range(8))
def test_both_scorers_agree_on_random_wins(seed: int) -> None:
    chance = random.Random(seed)
    legal = 0
    for _ in range(250):
        finished = Dealing(chance).finished()
        options = {"concealed_honour_flower": chance.random() < 0.5}
        end = finished.end
        assert isinstance(end, Win)
        players = [as_player(seat) for seat in finished.seats]
        (winner,) = end.winners
        if not oracle.wins(players[winner], name(end.tile)):
            with pytest.raises(IllegalWin) as caught:
                score(RULE_SET, options, finished)
            assert caught.value.reason == "NOT_A_WIN"
            continue
        legal += 1
        told = score(RULE_SET, options, finished)
        ending = as_ending(end)
        _, items, points = oracle.counted(
            players, finished.dealer, ending, winner, options["concealed_honour_flower"]
        )
        assert {item.id: item.fan for item in told.winners[0].items} == items
        assert told.winners[0].flower_points == points
        assert list(told.net) == oracle.net(
            players,
            finished.dealer,
            ending,
            finished.drawn_hands_before,
            options["concealed_honour_flower"],
        )
        assert told.house == 0
        for loser in told.losers:
            # Where a share is due, it is the winner's amount, times what that seat's state makes.
            share = (5 + points) * told.winners[0].fan * told.winners[0].multiplier
            assert loser.amount in (0, share * loser.multiplier)
    assert 180 < legal < 250


def test_those_random_wins_have_every_item_and_every_way_to_pay_in_them() -> None:
    items: Counter[str] = Counter()
    paid: Counter[tuple[int, ...]] = Counter()
    for seed in range(1000):
        finished = Dealing(random.Random(seed)).finished()
        try:
            told = score(RULE_SET, {}, finished)
        except IllegalWin:
            continue
        items.update(item.id for item in told.winners[0].items)
        assert isinstance(finished.end, Win)
        paying = sum(loser.amount > 0 for loser in told.losers)
        most = max(loser.multiplier for loser in told.losers)
        paid[paying, most] += 1
    assert set(items) == {item.id for item in RULE_SET.fan_items}
    # One pays a share, twice it, or three of them; or each of three pays one.
    assert set(paid) == {(1, 1), (1, 2), (1, 3), (3, 1)}


def two_winners(chance: random.Random) -> FinishedHand | None:
    """Two seats win one discard; None where the two hands have no tile in common."""
    dealing = Dealing(chance)
    dealer, first = chance.randrange(4), chance.randrange(4)
    second = chance.choice(others(first))
    discarder = chance.choice([seat for seat in SEATS if seat not in (first, second)])
    hands = {seat: dealing.whole() for seat in (first, second)}
    common = sorted(set(hands[first][0]) & set(hands[second][0]))
    if not common:
        return None
    tile = chance.choice(common)
    seats = [SeatEnd(declared=chance.choice(("", "lou_open"))) for _ in SEATS]
    for seat, (concealed, down) in hands.items():
        concealed.remove(tile)
        # Each of the two may have fed the other.
        feeder = chance.choice((first + second - seat, discarder))
        seats[seat] = SeatEnd(
            tuple(sorted(concealed)),
            tuple(dealing.meld(seat, made, feeder) for made in down),
            flowers=dealing.some_flowers(),
        )
    winners = tuple(sorted((first, second), key=lambda seat: (seat - discarder) % 4))
    return FinishedHand(dealer, tuple(seats), Win(winners, tile, "discard", discarder))


def test_several_winners_are_paid_each_on_its_own() -> None:
    chance = random.Random(5)
    seen: Counter[bool] = Counter()
    for _ in range(300):
        finished = two_winners(chance)
        if finished is None or not isinstance(finished.end, Win):
            continue
        players = [as_player(seat) for seat in finished.seats]
        if not all(oracle.wins(players[s], name(finished.end.tile)) for s in finished.end.winners):
            continue
        told = score(RULE_SET, {}, finished)
        assert list(told.net) == oracle.net(players, finished.dealer, as_ending(finished.end))
        seen[any(loser.seat in finished.end.winners for loser in told.losers)] += 1
        with pytest.raises(IllegalWin) as caught:
            score(RULE_SET, {"several_winners": False}, finished)
        assert (caught.value.reason, caught.value.field) == ("WIN_NOT_ALLOWED", "end.winners")
    assert seen[True] > 10, "a winner pays for the other that it fed"
    assert seen[False] > 10


# ---- Calls ----


@dataclass
class Seat:
    """As much of a seat as the calls of this rule set look at."""

    declared: str = ""
    drawn: int | None = None
    waits: tuple[Wait, ...] = ()


CALLS = RULE_SET.calls
TABLE = cast(TableInPlay, None)  # none of these calls looks at the table
FIVE_P, EIGHT_M = from_name("5p"), from_name("8m")
WAITS = (Wait(EIGHT_M, 1),)


def a_seat(declared: str, drawn: int | None = None) -> SeatInPlay:
    return cast(SeatInPlay, Seat(declared, drawn, WAITS))


@pytest.mark.parametrize("declared", ["", "lou_open", "lou_hidden"])
def test_a_lou_claims_nothing_but_a_win(declared: str) -> None:
    seat = a_seat(declared)
    for meld in (
        Meld(MeldKind.CHI, (0, 1, 2), 0, 1),
        Meld(MeldKind.PONG, (27,) * 3, 0, 27),
        Meld(MeldKind.EXPOSED_KONG, (27,) * 4, 0, 27),
    ):
        assert CALLS.may_claim(TABLE, seat, meld, ()) == (declared == "")
    for by in ("discard", "rob_kong", "self_draw"):
        may = CALLS.may_win(TABLE, seat, EIGHT_M, by)
        assert may == (declared != "lou_open" or by == "self_draw")


def test_a_lou_kongs_what_it_drew_concealed_and_keeps_its_waits() -> None:
    kong = KongChoice(FIVE_P, MeldKind.CONCEALED_KONG, WAITS)
    assert CALLS.may_kong(TABLE, a_seat("lou_hidden", FIVE_P), kong)
    # The fan of a wait may change with the kong, its tile may not.
    dearer = KongChoice(FIVE_P, MeldKind.CONCEALED_KONG, (Wait(EIGHT_M, 2),))
    assert CALLS.may_kong(TABLE, a_seat("lou_open", FIVE_P), dearer)
    assert not CALLS.may_kong(TABLE, a_seat("lou_open", EIGHT_M), kong)
    added = KongChoice(FIVE_P, MeldKind.ADDED_KONG, WAITS)
    assert not CALLS.may_kong(TABLE, a_seat("lou_hidden", FIVE_P), added)
    other = KongChoice(FIVE_P, MeldKind.CONCEALED_KONG, (*WAITS, Wait(0, 1)))
    assert not CALLS.may_kong(TABLE, a_seat("lou_hidden", FIVE_P), other)
    assert CALLS.may_kong(TABLE, a_seat("", EIGHT_M), other), "who declared nothing is free"


def test_lou_is_declared_with_a_discard_that_leaves_the_seat_waiting() -> None:
    assert CALLS.declarations(TABLE, a_seat(""), WAITS, None) == ("lou_open", "lou_hidden")
    several = (*WAITS, Wait(FIVE_P, 1))
    assert CALLS.declarations(TABLE, a_seat(""), several, None) == ("lou_open", "lou_hidden")
    assert CALLS.declarations(TABLE, a_seat(""), (), None) == ()
    assert CALLS.declarations(TABLE, a_seat(""), WAITS, MeldKind.CONCEALED_KONG) == ()
    assert CALLS.declarations(TABLE, a_seat("lou_open"), WAITS, None) == ()


# ---- The wall, the dealer ----


def drawn_to_the_end(replacements: int) -> int:
    """Tiles drawn from the front after the deal, with so many replacements on the way."""
    front = 53
    while RULE_SET.wall.drawable(WallCount(144, front, replacements, replacements)):
        front += 1
    return front - 53


def test_twelve_tiles_stay_or_eleven() -> None:
    assert [drawn_to_the_end(number) for number in range(5)] == [79, 79, 77, 77, 75]
    # A kong asks for a tile that may be drawn before it is made.
    for replacements in range(4):
        last = 53 + drawn_to_the_end(replacements)
        assert RULE_SET.wall.may_kong(WallCount(144, last - 1, replacements, 0))
        assert not RULE_SET.wall.may_kong(WallCount(144, last, replacements, 0))


@pytest.mark.parametrize(
    ("end", "dealer"),
    [
        (Win((3,), 0, "self_draw"), 3),
        (Win((1,), 0, "discard", 2), 1),
        (Win((1, 3), 0, "discard", 2), 2),
        (Win((0, 1, 2), 0, "rob_kong", 3), 3),
        (Draw(), 2),
        (Escape(0), None),
        (Dissolved(), None),
    ],
)
def test_the_winner_deals_next(end: End, dealer: int | None) -> None:
    assert RULE_SET.next_dealer(FinishedHand(1, (SeatEnd(),) * 4, end)) == dealer


def test_each_seat_is_as_likely_to_deal_first() -> None:
    throws = [(first, second) for first in range(1, 7) for second in range(1, 7)]
    assert Counter(first_dealer(RULE_SET, dice) for dice in throws) == dict.fromkeys(SEATS, 9)


# ---- What a settlement must know ----


def golden(title: str) -> GoldenHand:
    (found,) = [hand for hand in golden_hands("shandong") if hand.title.startswith(title)]
    return found


def test_who_fed_the_melds_must_be_known_where_it_decides_who_pays() -> None:
    fed = golden("承包: seat 1 fed")
    finished = fed.finished
    unknown = tuple(replace(meld, source=None) for meld in finished.seats[0].melds)
    seats = (replace(finished.seats[0], melds=unknown), *finished.seats[1:])
    with pytest.raises(IllegalWin) as caught:
        score(RULE_SET, {}, replace(finished, seats=seats))
    assert (caught.value.reason, caught.value.field) == ("INVALID_END", "seats[0].melds")
    # Where nobody can stand in for the others, nobody needs to know.
    assert score(RULE_SET, {"guarantor": False}, replace(finished, seats=seats)).net[3] < 0


def test_the_feeder_of_the_kong_must_be_known_where_it_alone_pays() -> None:
    blown = golden("杠爆: won on")
    assert isinstance(blown.end, Win)
    finished = replace(blown.finished, end=replace(blown.end, kong_source=None))
    with pytest.raises(IllegalWin) as caught:
        score(RULE_SET, {}, finished)
    assert (caught.value.reason, caught.value.field) == ("INVALID_END", "end.kong_source")


def test_who_pays_for_a_blown_kong_is_who_discarded_it() -> None:
    blown = golden("杠爆: won on")
    assert isinstance(blown.end, Win)
    assert blown.end.kong_source == blown.finished.seats[0].melds[0].source == 2
    finished = replace(blown.finished, end=replace(blown.end, kong_source=3))
    with pytest.raises(IllegalWin) as caught:
        score(RULE_SET, {}, finished)
    assert (caught.value.reason, caught.value.field) == ("INVALID_END", "end.kong_source")


# ---- Titles ----


def test_a_title_is_held_up_to_its_bound() -> None:
    def title(points: int) -> str:
        held = [t for t in RULE_SET.titles if t.from_points is None or t.from_points <= points]
        return held[-1].name_zh

    assert [title(points) for points in (-5, 100, 101, 200, 201)] == [
        "白板",
        "白板",
        "一万",
        "一万",
        "二万",
    ]
    assert [title(points) for points in (80_000, 80_001, 1_000_000, 1_000_001)] == [
        "九万",
        "东风",
        "红中",
        "发财",
    ]
    assert len(RULE_SET.titles) == 16
