"""Simulated hands: the same whoever plays them, paid as table and wallet pay, told with care."""

from __future__ import annotations

import html
import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from fangcheng_rules.players import PLAYERS, STRENGTH
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS, rule_set
from fangcheng_rules.simulate import play_hands
from fangcheng_suite.commands import app
from fangcheng_suite.simulation import columns
from fangcheng_suite.simulation.boards import figures_of
from fangcheng_suite.simulation.estimates import Estimate, Measure, difference
from fangcheng_suite.simulation.figures import Figures, Spread, differences
from fangcheng_suite.simulation.hands import ENDS, Session, joined, play_session
from fangcheng_suite.simulation.page import columns_of as columns_drawn
from fangcheng_suite.simulation.plan import Plan, Stakes
from fangcheng_suite.simulation.stakes import Purses, due_of, table_of
from fangcheng_suite.simulation.told import said
from fangcheng_suite.simulation.workers import play
from fangcheng_table.convert_settlement import settle_request, short_seats
from fangcheng_table.events import SeatPlan
from fangcheng_wallet.convert_settlement import settle, settlement_to_wire
from fangcheng_wallet.ledger import HoldRequest, PlaceHolds
from fangcheng_wallet.sqlite import open_sqlite
from fangcheng_wallet.store import Store
from tests.suite.test_readme import commands
from tests.wallet.ledgers import CURRENCIES, deposit, has

Run = Callable[..., Result]

PAGE = Path(__file__).parents[2] / "docs/simulate.md"
BY_RULE_SET = pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)


def a_plan(rules: RuleSet = RULE_SETS[0], **changes: Any) -> Plan:
    plan = Plan(rules.id, rules.revision, rules.complete(), ("efficient",) * 4, 24, 4, 1, Stakes())
    return replace(plan, **changes)


def played(plan: Plan) -> Session:
    return joined(plan, [session for (session,) in play([plan], 1)])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    return lambda *words: runner.invoke(app, ["simulate", *words])


# What is played.


@BY_RULE_SET
def test_a_row_tells_what_its_hand_came_to(rules: RuleSet) -> None:
    plan = a_plan(rules, players=("first_legal", "efficient", "first_legal", "efficient"), hands=4)
    session = play_session(plan, 0).hands
    chance = [plan.chance(0, f"player {seat}") for seat in range(4)]
    players = [PLAYERS[kind](one) for kind, one in zip(plan.players, chance, strict=True)]
    seed = plan.seed_of(0, "walls")
    hands = [hand for hand, _ in play_hands(rules, players, hands=4, seed=seed)]
    for row, hand in zip(session, hands, strict=True):
        assert hand.score is not None
        assert tuple(row["net"]) == hand.score.net
        assert row["moved"].sum() == sum(one.amount for one in hand.score.transfers)
        assert row["dealer"] == hand.dealer
        winners = [one.seat for one in hand.score.winners]
        assert [seat for seat in range(4) if row["winners"] >> seat & 1] == sorted(winners)
        assert row["items"].sum() == sum(len(one.items) for one in hand.score.winners)
    assert session["stays"][:-1].tolist() == [
        one.dealer == other.dealer for one, other in pairwise(hands)
    ]


def test_fewer_hands_are_the_first_of_more() -> None:
    more, fewer = played(a_plan(hands=12)), played(a_plan(hands=8))
    assert np.array_equal(more.hands[:8], fewer.hands)


def test_another_option_leaves_the_walls_as_they_are() -> None:
    plan = a_plan(hands=4)
    other = replace(plan, options={**plan.options, "cap": 0})
    one, two = play_session(plan, 0).hands, play_session(other, 0).hands
    assert np.array_equal(one["discards"], two["discards"])
    assert np.array_equal(one["winners"], two["winners"])


def test_every_player_has_every_seat_equally_often() -> None:
    plan = a_plan()
    seats = [tuple(plan.seated(session)) for session in range(4)]
    assert all(sorted(seat) == [0, 1, 2, 3] for seat in (*seats, *zip(*seats, strict=True)))


