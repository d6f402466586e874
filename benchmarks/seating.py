"""From `JoinQueue` to the first prompt of the first hand, over the real services.

Evaluator, table, wallet and matchmaking are processes of their own, each with its database in a
file. Players come as a Poisson process through a studio's gateway, which queues each of them,
watches his ticket, and takes his seat as soon as he is assigned one. A table deals when all four
have come; its first prompt is the end of the wait of all its players. Tables go on, a discard every
three seconds at each, while others come.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from processes import Service, ready, start, stop
from tables import START_SECONDS, Gateway

from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import wallet_pb2
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import connect
from fangcheng_kit.tokens import mint_token
from fangcheng_rules.rulesets import BUILT_IN

SILVER = 100_000
STANDBY = 6
"""Bots that wait for each pool that is filled; one that is seated is followed by another."""
WARM_SECONDS = 3.0
"""Of arrivals that do not count."""
PATIENCE_SECONDS = 30.0
"""For the last ones, after which a wait without an end is a failure."""
TOGETHER = 32
"""Wallets that are opened at the same time."""


@dataclass(frozen=True, slots=True)
class Pools:
    """Pools, and who comes to them."""

    name: str
    config: Sequence[dict[str, Any]]
    filled: bool

    @property
    def ids(self) -> list[str]:
        """Their ids."""
        return [str(one["id"]) for one in self.config]


def one_for_silver() -> Pools:
    """One pool for silver with its buy-in, as it comes with the service; no bots."""
    stakes = [
        {"currency": "silver", "per_unit": 10, "buy_in": 5000},
        {"currency": "points", "book": BUILT_IN[0].id, "per_unit": 1},
    ]
    pool = {"id": "silver", "name": "silver", "rules": {"id": BUILT_IN[0].id}, "hands": 16}
    return Pools("one pool for silver, no bots", [{**pool, "stakes": stakes}], filled=False)


def many_for_practice(count: int) -> Pools:
    """So many pools for points of all rule sets, filled with bots as those are that come along."""
    config = []
    for number in range(count):
        rules = BUILT_IN[number % len(BUILT_IN)].id
        config.append(
            {
                "id": f"practice-{number}",
                "name": "practice",
                "rules": {"id": rules},
                "stakes": [{"currency": "points", "book": rules, "per_unit": 1}],
                "hands": 8,
                "fill_with_bots_after_ms": 1500,
            }
        )
    return Pools(f"{count} pools, bots after 1.5 s", config, filled=True)


@dataclass(slots=True)
class Seated:
    """What players waited, in seconds."""

    assigned: list[float] = field(default_factory=list)
    """From JoinQueue to the seat."""
    prompted: list[float] = field(default_factory=list)
    """From JoinQueue to the first prompt at the table."""
    tables: int = 0
    bots: int = 0
    cores: dict[str, float] = field(default_factory=dict)
    """Of a processor core, what each process used."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The services."""

    key: str
    services: dict[str, Service]

    def cpu_seconds(self) -> dict[str, float]:
        """What each of them has used, and this process."""
        used = {name: service.cpu_seconds() for name, service in self.services.items()}
        return {**used, "gateway": time.process_time()}


@contextlib.asynccontextmanager
async def suite(pools: Pools) -> AsyncIterator[Suite]:
    """All services, started one after the other as they call each other."""
    key = secrets.token_hex(32)
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        file = folder / "pools.yaml"
        file.write_text(yaml.safe_dump({"pools": list(pools.config)}), "utf-8")
        running: dict[str, Service] = {}
        for service in ("evaluation", "wallet", "table", "matchmaking"):
            settings: dict[str, object] = {
                name: other.address
                for name, other in running.items()
                if service in ("table", "matchmaking")
            }
            if service != "evaluation":
                settings["database"] = folder / f"{service}.db"
            if service == "matchmaking":
                settings["pools"] = file
            port_file = folder / f"{service}.json"
            process = await start(service, port_file, key, settings)
            stack.push_async_callback(stop, process)
            async with asyncio.timeout(START_SECONDS):
                running[service] = await ready(process, port_file)
        yield Suite(key, running)


