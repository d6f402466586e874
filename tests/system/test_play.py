"""`fangcheng play` as a process in a terminal: a hand by keys, over a table that is killed."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_suite.bots.crowd import Bank, make_bots

from .running import COMMAND, LONG_SECONDS, Running, environment, fangcheng

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

COLUMNS, ROWS = 80, 24
POOL = "jintan-demo"
ASKED = re.compile(r"Your turn|Take it\?|Do you want it\?")


class Terminal:
    """A process in a terminal of its own, and what it writes there."""

    def __init__(self, *words: str) -> None:
        self._leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [COMMAND, *words],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=environment(TERM="xterm-256color", COLORTERM="truecolor"),
            start_new_session=True,
        )
        os.close(follower)
        os.set_blocking(self._leader, False)
        self.written = ""

    def look(self) -> str:
        """Take in what has been written since; all of it, without its colours."""
        while True:
            try:
                data = os.read(self._leader, 65_536)
            except OSError:  # nothing more now, or the process has ended
                break
            if not data:
                break
            self.written += data.decode("utf-8", "replace")
        return re.sub(r"\x1b\[[0-9;?<>=]*[a-zA-Z]", "", self.written)

    def forget(self) -> None:
        """Look at what is written from now on."""
        self.look()
        self.written = ""

    def press(self, keys: str) -> None:
        os.write(self._leader, keys.encode())

    async def sees(self, text: str) -> None:
        """Wait for a text."""
        deadline = time.monotonic() + LONG_SECONDS
        while text not in self.look():
            assert time.monotonic() < deadline, f"{text!r} was not shown: {self.look()[-3_000:]}"
            await asyncio.sleep(0.02)

    async def ends(self) -> int:
        """Wait for the end of the process, and look on meanwhile; its exit code."""
        deadline = time.monotonic() + LONG_SECONDS
        while (code := self.process.poll()) is None:
            assert time.monotonic() < deadline, self.look()[-3_000:]
            await asyncio.sleep(0.02)
            self.look()
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._leader)


@asynccontextmanager
async def company(suite: Running) -> AsyncIterator[None]:
    """Three bots that queue with the person, and silver for all four."""
    bank, bots = Bank(suite.access), make_bots(range(60, 63), suite.access)
    for bot in bots:
        await bank.give(bot.player_id)
    async with suite.access.channel("wallet") as channel:
        stub = wallet_pb2_grpc.WalletServiceStub(channel)
        await stub.OpenWallet(wallet_pb2.OpenWalletRequest(player_id="ming"))
        await stub.Deposit(
            wallet_pb2.DepositRequest(
                request_id="for ming at play", player_id="ming", currency="silver", amount=10_000
            )
        )
    playing = [asyncio.create_task(bot.play(POOL)) for bot in bots]
    try:
        yield
    finally:
        for task in playing:
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)


async def test_a_hand_is_played_by_keys_over_a_table_that_is_killed(quiet_suite: Running) -> None:
    words = ["--rule-set", "jintan", "--pool", POOL, "--language", "en", "--name", "Ming"]
    terminal = Terminal("play", *words, "--state", str(quiet_suite.state))
    try:
        async with company(quiet_suite):
            await terminal.sees("Your turn")
            terminal.press("h")
            await terminal.sees("Try: ")
            terminal.press("q")
            await terminal.sees("an escape; you pay")
            terminal.press("1")  # after this hand
            await asyncio.to_thread(quiet_suite.killed, "table")
            terminal.forget()
            deadline = time.monotonic() + LONG_SECONDS
            while "The table has closed" not in (written := terminal.look()):
                assert time.monotonic() < deadline, written[-3_000:]
                if ASKED.search(written):
                    terminal.forget()
                    terminal.press("wx\r")  # a win where there is one; else no claim, a discard
                await asyncio.sleep(0.02)
            await terminal.sees("a player left")
            terminal.press("q")
            assert await terminal.ends() == 0
            assert "Traceback" not in terminal.look()
    finally:
        terminal.close()


def test_without_a_terminal_it_says_what_to_do(quiet_suite: Running) -> None:
    done = fangcheng("play", "--state", str(quiet_suite.state))
    assert done.returncode == 1
    assert "needs a terminal" in done.stderr
    assert "fangcheng watch" in done.stderr