# What is paid.


@BY_RULE_SET
async def test_purses_hold_what_wallet_and_table_say(rules: RuleSet, tmp_path: Path) -> None:
    plan = a_plan(rules)
    players = [PLAYERS[STRENGTH](plan.chance(0, "players"))] * 4
    hands = [hand for hand, _ in play_hands(rules, players, hands=12, seed=5)]
    losses = [-min(hand.score.net) for hand in hands if hand.score is not None]
    endings = Counter[str]()
    async with open_sqlite(tmp_path / "wallet.db", CURRENCIES) as store:
        for number, stakes in enumerate(stakes_for(sorted(losses)[6])):
            tables = count()
            purses = Purses(stakes, 0, bankrupt=(0,))
            for hand in hands:
                if purses.bankrupt:
                    names = [f"{number} {next(tables)} {seat}" for seat in range(4)]
                    purses = Purses(stakes, stakes.buy_in)
                    table = replace(
                        table_of(replace(plan, stakes=stakes)),
                        table_id=names[0],
                        seats=await sit_down(store, names, stakes.buy_in),
                    )
                due = due_of(table, hand)
                paid = purses.settle(due)
                done = await store.settle(settle(settle_request(due, {})))
                assert [sum(await has(store, name)) for name in names] == purses.coins
                assert paid.bankrupt == short_seats(settlement_to_wire(done.answer), due)
                endings[f"{number} {bool(paid.bankrupt)}"] += 1
    # Both happened under each of the stakes, so that both were compared.
    assert len(endings) == 6


def stakes_for(units: int) -> tuple[Stakes, ...]:
    """Stakes at which some can pay a hand of so many units and others cannot."""
    return (
        Stakes(7, 7 * units + 3, fee=4),
        Stakes(7, 14 * units, minimum=6 * units),
        Stakes(7, 7 * units + 3, loss_cap=5 * units),
    )


async def sit_down(store: Store, names: list[str], buy_in: int) -> tuple[SeatPlan, ...]:
    """Four players who hold their buy-in and have nothing else."""
    for name in names:
        await store.open_wallet(name)
        await store.deposit(deposit(name, name, buy_in))
    wanted = tuple(HoldRequest(name, "silver", "", buy_in) for name in names)
    held = (await store.place_holds(PlaceHolds(names[0], wanted))).answer
    return tuple(SeatPlan(hold.player_id, hold_ids=(hold.hold_id,)) for hold in held)


def test_a_session_closes_with_its_first_bankrupt() -> None:
    plan = a_plan(stakes=Stakes(10, 300), hands=24, session_hands=12)
    found = played(plan)
    assert (found.hands["coins"].sum(axis=1) == 0).all()  # nothing but between the players
    for purse in found.purses[found.purses["buy_in"] == 300]:
        hands = found.hands[found.hands["session"] == purse["session"]]
        settled = hands[hands["settled"]]
        assert len(settled) == purse["hands"]
        assert not settled["bankrupt"][:-1].any()
        assert settled["bankrupt"][-1] == purse["bankrupt"]
        assert (300 + settled["coins"].sum(axis=0) == purse["coins"]).all()
        assert settled["unpaid"].sum() == purse["unpaid"]
    assert found.purses["bankrupt"].any()


def test_buy_ins_that_nobody_could_play_with_are_not_reckoned() -> None:
    assert Stakes(10, 1_000).buy_ins == (250, 500, 1_000, 2_000, 4_000)
    assert Stakes(10, 1_000, minimum=400).buy_ins == (500, 1_000, 2_000, 4_000)
    assert Stakes(1, 1).buy_ins == (1, 2, 4)


