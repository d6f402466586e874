"""An evening at the whole suite, and then every call of it made by every kind of caller."""

from __future__ import annotations

import asyncio
import itertools
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from fangcheng.matchmaking.v1 import rooms_pb2
from fangcheng.matchmaking.v1.rooms_pb2_grpc import RoomServiceStub
from fangcheng.table.v1 import table_pb2
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import wallet_pb2
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import explain
from fangcheng_suite.certificates import Authority
from fangcheng_table.journals import open_journal
from fangcheng_table.sealing import JournalKeys
from fangcheng_table.store import Record
from tests.kit.certified import Folder, credentials
from tests.kit.collector import collecting
from tests.kit.lines import lines_of
from tests.suite.whole import JOURNAL_KEYS, KEY, PLAYERS, POOLS, Suite

from . import contracts
from .callers import ELSEWHERE as ANOTHER_DOMAIN
from .callers import HOST, OTHER, OWN
from .entries import ELSEWHERE, ENTRIES, Entry, World
from .oracle import EDGE, Caller

ROOMS = """
rooms:
  - {id: free, name: for nothing, rules: {id: baishan_kele}, hands: 1}
"""
OFFERS = POOLS + ROOMS
AT_ONCE = 50
"""Calls under way together."""

MOST_LOST = 20
"""How often a call is made whose status gRPC loses: that of a stream which is refused while its
first message is being written."""

Outcome = tuple[str, str]
"""The status of a call and its reason; of a stream `OK` once its first message has come."""


@dataclass
class Evening:
    """What an evening has left."""

    callers: Sequence[Caller]
    outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    """By the full name of the call and the name of the caller."""
    filled: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The fields that were set in what callers of a kind were sent."""
    secrets: dict[str, str] = field(default_factory=dict)
    """What only its owner may read, by what it is."""
    lines: list[dict[str, Any]] = field(default_factory=list)
    """What was logged, of debug too."""
    spans: list[bytes] = field(default_factory=list)
    """What was sent to the collector of traces."""
    metrics: dict[str, str] = field(default_factory=dict)
    """`/metrics` of each process."""
    files: dict[str, bytes] = field(default_factory=dict)
    """The databases' files, by their names: as they were, and as they are at the end."""
    journals: dict[str, list[Record]] = field(default_factory=dict)
    """What is in the journal, by table, opened with its key."""

    def tell(self, caller: Caller, answer: Message | None) -> None:
        """Note what somebody was sent."""
        if answer is not None:
            self.filled[caller.kind] |= filled(answer)


def filled(message: Message) -> set[str]:
    """The fields that are set in a message, and in the messages within it."""
    found: set[str] = set()
    for field_, value in message.ListFields():
        found.add(f"{field_.containing_type.full_name}.{field_.name}")
        if field_.message_type is None:
            continue
        if field_.message_type.GetOptions().map_entry:
            values = [one for one in value.values() if isinstance(one, Message)]
        else:
            values = [value] if isinstance(value, Message) else list(value)
        found.update(*map(filled, values))
    return found


async def world_of(suite: Suite) -> tuple[World, str]:
    """One table is played to its end; at the next one nobody has attended yet; a room is open.

    With the room's code.
    """
    finished_id = await suite.evening()
    tickets = [await suite.queue(player, "again") for player in PLAYERS]
    table_id = await suite.seat(OWN, tickets[PLAYERS.index(OWN)])
    async with suite.channel("matchmaking", f"player:{HOST}") as channel:
        rooms: Any = RoomServiceStub(channel)
        opened = await rooms.OpenRoom(rooms_pb2.OpenRoomRequest(request_id="r", template_id="free"))
    async with suite.channel("wallet", f"player:{OWN}") as channel:
        wallet: Any = WalletServiceStub(channel)
        held = await wallet.ListHolds(wallet_pb2.ListHoldsRequest())
    world = World(
        table_id=table_id,
        finished_id=finished_id,
        ticket_id=tickets[PLAYERS.index(OWN)],
        room_id=opened.room.room_id,
        hold_id=held.holds[0].hold_id,
    )
    return world, opened.room.code


