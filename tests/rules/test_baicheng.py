"""`baicheng` against a second scorer (`baicheng_oracle.py`), on random hands; its wall."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from fangcheng_rules.analysis import analyze
from fangcheng_rules.errors import IllegalWin
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels.bound import bind
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.notation import hand_to_mpsz
from fangcheng_rules.players import Efficient
from fangcheng_rules.ruleset import WallCount
from fangcheng_rules.rulesets.baicheng import HOT, RULE_SET, next_replacement
from fangcheng_rules.scoring import (
    SEATS,
    Draw,
    End,
    Escape,
    FinishedHand,
    KongKind,
    SeatEnd,
    Win,
    draws_treasure,
    score,
)
from fangcheng_rules.simulate import play_hands
from fangcheng_rules.tiles import DRAGONS, is_suited, name
from tests.rules import baicheng_oracle as oracle

KINDS = sorted(RULE_SET.kinds)
OPTIONS = RULE_SET.complete()
KERNELS = bind(HOT)
AFTER: dict[MeldKind, KongKind] = {
    MeldKind.EXPOSED_KONG: "exposed",
    MeldKind.ADDED_KONG: "added",
    MeldKind.WHIRLWIND: "added",
    MeldKind.CONCEALED_KONG: "concealed",
}


# ---- Random hands, rich in dragons and near to the conditions ----


class Box:
    """The tiles of a table, taken out at random."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.left = Counter(dict.fromkeys(KINDS, 4))

    def take(self, kinds: list[int]) -> bool:
        if any(self.left[kind] < n for kind, n in Counter(kinds).items()):
            return False
        self.left -= Counter(kinds)
        return True

    def take_set(self, runs: float, suit: int | None = None) -> list[int]:
        while True:
            kind = self.chance.choice(KINDS if self.chance.random() < 0.8 else list(DRAGONS))
            if suit is not None:
                kind = 9 * suit + self.chance.randrange(9)
            wanted = [kind] * 3
            if self.chance.random() < runs:
                if kind in DRAGONS:
                    wanted = list(DRAGONS)
                elif kind % 9 <= 6:
                    wanted = [kind, kind + 1, kind + 2]
            if self.take(wanted):
                return wanted

    def take_pair(self) -> list[int]:
        while True:
            kind = self.chance.choice(KINDS if self.chance.random() < 0.85 else list(DRAGONS))
            if self.take([kind, kind]):
                return [kind, kind]

    def take_any(self) -> int:
        kind = self.chance.choice(list(self.left.elements()))
        self.left[kind] -= 1
        return kind

    def lay(self, tiles: list[int]) -> Meld:
        """The tiles as a meld, a kong of them now and then."""
        if tiles[0] != tiles[1]:
            if tiles[0] not in DRAGONS:
                return Meld(MeldKind.CHI, tuple(tiles))
            added = [kind for kind in DRAGONS if self.chance.random() < 0.3 and self.take([kind])]
            return Meld(MeldKind.WHIRLWIND, (*tiles, *added))
        if self.chance.random() < 0.3 and self.take(tiles[:1]):
            kinds = (MeldKind.EXPOSED_KONG, MeldKind.ADDED_KONG, MeldKind.CONCEALED_KONG)
            return Meld(self.chance.choice(kinds), tuple(tiles[:1] * 4))
        return Meld(MeldKind.PONG, tuple(tiles))


def has_whirlwind(melds: list[Meld]) -> bool:
    return any(meld.kind is MeldKind.WHIRLWIND for meld in melds)


