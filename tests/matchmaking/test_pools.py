"""Reading the pools: what comes with the service, and what a mistake is told as."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fangcheng.rules.v1 import rules_pb2
from fangcheng_evaluation.convert import rule_set_to_wire
from fangcheng_kit import serving
from fangcheng_kit.app import StartFailed
from fangcheng_kit.errors import NotFound
from fangcheng_matchmaking.core import Stake, Timing
from fangcheng_matchmaking.pools import BadPools, load_pools, parse_pools, unplayable
from fangcheng_matchmaking.service import SERVICE, open_service
from fangcheng_matchmaking.settings import MatchmakingSettings
from fangcheng_rules.rulesets import BUILT_IN
from tests.matchmaking.world import World

LISTED = [rule_set_to_wire(rules) for rules in BUILT_IN]

GOOD = """
pools:
  - id: one
    name: the first
    rules: {id: baishan_kele, revision: 2, options: {cap: 0, piao: false, end: word}}
    stakes: [{currency: silver, per_unit: 10, buy_in: 1000}]
    hands: 4
    rounds: 2
    timing: {turn_ms: 3000, between_hands_ms: 0, vacancy_ms: 9000, away: trustee_to_end}
    least_client_version: 7
    fill_with_bots_after_ms: 900
    backfill: true
    bots_where_silver_is_staked: true
  - {id: two, name: 第二, rules: {id: jintan}, starting_chips: 500}
"""


def test_a_file_is_read_in_its_order() -> None:
    pools = parse_pools(GOOD).pools
    assert list(pools) == ["one", "two"]
    one = pools["one"].pool
    assert (one.name, one.least_client_version, one.fill_with_bots_after_ms) == (
        "the first",
        7,
        900,
    )
    assert (one.backfill, pools["two"].pool.backfill) == (True, False)
    assert (one.terms.rule_set, one.terms.revision, one.terms.hands) == ("baishan_kele", 2, 4)
    assert one.terms.options == {"cap": 0, "piao": False, "end": "word"}
    assert one.terms.options["piao"] is False
    assert one.terms.stakes == (Stake(currency="silver", per_unit=10, buy_in=1_000),)
    assert one.terms.timing == Timing(
        turn_ms=3_000, between_hands_ms=0, vacancy_ms=9_000, away="trustee_to_end"
    )
    assert (one.terms.rounds, pools["two"].pool.terms.starting_chips) == (2, 500)
    assert pools["two"].pool.terms.timing == Timing()


def test_the_pools_that_come_with_the_service() -> None:
    offers = load_pools()
    pools = offers.pools
    assert list(pools) == [
        f"{rules.id}-{kind}" for kind in ("practice", "silver") for rules in BUILT_IN
    ]
    for rules in BUILT_IN:
        practice, silver = pools[f"{rules.id}-practice"].pool, pools[f"{rules.id}-silver"].pool
        assert practice.terms.rule_set == silver.terms.rule_set == rules.id
        assert 0 < practice.fill_with_bots_after_ms <= 3_000
        assert {stake.currency for stake in practice.terms.stakes} == {"points"}
        assert {stake.currency for stake in silver.terms.stakes} == {"silver", "points"}
        assert silver.fill_with_bots_after_ms == 0, "bots do not play for silver unasked"
    assert unplayable(offers, LISTED) == []


OLDER = rules_pb2.RuleSet(id="old", revision=2, options=[rules_pb2.OptionSpec(id="late")])


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ("id: riichi", "no evaluator plays riichi"),
        ("id: jintan, revision: 9", "jintan is played in revision 1, not 9"),
        ("id: old, revision: 1", "old is played in revision 3, 2, not 1"),
        ("id: old, options: {late: word}", "old has no option late"),
        ("id: jintan, options: {cup: 1}", "jintan has no option cup"),
        ("id: jintan, options: {cap: true}", "the option cap of jintan cannot be True"),
        ("id: jintan, options: {cap: -1}", "the option cap of jintan cannot be -1"),
        ("id: jintan, options: {cap: 100001}", "the option cap of jintan cannot be 100001"),
        ("id: jintan, options: {cap: high}", "the option cap of jintan cannot be 'high'"),
        (
            "id: jintan, options: {several_winners: 1}",
            "the option several_winners of jintan cannot be 1",
        ),
        ("id: baicheng, options: {length: day}", "the option length of baicheng cannot be 'day'"),
    ],
)
def test_what_no_evaluator_plays_is_told_with_its_pool(rules: str, complaint: str) -> None:
    offers = parse_pools(f"pools: [{{id: one, name: first, rules: {{{rules}}}}}]")
    listed = [*LISTED, rules_pb2.RuleSet(id="old", revision=3), OLDER]
    assert unplayable(offers, listed) == [f"pool one: {complaint}"]


def test_only_tables_of_a_rule_set_that_starts_over_are_filled_up() -> None:
    pool = "{{id: {0}, name: n, rules: {{id: {0}}}, timing: {{vacancy_ms: 1}}, backfill: {1}}}"
    pools = [pool.format(*one) for one in (("jintan", True), ("jintan", False), ("shandong", True))]
    complaint = (
        "pool jintan: backfill: jintan does not start over when a player leaves, its tables close; "
        "take backfill away"
    )
    assert unplayable(parse_pools(f"pools: [{pools[0]}]"), LISTED) == [complaint]
    for played in pools[1:]:
        assert unplayable(parse_pools(f"pools: [{played}]"), LISTED) == []


def test_options_within_their_bounds_and_older_revisions_are_played() -> None:
    text = """
