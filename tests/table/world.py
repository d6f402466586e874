"""A table service on a port of its own, with clients for its callers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.records_pb2_grpc import TableRecordServiceStub
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_client import attend, connect, explain
from fangcheng_kit import Kit, Running, serving
from fangcheng_kit.tokens import mint_token
from fangcheng_table.service import open_service
from fangcheng_table.settings import TableSettings

from . import partners

DEV_KEY = "a development key of the tests, long enough"
PLAYERS = ("ann", "bob", "cat", "dan")


class World:
    """The table service with everything around it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.evaluator = partners.FakeEvaluation()
        self.wallet = partners.FakeWallet()
        self.more: dict[str, Any] = {}
        """Settings of the next start."""
        self._partners = ""
        self._running: Running | None = None
        self._stop: Callable[[], Awaitable[None]] | None = None
        self._channels: list[grpc.aio.Channel] = []

    @property
    def address(self) -> str:
        assert self._running is not None
        return self._running.address

    @property
    def metrics_address(self) -> str:
        assert self._running is not None
        return self._running.metrics_address

    @property
    def kit(self) -> Kit:
        assert self._running is not None
        return self._running.kit

    def settings(self) -> TableSettings:
        return TableSettings(
            **{
                "dev_key": DEV_KEY,
                "database": self.folder / "table.db",
                "evaluation": self._partners,
                "wallet": self._partners,
                "drain_seconds": 0.0,
                "grace_seconds": 1.0,
                # Players answer here at the speed of a machine.
                "player_calls_per_second": 0,
                # A hand begins when all are there, however slow the machine is.
                "start_grace_seconds": 600,
                "linger_seconds": 0.2,
                "resume_grace_seconds": 5.0,
                "park_seconds": 0.2,
                **self.more,
            }
        )

    async def start(self) -> None:
        context = serving("table", self.settings(), open_service)
        self._running = await context.__aenter__()

        async def stop() -> None:
            await context.__aexit__(None, None, None)

        self._stop = stop

    async def stop(self) -> None:
        if self._stop is not None:
            stop, self._stop = self._stop, None
            await stop()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def channel(self, subject: str, *scopes: str, **options: Any) -> grpc.aio.Channel:
        token = mint_token(DEV_KEY, subject, scopes)
        channel = connect(self.address, token, **options)
        self._channels.append(channel)
        return channel

    def stub(self, subject: str, *scopes: str) -> Any:
        """The service as a caller has it; untyped, since the stubs are those of sync calls."""
        return TableServiceStub(self.channel(subject, *scopes))

    def records(self, subject: str) -> Any:
        """The keeper of records as a caller has it."""
        return TableRecordServiceStub(self.channel(subject))

    def player(self, name: str) -> Any:
        return self.stub(f"player:{name}")

    def value(self, name: str, **labels: str) -> float:
        """A metric as it stands, summed over its series that have these labels."""
        return sum(
            sample.value
            for family in self.kit.registry.restricted_registry([name]).collect()
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()
        await self.stop()


@asynccontextmanager
async def world(folder: Path, **settings: Any) -> AsyncIterator[World]:
    it = World(folder)
    it.more = settings
    async with partners.serving(it.evaluator, it.wallet) as address:
        it._partners = address
        await it.start()
        try:
            yield it
        finally:
            await it.close()


def request(request_id: str = "r1", *, hands: int = 1, **more: Any) -> wire.CreateTableRequest:
    """A table of four at full speed."""
    message = wire.CreateTableRequest(
        request_id=request_id,
        rules=rules.RuleSetChoice(id="baishan_kele"),
        seats=[wire.SeatAssignment(player_id=player) for player in PLAYERS],
        hands=hands,
        timing=state_pb2.Timing(claim_window_ms=0, between_hands_ms=0),
    )
    message.MergeFrom(wire.CreateTableRequest(**more))
    return message


class Player:
    """Attends a seat and answers every prompt at once; keeps what it has seen."""

    def __init__(
        self,
        world: World,
        name: str,
        choose: Callable[[events_pb2.Prompt], state_pb2.Action] | None = None,
    ) -> None:
        self.events: list[events_pb2.TableEvent] = []
        self.refused: list[str] = []
        self._world = world
        self._name = name
        self._choose = choose or simple

    async def play(self, table_id: str) -> None:
        """Until the table has closed."""
        channel = self._world.channel(f"player:{self._name}")
        stub: Any = TableServiceStub(channel)
        async for event in attend(channel, table_id):
            self.events.append(event)
            if event.HasField("prompt"):
                act = wire.ActRequest(
                    table_id=table_id,
                    decision_id=event.prompt.decision_id,
                    action=self._choose(event.prompt),
                )
                try:
                    await stub.Act(act, wait_for_ready=True, timeout=60)
                except grpc.aio.AioRpcError as error:
                    # The table was quicker, or the answer to the first try was lost.
                    if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                        raise
                    self.refused.append(str(error.details()))


def simple(prompt: events_pb2.Prompt) -> state_pb2.Action:
    """Wins where it draws, claims nothing, discards the first it may.

    Nobody's claim closes the prompt of another, whatever the dice: every prompt is answered once.
    """
    if prompt.kind in ("claim", "dealt_out"):
        return prompt.actions[-1]
    wins = [action for action in prompt.actions if action.kind == "win"]
    return (wins or [action for action in prompt.actions if action.kind != "kong"])[0]


def timeless(events: Iterable[events_pb2.TableEvent]) -> list[events_pb2.TableEvent]:
    """The events without what depends on when they were sent."""
    copies = []
    for event in events:
        copy = events_pb2.TableEvent.FromString(event.SerializeToString())
        if copy.HasField("prompt"):
            copy.prompt.ms_left = 0
        copies.append(copy)
    return copies


async def play_all(world: World, table_id: str, names: Sequence[str] = PLAYERS) -> list[Player]:
    """All seats play to the end."""
    players = [Player(world, name) for name in names]
    async with asyncio.TaskGroup() as group:
        for player in players:
            group.create_task(player.play(table_id))
    return players


class Lobbyist:
    """A stream of summaries, and what it has told."""

    def __init__(self, stub: Any) -> None:
        self.summaries: list[wire.TableSummary] = []
        self.newest: dict[str, wire.TableSummary] = {}
        """Of each table that it was told of."""
        self.gone: list[str] = []
        self.beats = 0
        self._task = asyncio.create_task(self._follow(stub))

    async def _follow(self, stub: Any) -> None:
        async for message in stub.WatchTables(wire.WatchTablesRequest()):
            self.summaries.extend(message.changes.tables)
            self.newest.update((one.table_id, one) for one in message.changes.tables)
            self.gone.extend(message.changes.gone)
            self.beats += message.HasField("heartbeat")

    async def until_told(self, *kinds: str) -> wire.TableSummary:
        """Wait until the newest summary has these troubles."""
        wanted = [wire.TableTroubleKind.Value(f"TABLE_TROUBLE_KIND_{kind}") for kind in kinds]
        await until(lambda: [one.kind for one in self.summaries[-1].troubles] == wanted)
        return self.summaries[-1]

    def stop(self) -> None:
        self._task.cancel()


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for a condition; fail when it does not come, however slow the machine may be."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come"
        await asyncio.sleep(0.005)


async def refused(call: Any) -> tuple[str, str, str]:
    """Status, reason and field with which a call was refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    problem = explain(caught.value)
    return caught.value.code().name, problem.reason, problem.field


async def first_prompt(world: World, table_id: str, name: str) -> tuple[Any, events_pb2.Prompt]:
    """The stream of a player, read up to its first prompt."""
    call = world.player(name).Attend(wire.AttendRequest(table_id=table_id))
    async for message in call:
        if message.event.HasField("prompt"):
            return call, message.event.prompt
    raise AssertionError("no prompt came")


async def until_attended(service: World, table_id: str, name: str) -> Any:
    """A stream of a player that is read by nobody; told by the table as connected."""
    call = service.player(name).Attend(wire.AttendRequest(table_id=table_id))
    await call.read()
    return call


async def until_begun(service: World, table_id: str) -> None:
    """Wait for the first hand."""
    async for message in service.player("eve").Watch(wire.WatchRequest(table_id=table_id)):
        if message.event.HasField("hand_started"):
            return
