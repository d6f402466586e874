"""What goes on at a suite while its services are restarted: calls, players, and whoever watches.

Everything repeats and resumes as `fangcheng_client` does it; a stream that it does not resume by
itself is opened again as its contract says. Whatever fails in spite of that is counted.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc.aio

from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng.matchmaking.v1 import matchmaking_pb2 as queues
from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import attend, connect, explain
from fangcheng_kit.tokens import mint_token
from tests.system.players import answer
from tests.system.processes import KEY
from tests.system.replicas import READY
from tests.system.tables import Cluster

GATEWAY = "service:gateway"
PAUSE_SECONDS = 0.1
"""Before a stream that broke is opened again."""
PATIENCE_SECONDS = 120.0
"""Of every call and stream: however busy the machine is, time alone fails nothing here."""


def acting_for(player: str) -> list[tuple[str, str]]:
    """The metadata by which a gateway says for whom it calls."""
    return [("fangcheng-act-as", player)]


class Way:
    """Channels to all replicas of each service, for each of those who call."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._open: dict[tuple[str, str, str], grpc.aio.Channel] = {}

    def to(self, service: str, player: str = "", caller: str = "operator") -> grpc.aio.Channel:
        """A channel of an operator's, another `caller`'s, or of a gateway's for one player."""
        channel = self._open.get((service, player, caller))
        if channel is None:
            scopes = ["act_as"] if player or caller == GATEWAY else []
            subject = GATEWAY if player else caller
            channel = self._open[service, player, caller] = connect(
                self._target(service),
                mint_token(KEY, subject, scopes, ttl_seconds=36_000),
                player or None,
                timeout_seconds=PATIENCE_SECONDS,
            )
        return channel

    def _target(self, service: str) -> str:
        cluster = self._cluster
        match service:
            case "evaluation":
                return cluster.all_evaluators
            case "wallet":
                return cluster.all_wallets
            case "table":
                return cluster.all_tables
            case _:
                return cluster.all_matchmaking

    async def close(self) -> None:
        """Close all channels."""
        await asyncio.gather(*(channel.close() for channel in self._open.values()))


class Calls:
    """Calls of all kinds at a steady rate; each is made once, whatever the client repeats."""

    def __init__(self, way: Way, players: list[str], table_ids: list[str], pool_id: str) -> None:
        self.answered: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._way = way
        self._players = players
        """Of whom some queue, in a pool in which nobody is matched."""
        self._table_ids = table_ids
        self._pool_id = pool_id
        self._numbers = itertools.count()
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self, per_second: float) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        kinds = itertools.cycle(
            (
                *(self._evaluate, self._balances, self._table, self._evaluate, self._deposit),
                *(self._balances, self._table, self._status, self._evaluate, self._status),
                *(self._evaluate, self._balances, self._table, self._evaluate, self._deposit),
                *(self._balances, self._table, self._status, self._evaluate, self._queue),
            )
        )
        due = loop.time()
        try:
            while True:
                task = loop.create_task(self._call(next(kinds), next(self._numbers)))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
                due = max(due + 1 / per_second, loop.time() - 1)
                await asyncio.sleep(due - loop.time())
        finally:
            while self._under_way:
                await asyncio.wait(self._under_way)

    async def _call(self, kind: Callable[[int], Awaitable[None]], number: int) -> None:
        name = kind.__name__.strip("_")
        try:
            await kind(number)
        except grpc.aio.AioRpcError as error:
            self.failed[f"{name}: {error.code().name} {explain(error)}"] += 1
        else:
            self.answered[name] += 1

    def _player(self, number: int) -> str:
        return self._players[number % len(self._players)]

    async def _evaluate(self, number: int) -> None:
        stub: Any = EvaluationServiceStub(self._way.to("evaluation"))
        answer = await stub.Analyze(READY)
        assert [wait.tile for wait in answer.analysis.waits] == [41, 46]

    async def _balances(self, number: int) -> None:
        stub: Any = wallet_pb2_grpc.WalletServiceStub(self._way.to("wallet"))
        player = self._player(number)
        answer = await stub.GetBalances(wallet_pb2.GetBalancesRequest(player_id=player))
        assert answer.balances

    async def _deposit(self, number: int) -> None:
        stub: Any = wallet_pb2_grpc.WalletServiceStub(self._way.to("wallet"))
        request = wallet_pb2.DepositRequest(
            request_id=f"deposit {number}",
            player_id=self._player(number),
            currency="silver",
            amount=1,
        )
        await stub.Deposit(request)

    async def _table(self, number: int) -> None:
        stub: Any = TableServiceStub(self._way.to("table"))
        table_id = self._table_ids[number % len(self._table_ids)]
        answer = await stub.GetTable(wire.GetTableRequest(table_id=table_id))
        assert answer.table.table_id == table_id

    async def _status(self, number: int) -> None:
        player = self._player(number)
        stub: Any = MatchmakingServiceStub(self._way.to("matchmaking", caller=GATEWAY))
        request = queues.GetPlayerStatusRequest()
        answer = await stub.GetPlayerStatus(request, metadata=acting_for(player))
        assert answer.player_id == player

    async def _queue(self, number: int) -> None:
        """Into the queue and out of it again, each visit another player's."""
        stub: Any = MatchmakingServiceStub(self._way.to("matchmaking", caller=GATEWAY))
        visitor = acting_for(f"visitor-{number}")
        join = queues.JoinQueueRequest(request_id="1", pool_id=self._pool_id)
        joined = await stub.JoinQueue(join, metadata=visitor)
        leave = queues.LeaveQueueRequest(ticket_id=joined.ticket.ticket_id)
        left = await stub.LeaveQueue(leave, metadata=visitor)
        assert left.ticket.state == queues.TICKET_STATE_LEFT


