"""Live tables: how many a table process keeps, played at the pace of people, before it is felt.

    python benchmarks/tables.py [--most TABLES] [--least TABLES]

One table service on one core, with its journal in a file; an evaluator and the players, who come
through a gateway's streams (`AttendMany`), on the other. More and more tables are played at once, a
discard every three seconds at each. Of every discard the time is taken from when it is sent until
all four seats of its table have been told. It ends with the first step at which that takes
longer for one in a hundred than is promised.

The players are bots that discard anything, pass what they could claim and win where they can; so
hands last, and everything that happens at a table happens here, but settlements, which are the
wallet's affair. What the gateway itself takes is in the times.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import secrets
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from measure import Line, Lines, cores, pin
from processes import Service, ready, start, stop

from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_client import connect
from fangcheng_kit.collector import relax
from fangcheng_kit.tokens import mint_token
from fangcheng_table.sealing import new_key

RULES = "baishan_kele"
STEP = 250
"""Tables that come at a time, on a stream of their own."""
PROMISED_TABLES = 2_000
PROMISED_MS = 50.0
CLAIM_WINDOW_MS = 1_000
"""As it comes; a discard is followed by it."""
PACE_SECONDS = 3.0
"""From one discard at a table to the next."""
SETTLING_SECONDS = 4.0
MEASURED_SECONDS = 10.0
TOGETHER = 32
"""Tables that are made at the same time."""
START_SECONDS = 600.0
SEED = 20_240_601


class Gateway:
    """One stream with the seats of many tables, and the bots that sit there."""

    def __init__(self, stub: Any, chance: random.Random) -> None:
        self.acts = 0
        self.seconds: list[float] = []
        """From each discard that was sent until all four seats had it."""
        self._chance = chance
        self._requests: asyncio.Queue[wire.AttendManyRequest] = asyncio.Queue()
        self._sent: dict[str, float] = {}
        self._told: dict[str, int] = {}
        self._first: dict[str, asyncio.Future[float]] = {}
        self._call = stub.AttendMany(self._to_send())
        self.task = asyncio.create_task(self._read())

    def sit(self, player_id: str, table_id: str) -> None:
        """Attends for a player from now on, and acts for him."""
        add = wire.AddSeat(player_id=player_id, table_id=table_id)
        self._requests.put_nowait(wire.AttendManyRequest(add=add))

    def first_prompt(self, table_id: str) -> asyncio.Future[float]:
        """When the first prompt at a table came, by `perf_counter`."""
        return self._first.setdefault(table_id, asyncio.get_running_loop().create_future())

    async def _to_send(self) -> AsyncIterator[wire.AttendManyRequest]:
        while True:
            yield await self._requests.get()

    async def _read(self) -> None:
        later = asyncio.get_running_loop().call_later
        async for message in self._call:
            now = time.perf_counter()
            for one in message.events.events:
                event = one.event
                if event.HasField("discarded"):
                    self._heard(one.table_id, now)
                elif event.HasField("prompt"):
                    prompt = event.prompt
                    first = self.first_prompt(one.table_id)
                    if not first.done():
                        first.set_result(now)
                    act = wire.ActRequest(
                        table_id=one.table_id,
                        decision_id=prompt.decision_id,
                        action=self._choose(prompt.actions),
                    )
                    later(self._thinks(prompt.kind), self._act, one.player_id, act)
            if message.HasField("problem"):
                raise SystemExit(f"a seat was refused: {message.problem}")

    def _choose(self, offered: Any) -> state_pb2.Action:
        by_kind: dict[str, state_pb2.Action] = {action.kind: action for action in offered}
        if "win" in by_kind:
            return by_kind["win"]
        discards: list[state_pb2.Action] = [one for one in offered if one.kind == "discard"]
        others: state_pb2.Action = by_kind.get("pass", offered[0])
        return self._chance.choice(discards or [others])

    def _thinks(self, kind: str) -> float:
        if kind != "turn":
            return self._chance.uniform(0.2, 0.8)
        rest = PACE_SECONDS - CLAIM_WINDOW_MS / 1_000
        return rest * self._chance.uniform(0.5, 1.5)

    def _act(self, player_id: str, act: wire.ActRequest) -> None:
        self.acts += 1
        if act.action.kind == "discard":
            self._told[act.table_id] = 0
            self._sent[act.table_id] = time.perf_counter()
        self._requests.put_nowait(
            wire.AttendManyRequest(act=wire.SeatAct(player_id=player_id, act=act))
        )

    def _heard(self, table_id: str, now: float) -> None:
        # A discard of the table itself, for one whose time ran out, was sent by nobody.
        if table_id in self._sent:
            self._told[table_id] += 1
            if self._told[table_id] == 4:
                self.seconds.append(now - self._sent.pop(table_id))


def player(name: str, seat: int) -> str:
    """The player in a seat of a table."""
    return f"{name}-{seat}"


async def create(stub: Any, count: int) -> dict[str, str]:
    """New tables by their ids, each with the name that its players share; they are to come."""
    made: dict[str, str] = {}
    room = asyncio.Semaphore(TOGETHER)

    async def one() -> None:
        name = secrets.token_hex(6)
        request = wire.CreateTableRequest(
            request_id=name,
            rules=rules.RuleSetChoice(id=RULES),
            seats=[wire.SeatAssignment(player_id=player(name, seat)) for seat in range(4)],
            timing=state_pb2.Timing(claim_window_ms=CLAIM_WINDOW_MS),
        )
        async with room:
            answer = await stub.CreateTable(request)
        made[answer.table.table_id] = name

    await asyncio.gather(*(one() for _ in range(count)))
    return made


@contextlib.asynccontextmanager
async def services(key: str) -> AsyncIterator[tuple[Service, Service]]:
    """A table service on the first core; an evaluator on the last, where this process stays."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pin(cores()[-1])
        process = await start("evaluation", folder / "evaluation.json", key)
        stack.push_async_callback(stop, process)
        async with asyncio.timeout(START_SECONDS):
            evaluator = await ready(process, folder / "evaluation.json")
        here = cores()
        pin(ALL_CORES[0])
        settings = {
            "database": folder / "table.db",
            "journal_keys": new_key("benchmark"),
            "evaluation": evaluator.address,
            "start_grace_seconds": 600,
        }
        process = await start("table", folder / "table.json", key, settings)
        stack.push_async_callback(stop, process)
        pin(*here)
        async with asyncio.timeout(START_SECONDS):
            yield await ready(process, folder / "table.json"), evaluator


