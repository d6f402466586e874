"""What an analysis says of a hand, under the conditions of baishan_kele."""

from __future__ import annotations

import random

import pytest

from fangcheng_rules.analysis import (
    Analysis,
    DiscardChoice,
    KongChoice,
    Reading,
    Wait,
    analyze,
    winning_readings,
)
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.notation import hand_to_mpsz, parse_hand, parse_tiles
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_rules.rulesets.baishan_kele import RULE_SET as KELE
from fangcheng_rules.tiles import DRAGONS, from_name, name
from tests.rules.random_hands import random_hand

OPTIONS = KELE.complete()


def analysed(text: str, *, progress: bool = False) -> Analysis:
    return analyze(KELE, OPTIONS, parse_hand(text), progress=progress)


def waits(found: tuple[Wait, ...]) -> dict[str, int]:
    return {name(wait.tile): wait.least_fan for wait in found}


def discard(analysis: Analysis, tile: str) -> DiscardChoice:
    return next(choice for choice in analysis.discards if name(choice.tile) == tile)


def reading_text(reading: Reading) -> str:
    return " ".join("".join(map(name, tiles)) for tiles in reading.sets)


def test_thirteen_tiles_have_waits_and_the_kongs_that_could_be_claimed() -> None:
    analysis = analysed("444m678p5688s222z")
    assert analysis == Analysis(
        waits=(Wait(from_name("4s"), 1), Wait(from_name("7s"), 1)),
        claim_kongs=tuple(
            # The kong opens the hand, which is worth nothing then.
            KongChoice(
                from_name(kong),
                MeldKind.EXPOSED_KONG,
                (Wait(from_name("4s"), 0), Wait(from_name("7s"), 0)),
            )
            for kong in ("4m", "2z")
        ),
    )
    assert analysed("444m67p5688s2223z") == Analysis()


def test_a_claimed_kong_may_leave_fewer_waits() -> None:
    analysis = analysed("3334m567p888s111z")
    left = {name(kong.tile): "".join(waits(kong.waits)) for kong in analysis.claim_kongs}
    assert left == {"3m": "4m", "8s": "2m4m5m", "1z": "2m4m5m"}


def test_a_wait_counts_the_fan_of_a_plain_discard_win() -> None:
    # Closed half flush; with 4m or 5z all triplets besides, with 1m two alike and four in one.
    assert waits(analysed("111222333m44m55z").waits) == {"1m": 5, "4m": 5, "5z": 5}
    # Open: the chi makes no closed hand, four melds are the last tile.
    assert waits(analysed("2z [234m] [234m] [999p] [111s]").waits) == {"2z": 2}
    assert waits(analysed("2z [234m] [234m] [999p] (1111s)").waits) == {"2z": 1}


def test_thirteen_orphans_are_a_fixed_amount_and_count_no_fan() -> None:
    analysis = analysed("19m19p19s1234567z")
    assert len(analysis.waits) == 13
    assert set(waits(analysis.waits).values()) == {0}


def test_a_hand_without_terminal_or_triplet_waits_for_nothing() -> None:
    assert analysed("56m33678s [444m] [567p]").waits == ()
    assert analysed("123p445566s6z [456s]").waits == ()


def test_a_kind_of_which_all_four_are_held_is_no_wait() -> None:
    assert waits(analysed("23m55z [1111m] [999p] [999s]").waits) == {"4m": 0}
    assert analysed("123456789m1111z").waits == ()


def test_fourteen_tiles_have_a_choice_for_each_kind_in_hand() -> None:
    analysis = analysed("444m678p5688s2223z")
    assert not analysis.wins
    assert analysis.readings == ()
    assert analysis.waits == ()
    assert [name(choice.tile) for choice in analysis.discards] == [
        "4m", "6p", "7p", "8p", "5s", "6s", "8s", "2z", "3z",
    ]  # fmt: skip
    assert waits(discard(analysis, "3z").waits) == {"4s": 1, "7s": 1}
    assert discard(analysis, "4m").waits == ()
    assert discard(analysis, "3z").shanten is None