pools:
  - {id: a, name: a, rules: {id: baicheng, options: {length: round, cap: 64}}}
  - {id: b, name: b, rules: {id: jintan, revision: 1, options: {several_winners: false}}}
  - {id: c, name: c, rules: {id: old, revision: 2}}
"""
    assert unplayable(parse_pools(text), [*LISTED, OLDER]) == []


async def test_pools_that_nobody_plays_end_the_start(stopped_world: World) -> None:
    del stopped_world.evaluators.rule_sets[0]
    with pytest.raises(StartFailed, match=r"pools\.yaml: pool silver: no evaluator plays baishan"):
        await stopped_world.start()


async def test_until_an_evaluator_has_listed_the_rule_sets_the_service_is_not_healthy(
    stopped_world: World,
) -> None:
    world = stopped_world
    asked: list[str] = []

    async def silent(do: Callable[[], Any]) -> Any:
        asked.append("ListRuleSets")
        raise NotFound("NOBODY", "not yet")

    world.evaluators.faults["ListRuleSets"].extend([silent] * 2)
    await world.start()
    assert world.running is not None
    async with grpc.aio.insecure_channel(world.running.address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(
            health_pb2.HealthCheckRequest(service=SERVICE)
        )
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
    assert len(asked) == 2
    player = await world.player("ming")
    await player.join("free")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("name: the first", ""), "pools[0].name: is missing"),
        (("hands: 4", "hands: 1001"), "pools[0].hands: must be at most 1000"),
        (("hands: 4", "hands: '4'"), "pools[0].hands: must be a whole number"),
        (("hands: 4", "hnads: 4"), "pools[0].hnads: is no key that is known here"),
        (("buy_in: 1000", "buy_in: -1"), "pools[0].stakes[0].buy_in: must be at least 0"),
        (("per_unit: 10", "per_unit: 0"), "pools[0].stakes[0].per_unit: must be at least 1"),
        (("buy_in: 1000", f"buy_in: {2**53 + 1}"), "pools[0].stakes[0].buy_in: must be at most 9"),
        (("turn_ms: 3000", "turn_ms: 1.5"), "pools[0].timing.turn_ms: must be a whole number"),
        (("trustee_to_end", "wait"), "pools[0].timing.away: must be 'escape' or"),
        (("rounds: 2", "starting_chips: 5"), "pools[0]: starting_chips are counted only where"),
        (("id: two", "id: one"), "pools: the id one is given twice"),
        (("id: jintan", "revision: 1"), "pools[1].rules.id: is missing"),
        (("cap: 0", "cap: 0.5"), "pools[0].rules.options.cap"),
        (
            ("buy_in: 1000}", "buy_in: 1000}, {currency: silver, per_unit: 1}"),
            "pools[0].stakes: the currency silver is given twice",
        ),
    ],
)
def test_a_mistake_is_told_with_its_key(change: tuple[str, str], complaint: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(BadPools) as error:
        parse_pools(GOOD.replace(*change), "my.yaml")
    assert complaint in str(error.value)
    line = re.match(r"my\.yaml:(\d+): ", str(error.value))
    assert line is not None


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ("mode: friendly", "pools[0].mode: must be 'casual', 'ranked', 'anti_cheat' or"),
        ("mode: ranked", "pools[0]: rating: a ranked pool says what it rates by"),
        ("mode: anti_cheat; most_party: 2", "pools[0]: most_party: players of an anti_cheat pool"),
        ("most_party: 5", "pools[0].most_party: must be at most 4"),
        ("rating: {currency: points, spread: 9, widest: 8}", "pools[0].rating: widest is less"),
        ("hold_only: true", "pools[0]: hold_only: nothing is held where no stake has a buy_in"),
        ("starting_chips: 9; stakes: [{currency: a, per_unit: 1}]", "pools[0]: starting_chips are"),
        (
            "backfill: true; timing: {vacancy_ms: 0}",
            "pools[0]: backfill: without timing.vacancy_ms no seat waits for anybody",
        ),
        (
            "stakes: [{currency: a, per_unit: 1, buy_in: 9}]; fill_with_bots_after_ms: 1",
            "pools[0]: fill_with_bots_after_ms: bots would win and lose a",
        ),
        ("newer: {revision: 1, changes: {hands: 4}}", "pools[0].newer.revision: must be greater"),
        ("newer: {revision: 2, changes: {}}", "pools[0].newer.changes: must hold at least 1"),
        ("newer: {revision: 2, changes: {id: x}}", "pools[0].newer.changes.id: cannot be changed"),
        (
            "newer: {revision: 2, changes: {hands: x}}",
            "pools[0].newer.changes.hands: must be a whole number",
        ),
        (
            "newer: {revision: 2, percent: 101, changes: {}}",
            "pools[0].newer.percent: must be at most 100",
        ),
    ],
)
def test_what_does_not_fit_together_is_told_with_its_line(keys: str, complaint: str) -> None:
    lines = ["pools:", "  - id: one", "    name: first", "    rules: {id: jintan}"]
    lines += [f"    {key}" for key in keys.split("; ")]
    with pytest.raises(BadPools) as error:
        parse_pools("\n".join(lines), "my.yaml")
    whole = complaint.startswith("pools[0]: ")
    assert str(error.value).startswith(f"my.yaml:{2 if whole else 5}: {complaint}")


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ("starting_chips: 9; stakes: [{currency: a, per_unit: 1}]", ": starting_chips are counted"),
        ("hold_only: true", ": hold_only: nothing is held where no stake has a buy_in"),
        (
            "stakes: [{currency: a, per_unit: 1}, {currency: a, per_unit: 2}]",
            ".stakes: the currency a is given twice",
        ),
        (
            "fees: [{currency: a, amount: 1}, {currency: a, amount: 1, paid_by: owner}]",
            ".fees: the currency a is given twice",
        ),
        (
            "fees: [{currency: a, amount: 1, paid_by: winner}]",
            ".fees[0].paid_by: must be 'each' or",
        ),
    ],
)
def test_a_kind_of_room_is_checked_as_a_pool_is(keys: str, complaint: str) -> None:
    lines = ["pools: [{id: one, name: first, rules: {id: jintan}}]", "rooms:"]
    lines += ["  - id: friends", "    name: friends", "    rules: {id: jintan}"]
    lines += [f"    {key}" for key in keys.split("; ")]
    with pytest.raises(BadPools) as error:
        parse_pools("\n".join(lines), "my.yaml")
    assert f"rooms[0]{complaint}" in str(error.value)


def test_a_newer_revision_has_what_the_pool_has_but_for_its_changes() -> None:
    text = """
