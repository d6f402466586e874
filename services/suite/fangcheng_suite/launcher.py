"""Starts the services as processes of their own on this host, watches them, and ends them.

The order follows who calls whom: wallet and evaluation first, then the table that asks both, then
matchmaking that asks table and wallet, at last the console, which looks at them all; they end the
other way round. Each listens on loopback. A service writes the ports that it got into a file, and
is waited for until its health is SERVING.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from .errors import PortTaken, ServiceFailed
from .state import Address, StateFolder, target

HOST = "127.0.0.1"

READY_SECONDS = 300.0
"""How long a service may take until it serves; the first start on a machine compiles the kernels of
every rule set."""
STOP_SECONDS = 12.0
"""How long a service may take to end before it is killed."""
DRAIN_SECONDS = 0.3
"""Long enough for clients on this host to see NOT_SERVING."""
POLL_SECONDS = 0.05
FIRST_BACKOFF_SECONDS = 0.2
LONGEST_BACKOFF_SECONDS = 10.0
STEADY_SECONDS = 30.0
"""A service that ran this long before it ended is started again at once."""

FIRST_PORTS = {"matchmaking": 0, "table": 1, "wallet": 2, "console": 3, "evaluation": 10}
"""Of each service, from the base on."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports to listen on: from `base` on, or free ones that the system chooses (base 0).

    With a base of 7100: matchmaking 7100, table 7101, wallet 7102, the console's page 7103,
    evaluators from 7110; the metrics of each a hundred above. The console has gRPC, which tells
    its health, at 7104.
    """

    base: int = 0

    def of(self, service: str, replica: int = 0) -> dict[str, int]:
        """Ports by what is there: `listen` for gRPC, `metrics`, and `web` of the console; 0 where
        the system chooses."""
        first = self.base + FIRST_PORTS[service] + replica
        ports = {"listen": first, "metrics": first + 100}
        if service == "console":
            ports |= {"listen": first + 1, "web": first}
        return ports if self.base else dict.fromkeys(ports, 0)


class Process:
    """One service process: started, waited for, stopped; started again with the same ports."""

    def __init__(
        self,
        service: str,
        label: str,
        ports: Mapping[str, int],
        settings: Mapping[str, str],
        folder: StateFolder,
        environment: Mapping[str, str],
    ) -> None:
        self.service = service
        self.label = label
        self.log = folder.logs / f"{label}.log"
        self._ports = dict(ports)
        self._settings = dict(settings)
        self._environment = dict(environment)
        self._port_file = folder.path / f"{label}.port.json"
        self._process: asyncio.subprocess.Process | None = None
        self.stopping = False

    @property
    def address(self) -> Address:
        """Where it listens; known once it has been ready."""
        listens = {name: f"{HOST}:{port}" for name, port in self._ports.items()}
        return Address(listens["listen"], listens["metrics"], listens.get("web", ""))

    @property
    def pid(self) -> int | None:
        """Process id, while it runs."""
        return None if self._process is None else self._process.pid

    @property
    def alive(self) -> bool:
        """The process has been started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start the process; `ready` waits until it serves."""
        self._port_file.unlink(missing_ok=True)
        own = {
            "LISTEN": self.address.grpc,
            "METRICS_LISTEN": self.address.metrics,
            "WEB_LISTEN": self.address.web,
            "PORT_FILE": str(self._port_file),
            "DRAIN_SECONDS": str(DRAIN_SECONDS),
            **self._settings,
        }
        prefix = f"FANGCHENG_{self.service.upper()}_"
        environment = {
            **os.environ,
            **self._environment,
            **{prefix + name: text for name, text in own.items() if text},
            "PYTHONUNBUFFERED": "1",
        }
        with self.log.open("ab") as log:
            # A session of its own: Ctrl-C in the terminal reaches the launcher alone, which then
            # ends the services in their order.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "fangcheng_suite.child",
                f"fangcheng_{self.service}",
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    async def ready(self, within_seconds: float = READY_SECONDS) -> None:
        """Wait until it serves; raises ServiceFailed when it ends or takes too long."""
        deadline = time.monotonic() + within_seconds
        while not self._read_ports():
            await self._pause(deadline, within_seconds)
        async with grpc.aio.insecure_channel(
            self.address.grpc,
            options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)],
        ) as channel:
            while not await _serving(channel):
                await self._pause(deadline, within_seconds)

    async def ended(self) -> int:
        """Wait until the process ends; its return code, below 0 for a signal."""
        if self._process is None:
            raise RuntimeError(f"{self.label} was not started")
        return await self._process.wait()

    async def stop(self, within_seconds: float = STOP_SECONDS) -> None:
        """End it: ask first, kill when it takes too long."""
        self.stopping = True
        if self._process is None or self._process.returncode is not None:
            return
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(within_seconds):
                await self._process.wait()
        except TimeoutError:
            self.signal(signal.SIGKILL)
            await self._process.wait()
        self._port_file.unlink(missing_ok=True)

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.alive and self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def failure(self, what: str) -> ServiceFailed:
        """An error that shows the end of the log."""
        return ServiceFailed(
            f"{self.label} {what}", f"Its whole log is {self.log}", tuple(log_tail(self.log))
        )

    def _read_ports(self) -> bool:
        try:
            told = json.loads(self._port_file.read_text("utf-8"))
            self._ports = {name: _port(told[name]) for name in self._ports}
        except (OSError, ValueError, KeyError):
            return False
        return True

    async def _pause(self, deadline: float, within_seconds: float) -> None:
        if not self.alive:
            code = self._process.returncode if self._process is not None else None
            raise self.failure(f"ended while it was starting ({describe_end(code)})")
        if time.monotonic() > deadline:
            raise self.failure(f"was not ready within {within_seconds:.0f} s")
        await asyncio.sleep(POLL_SECONDS)


class Launcher:
    """All services of a suite. An async context manager: within it, every one serves.

    `console`: the console too. `restart`: a service that ends is started again, with the ports it
    had. `temporary`: the folder goes when everything is killed. `environment`: variables of every
    service beside its settings.
    """

    def __init__(
        self,
        folder: StateFolder,
        key: str,
        *,
        evaluators: int = 1,
        console: bool = False,
        ports: Ports = Ports(),
        restart: bool = False,
        temporary: bool = False,
        report: Report = lambda text: None,
        settings: Mapping[str, Mapping[str, str]] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._key = key
        self._evaluators = evaluators
        self._console = console
        self._ports = ports
        self._restart = restart
        self._temporary = temporary
        self._report = report
        self._more = settings or {}
        self._environment = environment or {}
        self._watchers: list[asyncio.Task[None]] = []
        self.processes: list[Process] = []
        self.failed: asyncio.Future[ServiceFailed] = asyncio.get_running_loop().create_future()
        """Set when a service ended that is not started again."""

    @property
    def services(self) -> dict[str, tuple[Address, ...]]:
        """Addresses by service."""
        found: dict[str, tuple[Address, ...]] = {}
        for process in self.processes:
            found[process.service] = (*found.get(process.service, ()), process.address)
        return found

    def target(self, service: str) -> str:
        """The gRPC target of a service: one address or all of its replicas."""
        return target([address.grpc for address in self.services[service]])

    async def __aenter__(self) -> Launcher:
        self._check_ports()
        for log in self._folder.logs.glob("*.log"):
            log.replace(log.with_suffix(".log.old"))
        LIVE.add(self)
        try:
            await self._start("wallet", 1, {})
            await self._start("evaluation", self._evaluators, {})
            await self._ready("wallet", "evaluation")
            await self._start(
                "table",
                1,
                {"EVALUATION": self.target("evaluation"), "WALLET": self.target("wallet")},
            )
            await self._ready("table")
            others = ("table", "wallet", "evaluation")
            await self._start(
                "matchmaking", 1, {name.upper(): self.target(name) for name in others}
            )
            await self._ready("matchmaking")
            if self._console:
                await self._start("console", 1, self._all())
                await self._ready("console")
        except BaseException:
            await self._end()
            raise
        self._watchers = [
            asyncio.create_task(self._watch(process), name=f"watch {process.label}")
            for process in self.processes
        ]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end()

    def kill(self) -> None:
        """End every process at once, without asking."""
        for process in self.processes:
            process.stopping = True
            process.signal(signal.SIGKILL)
        if self._temporary:
            shutil.rmtree(self._folder.path, ignore_errors=True)

    async def _start(self, service: str, replicas: int, settings: Mapping[str, str]) -> None:
        for replica in range(replicas):
            label = service if replicas == 1 else f"{service}-{replica + 1}"
            own = {"DEV_KEY": self._key, **settings, **self._more.get(service, {})}
            if service != "evaluation":  # which keeps nothing
                own["DATABASE"] = str(self._folder.path / f"{service}.db")
            if service == "table":
                own.setdefault("JOURNAL_KEYS", self._folder.journal_keys(make=True))
            process = Process(
                service,
                label,
                self._ports.of(service, replica),
                own,
                self._folder,
                self._environment,
            )
            self.processes.append(process)
            await process.start()

    def _all(self) -> dict[str, str]:
        """Settings of who looks at every service, and at every process's metrics."""
        targets = {name.upper(): self.target(name) for name in self.services}
        metrics = [f"{process.service}={process.address.metrics}" for process in self.processes]
        return {**targets, "METRICS": ",".join(metrics)}

    async def _ready(self, *services: str) -> None:
        for process in self.processes:
            if process.service in services:
                await process.ready()

    async def _end(self) -> None:
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        for service in ("console", "matchmaking", "table", "evaluation", "wallet"):
            await asyncio.gather(
                *(process.stop() for process in self.processes if process.service == service)
            )
        LIVE.discard(self)

    async def _watch(self, process: Process) -> None:
        """Start a process again whenever it ends, or tell that it failed."""
        backoff_seconds = FIRST_BACKOFF_SECONDS
        while True:
            started = time.monotonic()
            code = await process.ended()
            if process.stopping:
                return
            if not self._restart:
                if not self.failed.done():
                    self.failed.set_result(
                        process.failure(f"ended unexpectedly ({describe_end(code)})")
                    )
                return
            if time.monotonic() - started > STEADY_SECONDS:
                backoff_seconds = FIRST_BACKOFF_SECONDS
            self._report(f"{process.label} ended ({describe_end(code)}); starting it again")
            await asyncio.sleep(backoff_seconds)
            backoff_seconds = min(2 * backoff_seconds, LONGEST_BACKOFF_SECONDS)
            await process.start()
            try:
                await process.ready()
            except ServiceFailed as failure:
                last = f": {failure.details[-1]}" if failure.details else ""
                self._report(f"{failure.message}{last}")
                if process.alive:  # it hangs; the next turn of the loop starts another
                    process.signal(signal.SIGKILL)
            else:
                self._report(f"{process.label} serves again")

    def _check_ports(self) -> None:
        """Say which port is taken before anything is started, rather than read it from a log."""
        wanted = [(name, 0) for name in FIRST_PORTS if name != "console" or self._console]
        wanted += [("evaluation", replica) for replica in range(1, self._evaluators)]
        for service, replica in wanted:
            for port in self._ports.of(service, replica).values():
                if port and not port_is_free(port):
                    raise PortTaken(
                        f"port {port} for {service} is in use",
                        "Choose others with --port (--port 7300), or --port 0 for free ones.",
                    )


LIVE: set[Launcher] = set()
"""Launchers whose processes may run; whoever must end this process at once kills them first."""


async def _serving(channel: grpc.aio.Channel) -> bool:
    stub: Any = health_pb2_grpc.HealthStub(channel)  # whose calls have no types
    try:
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=2.0)
    except grpc.aio.AioRpcError:
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def port_is_free(port: int) -> bool:
    """Whether a server could listen on this port of loopback now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def describe_end(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None:
        return "not started"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"by {signal.Signals(-code).name}"
        return f"by signal {-code}"
    return f"exit code {code}"


def log_tail(log: Path, lines: int = 8) -> list[str]:
    """The last lines of a log, JSON lines made readable."""
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - 16_384, 0))
            written = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [_readable(line) for line in written[-lines:] if line.strip()]


def _readable(line: str) -> str:
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    if not isinstance(entry, dict):
        return line
    event = entry.pop("event", "")
    level = entry.pop("level", "")
    known: Sequence[str] = ("time", "service", "logger")
    rest = " ".join(f"{name}={text}" for name, text in entry.items() if name not in known)
    return f"{level}: {event} {rest}".strip()


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
