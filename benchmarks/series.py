"""Series and scrapes: what a Prometheus finds at processes that have seen a full evening.

    python benchmarks/series.py [--tables TABLES]

Evaluator, wallet, tables and matchmaking are processes of their own. Players come to pools for
silver, four to a table, none twice: each queues, has his buy-in held, is seated, and attends by a
gateway, where bots play for them, slowly. When all tables play, every process is scraped again and
again by another process, as Prometheus would: how many series there are, and how long it takes
while tables go on.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import subprocess
import sys
from typing import Any

from measure import Line, Lines
from seating import SILVER, Crowd, Pools, Seated, one_for_silver, open_wallets, suite
from tables import Gateway

from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import connect
from fangcheng_kit.collector import relax
from fangcheng_kit.tokens import mint_token
from fangcheng_rules.rulesets import BUILT_IN

STREAM = 100
"""Tables whose players come to one pool, and attend by one stream."""
TOGETHER = 32
"""Players on their way to a table at the same time."""
SLOWER = 4
"""Than in `tables.py`: what is measured is what there is, not how much is done."""
POOLS = 32
SCRAPES = 30
SEED = 20_240_601
SCRAPER = """
import json, sys, time, urllib.request
took = []
for _ in range(int(sys.argv[2])):
    begun = time.perf_counter()
    page = urllib.request.urlopen(sys.argv[1]).read()
    took.append(time.perf_counter() - begun)
    time.sleep(0.1)
series = sum(not line.startswith(b"#") for line in page.splitlines())
print(json.dumps([series, len(page), took]))
"""


def pools() -> Pools:
    """Pools for silver of every rule set, as many as may be."""
    (silver,) = one_for_silver().config
    config = [
        {**silver, "id": f"silver-{number}", "rules": {"id": BUILT_IN[number % len(BUILT_IN)].id}}
        for number in range(POOLS)
    ]
    return Pools(f"{POOLS} pools for silver", config, filled=False)


class Slow(Gateway):
    """Bots that take their time."""

    def _thinks(self, kind: str) -> float:
        return SLOWER * super()._thinks(kind)


async def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tables", type=int, default=2_000)
    tables = parser.parse_args().tables
    offered, chance, lines = pools(), random.Random(SEED), Lines("series")
    async with contextlib.AsyncExitStack() as stack:
        services = await stack.enter_async_context(suite(offered))

        async def channel(service: str, subject: str, *scopes: str) -> Any:
            token = mint_token(services.key, subject, scopes)
            address = services.services[service].address
            return await stack.enter_async_context(connect(address, token))

        wallets = WalletServiceStub(await channel("wallet", "operator"))
        matchmaking = MatchmakingServiceStub(
            await channel("matchmaking", "service:gateway", "act_as")
        )
        gateways: list[Gateway] = []
        room = asyncio.Semaphore(TOGETHER)

        async def come(crowd: Crowd, player_id: str, pool_id: str) -> None:
            async with room:
                await crowd.come(player_id, pool_id, counts=False)

        for first in range(0, tables, STREAM):
            players = [f"p{number}" for number in range(4 * first, 4 * (first + STREAM))]
            await open_wallets(wallets, players, SILVER)
            stub = TableServiceStub(await channel("table", "service:gateway", "act_as"))
            gateways.append(Slow(stub, chance))
            crowd = Crowd(matchmaking, matchmaking, gateways[-1], Seated())
            pool = offered.ids[first // STREAM % POOLS]
            async with asyncio.TaskGroup() as group:
                for player in players:
                    group.create_task(come(crowd, player, pool))
        for name, service in services.services.items():
            command = (sys.executable, "-c", SCRAPER, f"http://{service.metrics}/metrics")
            scraper = await asyncio.create_subprocess_exec(
                *command, str(SCRAPES), stdout=subprocess.PIPE
            )
            told, _ = await scraper.communicate()
            series, size, took = json.loads(told)
            lines.add(
                Line(
                    f"{tables:,} tables in play, {4 * tables:,} players, {POOLS} pools",
                    name,
                    series,
                    "series",
                    rate=False,
                    note=f"a scrape: median {1e3 * statistics.median(took):.0f} ms, worst of"
                    f" {SCRAPES} {1e3 * max(took):.0f} ms, {size / 1024:.0f} KiB",
                )
            )
        for gateway in gateways:
            gateway.task.cancel()
        await asyncio.gather(*(gateway.task for gateway in gateways), return_exceptions=True)
    lines.save()


if __name__ == "__main__":
    relax(20_000, 50, 20)
    asyncio.run(main())
