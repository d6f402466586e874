"""Traces over all services, as a collector receives them, and the log lines of the same evening."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

from tests.kit.collector import Collector, Span, collecting
from tests.kit.lines import lines_of

from .whole import KEY, PLAYERS, whole

FIRST = "a1" * 16
SECOND = "c3" * 16
"""The traces of the clients of the first two players."""
JOIN = "matchmaking matchmaking.v1.MatchmakingService/JoinQueue"
CREATE = [
    JOIN,
    "matchmaking match.form",
    "matchmaking match.seat",
    "matchmaking table.v1.TableService/CreateTable",
    "table table.v1.TableService/CreateTable",
]


@dataclass
class Evening:
    """A table that was played from the queue to its end."""

    table_id: str
    collector: Collector
    lines: list[dict[str, Any]]

    def line(self, event: str) -> dict[str, Any]:
        (found,) = [line for line in self.lines if line["event"] == event]
        return found


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    folder = tmp_path_factory.mktemp("evening")

    async def play() -> tuple[str, Collector]:
        async with (
            collecting() as collector,
            whole(folder, otlp_endpoint=collector.endpoint) as suite,
        ):
            table_id = await suite.evening(
                {"traceparent": f"00-{FIRST}-{'b2' * 8}-01"},
                {"traceparent": f"00-{SECOND}-{'d4' * 8}-01"},
            )
        return table_id, collector

    with lines_of("suite") as lines:
        table_id, collector = asyncio.run(play())
    return Evening(table_id, collector, lines)


def ways(spans: list[Span]) -> list[list[str]]:
    """From the first span of a trace to each: service and name of all between."""
    by_id = {one.span_id: one for one in spans}
    found = []
    for span in spans:
        way, at = [], span
        while at is not None:
            way.append(f"{at.service} {at.name.removeprefix('fangcheng.')}")
            at = by_id.get(at.parent_id)
        found.append(way[::-1])
    return found


def test_a_trace_leads_from_the_queue_to_the_first_deal(evening: Evening) -> None:
    found = ways(evening.collector.of(FIRST))
    assert [JOIN] in found
    assert [JOIN, "matchmaking ticket.wait"] in found
    hold = "wallet.v1.SettlementService/PlaceHolds"
    assert [*CREATE[:3], f"matchmaking {hold}", f"wallet {hold}"] in found
    assert [*CREATE, "table table.wait_for_players"] in found
    asked = [*CREATE, "table table.deal", "table evaluator.question"]
    answered = "evaluation evaluation.v1.EvaluationService/AnalyzeBatch"
    assert [way for way in found if way[:7] == asked and way[-1] == answered]


def test_the_match_is_linked_with_the_traces_of_its_other_tickets(evening: Evening) -> None:
    collector = evening.collector
    (formed,) = collector.named("match.form")
    joined = collector.named("fangcheng.matchmaking.v1.MatchmakingService/JoinQueue")
    assert {one.trace_id for one in joined} >= {FIRST, SECOND}
    others = {(one.trace_id, one.span_id) for one in joined if one.trace_id != FIRST}
    assert formed.links == others
    waits = collector.named("ticket.wait")
    assert {one.trace_id for one in waits} == {one.trace_id for one in joined}
    assert {one.links for one in waits} == {frozenset({(formed.trace_id, formed.span_id)})}


def test_a_trace_leads_from_an_act_to_its_settlement(evening: Evening) -> None:
    (outbox,) = evening.collector.named("outbox.settle")
    assert outbox.attributes == {"fangcheng.settlement_key": f"{evening.table_id}/1"}
    found = ways(evening.collector.of(outbox.trace_id))
    settle = "wallet.v1.SettlementService/Settle"
    (way,) = [way for way in found if way[-1] == f"wallet {settle}"]
    assert way[0] == "table table.v1.TableService/Act"
    assert way[-3:] == ["table outbox.settle", f"table {settle}", f"wallet {settle}"]
    score = "evaluation evaluation.v1.EvaluationService/ScoreBatch"
    assert any(way[-1] == score for way in found)


def test_calls_carry_their_status_and_what_went_well_is_no_error(evening: Evening) -> None:
    spans = evening.collector.spans
    acts = evening.collector.named("fangcheng.table.v1.TableService/Act")
    assert {act.attributes["rpc.grpc.status_code"] for act in acts} == {0}
    assert [span for span in spans if span.failed] == []


def test_spans_hold_ids_and_numbers_and_nothing_of_a_player(evening: Evening) -> None:
    attributes: dict[str, set[Any]] = {}
    for span in evening.collector.spans:
        for name, value in span.attributes.items():
            attributes.setdefault(name, set()).add(value)
    assert set(attributes) <= {
        *("rpc.system", "rpc.service", "rpc.method", "rpc.grpc.status_code"),
        *("fangcheng.request_id", "fangcheng.caller", "fangcheng.reason"),
        *("fangcheng.table_id", "fangcheng.hand", "fangcheng.events", "fangcheng.kind"),
        *("fangcheng.ticket_id", "fangcheng.match_id", "fangcheng.pool_id"),
        *("fangcheng.settlement_key", "fangcheng.items"),
    }
    told = attributes["fangcheng.events"]
    assert all(re.fullmatch(r"[A-Z][A-Za-z]+( [A-Z][A-Za-z]+)*", words) for words in told)
    everything = b"".join(evening.collector.received)
    assert b"evaluator.question" in everything
    for secret in (KEY, "Bearer", "eyJ", "entropy of", *PLAYERS):
        assert secret.encode() not in everything


def test_lines_of_a_trace_name_it(evening: Evening) -> None:
    for event in ("match formed", "seated", "table created", "hand started"):
        assert evening.line(event)["trace_id"] == FIRST
    (outbox,) = evening.collector.named("outbox.settle")
    assert evening.line("hand settled")["trace_id"] == outbox.trace_id
    spans = {(one.trace_id, one.span_id) for one in evening.collector.spans}
    for line in evening.lines:
        if line["event"] == "call" and not line["grpc_service"].startswith("grpc."):
            assert (line["trace_id"], line["span_id"]) in spans


def test_lines_of_a_match_and_of_a_hand_name_what_asked_for_them(evening: Evening) -> None:
    match_id = evening.line("match formed")["match_id"]
    assert evening.line("table created")["request_id"] == match_id
    assert evening.line("seated")["table_id"] == evening.table_id
    ended = evening.line("hand ended")
    asked = [line for line in evening.lines if line.get("grpc_method") == "Act"]
    assert ended["request_id"] in {line["request_id"] for line in asked}
    assert "Bearer" not in json.dumps(evening.lines)
