"""What every rule set states, and what `baishan_kele` states of its own."""

from __future__ import annotations

from collections import Counter

import pytest

from fangcheng_rules.errors import InvalidOption, UnknownRevision, UnknownRuleSet
from fangcheng_rules.ruleset import OptionSpec, RuleSet, WallCount, first_dealer
from fangcheng_rules.rulesets import RULE_SETS, rule_set
from fangcheng_rules.scoring import Dissolved, Draw, End, Escape, FinishedHand, SeatEnd, Win
from fangcheng_rules.wall import DEALT

BY_RULE_SET = pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
KELE = rule_set("baishan_kele")


# ---- Every rule set ----


def test_no_two_rule_sets_have_one_id() -> None:
    assert len({rules.id for rules in RULE_SETS}) == len(RULE_SETS)


@BY_RULE_SET
def test_a_rule_set_is_found_by_its_id_and_revision(rules: RuleSet) -> None:
    assert rule_set(rules.id) is rules
    assert rule_set(rules.id, rules.revision) is rules
    with pytest.raises(UnknownRevision) as caught:
        rule_set(rules.id, rules.revision + 1)
    assert (caught.value.reason, caught.value.field) == ("UNKNOWN_REVISION", "rules.revision")


def test_an_unknown_rule_set_is_named_as_such() -> None:
    with pytest.raises(UnknownRuleSet) as caught:
        rule_set("riichi")
    assert (caught.value.reason, caught.value.field) == ("UNKNOWN_RULE_SET", "rules.id")


@BY_RULE_SET
def test_everything_shown_has_its_names(rules: RuleSet) -> None:
    for thing in (rules, *rules.fan_items, *rules.declares, *rules.titles):
        assert thing.name_zh.strip()
        assert thing.name_en.strip()
    for item in (*rules.fan_items, *rules.declares):
        assert item.meaning.endswith(".")
    for option in rules.options:
        assert option.name_zh.strip()
        assert option.meaning.endswith(".")


@BY_RULE_SET
def test_items_and_options_have_ids_of_their_own(rules: RuleSet) -> None:
    for ids in ([item.id for item in rules.fan_items], [option.id for option in rules.options]):
        assert len(set(ids)) == len(ids)
    for item in rules.fan_items:
        assert set(item.excludes) <= set(rules.items)
    assert set(rules.hot.items) <= set(rules.items)
    assert rules.hot.id == rules.id


@BY_RULE_SET
def test_four_copies_of_each_tile_but_one_of_each_flower(rules: RuleSet) -> None:
    assert set(Counter(t for t in rules.wall_tiles if t < 34).values()) == {4}
    assert set(Counter(t for t in rules.wall_tiles if t >= 34).values()) <= {1}


@BY_RULE_SET
def test_options_are_completed_with_their_defaults(rules: RuleSet) -> None:
    defaults = rules.complete()
    assert defaults == {option.id: option.default for option in rules.options}
    assert rules.complete(defaults) == defaults
    for option in rules.options:
        assert option.check(option.default) == option.default


@BY_RULE_SET
def test_an_option_out_of_its_bounds_is_refused_by_name(rules: RuleSet) -> None:
    for option in rules.options:
        for wrong in _wrong_values(option):
            with pytest.raises(InvalidOption) as caught:
                rules.complete({option.id: wrong})
            assert caught.value.field == f"options.{option.id}"
    with pytest.raises(InvalidOption) as caught:
        rules.complete({"no_such_option": True})
    assert caught.value.field == "options.no_such_option"


def _wrong_values(option: OptionSpec) -> list[object]:
    if isinstance(option.default, bool):
        return [0, 1, "on", None]
    if isinstance(option.default, int):
        return [option.minimum - 1, option.maximum + 1, True, 1.5, "1", None]
    return ["", "no such choice", 1, None]


@BY_RULE_SET
def test_the_first_dealer_is_rolled_among_all_four_or_is_seat_0(rules: RuleSet) -> None:
    if rules.first_dealer_dice == 0:
        assert first_dealer(rules, ()) == 0
    else:
        rest = (1,) * (rules.first_dealer_dice - 1)
        assert {first_dealer(rules, (die, *rest)) for die in range(1, 7)} == {0, 1, 2, 3}


# ---- baishan_kele ----


def test_kele_is_played_with_136_tiles() -> None:
    assert len(KELE.wall_tiles) == 136
    assert set(KELE.wall_tiles) == set(range(34))


def drawn(count: int, *, kongs: int = 0) -> WallCount:
    """A wall of which so many tiles are left."""
    return WallCount(136, 136 - count - kongs, kongs, kongs)


@pytest.mark.parametrize(
    ("left", "kongs", "allowed"),
    [(83, 0, True), (19, 0, True), (18, 0, False), (19, 1, True), (5, 1, True), (4, 1, False)],
)
def test_kele_makes_no_kong_once_only_the_last_four_are_left(
    left: int, kongs: int, allowed: bool
) -> None:
    assert KELE.wall.may_kong(drawn(left, kongs=kongs)) is allowed


def test_kele_leaves_14_tiles_until_a_kong_opens_them() -> None:
    assert KELE.wall.drawable(drawn(83)) == 69
    assert KELE.wall.drawable(drawn(19)) == 5
    assert KELE.wall.drawable(drawn(18, kongs=1)) == 18
    assert KELE.wall.dealt_out == 4
    assert WallCount(136, DEALT, 0, 0).left == 83


@pytest.mark.parametrize(
    ("end", "next_dealer"),
    [
        (Win((1,), 0, "self_draw"), 1),
        (Win((3,), 0, "discard", 1), 2),
        (Draw(), 1),
        (Escape(1), None),
        (Escape(2), None),
        (Dissolved(), 1),
    ],
)
def test_kele_keeps_the_dealer_who_wins_or_draws(end: End, next_dealer: int | None) -> None:
    assert KELE.next_dealer(FinishedHand(1, (SeatEnd(),) * 4, end)) == next_dealer


def test_kele_asks_for_piao_unless_the_table_has_none() -> None:
    assert KELE.piao_choices(KELE.complete()) == (0, 5, 10)
    assert KELE.piao_choices(KELE.complete({"piao": False})) == ()