@dataclass
class Stream:
    """What one stream of a table has told, over all its connections."""

    name: str
    events: list[events_pb2.TableEvent] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The newest number."""
        return self.events[-1].number if self.events else 0


async def followed(open_stream: Callable[[], Any]) -> AsyncIterator[Any]:
    """The messages of a stream that begins with how things are, opened again where it breaks."""
    while True:
        try:
            async for message in open_stream():
                yield message
        except grpc.aio.AioRpcError as error:
            if not explain(error).passes:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            return


class Minds:
    """What players answer, and when: each question once."""

    def __init__(self, think_seconds: float) -> None:
        self._think_seconds = think_seconds
        self._chance = random.Random(8)
        self._asked: set[tuple[str, str]] = set()

    def answer(self, player: str, table_id: str, event: Any) -> wire.ActRequest | None:
        """The answer to what an event asks, where it does and was not seen before."""
        prompt = event.snapshot.prompt if event.HasField("snapshot") else event.prompt
        decision_id, action = event.trustee_changed.decision_id, state_pb2.Action(kind="back")
        if prompt.decision_id and prompt.actions:
            decision_id, action = prompt.decision_id, answer(prompt)
        if not decision_id or (player, decision_id) in self._asked:
            return None
        self._asked.add((player, decision_id))
        return wire.ActRequest(table_id=table_id, decision_id=decision_id, action=action)

    async def think(self) -> None:
        """Take some time over it."""
        await asyncio.sleep(self._think_seconds * self._chance.uniform(0.5, 1.5))


async def play(way: Way, player: str, table_id: str, minds: Minds, stream: Stream) -> None:
    """Play by a stream of one's own until the table has closed."""
    channel = way.to("table", player)
    stub: Any = TableServiceStub(channel)

    async def act(request: wire.ActRequest) -> None:
        await minds.think()
        try:
            await stub.Act(request)
        except grpc.aio.AioRpcError as error:
            if explain(error).reason != "STALE_DECISION":  # another's claim came first
                raise

    async with asyncio.TaskGroup() as acts:
        async for event in attend(channel, table_id, give_up_seconds=PATIENCE_SECONDS):
            stream.events.append(event)
            request = minds.answer(player, table_id, event)
            if request is not None:
                acts.create_task(act(request))


