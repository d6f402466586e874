"""Several table services on one PostgreSQL database: who plays a table, and who is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog import get_logger

from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_client import ManySeats, attend, connect
from fangcheng_kit.tokens import mint_token
from fangcheng_table.events import ConnectionChanged
from fangcheng_table.metrics import TableMetrics
from fangcheng_table.migrations import JOURNAL
from fangcheng_table.ownership import Ownership
from fangcheng_table.postgres import PostgresJournal, open_postgres
from fangcheng_table.store import Claim, JournalError, NewTable, Owner, Record
from tests.postgres import database_of

from . import partners
from .tables import created
from .test_streams import Gateway
from .world import (
    DEV_KEY,
    PLAYERS,
    Lobbyist,
    Player,
    World,
    play_all,
    refused,
    request,
    simple,
    until,
)


@asynccontextmanager
async def replicas(folder: Path, count: int = 2, **settings: Any) -> AsyncIterator[list[World]]:
    """Services on one database, with one evaluator and one wallet."""
    database = await database_of(folder, JOURNAL)
    worlds = [World(folder) for _ in range(count)]
    first = worlds[0]
    async with partners.serving(first.evaluator, first.wallet) as address, AsyncExitStack() as all_:
        for world in worlds:
            world.evaluator, world.wallet = first.evaluator, first.wallet
            world._partners = address
            # No replica is so slow that the others take its tables for lost, nor a player missed.
            patience = {"lease_seconds": 60, "linger_seconds": 60, "resume_grace_seconds": 600}
            world.more = {"database": database, **patience, **settings}
            await world.start()
            all_.push_async_callback(world.close)
        yield worlds


async def make(service: World, request_id: str = "r1", **more: Any) -> str:
    made = await service.stub("operator").CreateTable(request(request_id, **more))
    return str(made.table.table_id)


async def test_any_replica_answers_for_a_table_as_its_owner_does(tmp_path):
    async with replicas(tmp_path) as (owner, other):
        table_id = await make(owner, hands=2)
        asked = wire.GetTableRequest(table_id=table_id)
        shown = (await other.stub("operator").GetTable(asked)).table
        assert shown.endpoint == owner.address
        assert shown == (await owner.stub("operator").GetTable(asked)).table
        listed = await other.stub("operator").ListTables(wire.ListTablesRequest())
        assert [(t.table_id, t.endpoint) for t in listed.tables] == [(table_id, owner.address)]
        # Two seats play through the other replica, which has never heard of the table.
        players = [Player((owner, other)[n % 2], name) for n, name in enumerate(PLAYERS)]
        watching = asyncio.create_task(watched(other, table_id))
        await asyncio.gather(*(player.play(table_id) for player in players))
        assert (await watching)[-1].HasField("table_closed")
        for player in players:
            assert player.events[-1].table_closed.reason == "hands_played"
            numbers = [event.number for event in player.events]
            assert numbers == list(range(1, len(numbers) + 1))
        assert sorted(owner.wallet.settled) == []
        # When nothing is left to do, everybody tells of it from the journal.
        again = [
            m.event async for m in other.player("ann").Attend(wire.AttendRequest(table_id=table_id))
        ]
        assert again[-1].HasField("snapshot") or again[-1].HasField("table_closed")


async def watched(service: World, table_id: str) -> list[Any]:
    stream = service.player("eve").Watch(wire.WatchRequest(table_id=table_id))
    return [message.event async for message in stream if message.HasField("event")]


async def test_who_has_no_seat_is_refused_as_by_the_owner(tmp_path):
    async with replicas(tmp_path) as (owner, other):
        table_id = await make(owner)
        for service in (owner, other):
            eve: Any = service.player("eve")
            act = wire.ActRequest(table_id=table_id, decision_id="1-1", action={"kind": "pass"})
            assert await refused(eve.Act(act)) == ("PERMISSION_DENIED", "NOT_SEATED", "table_id")
            stream = eve.Attend(wire.AttendRequest(table_id=table_id))
            assert (await refused(stream.read()))[1] == "NOT_SEATED"
            leave = wire.LeaveTableRequest(table_id=table_id, mode=1)
            assert (await refused(eve.LeaveTable(leave)))[1] == "NOT_SEATED"
            unknown = wire.GetTableRequest(table_id="nowhere")
            operator = service.stub("operator")
            assert (await refused(operator.GetTable(unknown)))[1] == "UNKNOWN_TABLE"


async def test_a_request_for_a_table_is_answered_by_any_replica_with_the_same_table(tmp_path):
    async with replicas(tmp_path) as (one, other):
        table_id = await make(one)
        again = await other.stub("operator").CreateTable(request("r1"))
        assert (again.table.table_id, again.replayed) == (table_id, True)
        assert again.table.endpoint == one.address


async def test_a_gateway_has_seats_of_all_replicas_on_one_stream(tmp_path):
    async with replicas(tmp_path) as (one, other):
        tables = [await make(one, "r1"), await make(other, "r2")]
        gateway = Gateway(one)
        places = [(name, table_id) for table_id in tables for name in PLAYERS]
        for place in places:
            gateway.add(*place)
        gateway.act("eve", tables[1], "1-1", simple_pass())
        playing = asyncio.create_task(gateway.run())
        await until(lambda: len(gateway.done) == len(places))
        gateway.end()
        await playing
        assert sorted(gateway.done) == sorted(places)
        assert [problem.problem.reason for problem in gateway.problems] == ["NOT_ADDED"]
        for place in places:
            numbers = [event.number for event in gateway.events[place]]
            assert numbers == list(range(1, len(numbers) + 1))
            assert gateway.events[place][-1].table_closed.reason == "hands_played"


async def test_a_lobby_at_any_replica_is_told_of_the_tables_of_all(tmp_path):
    async with replicas(tmp_path, summary_seconds=0.05) as (one, other):
        tables = [await make(one, "r1"), await make(other, "r2")]
        # The first picture has them all.
        first = other.player("eve").WatchTables(wire.WatchTablesRequest())
        whole: set[str] = set()
        while not (changes := (await first.read()).changes).complete:
            whole |= {table.table_id for table in changes.tables}
        assert whole | {table.table_id for table in changes.tables} == set(tables)
        first.cancel()
        seen: dict[str, str] = {}
        gone: list[str] = []

        async def watching() -> None:
            async for message in one.player("eve").WatchTables(wire.WatchTablesRequest()):
                seen.update((s.table_id, s.closed_reason) for s in message.changes.tables)
                gone.extend(message.changes.gone)

        task = asyncio.create_task(watching())
        await until(lambda: sorted(seen) == sorted(tables))
        await play_all(other, tables[1])
        await until(lambda: gone == [tables[1]])
        assert seen[tables[1]] == "hands_played"
        task.cancel()


async def test_a_gateway_is_told_of_the_seats_of_a_replica_that_is_gone(tmp_path):
    async with replicas(tmp_path) as (one, other):
        table_id = await make(other)
        gateway = Gateway(one)
        gateway.acts = False
        gateway.add("ann", table_id)
        running = asyncio.create_task(gateway.run())
        await until(lambda: bool(gateway.events))
        await other.stop()
        await until(lambda: bool(gateway.problems))
        assert {problem.problem.reason for problem in gateway.problems} <= {"MOVED", "DRAINING"}
        # Asked for again, since nothing more may happen at the table by itself.
        *_, last = gateway.events.pop(("ann", table_id))
        gateway.add("ann", table_id, last.number - 1)
        await until(lambda: bool(gateway.events))
        assert gateway.events["ann", table_id][0].number == last.number
        running.cancel()


def simple_pass() -> Any:
    return state_pb2.Action(kind="pass")


async def test_a_drained_replica_leaves_its_tables_and_players_see_a_resumed_stream(tmp_path):
    # The drained one is to answer until its tables have gone, as a process does.
    async with replicas(tmp_path, drain_seconds=0.4) as (drained, other):
        tables = [await make(drained, f"r{n}", hands=3) for n in range(4)]
        both = f"ipv4:{drained.address},{other.address}"
        players = [Seated(both, name, table_id) for table_id in tables for name in PLAYERS]
        playing = asyncio.gather(*(player.play() for player in players))
        await until(lambda: all(len(player.events) > 20 for player in players))
        assert drained._running is not None
        await drained._running.drain()
        while await owners_of(other, tables) != {other.address}:
            pass
        await playing
        for player in players:
            numbers = [event.number for event in player.events]
            assert numbers == list(range(1, len(numbers) + 1))
            assert player.events[-1].table_closed.reason == "hands_played"
            assert not any(
                e.HasField("connection_changed") and not e.connection_changed.connected
                for e in player.events
            )


async def test_a_table_on_its_way_to_a_replica_that_is_drained_goes_to_another(
    tmp_path, monkeypatch
):
    claiming: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    answered = asyncio.Event()
    claim = PostgresJournal.claim

    async def late(journal: PostgresJournal, owner_id: str, *more: Any) -> list[Claim]:
        claims = await claim(journal, owner_id, *more)
        if claims and not claiming.done():
            (address,) = [o.endpoint for o in await journal.owners() if o.owner_id == owner_id]
            claiming.set_result(address)
            await answered.wait()
        return claims

    async with replicas(tmp_path, 3, lease_seconds=3, drain_seconds=0.4) as (gone, *others):
        table_id = await make(gone)
        monkeypatch.setattr(PostgresJournal, "claim", late)
        await gone.stop()
        address = await claiming
        (drained,) = [one for one in others if one.address == address]
        (other,) = [one for one in others if one.address != address]
        assert drained._running is not None
        await drained._running.drain()
        answered.set()
        while await owners_of(other, [table_id]) != {other.address}:
            pass


async def test_a_client_that_knew_the_owner_alone_finds_the_next_one_elsewhere(tmp_path):
    async with replicas(tmp_path) as (lost, other):
        table_id = await make(lost, hands=2)
        both = f"ipv4:{lost.address},{other.address}"
        players = [Seated(lost.address, name, table_id, elsewhere=both) for name in PLAYERS]
        playing = asyncio.gather(*(player.play() for player in players))
        await until(lambda: all(len(player.events) > 20 for player in players))
        await lost.stop()
        await playing
        for player in players:
            numbers = [event.number for event in player.events]
            assert numbers == list(range(1, len(numbers) + 1))
            assert player.events[-1].table_closed.reason == "hands_played"


async def test_a_gateways_client_plays_on_when_the_replica_of_its_stream_is_lost(tmp_path):
    async with replicas(tmp_path) as (lost, other):
        tables = [await make(lost, "r1", hands=2), await make(other, "r2", hands=2)]
        places = [(name, table_id) for table_id in tables for name in PLAYERS]
        events: dict[tuple[str, str], list[Any]] = {place: [] for place in places}
        done, problems, stopping = set(), [], None
        token = mint_token(DEV_KEY, "service:gateway", ["act_as"])
        async with (
            connect(f"ipv4:{lost.address},{other.address}", token) as channel,
            aclosing(ManySeats(channel)) as seats,
        ):
            for place in places:
                seats.add(*place)
            async for news in seats:
                place = (news.player_id, news.table_id)
                match news:
                    case wire.SeatEvent():
                        events[place].append(news.event)
                        if news.event.HasField("prompt"):
                            prompt = news.event.prompt
                            seats.act(*place, prompt.decision_id, simple(prompt))
                    case wire.SeatProblem():
                        problems.append(news.problem.reason)
                    case wire.SeatDone():
                        done.add(place)
                if stopping is None and all(len(one) > 20 for one in events.values()):
                    stopping = asyncio.create_task(lost.stop())
                if done == events.keys():
                    break
        assert stopping is not None
        await stopping
        assert set(problems) <= {"STALE_DECISION"}  # the table was quicker
        for seen in events.values():
            numbers = [event.number for event in seen]
            assert numbers == list(range(1, len(numbers) + 1))
            assert seen[-1].table_closed.reason == "hands_played"


async def owners_of(service: World, tables: list[str]) -> set[str]:
    stub = service.stub("operator")
    asked = [stub.GetTable(wire.GetTableRequest(table_id=table_id)) for table_id in tables]
    return {answer.table.endpoint for answer in await asyncio.gather(*asked)}


class Seated(Player):
    """A player whose client knows all replicas, or at first the owner alone."""

    def __init__(self, target: str, name: str, table_id: str, elsewhere: str = "") -> None:
        super().__init__(World(Path()), name)
        self._target = target
        self._elsewhere = elsewhere or target
        self._table_id = table_id

    async def play(self, table_id: str = "") -> None:
        token = mint_token(DEV_KEY, f"player:{self._name}")
        async with (
            connect(self._target, token) as channel,
            connect(self._elsewhere, token) as elsewhere,
        ):
            stub: Any = TableServiceStub(elsewhere)
            async for event in attend(channel, self._table_id, elsewhere=elsewhere):
                self.events.append(event)
                if event.HasField("prompt"):
                    await self.answer(stub, event.prompt)

    async def answer(self, stub: Any, prompt: Any) -> None:
        act = wire.ActRequest(
            table_id=self._table_id,
            decision_id=prompt.decision_id,
            action=self._choose(prompt),
        )
        while True:
            try:
                await stub.Act(act, wait_for_ready=True)
            except Exception as error:
                code = getattr(error, "code", lambda: None)()
                if code is not None and code.name == "UNAVAILABLE":
                    await asyncio.sleep(0.02)
                    continue
                if code is None or code.name != "FAILED_PRECONDITION":
                    raise
            return


async def test_a_table_that_lost_its_owner_is_played_on_by_whoever_is_asked(tmp_path):
    async with replicas(tmp_path) as (lost, other):
        table_id = await make(lost, hands=1)
        await lost.stop()
        players = await play_all(other, table_id)
        assert players[0].events[-1].table_closed.reason == "hands_played"


async def test_the_tables_of_a_lost_replica_are_taken_over_without_being_asked_for(tmp_path):
    taken_over = wire.TABLE_TROUBLE_KIND_TAKEN_OVER
    settings = {"lease_seconds": 1.0, "summary_seconds": 0.05}
    async with replicas(tmp_path, **settings) as (lost, other):
        here = {other.address}
        tables = [await make(lost, f"r{n}") for n in range(6)]
        # Its lease is over, though nobody has told it.
        journal = await open_postgres(lost.settings().database)
        try:
            (owner,) = [o for o in await journal.owners() if o.endpoint == lost.address]
            operator = Lobbyist(other.stub("operator"))
            await until(lambda: sorted(operator.newest) == sorted(tables))
            assert not any(one.troubles for one in operator.newest.values())
            claims = await journal.held(owner.owner_id)
            assert {claim.table_id for claim in claims} == set(tables)
            await journal.leave(owner.owner_id)
            taken = other.value
            await until(lambda: taken("fangcheng_table_unowned") == 0 and owned(other) == 6)
            # The one that was only thought lost wakes up, and finds that it has lost them.
            await until(lambda: owned(lost) == 0)
            # Operators are told where they are played now, and why.
            await until(lambda: {one.endpoint for one in operator.newest.values()} == here)
            for one in operator.newest.values():
                assert [trouble.kind for trouble in one.troubles] == [taken_over]
            operator.stop()
        finally:
            await journal.close()
        assert await owners_of(lost, tables) == {other.address}


def owned(service: World) -> float:
    """Tables that a service plays."""
    return sum(
        service.value("fangcheng_tables", rule_set="baishan_kele", phase=phase)
        for phase in ("before_deal", "playing", "between_hands", "closed")
    )


# Who takes what.


class Part:
    """A process's part, without tables."""

    def __init__(self, journal: Any, name: str) -> None:
        self.taken: list[Claim] = []
        self.kept: list[Claim] | None = None
        self.ownership = Ownership(
            journal,
            Owner(name, f"{name}:1"),
            600_000,
            self.taken.append,
            lambda claims: setattr(self, "kept", list(claims)),
            lambda: len(self.taken),
            TableMetrics(CollectorRegistry()),
            get_logger(),
        )


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Any]:
    opened = await open_postgres(await database_of(tmp_path, JOURNAL))
    yield opened
    await opened.close()


