"""The examples as they stand: they meet at one table and play a hand, though connections break."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fangcheng_kit.tokens import mint_token
from fangcheng_suite.bots.crowd import Bank
from fangcheng_suite.bots.player import Bot

from .cutting import CuttingProxy
from .running import LONG_SECONDS, Running, environment

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[2] / "examples"
POOL = "baishan_kele-demo"
PROGRAMS = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
"""Where `buf` is, and whatever else the examples are made with."""


def built(example: str, *commands: Sequence[str]) -> Path:
    """An example's folder, after these commands."""
    folder = EXAMPLES / example
    for words in commands:
        program = shutil.which(words[0], path=PROGRAMS)
        assert program is not None, f"{words[0]} is not installed; the example {example} needs it"
        done = subprocess.run(
            [program, *words[1:]],
            cwd=folder,
            env=environment(PATH=PROGRAMS),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return folder


INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
BUILD = ("npm", "run", "build")


@dataclass
class Answers:
    """Says which answers of a service are lost, counted from 1."""

    lost: Sequence[int]
    so_far: int = 0

    def cut(self) -> bool:
        self.so_far += 1
        return self.so_far in self.lost


@asynccontextmanager
async def cut(target: str, *lost: int) -> AsyncIterator[str]:
    """The address of a service behind a proxy that breaks the connection at these answers."""
    async with CuttingProxy(target, Answers(lost).cut).running() as proxy:
        yield proxy.address


async def played(suite: Running, player: str, words: Sequence[str], folder: Path) -> str:
    """What an example has printed that played a hand as this player."""
    async with AsyncExitStack() as stack:
        target = suite.suite.target
        # Where is he: 1; his ticket: 2, which is lost, and asked for again.
        queue = await stack.enter_async_context(cut(target("matchmaking"), 2))
        # His stream: 1, and then one for each of his acts.
        table = await stack.enter_async_context(cut(target("table"), 2, 5))
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=folder,
            env=environment(
                PATH=PROGRAMS,
                FANGCHENG_TOKEN=mint_token(suite.suite.key, f"player:{player}"),
                FANGCHENG_POOL=POOL,
                FANGCHENG_MATCHMAKING=queue,
                FANGCHENG_TABLE=table,
            ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(LONG_SECONDS):
                out, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        said = out.decode()
        assert process.returncode == 0, said
        return said


def assert_played(said: str) -> None:
    """Every event came once and in order, whatever was lost; a hand was played to its end."""
    assert "(the first answer was lost)" in said, said
    assert "connection lost" in said, said
    numbers = [int(number) for number in re.findall(r"^(\d+) ", said, re.M)]
    assert numbers == [*range(1, len(numbers) + 1)], said
    assert re.search(r"^\d+ asked: ", said, re.M), said
    (net,) = re.findall(r"^\d+ hand 1 ended: (.*)", said, re.M)
    assert sum(map(int, net.split())) == 0, said
    assert re.search(r"^\d+ the table closed: ", said, re.M), said
    assert said.endswith("left the table\n"), said


async def test_four_languages_play_a_hand_at_one_table(quiet_suite: Running) -> None:
    node = await asyncio.to_thread(built, "node", INSTALL, BUILD)
    players = {"node-player": (("node", "dist/src/play.js"), node)}
    bots = [Bot(f"beside-{number}", quiet_suite.access) for number in range(4 - len(players))]
    bank = Bank(quiet_suite.access)
    for name in [*players, *(bot.player_id for bot in bots)]:
        await bank.give(name)
    async with asyncio.TaskGroup() as group:
        tasks = {
            name: group.create_task(played(quiet_suite, name, *started))
            for name, started in players.items()
        }
        for bot in bots:
            group.create_task(bot.play(POOL))
    for task in tasks.values():
        assert_played(task.result())
