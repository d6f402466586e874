"""A rolling restart: every process of a suite is told to stop and replaced, one after the other,
while two hundred calls a second are made and five hundred streams are open. Nobody notices.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2 as queues
from fangcheng.matchmaking.v1 import operations_pb2, operations_pb2_grpc
from fangcheng.matchmaking.v1 import rooms_pb2 as rooms
from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.matchmaking.v1.rooms_pb2_grpc import RoomServiceStub
from fangcheng.table.v1 import events_pb2, operators_pb2, operators_pb2_grpc, records_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.records_pb2_grpc import TableRecordServiceStub
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import TableView, attend, watch
from tests.system.processes import Service
from tests.system.replicas import until
from tests.system.rolling import (
    PATIENCE_SECONDS,
    Calls,
    Gateway,
    Minds,
    Place,
    Stream,
    Way,
    followed,
    play,
)
from tests.system.tables import Cluster

CALLS_PER_SECOND = 200
SLOW_TABLES = 10
QUICK_TABLES = 2
"""At which hands end while a service is away, and are settled."""
SPECTATORS = 43
"""Of each slow table."""
TICKETS = 20
ROOMS = 20
LOBBIES = 10
FEEDS = 4
"""Streams of finished hands."""
STREAMS = 500
FIRST_SILVER = 1_000_000
CALLS_BETWEEN = 100
"""Answered by all replicas before the next one is stopped."""
POOLS = """
pools:
  - id: slow
    name: slow
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 1, buy_in: 1000}]
    timing: &patient {claim_window_ms: 0, between_hands_ms: 0, turn_ms: 300000, claim_ms: 300000}
  - {id: quick, name: quick, rules: {id: baishan_kele}, timing: *patient,
     stakes: [{currency: silver, per_unit: 1, buy_in: 1000}]}
  - {id: paused, name: paused, rules: {id: baishan_kele}}
rooms:
  - {id: friends, name: friends, rules: {id: baishan_kele}, hands: 1}
