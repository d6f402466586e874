"""The client processes of a load: started, listened to, ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO

from fangcheng_suite.errors import ServiceFailed
from fangcheng_suite.launcher import describe_end

from .client import Orders
from .measured import Slice

END_SECONDS = 30.0
"""How long a client may take to leave its tables before it is killed."""
TAIL = 8
"""Lines of what a client said at last."""


@dataclass(slots=True)
class _Client:
    label: str
    process: asyncio.subprocess.Process
    said: IO[bytes]
    tables: int = 0
    cpu_seconds: float = 0.0
    memory_bytes: float = 0.0


class Clients:
    """Processes, each with its orders. An async context manager: within it they play."""

    def __init__(self, orders: Sequence[Orders]) -> None:
        self._orders = orders
        self._clients: list[_Client] = []
        self._readers: list[asyncio.Task[None]] = []
        self._happened = Slice()
        self.failed: asyncio.Future[ServiceFailed] = asyncio.get_running_loop().create_future()
        """Set when one has ended by itself."""
        self._ending = False

    @property
    def tables(self) -> int:
        """In play now."""
        return sum(client.tables for client in self._clients)

    def taken(self) -> Slice:
        """What has happened since it was asked last."""
        happened, self._happened = self._happened, Slice()
        return happened

    def cpu_seconds(self) -> dict[str, float]:
        """What each process has used."""
        return {client.label: client.cpu_seconds for client in self._clients}

    def memory_bytes(self) -> dict[str, float]:
        """What each process has had at most."""
        return {client.label: client.memory_bytes for client in self._clients}

    async def __aenter__(self) -> Clients:
        try:
            for number, orders in enumerate(self._orders, 1):
                await self._start(number, orders)
        except BaseException:
            await self._close()
            raise
        return self

    async def _start(self, number: int, orders: Orders) -> None:
        said = tempfile.TemporaryFile()  # noqa: SIM115 # closed with the client
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "fangcheng_suite.load.client"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=said,
                limit=2**26,
                start_new_session=True,  # Ctrl-C is for whoever started them
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        except BaseException:
            said.close()
            raise
        client = _Client(f"client {number}" if len(self._orders) > 1 else "client", process, said)
        self._clients.append(client)
        if process.stdin is not None:
            process.stdin.write(orders.to_line())
        self._readers.append(asyncio.create_task(self._read(client)))

    async def end(self) -> None:
        """Have all of them leave their tables and end."""
        self._ending = True
        for client in self._clients:
            if client.process.stdin is not None:
                client.process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await asyncio.gather(*self._readers)
        except TimeoutError:
            self._kill()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        self._ending = True
        self._kill()
        await asyncio.gather(*self._readers, return_exceptions=True)
        for client in self._clients:
            client.said.close()

    def _kill(self) -> None:
        for client in self._clients:
            if client.process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    client.process.kill()

    async def _read(self, client: _Client) -> None:
        out = client.process.stdout
        while out is not None and (line := await out.readline()):
            told = json.loads(line)
            self._happened.take(Slice.from_json(told))
            client.tables = told["tables"]
            client.cpu_seconds = told["cpu_seconds"]
            client.memory_bytes = told["memory_bytes"]
        code = await client.process.wait()
        if (code or not self._ending) and not self.failed.done():
            self.failed.set_result(self._failure(client, code))

    def _failure(self, client: _Client, code: int) -> ServiceFailed:
        client.said.seek(0)
        lines = client.said.read().decode("utf-8", "replace").splitlines()
        return ServiceFailed(
            f"{client.label} of the load ended ({describe_end(code)})",
            "Is the suite still there, and may this token's gateway act for players?",
            tuple(line for line in lines[-TAIL:] if line.strip()),
        )
