"""Hands to compare evaluators on: random ones, nearly complete ones, in many or few suits."""

from __future__ import annotations

import random

from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind

KONGS = (MeldKind.EXPOSED_KONG, MeldKind.ADDED_KONG, MeldKind.CONCEALED_KONG)


def random_hand(rng: random.Random, size: int) -> Hand:
    """A hand of 13 or 14 tiles with up to four melds.

    Every second one is made of sets and a pair with up to three tiles changed, so that wins,
    waits and short ways are common; half of them keep to one suit or two, or to four ranks
    and three honours, so that readings are many and copies run out.
    """
    while True:
        kinds = _kinds(rng)
        left = [4 if kind in kinds else 0 for kind in range(34)]
        melds = []
        for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 3, 4))):
            tiles = _take_set(rng, kinds, left)
            if tiles is not None:
                melds.append(_meld(rng, tiles, left))
        tiles = _concealed(rng, kinds, left, 4 - len(melds), size - 3 * len(melds))
        if tiles is not None:
            return Hand(tuple(tiles), tuple(melds))


def _kinds(rng: random.Random) -> list[int]:
    if rng.random() < 0.25:
        first = rng.choice((0, 9, 18)) + rng.randrange(6)
        return [*range(first, first + 4), *rng.sample(range(27, 34), 3)]
    suits = [range(9), range(9, 18), range(18, 27), range(27, 34)]
    chosen = rng.sample(suits, rng.choice((1, 2, 4, 4)))
    return sorted(kind for suit in chosen for kind in suit)


def _take_set(rng: random.Random, kinds: list[int], left: list[int]) -> list[int] | None:
    first = rng.choice(kinds)
    run = first < 27 and first % 9 <= 6 and rng.random() < 0.6
    tiles = [first, first + 1, first + 2] if run else [first] * 3
    return tiles if _take(tiles, left) else None


def _take(tiles: list[int], left: list[int]) -> bool:
    if any(left[tile] < tiles.count(tile) for tile in tiles):
        return False
    for tile in tiles:
        left[tile] -= 1
    return True


def _meld(rng: random.Random, tiles: list[int], left: list[int]) -> Meld:
    if len(set(tiles)) == 3:
        return Meld(MeldKind.CHI, tuple(tiles))
    if left[tiles[0]] and rng.random() < 0.4:
        left[tiles[0]] -= 1
        return Meld(rng.choice(KONGS), (tiles[0],) * 4)
    return Meld(MeldKind.PONG, tuple(tiles))


def _concealed(
    rng: random.Random, kinds: list[int], left: list[int], sets: int, size: int
) -> list[int] | None:
    if rng.random() < 0.5:
        pool = [kind for kind in kinds for _ in range(left[kind])]
        return rng.sample(pool, size) if len(pool) >= size else None
    tiles: list[int] = []
    for _ in range(sets):
        found = _take_set(rng, kinds, left)
        if found is None:
            return None
        tiles += found
    pair = [rng.choice(kinds)] * 2
    if not _take(pair, left):
        return None
    tiles += pair
    rng.shuffle(tiles)
    while len(tiles) > size:
        left[tiles.pop()] += 1
    for i in range(min(len(tiles), rng.choice((0, 0, 1, 1, 2, 3)))):
        pool = [kind for kind in kinds for _ in range(left[kind])]
        if pool:
            left[tiles[i]] += 1
            tiles[i] = rng.choice(pool)
            left[tiles[i]] -= 1
    return tiles


def with_whirlwind(rng: random.Random, hand: Hand) -> Hand:
    """The hand with a 旋风杠 in place of three of its tiles, if it has the tiles and the room."""
    added = [kind for kind in (31, 32, 33) if rng.random() < 0.3]
    laid = Meld(MeldKind.WHIRLWIND, (31, 32, 33, *added))
    if len(hand.concealed) < 5 or any(hand.held[t] + laid.tiles.count(t) > 4 for t in laid.tiles):
        return hand
    rest = list(hand.concealed)
    rng.shuffle(rest)
    return Hand(tuple(rest[3:]), (*hand.melds, laid))
