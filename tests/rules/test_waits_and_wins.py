"""Every legal wait wins when it comes, and no other tile does: against a slow search.

The search takes each rule page's words for it and shares nothing with the package: it splits the
concealed tiles of each suit in every way and puts the suits together in every way.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import pytest

from fangcheng_rules.analysis import analyze
from fangcheng_rules.errors import IllegalWin
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.notation import hand_to_mpsz, to_mpsz
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_rules.scoring import FinishedHand, SeatEnd, Win, score

Tiles = tuple[int, ...]

ORPHANS = {0, 8, 9, 17, 18, 26, *range(27, 34)}
DRAGONS = (31, 32, 33)
BY_RULE_SET = pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)


class Read(NamedTuple):
    """A reading of a whole hand."""

    sets: tuple[Tiles, ...]
    """Melds first; a kong as it lies."""
    pair: int

    @property
    def tiles(self) -> set[int]:
        return {self.pair, *itertools.chain(*self.sets)}

    @property
    def has_triplet(self) -> bool:
        return any(len(set(tiles)) == 1 for tiles in self.sets)

    @property
    def has_run(self) -> bool:
        return any(set(tiles) == set(DRAGONS) for tiles in self.sets)


# ---- What each page asks of a hand ----


def north_east(read: Read) -> bool:
    """At least one terminal or honour, and at least one triplet or kong."""
    return bool(read.tiles & ORPHANS) and read.has_triplet


def baicheng(read: Read) -> bool:
    """All three suits, a terminal or a dragon, a triplet or what stands in for it."""
    suits = {tile // 9 for tile in read.tiles if tile < 27}
    stands_in = read.has_triplet or read.has_run or read.pair in DRAGONS
    return len(suits) == 3 and bool(read.tiles & ORPHANS) and stands_in


class Page(NamedTuple):
    standard: Callable[[Read], bool]
    pairs: Callable[[set[int]], bool] | None = None
    """Of seven pairs' kinds; None: there are no seven pairs."""
    orphans: bool = False
    runs: bool = False


PAGES = {
    "baishan_kele": Page(north_east, lambda kinds: bool(kinds & ORPHANS), orphans=True),
    "baishan_dazui": Page(north_east, lambda kinds: bool(kinds & ORPHANS), orphans=True),
    "baicheng": Page(baicheng, runs=True),
    "shandong": Page(lambda read: read.pair < 27 and read.pair % 9 in (1, 4, 7), lambda _: True),
    "jintan": Page(lambda read: True, lambda _: True),
}
SHAPES_ALONE = Page(lambda read: True, lambda _: True)
"""A rule set that is not on a page wins by shape alone."""


# ---- The search ----


@cache
def suit_ways(tiles: Tiles, runs: bool) -> tuple[tuple[tuple[Tiles, ...], int], ...]:
    """The ways to split one suit's tiles into sets and at most one pair (-1: none)."""
    if not tiles:
        return (((), -1),)
    first, rest = tiles[0], tiles[1:]
    ways = set()
    candidates = [(first, first)]  # the two besides the first of a set
    if first < 27:
        candidates.append((first + 1, first + 2))
    elif runs and first == DRAGONS[0]:
        candidates.append(DRAGONS[1:])
    for others in candidates:
        left = without(rest, others)
        if left is not None and suit_of(others[-1]) == suit_of(first):
            for sets, pair in suit_ways(left, runs):
                ways.add((tuple(sorted(((first, *others), *sets))), pair))
    left = without(rest, (first,))
    if left is not None:
        for sets, pair in suit_ways(left, runs):
            if pair < 0:
                ways.add((sets, first))
    return tuple(ways)


