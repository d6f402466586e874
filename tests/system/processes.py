"""A service as a process that is killed, paused and started again, for the tests that do so."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from fangcheng_client import connect
from fangcheng_kit.tokens import mint_token
from tests.system.running import environment, free_port

KEY = "a development key of the tests, long enough"


class Service:
    """One service, always at the same address, whatever happens to its processes."""

    def __init__(self, folder: Path, kind: str, number: int = 0, **settings: str) -> None:
        """`settings`: without their prefix; an empty `DEV_KEY`: none, not that of the tests."""
        self.name = f"{kind}-{number}"
        self.address = f"127.0.0.1:{free_port()}"
        self._module = f"fangcheng_{kind}"
        self._port_file = folder / f"{self.name}.json"
        self._log = folder / f"{self.name}.log"
        own = {"LISTEN": self.address, "PORT_FILE": str(self._port_file), **settings}
        self._environment = environment(
            FANGCHENG_DEV_KEY=settings.get("DEV_KEY", KEY),
            # Players answer here at the speed of a machine.
            FANGCHENG_PLAYER_CALLS_PER_SECOND="0",
            FANGCHENG_LOG_LEVEL="warning",
            **{f"FANGCHENG_{kind.upper()}_{key}": value for key, value in own.items()},
        )
        self._process: asyncio.subprocess.Process | None = None

    @property
    def alive(self) -> bool:
        """A process of it runs."""
        return self._process is not None and self._process.returncode is None

    def listens(self, what: str) -> str:
        """Where it listens for something else than gRPC: `web`, `metrics`."""
        return str(json.loads(self._port_file.read_text("utf-8"))[what])

    def memory(self) -> int:
        """Bytes of memory that it has in use."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(
            1_024 * int(line.split()[1])
            for line in status.splitlines()
            if line.startswith("VmRSS:")
        )

    async def start(self) -> None:
        """Start a process; it serves when this returns."""
        self._port_file.unlink(missing_ok=True)
        with self._log.open("ab") as out:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", self._module),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self._environment,
            )
        while not self._port_file.exists():
            assert self.alive, self._log.read_text("utf-8")
            await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """`kill -9`."""
        if self._process is not None and self.alive:
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> None:
        """SIGTERM, and wait until it has drained and ended, which must go well."""
        assert self._process is not None
        self._process.terminate()
        assert await self._process.wait() == 0, self._log.read_text("utf-8")

    def pause(self) -> None:
        """Let it run no further."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def metric(self, name: str, label: str = "") -> float:
        """The sum of a metric over its labels, or those with `label`, as its page has it now."""
        with urllib.request.urlopen(f"http://{self.listens('metrics')}/metrics") as answer:
            lines = str(answer.read(), "utf-8").splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith((f"{name} ", f"{name}{{")) and label in line
        )

    def clients(self) -> int:
        """Channels with health checks, as `connect` makes them, that would call it now."""
        watch = 'grpc_service="grpc.health.v1.Health"'
        begun = self.metric("grpc_server_started_total", watch)
        return int(begun - self.metric("grpc_server_handled_total", watch))


class Processes:
    """The four services, a process each."""

    def __init__(self, folder: Path, pools: str, **settings: str) -> None:
        """`pools`: the file of matchmaking. `settings`: of each, without their prefix."""
        self._pools = folder / "pools.yaml"
        self._pools.write_text(pools, "utf-8")
        self.services: dict[str, Service] = {}
        kinds = {
            "wallet": (),
            "evaluation": (),
            "table": ("wallet", "evaluation"),
            "matchmaking": ("wallet", "evaluation", "table"),
        }
        for kind, partners in kinds.items():
            own = {partner.upper(): self.services[partner].address for partner in partners}
            if kind != "evaluation":
                own["DATABASE"] = str(folder / f"{kind}.db")
            if kind == "matchmaking":
                own["POOLS"] = str(self._pools)
            self.services[kind] = Service(folder, kind, **own, **settings)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """They serve; afterwards they are killed."""
        try:
            await asyncio.gather(*(service.start() for service in self.services.values()))
            yield
        finally:
            await asyncio.gather(*(service.kill() for service in self.services.values()))

    def channel(self, service: str, subject: str) -> grpc.aio.Channel:
        """A channel to a service on which `subject` calls."""
        return connect(self.services[service].address, mint_token(KEY, subject))