# What is told.


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    chance = np.random.default_rng(20)
    for true in (0.002, 0.3):
        missed = 0
        for _ in range(400):
            # Sessions differ among each other, as those of sticky dealers do.
            of = np.full(60, 16)
            over = chance.binomial(of, np.clip(chance.normal(true, true / 4, 60), 0, 1))
            estimate = Measure(over, of, is_share=True).estimate
            assert estimate.low is not None
            assert estimate.high is not None
            missed += not estimate.low <= true <= estimate.high
        assert missed <= 33  # of 400 at 5 %: 20, and three standard deviations


def test_means_and_differences_hold_the_truth_as_often_as_they_say() -> None:
    chance = np.random.default_rng(21)
    missed = Counter[str]()
    for _ in range(400):
        luck = chance.normal(0, 400, 12)
        of = np.full(12, 16)
        one = Measure((luck + 16 * 100).astype(np.int64), of)
        other = Measure((luck + 16 * 110 + chance.normal(0, 30, 12)).astype(np.int64), of)
        for name, estimate, true in (
            ("mean", one.estimate, 100),
            ("difference", difference(one, other), 10),
        ):
            assert estimate.low is not None
            assert estimate.high is not None
            missed[name] += not estimate.low <= true <= estimate.high
            assert name == "mean" or estimate.high - estimate.low < 10  # the luck is of both
    assert max(missed.values()) <= 33


def test_few_sessions_tell_no_interval_and_none_at_all_no_figure() -> None:
    few = Measure(np.ones(9, np.int64), np.full(9, 4), is_share=True).estimate
    assert (few.value, few.low, few.high, few.of) == (0.25, None, None, 36)
    assert Measure(np.zeros(20, np.int64), np.zeros(20, np.int64)).estimate.value is None


def test_what_was_never_seen_may_be_there_all_the_same() -> None:
    never = Measure(np.zeros(100, np.int64), np.full(100, 10), is_share=True).estimate
    assert (never.value, never.low) == (0, 0)
    assert never.high == pytest.approx(0.0039, abs=1e-4)  # Wilson's for none of 1,000, t(99)


@pytest.mark.parametrize(
    ("estimate", "unit", "text"),
    [
        (Estimate(0.24871, 0.24412, 0.25333, 9), "%", "24.87 % (24.41 to 25.33)"),
        (Estimate(0.24871, 0.2, 0.3, 9), "%", "24.9 % (20.0 to 30.0)"),
        (Estimate(1234.5, 1100.0, 1369.0, 9), "units", "1,234 (1,100 to 1,369)"),
        (Estimate(0.5, None, None, 9), "", "0.500"),
        (Estimate(None, None, None, 0), "%", "none"),
        (Estimate(0.0, 0.0, 0.0, 9), "units", "0"),
    ],
)
def test_figures_have_as_many_digits_as_they_are_worth(
    estimate: Estimate, unit: str, text: str
) -> None:
    assert said(estimate, unit) == text


def test_a_spread_is_drawn_in_columns_and_nothing_is_left_out() -> None:
    counts = dict.fromkeys(range(-300, 300), 10) | {-5_000: 1, 9_000: 1}
    spread = Spread("id", "", "", "units", "hands", dict(sorted(counts.items())))
    drawn = columns_drawn(spread)
    assert len(drawn) <= 41
    assert sum(share for _, share in drawn) == pytest.approx(100, abs=0.01)
    assert drawn[0][0].startswith("up to")
    assert drawn[-1][0].endswith("or more")
    assert [spread.quantile(share) for share in (0.5, 1)] == [-1, 9_000]


@pytest.fixture(scope="module")
def figures() -> Figures:
    plan = a_plan(hands=24, players=("efficient", "first_legal", "efficient", "first_legal"))
    return figures_of(plan, played(plan))


def value(figures: Figures, board: str, row: str, column: str) -> float:
    found = next(one for one in figures.boards if one.id == board).cells[row, column].estimate
    assert found.value is not None
    return found.value