Place = tuple[str, str]
"""Player and table."""

_PASSES = frozenset({"MOVED", "NO_OWNER", "REPLICA_BUSY", "JOURNAL_UNAVAILABLE"})


class Gateway:
    """Plays for many by one stream; what of it is lost with a replica it asks for again."""

    def __init__(self, way: Way, minds: Minds, streams: dict[Place, Stream]) -> None:
        self._stub: Any = TableServiceStub(way.to("table", caller=GATEWAY))
        self._minds = minds
        self._streams = streams
        """Of the places whose tables have not closed."""
        self._unanswered: dict[tuple[Place, str], wire.AttendManyRequest] = {}
        self._asked: asyncio.Queue[wire.AttendManyRequest] = asyncio.Queue()

    async def run(self) -> None:
        """Play until all tables have closed."""
        async with asyncio.TaskGroup() as later:
            while self._streams:
                self._asked = asyncio.Queue()
                for place in self._streams:
                    self._add(place)
                call = self._stub.AttendMany(_given(self._asked))
                try:
                    while self._streams and (message := await call.read()) is not grpc.aio.EOF:
                        self._told(message, later)
                except grpc.aio.AioRpcError as error:
                    if not explain(error).passes:
                        raise
                    await asyncio.sleep(PAUSE_SECONDS)
                finally:
                    call.cancel()

    def _add(self, place: Place) -> None:
        """Ask for a seat from its last number on, and again what had no answer."""
        player, table_id = place
        add = wire.AddSeat(player_id=player, table_id=table_id)
        add.from_number = self._streams[place].last
        self._asked.put_nowait(wire.AttendManyRequest(add=add))
        for (at, _), act in self._unanswered.items():
            if at == place:
                self._asked.put_nowait(act)

    def _told(self, message: wire.AttendManyResponse, later: asyncio.TaskGroup) -> None:
        for one in message.events.events:
            place = (one.player_id, one.table_id)
            self._streams[place].events.append(one.event)
            request = self._minds.answer(*place, one.event)
            if request is not None:
                later.create_task(self._act(place, request))
        for one in message.events.acted:
            self._unanswered.pop(((one.player_id, one.table_id), one.decision_id), None)
        if message.HasField("done"):
            self._streams.pop((message.done.player_id, message.done.table_id))
        if message.HasField("problem"):
            self._refused(message.problem, later)

    async def _act(self, place: Place, request: wire.ActRequest) -> None:
        await self._minds.think()
        act = wire.AttendManyRequest(act=wire.SeatAct(player_id=place[0], act=request))
        self._unanswered[place, request.decision_id] = act
        self._asked.put_nowait(act)

    def _refused(self, refused: wire.SeatProblem, later: asyncio.TaskGroup) -> None:
        place, decision_id = (refused.player_id, refused.table_id), refused.decision_id
        reason = refused.problem.reason
        if decision_id and reason == "STALE_DECISION":
            self._unanswered.pop((place, decision_id), None)
        elif decision_id and reason == "NOT_ADDED":
            pass  # it was on its way when the seat moved: it goes again with the seat
        elif reason not in _PASSES:
            raise AssertionError(f"a gateway was refused: {refused}")
        elif decision_id:
            later.create_task(self._again(self._asked, place, decision_id))
        else:
            later.create_task(self._again(self._asked, place))

    async def _again(self, asked: Any, place: Place, decision_id: str = "") -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        if asked is not self._asked or place not in self._streams:
            return  # a new stream has asked for everything
        if not decision_id:
            self._add(place)
        elif (act := self._unanswered.get((place, decision_id))) is not None:
            asked.put_nowait(act)


async def _given(
    asked: asyncio.Queue[wire.AttendManyRequest],
) -> AsyncIterator[wire.AttendManyRequest]:
    while True:
        yield await asked.get()
