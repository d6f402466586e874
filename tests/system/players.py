"""Bots that queue, watch their tickets, attend their tables and play, whatever is killed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from fangcheng.matchmaking.v1 import matchmaking_pb2 as queues
from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import attend, connect, explain
from fangcheng_kit.tokens import mint_token
from tests.system.processes import KEY
from tests.system.tables import Cluster
from tests.system.wallets import patiently

CHANGES_HIS_MIND = 0.1
"""How likely a bot wants out of the queue again."""
MIND_SECONDS = 1.0
"""How long it takes him at most."""

_LOST = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
    }
)
_OUTCOMES = frozenset(
    {
        queues.TICKET_STATE_ASSIGNED,
        queues.TICKET_STATE_LEFT,
        queues.TICKET_STATE_FAILED,
    }
)


@dataclass
class Goal:
    """What the bots play for: so many tables, then whoever waits goes home."""

    tables: int
    begun: set[str] = field(default_factory=set)
    """Tables that a bot was told of."""
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, table_id: str) -> None:
        """A bot was told of a table."""
        self.begun.add(table_id)
        if len(self.begun) >= self.tables:
            self.reached.set()


@dataclass
class Visit:
    """A ticket of a bot, and what it saw at the table."""

    outcome: queues.Ticket
    """As the stream of the ticket told it."""
    seen: list[events_pb2.TableEvent] = field(default_factory=list)


class Bot:
    """One player; takes one place after the other until the goal is reached."""

    def __init__(self, cluster: Cluster, player_id: str, goal: Goal, chance: random.Random) -> None:
        self.player_id = player_id
        self.visits: list[Visit] = []
        self._cluster = cluster
        self._goal = goal
        self._chance = chance
        self._told = 0
        self._wants_out = False

    @property
    def events(self) -> int:
        """How much it has been told, of tickets and tables."""
        return self._told + sum(len(visit.seen) for visit in self.visits)

    async def open_wallet(self, amount: int) -> None:
        """Silver to begin with."""
        token = mint_token(KEY, "operator")
        async with connect(self._cluster.wallet.address, token) as channel:
            wallets: Any = wallet_pb2_grpc.WalletServiceStub(channel)
            opened = wallet_pb2.OpenWalletRequest(player_id=self.player_id)
            await patiently(wallets.OpenWallet, opened)
            deposit = wallet_pb2.DepositRequest(
                request_id=f"first of {self.player_id}",
                player_id=self.player_id,
                currency="silver",
                amount=amount,
            )
            await patiently(wallets.Deposit, deposit)

    async def play(self, pool_id: str) -> None:
        """Queue and play until the goal is reached."""
        async with (
            self._channel(self._cluster.all_matchmaking) as matchmaking,
            self._channel(self._cluster.all_tables) as tables,
        ):
            queue: Any = MatchmakingServiceStub(matchmaking)
            while not self._goal.reached.is_set():
                visit = Visit(await self._seated(queue, pool_id))
                self.visits.append(visit)
                if visit.outcome.table_id:
                    self._goal.note(visit.outcome.table_id)
                    await self._sit(tables, visit)

    async def told_again(self, ticket_id: str) -> queues.Ticket:
        """What the ticket's stream tells now; it has had its outcome, so that is all it tells."""
        async with self._channel(self._cluster.all_matchmaking) as channel:
            return await self._outcome(MatchmakingServiceStub(channel), ticket_id)

    # The queue.

    async def _seated(self, queue: Any, pool_id: str) -> queues.Ticket:
        """Queue, and wait for what becomes of it."""
        join = queues.JoinQueueRequest(request_id=f"visit {len(self.visits)}", pool_id=pool_id)
        joined = await _surely(lambda: queue.JoinQueue(join, timeout=5))
        ticket_id = joined.ticket.ticket_id
        self._wants_out = False
        leaving = asyncio.create_task(self._leave(queue, ticket_id))
        try:
            outcome = await self._outcome(queue, ticket_id)
            assert self._wants_out or outcome.state != queues.TICKET_STATE_LEFT
            if self._wants_out:
                await leaving
        finally:
            leaving.cancel()
        return outcome

    async def _leave(self, queue: Any, ticket_id: str) -> None:
        """Leave the queue when the goal is reached, some earlier; unless the table is quicker."""
        if self._chance.random() < CHANGES_HIS_MIND:
            await asyncio.sleep(self._chance.uniform(0, MIND_SECONDS))
        else:
            await self._goal.reached.wait()
        self._wants_out = True
        request = queues.LeaveQueueRequest(ticket_id=ticket_id)
        try:
            answer = await _surely(lambda: queue.LeaveQueue(request, timeout=5))
        except grpc.aio.AioRpcError as error:
            assert explain(error).reason == "ALREADY_SEATED", error  # noqa: PT017
        else:
            assert answer.ticket.state == queues.TICKET_STATE_LEFT, answer

    async def _outcome(self, queue: Any, ticket_id: str) -> queues.Ticket:
        """Follow a ticket to its outcome."""

        async def follow() -> queues.Ticket:
            ticket = queues.Ticket()
            async for answer in queue.WatchTicket(queues.WatchTicketRequest(ticket_id=ticket_id)):
                assert ticket.state not in _OUTCOMES, (ticket, answer)
                ticket = answer.ticket
                self._told += 1
            assert ticket.state in _OUTCOMES, ticket
            return ticket

        return await _surely(follow)

    # The table.

    async def _sit(self, channel: grpc.aio.Channel, visit: Visit) -> None:
        """Play until the table has closed."""
        stub: Any = TableServiceStub(channel)
        table_id = visit.outcome.table_id
        async for event in attend(channel, table_id, give_up_seconds=300):
            visit.seen.append(event)
            prompt = event.snapshot.prompt if event.HasField("snapshot") else event.prompt
            if prompt.decision_id and prompt.actions:
                await self._act(stub, table_id, prompt.decision_id, answer(prompt))
            elif event.trustee_changed.decision_id:
                back = state_pb2.Action(kind="back")
                await self._act(stub, table_id, event.trustee_changed.decision_id, back)

    async def _act(
        self, stub: Any, table_id: str, decision_id: str, action: state_pb2.Action
    ) -> None:
        """Answer, until it is known that the answer was taken or came too late."""
        act = wire.ActRequest(table_id=table_id, decision_id=decision_id, action=action)
        try:
            await _surely(lambda: stub.Act(act, timeout=5))
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.FAILED_PRECONDITION, error  # noqa: PT017

    def _channel(self, target: str) -> grpc.aio.Channel:
        token = mint_token(KEY, f"player:{self.player_id}", ["bot"], ttl_seconds=36_000)
        return connect(target, token)


def answer(prompt: events_pb2.Prompt) -> state_pb2.Action:
    """Win where it can be; otherwise the first that may be done, and no claims."""
    wins = [action for action in prompt.actions if action.kind == "win"]
    passes = prompt.actions[-1] if prompt.kind in ("claim", "dealt_out") else prompt.actions[0]
    return wins[0] if wins else passes


async def _surely(call: Callable[[], Awaitable[Any]]) -> Any:
    """Repeat a call until its outcome is known."""
    while True:
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            if error.code() not in _LOST and not explain(error).passes:
                raise
            await asyncio.sleep(0.1)


def visits_of(bots: list[Bot]) -> Iterator[tuple[Bot, Visit]]:
    """All visits with whose they were."""
    for bot in bots:
        for visit in bot.visits:
            yield bot, visit