"""


class Suite:
    """Everything that goes on, and what came of it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.way = Way(cluster)
        self.places: dict[str, Place] = {}
        """By player."""
        self.seats: dict[Place, Stream] = {}
        self.spectators: dict[str, list[Stream]] = defaultdict(list)
        """By table."""
        self.tickets: dict[str, list[int]] = {}
        """The states that a ticket's stream told."""
        self.rooms: list[str] = []
        self.lobbies = [0] * LOBBIES
        """How many messages."""
        self.hands: list[list[tuple[str, int]]] = [[] for _ in range(FEEDS)]
        self.tasks: list[asyncio.Task[None]] = []
        """Streams that end when their tables have closed, and tickets."""
        self.endless: list[asyncio.Task[None]] = []
        self.calls: Calls

    @property
    def table_ids(self) -> list[str]:
        return sorted({table_id for _, table_id in self.seats})

    @property
    def watched(self) -> list[Stream]:
        return [*self.seats.values(), *chain.from_iterable(self.spectators.values())]

    async def begin(self) -> None:
        """Seat everybody, open every stream."""
        operations: Any = operations_pb2_grpc.MatchmakingOperationsServiceStub(
            self.way.to("matchmaking")
        )
        await operations.PausePool(operations_pb2.PausePoolRequest(pool_id="paused"))
        pools = {
            f"{pool}-{number}": pool
            for pool, tables in (("slow", SLOW_TABLES), ("quick", QUICK_TABLES))
            for number in range(4 * tables)
        }
        await asyncio.gather(*(self._open_wallet(player) for player in pools))
        await asyncio.gather(*(self._seat(player, pool) for player, pool in pools.items()))
        self._sit(pools)
        for table_id in {
            self.places[player][1] for player, pool in pools.items() if pool == "slow"
        }:
            for number in range(SPECTATORS):
                stream = Stream(f"spectator {number} of {table_id}")
                self.spectators[table_id].append(stream)
                self._go(self._watch(table_id, stream))
        for number in range(TICKETS):
            self._go(self._wait(f"waits-{number}"))
        for number in range(ROOMS):
            self._go(self._room(f"host-{number}"), endless=True)
        for number in range(LOBBIES):
            self._go(self._lobby(number), endless=True)
        for hands in self.hands:
            self._go(self._feed(hands), endless=True)
        self.calls = Calls(self.way, list(pools), self.table_ids, "paused")
        self._go(self.calls.run(CALLS_PER_SECOND), endless=True)

    def _go(self, work: Any, *, endless: bool = False) -> None:
        (self.endless if endless else self.tasks).append(asyncio.create_task(work))

    async def _open_wallet(self, player: str) -> None:
        wallets: Any = wallet_pb2_grpc.WalletServiceStub(self.way.to("wallet"))
        await wallets.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=player))
        deposit = wallet_pb2.DepositRequest(
            request_id=f"first of {player}",
            player_id=player,
            currency="silver",
            amount=FIRST_SILVER,
        )
        await wallets.Deposit(deposit)

    async def _seat(self, player: str, pool: str) -> None:
        queue: Any = MatchmakingServiceStub(self.way.to("matchmaking", player))
        joined = await queue.JoinQueue(queues.JoinQueueRequest(request_id="1", pool_id=pool))
        request = queues.WatchTicketRequest(ticket_id=joined.ticket.ticket_id)
        async for message in followed(lambda: queue.WatchTicket(request)):
            ticket = message.ticket
        assert ticket.state == queues.TICKET_STATE_ASSIGNED
        self.places[player] = (player, ticket.table_id)

    def _sit(self, pools: dict[str, str]) -> None:
        """Half of the slow tables by streams of the players' own, the others by a gateway's."""
        slow, quick = Minds(2.0), Minds(0.05)
        self.seats = {place: Stream(" at ".join(place)) for place in self.places.values()}
        own = set(sorted({self.places[p][1] for p in pools if pools[p] == "slow"})[::2])
        together: dict[str, dict[Place, Stream]] = {"slow": {}, "quick": {}}
        for place, stream in self.seats.items():
            player, table_id = place
            if table_id in own:
                self._go(play(self.way, player, table_id, slow, stream))
            else:
                together[pools[player]][place] = stream
        for pool, minds in (("slow", slow), ("quick", quick)):
            self._go(Gateway(self.way, minds, together[pool]).run())

    async def _watch(self, table_id: str, stream: Stream) -> None:
        channel = self.way.to("table")
        async for event in watch(channel, table_id, give_up_seconds=PATIENCE_SECONDS):
            stream.events.append(event)

    async def _wait(self, player: str) -> None:
        queue: Any = MatchmakingServiceStub(self.way.to("matchmaking", player))
        join = queues.JoinQueueRequest(request_id="1", pool_id="paused")
        ticket_id = (await queue.JoinQueue(join)).ticket.ticket_id
        told = self.tickets[ticket_id] = []
        request = queues.WatchTicketRequest(ticket_id=ticket_id)
        states = followed(lambda: queue.WatchTicket(request))
        told.extend([message.ticket.state async for message in states])

    async def _room(self, player: str) -> None:
        stub: Any = RoomServiceStub(self.way.to("matchmaking", player))
        opened = await stub.OpenRoom(rooms.OpenRoomRequest(request_id="1", template_id="friends"))
        self.rooms.append(opened.room.room_id)
        request = rooms.WatchRoomRequest(room_id=opened.room.room_id)
        async for message in followed(lambda: stub.WatchRoom(request)):
            assert message.room.room_id == opened.room.room_id

    async def _lobby(self, number: int) -> None:
        stub: Any = TableServiceStub(self.way.to("table"))
        async for _ in followed(lambda: stub.WatchTables(wire.WatchTablesRequest())):
            self.lobbies[number] += 1

    async def _feed(self, hands: list[tuple[str, int]]) -> None:
        stub: Any = TableRecordServiceStub(self.way.to("table"))
        request = records_pb2.StreamFinishedHandsRequest()
        async for message in followed(lambda: stub.StreamFinishedHands(request)):
            if message.HasField("hand"):
                request.cursor = message.hand.cursor
                hands.append((message.hand.entry.table_id, message.hand.entry.hand_number))

    async def goes_on(self) -> None:
        """Wait until every stream that has something to tell has told more, and calls go on."""
        seen = {stream.name: stream.last for stream in self.watched}
        lobbies, calls = list(self.lobbies), self.calls.answered.total()

        async def all_have() -> bool:
            for task in (*self.tasks, *self.endless):
                if task.done():
                    task.result()  # raises what it ended with
            return (
                all(stream.last > seen[stream.name] for stream in self.watched)
                and all(now > before for now, before in zip(self.lobbies, lobbies, strict=True))
                and self.calls.answered.total() >= calls + CALLS_BETWEEN
                and len(self.tickets) == TICKETS
                and len(self.rooms) == ROOMS
            )

        await until(all_have, f"all go on ({self.calls.failed})")

    async def end(self) -> None:
        """No more calls; who waits is seated, and the tables close."""
        calls = self.endless.pop()
        calls.cancel()
        await asyncio.gather(calls, return_exceptions=True)
        operations: Any = operations_pb2_grpc.MatchmakingOperationsServiceStub(
            self.way.to("matchmaking")
        )
        await operations.ResumePool(operations_pb2.ResumePoolRequest(pool_id="paused"))
        operators: Any = operators_pb2_grpc.TableOperationsServiceStub(self.way.to("table"))
        for table_id in self.table_ids:
            close = operators_pb2.CloseTableRequest(
                request_id=table_id, table_id=table_id, reason="the test is over"
            )
            await operators.CloseTable(close)
        await asyncio.gather(*self.tasks)

    async def close(self) -> None:
        for task in (*self.tasks, *self.endless):
            task.cancel()
        await asyncio.gather(*self.tasks, *self.endless, return_exceptions=True)
        await self.way.close()