def suit_of(tile: int) -> int:
    return min(tile // 9, 3)


def without(tiles: Tiles, some: Sequence[int]) -> Tiles | None:
    left = list(tiles)
    for tile in some:
        if tile not in left:
            return None
        left.remove(tile)
    return tuple(left)


def readings(concealed: Tiles, melds: Sequence[Meld], runs: bool) -> Iterator[Read]:
    laid = tuple(meld.tiles for meld in melds)
    suits = [tuple(t for t in concealed if suit_of(t) == suit) for suit in range(4)]
    for ways in itertools.product(*(suit_ways(tiles, runs) for tiles in suits)):
        pairs = [pair for _, pair in ways if pair >= 0]
        sets = tuple(tiles for found, _ in ways for tiles in found)
        if len(pairs) == 1 and len(sets) + len(laid) == 4:
            yield Read(laid + sets, pairs[0])


def wins(page: Page, concealed: Tiles, melds: Sequence[Meld]) -> bool:
    tiles = tuple(sorted(concealed))
    if any(page.standard(read) for read in readings(tiles, melds, page.runs)):
        return True
    counts = Counter(tiles)
    if page.pairs is not None and not melds and all(n % 2 == 0 for n in counts.values()):
        return page.pairs(set(tiles))
    return page.orphans and not melds and set(tiles) == ORPHANS


# ---- Random hands ----


def random_hand(rules: RuleSet, rng: random.Random) -> Hand:
    """Thirteen tiles of sets and a pair with up to three changed, some sets laid down."""
    runs = PAGES.get(rules.id, SHAPES_ALONE).runs
    played = sorted(kind for kind in rules.kinds if kind < 34)
    while True:
        kinds = played
        if rng.random() < 0.5:
            chosen = rng.sample(range(4), rng.choice((1, 2)))
            kinds = [kind for kind in played if suit_of(kind) in chosen] or played
        left = Counter(dict.fromkeys(kinds, 4))
        melds: list[Meld] = []
        concealed: list[int] = []
        if rng.random() < 0.15:
            # Pairs alone, or orphans: the special shapes.
            pool = [kind for kind in kinds if kind in ORPHANS or rng.random() < 0.7]
            concealed = [kind for kind in rng.sample(pool, min(7, len(pool))) for _ in (1, 2)]
            if rng.random() < 0.4 and len(played) == 34:
                concealed = [*sorted(ORPHANS), rng.choice(sorted(ORPHANS))]
            left.subtract(concealed)
        else:
            for _ in range(4):
                first = rng.choice(kinds)
                run = first < 27 and first % 9 < 7 and rng.random() < 0.6
                tiles = (first, first + 1, first + 2) if run else (first,) * 3
                if runs and rng.random() < 0.2:
                    tiles = DRAGONS
                if any(left[tile] < tiles.count(tile) for tile in tiles):
                    break
                left.subtract(tiles)
                meld = _meld(rules, rng, tiles, left) if rng.random() < 0.3 else None
                if meld is None:
                    concealed += tiles
                else:
                    melds.append(meld)
            pair = rng.choice(kinds)
            concealed += [pair] * 2
            left[pair] -= 2
        if len(concealed) + 3 * len(melds) != 14 or min(left.values()) < 0:
            continue
        rng.shuffle(concealed)
        left[concealed.pop()] += 1
        for place in range(min(len(concealed), rng.choice((0, 0, 0, 1, 1, 2, 3)))):
            pool = [kind for kind in kinds for _ in range(left[kind])]
            if pool:
                left[concealed[place]] += 1
                concealed[place] = rng.choice(pool)
                left[concealed[place]] -= 1
        return Hand(tuple(concealed), tuple(melds))


def _meld(rules: RuleSet, rng: random.Random, tiles: Tiles, left: Counter[int]) -> Meld | None:
    if tiles == DRAGONS:
        added = [dragon for dragon in DRAGONS if left[dragon] > 0 and rng.random() < 0.2]
        left.subtract(added)
        return Meld(MeldKind.WHIRLWIND, (*tiles, *added))
    if len(set(tiles)) == 3:
        return Meld(MeldKind.CHI, tiles, source=3)
    source = rng.choice((1, 2, 3))
    if not left[tiles[0]] or rng.random() < 0.6:
        return Meld(MeldKind.PONG, tiles, source)
    left[tiles[0]] -= 1
    kind = rng.choice((MeldKind.EXPOSED_KONG, MeldKind.ADDED_KONG, MeldKind.CONCEALED_KONG))
    return Meld(kind, (tiles[0],) * 4, None if kind is MeldKind.CONCEALED_KONG else source)


# ---- The tests ----


def check_hands(rules: RuleSet, hands: int, seed: int) -> None:
    page = PAGES.get(rules.id, SHAPES_ALONE)
    options = rules.complete()
    rng = random.Random(seed)
    waiting = refused = 0
    for number in range(hands):
        hand = random_hand(rules, rng)
        held = hand.held
        slow = {
            kind
            for kind in sorted(rules.kinds)
            if kind < 34 and held[kind] < 4 and wins(page, (*hand.concealed, kind), hand.melds)
        }
        found = {wait.tile for wait in analyze(rules, options, hand).waits}
        where = hand_to_mpsz(hand)
        assert found == slow, f"{where}: {to_mpsz(sorted(found))}, not {to_mpsz(sorted(slow))}"
        waiting += bool(found)
        for kind in sorted(rules.kinds):
            if kind < 34 and held[kind] < 4 and (kind in found or number % 20 == 0):
                assert analyze(rules, options, hand.plus(kind)).wins == (kind in found), where
                refused += not _is_taken(rules, hand, kind, kind in found, where)
    assert waiting > hands // 15
    assert refused > hands // 20


def _is_taken(rules: RuleSet, hand: Hand, kind: int, wins: bool, where: str) -> bool:
    """A self-drawn win on the tile is scored, or refused as no win."""
    winner = SeatEnd(hand.concealed, hand.melds)
    others = tuple(SeatEnd() for _ in range(3))
    finished = FinishedHand(1, (winner, *others), Win((0,), kind, "self_draw"))
    if not wins:
        with pytest.raises(IllegalWin) as refusal:
            score(rules, {}, finished)
        assert refusal.value.reason == "NOT_A_WIN", where
        return False
    result = score(rules, {}, finished)
    assert sum(result.net) + result.house == 0
    assert result.net[0] > 0
    return True


@pytest.mark.parametrize("seed", range(4))
@BY_RULE_SET
def test_every_legal_wait_wins_and_no_other_tile_does(rules: RuleSet, seed: int) -> None:
    check_hands(rules, 500, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
@BY_RULE_SET
def test_every_legal_wait_wins_and_no_other_tile_does_in_many_hands(
    rules: RuleSet, seed: int
) -> None:
    check_hands(rules, 1_000, seed)
