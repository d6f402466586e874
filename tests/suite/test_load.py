"""`fangcheng load`: what it measures, how it is planned, and a table that it plays."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner, Result

from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng.wallet.v1 import wallet_pb2
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client.view import SeatView, TableView
from fangcheng_suite.access import Access
from fangcheng_suite.commands import app
from fangcheng_suite.errors import SuiteError
from fangcheng_suite.load.choosing import choose
from fangcheng_suite.load.client import Client, Orders
from fangcheng_suite.load.measured import (
    ACTS,
    ANALYZED,
    HANDS,
    LATE,
    SEATED,
    SEEN,
    SETTLED,
    TAKEN,
    Slice,
    Spread,
)  # fmt: skip
from fangcheng_suite.load.money import Money, pools_of
from fangcheng_suite.load.outcome import Audit, Moment, Outcome
from fangcheng_suite.load.playing import Wish
from fangcheng_suite.load.report import as_json, lines, write_report
from fangcheng_suite.load.way import Way
from tests.suite.whole import KEY, Suite

PLAYERS = [(f"load-{number}", "silver") for number in range(4)]

times = st.lists(st.floats(1e-6, 1e4), min_size=1, max_size=200)


def spread_of(seconds: list[float]) -> Spread:
    spread = Spread()
    for one in seconds:
        spread.add(one)
    return spread


@given(times, st.floats(0.01, 1))
def test_a_percentile_is_exact_to_one_in_a_hundred(seconds: list[float], share: float) -> None:
    ordered = sorted(seconds)
    exact = next(
        one for number, one in enumerate(ordered, 1) if number >= share * len(ordered) - 1e-9
    )
    found = spread_of(seconds).percentile(share)
    assert found is not None
    assert found == pytest.approx(exact, rel=0.011)
    assert found <= ordered[-1]


@given(times, times)
def test_whoever_measured_it_all_adds_up(some: list[float], others: list[float]) -> None:
    one, other = Slice(), Slice(counts=Counter(hands=2), errors=Counter({("Act", "X"): 1}))
    for seconds in some:
        one.time(SEEN, seconds)
    for seconds in others:
        other.time(SEEN, seconds)
    one.take(Slice.from_json(json.loads(json.dumps(other.to_json()))))
    assert one.spread(SEEN) == spread_of(some + others)
    assert (one.counts, one.errors) == (other.counts, other.errors)


def test_of_nothing_there_is_no_percentile() -> None:
    assert Spread().percentile(0.5) is None
    assert Slice().spread(SEEN).count == 0


def action(kind: str, tile: int = 0, declare: str = "") -> state_pb2.Action:
    return state_pb2.Action(kind=kind, tile=tile, declare=declare)


def discards(hand: list[int]) -> list[state_pb2.Action]:
    return [action("discard", tile) for tile in sorted(set(hand))]


def chosen(hand: list[int], *actions: state_pb2.Action) -> state_pb2.Action:
    view = TableView(own_seat=0, seats=[SeatView(concealed=hand)] + [SeatView()] * 3)
    return choose(view, events_pb2.Prompt(kind="turn", actions=actions), random.Random(1))


def test_players_keep_what_belongs_together() -> None:
    hand = [11, 12, 13, 25, 25, 37, 38, 31, 44, 44, 44, 46, 21, 22]
    assert chosen(hand, *discards(hand)).tile in (31, 46)  # one bamboo, green dragon: alone
    assert chosen(hand, *discards(hand), action("win")).kind == "win"
    assert chosen(hand, *discards(hand), action("kong", 44)).kind == "kong"
    ready = action("discard", 22, "ting")
    assert chosen(hand, *discards(hand), ready) == ready


def test_players_claim_some_pongs_and_answer_what_else_is_asked() -> None:
    claims = [action("pong", 25), action("pass")]
    view = TableView(own_seat=0)
    prompt = events_pb2.Prompt(kind="claim", actions=claims)
    chance = random.Random(1)
    kinds = Counter(choose(view, prompt, chance).kind for _ in range(100))
    assert set(kinds) == {"pong", "pass"}
    assert chosen([], action("piao")).kind == "piao"
    assert chosen([], action("chi", 12), action("pass")).kind == "pass"


def wish(**more: Any) -> Wish:
    usual: dict[str, Any] = {
        "tables": 10,
        "pace": "human",
        "seconds": 60.0,
        "rule_sets": ["jintan", "shandong"],
        "pools": [],
        "clients": 3,
        "hints": 0.1,
        "seed": 1,
        "silver": True,
    }
    return Wish(**usual | more)


@pytest.mark.parametrize(
    "more", [{}, {"rule_sets": [], "pools": ["a", "b", "c", "d"]}], ids=["its own", "one that runs"]
)
def test_each_client_has_pools_of_its_own_and_four_players_for_each_table(more: Any) -> None:
    groups = wish(**more).plan().players("load")
    players = [player_id for group in groups for player_id, _ in group]
    assert len(groups) == 3
    assert len(set(players)) == len(players) == 40
    pools = [{pool for _, pool in group} for group in groups]
    assert Counter(pool for own in pools for pool in own).most_common(1)[0][1] == 1
    assert set().union(*pools) == (
        set(more["pools"])
        if more
        else {f"load-{rules}-{n}" for rules in ("jintan", "shandong") for n in (1, 2, 3)}
    )
    for group in groups:
        assert all(count % 4 == 0 for count in Counter(pool for _, pool in group).values())


def test_clients_are_as_many_as_there_is_work_for() -> None:
    assert wish(clients=None, tables=20).plan().clients == 1
    assert wish(clients=8, tables=2).plan().clients == 2
    assert wish(clients=8, pools=["one"], rule_sets=[]).plan().clients == 1


def test_a_pace_is_human_fast_or_seconds() -> None:
    paces = {pace: wish(pace=pace).plan().turn_seconds for pace in ("human", "fast", "0.5")}
    assert paces == {"human": 3.0, "fast": 0.0, "0.5": 0.5}
    for pace in ("slow", "-1", "61", "nan"):
        with pytest.raises(SuiteError, match="is no pace") as told:
            wish(pace=pace).plan()
        assert "human, fast" in told.value.hint


def test_the_report_names_the_command_without_what_opens_the_suite() -> None:
    assert wish(seconds=90.0, rule_sets=["jintan"]).plan().command == (
        "fangcheng load --tables 10 --pace human --minutes 1.5 --rule-set jintan --clients 3 "
        "--hints 0.1 --seed 1"
    )


def moment(until: float, *, client: float = 0.1, late: float = 1e-3, **counts: int) -> Moment:
    """Ten seconds in which five discards took 20 ms each, and two players were seated."""
    happened = Slice(counts=Counter(counts))
    for _ in range(5):
        happened.time(SEEN, 0.020)
        happened.time(LATE, late)
    happened.time(SEATED, 0.3)
    happened.errors["Act", "STALE_DECISION"] += 1
    return Moment(until, 10.0, happened, 7, {"client": client, "table": 0.5}, {"table": 2.0**27})


def outcome(*moments: Moment, **more: Any) -> Outcome:
    found = Outcome("fangcheng load", "here", "a machine", "now", 8, ["silver"], "human", **more)
    found.moments = list(moments)
    found.seconds, found.seating_seconds = 20.0, 10.0
    found.audit = Audit(True, 12, 3, [])
    return found


def test_the_seating_counts_for_nothing_but_itself() -> None:
    found = outcome(
        moment(10.0, hands=50), moment(20.0, hands=6, acts=90), moment(30.0, hands=4, acts=30)
    )
    assert found.a_minute(HANDS) == 30
    assert found.a_minute(ACTS) == 360
    assert found.spreads[SEEN].count == 10
    assert found.spreads[SEATED].count == 3
    assert found.tables == 7
    assert found.errors == {("Act", "STALE_DECISION"): 3}
    assert found.unexpected == 0
    assert found.processes["table"] == (0.5, 0.5, 2.0**27)


def test_a_load_that_is_slow_itself_says_so() -> None:
    assert outcome(moment(20.0), moment(30.0)).bottleneck == ""
    busy = outcome(moment(20.0, client=0.9), moment(30.0, client=0.95)).bottleneck
    assert "client used 92% of a core" in busy or "client used 93% of a core" in busy
    assert "late by 15.0 ms" in outcome(moment(20.0, late=0.015)).bottleneck


def test_the_outcome_is_told_as_lines_as_json_and_as_a_page(tmp_path: Path) -> None:
    found = outcome(*(moment(10.0 * number, hands=3, acts=40) for number in range(1, 6)))
    found.moments[-1].happened.errors["JoinQueue", "UNAVAILABLE"] += 2
    console = Console(width=200, record=True, file=(tmp_path / "out").open("w"))
    for line in lines(found):
        console.print(line)
    text = console.export_text()
    assert "7 tables were in play" in text
    assert "8 were wanted" in text
    assert "The ledger is balanced: 12 entries, 3 settlements." in text
    told = as_json(found)
    assert json.loads(json.dumps(told)) == told
    assert told["milliseconds"][SEEN]["p99"] == pytest.approx(20, rel=0.011)
    assert {"call": "JoinQueue", "reason": "UNAVAILABLE", "times": 2, "expected": False} in (
        told["errors"]
    )
    write_report(found, tmp_path / "load.html")
    page = (tmp_path / "load.html").read_text("utf-8")
    for part in ("Act seen by all seats", "Cores over time", "UNAVAILABLE", "not the bottleneck"):
        assert part in page


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("FANGCHENG_STATE", str(tmp_path / "state"))
    return lambda *words: CliRunner().invoke(app, ["load", *words])


ELSEWHERE = ("--matchmaking", "a:1", "--table", "a:2", "--wallet", "a:3", "--evaluation", "a:4")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--running"], "no suite runs"),
        (["--running", *ELSEWHERE], "exclude each other"),
        (["--running", "--rule-set", "jintan"], "with --pool"),
        (["--pool", "silver"], "--running"),
        (["--rule-set", "riichi"], "there is no rule set riichi"),
        (["--pace", "quick"], "quick is no pace"),
        ([*ELSEWHERE], "--pool"),
        (["--matchmaking", "a:1", "--pool", "silver"], "--table and --wallet and --evaluation"),
        ([*ELSEWHERE, "--pool", "silver", "--key", "short"], "--signing-key"),
        (["--report", "nowhere/load.html"], "no folder that may be written"),
    ],
)
def test_what_does_not_go_together_is_refused(
    run: Callable[..., Result], words: list[str], told: str
) -> None:
    result = run(*words)
    assert result.exit_code == 1
    assert told in result.stderr


async def test_a_client_plays_a_table_and_tells_what_it_measured(tmp_path: Path) -> None:
    suite = Suite(tmp_path, {})
    await suite.start()
    try:
        way = Way({name: one.address for name, one in suite.running.items()}, KEY)
        access = way.access()
        pools = await pools_of(access, ["silver"])
        async with Money(access) as money:
            assert [stake.currency for stake in money.staked(pools["silver"])] == ["silver"]
            await money.give(PLAYERS, pools)
            told = await _played(access, way)
            await money.take_back(PLAYERS)
        await _nothing_is_left(suite)
    finally:
        await suite.stop()
    for measure in (SEEN, TAKEN, SEATED, ANALYZED, SETTLED, LATE):
        assert told.spread(measure).count > 0, measure
    assert told.spread(TAKEN).count <= told.counts[ACTS]
    assert told.counts[HANDS] >= 1
    assert set(told.errors) <= {("Act", "STALE_DECISION")}


async def _played(access: Access, way: Way) -> Slice:
    """Until a hand has been settled; then the players leave."""
    told, tables = Slice(), [0]
    settled = asyncio.Event()

    def say(line: str) -> None:
        message = json.loads(line)
        told.take(Slice.from_json(message))
        tables.append(message["tables"])
        assert message["cpu_seconds"] > 0
        assert message["memory_bytes"] > 0
        if told.spread(SETTLED).count:
            settled.set()

    orders = Orders(way.to_json(), PLAYERS, turn_seconds=0.0, hints=1.0, seed=1, leave=True)
    async with AsyncExitStack() as stack:
        client = Client(Orders(**json.loads(orders.to_line())), access, stack, say)
        await client.open()
        await client.run(asyncio.create_task(_set(settled)))
    assert max(tables) == 1
    return told


async def _set(event: asyncio.Event) -> None:
    await event.wait()


async def _nothing_is_left(suite: Suite) -> None:
    """Of the money, but for what a table holds that is not yet closed."""
    async with suite.channel("wallet", "operator") as channel:
        stub: Any = WalletServiceStub(channel)
        for player_id, _ in PLAYERS:
            answer = await stub.GetBalances(wallet_pb2.GetBalancesRequest(player_id=player_id))
            silver = [one for one in answer.balances if one.currency == "silver"]
            assert [one.available for one in silver] == [0]