async def abandoned(journal: Any, count: int, **more: Any) -> None:
    """Tables whose owner is gone."""
    for number in range(count):
        table = {
            "table_id": f"t{number}",
            "request_id": f"r{number}",
            "request": "",
            "rule_set": "baishan_kele",
            "revision": 1,
            "player_ids": PLAYERS,
            "labels": {},
        }
        await journal.create(NewTable(**{**table, **more}), [Record(1, 1_000, created())], "gone")


async def test_tables_without_an_owner_are_spread_evenly(journal):
    parts = [Part(journal, name) for name in ("a", "b", "c")]
    for part in parts:
        await part.ownership.begin()
    await abandoned(journal, 10)
    await asyncio.gather(*(part.ownership._claim_share() for part in parts))
    assert sorted(len(part.taken) for part in parts) == [2, 4, 4]
    assert len({claim.table_id for part in parts for claim in part.taken}) == 10


async def test_what_was_claimed_is_played_though_the_answer_was_lost(journal, monkeypatch):
    await abandoned(journal, 3)
    part = Part(journal, "one")
    claim = journal.claim

    async def lost(*asked: Any) -> Any:
        await claim(*asked)
        raise JournalError("claimed, but the answer was lost")

    monkeypatch.setattr(journal, "claim", lost)
    with pytest.raises(JournalError):
        await part.ownership.begin()
    assert not part.taken
    assert (await journal.census()).unowned == 0
    await part.ownership.begin()
    assert part.taken == await journal.held("one")
    assert len(part.taken) == 3
    await part.ownership.begin()
    assert len(part.taken) == 3


