"""Nothing that is shown or watched is empty: a real Prometheus scrapes a suite at play.

Whatever panels, recording rules and alerts ask for must be there, and what is counted must have
counted something, but for what only counts trouble.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterable
from pathlib import Path

import grpc.aio
import pytest

from fangcheng.evaluation.v1 import evaluation_pb2 as ev
from fangcheng.evaluation.v1 import evaluation_pb2_grpc as ev_grpc
from fangcheng.wallet.v1 import settlement_pb2, settlement_pb2_grpc
from fangcheng_client import hands
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_suite.access import Access
from fangcheng_suite.bots.crowd import Bank, make_bots
from fangcheng_suite.bots.player import Bot
from fangcheng_suite.pools import demo_pool, practice_pool

from ..dashboards import marks, panel_queries
from ..evaluation import wire
from ..prometheus.rules import alerts, fed, recordings
from ..promql import recorded, selectors
from .prometheus import Ask, config_for, prometheus
from .running import PORTS_OF_A_SUITE, free_port, running, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

JOBS = {"matchmaking", "table", "wallet", "evaluation", "console"}
READY = "123m456p789s1122z"
"""A hand that waits for one tile to win."""
WELL = re.compile(r"INTERNAL\|UNKNOWN\|DATA_LOSS|UNAVAILABLE\|DEADLINE_EXCEEDED|^ALERTS")
"""Selectors of these find nothing in a suite that is well."""
OF_CERTIFICATES = "fangcheng_certificate_expires_timestamp_seconds"
"""Nor do those of this one: a suite on one host has none."""

ONLY_TROUBLE = {
    # money that is wrong, late, or taken back
    *("fangcheng_wallet_ledger_imbalance", "fangcheng_wallet_failed_commits_total"),
    *("fangcheng_wallet_expired_holds_total", "fangcheng_wallet_reversals_total"),
    *("fangcheng_table_parked", "fangcheng_table_outbox_oldest_age_seconds"),
    # certificates and keys that cannot be read
    *("fangcheng_certificate_files_bad", "fangcheng_key_set_failures_total"),
    # tables that fail, or are left by their process or players
    *("fangcheng_table_failures_total", "fangcheng_table_journal_failures_total"),
    *("fangcheng_table_unowned", "fangcheng_table_taken_over_total"),
    *("fangcheng_table_superseded_total", "fangcheng_table_lost_seconds_total"),
    *("fangcheng_table_evaluator_failures_total", "fangcheng_table_reconnects_total"),
    *("fangcheng_table_prompts_timed_out_total", "fangcheng_table_trustees_total"),
    "fangcheng_table_trustee_seats",
    # matches that fall through, and players who find nobody
    *("fangcheng_matchmaking_repeated_steps_total", "fangcheng_matchmaking_paused"),
    *("fangcheng_matchmaking_failed_tickets_total", "fangcheng_matchmaking_backfilled_seats_total"),
    # what there is for moments alone, where there is little to do
    "fangcheng_matchmaking_oldest_ticket_age_seconds",
    *("fangcheng_table_outbox", "fangcheng_table_evaluator_questions"),
    *("fangcheng_matchmaking_unfinished_matches", "fangcheng_wallet_unchained_operations"),
    *("fangcheng_evaluation_waiting_hands", "fangcheng_evaluation_busy_threads"),
    "fangcheng_evaluation_refused_calls_total",
}
"""What may stay at 0 where nothing is wrong."""


async def play(access: Access) -> None:
    """Four bots play a table for silver to its end; one sits down where others fill up."""
    *four, alone = make_bots(range(100, 105), access)
    for bot in (*four, alone):
        await Bank(access).give(bot.player_id)
    async with asyncio.TaskGroup() as group:
        for bot in four:
            group.create_task(bot.play(demo_pool(RULE_SETS[0])))
        group.create_task(sit_down(alone, practice_pool(RULE_SETS[1])))


async def sit_down(bot: Bot, pool_id: str) -> None:
    """Queue, and go away from the table."""
    seated = asyncio.Event()
    bot.on_seated = lambda place: seated.set()
    playing, sitting = asyncio.create_task(bot.play(pool_id)), asyncio.create_task(seated.wait())
    await asyncio.wait({playing, sitting}, return_when=asyncio.FIRST_COMPLETED)
    assert seated.is_set(), "the bot has found no seat"
    playing.cancel()


async def hold(access: Access, player_id: str) -> None:
    """A buy-in that stays set aside: the bots' own may all come and go between two looks."""
    await Bank(access).give(player_id)
    async with access.channel("wallet", "service:matchmaking") as channel:
        await settlement_pb2_grpc.SettlementServiceStub(channel).PlaceHolds(
            settlement_pb2.PlaceHoldsRequest(
                request_id="stays",
                holds=[
                    settlement_pb2.HoldRequest(player_id=player_id, currency="silver", amount=1)
                ],
            )
        )


async def evaluate_much(access: Access) -> None:
    """Hands in a batch and packed, and one that is no hand and is refused."""
    async with access.channel("evaluation") as channel:
        stub = ev_grpc.EvaluationServiceStub(channel)
        rules = await hands.rule_set(channel, RULE_SETS[0].id)
        await hands.evaluate(channel, rules, hands.pack(rules, [READY] * 1_000))
        await stub.AnalyzeBatch(ev.AnalyzeBatchRequest(requests=[wire.analyze(READY)] * 100))
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.Analyze(ev.AnalyzeRequest(rules=wire.KELE, hand=ev.Hand(concealed=[11])))


def is_ours(metric: str) -> bool:
    """Whether our code counts it, trouble aside."""
    return metric.startswith("fangcheng_") and metric not in ONLY_TROUBLE


def all_answer(ask: Ask, queries: Iterable[str]) -> None:
    """Wait until every query finds something."""
    left = list(queries)

    def answered() -> bool:
        left[:] = [query for query in left if not ask(query)]
        return not left

    try:
        until(answered, "every query finds series", within_seconds=60)
    except AssertionError:
        raise AssertionError("these find nothing:\n" + "\n".join(left)) from None


def test_every_query_of_panels_and_rules_finds_what_has_moved(tmp_path: Path) -> None:
    base = free_port(PORTS_OF_A_SUITE)
    with (
        running(tmp_path / "suite", "--tables", "1", "--think", "0", port=base) as suite,
        prometheus(tmp_path, config_for(base)) as ask,
    ):
        os.kill(suite.pid("matchmaking"), signal.SIGHUP)
        asyncio.run(play(suite.access))
        asyncio.run(hold(suite.access, "ming"))
        asyncio.run(evaluate_much(suite.access))

        until(lambda: {row.labels["job"] for row in ask("up == 1")} == JOBS, "all are scraped")
        all_answer(ask, [*panel_queries(), *marks(), *recorded()])
        all_answer(
            ask,
            {query for alert in alerts() for query in fed(alert) if OF_CERTIFICATES not in query},
        )
        rules = [rule.query for rule in (*alerts(), *recordings())]
        wanted = {
            selector
            for query in (*panel_queries(), *rules)
            for selector in selectors(query)
            if not WELL.search(selector.text) and selector.metric != OF_CERTIFICATES
        }
        all_answer(ask, {selector.text for selector in wanted})
        counting = {selector.metric for selector in wanted if is_ours(selector.metric)}
        all_answer(ask, [f"max_over_time({metric}[10m]) > 0" for metric in counting])
        assert [row.value for row in ask("max(abs(fangcheng_wallet_ledger_imbalance))")] == [0]
