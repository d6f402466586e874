"""The evaluation service over gRPC on this host: bulk by message size, and by number of replicas.

    python benchmarks/evaluation.py

Bulk: one evaluator, as a share of the rate in this process on one core, on the same records.
A replica: how long one takes to start, and how much memory it has.
Replicas: more and more of them behind one channel. All share the machine's cores with their client,
so that more replicas than cores cannot be quicker, and CPU time is told too: what others do on the
machine meanwhile is not in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import numpy as np
from grpc_health.v1 import health_pb2, health_pb2_grpc
from measure import ROUNDS, Line, Lines, cores, median_rate, pin
from processes import Service, ready, start, stop, told_by

from fangcheng.evaluation.v1 import evaluation_pb2 as pb
from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng.rules.v1 import rules_pb2
from fangcheng_client import connect
from fangcheng_kit.tokens import mint_token
from fangcheng_rules import packed, tiles
from fangcheng_rules.rulesets import RULE_SETS

RULES = RULE_SETS[0]
HANDS = 100_000
SIZES = (1, 10, 100, 1_000, 10_000)
REPLICAS = (1, 2, 4)
GOALS = {("unary", 1_000): 0.2, ("stream", 1_000): 0.4, ("stream", 10_000): 0.5}
QUESTION = pb.HAND_QUESTION_SCORE
"""The quickest to answer, and so the hardest on what is between."""
ROUND_SECONDS = 1.0
CALLERS = 8
AHEAD = 3
"""Messages of a stream that are sent and not answered; `fangcheng_client.hands` has as many."""
START_SECONDS = 600.0
SEED = 20_240_601


def winning_shapes() -> packed.Records:
    """Records of four sets and a pair, won by another's tile; so many that no cache holds them."""
    chance = np.random.default_rng(SEED)
    sets = np.zeros((55, 34), np.uint32)
    sets[range(34), range(34)] = 3
    for number, first in enumerate(kind for kind in range(27) if kind % 9 < 7):
        sets[34 + number, first : first + 3] = 1
    weights = np.concatenate([np.full(34, 0.3 / 34), np.full(21, 0.7 / 21)])
    chosen = chance.choice(55, (3 * HANDS, 4), p=weights)
    pairs = chance.integers(34, size=3 * HANDS)
    counts = sets[chosen].sum(axis=1, dtype=np.uint32)
    counts[np.arange(3 * HANDS), pairs] += 2
    good = (counts <= 4).all(axis=1)
    counts, pairs = counts[good][:HANDS], pairs[good][:HANDS]
    records = np.zeros(HANDS, packed.HAND)
    for kind in range(34):
        records["concealed"][:, kind // 9] += counts[:, kind] << np.uint32(3 * (kind % 9))
    records["won"] = pairs + 1
    options = RULES.hot.pack_options(RULES.complete())
    records["options"] = [options >> (8 * i) & 255 for i in range(4)]
    return records


@contextlib.asynccontextmanager
async def evaluators(count: int, key: str) -> AsyncIterator[list[Service]]:
    """Processes of the service, warm; they end with the block."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        starting = [start("evaluation", folder / f"{number}.json", key) for number in range(count)]
        processes = await asyncio.gather(*starting)
        for process in processes:
            stack.push_async_callback(stop, process)
        async with asyncio.timeout(START_SECONDS):
            found = [
                await ready(process, folder / f"{number}.json")
                for number, process in enumerate(processes)
            ]
        yield found


@contextlib.asynccontextmanager
async def nothing_but_transport() -> AsyncIterator[Service]:
    """A process that answers the packed calls without evaluating; it ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port.json"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(Path(__file__).with_name("transport.py")), str(port_file))
        )
        try:
            told = await told_by(process, port_file)
            yield Service(process, told["listen"], told["metrics"])
        finally:
            await stop(process)


@dataclass(frozen=True, slots=True)
class Measured:
    """Medians of some rounds."""

    per_second: float
    cpu_micros: float
    """CPU time of the evaluators for each, in µs."""


async def measured(
    running: Sequence[Service], callers: int, call: Callable[[], Awaitable[int]]
) -> Measured:
    """Have callers call for a second, five times; `call` tells how many it has done."""
    rates, costs = [], []
    for number in range(ROUNDS + 1):
        cpu = sum(one.cpu_seconds() for one in running)
        begun = time.perf_counter()

        async def caller(until: float = begun + ROUND_SECONDS) -> int:
            done = 0
            while time.perf_counter() < until:
                done += await call()
            return done

        done = sum(await asyncio.gather(*(caller() for _ in range(callers))))
        elapsed = time.perf_counter() - begun
        cpu = sum(one.cpu_seconds() for one in running) - cpu
        if number:  # the first warms up
            rates.append(done / elapsed)
            costs.append(1e6 * cpu / done)
    return Measured(statistics.median(rates), statistics.median(costs))