def served() -> list[tuple[str, MethodDescriptor]]:
    """Every call that a process of the suite serves, with the process."""
    return [
        (call.containing_service.full_name.split(".")[1], call)
        for call in contracts.calls()
        if call.containing_service.name not in ELSEWHERE
    ]


def entry_of(process: str, call: MethodDescriptor) -> Entry:
    """How a call is made; `KeyError`: nobody has said so."""
    return ENTRIES[process][call.name]


class Certified(Suite):
    """The suite, every process with a certificate, which it asks of its callers too."""

    def __init__(self, folder: Path, settings: dict[str, Any], pools: str) -> None:
        super().__init__(folder, settings, pools)
        self._path = folder
        self._authority = Authority.new()

    async def _serve(self, name: str, open_service: Any, settings: Any, **more: Any) -> None:
        files = Folder(self._path / f"certificate of {name}")
        files.certificate.parent.mkdir()
        files.put(self._authority.issue(f"service/{name}"))
        files.trust(self._authority)
        await super()._serve(name, open_service, settings, **files.settings(), **more)

    def shown(self, holder: str) -> grpc.ChannelCredentials:
        """What the holder of a certificate connects with; `elsewhere/…`: of that domain."""
        domain, _, other = holder.partition("/")
        if domain == ANOTHER_DOMAIN:
            issued = self._authority.issue(other, trust_domain=domain)
        else:
            issued = self._authority.issue(holder)
        return credentials(self._authority, issued)

    def bare(self, service: str, holder: str = EDGE) -> grpc.aio.Channel:
        """A channel on which what is sent is what the caller gives."""
        return grpc.aio.secure_channel(self.running[service].address, self.shown(holder))

    def channel(self, service: str, subject: str, **more: Any) -> grpc.aio.Channel:
        return super().channel(service, subject, credentials=self.shown(EDGE), **more)


Lines = dict[str, grpc.aio.Channel]
"""A bare channel to each process."""


@asynccontextmanager
async def lines(suite: Certified, holder: str = EDGE) -> AsyncIterator[Lines]:
    """As the holder of a certificate."""
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(suite.bare(name, holder))
            for name in suite.running
        }


async def ask(
    channel: grpc.aio.Channel,
    call: MethodDescriptor,
    request: Message,
    metadata: Sequence[tuple[str, str | bytes]],
) -> tuple[Outcome, Message | None]:
    """Make a call; its outcome, and its answer or the first of its answers."""
    for _ in range(MOST_LOST):
        outcome, answer = await _asked(channel, call, request, metadata)
        if outcome[1] != "STREAM_LOST":
            break
    return outcome, answer


async def _asked(
    channel: grpc.aio.Channel,
    call: MethodDescriptor,
    request: Message,
    metadata: Sequence[tuple[str, str | bytes]],
) -> tuple[Outcome, Message | None]:
    answers = "stream" if call.server_streaming else "unary"
    asks = "stream" if call.client_streaming else "unary"
    make: Any = getattr(channel, f"{asks}_{answers}")(
        f"/{call.containing_service.full_name}/{call.name}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=GetMessageClass(call.output_type).FromString,
    )
    given: Any = _one(request) if call.client_streaming else request
    under_way = make(given, metadata=metadata, timeout=60)
    try:
        if not call.server_streaming:
            return ("OK", ""), await under_way
        first = await under_way.read()
        return ("OK", ""), None if first is grpc.aio.EOF else first
    except grpc.aio.AioRpcError as error:
        told = explain(error)
        return (told.code.name, told.reason), None
    finally:
        under_way.cancel()


async def _one(request: Message) -> AsyncIterator[Message]:
    yield request