def test_figures_add_up(figures: Figures) -> None:
    ends = sum(value(figures, "ends", end, "share") for end in ENDS if end != "eight_flowers")
    assert ends == pytest.approx(1)
    for rows in (("seat_0", "seat_1", "seat_2", "seat_3"), ("dealer", "next", "across", "before")):
        wins = sum(value(figures, "places", row, "wins") for row in rows)
        assert wins == pytest.approx(1 - value(figures, "ends", "draw", "share"))
        dealt_in = sum(value(figures, "places", row, "deals_in") for row in rows)
        assert dealt_in == pytest.approx(value(figures, "ends", "discard", "share"))
        net = sum(value(figures, "places", row, "net") for row in rows)
        assert net == pytest.approx(-value(figures, "moved", "house", "units"))
    of_players = [value(figures, "players", kind, "wins") for kind in ("efficient", "first_legal")]
    assert 2 * sum(of_players) == pytest.approx(1 - value(figures, "ends", "draw", "share"))
    assert value(figures, "players", "efficient", "net") > 0


def test_a_change_that_touches_pay_alone_is_seen_in_pay_alone() -> None:
    plan = a_plan(rule_set("jintan"), hands=24, session_hands=2)
    other = replace(plan, options={**plan.options, "cap": 10})
    one, two = figures_of(plan, played(plan)), figures_of(other, played(other))
    found = {(each.board.id, each.row.id, each.column.id): each for each in differences(one, two)}
    assert found["ends", "discard", "share"].more.value == 0
    assert found["course", "discards", "mean"].more.value == 0
    assert found["wins", "capped", "mean"].beyond_chance
    cheaper = found["wins", "won", "mean"].more
    assert cheaper.high is not None
    assert cheaper.high < 0


# The command.


def test_the_command_tells_prints_and_writes(run: Run, tmp_path: Path) -> None:
    words = ("--rule-set", "shandong", "--hands", "20", "--session-hands", "2", "--seed", "3")
    files = ("--report", "out.html", "--parquet", "out.parquet", "--compare", "several_winners=off")
    ended = run(*words, *files)
    assert ended.exit_code == 0, ended.output
    assert re.search(r"20 hands of \S+, seed 3", ended.output)
    assert re.search(r"^自摸 win by self-draw +\d", ended.output, re.MULTILINE)
    page = (tmp_path / "out.html").read_text("utf-8")
    told = re.sub(r"<[^>]+>|\s+", " ", page)
    assert "shandong revision 1, seed 3" in told
    assert "With several_winners off" in told
    for option in rule_set("shandong").options:
        assert option.id in told
    (command,) = re.findall(r"The same again: ([^<]+)", page)
    again = shlex.split(html.unescape(command))
    assert again[:2] == ["fangcheng", "simulate"]
    (tmp_path / "first.html").write_text(page, "utf-8")
    assert run(*again[2:], "--report", "out.html").exit_code == 0
    assert (tmp_path / "out.html").read_text("utf-8") == page


def test_json_and_parquet_tell_the_same(run: Run, tmp_path: Path) -> None:
    ended = run("--hands", "20", "--session-hands", "2", "--json", "--parquet", "out.parquet")
    assert ended.exit_code == 0, ended.output
    told = json.loads(ended.stdout)
    table = parquet.read_table(tmp_path / "out.parquet")
    rows = table.to_pylist()
    assert len(rows) == told["hands"] == 20
    for seat in range(4):
        mean = told["boards"]["places"][f"seat_{seat}"]["net"]["value"]
        assert mean == sum(row[f"net_{seat}"] for row in rows) / 20
    drawn = told["boards"]["ends"]["draw"]["share"]
    assert drawn["value"] == sum(row["end"] == "draw" for row in rows) / 20
    assert drawn["low"] <= drawn["value"] <= drawn["high"]
    assert all(row["source"] is None for row in rows if row["end"] in ("draw", "self_draw"))
    assert all(field.metadata[b"meaning"] for field in table.schema)
    (query,) = re.findall(r"^```sql\n(.*?)```", PAGE.read_text("utf-8"), re.M | re.S)
    found = duckdb.sql(query.replace("jintan.parquet", str(tmp_path / "out.parquet"))).fetchall()
    costly = sum(min(row[f"net_{seat}"] for seat in range(4)) <= -20 for row in rows)
    assert costly > 0
    assert found == [(costly / 20,)]
    plans = json.loads(table.schema.metadata[b"fangcheng"])["plans"]
    assert plans[0]["seed"] == told["plan"]["seed"] == 1


