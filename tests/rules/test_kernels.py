"""The kernels against slow evaluators that share nothing with them."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fangcheng_rules import packed
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels import tables
from fangcheng_rules.kernels.bound import NEVER, Kernels, bind, kinds_in
from fangcheng_rules.kernels.facts import SEVEN_PAIRS, STANDARD, Hot
from fangcheng_rules.kernels.templates import MOST_READINGS
from fangcheng_rules.melds import Meld
from fangcheng_rules.notation import hand_to_mpsz, parse_hand, to_mpsz
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.rulesets.baishan_kele import HOT, RULE_SET
from fangcheng_rules.tiles import NAMES
from tests.rules import kele_oracle, shape_oracle
from tests.rules.random_hands import random_hand

KELE = bind(HOT)
HANDS = 2_000

ANY_SHAPE = Hot(
    "any_shape_in_tests",
    STANDARD | SEVEN_PAIRS,
    (),
    allows=lambda hand, reading: True,
    fan=lambda hand, reading: 0,
)
"""Standard form and seven pairs without conditions."""

FAN_IN_WORDS = {
    "winner closed": "closed",
    "winner's last tile": "last_tile",
    "two alike": "twin_seq",
    "three alike": "triple_seq",
    "four in one": "four_in_one",
    "all triplets": "all_triplets",
    "one suit": "full_flush",
    "one suit and honours": "half_flush",
    "seven pairs": "seven_pairs",
}


def hands(seed: int, size: int) -> Iterator[Hand]:
    rng = random.Random(seed)
    return (random_hand(rng, size) for _ in range(HANDS))


def best(kernels: Kernels, *hand: Any, **how: Any) -> int | None:
    """The fan items of the reading that is worth most; None: no win."""
    found = [reading.items for reading in kernels.readings(*hand, **how)]
    return max(found, key=lambda items: sum(kernels.item_fan(items).values())) if found else None


def laid_down(hand: Hand) -> list[int]:
    return [held - own for held, own in zip(hand.held, hand.counts, strict=True)]


def melds_in_words(hand: Hand) -> list[kele_oracle.Laid]:
    return [kele_oracle.Laid(m.kind.value, [NAMES[tile] for tile in m.tiles]) for m in hand.melds]


def names(hand: Hand) -> list[str]:
    return [NAMES[tile] for tile in hand.concealed]


def fan_in_words(hand: Hand) -> list[Counter[str]]:
    """For each legal reading, what counts against a loser in no state of its own."""
    winner = kele_oracle.Player(names(hand)[1:], melds_in_words(hand))
    loser = kele_oracle.Player([], [kele_oracle.Laid("pong", ["1z", "1z", "1z"])])
    end = kele_oracle.Ending(0, names(hand)[0], "discard", source=2)
    found = []
    readings = {}
    for shape, sets in kele_oracle.readings(names(hand), winner.melds):
        readings[shape, tuple(sorted(map(tuple, sets)))] = shape, sets
    for shape, sets in readings.values():
        items: Counter[str] = Counter()
        if shape == "orphans":
            items["thirteen_orphans"] = 0
        else:
            said = kele_oracle.words_against([winner, loser, loser, loser], 3, end, 1, shape, sets)
            for word, fan in said:
                items[FAN_IN_WORDS[word]] += fan
        found.append(items)
    return found


def test_a_hand_wins_in_every_reading_of_the_slow_scorer_and_counts_the_same_fan() -> None:
    wins = 0
    for hand in hands(1, 14):
        found = KELE.readings(hand.concealed, hand.melds)
        items = [KELE.item_fan(reading.items) for reading in found]
        expected = [dict(words) for words in fan_in_words(hand)]
        assert sorted(map(sorted, (i.items() for i in items))) == sorted(
            map(sorted, (i.items() for i in expected))
        ), hand_to_mpsz(hand)
        wins += bool(found)
    assert wins > HANDS // 8  # the hands are worth comparing


def hands_of_many_readings() -> Iterator[Hand]:
    """Three triplets in a row, which are three sequences as well, with any set and pair."""
    starts = [kind for kind in range(27) if kind % 9 <= 6]
    sets = [*((kind,) * 3 for kind in range(34)), *((k, k + 1, k + 2) for k in starts)]
    for first, other, pair in itertools.product(starts, sets, range(34)):
        tiles = (*sorted((first, first + 1, first + 2) * 3), *other, pair, pair)
        if max(Counter(tiles).values()) <= 4:
            yield Hand(tiles)


def test_the_best_reading_has_the_most_fan_then_the_most_triplets() -> None:
    differing = 0
    some = list(itertools.islice(hands_of_many_readings(), 0, None, 17))
    results = packed.evaluate(RULE_SET, packed.pack(some), packed.SCORE)
    for hand, result in zip(some, results, strict=True):
        found = KELE.readings(hand.concealed, hand.melds)
        fans = [KELE.item_fan(reading.items) for reading in found]
        order = [
            (sum(fan.values()), reading.triplets.bit_count())
            for fan, reading in zip(fans, found, strict=True)
        ]
        assert bool(result["win"]) == bool(found), hand_to_mpsz(hand)
        if found:
            expected = fans[order.index(max(order))]
            counted = dict(zip(packed.winner_items(RULE_SET), result["counts"], strict=False))
            assert {item for item, count in counted.items() if count} == {*expected}
            assert result["fan"] == sum(expected.values()), hand_to_mpsz(hand)
            differing += len(set(order)) > 1
    assert differing > 100


def test_no_hand_has_more_readings_than_there_is_room_for() -> None:
    most = max(len(KELE.readings(hand.concealed, ())) for hand in hands_of_many_readings())
    assert 3 <= most <= MOST_READINGS // 2


def test_standard_readings_are_those_found_by_taking_tiles_away() -> None:
    kernels = bind(ANY_SHAPE)
    for hand in hands(3, 14):
        found = kernels.readings(hand.concealed, hand.melds)
        standard = [(r.pair, r.triplets, r.sequences) for r in found if r.shape == STANDARD]
        expected = []
        for pair, sets in shape_oracle.standard_readings(hand.counts):
            sets = [*sets, *(meld.tiles[:3] for meld in hand.melds)]
            triplets = sum(1 << tiles[0] for tiles in sets if tiles[0] == tiles[1])
            runs = [tiles[0] for tiles in sets if tiles[0] != tiles[1]]
            sequences = sum(8 ** (7 * (run // 9) + run % 9) for run in runs)
            expected.append((pair, triplets, sequences))
        assert sorted(standard) == sorted(expected), hand_to_mpsz(hand)


def test_legal_waits_are_those_of_the_slow_scorer() -> None:
    ready = 0
    for hand in hands(4, 13):
        found = KELE.waits(hand.concealed, hand.melds)
        expected = kele_oracle.waits(names(hand), melds_in_words(hand))
        assert [NAMES[kind] for kind in found] == expected, hand_to_mpsz(hand)
        ready += bool(found)
    assert ready > HANDS // 8


def test_a_wait_counts_the_fan_of_the_hand_with_it() -> None:
    for hand in hands(5, 13):
        for kind, items in KELE.waits(hand.concealed, hand.melds).items():
            whole = hand.plus(kind)
            most = best(KELE, whole.concealed, whole.melds, kind, claimed=True)
            assert items == most, hand_to_mpsz(hand)


def test_discards_that_wait_are_those_after_which_thirteen_tiles_wait() -> None:
    for hand in hands(6, 14):
        found = KELE.discards(hand.concealed, hand.melds)
        for kind in {*hand.concealed}:
            rest = hand.minus(kind)
            waits = KELE.waits(rest.concealed, rest.melds)
            assert list(kinds_in(found.get(kind, 0))) == list(waits), hand_to_mpsz(hand)


@pytest.mark.parametrize("size", [13, 14])
def test_shanten_is_the_least_number_of_tiles_that_must_come(size: int) -> None:
    shanten = Counter[int]()
    for hand in hands(7 + size, size):
        found = KELE.shanten(hand.concealed, hand.melds)
        expected = shape_oracle.shanten(hand.counts, laid_down(hand), len(hand.melds), orphans=True)
        assert found == expected, hand_to_mpsz(hand)
        shanten[found] += 1
    assert len(shanten) >= 5


def test_useful_tiles_are_those_that_lower_the_shanten() -> None:
    for hand in hands(8, 13):
        shanten, useful = KELE.progress(hand.concealed, hand.melds)
        assert shanten == KELE.legal_shanten(hand.concealed, hand.melds)
        lower = [
            kind
            for kind in range(34)
            if hand.held[kind] < 4
            and KELE.legal_shanten(sorted((*hand.concealed, kind)), hand.melds) < shanten
        ]
        assert list(kinds_in(useful)) == lower, hand_to_mpsz(hand)


def test_progress_after_each_discard_is_that_of_the_thirteen_tiles_left() -> None:
    for hand in hands(9, 14):
        found = KELE.discard_progress(hand.concealed, hand.melds)
        assert list(found) == sorted({*hand.concealed})
        for kind, progress in found.items():
            rest = hand.minus(kind)
            assert progress == KELE.progress(rest.concealed, rest.melds), hand_to_mpsz(hand)


seeded_hands = st.builds(
    lambda seed, size: random_hand(random.Random(seed), size),
    st.integers(0, 2**32),
    st.sampled_from([13, 14]),
)


@settings(max_examples=300, deadline=None)
@given(seeded_hands)
def test_a_hand_that_waits_is_ready_and_one_that_wins_is_complete(hand: Hand) -> None:
    shanten = KELE.shanten(hand.concealed, hand.melds)
    if hand.size == 13:
        orphans = shape_oracle.shape_waits(hand.counts, laid_down(hand), orphans=True)
        assert (shanten == 0) == bool(orphans)
        waits = KELE.waits(hand.concealed, hand.melds)
        assert {*waits} <= {*orphans}
    else:
        complete = shape_oracle.is_complete(hand.counts, laid_down(hand), orphans=True)
        assert (shanten == -1) == complete
        assert complete or best(KELE, hand.concealed, hand.melds) is None


@settings(max_examples=300, deadline=None)
@given(seeded_hands.filter(lambda hand: hand.size == 14))
def test_a_discard_leaves_the_shanten_as_it_was_or_one_higher(hand: Hand) -> None:
    now = KELE.legal_shanten(hand.concealed, hand.melds)
    before = max(0, now)
    after = [shanten for shanten, _ in KELE.discard_progress(hand.concealed, hand.melds).values()]
    assert min(after) == before
    assert max(after) <= now + 1 or max(after) == NEVER


@settings(max_examples=300, deadline=None)
@given(seeded_hands)
def test_suits_may_be_exchanged(hand: Hand) -> None:
    def exchanged(kind: int) -> int:
        return (kind + 9) % 27 if kind < 27 else kind

    melds = tuple(Meld(m.kind, tuple(map(exchanged, m.tiles))) for m in hand.melds)
    other = Hand(tuple(map(exchanged, hand.concealed)), melds)
    assert KELE.shanten(hand.concealed, hand.melds) == KELE.shanten(other.concealed, other.melds)
    if hand.size == 13:
        waits = KELE.waits(hand.concealed, hand.melds)
        assert KELE.waits(other.concealed, other.melds) == {
            exchanged(kind): items for kind, items in waits.items()
        }


# ---- Hands on which evaluators went wrong: shape only, standard form and seven pairs ----


def shape(text: str) -> tuple[bool, str, int]:
    """Does it win, what does it wait for, its shanten."""
    hand = parse_hand(text)
    kernels = bind(ANY_SHAPE)
    shanten = kernels.shanten(hand.concealed, hand.melds)
    wins = hand.size == 14 and best(kernels, hand.concealed, hand.melds) is not None
    waits = kernels.waits(hand.concealed, hand.melds) if hand.size == 13 else {}
    # The same from a record, under a rule set that knows no conditions either.
    (found,) = packed.evaluate(rule_set("jintan"), packed.pack([hand]))
    assert found["status"] == 0
    assert bool(found["win"]) == wins
    assert kinds_in(int(found["waits"])) == tuple(waits)
    assert found["shape_shanten"] == shanten
    return wins, to_mpsz(waits), shanten


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("11123444m555p [123m]", "the triplet is not one with a tile of the chi"),
        ("22233344455s [1111s]", "a kong is a meld, and three tiles"),
        ("1111222233334m4m", "seven pairs from four kinds"),
        ("11112233445566m", "seven pairs from six kinds"),
        ("11123456789999m", "one suit, won on the nine"),
        ("111222333444s22z", "read as triplets or as sequences"),
        ("11122233344s222z", "read as triplets or as sequences"),
        ("777789m11888p [333z]", "several tiles win; it is no edge wait"),
        ("55m123789s789p [123p]", "an open chi does not change the order of the runs"),
        ("444p222234m555s55z", "the pair stands among tiles that could be more"),
        ("1122m2266p2266s22z", "seven pairs, the same rank in every suit"),
    ],
)
def test_it_wins(text: str, why: str) -> None:
    assert shape(text) == (True, "", -1), why


@pytest.mark.parametrize(
    ("text", "waits", "shanten", "why"),
    [
        ("1123444m555p [123m]", "14m", 0, "one 1m is left, in the chi lies another"),
        ("123456789m1111z", "", 1, "all four 1z are held"),
        ("123456789m1111p", "", 1, "all four 1p are held, and 23p are far"),
        ("77789m11888p [333z]", "7m1p", 0, "several tiles win"),
        ("55m12379s789p [123p]", "8s", 0, "a closed wait"),
        ("1112345678999m", "123456789m", 0, "nine gates"),
        ("1113456666788s", "2578s", 0, "6s is held four times"),
        ("5566m23379p4444z", "", 1, "four alike are two pairs, not the fifth"),
        ("1122m2266p2266s2z", "2z", 0, "seven pairs"),
        ("111124m1111z [789s]", "", 1, "lone tiles of which four are held"),
        ("1111247777m [789s]", "", 1, "lone tiles of which four are held"),
        ("1111444478m [123s]", "", 2, "lone tiles of which four are held"),
    ],
)
def test_it_waits(text: str, waits: str, shanten: int, why: str) -> None:
    assert shape(text) == (False, waits, shanten), why


@pytest.mark.parametrize(
    ("text", "shanten", "why"),
    [
        ("5566m233799p4444z", 0, "four alike are two pairs"),
        ("245568m245568p77s", 2, "blocks must not be chosen suit by suit"),
        ("6p4s [123m] [456m] [789m] [111z]", 0, "four melds still want a pair"),
    ],
)
def test_fourteen_tiles_are_no_win(text: str, shanten: int, why: str) -> None:
    assert shape(text) == (False, "", shanten), why


def test_the_best_reading_is_found_where_the_first_is_not_it() -> None:
    # Three sequences alike count two and so do all triplets, which are the most triplets; with
    # another pair two sequences alike count one.
    hand = parse_hand("11122233344s222z")
    found = KELE.readings(hand.concealed, hand.melds)
    assert len(found) == 3
    most = best(KELE, hand.concealed, hand.melds)
    assert most is not None
    assert KELE.item_fan(most) == {"closed": 1, "half_flush": 2, "all_triplets": 2}


def test_a_triplet_has_no_tile_of_an_open_chi() -> None:
    hand = parse_hand("11123444m555p [123m]")
    found = {
        (NAMES[reading.pair], to_mpsz(kinds_in(reading.triplets)))
        for reading in KELE.readings(hand.concealed, hand.melds, 0, claimed=True)
    }
    assert found == {("1m", "4m5p"), ("4m", "1m5p")}


def test_nine_gates_won_on_the_nine_count_the_four_alike() -> None:
    hand = parse_hand("11123456789999m")
    most = best(KELE, hand.concealed, hand.melds, 8, claimed=True)
    assert most is not None
    assert KELE.item_fan(most) == {"closed": 1, "full_flush": 3, "four_in_one": 1}


def test_the_hands_of_four_sets_and_a_pair_are_as_many_as_is_known() -> None:
    table = tables.load()
    places = tables.layout(table)
    rows = table[places.ROWS : places.CLASSES]
    hands = Counter({(0, 0): 1})
    for ranks in (9, 9, 9, 7):
        suit = rows[: 5**9] if ranks == 9 else rows[5**9 : 5**9 + 5**7]
        keys = np.nonzero(suit >> 10 & 7)[0]
        tiles = sum(keys // 5**rank % 5 for rank in range(ranks))
        pairs = suit[keys] >> 9 & 1
        complete = Counter(zip(tiles.tolist(), pairs.tolist(), strict=True))
        more = Counter[tuple[int, int]]()
        for (tiles_a, pairs_a), a in hands.items():
            for (tiles_b, pairs_b), b in complete.items():
                more[tiles_a + tiles_b, pairs_a + pairs_b] += a * b
        hands = more
    assert hands[14, 1] == 11_498_658


def test_two_suits_with_pairs_and_two_with_more_are_no_win() -> None:
    # Every suit is complete by itself, but there are four pairs and two sets.
    hand = parse_hand("11m22p33345s11122z")
    assert KELE.readings(hand.concealed, hand.melds) == []
    assert KELE.shanten(hand.concealed, hand.melds) == 1