async def make_every_call(suite: Certified, world: World, evening: Evening) -> None:
    """Every call, by everybody."""
    room = asyncio.Semaphore(AT_ONCE)
    channels: dict[str, Lines] = {}

    async def one(process: str, call: MethodDescriptor, caller: Caller) -> None:
        async with room:
            request = entry_of(process, call).request(world)
            channel = channels[caller.certificate][process]
            outcome, answer = await ask(channel, call, request, caller.metadata)
        evening.outcomes[call.full_name, caller.name] = outcome
        evening.tell(caller, answer)

    async with AsyncExitStack() as stack:
        for caller in evening.callers:
            if caller.certificate not in channels:
                context = lines(suite, caller.certificate)
                channels[caller.certificate] = await stack.enter_async_context(context)
            async with asyncio.TaskGroup() as group:
                for process, call in served():
                    group.create_task(one(process, call, caller))


async def read_the_table(suite: Certified, world: World, evening: Evening) -> None:
    """All that a seat and a spectator are told of a table, from its first event to its last."""
    async with lines(suite) as channels:
        table: Any = TableServiceStub(channels["table"])
        for caller in evening.callers:
            if caller.name not in (f"player {OWN}", f"player {OTHER}"):
                continue
            calls: list[tuple[Any, Any]] = [(table.Watch, table_pb2.WatchRequest)]
            if caller.id == OWN:
                calls.append((table.Attend, table_pb2.AttendRequest))
            for (call, request), snapshot in itertools.product(calls, (False, True)):
                # One after the other: a seat has one stream.
                stream = call(
                    request(table_id=world.finished_id, snapshot=snapshot),
                    metadata=caller.metadata,
                )
                async for message in stream:
                    evening.tell(caller, message)


@asynccontextmanager
async def certified(folder: Path, **settings: Any) -> AsyncIterator[Certified]:
    """The suite; `settings`: of every service."""
    suite = Certified(folder, settings, OFFERS)
    try:
        await suite.start()
        yield suite
    finally:
        await suite.stop()


async def spend(folder: Path, callers: Sequence[Caller], **settings: Any) -> Evening:
    """An evening; everything has ended. `settings`: of every service."""
    evening = Evening(callers)
    with lines_of("suite") as logged:
        async with (
            collecting() as collector,
            certified(
                folder, otlp_endpoint=collector.endpoint, player_calls_per_second=0, **settings
            ) as suite,
        ):
            world, code = await world_of(suite)
            await make_every_call(suite, world, evening)
            await read_the_table(suite, world, evening)
            for name, running in suite.running.items():
                evening.metrics[name] = await asyncio.to_thread(scraped, running.metrics_address)
            evening.files = await asyncio.to_thread(files_of, folder)
            evening.journals = await journals_of(folder / "table.db", world)
        for name, content in (await asyncio.to_thread(files_of, folder)).items():
            evening.files[name] = evening.files.get(name, b"") + content
        evening.spans = collector.received
    evening.lines = logged
    evening.secrets = {"the key": KEY, "a room's code": code}
    evening.secrets |= {f"the id {player}": player for player in (*PLAYERS, HOST, OTHER)}
    for caller in callers:
        for name, value in caller.metadata:
            if name == "authorization":
                evening.secrets[f"{caller.name}'s token"] = str(value).split()[-1]
    return evening


def files_of(folder: Path) -> dict[str, bytes]:
    """All that the databases have on the disk, with the logs of what is being written."""
    return {file.name: file.read_bytes() for file in folder.glob("*.db*")}


async def journals_of(database: Path, world: World) -> dict[str, list[Record]]:
    """The journals of both tables of a world."""
    journal = await open_journal(str(database), keys=JournalKeys.parse(JOURNAL_KEYS))
    try:
        tables = (world.finished_id, world.table_id)
        return {table_id: await journal.read(table_id) for table_id in tables}
    finally:
        await journal.close()


def scraped(address: str) -> str:
    """`/metrics` of a process."""
    with urllib.request.urlopen(f"http://{address}/metrics") as response:
        return str(response.read(), "utf-8")