class Crowd:
    """Players and bots who queue, and sit down where they are assigned."""

    def __init__(self, players: Any, bots: Any, gateway: Gateway, found: Seated) -> None:
        """`players` and `bots`: stubs of matchmaking that act for such."""
        self._players = players
        self._bots = bots
        self._gateway = gateway
        self._found = found
        self.tables: set[str] = set()

    async def come(self, player_id: str, pool_id: str, *, counts: bool) -> None:
        """A player: from the queue to the first prompt at his table."""
        began = time.perf_counter()
        table_id = await self._seat(self._players, player_id, pool_id, standby=False)
        assigned = time.perf_counter()
        prompted = await self._gateway.first_prompt(table_id)
        if counts:
            self._found.assigned.append(assigned - began)
            self._found.prompted.append(prompted - began)

    async def stand_by(self, pool_id: str, player_ids: Sequence[str]) -> None:
        """Bots of a pool, one after the other, until cancelled."""
        for player_id in player_ids:
            await self._seat(self._bots, player_id, pool_id, standby=True)
            self._found.bots += 1
        raise SystemExit(f"no more bots for {pool_id}")

    async def _seat(self, stub: Any, player_id: str, pool_id: str, *, standby: bool) -> str:
        act_as = (("fangcheng-act-as", player_id),)
        request = pb.JoinQueueRequest(request_id=player_id, pool_id=pool_id, standby=standby)
        ticket = (await stub.JoinQueue(request, metadata=act_as)).ticket
        watch = pb.WatchTicketRequest(ticket_id=ticket.ticket_id)
        async for answer in stub.WatchTicket(watch, metadata=act_as):
            ticket = answer.ticket
        if ticket.state != pb.TICKET_STATE_ASSIGNED:
            raise SystemExit(f"{player_id} was not seated: {ticket}")
        self._gateway.sit(player_id, ticket.table_id)
        self.tables.add(ticket.table_id)
        return str(ticket.table_id)


async def measured(pools: Pools, per_second: float, seconds: float, seed: int) -> Seated:
    """Players come at a rate for so long, to any of the pools."""
    chance = random.Random(seed)
    found = Seated()
    arrivals = _arrivals(pools, per_second, seconds, chance)
    bots = _bots(pools, len(arrivals))
    async with contextlib.AsyncExitStack() as stack:
        services = await stack.enter_async_context(suite(pools))

        async def channel(service: str, subject: str, *scopes: str) -> Any:
            token = mint_token(services.key, subject, scopes)
            return await stack.enter_async_context(
                connect(services.services[service].address, token)
            )

        wallets = WalletServiceStub(await channel("wallet", "operator"))
        everybody = [player_id for _, player_id, _ in arrivals]
        everybody += [player_id for _, player_ids in bots for player_id in player_ids]
        await open_wallets(wallets, everybody, 0 if pools.filled else SILVER)
        gateway = Gateway(
            TableServiceStub(await channel("table", "service:gateway", "act_as", "bot")), chance
        )
        crowd = Crowd(
            MatchmakingServiceStub(await channel("matchmaking", "service:gateway", "act_as")),
            MatchmakingServiceStub(await channel("matchmaking", "service:bots", "act_as", "bot")),
            gateway,
            found,
        )
        standby = [asyncio.create_task(crowd.stand_by(*one)) for one in bots]
        before, began = services.cpu_seconds(), time.perf_counter()
        async with asyncio.timeout(WARM_SECONDS + seconds + PATIENCE_SECONDS):
            async with asyncio.TaskGroup() as group:
                for due, player_id, pool_id in arrivals:
                    await asyncio.sleep(max(0.0, began + due - time.perf_counter()))
                    group.create_task(crowd.come(player_id, pool_id, counts=due >= WARM_SECONDS))
        elapsed, used = time.perf_counter() - began, services.cpu_seconds()
        tasks = [*standby, gateway.task]
        failed = [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in failed:
            task.result()
    found.cores = {name: (used[name] - was) / elapsed for name, was in before.items()}
    found.tables = len(crowd.tables)
    return found


def _arrivals(
    pools: Pools, per_second: float, seconds: float, chance: random.Random
) -> list[tuple[float, str, str]]:
    """When who comes to which pool; four at a time where no bot takes the last seat."""
    arrivals: list[tuple[float, str, str]] = []
    at = 0.0
    while (at := at + chance.expovariate(per_second)) < WARM_SECONDS + seconds:
        arrivals.append((at, f"p{len(arrivals)}", chance.choice(pools.ids)))
    return arrivals if pools.filled else arrivals[: len(arrivals) // 4 * 4]


def _bots(pools: Pools, players: int) -> list[tuple[str, list[str]]]:
    """For each place on standby its pool and who take it in turns: enough for any evening."""
    if not pools.filled:
        return []
    # Three to each player of a pool at most, in turns; and twice as many players as on average.
    turns = 2 * 3 * players // len(pools.ids) // STANDBY + 2
    return [
        (pool_id, [f"b-{pool_id}-{place}-{turn}" for turn in range(turns)])
        for pool_id in pools.ids
        for place in range(STANDBY)
    ]


async def open_wallets(stub: Any, player_ids: Sequence[str], silver: int) -> None:
    """Open a wallet for each of them, with so much silver in it."""
    room = asyncio.Semaphore(TOGETHER)

    async def one(player_id: str) -> None:
        async with room:
            await stub.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=player_id))
            if silver:
                request = wallet_pb2.DepositRequest(
                    request_id=player_id, player_id=player_id, currency="silver", amount=silver
                )
                await stub.Deposit(request)

    await asyncio.gather(*(one(player_id) for player_id in player_ids))