def test_progress_tells_shanten_and_useful_tiles_after_each_discard() -> None:
    analysis = analysed("444m678p5688s2223z", progress=True)
    assert analysis.shanten == 0
    ready = discard(analysis, "3z")
    assert ready.shanten == 0
    assert [name(tile) for tile in ready.useful] == ["4s", "7s"]
    assert discard(analysis, "4m").shanten == 1


def test_progress_of_thirteen_tiles() -> None:
    analysis = analysed("1113335557779m", progress=True)
    assert analysis.shanten == 0
    assert [name(tile) for tile in analysis.useful] == ["8m", "9m"]
    assert waits(analysis.waits).keys() == {"8m", "9m"}


def test_kongs_of_ones_own_are_told_with_the_waits_they_leave() -> None:
    analysis = analysed("55556m678p [111z] [222z]")
    assert [(name(k.tile), k.kind) for k in analysis.kongs] == [("5m", MeldKind.CONCEALED_KONG)]
    assert waits(analysis.kongs[0].waits) == {"6m": 0}
    analysis = analysed("1z23p55m [111z] [222z] [333z]")
    assert analysis.kongs == (
        KongChoice(from_name("1z"), MeldKind.ADDED_KONG, analysis.kongs[0].waits),
    )
    assert waits(analysis.kongs[0].waits) == {"1p": 0, "4p": 0}


def test_a_kong_that_lies_there_is_none_to_be_made() -> None:
    assert analysed("23p556m [1111z] [222z] [333z]").kongs == ()


def test_a_win_has_its_readings_the_best_one_first() -> None:
    analysis = analysed("11122233344s222z")
    assert analysis.wins
    assert [reading_text(reading) for reading in analysis.readings] == [
        "1s1s1s 2s2s2s 3s3s3s 2z2z2z 4s4s",
        "1s2s3s 1s2s3s 1s2s3s 2z2z2z 4s4s",
        "1s2s3s 2s3s4s 2s3s4s 2z2z2z 1s1s",
    ]
    assert analysis.items == (("half_flush", 2), ("all_triplets", 2), ("closed", 1))


def test_a_reading_has_the_melds_first_and_the_pair_last() -> None:
    analysis = analysed("555m11z [234m] (9999p) [555s]")
    assert reading_text(analysis.readings[0]) == "2m3m4m 9p9p9p9p 5s5s5s 5m5m5m 1z1z"
    assert analysis.readings[0].shape == "standard"


def test_special_shapes_are_read_as_what_they_are() -> None:
    pairs = analysed("1133m55p77s99s22z44z")
    assert pairs.readings == (
        Reading("seven_pairs", tuple((tile, tile) for tile in parse_tiles("13m5p79s24z"))),
    )
    orphans = analysed("19m19p19s12345677z")
    assert reading_text(orphans.readings[0]) == "1m 9m 1p 9p 1s 9s 1z 2z 3z 4z 5z 6z 7z7z"
    assert orphans.items == (("thirteen_orphans", 0),)


def test_seven_pairs_count_two_pairs_for_four_alike_and_a_fan_for_them() -> None:
    assert dict(analysed("1111m55p7799s2244z").items) == {"seven_pairs": 3, "four_in_one": 1}
    assert dict(analysed("11m55p7799s222244z").items) == {"seven_pairs": 3}


def test_seven_pairs_without_a_terminal_are_no_win_under_the_conditions() -> None:
    analysis = analysed("2244m66p3355s778p8p", progress=True)
    assert analysis.shape_shanten == -1
    assert analysis.shanten == 1
    assert not analysis.wins


