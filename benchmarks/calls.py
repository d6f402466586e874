"""The evaluation service over gRPC on this host, as a share of the rate in one process.

    python benchmarks/calls.py

Starts one process of the service. Client and server share the machine, as they do in the reference
figures.
"""

from __future__ import annotations

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
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2 as pb
from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng.rules.v1 import rules_pb2
from fangcheng_client import connect
from fangcheng_kit.principal import mint_token
from fangcheng_rules import tiles
from fangcheng_rules.analysis import analyze
from fangcheng_rules.hand import Hand
from fangcheng_rules.rulesets import RULE_SETS

CALLS = 2_000
BATCH = 500
BATCHES = 20
CALLERS = 16
START_SECONDS = 90.0
SEED = 20_240_601


@asynccontextmanager
async def evaluation() -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a process of the service, which ends with the block."""
    key = secrets.token_hex(32)
    with tempfile.TemporaryDirectory() as folder:
        ports = Path(folder) / "ports.json"
        settings = {"FANGCHENG_DEV_KEY": key, "FANGCHENG_EVALUATION_PORT_FILE": str(ports)}
        command = [sys.executable, "-m", "fangcheng_evaluation"]
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, "FANGCHENG_LOG_LEVEL": "error", **settings},
            stdout=subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                while not ports.exists():
                    if process.returncode is not None:
                        raise SystemExit(f"the service ended with {process.returncode}")
                    await asyncio.sleep(0.05)
            channel = connect(
                json.loads(ports.read_text())["listen"], token=mint_token(key, "operator")
            )
            async with channel:
                yield channel
        finally:
            process.terminate()
            await process.wait()


def requests(count: int) -> list[pb.AnalyzeRequest]:
    """Random hands of thirteen tiles."""
    chance = random.Random(SEED)
    wall = [kind for kind in range(34) for _ in range(4)]
    rules = rules_pb2.RuleSetChoice(id=RULE_SETS[0].id)
    return [
        pb.AnalyzeRequest(
            rules=rules,
            hand=pb.Hand(concealed=[tiles.code(kind) for kind in sorted(chance.sample(wall, 13))]),
        )
        for _ in range(count)
    ]


def in_process(asked: list[pb.AnalyzeRequest]) -> float:
    """The same hands without a service between: hands a second."""
    rules = RULE_SETS[0]
    options = rules.complete({})
    hands = [
        Hand(tuple(sorted(tiles.from_code(code) for code in request.hand.concealed)))
        for request in asked
    ]
    analyze(rules, options, hands[0])
    started = time.perf_counter()
    for hand in hands:
        analyze(rules, options, hand)
    return len(hands) / (time.perf_counter() - started)


async def timed(calls: int, callers: int, call: Callable[[int], Awaitable[object]]) -> list[float]:
    """Make calls from some callers at once; how long each took, in seconds."""
    took: list[float] = []
    numbers = iter(range(calls))

    async def caller() -> None:
        for number in numbers:
            started = time.perf_counter()
            await call(number)
            took.append(time.perf_counter() - started)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return took


def show(what: str, per_second: float, base: float, more: str = "") -> None:
    """One line of the result."""
    share = f"{per_second / base:6.3f} of in-process"
    print(f"  {what:44} {per_second:12,.0f}/s  {share}{more}", flush=True)


async def main() -> None:
    """Measure, and print."""
    asked = requests(CALLS)
    base = in_process(asked)
    print(f"Evaluation over gRPC, hands of 13; in process {base:,.0f}/s")
    async with evaluation() as channel:
        stub = EvaluationServiceStub(channel)
        await stub.Analyze(asked[0], wait_for_ready=True)
        for callers in (1, CALLERS):
            started = time.perf_counter()
            took = await timed(CALLS, callers, lambda number: stub.Analyze(asked[number]))
            elapsed = time.perf_counter() - started
            p50 = statistics.median(took) * 1000
            p99 = statistics.quantiles(took, n=100)[98] * 1000
            more = f"  p50 {p50:.2f} ms, p99 {p99:.2f} ms"
            show(f"Analyze, callers: {callers}", CALLS / elapsed, base, more)
        batch = pb.AnalyzeBatchRequest(requests=asked[:BATCH])
        started = time.perf_counter()
        await timed(BATCHES, 2, lambda _: stub.AnalyzeBatch(batch))
        hands = BATCH * BATCHES
        show(f"AnalyzeBatch of {BATCH}, callers: 2", hands / (time.perf_counter() - started), base)


if __name__ == "__main__":
    asyncio.run(main())