def random_hand(box: Box, size: int) -> Hand:
    """Four sets and a pair with some tiles changed, some of the sets laid down."""
    chance = box.chance
    runs = chance.choice((0.0, 0.3, 0.6, 0.6))
    melds: list[Meld] = []
    concealed: list[int] = []
    laid = chance.choice((0, 0, 1, 2, 3, 4))
    suits = [0, 1, 2, None] if chance.random() < 0.8 else [None] * 4
    chance.shuffle(suits)
    for number, suit in enumerate(suits):
        tiles = box.take_set(runs, suit)
        is_second = tiles == list(DRAGONS) and has_whirlwind(melds)
        if number < laid and not is_second:
            melds.append(box.lay(tiles))
        else:
            concealed += tiles
    if not melds and chance.random() < 0.3:
        # Three triplets in a row, which are three sequences (or runs) as well.
        for tile in concealed:
            box.left[tile] += 1
        a, b, c = chance.sample(range(3), 3)
        first = chance.choice((DRAGONS[0], *(9 * a + rank for rank in range(7))))
        concealed = [first, first + 1, first + 2] * 3
        box.take(concealed)
        concealed += box.take_set(0.6, b)
        pair = [9 * (a if first in DRAGONS else c) + chance.randrange(9)] * 2
        concealed += pair if box.take(pair) else box.take_pair()
    else:
        concealed += box.take_pair()
    chance.shuffle(concealed)
    while len(concealed) + 3 * len(melds) > size:
        box.left[concealed.pop()] += 1
    for i in range(min(len(concealed), chance.choice((0, 0, 0, 0, 1, 1, 2)))):
        fresh = box.take_any()
        box.left[concealed[i]] += 1
        concealed[i] = fresh
    return Hand(tuple(concealed), tuple(melds))


def hands(seed: int, size: int, count: int = 2_000) -> Iterator[Hand]:
    chance = random.Random(seed)
    return (random_hand(Box(chance), size) for _ in range(count))


def names(tiles: tuple[int, ...]) -> list[str]:
    return [name(tile) for tile in tiles]


def in_words(melds: tuple[Meld, ...]) -> list[oracle.Laid]:
    return [
        oracle.Laid("treasure pong" if meld.treasure else str(meld.kind), names(meld.tiles))
        for meld in melds
    ]


def test_legal_waits_are_those_of_a_slow_search() -> None:
    ready = 0
    for hand in hands(1, 13):
        found = KERNELS.waits(hand.concealed, hand.melds)
        expected = oracle.waits(names(hand.concealed), in_words(hand.melds))
        assert [name(kind) for kind in found] == expected, hand_to_mpsz(hand)
        ready += bool(found)
    assert ready > 500


def test_readings_are_those_found_by_taking_sets_away() -> None:
    several = 0
    for hand in hands(2, 14):
        found = analyze(RULE_SET, OPTIONS, hand).readings
        expected = oracle.readings(names(hand.concealed), in_words(hand.melds))
        laid = len(hand.melds)
        assert sorted(
            (name(r.sets[-1][0]), sorted(names(tiles) for tiles in r.sets[laid:-1])) for r in found
        ) == sorted((r.pair, sorted(sorted(tiles) for tiles in r.own)) for r in expected)
        several += len(found) > 1
    assert several > 20


def test_the_fan_of_a_wait_is_that_of_the_slow_scorer() -> None:
    for hand in hands(3, 13):
        concealed, melds = names(hand.concealed), in_words(hand.melds)
        players = [oracle.Player(concealed, melds)] + [oracle.Player(None)] * 3
        for wait in analyze(RULE_SET, OPTIONS, hand).waits:
            end = oracle.Ending(0, name(wait.tile), "discard", 1)
            _, said, _ = oracle.best(players, 3, end, "", 0)
            assert wait.least_fan == said[0].total(), hand_to_mpsz(hand)


# ---- Random finished hands ----


