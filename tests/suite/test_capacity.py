"""The plan of `fangcheng capacity`: arithmetic that a reader can do again, and clear complaints."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fangcheng_suite.capacity.figures import Figure, costs, figures
from fangcheng_suite.capacity.model import (
    SERVICES,
    Assumptions,
    Costs,
    Plan,
    limits_of,
    pace_of,
    plan_for,
)
from fangcheng_suite.capacity.prices import Prices, costs_a_month, load_prices
from fangcheng_suite.commands import app

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
EXAMPLE = ROOT / "docs" / "operations" / "prices.example.yaml"
MEASURED = costs()

ROUND = Costs(
    acts_per_discard=1.0,
    table_ms_per_act=2.0,
    evaluation_ms_per_act=1.0,
    evaluation_ms_per_analysis=1.0,
    matchmaking_ms_per_seat=5.0,
    wallet_ms_per_seat=5.0,
    wallet_ms_per_hand=10.0,
    wallet_ms_per_read=1.0,
    postgresql_ms_per_hand=20.0,
    table_bytes=100_000.0,
    process_bytes=dict.fromkeys(SERVICES, 1e8),
    journal_bytes_per_hand=10_000.0,
    ledger_bytes_per_hand=5_000.0,
    queues_bytes_per_seat=1_000.0,
    log_bytes_per_hand=30_000.0,
    seat_bytes_per_hand=10_000.0,
    spectator_bytes_per_hand=10_000.0,
    settlements_per_second=500.0,
    seats_per_second=200.0,
)
"""Costs that are easy to reckon with."""
EASY = Assumptions(
    seated_share=1.0,
    queued_share=0.0,
    turn_seconds=2.0,
    between_hands_seconds=20.0,
    discards_per_hand=40.0,
    hands_per_table=10.0,
    spectators_per_table=1.0,
    analyses_per_hour=36.0,
    reads_per_hour=36.0,
    average_load=0.5,
    busy_share=0.5,
    spare_replicas=1,
)


def test_a_plan_that_was_reckoned_by_hand() -> None:
    """4,000 players are 1,000 tables; a hand takes 40 × 2 + 20 = 100 s: 10 hands end a second."""
    plan = plan_for(4_000, EASY, ROUND)
    pace = plan.pace
    assert (pace.tables, pace.hands_per_second) == (1_000, 10)
    assert pace.acts_per_second == 10 * 40
    assert pace.seats_per_second == 10 * 4 / 10
    assert pace.analyses_per_second == pace.reads_per_second == 40
    assert pace.streams == 4_000 + 1_000
    assert pace.hands_per_day == 10 * 86_400 / 2

    busy = {one.name: one.busy_cores for one in plan.services}
    assert busy == pytest.approx(
        {
            "evaluation": 0.400 + 0.040,
            "table": 0.800,
            "wallet": 0.100 + 0.020 + 0.040,
            "matchmaking": 0.020,
        }
    )
    # At most half busy, and one to spare.
    replicas = {one.name: one.replicas for one in plan.services}
    assert replicas == {"evaluation": 2, "table": 3, "wallet": 2, "matchmaking": 2}
    assert {one.name: one.memory_bytes for one in plan.services} == {
        "evaluation": 2e8,
        "table": 3e8 + 1_000 * 100_000,
        "wallet": 2e8,
        "matchmaking": 2e8,
    }
    assert (plan.database_busy_cores, plan.database_cores) == (pytest.approx(0.2), 1)
    assert plan.cores == 9 + 2
    assert plan.growth_bytes_per_day == 432_000 * 15_000
    assert plan.queues_bytes_per_day == 172_800 * 1_000
    assert plan.log_bytes_per_day == 432_000 * 30_000
    # Four seats and a spectator, 10 kB each for every hand.
    assert plan.network_bits_per_second == 10 * 50_000 * 8
    assert plan.network_bytes_per_day == 432_000 * 50_000
    # A quarter of a hand in a hundred seconds for each player, half of what was seen at most.
    assert {one.name: round(one.most_players) for one in plan.limits} == {
        "ledger": 100_000,  # 250 hands a second
        "queues": 100_000,  # 100 seats a second
    }
    assert plan.cells == 1


def test_what_a_plan_costs_was_reckoned_by_hand() -> None:
    prices = Prices(
        currency="EXAMPLE",
        core_hour=1,
        gib_per_core=0.1,
        gib_hour=0,
        database_core_hour=2,
        storage_gib_month=1,
        network_gib=1,
        kept_days=10,
    )
    paid = costs_a_month(plan_for(4_000, EASY, ROUND), prices)
    assert paid["cores of services"] == 720 * 9
    assert paid["cores of PostgreSQL"] == 720 * 2 * 2
    assert paid["storage"] == pytest.approx(2 * 10 * 432_000 * 15_000 / 2**30)
    assert paid["network"] == pytest.approx(30 * 432_000 * 50_000 / 2**30)


def amounts(plan: Plan) -> tuple[float, ...]:
    return (
        plan.cells,
        plan.cores,
        plan.memory_bytes,
        plan.database_cores,
        plan.growth_bytes_per_day,
        plan.network_bits_per_second,
        *(one.replicas for one in plan.services),
    )


def test_more_players_never_need_less() -> None:
    players = [round(10 ** (exponent / 4)) for exponent in range(32)]
    plans = [amounts(plan_for(count, Assumptions(), MEASURED)) for count in players]
    for less, more in pairwise(plans):
        assert all(a <= b for a, b in zip(less, more, strict=True)), (less, more)


@pytest.mark.parametrize(
    ("changed", "value"),
    [("busy_share", 0.3), ("turn_seconds", 2.0), ("spare_replicas", 2), ("reads_per_hour", 500)],
)
def test_what_asks_for_more_is_planned_with_more(changed: str, value: float) -> None:
    usual = plan_for(50_000, Assumptions(), MEASURED)
    asked = plan_for(50_000, replace(Assumptions(), **{changed: value}), MEASURED)
    assert asked.cores > usual.cores


def test_no_core_is_busier_than_asked_and_one_replica_may_be_away() -> None:
    given = Assumptions()
    for players in (1, 10_000, 100_000, 10_000_000):
        plan = plan_for(players, given, MEASURED)
        for one in plan.services:
            left = one.replicas - plan.cells * given.spare_replicas
            assert one.busy_cores / left <= given.busy_share + 1e-9
            assert one.replicas % plan.cells == 0
        assert plan.players / plan.cells <= min(one.most_players for one in plan.limits)


def test_the_pace_is_in_proportion() -> None:
    one, thousand = (pace_of(count, Assumptions(), MEASURED) for count in (1, 1_000))
    assert thousand.hands_per_second == pytest.approx(1_000 * one.hands_per_second)
    assert [limit.name for limit in limits_of(Assumptions(), MEASURED)]


@pytest.mark.parametrize(
    "figure", [one for one in figures() if one.result], ids=lambda one: str(one.name)
)
def test_the_figures_are_those_of_the_benchmarks(figure: Figure) -> None:
    benchmark, group, what = figure.result
    lines = json.loads((RESULTS / f"{benchmark}.json").read_text("utf-8"))["lines"]
    (line,) = [one for one in lines if one["group"].startswith(group) and one["what"] == what]
    assert figure.value == pytest.approx(line["per_second"] * figure.times, rel=0.01)


# The command.


def fangcheng(*words: str) -> tuple[int, str]:
    ended = CliRunner().invoke(app, ["capacity", *words])
    return ended.exit_code, ended.output


def test_the_command_tells_a_plan() -> None:
    code, told = fangcheng("--players", "10000", "--prices", str(EXAMPLE))
    assert code == 0, told
    for word in ("10,000 players", *SERVICES, "PostgreSQL", "ledger", "Mbit/s", "EXAMPLE"):
        assert word in told
    assert "Never run at this size" in told
    assert "extrapolation" not in told


def test_beyond_what_was_measured_it_says_so() -> None:
    code, told = fangcheng("--players", "10000000")
    assert code == 0
    assert "extrapolation" in told
    assert "cells" in told


def test_it_answers_in_json() -> None:
    code, told = fangcheng("--players", "10000", "--json", "--turn-seconds", "3")
    assert code == 0
    answer = json.loads(told)
    assert answer["plan"]["players"] == 10_000
    assert answer["assumptions"]["turn_seconds"] == 3
    assert answer["is_extrapolation"]
    _, small = fangcheng("--players", "5000", "--json")
    assert not json.loads(small)["is_extrapolation"]
    assert "Never run" not in fangcheng("--players", "5000")[1]


def test_shares_that_are_more_than_all_are_refused() -> None:
    code, told = fangcheng("--players", "10", "--seated-share", "0.9", "--queued-share", "0.2")
    assert code == 1
    assert "more than 1 together" in told


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ("core_hour: -1", "core_hour"),
        ("core_hour: .nan", "core_hour"),
        ("core_hour: cheap", "core_hour"),
        ("per_core: 1", "per_core"),
        ("kept_days: 0", "kept_days"),
        ("[", "not YAML"),
        ("kept_days: 2026-99-99", "not YAML"),
        ("core_hour: " + "[" * 5_000, "too deeply nested"),
    ],
)
def test_a_price_that_cannot_be_used_is_named(tmp_path: Path, changed: str, complaint: str) -> None:
    file = tmp_path / "prices.yaml"
    key = changed.partition(":")[0]
    kept = [
        line for line in EXAMPLE.read_text("utf-8").splitlines() if not line.startswith(f"{key}:")
    ]
    file.write_text("\n".join([*kept, changed]), "utf-8")
    code, told = fangcheng("--players", "10", "--prices", str(file))
    assert code == 1
    assert complaint in told


def test_the_example_says_that_it_is_one() -> None:
    assert load_prices(EXAMPLE).currency == "EXAMPLE"