def test_a_pool_is_played_as_it_is_but_for_what_is_given(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pools.yaml").write_text(POOL, "utf-8")
    words = ("--pool", "evening", "--pools", "pools.yaml", "--hands", "2", "--json")
    plan = json.loads(run(*words).stdout)["plan"]
    assert (plan["rule_set"], plan["options"]["cap"], plan["session_hands"]) == ("baicheng", 32, 8)
    stakes = {"per_unit": 20, "buy_in": 900, "minimum": 100, "loss_cap": 300, "fee": 15}
    assert plan["stakes"] == stakes
    given = ("--option", "cap=16", "--buy-in", "400", "--session-hands", "2", "--fee", "0")
    plan = json.loads(run(*words, *given).stdout)["plan"]
    assert (plan["options"]["cap"], plan["session_hands"]) == (16, 2)
    assert plan["stakes"] == stakes | {"buy_in": 400, "fee": 0}


POOL = """
pools:
  - id: evening
    name: Evening
    rules: {id: baicheng, options: {cap: 32}}
    stakes:
      - {currency: points, book: baicheng, per_unit: 1}
      - {currency: silver, per_unit: 20, buy_in: 900, minimum: 100, loss_cap_per_hand: 300}
    fees: [{currency: silver, amount: 15}]
    hands: 8
rooms: []
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rule-set", "riichi"], "there is no rule set riichi"),
        (["--players", "lucky"], "There are: "),
        (["--players", "efficient,efficient"], "Give one kind for all seats, or four"),
        (["--option", "cap=-1"], "--option: cap is a whole number"),
        (["--compare", "cap"], "--compare 'cap': no value"),
        (["--compare", "cap=50"], "--compare changes nothing"),
        (["--pool", "nowhere"], "There are: baishan_kele-practice"),
        (["--pools", "nowhere.yaml", "--pool", "evening"], "nowhere.yaml: cannot be read"),
        (["--minimum", "6000"], "Give a larger --buy-in"),
        (["--report", "nowhere/out.html"], "cannot write nowhere/out.html"),
    ],
)
def test_what_cannot_be_played_is_told_at_once(run: Run, words: list[str], said: str) -> None:
    ended = run(*words, "--hands", "1000000")
    assert ended.exit_code == 1
    assert said in ended.output


def test_without_pyarrow_the_command_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ended = run("--hands", "1000000", "--parquet", "out.parquet")
    assert ended.exit_code == 1
    assert "pip install 'fangcheng[parquet]'" in ended.output


@pytest.mark.parametrize(
    "words", [words[1:] for words in commands() if words[0] == "simulate"], ids=" ".join
)
def test_what_the_pages_say_runs(run: Run, words: list[str]) -> None:
    ended = run(*words, "--hands", "12", "--session-hands", "1", "--workers", "1")
    assert ended.exit_code == 0, ended.output


def test_the_page_names_every_column(run: Run) -> None:
    page = PAGE.read_text("utf-8")
    plan = a_plan(hands=1)
    for name in columns.columns_of(plan, play_session(plan, 0).hands):
        general = re.sub(r"_\d$", "_0", re.sub(r"^(item|moved)_.*", r"\1_", name))
        assert f"`{general}" in page, name


def test_the_page_names_every_kind_of_player() -> None:
    page = PAGE.read_text("utf-8")
    assert all(f"`{kind}`" in page for kind in PLAYERS)