def random_finish(chance: random.Random) -> FinishedHand:
    """A finished hand, won or not, with a treasure more often than not near the winner's."""
    box = Box(chance)
    dealer, winner = chance.randrange(4), chance.randrange(4)
    hand = random_hand(box, 13)
    waits = [wait.tile for wait in analyze(RULE_SET, OPTIONS, hand).waits]
    free = [kind for kind in waits if box.left[kind]] or [box.take_any()]
    tile = chance.choice(free)
    treasure: int | None = None
    if chance.random() < 0.8:
        near = [kind for kind in {*hand.concealed, *waits} if box.left[kind]]
        treasure = chance.choice(near or [box.take_any()])
        box.left[treasure] = max(0, box.left[treasure] - 1)
    if treasure is not None and box.left[treasure] and chance.random() < 0.5:
        tile = treasure
    if not box.take([tile]):
        tile = box.take_any()
    seats = []
    for seat in SEATS:
        if seat == winner:
            melds = tuple(
                Meld(m.kind, m.tiles, treasure=m.kind is MeldKind.PONG and chance.random() < 0.2)
                for m in hand.melds
            )
            seats.append(SeatEnd(hand.concealed, melds))
        else:
            seats.append(loser(box, treasure))
    other = (winner + chance.randrange(1, 4)) % 4
    end: End = chance.choice((Draw(), Escape(chance.randrange(4))))
    if chance.random() < 0.9:
        end = moment(chance, seats, winner, other, tile, dealer)
    return FinishedHand(dealer, tuple(seats), end, treasure=treasure)


def loser(box: Box, treasure: int | None) -> SeatEnd:
    chance = box.chance
    melds: list[Meld] = []
    for _ in range(chance.choice((0, 0, 1, 2))):
        tiles = box.take_set(0.5)
        if tiles != list(DRAGONS) or not has_whirlwind(melds):
            melds.append(box.lay(tiles))
    if chance.random() < 0.5:
        return SeatEnd(None, tuple(melds))
    concealed: list[int] = []
    for wanted in (
        [treasure] * 3 if treasure is not None else [],
        list(DRAGONS) * 2,
        list(DRAGONS),
    ):
        fits = len(concealed) + len(wanted) <= 13 - 3 * len(melds)
        if fits and chance.random() < 0.3 and box.take([kind for kind in wanted if kind]):
            concealed += [kind for kind in wanted if kind]
    while len(concealed) < 13 - 3 * len(melds):
        concealed.append(box.take_any())
    return SeatEnd(tuple(sorted(concealed)), tuple(melds))


def moment(
    chance: random.Random, seats: list[SeatEnd], winner: int, other: int, tile: int, dealer: int
) -> Win:
    melds = seats[winner].melds
    kongs = [AFTER[m.kind] for m in melds if m.is_kong and m.kind is not MeldKind.WHIRLWIND]
    kongs += ["added" for m in melds if m.kind is MeldKind.WHIRLWIND and len(m.tiles) > 3]
    if any(meld.takes(tile) for meld in seats[other].melds):
        return Win((winner,), tile, "rob_kong", other)
    if chance.random() < 0.4:
        return Win((winner,), tile, "discard", other)
    if winner == dealer and not melds and chance.random() < 0.3:
        return Win((winner,), tile, "self_draw", on_deal=True)
    after = chance.choice(kongs) if kongs and chance.random() < 0.5 else None
    return Win((winner,), tile, "self_draw", after_kong=after)


