"""Who cancels, vanishes, or asks from a second device while his table is made for him.

10,000 such races on a fake clock with two replicas that fall in the middle, and some hundred for
real. However they end: nobody sits at two tables, no table has three, and no hold is left over.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import grpc.aio
import pytest
import structlog
import structlog.testing
from prometheus_client import CollectorRegistry

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng.table.v1 import table_pb2
from fangcheng_client import explain
from fangcheng_matchmaking.admission import Admission
from fangcheng_matchmaking.core import MatchState, Member, NewTicket, Ticket, TicketState
from fangcheng_matchmaking.joining import CannotJoin
from fangcheng_matchmaking.losses import Calendar
from fangcheng_matchmaking.matchmaker import Matchmaker
from fangcheng_matchmaking.metrics import Metrics
from fangcheng_matchmaking.migrations import QUEUES
from fangcheng_matchmaking.partners import Tables, Unanswered, Wallet
from fangcheng_matchmaking.pools import load_pools
from fangcheng_matchmaking.postgres import open_postgres
from fangcheng_matchmaking.sqlite import open_sqlite
from fangcheng_matchmaking.store import Store
from tests.matchmaking.clients import Player
from tests.matchmaking.fake_time import Direct, FakeTimeLoop
from tests.matchmaking.partners import FakeTables
from tests.matchmaking.wallet import FakeWallet
from tests.matchmaking.world import World
from tests.postgres import database_of

T = TypeVar("T")

DEVICES = 2
TIMES = 20
"""That each device asks for a table."""
POOLS = """
pools:
  - id: silver
    name: for silver
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 10, buy_in: 1000}]
    most_party: 4
  - id: free
    name: for nothing
    rules: {id: baishan_kele}
    most_party: 4
