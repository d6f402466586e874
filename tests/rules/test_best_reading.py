"""A hand that can be read in several ways is read in the one that wins the most.

Each way to read a winning hand, found by the slow search of `test_waits_and_wins`, is scored with
the others taken away. What the hand pays must be the most of these: by the win transfers of all
losers together, then by fan, then by triplets (rules/README, "What a win needs").
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fangcheng_rules.analysis import Reading
from fangcheng_rules.errors import IllegalWin
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels.bound import FoundReading, Kernels
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.notation import hand_to_mpsz
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.scoring import SEATS, FinishedHand, Score, SeatEnd, Win, score
from tests.rules.test_waits_and_wins import (
    BY_RULE_SET,
    ORPHANS,
    PAGES,
    SHAPES_ALONE,
    Tiles,
    random_hand,
    readings,
    wins,
)

Way = tuple[int, str, tuple[Tiles, ...]]
"""The winning tile, or the one that a drawn treasure stands for; a shape, and its sets."""
Worth = tuple[int, int, int]


def slow_ways(rules: RuleSet, hand: Hand, won: int) -> set[Way]:
    """Every way to read thirteen tiles and the winning one, by the words of the rule page."""
    page = PAGES.get(rules.id, SHAPES_ALONE)
    tiles = tuple(sorted((*hand.concealed, won)))
    ways: set[Way] = set()
    for read in readings(tiles, hand.melds, page.runs):
        if page.standard(read):
            ways.add((won, "standard", (*sorted(read.sets), (read.pair,) * 2)))
    pairs = tiles[::2]
    if page.pairs is not None and not hand.melds and pairs == tiles[1::2] and page.pairs({*pairs}):
        ways.add((won, "seven_pairs", tuple((kind,) * 2 for kind in pairs)))
    if page.orphans and not hand.melds and {*tiles} == ORPHANS:
        (twice,) = (kind for kind in ORPHANS if tiles.count(kind) == 2)
        singles = tuple((kind,) for kind in sorted(ORPHANS) if kind != twice)
        ways.add((won, "thirteen_orphans", (*singles, (twice, twice))))
    return ways


def as_way(won: int, reading: Reading) -> Way:
    *sets, pair = reading.sets
    return won, reading.shape, (*sorted(sets), pair)


# ---- Scoring with one reading only ----


@contextmanager
def readings_seen(only: tuple[int, int] | None = None) -> Iterator[Counter[int]]:
    """How many readings are found for each winning tile; with `only`, all but one taken away.

    `only` is a winning tile and the place of the reading among those found for it.
    """
    seen: Counter[int] = Counter()
    whole = Kernels.readings

    def some(self: Kernels, concealed: Any, melds: Any, won: Any, **more: Any) -> Any:
        found: list[FoundReading] = whole(self, concealed, melds, won, **more)
        seen[won] = len(found)
        if only is None:
            return found
        return found[only[1] : only[1] + 1] if won == only[0] else []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernels, "readings", some)
        yield seen


def worth(result: Score) -> Worth:
    (winner,) = result.winners
    triplets = sum(len(tiles) > 2 and len({*tiles}) == 1 for tiles in winner.reading.sets)
    units = sum(paid.amount for paid in result.transfers if paid.reason == "win")
    return units, winner.fan, triplets


def score_or_none(
    rules: RuleSet, options: dict[str, object], finished: FinishedHand
) -> Score | None:
    try:
        return score(rules, options, finished)
    except IllegalWin as refusal:
        if refusal.reason != "WIN_NOT_ALLOWED":
            raise
        return None  # a win on a discard that brings nothing (Jintan)


# ---- Random wins ----


def ambiguous_hand(rules: RuleSet, rng: random.Random) -> Hand:
    """Thirteen of fourteen tiles that can be read in several ways, if they win at all."""
    while True:
        suits = rng.choice((rng.sample(range(3), 3), [rng.randrange(3)] * 3))
        first, other = (9 * suit + rng.randrange(7) for suit in suits[:2])
        more = rng.choice(([other] * 3, [other, other + 1, other + 2]))
        tiles = [first, first + 1, first + 2] * 3 + more
        if rng.random() < 0.4:
            tiles = [first, first + 1, first + 2] * 2 + [other, other + 1, other + 2] * 2
        honour = rng.choice([kind for kind in rules.kinds if 27 <= kind < 34] or [first])
        tiles += [rng.choice((9 * suits[2] + rng.randrange(9), first, honour))] * 2
        if max(Counter(tiles).values()) <= 4:
            tiles.pop(rng.randrange(14))
            return Hand(tuple(tiles))


def random_win(rules: RuleSet, rng: random.Random) -> tuple[FinishedHand, Hand, Win]:
    """A hand won by one of four seats in some way."""
    page = PAGES.get(rules.id, SHAPES_ALONE)
    waits: list[int] = []
    while not waits:
        hand = ambiguous_hand(rules, rng) if rng.random() < 0.8 else random_hand(rules, rng)
        held = hand.held
        waits = [
            kind
            for kind in sorted(rules.kinds)
            if kind < 34 and held[kind] < 4 and wins(page, (*hand.concealed, kind), hand.melds)
        ]
    tile = rng.choice(waits)
    left = Counter({kind: 4 - held[kind] for kind in rules.kinds if kind < 34})
    left[tile] -= 1
    winner, dealer = rng.randrange(4), rng.randrange(4)
    source = rng.choice([None, *(seat for seat in SEATS if seat != winner)])
    treasure: int | None = None
    if rules.turn_up is not None and rng.random() < 0.7:
        treasure = tile if left[tile] and rng.random() < 0.5 else rng.choice([*left.elements()])
        left[treasure] -= 1
        if left[treasure] and rng.random() < 0.5:
            # Drawn, it wins whatever is waited for.
            left[tile] += 1
            left[treasure] -= 1
            tile, source = treasure, None
    others = []
    for _ in range(3):
        pongs = [kind for kind in left if left[kind] >= 3]
        laid = [Meld(MeldKind.PONG, (rng.choice(pongs),) * 3)] if rng.random() < 0.5 else []
        for meld in laid:
            left[meld.first] -= 3
        others.append(SeatEnd(None, tuple(laid)))
    seats = [*others[:winner], SeatEnd(hand.concealed, hand.melds), *others[winner:]]
    win = Win((winner,), tile, "self_draw" if source is None else "discard", source)
    return FinishedHand(dealer, tuple(seats), win, treasure=treasure), hand, win


def random_options(rules: RuleSet, rng: random.Random) -> dict[str, object]:
    chosen: dict[str, object] = {}
    for option in rules.options:
        if rng.random() < 0.5:
            continue
        if isinstance(option.default, bool):
            chosen[option.id] = not option.default
        elif option.id == "cap":
            chosen[option.id] = rng.choice((0, 4, 8, 16, 64, 200))
    return chosen


# ---- The tests ----


def check_wins(rules: RuleSet, hands: int, seed: int) -> None:
    rng = random.Random(seed)
    several = differing = 0
    for _ in range(hands):
        finished, hand, win = random_win(rules, rng)
        options = random_options(rules, rng)
        where = f"{rules.id}: {hand_to_mpsz(hand)} {finished} {options}"

        with readings_seen() as seen:
            result = score_or_none(rules, options, finished)
        places = [(won, place) for won, count in seen.items() for place in range(count)]
        alone: dict[Way, Worth] = {}
        refused = 0
        for won, place in places:
            with readings_seen((won, place)):
                way = score_or_none(rules, options, finished)
            if way is None:
                refused += 1
            else:
                alone[as_way(won, way.winners[0].reading)] = worth(way)

        tiles = [win.tile]
        if win.by == "self_draw" and win.tile == finished.treasure:
            # The drawn treasure stands for any tile that is waited for.
            tiles = [kind for kind in sorted(rules.kinds) if kind < 34 and hand.held[kind] < 4]
        slow = {way for tile in tiles for way in slow_ways(rules, hand, tile)}
        assert alone.keys() <= slow, where
        assert len(alone) + refused == len(slow), where
        if result is None:
            assert not alone, where
            continue
        assert worth(result) == max(alone.values()), where
        several += len(slow) > 1
        differing += len({*alone.values()}) > 1
    assert several > hands // 20
    assert differing > hands // 20


@pytest.mark.parametrize("seed", range(2))
@BY_RULE_SET
def test_a_hand_is_read_in_the_way_that_wins_the_most(rules: RuleSet, seed: int) -> None:
    check_wins(rules, 200, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
@BY_RULE_SET
def test_many_hands_are_read_in_the_way_that_wins_the_most(rules: RuleSet, seed: int) -> None:
    check_wins(rules, 1_000, seed)
