"""Packed hands: read as a second reader reads them, and found to be what one by one they are."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from fangcheng_rules import packed
from fangcheng_rules.analysis import analyze, winning_readings
from fangcheng_rules.errors import IllegalWin
from fangcheng_rules.hand import Hand
from fangcheng_rules.kernels import bound, speed
from fangcheng_rules.kernels import records as kernel_records
from fangcheng_rules.kernels.bound import bind
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.moments import Moment
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS, rule_set
from fangcheng_rules.scoring import FinishedHand, KongKind, SeatEnd, Win, WinnerScore, score
from tests.rules.golden import tiles
from tests.rules.packed_oracle import random_hand_of, random_records, read

KELE = rule_set("baishan_kele")
every_rule_set = pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)


def reasons(rules: RuleSet, records: packed.Records) -> list[str]:
    return [packed.STATUSES[status][0] for status in packed.check(rules, records)]


def test_a_record_is_laid_out_as_the_page_tells() -> None:
    hand = Hand(
        tiles("11123m55s7z"),
        (Meld(MeldKind.CHI, tiles("678p")), Meld(MeldKind.PONG, tiles("222z"))),
    )
    record = packed.pack([hand])
    record["won"] = 33 + 1
    record["moment"] = Moment.SELF_DRAW
    record["options"] = [1, 0, 0, 0]
    assert record.tobytes() == b"".join(
        (
            (0o113).to_bytes(4, "little"),
            (0).to_bytes(4, "little"),
            (0o20000).to_bytes(4, "little"),
            (0o1000000).to_bytes(4, "little"),
            bytes([0 << 6 | 14 + 1, 1 << 6 | 28 + 1, 0, 0]),
            bytes([0, 34, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
        )
    )
    assert packed.HAND.itemsize == 32
    assert packed.RESULT.itemsize == 40
    assert all(
        len(packed.winner_items(rules)) <= packed.MOST_ITEMS and len(rules.hot.options) <= 4
        for rules in RULE_SETS
    )


@every_rule_set
def test_records_in_order_are_in_order(rules: RuleSet) -> None:
    records = random_records(random.Random(1), rules, 500)
    assert set(reasons(rules, records)) == {""}


@every_rule_set
def test_any_bytes_are_judged_as_a_second_reader_judges_them(rules: RuleSet) -> None:
    rng = random.Random(2)
    records = random_records(rng, rules, 3_000)
    as_bytes = records.view(np.uint8).reshape(-1, packed.HAND.itemsize)
    places = [*range(16), *range(16), *range(16, 32)]
    for row in as_bytes:
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            place = rng.choice(places)
            row[place] = (
                row[place] ^ (1 << rng.randrange(8)) if rng.random() < 0.8 else rng.randrange(256)
            )
    found = reasons(rules, records)
    assert found == [read(rules, record)[0] for record in records]
    assert set(found) == {reason for reason, _ in packed.STATUSES}
    results = packed.evaluate(rules, records)
    bad = results[results["status"] != 0]
    assert not bad.view(np.uint8).reshape(len(bad), -1)[:, 1:].any()


def test_a_whirlwind_has_a_replacement_only_for_a_dragon_added() -> None:
    baicheng = rule_set("baicheng")
    for dragons, told in (("567z", "INVALID_MOMENT"), ("567z5z", "")):
        whirlwind = Meld(MeldKind.WHIRLWIND, tiles(dragons))
        records = packed.pack([Hand(tiles("123m123p123s55m"), (whirlwind,))])
        records["won"] = 4 + 1
        records["moment"] = Moment.SELF_DRAW | Moment.AFTER_KONG
        assert reasons(baicheng, records) == [told]
        assert read(baicheng, records[0])[0] == told


def best(
    rules: RuleSet, hand: Hand, won: int | None, moment: Moment, options: int
) -> dict[str, int] | None:
    """The items of the reading that is worth most, one reading after the other."""
    kernels = bind(rules.hot)
    ways = []
    for reading in kernels.readings(
        hand.concealed, hand.melds, won, claimed=Moment.SELF_DRAW not in moment, options=options
    ):
        items = rules.counted(kernels.item_fan(reading.items), moment, hand.is_open)
        worth = sum(fan or 1000 for fan in items.values())
        ways.append((worth, reading.triplets.bit_count(), items))
    return max(ways, key=lambda way: way[:2])[2] if ways else None


@every_rule_set
def test_many_at_once_are_what_they_are_one_by_one(rules: RuleSet) -> None:
    records = random_records(random.Random(3), rules, 3_000)
    results = packed.evaluate(rules, records)
    kernels = bind(rules.hot)
    items = packed.winner_items(rules)
    wins = waits = 0
    for record, result in zip(records, results, strict=True):
        _, hand = read(rules, record)
        assert hand is not None
        options = int.from_bytes(bytes(record["options"]), "little")
        won = int(record["won"]) - 1 if record["won"] else None
        expected = (
            best(rules, hand, won, Moment(int(record["moment"])), options)
            if hand.size == 14
            else None
        )
        counts = dict(zip(items, result["counts"].tolist(), strict=False))
        wins += expected is not None
        assert bool(result["win"]) == (expected is not None), record
        found = {item: count for item, count in counts.items() if count}
        assert found == {
            item: fan // (rules.items[item].fan or 1) or 1 for item, fan in (expected or {}).items()
        }, record
        assert result["fan"] == sum((expected or {}).values()), record
        mask = (
            sum(1 << kind for kind in kernels.waits(hand.concealed, hand.melds, options))
            if hand.size == 13
            else 0
        )
        waits += mask > 0
        assert result["waits"] == mask, record
        assert result["shape_shanten"] == kernels.shanten(hand.concealed, hand.melds)
        assert result["shanten"] == kernels.legal_shanten(hand.concealed, hand.melds)
        assert result["reserved"] == 0
    assert wins > 40
    assert waits > 40


def scored(
    rules: RuleSet,
    hand: Hand,
    won: int,
    moment: Moment,
    options: dict[str, object],
    treasure: int | None = None,
) -> WinnerScore | None:
    """The winner's part of a settlement in this moment; None where no such win can be settled."""
    concealed = list(hand.concealed)
    concealed.remove(won)
    kongs: list[KongKind] = [
        "exposed" if meld.kind is MeldKind.EXPOSED_KONG else "concealed"
        for meld in hand.melds
        if meld.kind in (MeldKind.EXPOSED_KONG, MeldKind.CONCEALED_KONG)
    ]
    if Moment.AFTER_KONG in moment and not kongs:
        return None
    if Moment.AFTER_FLOWER in moment and 34 not in rules.kinds:
        return None
    kong = kongs[0] if Moment.AFTER_KONG in moment else None
    free = next(kind for kind in sorted(rules.kinds - {treasure}) if hand.held[kind] == 0)
    pong = () if Moment.OTHERS_CLOSED in moment else (Meld(MeldKind.PONG, (free,) * 3, 0),)
    others = (SeatEnd(), SeatEnd(melds=pong), SeatEnd())
    winner = SeatEnd(
        tuple(concealed),
        hand.melds,
        declared=rules.declares[-1].id if Moment.DECLARED in moment and rules.declares else "",
        flowers=(34,) if Moment.AFTER_FLOWER in moment else (),
    )
    drawn = Moment.SELF_DRAW in moment
    end = Win(
        (0,),
        won if treasure is None else treasure,
        "self_draw" if drawn else "discard",
        source=None if drawn else 1,
        after_kong=kong,
        kong_source=1 if kong == "exposed" else None,
        on_deal=Moment.ON_DEAL in moment,
        after_flower=Moment.AFTER_FLOWER in moment,
        first_round=(0,) if Moment.FIRST_ROUND in moment else (),
    )
    dealer = 0 if Moment.DEALER in moment else 3
    try:
        finished = FinishedHand(dealer, (winner, *others), end, treasure=treasure)
        return score(rules, options, finished).winners[0]
    except IllegalWin as error:
        # A lock, or two moments that are not of one hand of play: no affair of the record's.
        if error.reason not in ("WIN_NOT_ALLOWED", "INVALID_END"):
            raise
        return None