@pytest.mark.system
@pytest.mark.timeout(600)
async def test_a_rolling_restart_fails_no_call_and_no_stream_misses_anything(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path, POOLS, wallets=2)
    suite = Suite(cluster)
    try:
        await cluster.start()
        await suite.begin()
        await suite.goes_on()
        open_streams = len(suite.watched) + TICKETS + ROOMS + LOBBIES + FEEDS
        gateways = 4 * (SLOW_TABLES // 2 + QUICK_TABLES) - 2
        assert open_streams - gateways >= STREAMS
        for services in (cluster.evaluators, cluster.wallets, cluster.tables, cluster.matchmaking):
            for service in services:
                clients = await asyncio.to_thread(service.clients)
                await service.stop()
                await service.start()
                await suite.goes_on()
                await comes_back(service, clients)
        await suite.end()
        print(f"{suite.calls.answered.total()} calls: {dict(suite.calls.answered)}")
        assert not suite.calls.failed
        check_streams(suite)
        await check_views(suite)
        check_tickets(suite)
        await check_hands(suite)
    finally:
        await suite.close()
        await cluster.close()


async def comes_back(service: Service, clients: int) -> None:
    """Wait until all clients have found it again, whom its neighbour would leave with nobody."""

    async def all_have() -> bool:
        return await asyncio.to_thread(service.clients) >= clients

    await until(all_have, f"{clients} clients have found {service.name} again")


def check_streams(suite: Suite) -> None:
    """Every stream told the numbers 1, 2, 3, …; a snapshot stands for those up to its own."""
    for stream in suite.watched:
        first, *_, closed = stream.events
        assert first.number == 1 or first.HasField("snapshot"), stream.name
        for one, following in pairwise(stream.events):
            follows = following.number == one.number + 1
            resumes = following.HasField("snapshot") and following.number >= one.number
            assert follows or resumes, (stream.name, one, following)
        assert closed.HasField("table_closed"), stream.name


async def check_views(suite: Suite) -> None:
    """What a stream told adds up to what who comes afterwards is shown."""
    for place, stream in suite.seats.items():
        player, table_id = place
        again = Stream("again")
        async for event in attend(suite.way.to("table", player), table_id):
            again.events.append(event)
        assert view_of(stream).to_snapshot() == view_of(again).to_snapshot(), stream.name
    for table_id, streams in suite.spectators.items():
        again = Stream("again")
        async for event in watch(suite.way.to("table"), table_id):
            again.events.append(event)
        told: dict[int, events_pb2.TableEvent] = {}
        for stream in streams:
            assert view_of(stream).to_snapshot() == view_of(again).to_snapshot(), stream.name
            for event in stream.events:
                if not event.HasField("snapshot"):
                    assert told.setdefault(event.number, event) == event


def view_of(stream: Stream) -> TableView:
    """What its events add up to."""
    view = TableView()
    for event in stream.events:
        view.apply(event)
    return view


def check_tickets(suite: Suite) -> None:
    """Who waited was seated in the end, and was told nothing else."""
    assert len(suite.tickets) == TICKETS
    for states in suite.tickets.values():
        *before, outcome = states
        assert outcome == queues.TICKET_STATE_ASSIGNED
        assert set(before) <= {queues.TICKET_STATE_WAITING, queues.TICKET_STATE_MATCHED}, states


async def check_hands(suite: Suite) -> None:
    """Each hand was told once on every feed, and paid once; each deposit was made once."""
    played = {
        (table_id, number)
        for (_, table_id), stream in suite.seats.items()
        for number in range(1, view_of(stream).hand_number + 1)
    }

    async def all_told() -> bool:
        return all(played <= set(hands) for hands in suite.hands)

    await until(all_told, "all hands are told")
    first, *others = suite.hands
    assert len(first) == len(set(first)) == len(played)
    assert all(hands == first for hands in others)

    wallets: Any = wallet_pb2_grpc.WalletServiceStub(suite.way.to("wallet"))
    audit = await wallets.AuditLedger(wallet_pb2.AuditLedgerRequest())
    assert not audit.findings
    assert set(audit.sums.values()) == {0}
    silver = 0
    for player in suite.places:
        answer = await wallets.GetBalances(wallet_pb2.GetBalancesRequest(player_id=player))
        silver += sum(one.available + one.held for one in answer.balances)
    assert silver == FIRST_SILVER * len(suite.places) + suite.calls.answered["deposit"]
