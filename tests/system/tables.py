"""The services as processes on PostgreSQL, for the tests that kill and pause them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import urllib.request
from pathlib import Path

from tests.system.running import environment
from tests.system.wallets import KEY, Database

PACKAGES = {
    "table": "fangcheng_table",
    "wallet": "fangcheng_wallet",
    "evaluation": "fangcheng_evaluation",
}


def free_address() -> str:
    """An address on loopback that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


class Service:
    """One service, always at the same address, whatever happens to its processes."""

    def __init__(self, folder: Path, kind: str, number: int, **settings: str) -> None:
        """`settings`: without their prefix."""
        self.name = f"{kind}-{number}"
        self.address = free_address()
        self._kind = kind
        self._port_file = folder / f"{self.name}.json"
        self.log = folder / f"{self.name}.log"
        own = {"LISTEN": self.address, "PORT_FILE": str(self._port_file), **settings}
        self._environment = environment(
            FANGCHENG_DEV_KEY=KEY,
            FANGCHENG_LOG_LEVEL="warning",
            FANGCHENG_CACHE_DIR=os.environ.get("FANGCHENG_CACHE_DIR", ""),
            **{f"FANGCHENG_{kind.upper()}_{key}": value for key, value in own.items()},
        )
        if not self._environment["FANGCHENG_CACHE_DIR"]:
            del self._environment["FANGCHENG_CACHE_DIR"]
        self._process: asyncio.subprocess.Process | None = None
        self.starts = 0

    async def start(self) -> None:
        """Start a process; it serves when this returns."""
        self._port_file.unlink(missing_ok=True)
        with self.log.open("ab") as out:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", PACKAGES[self._kind]),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self._environment,
            )
        self.starts += 1
        while not self._port_file.exists():
            assert self._process.returncode is None, self.log.read_text("utf-8")
            await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """`kill -9`."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> int:
        """SIGTERM: it drains; its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return await self._process.wait()

    def pause(self) -> None:
        """Let it run no further."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels, as its page has it now."""
        address = json.loads(self._port_file.read_text("utf-8"))["metrics"]
        with urllib.request.urlopen(f"http://{address}/metrics") as answer:
            lines = str(answer.read(), "utf-8").splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith((f"{name} ", f"{name}{{"))
        )


class Cluster:
    """Two table services, a wallet and two evaluators on a PostgreSQL server."""

    def __init__(self, folder: Path) -> None:
        self.server = Database(folder, "postgres")
        self._folder = folder
        self.tables: list[Service] = []
        self.evaluators: list[Service] = []
        self.journal = ""

    @property
    def services(self) -> list[Service]:
        """All of them."""
        return [*self.tables, self.wallet, *self.evaluators]

    async def start(self) -> None:
        """Start the server and everything on it."""
        await asyncio.to_thread(self.server.start)
        self.journal = await self._database("journal")
        ledger = await self._database("ledger")
        folder = self._folder
        self.wallet = Service(folder, "wallet", 0, DATABASE=ledger, DRAIN_SECONDS="0")
        self.evaluators = [Service(folder, "evaluation", number) for number in range(2)]
        evaluation = ",".join(one.address for one in self.evaluators)
        self.tables = [
            Service(
                *(folder, "table", number),
                DATABASE=self.journal,
                WALLET=self.wallet.address,
                EVALUATION=f"ipv4:{evaluation}",
                START_GRACE_SECONDS="120",
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
        return "ipv4:" + ",".join(one.address for one in self.tables)
