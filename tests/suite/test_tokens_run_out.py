"""A table is played to its end though no token lasts for longer than about a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2
from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.table.v1 import table_pb2
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_client import ManySeats, attend, connect, follow_tables, follow_ticket
from fangcheng_kit import app
from fangcheng_kit.tokens import mint_token
from tests.suite.whole import KEY, PLAYERS, Suite, eventually, whole
from tests.table.world import simple

GATEWAY = ("service:gateway", ("act_as",))


def short_lived(
    suite: Suite, service: str, subject: str, scopes: tuple[str, ...] = ()
) -> grpc.aio.Channel:
    """A channel to a service whose every token is good for a second."""
    return connect(
        suite.running[service].address, lambda: mint_token(KEY, subject, scopes, ttl_seconds=1.0)
    )


def run_out(suite: Suite, service: str, call: str) -> int:
    """How many streams have ended with their tokens."""
    registry = suite.running[service].kit.registry
    return sum(
        int(sample.value)
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "grpc_server_handled_total"
        and (sample.labels["grpc_method"], sample.labels["grpc_code"]) == (call, "UNAUTHENTICATED")
    )


async def queued(suite: Suite, player: str, line: Callable[[], bool]) -> str:
    """Queue a player, once `line` is true, and wait for the table of the ticket."""
    await eventually(line, f"{player} may queue")
    async with short_lived(suite, "matchmaking", f"player:{player}") as channel:
        stub: Any = MatchmakingServiceStub(channel)
        request = matchmaking_pb2.JoinQueueRequest(request_id="q", pool_id="silver")
        joined = await stub.JoinQueue(request)
        async for ticket in follow_ticket(channel, joined.ticket.ticket_id):
            if ticket.table_id:
                return str(ticket.table_id)
    raise AssertionError("the ticket has led to no table")


async def attended(
    suite: Suite, player: str, table_id: str, after: Callable[[], bool]
) -> list[int]:
    """Play a seat on a stream of its own; the numbers of its events. It answers once `after`."""
    numbers = []
    async with short_lived(suite, "table", f"player:{player}") as channel:
        stub: Any = TableServiceStub(channel)
        async for event in attend(channel, table_id):
            numbers.append(event.number)
            if event.HasField("prompt"):
                await eventually(after, "streams have ended with their tokens")
                await stub.Act(
                    table_pb2.ActRequest(
                        table_id=table_id,
                        decision_id=event.prompt.decision_id,
                        action=simple(event.prompt),
                    )
                )
    return numbers


async def attended_by_a_gateway(suite: Suite, players: tuple[str, ...], table_id: str) -> None:
    """Play seats on a gateway's stream until all are done."""
    playing = set(players)
    async with short_lived(suite, "table", *GATEWAY) as channel:
        many = ManySeats(channel)
        for player in players:
            many.add(player, table_id)
        async with aclosing(many) as seats:
            async for news in seats:
                match news:
                    case table_pb2.SeatEvent(event=event) if event.HasField("prompt"):
                        prompt = event.prompt
                        many.act(news.player_id, table_id, prompt.decision_id, simple(prompt))
                    case table_pb2.SeatDone():
                        playing.discard(news.player_id)
                    case table_pb2.SeatProblem():
                        raise AssertionError(str(news))
                if not playing:
                    return


async def watched(suite: Suite, table_id: str) -> None:
    """Follow the lobby until the table has come and gone."""
    async with short_lived(suite, "table", "operator") as channel:
        is_known = False
        async with aclosing(follow_tables(channel)) as stream:
            async for news in stream:
                is_known = is_known or table_id in news.tables
                if is_known and table_id not in news.tables:
                    return


async def test_a_table_is_played_on_tokens_of_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "_TOKEN_TTL_SECONDS", 1.0)
    async with whole(tmp_path, token_leeway_seconds=2.0) as suite:
        await suite.fund()
        waiting = [
            queued(suite, player, lambda: True)
            if player != PLAYERS[-1]
            else queued(suite, player, lambda: run_out(suite, "matchmaking", "WatchTicket") >= 3)
            for player in PLAYERS
        ]
        (table_id,) = set(await asyncio.gather(*waiting))

        def is_seen() -> bool:
            calls = {"Attend": 2, "AttendMany": 1, "WatchTables": 1}
            return all(run_out(suite, "table", call) >= most for call, most in calls.items())

        first, second, *others = PLAYERS
        one, two, _, _ = await asyncio.gather(
            attended(suite, first, table_id, is_seen),
            attended(suite, second, table_id, is_seen),
            attended_by_a_gateway(suite, tuple(others), table_id),
            watched(suite, table_id),
        )
    for numbers in (one, two):
        assert numbers == list(range(1, len(numbers) + 1))