"""
SEATED = (TicketState.ASSIGNED, TicketState.ENDED)


class Cut(Exception):
    """The replica that was asked fell before it answered."""


class WatchedTables(FakeTables):
    """Tables that look who is seated, and close by themselves after a while."""

    longest_seconds = 0.5

    def __init__(self, wallet: FakeWallet, chance: random.Random) -> None:
        super().__init__(wallet)
        self.wallet = wallet
        self.wrong: list[str] = []
        self.ends: Counter[str] = Counter()
        self._chance = chance

    def create(self, request: table_pb2.CreateTableRequest) -> table_pb2.CreateTableResponse:
        sit = self.players
        answer = super().create(request)
        if answer.replayed:
            return answer
        if len({seat.player_id for seat in request.seats}) != 4:
            self.wrong.append(f"not four: {request}")
        for seat in request.seats:
            self.check(seat, sit, is_staked=bool(request.stakes))
        asyncio.get_running_loop().call_later(
            self._chance.uniform(0, self.longest_seconds), self.close, answer.table.table_id
        )
        return answer

    @property
    def players(self) -> set[str]:
        """Who sits at an open table."""
        return {seat.player_id for table in self.open_tables for seat in table.seats}

    def check(self, seat: table_pb2.SeatAssignment, sit: set[str], *, is_staked: bool) -> None:
        """Looks at one who sits down while others `sit` already."""
        if seat.player_id in sit:
            self.wrong.append(f"{seat.player_id} sits at two tables")
        holds = self.wallet.open_holds
        holders = {holds[one].player_id if one in holds else "" for one in seat.hold_ids}
        if holders != ({seat.player_id} if is_staked else set()):
            self.wrong.append(f"{seat.player_id} has no hold of his own: {seat}")


class Replica:
    """A matchmaker that falls and comes again; calls to it are cut off when it falls."""

    def __init__(self, store: Store, pools: Path, tables: WatchedTables, chance: random.Random):
        self._store = store
        self._pools = pools
        self._tables = tables
        self._chance = chance
        self._calls: set[asyncio.Task] = set()
        self._matchmaker: Matchmaker | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        matchmaker = Matchmaker(
            load_pools(self._pools).pools,
            self._store,
            Wallet(Direct(self._tables.wallet, self._chance)),
            Tables(Direct(self._tables, self._chance)),
            Admission(None, timeout_seconds=1, when_silent="allow", log=structlog.get_logger()),
            Metrics(CollectorRegistry()),
            log=structlog.get_logger(),
            chance=self._chance,
            table_check_seconds=0.1,
            longest_backoff_seconds=0.1,
            keep_days=7,
            calendar=Calendar(0),
            room_minutes=60,
            wrong_codes_per_minute=240,
            clock_ms=loop.now_ms,
        )
        await matchmaker.load()
        self._running = asyncio.create_task(matchmaker.run())
        self._matchmaker = matchmaker

    async def fall(self) -> None:
        matchmaker, self._matchmaker = self._matchmaker, None
        for call in self._calls:
            call.cancel()
        self._running.cancel()
        await asyncio.wait([self._running])
        await matchmaker.close()  # the database does what it was asked for

    async def ask(self, work: Callable[[Matchmaker], Awaitable[T]]) -> T:
        if self._matchmaker is None:
            await asyncio.sleep(0.01)
            raise Cut
        call = asyncio.create_task(work(self._matchmaker))
        self._calls.add(call)
        try:
            return await call
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():
                raise
            raise Cut from None
        finally:
            self._calls.discard(call)


class Races:
    """The players, each with devices that know nothing of each other."""

    def __init__(
        self, players: int, replicas: list[Replica], tables: WatchedTables, chance: random.Random
    ) -> None:
        self._players = [f"p{number}" for number in range(players)]
        self._replicas = replicas
        self._tables = tables
        self._chance = chance
        self.ends: Counter[str] = Counter()

    async def play(self) -> None:
        async with asyncio.TaskGroup() as group:
            for player_id in self._players:
                for device in range(DEVICES):
                    group.create_task(self._device(player_id, device))

    async def stop(self) -> None:
        """Each looks where he is, as a client does that lost everything, and leaves his queue."""
        for player_id in self._players:
            status = await self._sure(lambda at, one=player_id: at.status(one))
            if status.view is not None and status.seat is None:
                ticket_id = status.view.ticket.ticket_id
                await self._sure(lambda at, one=ticket_id: at.leave(one))

    async def _device(self, player_id: str, device: int) -> None:
        chance = self._chance
        for number in range(TIMES):
            await asyncio.sleep(chance.uniform(0, 1))
            ticket = self._ticket(player_id, device, number)
            try:
                joined = await self._sure(lambda at, new=ticket: at.join(new))
            except CannotJoin as error:
                self.ends[type(error).__name__] += 1
                continue
            if chance.random() < 0.15:
                self._freeze(player_id)
            ticket = await self._outcome(joined.ticket.ticket_id)
            self.ends[ticket.state] += 1
            self._check(ticket)

    def _ticket(self, player_id: str, device: int, number: int) -> NewTicket:
        chance = self._chance
        same = chance.random() < 0.4  # as what the other device asks for
        members = [player_id]
        if not same and chance.random() < 0.1:
            members.append(chance.choice([one for one in self._players if one != player_id]))
        return NewTicket(
            ticket_id=f"{player_id}-{number}-{device}",
            request_id=f"{number}" if same else f"{number}.{device}",
            members=tuple(Member(player_id=one) for one in members),
            pool_id=("silver", "free")[number % 2],
            queued_ms=asyncio.get_running_loop().now_ms(),
        )

    async def _outcome(self, ticket_id: str) -> Ticket:
        """How the ticket ends; most do not wait for it."""
        patience = self._chance.choice((0.2, 1, 5))
        try:
            async with asyncio.timeout(self._chance.uniform(0, patience)):
                return await self._sure(lambda at: _watched(at, ticket_id))
        except TimeoutError:
            ticket = await self._sure(lambda at: at.leave(ticket_id))
            if ticket.state in SEATED:
                self.ends["too late"] += 1
            return ticket

    def _check(self, ticket: Ticket) -> None:
        if ticket.state not in SEATED:
            assert ticket.table_id is None
            return
        sat = self._tables.sat[ticket.table_id]
        for member in ticket.members:
            assert sat[member.player_id] == member.seat

    def _freeze(self, player_id: str) -> None:
        frozen = self._tables.wallet.frozen
        frozen.add(player_id)
        asyncio.get_running_loop().call_later(0.5, frozen.discard, player_id)

    async def _sure(self, work: Callable[[Matchmaker], Awaitable[T]]) -> T:
        """Asks until there is an answer; now and then the line is lost while it waits."""
        while True:
            lost_after = self._chance.uniform(0, 0.2) if self._chance.random() < 0.2 else None
            asking = self._chance.choice(self._replicas).ask(work)
            try:
                return await asyncio.wait_for(asking, lost_after)
            except TimeoutError:
                self.ends["line lost"] += 1
            except (Cut, Unanswered, grpc.aio.AioRpcError):
                self.ends["asked again"] += 1


async def _watched(matchmaker: Matchmaker, ticket_id: str) -> Ticket:
    views = [view async for view in matchmaker.watch(ticket_id)]
    return views[-1].ticket


async def _falling(
    replicas: list[Replica], chance: random.Random, is_over: Callable[[], bool]
) -> None:
    """One replica after the other falls and comes again, and once in a while both."""
    while not is_over():
        await asyncio.sleep(chance.uniform(1, 3))
        gone = replicas if chance.random() < 0.2 else [chance.choice(replicas)]
        for replica in gone:
            await replica.fall()
        await asyncio.sleep(chance.uniform(0, 1))
        for replica in gone:
            await replica.start()


async def _race(
    loop: FakeTimeLoop, stores: list[Store], pools: Path, players: int, kind: type[WatchedTables]
) -> Counter[str]:
    chance = random.Random(7)
    wallet = FakeWallet()
    for number in range(players):
        wallet.silver[f"p{number}"] = 10_000
    tables = kind(wallet, chance)
    replicas = [Replica(store, pools, tables, chance) for store in stores]
    for replica in replicas:
        await replica.start()
    played = Races(players, replicas, tables, chance)
    playing = asyncio.create_task(played.play())
    await _falling(replicas, chance, playing.done)
    await playing
    await played.stop()
    store = stores[0]
    deadline = loop.time() + 600
    while tables.open_tables or (await store.live_tickets()).tickets:
        assert loop.time() < deadline, "something is left over"
        await asyncio.sleep(0.1)
    assert await store.unfinished_matches() == []
    assert wallet.open_holds == {}
    assert tables.wrong == []
    for table_id, request in tables.requests.items():
        match = await store.match(request.request_id)
        assert (match.state, match.table_id) == (MatchState.SEATED, table_id)
        tickets = {one: await store.ticket(one) for one in match.ticket_ids}
        assert {one.table_id for one in tickets.values()} == {table_id}
    for replica in replicas:
        await replica.fall()
    return played.ends + tables.ends


@pytest.mark.parametrize(
    ("engine", "players"),
    [
        ("sqlite", 25),
        ("postgres", 15),
        pytest.param("sqlite", 250, marks=pytest.mark.slow),
    ],
)
def test_races_against_assignment_on_a_fake_clock(
    engine: str, players: int, tmp_path: Path
) -> None:
    ends = run_races(engine, players, tmp_path, POOLS, WatchedTables)
    kinds = {"assigned", "left", "line lost", "AlreadyQueued", "AlreadySeated"}
    if engine == "sqlite":
        # The other one's few players come to these a few times alone, and once to none of them.
        kinds |= {"failed", "too late"}
    assert kinds <= ends.keys(), "not every kind of race was run"


def run_races(
    engine: str, players: int, tmp_path: Path, text: str, kind: type[WatchedTables]
) -> Counter[str]:
    """Runs races in pools at tables of a kind; how they end. Nothing may be left over."""
    pools = tmp_path / "pools.yaml"
    pools.write_text(text, "utf-8")
    database = asyncio.run(database_of(tmp_path, QUEUES)) if engine == "postgres" else ""
    loop = FakeTimeLoop()

    async def open_store() -> Store:
        if database:
            return await open_postgres(database)
        return await open_sqlite(tmp_path / "matchmaking.db", clock=loop.now_ms)

    async def run() -> Counter[str]:
        with loop.in_real_time():
            stores = [await open_store() for _ in range(2)]
        try:
            return await _race(loop, stores, pools, players, kind)
        finally:
            for store in stores:
                await store.close()

    with structlog.testing.capture_logs() as logs, asyncio.Runner(loop_factory=lambda: loop) as at:
        ends = at.run(run())
    assert [one for one in logs if one["log_level"] == "error"] == []
    return ends


async def test_races_against_assignment_for_real(world: World) -> None:
    chance = random.Random(11)
    players = [(await world.player(f"p{one}"), await world.player(f"p{one}")) for one in range(40)]
    for number in range(8):
        seated = await asyncio.gather(*(_race_for_real(*two, number, chance) for two in players))
        world.check()
        at_tables = {seat.player_id for one in world.tables.open_tables for seat in one.seats}
        assert at_tables == {one for one in seated if one is not None}
        for table in world.tables.open_tables:
            world.tables.close(table.table_id)


async def _race_for_real(
    device: Player, other: Player, number: int, chance: random.Random
) -> str | None:
    """Two devices join at once; the one that got a ticket leaves soon. The player, if seated."""
    joining = (device.join("silver", f"{number}.0"), other.join("silver", f"{number}.1"))
    answers = await asyncio.gather(*joining, return_exceptions=True)
    refused = [explain(one).reason for one in answers if isinstance(one, grpc.aio.AioRpcError)]
    assert refused in (["ALREADY_QUEUED"], ["ALREADY_SEATED"])
    mine = device if isinstance(answers[0], pb.Ticket) else other
    for _ in range(chance.randrange(8)):
        await mine.now()  # a stream that is torn as soon as it has begun
    try:
        told = (await mine.leave()).state
    except grpc.aio.AioRpcError as error:
        told = explain(error).reason
    assert told in (pb.TICKET_STATE_LEFT, "ALREADY_SEATED")
    return mine.player_id if told == "ALREADY_SEATED" else None
