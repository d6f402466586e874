"""Every winning hand of the standard shape there is; and a hundred thousand hands against a peer.

The winning hands are put together from complete suits, which are found here without the package.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
import xiangting

from fangcheng_rules import packed
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels.facts import STANDARD, Hot
from fangcheng_rules.rulesets import rule_set
from tests.rules import shape_oracle
from tests.rules.random_hands import random_hand

WINNING_HANDS = 11_498_658

STANDARD_ONLY = replace(
    rule_set("jintan"),
    id="standard_only_in_tests",
    options=(),
    fan_items=(),
    counted=lambda by_hand, moment, is_open: {},
    hot=Hot(
        "standard_only_in_tests",
        STANDARD,
        (),
        allows=lambda hand, reading: True,
        fan=lambda hand, reading: 0,
    ),
)

Words = npt.NDArray[np.int64]


@cache
def complete_suits(ranks: int) -> dict[tuple[int, bool], Words]:
    """The words of all suits of so many sets and a pair or none, each once."""
    sets = [(rank,) * 3 for rank in range(ranks)]
    if ranks == 9:
        sets += [(rank, rank + 1, rank + 2) for rank in range(7)]
    found = {}
    for count, has_pair in itertools.product(range(5), (False, True)):
        words = set()
        for chosen in itertools.combinations_with_replacement(sets, count):
            for pair in [(rank,) * 2 for rank in range(ranks)] if has_pair else [()]:
                held = [0] * ranks
                for rank in itertools.chain(*chosen, pair):
                    held[rank] += 1
                if max(held) <= 4:
                    words.add(sum(copies << (3 * rank) for rank, copies in enumerate(held)))
        found[count, has_pair] = np.array(sorted(words))
    return found


def winning_hands() -> Iterator[packed.Records]:
    """All of them, some at a time."""
    shares = itertools.product(itertools.product(range(5), repeat=4), range(4))
    for counts, pair in shares:
        if sum(counts) != 4:
            continue
        suits = [
            complete_suits(7 if place == 3 else 9)[count, place == pair]
            for place, count in enumerate(counts)
        ]
        for first in np.array_split(suits[0], len(suits[0]) // 1_000 + 1):
            grid = np.meshgrid(first, *suits[1:], indexing="ij")
            records: packed.Records = np.zeros(grid[0].size, packed.HAND)
            for place, words in enumerate(grid):
                records["concealed"][:, place] = words.ravel()
            yield records


@pytest.mark.slow
def test_every_winning_hand_wins() -> None:
    hands = 0
    for records in winning_hands():
        results = packed.evaluate(STANDARD_ONLY, records, packed.SCORE | packed.SHANTEN)
        assert not results["status"].any()
        assert results["win"].all()
        assert (results["shape_shanten"] == -1).all()
        hands += len(np.unique(records.view("V32")))
    assert hands == WINNING_HANDS


@pytest.mark.slow
def test_no_other_hand_wins() -> None:
    # Of one suit all hands there are; whether it wins is looked up among those that do.
    ranks = np.indices((5,) * 9, np.int8).reshape(9, -1)
    ranks = ranks[:, ranks.sum(axis=0) == 14].astype(np.int64)
    words = (ranks << 3 * np.arange(9)[:, None]).sum(axis=0)
    records: packed.Records = np.zeros(len(words), packed.HAND)
    records["concealed"][:, 1] = words
    results = packed.evaluate(STANDARD_ONLY, records, packed.SCORE | packed.SHANTEN)
    expected = np.isin(words, complete_suits(9)[4, True])
    assert len(words) == 118_800
    assert np.array_equal(results["win"] == 1, expected)
    assert np.array_equal(results["shape_shanten"] == -1, expected)

    # Of all suits, hands that differ from a winning one in one tile or two.
    chance = np.random.default_rng(7)
    winning = {
        record.tobytes() for records in itertools.islice(winning_hands(), 400) for record in records
    }
    some = np.frombuffer(b"".join(sorted(winning)[::25]), packed.HAND).copy()
    for _ in range(2):
        out, into = chance.integers(0, 34, (2, len(some)))
        rows = np.arange(len(some))
        some["concealed"][rows, out // 9] -= (1 << 3 * (out % 9)).astype(np.uint32)
        some["concealed"][rows, into // 9] += (1 << 3 * (into % 9)).astype(np.uint32)
        in_order = packed.check(STANDARD_ONLY, some) == 0
        some = some[in_order]
        results = packed.evaluate(STANDARD_ONLY, some, packed.SCORE | packed.SHANTEN)
        assert np.array_equal(results["win"] == 1, results["shape_shanten"] == -1)
        won = {record.tobytes() for record in some[results["win"] == 1]}
        lost = {record.tobytes() for record in some[results["win"] == 0]}
        assert len(won) > 50
        assert len(lost) > 1_000
        assert not lost & winning


@pytest.mark.slow
@pytest.mark.parametrize("melds", range(5))
def test_shanten_is_a_peers(melds: int) -> None:
    rng = random.Random(melds)
    hands: list[Hand] = []
    while len(hands) < 20_000:
        hand = random_hand(rng, 13 + len(hands) % 2)
        if len(hand.melds) == melds:
            hands.append(hand)
    results = packed.evaluate(STANDARD_ONLY, packed.pack(hands), packed.SHANTEN)
    explained = 0
    for hand, found in zip(hands, results["shape_shanten"].tolist(), strict=True):
        counts = hand.counts
        peer = xiangting.calculate_replacement_number(counts, xiangting.PlayerCount.FOUR) - 1
        if found != peer:
            # The peer is not told of the melds, whose tiles will not come; and it knows seven
            # pairs and thirteen orphans. Where it differs, the definition decides.
            laid = [held - own for held, own in zip(hand.held, counts, strict=True)]
            assert found > peer
            assert found == shape_oracle.standard_distance(counts, laid, melds) - 1
            explained += 1
    assert explained < len(hands) // 5
