"""Streams of seats, spectators and gateways: resumed, replaced, slow, many, and gone."""

from __future__ import annotations

import asyncio
import gc
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest

from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_client import explain
from fangcheng_table.errors import AttendedElsewhere, InvalidNumber, ReaderTooSlow
from fangcheng_table.feed import Feed, Waiter
from fangcheng_table.many import ManySeats
from fangcheng_table.views import SPECTATORS

from .tables import Drive, at_random, created
from .world import PLAYERS, Player, World, play_all, request, simple, until, world


async def make(service: World, request_id: str = "r1", **more: Any) -> str:
    made = await service.stub("operator").CreateTable(request(request_id, **more))
    table_id: str = made.table.table_id
    return table_id


async def attended(service: World, table_id: str, name: str, number: int = 0) -> Any:
    """A stream of a player, of which the first event was read."""
    call = service.player(name).Attend(wire.AttendRequest(table_id=table_id, from_number=number))
    await call.read()
    return call


async def connected(service: World, table_id: str) -> list[bool]:
    got = await service.stub("operator").GetTable(wire.GetTableRequest(table_id=table_id))
    return [seat.connected for seat in got.table.seats]


async def refusal(call: Any) -> tuple[str, str]:
    """How a stream ends that ends badly."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await read_all(call)
    return caught.value.code().name, explain(caught.value).reason


async def read_all(call: Any, into: list[events_pb2.TableEvent] | None = None) -> None:
    """Read a stream to its end."""
    while (message := await call.read()) is not grpc.aio.EOF:
        if into is not None:
            into.append(message.event)


# Readers.


def feed() -> Feed:
    it = Feed()
    drive = Drive.of(created())
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(1))
    it.publish(drive.records)
    return it


def test_a_reader_reads_every_event_once_and_in_order():
    table = feed()
    for start in (0, 1, 7, table.last(2)):
        reader = table.open(2, start, lambda: None)
        read = []
        while (event := reader.next(1)) is not None:
            read.append(event.number)
        assert read == list(range(start + 1, table.last(2) + 1))
        assert reader.at_end


def test_nobody_goes_on_after_an_event_that_has_not_happened():
    table = feed()
    with pytest.raises(InvalidNumber):
        table.open(1, table.last(1) + 1, lambda: None)


def test_a_reader_that_falls_behind_is_ended_and_may_go_on_from_there():
    """A slow spectator filled an unbounded queue."""
    drive = Drive.of(created())
    table = Feed()
    table.publish(drive.records)
    reader = table.open(SPECTATORS, 0, lambda: None)
    # What was there before it came is no slowness of its own.
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(1))
    table.publish(drive.records[1:31])
    with pytest.raises(ReaderTooSlow):
        reader.next(5)
    again = table.open(SPECTATORS, reader.number, lambda: None)
    event = again.next(5)
    assert event is not None
    assert event.number == reader.number + 1


def test_a_reader_that_was_ended_reads_nothing_more():
    table, news = feed(), []
    reader = table.open(0, 0, lambda: news.append(1))
    assert reader.next(9) is not None
    reader.end(AttendedElsewhere())
    assert news
    with pytest.raises(AttendedElsewhere):
        reader.next(9)


# Attend and Watch.


async def test_a_stream_that_breaks_again_and_again_is_resumed_without_gap_or_repeat(tmp_path):
    # However slow the machine is, a reconnect is quicker than a seat is missed.
    async with world(tmp_path, linger_seconds=60) as service:
        await breaks_again_and_again(service)


async def breaks_again_and_again(service: World) -> None:
    table_id = await make(service, hands=2)
    rng = random.Random(5)
    received: list[events_pb2.TableEvent] = []

    async def unsteady() -> None:
        stub = service.player("ann")
        while True:
            number = received[-1].number if received else 0
            call = stub.Attend(wire.AttendRequest(table_id=table_id, from_number=number))
            for _ in range(rng.randrange(1, 9)):
                message = await call.read()
                if message is grpc.aio.EOF:
                    return
                received.append(message.event)
                if message.event.HasField("prompt") and message.event.prompt.ms_left:
                    act = wire.ActRequest(
                        table_id=table_id,
                        decision_id=message.event.prompt.decision_id,
                        action=simple(message.event.prompt),
                    )
                    await stub.Act(act)
            call.cancel()

    others = [Player(service, name) for name in PLAYERS[1:]]
    async with asyncio.TaskGroup() as group:
        group.create_task(unsteady())
        for player in others:
            group.create_task(player.play(table_id))
    assert [event.number for event in received] == list(range(1, len(received) + 1))
    assert received[-1].HasField("table_closed")
    # It was never missed: a quick reconnect is seen by nobody.
    assert not any(
        event.HasField("connection_changed") and not event.connection_changed.connected
        for event in others[0].events
    )
    assert service.value("fangcheng_table_reconnects_total") > 20


async def test_a_newer_stream_of_a_seat_closes_the_older_one(service):
    """A quick reconnect threw out the new session when the old one timed out."""
    table_id = await make(service)
    older = await attended(service, table_id, "ann")
    newer = await attended(service, table_id, "ann")
    assert await refusal(older) == ("ABORTED", "ATTENDED_ELSEWHERE")
    rest = [await attended(service, table_id, name) for name in PLAYERS[1:]]
    # Longer than a seat may be without a stream.
    watching = service.player("eve").Watch(wire.WatchRequest(table_id=table_id))
    async for message in watching:
        if message.event.HasField("hand_started"):
            break
    deadline = asyncio.get_running_loop().time() + 0.5
    await until(lambda: asyncio.get_running_loop().time() > deadline)
    assert await connected(service, table_id) == [True] * 4
    for call in (newer, watching, *rest):
        call.cancel()


async def test_a_seat_without_a_stream_is_disconnected_and_played_for(service):
    table_id = await make(service, hands=3)
    calls = [await attended(service, table_id, name) for name in PLAYERS]
    calls[3].cancel()
    seen = []
    async for message in service.player("eve").Watch(wire.WatchRequest(table_id=table_id)):
        seen.append(message.event)
        if message.event.HasField("trustee_changed"):
            break
    away = [e.connection_changed for e in seen if e.HasField("connection_changed")][-1]
    assert (away.seat, away.connected) == (3, False)
    change = seen[-1].trustee_changed
    assert (change.seat, change.trustee, change.why) == (3, True, "disconnected")
    back = await attended(service, table_id, "dan")
    messages = []
    async for message in service.player("eve").Watch(
        wire.WatchRequest(table_id=table_id, from_number=seen[-1].number)
    ):
        messages.append(message.event)
        if message.event.HasField("trustee_changed"):
            break
    assert (messages[-1].trustee_changed.trustee, messages[-1].trustee_changed.why) == (
        False,
        "back",
    )
    for call in (*calls, back):
        call.cancel()


async def test_a_number_ahead_of_the_table_is_refused(service):
    table_id = await make(service)
    calls = [
        service.player("ann").Attend(wire.AttendRequest(table_id=table_id, from_number=99)),
        service.player("ann").Watch(wire.WatchRequest(table_id=table_id, from_number=99)),
    ]
    for call in calls:
        assert await refusal(call) == ("INVALID_ARGUMENT", "INVALID_NUMBER")


async def test_silence_is_broken_by_heartbeats(tmp_path):
    async with world(tmp_path, heartbeat_seconds=0.05, start_grace_seconds=600) as service:
        table_id = await make(service)
        for call in (
            service.player("ann").Attend(wire.AttendRequest(table_id=table_id)),
            service.player("eve").Watch(wire.WatchRequest(table_id=table_id)),
        ):
            last, beats = 0, []
            async for message in call:
                if message.HasField("event"):
                    last, beats = message.event.number, []
                    continue
                beats.append(message.heartbeat)
                if len(beats) == 3:
                    break
            assert {beat.last_number for beat in beats} == {last}
            times = [beat.server_time.ToNanoseconds() for beat in beats]
            assert times == sorted(times)
            call.cancel()


async def test_a_heartbeat_tells_nothing_of_what_was_hidden(tmp_path):
    """Whatever is stored wakes all viewers; who may not see it has its heartbeats as ever."""
    async with world(tmp_path, heartbeat_seconds=0.5, start_grace_seconds=600) as service:
        table_id = await make(service)
        await attended(service, table_id, "ann")
        heard: Counter[str | None] = Counter()

        async def spectate() -> None:
            async for message in service.player("eve").Watch(wire.WatchRequest(table_id=table_id)):
                heard[message.WhichOneof("message")] += 1

        watching = asyncio.create_task(spectate())
        await until(lambda: heard.total() >= 2)  # the table, and that somebody attends it
        # A seat's share in the shuffle is seen by nobody: here they come faster than heartbeats.
        stub = service.player("ann")
        shares = 0
        while not heard["heartbeat"]:
            shares += 1
            assert shares < 2_000, "no heartbeat comes while something hidden happens"
            await stub.Attend(
                wire.AttendRequest(table_id=table_id, entropy=shares.to_bytes(2, "big"))
            ).read()
        watching.cancel()


async def test_a_prompt_tells_the_time_that_is_left_when_it_is_sent(service):
    table_id = await make(service)
    calls = [await attended(service, table_id, name) for name in PLAYERS]
    stub = service.player("ann")

    async def prompt() -> events_pb2.Prompt:
        async for message in stub.Attend(wire.AttendRequest(table_id=table_id)):
            if message.event.HasField("prompt"):
                shown: events_pb2.Prompt = message.event.prompt
                return shown
        raise AssertionError("no prompt")

    first = await prompt()
    deadline = asyncio.get_running_loop().time() + 0.05
    await until(lambda: asyncio.get_running_loop().time() > deadline)
    second = await prompt()
    assert second.decision_id == first.decision_id
    assert 0 < second.ms_left <= first.ms_left - 50
    act = wire.ActRequest(table_id=table_id, decision_id=first.decision_id, action=simple(first))
    await stub.Act(act)
    assert (await prompt()).ms_left == 0
    for call in calls:
        call.cancel()


async def test_a_share_in_the_shuffle_is_told_before_the_deal(service):
    table_id = await make(service)
    calls = []
    for name in PLAYERS:
        call = service.player(name).Attend(
            wire.AttendRequest(table_id=table_id, entropy=name.encode())
        )
        await call.read()
        calls.append(call)
    async for message in service.player("eve").Watch(wire.WatchRequest(table_id=table_id)):
        if message.event.HasField("hand_started"):
            assert list(message.event.hand_started.entropy) == [b"ann", b"bob", b"cat", b"dan"]
            break
        assert not message.event.HasField("dealt")
    for call in calls:
        call.cancel()


async def test_a_reader_that_does_not_read_is_closed_and_may_resume(tmp_path):
    """A slow spectator filled an unbounded queue."""
    async with world(tmp_path, most_behind_events=200) as service:
        table_id = await make(service, hands=6)
        # A small window that does not grow, so that what is not read soon holds up the sender.
        options = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 1_024)]
        channel = service.channel("player:eve", options=options)
        stub: Any = TableServiceStub(channel)
        slow = stub.Watch(wire.WatchRequest(table_id=table_id))
        first = await slow.read()
        await play_all(service, table_id)
        read = [first.event]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await read_all(slow, read)
        assert explain(caught.value).reason == "READER_TOO_SLOW"
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        rest = [
            message.event
            async for message in service.player("eve").Watch(
                wire.WatchRequest(table_id=table_id, from_number=read[-1].number)
            )
        ]
        assert [event.number for event in read] == list(range(1, len(read) + 1))
        # So much was missed meanwhile that it is told as a snapshot.
        (shown,) = rest
        assert shown.snapshot.closed.reason == "hands_played"


async def test_streams_end_at_once_when_the_service_stops(tmp_path):
    # A stream that did not end by itself would keep the service for all of its grace.
    async with world(tmp_path, grace_seconds=600) as service:
        table_id = await make(service)
        calls = [await attended(service, table_id, name) for name in PLAYERS]
        calls.append(service.player("eve").Watch(wire.WatchRequest(table_id=table_id)))
        await calls[-1].read()
        async with asyncio.timeout(60):
            await service.stop()
        for call in calls:
            assert (await refusal(call))[0] == "UNAVAILABLE"


async def come_and_go(service: World, table_id: str, times: int) -> None:
    """Viewers that come and vanish, in every way there is."""
    stubs = {name: service.player(name) for name in (*PLAYERS, "eve")}

    async def one(number: int) -> None:
        name = [*PLAYERS, "eve"][number % 5]
        call = (
            stubs[name].Watch(wire.WatchRequest(table_id=table_id))
            if name == "eve"
            else stubs[name].Attend(wire.AttendRequest(table_id=table_id))
        )
        try:
            for _ in range(number % 3):
                await call.read()
        except grpc.aio.AioRpcError as error:
            assert explain(error).reason == "ATTENDED_ELSEWHERE"  # noqa: PT017 (one of two ends)
        call.cancel()

    for start in range(0, times, 50):
        await asyncio.gather(*(one(number) for number in range(start, start + 50)))


async def test_viewers_that_vanish_leave_nothing_behind(service):
    """Streams of vanished clients kept running (grpc/grpc#35881)."""
    table_id = await make(service, hands=1000)
    streams = [await attended(service, table_id, name) for name in PLAYERS]
    for stream in streams:
        stream.cancel()
    await come_and_go(service, table_id, 500)
    value = service.value
    await until(lambda: value("fangcheng_table_streams", kind="seat") == 0)
    await until(lambda: value("fangcheng_table_streams", kind="spectator") == 0)
    await until(lambda: not any("_stream" in repr(task.get_coro()) for task in asyncio.all_tasks()))


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_ten_thousand_vanishing_viewers_leave_memory_flat(service):
    """A handler that swallows CancelledError leaks memory per stream (grpc/grpc#43360)."""
    # A whole hand first, so that what the evaluator in this process loads once is there.
    await play_all(service, await make(service, "r0"))
    table_id = await make(service, hands=1000)

    def resident() -> int:
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    await come_and_go(service, table_id, 2_000)
    before = resident()
    await come_and_go(service, table_id, 10_000)
    assert resident() < before * 1.1


# AttendMany.


class Gateway:
    """A stream of many seats."""

    def __init__(self, service: World, *scopes: str) -> None:
        self._out: asyncio.Queue[wire.AttendManyRequest | None] = asyncio.Queue()
        self.events: dict[tuple[str, str], list[events_pb2.TableEvent]] = {}
        self.problems: list[wire.SeatProblem] = []
        self.acted: list[wire.SeatActed] = []
        self.done: list[tuple[str, str]] = []
        self.batches: list[int] = []
        self.heartbeats = 0
        self.acts = True
        stub = service.stub("operator", "act_as", *scopes)
        self.call = stub.AttendMany(self._requests())

    async def _requests(self) -> AsyncIterator[wire.AttendManyRequest]:
        while (request := await self._out.get()) is not None:
            yield request

    def add(self, player: str, table_id: str, number: int = 0, entropy: bytes = b"") -> None:
        self._out.put_nowait(
            wire.AttendManyRequest(
                add=wire.AddSeat(
                    player_id=player, table_id=table_id, from_number=number, entropy=entropy
                )
            )
        )

    def remove(self, player: str, table_id: str) -> None:
        self._out.put_nowait(
            wire.AttendManyRequest(remove=wire.RemoveSeat(player_id=player, table_id=table_id))
        )

    def act(self, player: str, table_id: str, decision_id: str, action: state_pb2.Action) -> None:
        act = wire.ActRequest(table_id=table_id, decision_id=decision_id, action=action)
        self._out.put_nowait(wire.AttendManyRequest(act=wire.SeatAct(player_id=player, act=act)))

    def end(self) -> None:
        self._out.put_nowait(None)

    async def run(self) -> None:
        try:
            await self._read()
        finally:
            self.end()  # gRPC would wait for the next request of a call that has ended

    async def _read(self) -> None:
        async for message in self.call:
            match message.WhichOneof("message"):
                case "events":
                    if message.events.events:
                        self.batches.append(len(message.events.events))
                    self.acted += message.events.acted
                    for entry in message.events.events:
                        self._event(entry)
                case "problem":
                    self.problems.append(message.problem)
                case "done":
                    self.done.append((message.done.player_id, message.done.table_id))
                case _:
                    self.heartbeats += 1

    def _event(self, entry: wire.SeatEvent) -> None:
        seen = self.events.setdefault((entry.player_id, entry.table_id), [])
        seen.append(entry.event)
        if entry.event.HasField("prompt") and self.acts:
            prompt = entry.event.prompt
            self.act(entry.player_id, entry.table_id, prompt.decision_id, simple(prompt))


async def test_a_gateway_plays_two_tables_over_one_stream(service):
    tables = [await make(service, f"r{n}") for n in range(2)]
    gateway = Gateway(service)
    for table_id in tables:
        for name in PLAYERS:
            gateway.add(name, table_id)
    running = asyncio.create_task(gateway.run())
    await until(lambda: len(gateway.done) == 8)
    gateway.end()
    await running
    assert not gateway.problems
    prompts = 0
    for seen in gateway.events.values():
        assert [event.number for event in seen] == list(range(1, len(seen) + 1))
        assert seen[-1].HasField("table_closed")
        prompts += sum(event.HasField("prompt") for event in seen)
    assert len(gateway.acted) == prompts
    assert max(gateway.batches) > 1


async def test_what_goes_wrong_with_one_seat_of_a_gateway_leaves_the_others_alone(service):
    table_id = await make(service)
    gateway = Gateway(service)
    gateway.acts = False
    running = asyncio.create_task(gateway.run())
    for name in PLAYERS:
        gateway.add(name, table_id)
    gateway.add("eve", table_id)
    gateway.add("ann", "no-such-table")
    gateway.add("bob", table_id, number=10_000)
    gateway.remove("eve", table_id)
    gateway.act("eve", table_id, "1-1", state_pb2.Action(kind="pass"))
    gateway.act("ann", table_id, "7-7", state_pb2.Action(kind="pass"))
    await until(lambda: len(gateway.problems) == 6)
    told = [
        (p.player_id, p.table_id == table_id, p.decision_id, p.problem.reason, p.problem.field)
        for p in gateway.problems
    ]
    assert sorted(told) == sorted(
        [
            ("eve", True, "", "NOT_SEATED", "table_id"),
            ("ann", False, "", "UNKNOWN_TABLE", "table_id"),
            ("bob", True, "", "INVALID_NUMBER", "from_number"),
            ("eve", True, "", "NOT_ADDED", ""),
            ("eve", True, "1-1", "NOT_ADDED", ""),
            ("ann", True, "7-7", "STALE_DECISION", "decision_id"),
        ]
    )
    assert all(p.problem.message for p in gateway.problems)
    # The seats are there as before, and one can still act.
    cat = ("cat", table_id)
    await until(lambda: any(e.HasField("prompt") for e in gateway.events.get(cat, [])))
    prompt = next(e.prompt for e in gateway.events[cat] if e.HasField("prompt"))
    gateway.act("cat", table_id, prompt.decision_id, simple(prompt))
    await until(lambda: [acted.decision_id for acted in gateway.acted] == [prompt.decision_id])
    gateway.call.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_seat_removed_from_a_gateway_is_disconnected_unless_attended_elsewhere(service):
    table_id = await make(service, hands=9)
    gateway = Gateway(service)
    gateway.acts = False
    running = asyncio.create_task(gateway.run())
    for name in PLAYERS:
        gateway.add(name, table_id)
    watched: list[events_pb2.TableEvent] = []

    async def watch() -> None:
        await read_all(service.player("eve").Watch(wire.WatchRequest(table_id=table_id)), watched)

    watching = asyncio.create_task(watch())
    await until(lambda: sum(e.connection_changed.connected for e in watched) == 4)
    own = await attended(service, table_id, "bob")
    await until(lambda: len(gateway.problems) == 1)
    assert gateway.problems[0].player_id == "bob"
    assert gateway.problems[0].problem.reason == "ATTENDED_ELSEWHERE"
    gateway.remove("cat", table_id)

    def gone() -> list[int]:
        return [
            event.connection_changed.seat
            for event in watched
            if event.HasField("connection_changed") and not event.connection_changed.connected
        ]

    await until(lambda: gone() == [2])
    assert await connected(service, table_id) == [True, True, False, True]
    own.cancel()
    gateway.call.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await until(lambda: sorted(gone()) == [0, 1, 2, 3])
    watching.cancel()


async def test_a_seat_added_again_goes_on_where_it_says(service):
    table_id = await make(service)
    gateway = Gateway(service)
    gateway.acts = False
    running = asyncio.create_task(gateway.run())
    gateway.add("ann", table_id)
    seat = ("ann", table_id)
    await until(lambda: len(gateway.events.get(seat, [])) >= 2)
    gateway.add("ann", table_id, number=1)
    await until(lambda: [e.number for e in gateway.events[seat]].count(2) == 2)
    assert not gateway.problems
    gateway.call.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_request_to_a_gateway_that_breaks_the_limits_ends_its_stream(service):
    gateway = Gateway(service)
    gateway.add("", "t")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await gateway.run()
    problem = explain(caught.value)
    assert (problem.reason, problem.field) == ("INVALID_REQUEST", "add.player_id")


async def test_a_gateway_that_falls_behind_is_closed(tmp_path):
    async with world(tmp_path, most_behind_events=1) as service:
        table_id = await make(service)
        gateway = Gateway(service)
        for name in PLAYERS:
            gateway.add(name, table_id)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await gateway.run()
        assert explain(caught.value).reason == "READER_TOO_SLOW"


async def test_a_gateway_that_reads_nothing_is_listened_to_no_more():
    """What it is to be told must not pile up without an end."""
    sent = 0

    async def acts() -> AsyncIterator[wire.AttendManyRequest]:
        nonlocal sent
        while True:
            sent += 1
            act = wire.SeatAct(player_id="ann", act=wire.ActRequest(table_id="t1"))
            yield wire.AttendManyRequest(act=act)

    tables: Any = None  # no seat is added, so that none is looked for
    stream = ManySeats(tables, 10, events_pb2.Heartbeat, Waiter(60)).run(acts())
    try:
        assert (await anext(stream)).problem.problem.reason == "NOT_ADDED"
        before = -1
        while sent != before:
            before = sent
            for _ in range(50):
                await asyncio.sleep(0)
            assert sent < 5_000
        # Where it reads again, it is heard again.
        for _ in range(2 * before):
            assert (await anext(stream)).problem.problem.reason == "NOT_ADDED"
        assert sent > before
    finally:
        await stream.aclose()


async def test_a_gateway_may_do_no_more_for_a_player_than_he_might_call(tmp_path):
    async with world(tmp_path, player_calls_per_second=0.001) as service:
        table_id = await make(service)
        for scopes, answer in (((), "TOO_MANY_CALLS"), (("bot",), "STALE_DECISION")):
            gateway = Gateway(service, *scopes)
            gateway.acts = False
            gateway.add("ann", table_id)
            gateway.add("bob", table_id)
            gateway.act("bob", table_id, "none", state_pb2.Action(kind="pass"))
            running = asyncio.create_task(gateway.run())
            await until(lambda of=gateway: len(of.problems) == 1 and len(of.events) == 2)
            (told,) = gateway.problems
            assert (told.player_id, told.decision_id) == ("bob", "none")
            assert told.problem.reason == answer
            running.cancel()
            await asyncio.wait([running])


async def test_a_stream_has_so_many_seats_and_no_more(tmp_path):
    async with world(tmp_path, seats_per_stream=2) as service:
        table_id = await make(service)
        gateway = Gateway(service)
        gateway.acts = False
        for player in ("ann", "bob", "ann", "cat"):
            gateway.add(player, table_id)
        running = asyncio.create_task(gateway.run())
        await until(lambda: bool(gateway.problems))
        (told,) = gateway.problems
        assert (told.player_id, told.problem.reason) == ("cat", "TOO_MANY_SEATS")
        gateway.remove("ann", table_id)
        gateway.add("cat", table_id)
        await until(lambda: ("cat", table_id) in gateway.events)
        running.cancel()
        await asyncio.wait([running])


async def test_a_gateway_hears_heartbeats_and_may_end_its_stream(tmp_path):
    async with world(tmp_path, heartbeat_seconds=0.02) as service:
        gateway = Gateway(service)
        running = asyncio.create_task(gateway.run())
        await until(lambda: gateway.heartbeats >= 3)
        gateway.end()
        await running


async def test_a_gateway_needs_the_scope_to_act_for_players(service):
    stub = service.stub("operator")
    call = stub.AttendMany(iter(()))
    assert (await refusal(call))[0] == "PERMISSION_DENIED"