async def test_what_others_leave_over_is_taken_whatever_the_share(journal):
    one, idle = Part(journal, "one"), Part(journal, "idle")
    for part in (one, idle):
        await part.ownership.begin()
    await abandoned(journal, 9)
    await one.ownership._claim_share()
    assert len(one.taken) == 5
    await one.ownership._claim_share()
    assert len(one.taken) == 9
    assert idle.taken == []


async def test_a_table_of_a_revision_that_is_not_here_is_left_alone(journal):
    part = Part(journal, "one")
    await part.ownership.begin()
    await abandoned(journal, 2, revision=999)
    for _ in range(3):
        await part.ownership._claim_share()
    assert part.taken == []
    assert await part.ownership.claim("t0") is None
    assert (await journal.census()).unowned == 2


async def test_who_retires_takes_nothing(journal):
    part = Part(journal, "one")
    await part.ownership.begin()
    await abandoned(journal, 1)
    part.ownership.retire()
    assert await part.ownership.claim("t0") is None


async def test_a_lease_that_had_run_out_is_renewed_and_what_was_lost_is_told(journal):
    part, other = Part(journal, "one"), Part(journal, "other")
    await abandoned(journal, 2)
    await part.ownership.begin()
    assert len(part.taken) == 2
    await part.ownership._renew()
    assert part.kept is None
    await journal.renew("one", 0)
    await other.ownership.begin()
    await journal.append("t0", [Record(2, 2_000, ConnectionChanged(0, True))], epoch=3)
    await part.ownership._renew()
    assert part.kept == []
    assert len(other.taken) == 2
