"""Replicas of the evaluation service as processes, and what their callers see, for the tests.

The kernels are interpreted: these tests look at calls and not at their speed, and so they need no
compiler's minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import numpy as np
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fangcheng.evaluation.v1 import evaluation_pb2 as pb
from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng.rules.v1 import rules_pb2
from fangcheng_client import explain, hands
from fangcheng_kit.tokens import mint_token

from .processes import KEY
from .running import LONG_SECONDS, environment

TOKEN = mint_token(KEY, "operator", ttl_seconds=3_600)
HANDLED = re.compile(
    r'^grpc_server_handled_total\{.*grpc_method="Analyze".*\} (\S+)$', re.MULTILINE
)

READY = pb.AnalyzeRequest(
    rules=rules_pb2.RuleSetChoice(id="baishan_kele"),
    hand=pb.Hand(concealed=[11, 12, 13, 24, 25, 26, 37, 37, 37, 41, 41, 46, 46]),
)
"""A hand that waits on two honours."""


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait for a condition; fails the test where it does not come."""
    begun = time.monotonic()
    while not await holds():
        assert time.monotonic() - begun < LONG_SECONDS, f"it did not come to be: {what}"
        await asyncio.sleep(0.02)


@dataclass
class Replica:
    """One process of the evaluation service."""

    name: str
    process: subprocess.Popen[bytes]
    port_file: Path
    log: Path

    async def serves(self) -> bool:
        """Whether it has come up and is warm; fails the test where it has ended."""
        assert self.process.poll() is None, self.log.read_text("utf-8")
        if not self.port_file.exists():
            return False
        async with grpc.aio.insecure_channel(self.address) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)  # whose calls have no types
            answer = await health.Check(health_pb2.HealthCheckRequest(), wait_for_ready=True)
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    @property
    def address(self) -> str:
        """Where it listens."""
        return str(self._told["listen"])

    def calls(self) -> int:
        """How many calls for hands it has answered, as its own metrics tell."""
        return sum(int(float(count)) for count in HANDLED.findall(self._page()))

    def metric(self, name: str) -> float:
        """A metric with its labels, as its page has it."""
        (line,) = [line for line in self._page().splitlines() if line.startswith(f"{name} ")]
        return float(line.rpartition(" ")[2])

    def kill(self) -> None:
        """`kill -9`."""
        self.process.kill()
        self.process.wait()

    def tell_to_stop(self) -> None:
        """SIGTERM: it drains."""
        self.process.send_signal(signal.SIGTERM)

    def _page(self) -> str:
        with urllib.request.urlopen(f"http://{self._told['metrics']}/metrics") as answer:
            return str(answer.read(), "utf-8")

    @property
    def _told(self) -> dict[str, object]:
        told: dict[str, object] = json.loads(self.port_file.read_text("utf-8"))
        return told


class Replicas:
    """Starts replicas, and ends them with its block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = contextlib.ExitStack()

    async def start(self, name: str, listen: str = "127.0.0.1:0", **settings: str) -> Replica:
        """A replica that serves; settings without their prefix."""
        replica = self._spawn(name, {"LISTEN": listen, "DEV_KEY": KEY, **settings})
        await until(replica.serves, f"{name} serves")
        return replica

    def _spawn(self, name: str, settings: dict[str, str]) -> Replica:
        log = self._folder / f"{name}.log"
        port_file = self._folder / f"{name}.json"
        own = {"PORT_FILE": str(port_file), **settings}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "fangcheng_evaluation"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment(
                    FANGCHENG_INTERPRETED="1",
                    **{f"FANGCHENG_EVALUATION_{key}": value for key, value in own.items()},
                ),
            )
        self._stack.callback(_end, process)
        return Replica(name, process, port_file, log)

    def __enter__(self) -> Replicas:
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@dataclass
class Load:
    """Callers that ask one hand after the other, until told to stop."""

    channel: grpc.aio.Channel
    callers: int = 4
    answered: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def __aenter__(self) -> Load:
        stub = EvaluationServiceStub(self.channel)
        self._tasks = [asyncio.create_task(self._call(stub)) for _ in range(self.callers)]
        await self.goes_on(10)
        return self

    async def __aexit__(self, *failure: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def goes_on(self, calls: int) -> None:
        """Wait until so many more calls have been answered."""
        enough = self.answered + calls

        async def so_many() -> bool:
            return self.answered >= enough

        await until(so_many, f"{calls} more calls are answered ({self.failures})")

    async def _call(self, stub: EvaluationServiceStub) -> None:
        while True:
            try:
                answer = await stub.Analyze(READY)
            except grpc.aio.AioRpcError as error:
                self.failures[f"{error.code().name}: {explain(error).message}"] += 1
                await asyncio.sleep(0.01)
            else:
                assert [wait.tile for wait in answer.analysis.waits] == [41, 46]
                self.answered += 1


async def shares(load: Load, replicas: list[Replica], calls: int = 400) -> list[float]:
    """Which part of the next calls each replica answers."""
    before = [replica.calls() for replica in replicas]
    await load.goes_on(calls)
    answered = [replica.calls() - count for replica, count in zip(replicas, before, strict=True)]
    return [count / sum(answered) for count in answered]


def hands_for_seconds() -> pb.AnalyzeBatchRequest:
    """Hands for some seconds of an interpreter's work."""
    chance = random.Random(8)
    wall = [code for suit in (10, 20, 30) for code in range(suit + 1, suit + 10) for _ in range(4)]
    return pb.AnalyzeBatchRequest(
        requests=[
            pb.AnalyzeRequest(
                rules=READY.rules,
                hand=pb.Hand(concealed=sorted(chance.sample(wall, 14))),
                progress=True,
            )
            for _ in range(150)
        ]
    )


def random_records(rules: rules_pb2.RuleSet, count: int) -> hands.Records:
    """Packed hands of 13 tiles from a full wall."""
    chance = np.random.default_rng(8)
    wall = np.repeat(np.arange(34), 4)
    drawn = chance.permuted(np.tile(wall, (count, 1)), axis=1)[:, :13]
    return hands.from_counts(rules, (drawn[:, :, None] == np.arange(34)).sum(axis=1))


@contextlib.contextmanager
def program(
    words: list[str], log: Path, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run another program until the end of the block; ``variables``: instead of ours."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=dict(variables or os.environ),
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(LONG_SECONDS)
        except subprocess.TimeoutExpired:
            _end(process)
