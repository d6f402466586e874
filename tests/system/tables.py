"""The services as processes on PostgreSQL, for the tests that kill and pause them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fangcheng_table.sealing import JournalKeys, new_key
from tests.system.processes import Service
from tests.system.wallets import Database


class Cluster:
    """Matchmaking, table services and evaluators, two each, and wallets on a PostgreSQL server."""

    def __init__(self, folder: Path, pools: str, wallets: int = 1) -> None:
        """`pools`: as in a file of pools."""
        self.server = Database(folder, "postgres")
        self._folder = folder
        self._pools = pools
        self._most_wallets = wallets
        self.wallets: list[Service] = []
        self.matchmaking: list[Service] = []
        self.tables: list[Service] = []
        self.evaluators: list[Service] = []
        self.journal = ""
        older, newer = new_key("older"), new_key("newer")
        self.keys = JournalKeys.parse(f"{newer},{older}")
        """What the journal is sealed with: by one table service with this key, by one with that."""
        self._orders = (f"{older},{newer}", f"{newer},{older}")
        self.queues = ""
        """The database of tickets and matches, as `journal` is that of the tables."""

    @property
    def services(self) -> list[Service]:
        """All of them."""
        return [*self.matchmaking, *self.tables, *self.wallets, *self.evaluators]

    @property
    def wallet(self) -> Service:
        """The only wallet, or the first."""
        return self.wallets[0]

    async def start(self) -> None:
        """Start the server and everything on it."""
        await asyncio.to_thread(self.server.start)
        self.journal = await self._database("journal")
        self.queues = await self._database("queues")
        ledger = await self._database("ledger")
        folder = self._folder
        self.wallets = [
            Service(folder, "wallet", number, DATABASE=ledger)
            for number in range(self._most_wallets)
        ]
        self.evaluators = [Service(folder, "evaluation", number) for number in range(2)]
        evaluation = self.all_evaluators
        self.tables = [
            Service(
                *(folder, "table", number),
                DATABASE=self.journal,
                JOURNAL_KEYS=self._orders[number],
                WALLET=self.all_wallets,
                EVALUATION=evaluation,
                START_GRACE_SECONDS="120",
            )
            for number in range(2)
        ]
        pools = folder / "pools.yaml"
        pools.write_text(self._pools, "utf-8")
        self.matchmaking = [
            Service(
                *(folder, "matchmaking", number),
                DATABASE=self.queues,
                WALLET=self.all_wallets,
                EVALUATION=evaluation,
                TABLE=self.all_tables,
                POOLS=str(pools),
            )
            for number in range(2)
        ]
        await asyncio.gather(*(service.start() for service in self.services))

    async def _database(self, name: str) -> str:
        import asyncpg

        db = await asyncpg.connect(self.server.address)
        await db.execute(f'CREATE DATABASE "{name}"')
        await db.close()
        head, _, options = self.server.address.partition("?")
        return f"{head.rpartition('/')[0]}/{name}?{options}"

    async def close(self) -> None:
        """End everything."""
        await asyncio.gather(*(service.kill() for service in self.services))
        await asyncio.to_thread(self.server.stop)

    @property
    def all_tables(self) -> str:
        """The target of both table services."""
        return _target(self.tables)

    @property
    def all_wallets(self) -> str:
        """The target of all wallets."""
        return _target(self.wallets)

    @property
    def all_evaluators(self) -> str:
        """The target of both evaluators."""
        return _target(self.evaluators)

    @property
    def all_matchmaking(self) -> str:
        """The target of both replicas of matchmaking."""
        return _target(self.matchmaking)


def _target(replicas: list[Service]) -> str:
    return "ipv4:" + ",".join(one.address for one in replicas)