pools:
  - id: one
    name: first
    rules: {id: jintan}
    hands: 8
    least_client_version: 3
    newer: {revision: 2, percent: 12.5, labels: {channel: beta}, changes: {hands: 4}}
"""
    offers = parse_pools(text)
    offer = offers.pools["one"]
    assert offer.newer == replace(offer.pool, revision=2, terms=replace(offer.pool.terms, hands=4))
    assert (offer.percent, offer.labels) == (12.5, {"channel": "beta"})
    assert unplayable(offers, LISTED) == []


@pytest.mark.parametrize("text", ["", "pools: []", "[]", "pools: [1]", "a: ["])
def test_what_is_no_list_of_pools_is_refused(text: str) -> None:
    with pytest.raises(BadPools, match=r"my\.yaml"):
        parse_pools(text, "my.yaml")


async def test_the_service_does_not_start_with_bad_pools(tmp_path: Path) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text("pools: []", "utf-8")
    settings = MatchmakingSettings(
        dev_key="a development key of the tests, long enough",
        database=str(tmp_path / "matchmaking.db"),
        pools=path,
    )
    with pytest.raises(StartFailed, match=r"pools\.yaml:1: pools: must hold at least 1"):
        async with serving("matchmaking", settings, open_service):
            pass
    with pytest.raises(BadPools, match="cannot be read"):
        load_pools(tmp_path / "none.yaml")


async def test_a_database_that_cannot_be_used_ends_the_start_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "matchmaking.db"
    path.write_text("no database" * 500, "utf-8")
    settings = MatchmakingSettings(
        dev_key="a development key of the tests, long enough", database=str(path)
    )
    with pytest.raises(StartFailed, match=r"matchmaking\.db cannot be used: "):
        async with serving("matchmaking", settings, open_service):
            pass
