"""A player who queues, plays hands, and leaves: see README.md for what the environment says."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio

from fangcheng.matchmaking.v1 import matchmaking_pb2 as mm
from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.table.v1 import events_pb2 as events
from fangcheng.table.v1 import state_pb2 as state
from fangcheng.table.v1 import table_pb2 as tables
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_client import attend, connect, explain, follow_ticket, notation

POOL = os.environ.get("FANGCHENG_POOL", "baishan_kele-practice")
HANDS = int(os.environ.get("FANGCHENG_HANDS", "1"))
GIVE_UP_SECONDS = 60.0

T = TypeVar("T")


class NotSeated(Exception):
    """The ticket did not lead to a table."""


def channel(service: str, address: str) -> grpc.aio.Channel:
    """A connection to a service; its calls have a deadline, and are repeated when lost."""
    credentials = None
    if ca := os.environ.get("FANGCHENG_CA"):
        roots = None if ca == "system" else Path(ca).read_bytes()
        credentials = grpc.ssl_channel_credentials(roots)
    return connect(
        os.environ.get(f"FANGCHENG_{service}", address),
        # Asked for at each call, so that it may be renewed.
        lambda: os.environ["FANGCHENG_TOKEN"],
        credentials=credentials,
    )


async def until_known(call: Callable[[], Awaitable[T]]) -> T:
    """Send the same request until its outcome is known: a repeat is answered as the first was."""
    async with asyncio.timeout(GIVE_UP_SECONDS):
        while True:
            try:
                return await call()
            except grpc.aio.AioRpcError as error:
                problem = explain(error)
                if not problem.passes and problem.code is not grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise
                print(f"connection lost ({problem}), trying again")
                await asyncio.sleep(problem.retry_after_seconds or 0.5)


async def seated() -> str:
    """The caller's table: the one where he sits already, or a new one out of the pool's queue."""
    async with channel("MATCHMAKING", "127.0.0.1:7100") as connection:
        queue = MatchmakingServiceStub(connection)
        # Whoever was started again goes on where he was.
        status = await until_known(lambda: queue.GetPlayerStatus(mm.GetPlayerStatusRequest()))
        if status.table_id:
            return status.table_id
        ticket = status.ticket
        if not status.HasField("ticket"):
            # One id for all repeats: a lost answer does not queue the player twice.
            request = mm.JoinQueueRequest(request_id=uuid.uuid4().hex, pool_id=POOL)
            joined = await until_known(lambda: queue.JoinQueue(request))
            print(f"queued in {POOL}{' (the first answer was lost)' if joined.replayed else ''}")
            ticket = joined.ticket
        async for news in follow_ticket(connection, ticket.ticket_id):
            ticket = news
        if ticket.state == mm.TICKET_STATE_ASSIGNED:
            return ticket.table_id
        raise NotSeated(ticket.problem.message or "the ticket has left the queue")


async def play(table_id: str) -> None:
    """Play until the table has closed, or the player has left it."""
    async with channel("TABLE", "127.0.0.1:7101") as connection:
        table = TableServiceStub(connection)

        async def act(decision_id: str, action: state.Action) -> None:
            request = tables.ActRequest(table_id=table_id, decision_id=decision_id, action=action)
            try:
                await until_known(lambda: table.Act(request))
            except grpc.aio.AioRpcError as error:
                # Another's claim came first, or the time was over: the next events tell.
                if explain(error).reason != "STALE_DECISION":
                    raise

        mode = tables.LEAVE_MODE_AFTER_HAND
        leave = tables.LeaveTableRequest(table_id=table_id, mode=mode)
        hands = 0
        try:
            # Each event once and in order, whatever becomes of the connection.
            async for event in attend(connection, table_id, on_break=told):
                print(event.number, tell(event))
                # A table that was found in the middle tells in its snapshot what is asked.
                found = event.snapshot if event.HasField("snapshot") else None
                prompt = found.prompt if found else event.prompt
                if prompt.decision_id:
                    await act(prompt.decision_id, choose(list(prompt.actions)))
                # The table has played for this seat while nothing was heard of it: take it back.
                back = found.back_decision_id if found else event.trustee_changed.decision_id
                if back:
                    await act(back, state.Action(kind="back"))
                if event.HasField("hand_ended"):
                    hands += 1
                    if hands == HANDS:
                        await until_known(lambda: table.LeaveTable(leave))
        except grpc.aio.AioRpcError as error:
            # The table goes on with another player.
            if explain(error).reason != "LEFT_TABLE":
                raise
    print("left the table")


def told(error: grpc.aio.AioRpcError | TimeoutError) -> None:
    """Tell of a stream that broke; it goes on by itself."""
    print(f"connection lost ({error if isinstance(error, TimeoutError) else explain(error)})")


def choose(actions: list[state.Action]) -> state.Action:
    """Any win; of claims none; otherwise the last discard offered, which declares nothing."""
    wins = [action for action in actions if action.kind == "win"]
    passes = [action for action in actions if action.kind == "pass"]
    discards = [one for one in actions if one.kind == "discard" and not one.declare]
    # Never a false win (诈胡), which costs and leaves the prompt open.
    others = [action for action in actions if action.kind != "false_win"]
    return [*wins, *passes, *discards[-1:], *others][0]


def tell(event: events.TableEvent) -> str:
    """An event in a few words; kinds that a real client would draw are named only."""
    kind = event.WhichOneof("kind")
    if kind == "prompt":
        offered = [f"{one.kind} {text(one.tile)}" for one in event.prompt.actions]
        return f"asked: {', '.join(offered)}"
    if kind == "discarded":
        return f"seat {event.discarded.seat} discards {text(event.discarded.tile)}"
    if kind == "hand_ended":
        net = " ".join(map(str, event.hand_ended.net))
        return f"hand {event.hand_ended.hand_number} ended: {net}"
    if kind == "table_closed":
        return f"the table closed: {event.table_closed.reason}"
    return kind or "unknown"


def text(tile: int) -> str:
    """A tile as text: ``5p``; nothing where there is none."""
    return notation.text([tile]) if tile else ""


if __name__ == "__main__":
    try:
        asyncio.run(play(asyncio.run(seated())))
    except grpc.RpcError as error:
        sys.exit(str(explain(error)))
    except NotSeated as error:
        sys.exit(str(error))
    except TimeoutError:
        sys.exit(f"no answer for {GIVE_UP_SECONDS:.0f} s: are the services reached from here?")