async def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--most", type=int, default=3_000, help="tables at most")
    parser.add_argument("--least", type=int, default=0, help="go on up to here in any case")
    given = parser.parse_args()
    key, chance = secrets.token_hex(32), random.Random(SEED)
    lines = Lines("tables")
    async with contextlib.AsyncExitStack() as stack:
        service, evaluator = await stack.enter_async_context(services(key))

        def connected(subject: str, *scopes: str) -> Any:
            return connect(service.address, mint_token(key, subject, scopes))

        maker = TableServiceStub(await stack.enter_async_context(connected("operator")))
        empty = service.memory_bytes()
        gateways: list[Gateway] = []
        while True:
            tables = await create(maker, STEP)
            if not gateways:
                idle = (service.memory_bytes() - empty) / STEP
            channel = await stack.enter_async_context(connected("service:gateway", "act_as", "bot"))
            gateways.append(Gateway(TableServiceStub(channel), chance))
            for table_id, name in tables.items():
                for seat in range(4):
                    gateways[-1].sit(player(name, seat), table_id)
            worst = await measured(lines, STEP * len(gateways), gateways, service, evaluator)
            count = STEP * len(gateways)
            if (worst > PROMISED_MS and count >= given.least) or count >= given.most:
                break
        live = (service.memory_bytes() - empty) / count
        for what, size in (("idle: nobody has come yet", idle), (f"live: {count:,} of them", live)):
            lines.add(
                Line("Memory of a table in its service", what, size / 1024, "KiB", rate=False)
            )
        for gateway in gateways:
            gateway.task.cancel()
        await asyncio.gather(*(gateway.task for gateway in gateways), return_exceptions=True)
    lines.save()


async def measured(
    lines: Lines, count: int, gateways: list[Gateway], service: Service, evaluator: Service
) -> float:
    """A step: the time that one in a hundred exceeds, in milliseconds."""
    # Those that came last are dealt in, and no two of them at the same moment.
    await asyncio.sleep(SETTLING_SECONDS + PACE_SECONDS)
    for gateway in gateways:
        gateway.seconds.clear()
        gateway.acts = 0
    begun, cpu = time.perf_counter(), time.process_time()
    before = [one.cpu_seconds() for one in (service, evaluator)]
    await asyncio.sleep(MEASURED_SECONDS)
    elapsed = time.perf_counter() - begun
    used = [one.cpu_seconds() - was for one, was in zip((service, evaluator), before, strict=True)]
    table_core, evaluator_core = (seconds / elapsed for seconds in used)
    own_core = (time.process_time() - cpu) / elapsed
    failed = [gateway.task for gateway in gateways if gateway.task.done()]
    for task in failed:
        task.result()
    seconds = [one for gateway in gateways for one in gateway.seconds]
    centiles = statistics.quantiles(seconds, n=100)
    half, worst = 1e3 * centiles[49], 1e3 * centiles[98]
    lines.add(
        Line(
            f"Tables of {RULES}, each with a discard every {PACE_SECONDS:g} s",
            f"{count:,} tables",
            sum(gateway.acts for gateway in gateways) / elapsed,
            "acts",
            note=f"p50 {half:.1f} ms, p99 {worst:.1f} ms; core of the tables {table_core:.0%},"
            f" evaluator {evaluator_core:.0%}, gateway {own_core:.0%}",
            figures={"tables": count, "p50": half, "p99": worst, "promised": PROMISED_MS},
        )
    )
    return worst


ALL_CORES = cores()

if __name__ == "__main__":
    relax(20_000, 50, 20)  # as the service does, so that no pause of the gateway's is measured
    asyncio.run(main())