class Bulk:
    """Ways to have records evaluated, so many a message."""

    def __init__(self, channel: grpc.aio.Channel, records: packed.Records, size: int) -> None:
        self._stub = EvaluationServiceStub(channel)
        self._size = size
        self._messages = [
            records[at : at + size].tobytes() for at in range(0, min(len(records), 64 * size), size)
        ]
        self._next = 0

    def _message(self) -> bytes:
        self._next += 1
        return self._messages[self._next % len(self._messages)]

    async def unary(self) -> int:
        """A call with one message."""
        answer = await self._stub.EvaluateHands(
            pb.EvaluateHandsRequest(
                rule_set=RULES.id,
                layout=packed.LAYOUT,
                questions=[QUESTION],
                hands=self._message(),
            )
        )
        assert len(answer.results) == self._size * packed.RESULT.itemsize
        return self._size

    async def stream(self) -> int:
        """A stream of messages for a round's time."""
        until = time.perf_counter() + ROUND_SECONDS
        room = asyncio.Semaphore(AHEAD)

        async def requests() -> AsyncIterator[pb.StreamHandsRequest]:
            while time.perf_counter() < until:
                await room.acquire()
                yield pb.StreamHandsRequest(
                    rule_set=RULES.id,
                    layout=packed.LAYOUT,
                    questions=[QUESTION],
                    hands=self._message(),
                )

        answered = 0
        async for answer in self._stub.StreamHands(requests()):
            assert len(answer.results) == self._size * packed.RESULT.itemsize
            answered += 1
            room.release()
        return answered * self._size


async def bulk(lines: Lines, records: packed.Records, key: str) -> None:
    """One evaluator, by size of message."""
    group = f"Bulk over gRPC, one evaluator, scoring under {RULES.id}"
    in_process, cpu_micros = in_process_rate(records)
    lines.add(
        Line(
            group,
            f"in process, {SIZES[-1]:,} hands at a time",
            in_process,
            note=f"{cpu_micros:.3g} µs CPU a hand",
        )
    )
    token = mint_token(key, "operator")
    async with evaluators(1, key) as running, connect(running[0].address, token) as channel:
        for way in ("unary", "stream"):
            for size in SIZES:
                asked = Bulk(channel, records, size)
                call, callers = (asked.unary, CALLERS) if way == "unary" else (asked.stream, 1)
                # Once more, since what else the machine does changes.
                in_process, _ = in_process_rate(records)
                found = await measured(running, callers, call)
                lines.add(
                    Line(
                        group,
                        f"{way}, {size:,} a message",
                        found.per_second,
                        reference="in process",
                        reference_per_second=in_process,
                        goal=GOALS.get((way, size)),
                        note=f"{found.cpu_micros:.3g} µs CPU a hand",
                    )
                )
        await beside_bulk(lines, channel, records)
    async with (
        nothing_but_transport() as bare,
        grpc.aio.insecure_channel(bare.address) as channel,
    ):
        for way, size in GOALS:
            asked = Bulk(channel, records, size)
            call, callers = (asked.unary, CALLERS) if way == "unary" else (asked.stream, 1)
            found = await measured([bare], callers, call)
            bound = 1 / (1 + found.cpu_micros / cpu_micros)
            lines.add(
                Line(
                    "The same messages, answered without evaluating: what gRPC alone costs",
                    f"{way}, {size:,} a message",
                    found.per_second,
                    note=f"{found.cpu_micros:.3g} µs CPU a hand: with the kernels' "
                    f"{cpu_micros:.3g}, no service can have more than {bound:.2f} × in process",
                )
            )


async def beside_bulk(lines: Lines, channel: grpc.aio.Channel, records: packed.Records) -> None:
    """How long small calls take while streams keep the evaluator busy."""
    stub = EvaluationServiceStub(channel)
    health: Any = health_pb2_grpc.HealthStub(channel)
    question = a_question()
    asked = Bulk(channel, records, SIZES[-1])

    async def keep_busy() -> None:
        while True:
            await asked.stream()

    streams = [asyncio.create_task(keep_busy()) for _ in range(2)]
    small: dict[str, Callable[[], Awaitable[object]]] = {
        "Analyze": lambda: stub.Analyze(question),
        "health": lambda: health.Check(health_pb2.HealthCheckRequest()),
    }
    for name, call in small.items():
        took = []
        begun = time.perf_counter()
        while (now := time.perf_counter()) < begun + ROUNDS * ROUND_SECONDS:
            await call()
            took.append(time.perf_counter() - now)
        centiles = statistics.quantiles(took, n=100)
        lines.add(
            Line(
                "Small calls, one after the other, while two streams keep the evaluator busy",
                name,
                len(took) / sum(took),
                "calls",
                note=f"p50 {1e3 * centiles[49]:.2f} ms (promised: 5), "
                f"p99 {1e3 * centiles[98]:.2f} ms",
            )
        )
    for stream in streams:
        stream.cancel()
    await asyncio.gather(*streams, return_exceptions=True)


