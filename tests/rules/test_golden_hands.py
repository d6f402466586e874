"""Every finished hand of `tests/golden/<rule set>.txt` pays what stands there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fangcheng_rules.errors import RulesError
from fangcheng_rules.ruleset import OptionSpec, RuleSet
from fangcheng_rules.rulesets import BUILT_IN
from fangcheng_rules.scoring import FanCount, Score, score
from tests.rules.golden import GoldenHand, golden_hands
from tests.rules.transcripts import Transcript, files, play, read

HANDS = [
    pytest.param(rules, hand, id=f"{rules.id}:{hand.line} {hand.title}")
    for rules in BUILT_IN
    for hand in golden_hands(rules.id)
]


@pytest.mark.parametrize(("rules", "hand"), HANDS)
def test_a_finished_hand_pays_what_the_page_says(rules: RuleSet, hand: GoldenHand) -> None:
    if hand.refused is not None:
        with pytest.raises(RulesError) as caught:
            score(rules, hand.options, hand.finished)
        assert (caught.value.reason, caught.value.field) == hand.refused
        return
    result = score(rules, hand.options, hand.finished)
    counted: dict[int, dict[str, int | str]] = {}
    for winner in result.winners:
        counted[winner.seat] = _fan(rules, winner.items)
    for loser in result.losers:
        if loser.items:
            counted[loser.seat] = _fan(rules, loser.items)
    assert {seat: items for seat, items in counted.items() if items} == hand.fan
    points = {winner.seat: winner.flower_points for winner in result.winners}
    assert {seat: flowers for seat, flowers in points.items() if flowers} == hand.flowers
    assert result.net == hand.net
    assert result.house == hand.house


@pytest.mark.parametrize("rules", BUILT_IN, ids=lambda rules: rules.id)
def test_a_loser_is_told_to_be_capped_where_it_would_pay_more_without_a_cap(rules: RuleSet) -> None:
    told: set[bool] = set()
    for hand in golden_hands(rules.id):
        if hand.refused is not None:
            continue
        uncapped = score(rules, {**hand.options, "cap": 0}, hand.finished)
        result = score(rules, hand.options, hand.finished)
        flat = {winner.seat for winner in result.winners if winner.flat is not None}
        for loser, free in zip(result.losers, uncapped.losers, strict=True):
            if loser.winner not in flat:  # a fixed amount goes by the cap and is not cut
                assert loser.capped == (loser.amount < free.amount), hand.title
            told.add(loser.capped)
    assert told == {True, False}


@pytest.mark.parametrize("rules", BUILT_IN, ids=lambda rules: rules.id)
def test_every_fan_item_counts_in_some_golden_hand_for_each_whose_it_is(rules: RuleSet) -> None:
    winners: set[str] = set()
    losers: set[str] = set()
    for hand in golden_hands(rules.id):
        for seat, items in hand.fan.items():
            (winners if seat in getattr(hand.end, "winners", ()) else losers).update(items)
    for item in rules.fan_items:
        if item.whose in ("winner", "both"):
            assert item.id in winners, item.id
        if item.whose in ("loser", "both"):
            assert item.id in losers, item.id


@pytest.mark.parametrize(
    ("rules", "option"),
    [
        pytest.param(rules, one, id=f"{rules.id}:{one.id}")
        for rules in BUILT_IN
        for one in rules.options
    ],
)
def test_every_option_changes_what_a_golden_hand_pays_or_how_a_transcript_is_played(
    rules: RuleSet, option: OptionSpec
) -> None:
    def without(options: Mapping[str, object]) -> dict[str, object]:
        return {key: value for key, value in options.items() if key != option.id}

    hands = (hand for hand in golden_hands(rules.id) if option.id in hand.options)
    if any(
        _paid(rules, hand, hand.options) != _paid(rules, hand, without(hand.options))
        for hand in hands
    ):
        return
    for file in files():
        transcript = read(file.read_text(encoding="utf-8"))
        chosen = transcript.setup.get("options", "").split(", ")
        others = [words for words in chosen if words.partition(" ")[0] != option.id]
        if transcript.setup["rule_set"] == rules.id and others != chosen:
            assert _played(transcript) != _played(
                replace(transcript, setup={**transcript.setup, "options": ", ".join(others)})
            )
            return
    # What is left are options of the table, not of a hand.
    lengths = {rules.table_length(rules.complete({option.id: word})) for word in option.choices}
    assert len(lengths) == len(option.choices) > 1


def _paid(rules: RuleSet, hand: GoldenHand, options: Mapping[str, object]) -> Score | str:
    try:
        return score(rules, options, hand.finished)
    except RulesError as error:
        return error.reason


def _played(transcript: Transcript) -> str:
    """Its events, or why a move cannot be made."""
    try:
        return play(transcript)[0]
    except (RulesError, ValueError) as error:
        return str(error)


def _fan(rules: RuleSet, items: tuple[FanCount, ...]) -> dict[str, int | str]:
    return {item.id: "flat" if rules.items[item.id].is_flat else item.fan for item in items}