@every_rule_set
def test_what_counts_is_what_a_settlement_counts(rules: RuleSet) -> None:
    rng = random.Random(4)
    records = random_records(rng, rules, 12_000)
    results = packed.evaluate(rules, records, packed.SCORE)
    items = packed.winner_items(rules)
    # No cap is ever reached, so that the reading paid the most is the one with the most fan; and
    # who fed the melds, which records do not tell, is not asked.
    options: dict[str, object] = {
        option.id: {"cap": 100_000, "guarantor": False}[option.id]
        for option in rules.options
        if option.id in ("cap", "guarantor")
    }
    settled = 0
    seen: set[str] = set()
    for record, result in zip(records, results, strict=True):
        if not (result["win"] and record["won"]):
            continue
        _, hand = read(rules, record)
        assert hand is not None
        own = dict(zip(rules.hot.options, map(bool, record["options"]), strict=False))
        winner = scored(
            rules, hand, int(record["won"]) - 1, Moment(int(record["moment"])), options | own
        )
        if winner is None:
            continue
        settled += 1
        counts = dict(zip(items, result["counts"].tolist(), strict=False))
        counted = {item.id: item.count for item in winner.items}
        assert {item: count for item, count in counts.items() if count} == counted, record
        assert result["fan"] == winner.fan, record
        seen |= counted.keys()
    assert settled > 60
    # All but what no random hand is, and the treasures, which have a test of their own.
    rare = {"thirteen_orphans", "all_258", "triple_seq"}
    assert set(items) - seen - rare <= {"treasure_draw", "double_treasure"}