def test_readings_for_scoring_are_those_of_the_analysis() -> None:
    rng = random.Random(11)
    wins = 0
    for _ in range(300):
        hand = random_hand(rng, 14)
        analysis = analyze(KELE, OPTIONS, hand)
        found = winning_readings(KELE, OPTIONS, hand.concealed, hand.melds)
        assert analysis.readings == tuple(reading for reading, _ in found)
        for reading, _ in found:
            tiles = sorted(tile for tiles in reading.sets for tile in tiles)
            laid = [tile for meld in hand.melds for tile in meld.tiles]
            assert tiles == sorted((*hand.concealed, *laid)), hand_to_mpsz(hand)
        wins += bool(found)
    assert wins > 30


def test_waits_after_a_discard_or_a_kong_are_those_of_the_hand_that_is_left() -> None:
    rng = random.Random(12)
    kongs = 0
    for _ in range(600):
        hand = random_hand(rng, 14)
        analysis = analyze(KELE, OPTIONS, hand, progress=True)
        for choice in analysis.discards:
            left = analyze(KELE, OPTIONS, hand.minus(choice.tile), progress=True)
            assert left.waits == choice.waits
            assert (left.shanten, left.useful) == (choice.shanten, choice.useful)
        for kong in analysis.kongs:
            left = analyze(KELE, OPTIONS, after_kong(hand, kong))
            assert left.waits == kong.waits, hand_to_mpsz(hand)
            kongs += 1
    assert kongs > 30


def after_kong(hand: Hand, kong: KongChoice) -> Hand:
    rest = tuple(tile for tile in hand.concealed if tile != kong.tile)
    ponged = Meld(MeldKind.PONG, (kong.tile,) * 3)
    melds = tuple(meld for meld in hand.melds if meld != ponged)
    return Hand(rest, (*melds, Meld(kong.kind, (kong.tile,) * 4)))


@pytest.mark.parametrize("size", [13, 14])
def test_an_analysis_without_progress_differs_in_nothing_else(size: int) -> None:
    hand = random_hand(random.Random(13), size)
    full = analyze(KELE, OPTIONS, hand, progress=True)
    less = analyze(KELE, OPTIONS, hand)
    assert (full.wins, full.readings, full.waits) == (less.wins, less.readings, less.waits)
    assert [c.waits for c in full.discards] == [c.waits for c in less.discards]
    assert less.shanten is None
    assert less.useful == ()


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
def test_a_win_and_a_kong_are_never_overlooked(rules: RuleSet) -> None:
    """One look tells whether there is any, before they are looked for."""
    rng = random.Random(13)
    options = rules.complete()
    wins = kongs = 0
    for hand in [in_play(rng, rules) for _ in range(1_500)]:
        found = analyze(rules, options, hand)
        expected = winning_readings(rules, options, hand.concealed, hand.melds)
        assert found.readings == tuple(reading for reading, _ in expected), hand_to_mpsz(hand)
        laid = [meld.kind is MeldKind.WHIRLWIND for meld in hand.melds]
        takes = {
            tile
            for tile in hand.concealed
            if hand.concealed.count(tile) == 4
            or any(meld.takes(tile) for meld in hand.melds)
            or (rules.whirlwind and not any(laid) and tile == DRAGONS[0] and holds_dragons(hand))
        }
        assert {kong.tile for kong in found.kongs} == takes, hand_to_mpsz(hand)
        wins += found.wins
        kongs += bool(takes)
    assert wins > 50
    assert kongs > 50


def in_play(rng: random.Random, rules: RuleSet) -> Hand:
    """A hand of fourteen with tiles of the rule set only; now and then with a whirlwind."""
    while True:
        hand = random_hand(rng, 14)
        if rules.whirlwind and len(hand.melds) < 4 and holds_dragons(hand) and rng.random() < 0.5:
            rest = list(hand.concealed)
            for dragon in DRAGONS:
                rest.remove(dragon)
            hand = Hand(tuple(rest), (*hand.melds, Meld(MeldKind.WHIRLWIND, tuple(DRAGONS))))
        if rules.kinds.issuperset(hand.concealed):
            return hand


def holds_dragons(hand: Hand) -> bool:
    return {*DRAGONS} <= {*hand.concealed}