def a_question() -> pb.AnalyzeRequest:
    """A random hand of 14 tiles."""
    chance = np.random.default_rng(SEED)
    wall = [kind for kind in range(34) for _ in range(4)]
    hand = sorted(int(kind) for kind in chance.permutation(wall)[:14])
    return pb.AnalyzeRequest(
        rules=rules_pb2.RuleSetChoice(id=RULES.id),
        hand=pb.Hand(concealed=[tiles.code(kind) for kind in hand]),
    )


def in_process_rate(records: packed.Records) -> tuple[float, float]:
    """Hands a second without a service between, on one core, and µs of CPU time a hand."""
    where = cores()
    pin(where[0])
    # As they come in: from bytes, so that nobody may write to them.
    hands = np.frombuffer(records.tobytes(), packed.HAND)
    results = np.empty(SIZES[-1], packed.RESULT)

    def work() -> None:
        for at in range(0, len(hands), len(results)):
            packed.evaluate(RULES, hands[at : at + len(results)], packed.SCORE, results)

    rate = median_rate(work, len(hands))
    cpu = time.process_time()
    work()
    cpu = time.process_time() - cpu
    pin(*where)
    return rate, 1e6 * cpu / len(hands)


async def replica(lines: Lines, records: packed.Records, key: str) -> None:
    """How soon a replica serves, and what it holds then and later: of some, one after the other."""
    found = []
    for _ in range(ROUNDS + 1):
        begun = time.perf_counter()
        async with evaluators(1, key) as (one,):
            seconds = time.perf_counter() - begun
            cpu, idle = one.cpu_seconds(), one.memory_bytes()
            async with connect(one.address, mint_token(key, "operator")) as channel:
                await Bulk(channel, records, len(records)).unary()
            found.append((1e3 * seconds, 1e3 * cpu, idle / 1e6, one.memory_bytes() / 1e6))
    # The first may have had to compile.
    start, cpu, idle, after = map(statistics.median, zip(*found[1:], strict=True))
    for what, figure, unit, note in (
        (
            "from its start until it serves, warm",
            start,
            "ms",
            f"{cpu:,.0f} ms of CPU time (promised: under 600)",
        ),
        ("memory, all rule sets ready", idle, "MB", "promised: under 280"),
        (f"memory after a message of {len(records):,} hands", after, "MB", ""),
    ):
        lines.add(Line("A replica", what, figure, unit, note=note, rate=False))


async def replicas(lines: Lines, records: packed.Records, key: str) -> None:
    """More and more evaluators behind one channel."""
    question = a_question()
    for count in REPLICAS:
        async with evaluators(count, key) as running:
            target = "ipv4:" + ",".join(one.address for one in running)
            async with connect(target, mint_token(key, "operator")) as channel:
                stub = EvaluationServiceStub(channel)

                async def analyze(ask: Any = stub.Analyze) -> int:
                    await ask(question)
                    return 1

                several = f"{count} replica{'s' if count > 1 else ''}"
                found = await measured(running, 4 * CALLERS, analyze)
                lines.add(
                    Line(
                        "Replicas behind one channel",
                        f"Analyze, {several}",
                        found.per_second,
                        "calls",
                        note=f"{found.cpu_micros:.3g} µs CPU a call",
                    )
                )
                asked = Bulk(channel, records, SIZES[-1])
                found = await measured(running, 2 * count, asked.unary)
                lines.add(
                    Line(
                        "Replicas behind one channel",
                        f"EvaluateHands of {SIZES[-1]:,}, {several}",
                        found.per_second,
                        note=f"{found.cpu_micros:.3g} µs CPU a hand",
                    )
                )


async def main() -> None:
    """Measure, print and keep."""
    key = secrets.token_hex(32)
    lines = Lines("evaluation")
    records = winning_shapes()
    await bulk(lines, records, key)
    await replica(lines, records, key)
    await replicas(lines, records, key)
    lines.save()


if __name__ == "__main__":
    asyncio.run(main())