def expected_net(finished: FinishedHand, cap: int, unit: int, penalty: int) -> list[int] | None:
    """What the slow scorer pays each seat, in a list with the house last; None: no win."""
    treasure = "" if finished.treasure is None else name(finished.treasure)
    players = [
        oracle.Player(None if s.concealed is None else names(s.concealed), in_words(s.melds))
        for s in finished.seats
    ]
    net = [0] * 5
    win = finished.end
    own: list[str] = []
    if isinstance(win, Win):
        (number,) = win.winners
        end = oracle.Ending(
            number,
            name(win.tile),
            win.by,
            win.source,
            win.after_kong is not None,
            win.on_deal,
        )
        concealed, melds = players[number].concealed or [], players[number].melds
        is_treasure = win.by == "self_draw" and end.tile == treasure and not win.on_deal
        if is_treasure and not oracle.waits(concealed, melds):
            return None
        if not is_treasure and not oracle.readings([*concealed, end.tile], melds):
            return None
        paid, said, stands_for = oracle.best(players, finished.dealer, end, treasure, cap)
        if win.by == "self_draw":
            own = [end.tile, *(tile for tile in list(stands_for)[:1] if tile != end.tile)]
            runs = {
                oracle.kong_units(players[number], treasure, [end.tile, tile], finished=True)
                for tile in stands_for
            }
            if len(runs) > 1:
                return []  # equal ways to count, of which one alone completes the dragons
        for seat, units in paid.items():
            net[seat] -= units
            net[number] += units
        counted = score(RULE_SET, {"cap": cap}, finished).winners[0]
        assert {item.id: item.fan for item in counted.items} in [dict(way) for way in said]
    for seat, player in enumerate(players):
        more = own if isinstance(win, Win) and seat in win.winners else []
        finished_normally = not isinstance(win, Escape)
        units = oracle.kong_units(player, treasure, more, finished=finished_normally) * unit
        for other in SEATS:
            if other != seat:
                net[other] -= units
                net[seat] += units
    if isinstance(win, Escape):
        net[win.seat] -= penalty
        net[4] += penalty
    return net


@pytest.mark.parametrize("seed", range(8))
def test_both_scorers_agree_on_random_hands(seed: int) -> None:
    chance = random.Random(seed)
    seen = Counter[str]()
    for _ in range(400):
        finished = random_finish(chance)
        cap, unit = chance.choice((0, 0, 16, 64)), chance.choice((1, 1, 3))
        options = {"cap": cap, "kong_unit": unit}
        expected = expected_net(finished, cap, unit, 64)
        if expected is None:
            with pytest.raises(IllegalWin) as caught:
                score(RULE_SET, options, finished)
            assert caught.value.reason == "NOT_A_WIN"
            seen["no win"] += 1
        elif expected:
            result = score(RULE_SET, options, finished)
            assert [*result.net, result.house] == expected, finished
            seen["agreed"] += 1
            seen.update(item.id for winner in result.winners for item in winner.items)
        else:
            seen["either"] += 1
    assert seen["agreed"] > 200
    assert seen["either"] < 20


def test_those_hands_have_every_fan_item_in_them() -> None:
    chance = random.Random(99)
    counted: Counter[str] = Counter()
    for _ in range(1_500):
        try:
            result = score(RULE_SET, {}, random_finish(chance))
        except IllegalWin:
            continue
        for winner in result.winners:
            counted.update(item.id for item in winner.items)
        for paying in result.losers:
            counted.update(item.id for item in paying.items)
    assert set(counted) == {item.id for item in RULE_SET.fan_items}


def test_both_scorers_agree_on_the_hands_of_bots() -> None:
    whirlwinds = treasures = 0
    for play, _ in play_hands(RULE_SET, [Efficient(random.Random(1))] * 4, hands=150, seed=5):
        finished = play.finished
        expected = expected_net(finished, 0, 1, 64)
        assert play.result is not None
        if expected:
            assert [*play.result.net, play.result.house] == expected
        whirlwinds += any(has_whirlwind(list(seat.melds)) for seat in finished.seats)
        treasures += isinstance(finished.end, Win) and draws_treasure(finished, finished.end)
    assert whirlwinds > 10
    assert treasures > 3


# ---- The wall ----


def walked(replacements: int, front: int = 53, turned: tuple[int, ...] = (114,)) -> WallCount:
    return WallCount(120, front, replacements, replacements, turned)


def test_there_are_120_tiles_and_no_winds() -> None:
    assert len(RULE_SET.wall_tiles) == 120
    assert Counter(RULE_SET.wall_tiles) == Counter(
        dict.fromkeys([k for k in range(34) if is_suited(k) or k in DRAGONS], 4)
    )


