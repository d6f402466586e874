"""Reading the pools: what comes with the service, and what a mistake is told as."""

from __future__ import annotations

from pathlib import Path

import pytest

from fangcheng_kit import serving
from fangcheng_kit.app import StartFailed
from fangcheng_matchmaking.core import Stake, Timing
from fangcheng_matchmaking.pools import BadPools, load_pools, parse_pools
from fangcheng_matchmaking.service import open_service
from fangcheng_matchmaking.settings import MatchmakingSettings

GOOD = """
pools:
  - id: one
    name: the first
    rules: {id: baishan_kele, revision: 2, options: {cap: 0, piao: false, end: word}}
    stakes: [{currency: silver, per_unit: 10, buy_in: 1000}]
    hands: 4
    timing: {turn_ms: 3000, between_hands_ms: 0}
    least_client_version: 7
    fill_with_bots_after_ms: 900
  - {id: two, name: 第二, rules: {id: jintan}}
"""


def test_a_file_is_read_in_its_order() -> None:
    pools = parse_pools(GOOD)
    assert list(pools) == ["one", "two"]
    one = pools["one"]
    assert (one.name, one.least_client_version, one.fill_with_bots_after_ms) == (
        "the first",
        7,
        900,
    )
    assert (one.terms.rule_set, one.terms.revision, one.terms.hands) == ("baishan_kele", 2, 4)
    assert one.terms.options == {"cap": 0, "piao": False, "end": "word"}
    assert one.terms.options["piao"] is False
    assert one.terms.stakes == (Stake(currency="silver", per_unit=10, buy_in=1_000),)
    assert one.terms.timing == Timing(turn_ms=3_000, between_hands_ms=0)
    assert pools["two"].terms.timing == Timing()


def test_the_pools_that_come_with_the_service() -> None:
    pools = load_pools()
    assert set(pools) >= {"kele-practice", "kele-silver", "kele-demo"}
    practice, silver, demo = (pools[name] for name in ("kele-practice", "kele-silver", "kele-demo"))
    assert 0 < practice.fill_with_bots_after_ms <= 3_000
    assert all(not stake.buy_in for stake in practice.terms.stakes)
    assert {stake.currency for stake in silver.terms.stakes} == {"silver", "points"}
    assert silver.fill_with_bots_after_ms == 0
    assert demo.terms.hands == 8
    assert (demo.terms.timing.claim_window_ms, demo.terms.timing.between_hands_ms) == (0, 0)
    for pool in pools.values():
        if any(stake.currency == "silver" for stake in pool.terms.stakes):
            assert pool.fill_with_bots_after_ms == 0, "bots do not play for silver unasked"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("name: the first", ""), "pools[0].name: Field required"),
        (("hands: 4", "hands: 1001"), "pools[0].hands: Input should be less than or equal to 1000"),
        (("hands: 4", "hands: '4'"), "pools[0].hands: Input should be a valid integer"),
        (("hands: 4", "hnads: 4"), "pools[0].hnads: Extra inputs are not permitted"),
        (("buy_in: 1000", "buy_in: -1"), "pools[0].stakes[0].buy_in: Input should be greater"),
        (("per_unit: 10", "per_unit: 0"), "pools[0].stakes[0].per_unit: Input should be greater"),
        (("buy_in: 1000", f"buy_in: {2**53 + 1}"), "pools[0].stakes[0].buy_in: Input should be"),
        (("turn_ms: 3000", "turn_ms: 1.5"), "pools[0].timing.turn_ms: Input should be a valid"),
        (("id: two", "id: one"), "pools: the id one is given twice"),
        (("id: jintan", "revision: 1"), "pools[1].rules.id: Field required"),
        (("cap: 0", "cap: 0.5"), "pools[0].rules.options.cap"),
        (
            ("buy_in: 1000}", "buy_in: 1000}, {currency: silver, per_unit: 1}"),
            "pools[0].stakes: the currency silver is staked twice",
        ),
    ],
)
def test_a_mistake_is_told_with_its_key(change: tuple[str, str], complaint: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(BadPools) as error:
        parse_pools(GOOD.replace(*change), "my.yaml")
    assert f"my.yaml: {complaint}" in str(error.value)


@pytest.mark.parametrize("text", ["", "pools: []", "[]", "pools: [1]", "a: ["])
def test_what_is_no_list_of_pools_is_refused(text: str) -> None:
    with pytest.raises(BadPools, match=r"my\.yaml"):
        parse_pools(text, "my.yaml")


async def test_the_service_does_not_start_with_bad_pools(tmp_path: Path) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text("pools: []", "utf-8")
    settings = MatchmakingSettings(
        dev_key="a development key of the tests, long enough",
        database=tmp_path / "matchmaking.db",
        pools=path,
    )
    with pytest.raises(StartFailed, match=r"pools\.yaml: pools: List should have at least 1 item"):
        async with serving("matchmaking", settings, open_service):
            pass
    with pytest.raises(BadPools, match="cannot be read"):
        load_pools(tmp_path / "none.yaml")


async def test_a_database_that_cannot_be_used_ends_the_start_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "matchmaking.db"
    path.write_text("no database" * 500, "utf-8")
    settings = MatchmakingSettings(
        dev_key="a development key of the tests, long enough", database=path
    )
    with pytest.raises(StartFailed, match=r"matchmaking\.db cannot be used: "):
        async with serving("matchmaking", settings, open_service):
            pass
