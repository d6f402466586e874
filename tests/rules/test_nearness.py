"""Shanten and useful tiles under each rule set's conditions, against a slow search."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from fangcheng_rules.analysis import analyze
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels.bound import NEVER, bind, kinds_in
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.notation import hand_to_mpsz, parse_hand, to_mpsz
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import baicheng, baishan_dazui, baishan_kele, jintan, shandong
from tests.rules import legal_oracle as oracle
from tests.rules.legal_oracle import Whole
from tests.rules.random_hands import random_hand, with_whirlwind


@dataclass(frozen=True)
class Conditions:
    """What the rule page asks of a win, in the test's own words."""

    rules: RuleSet
    standard: Callable[[Whole], bool]
    pairs: bool = True
    pairs_want_orphan: bool = False
    orphans: bool = False
    runs: bool = False


def triplet_and_terminal(whole: Whole) -> bool:
    return whole.triplet and whole.orphan


def baicheng_standard(whole: Whole) -> bool:
    stands_in = whole.triplet or whole.run or whole.pair == "dragon"
    return stands_in and whole.orphan and len(whole.suits) == 3


CONDITIONS = {
    "baishan_kele": Conditions(
        baishan_kele.RULE_SET, triplet_and_terminal, pairs_want_orphan=True, orphans=True
    ),
    "baishan_dazui": Conditions(
        baishan_dazui.RULE_SET, triplet_and_terminal, pairs_want_orphan=True, orphans=True
    ),
    "baicheng": Conditions(baicheng.RULE_SET, baicheng_standard, pairs=False, runs=True),
    "shandong": Conditions(shandong.RULE_SET, lambda whole: whole.pair == "258"),
    "jintan": Conditions(jintan.RULE_SET, lambda whole: True),
}
each_set = pytest.mark.parametrize("asked", CONDITIONS.values(), ids=CONDITIONS)


def hands(seed: int, asked: Conditions, size: int, count: int) -> Iterator[Hand]:
    """Random hands of the kinds that the rule set has, now and then with a whirlwind."""
    rng = random.Random(seed)
    made = 0
    while made < count:
        hand = random_hand(rng, size)
        if asked.runs and rng.random() < 0.3:
            hand = with_whirlwind(rng, hand)
        if all(tile in asked.rules.kinds for tile, n in enumerate(hand.held) if n):
            made += 1
            yield hand


def distance(hand: Hand, asked: Conditions) -> int:
    melds = Whole()
    for meld in hand.melds:
        plus = melds.plus(oracle.whole_of((meld.tiles[:3],), None))
        if meld.kind is MeldKind.WHIRLWIND:
            plus = melds.plus(oracle.whole_of(((31, 32, 33),), None))
        assert plus is not None
        melds = plus
    laid = [held - own for held, own in zip(hand.held, hand.counts, strict=True)]
    kinds = frozenset(asked.rules.kinds & set(range(34)))
    found = [
        oracle.standard_distance(hand.counts, laid, melds, asked.standard, kinds, runs=asked.runs)
    ]
    if asked.pairs and not hand.melds:
        found.append(oracle.seven_pairs_distance(hand.counts, orphan=asked.pairs_want_orphan))
    if asked.orphans and not hand.melds:
        found.append(oracle.thirteen_orphans_distance(hand.counts))
    return min(found)


@each_set
@pytest.mark.parametrize("size", [13, 14])
def test_legal_shanten_is_the_least_number_of_tiles_for_a_legal_win(
    asked: Conditions, size: int
) -> None:
    kernels = bind(asked.rules.hot)
    differing = 0
    for hand in hands(size, asked, size, 100):
        found = kernels.legal_shanten(hand.concealed, hand.melds)
        expected = distance(hand, asked)
        assert found == min(expected - 1, NEVER), hand_to_mpsz(hand)
        differing += found != kernels.shanten(hand.concealed, hand.melds)
    assert differing > 4 or not asked.rules.hot.needs


@each_set
def test_useful_tiles_lower_the_legal_shanten_and_no_other_tile_does(asked: Conditions) -> None:
    kernels = bind(asked.rules.hot)
    for hand in hands(5, asked, 13, 200):
        shanten, useful = kernels.progress(hand.concealed, hand.melds)
        assert shanten == kernels.legal_shanten(hand.concealed, hand.melds)
        lower = [
            kind
            for kind in range(34)
            if hand.held[kind] < 4
            and kernels.legal_shanten(sorted((*hand.concealed, kind)), hand.melds) < shanten
        ]
        assert list(kinds_in(useful)) == lower, hand_to_mpsz(hand)


@each_set
def test_a_hand_is_ready_when_it_has_a_legal_wait_and_those_are_useful(asked: Conditions) -> None:
    kernels = bind(asked.rules.hot)
    ready = 0
    for hand in hands(6, asked, 13, 2_000):
        waits = kernels.waits(hand.concealed, hand.melds)
        shanten, useful = kernels.progress(hand.concealed, hand.melds)
        assert (shanten == 0) == bool(waits), hand_to_mpsz(hand)
        if waits:
            assert list(kinds_in(useful)) == list(waits), hand_to_mpsz(hand)
            ready += 1
    assert ready > 100


@each_set
def test_progress_after_each_discard_is_that_of_the_thirteen_tiles_left(asked: Conditions) -> None:
    kernels = bind(asked.rules.hot)
    for hand in hands(7, asked, 14, 200):
        found = kernels.discard_progress(hand.concealed, hand.melds)
        assert list(found) == sorted({*hand.concealed})
        for kind, progress in found.items():
            rest = hand.minus(kind)
            assert progress == kernels.progress(rest.concealed, rest.melds), hand_to_mpsz(hand)


@pytest.mark.parametrize(
    ("rules", "text", "shape", "legal", "useful", "why"),
    [
        ("baicheng", "234567m234567p9m", 0, 3, "", "no bamboo: a triplet of it and the pair"),
        ("baicheng", "23456m345p234s55z", 0, 0, "147m", "the dragons stand in for a triplet"),
        ("baicheng", "23456m345p234s55s", 0, 2, "", "no triplet and no terminal"),
        ("shandong", "123m456p789s1115z", 0, 1, "", "no pair of honours: a 2, 5 or 8 must come"),
        ("baishan_kele", "234m345p4567s66s2z", 1, 1, "", "the honour is kept, for a terminal"),
        (
            "baishan_kele",
            "23m66p [567s] [234m] [456s]",
            0,
            2,
            "19m169p19s1234567z",
            "6p, and a pair",
        ),
        ("baishan_kele", "8m [234m] [345p] [456s] [678s]", 0, NEVER, "-", "four chi: no triplet"),
        ("jintan", "123m456p789s1115z", 0, 0, "5z", "nothing is asked"),
    ],
)
def test_what_is_possible_by_shape_is_not_always_legal(
    rules: str, text: str, shape: int, legal: int, useful: str, why: str
) -> None:
    rule_set = CONDITIONS[rules].rules
    found = analyze(rule_set, rule_set.complete(), parse_hand(text), progress=True)
    assert (found.shape_shanten, found.shanten) == (shape, legal), why
    if useful:
        assert to_mpsz(found.useful) == useful.replace("-", "")