def test_57_are_drawn_and_four_dealt_out_whatever_is_replaced_from_behind() -> None:
    for replacements in range(6):
        assert RULE_SET.wall.drawable(walked(replacements)) == 57 + 4
    assert RULE_SET.wall.drawable(walked(2, turned=(114, 115, 112))) == 55 + 4


def test_replacements_come_from_the_highest_place_never_turned_up() -> None:
    assert [next_replacement(walked(n)) for n in range(8)] == [
        119, 118, 117, 116, 115, 113, 112, 111
    ]  # fmt: skip
    moved = (114, 115, 112)
    assert [next_replacement(walked(n, turned=moved)) for n in range(6)] == [
        119, 118, 117, 116, 113, 111
    ]  # fmt: skip


def test_replacements_from_in_front_of_the_treasure_are_fewer_to_draw() -> None:
    assert RULE_SET.wall.drawable(walked(5)) == 61
    assert RULE_SET.wall.drawable(walked(6)) == 60
    assert RULE_SET.wall.drawable(walked(7)) == 59


def test_the_treasure_moves_down_and_then_to_the_stack_in_front() -> None:
    assert RULE_SET.turn_up is not None
    turned: tuple[int, ...] = ()
    places = []
    for _ in range(6):
        place = RULE_SET.turn_up(OPTIONS, walked(0, turned=turned))
        assert place is not None
        places.append(place)
        turned = (*turned, place)
    assert places == [114, 115, 112, 113, 110, 111]


def test_a_place_that_was_taken_is_passed_over() -> None:
    assert RULE_SET.turn_up is not None
    assert RULE_SET.turn_up(OPTIONS, walked(5)) == 112  # 115 went as a replacement
    assert RULE_SET.turn_up(OPTIONS, walked(6)) == 112  # and so did 113
    assert RULE_SET.turn_up(OPTIONS, walked(7)) == 110  # and 112


def test_a_change_that_would_leave_fewer_than_four_in_front_is_not_made() -> None:
    assert RULE_SET.turn_up is not None
    under = walked(0, front=110, turned=(114,))
    assert RULE_SET.turn_up(OPTIONS, under) == 115  # the same stack: four are in front as before
    for front, place in ((108, 112), (109, None)):
        wall = walked(0, front=front, turned=(114, 115))
        assert RULE_SET.turn_up(OPTIONS, wall) == place
        # The boundary stays where it was.
        assert RULE_SET.wall.drawable(wall) == 114 - front


def test_a_replacement_that_is_due_counts_as_taken_when_the_treasure_changes() -> None:
    assert RULE_SET.turn_up is not None
    for replacements, front, place in (
        (3, 110, 115),  # 116 is the replacement
        (4, 110, None),  # with 115 turned up it would be one of the four in front
        (4, 109, 115),
        (5, 108, 112),  # 113 is the replacement
        (6, 108, None),  # 111 would be one of the four in front of 112
        (6, 107, 112),
    ):
        wall = dataclasses.replace(walked(replacements, front=front), due=1)
        assert RULE_SET.turn_up(OPTIONS, wall) == place, (replacements, front)


def test_without_the_option_a_treasure_is_never_replaced() -> None:
    assert RULE_SET.turn_up is not None
    options = RULE_SET.complete({"change_treasure": False})
    assert RULE_SET.turn_up(options, walked(0, turned=())) == 114
    assert RULE_SET.turn_up(options, walked(0)) is None


def test_a_kong_is_refused_when_its_replacement_would_be_one_of_the_last_four() -> None:
    may_kong = RULE_SET.wall.may_kong
    assert may_kong(walked(0, front=110))  # replaced from behind the treasure
    assert may_kong(walked(4, front=110))
    assert not may_kong(walked(5, front=110))  # only the four in front are left
    assert may_kong(walked(5, front=109))
    assert not may_kong(walked(6, front=109))
