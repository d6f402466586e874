"""Commands that are started in a process with open connections."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from tests.kit.echo import EchoRequest, Stub

COMMANDS = 40


async def test_what_is_forked_beside_open_connections_becomes_its_command(stub: Stub) -> None:
    """With gRPC's support for forks (see tests/conftest.py) every third child or so dies of it."""
    ended = asyncio.Event()

    async def talk() -> None:
        while not ended.is_set():
            await stub.Unary(EchoRequest(text="on"))

    def command() -> int:
        # A function before the command, or another user, and Python forks; otherwise it does not.
        words = [sys.executable, "-S", "-c", ""]
        return subprocess.run(words, preexec_fn=lambda: None, check=False).returncode

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(talk())
        codes = [await asyncio.to_thread(command) for _ in range(COMMANDS)]
        ended.set()
    assert codes == [0] * COMMANDS