def test_a_drawn_treasure_counts_as_in_a_settlement() -> None:
    rules = rule_set("baicheng")
    kernels = bind(rules.hot)
    items = packed.winner_items(rules)
    rng = random.Random(5)
    seen = Counter[str]()
    while sum(seen.values()) < 400:
        hand = random_hand_of(rng, rules, 13)
        waits = [*kernels.waits(hand.concealed, hand.melds)]
        treasure = rng.choice(waits if waits and rng.random() < 0.5 else sorted(rules.kinds))
        if not waits or hand.held[treasure] > 2:
            continue
        moment = Moment.SELF_DRAW
        moment |= Moment.DEALER if rng.random() < 0.5 else Moment.OTHERS_CLOSED
        if rng.random() < 0.5 and any(len(meld.tiles) > 3 for meld in hand.melds):
            moment |= Moment.AFTER_KONG
        records = packed.pack([hand.plus(tile) for tile in waits])
        records["won"] = [tile + 1 for tile in waits]
        records["moment"] = moment
        records["treasure"] = treasure + 1
        results = packed.evaluate(rules, records, packed.SCORE)
        assert not results["status"].any()
        assert results["win"].all()
        winner = scored(rules, hand.plus(waits[0]), waits[0], moment, {}, treasure)
        if winner is None:
            continue  # after a kong that has no replacement
        counted = {item.id for item in winner.items}
        most = results[results["fan"] == results["fan"].max()]
        assert winner.fan == most["fan"][0], (hand, treasure)
        assert counted in [
            {item for item, count in zip(items, counts, strict=False) if count}
            for counts in most["counts"].tolist()
        ], (hand, treasure)
        seen.update(counted & {"treasure_draw", "double_treasure"})
    assert min(seen["treasure_draw"], seen["double_treasure"]) > 40


def test_a_treasure_is_drawn_where_there_is_one() -> None:
    hand = Hand(tiles("123m456p12377s555z"))
    plain = packed.pack([hand] * 4)
    plain["won"] = 18 + 1
    plain["moment"] = Moment.SELF_DRAW
    plain["treasure"] = [24 + 1, 18 + 1, 34 + 1, 24 + 1]
    plain["moment"][3] = 0  # none was drawn
    baicheng = rule_set("baicheng")
    assert reasons(baicheng, plain) == ["", "", "INVALID_MOMENT", "INVALID_MOMENT"]
    plain["treasure"] = 31 + 1  # the hand has three of them, and one lies on the wall
    assert reasons(baicheng, plain[:1]) == ["FIFTH_COPY"]
    plain["treasure"] = 24 + 1
    assert reasons(KELE, plain[:1]) == ["INVALID_MOMENT"]


def test_only_what_is_asked_for_is_found() -> None:
    records = random_records(random.Random(5), KELE, 400)
    whole = packed.evaluate(KELE, records)
    scores = packed.evaluate(KELE, records, packed.SCORE)
    assert np.array_equal(scores["fan"], whole["fan"])
    assert not scores["waits"].any()
    assert (scores["shanten"] == packed.NOT_ASKED).all()
    assert (scores["shape_shanten"] == packed.NOT_ASKED).all()
    for rules in (KELE, rule_set("jintan")):
        whole = packed.evaluate(rules, records[:1])
        legal = packed.evaluate(rules, records[:1], packed.LEGAL_SHANTEN)
        assert np.array_equal(legal["shanten"], whole["shanten"])
        assert (legal["shape_shanten"] == packed.NOT_ASKED).all()


@every_rule_set
def test_bits_that_are_looked_up_are_those_that_are_gathered(
    rules: RuleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    hands = random_records(random.Random(8), rules, 2_000)
    words = kernel_records.meld_words().copy()
    found = []
    for gathers in (0, 1):
        words[kernel_records.GATHERS_AT] = gathers
        laid_down = bound.read_only_words(words)
        monkeypatch.setattr(bound, "_laid_down", lambda laid=laid_down: laid)
        found.append(packed.evaluate(rules, hands))
    assert np.array_equal(*found)
    assert found[0]["win"].any()


def test_bytes_are_taken_wherever_they_lie() -> None:
    records = random_records(random.Random(6), KELE, 50)
    expected = packed.evaluate(KELE, records)
    compiled = speed.compiled_here()
    odd = b"x" + records.tobytes()
    out = np.empty(50, packed.RESULT)
    found = packed.evaluate(KELE, np.frombuffer(odd, packed.HAND, offset=1), out=out)
    assert found is out
    assert np.array_equal(found, expected)
    assert speed.compiled_here() == compiled  # not once more, for bytes of another kind
    assert len(packed.evaluate(KELE, records[:0])) == 0
    with pytest.raises(TypeError, match="another layout"):
        packed.evaluate(KELE, np.zeros(3, np.int64))


def test_waits_are_those_of_the_analysis() -> None:
    hand = Hand(tiles("1112345678999m"))
    (found,) = packed.evaluate(KELE, packed.pack([hand]))
    waits = analyze(KELE, KELE.complete(), hand).waits
    assert found["waits"] == sum(1 << wait.tile for wait in waits) == 0b111111111
    complete = hand.plus(0)
    (found,) = packed.evaluate(KELE, packed.pack([complete]))
    reading, items = winning_readings(KELE, KELE.complete(), complete.concealed, complete.melds)[0]
    assert reading.shape == "standard"
    assert found["fan"] == sum(items.values())
