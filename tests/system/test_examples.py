"""The examples as they stand: four languages play a hand at one table, though connections break."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser

from fangcheng_kit.tokens import mint_token
from fangcheng_suite.bots.crowd import Bank

from .browser import LONG_MS
from .cutting import Cable, CuttingProxy
from .debian import installed
from .running import LONG_SECONDS, Running, environment
from .test_envoy import Edge

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[2] / "examples"
POOL = "baishan_kele-demo"
PROGRAMS = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
"""Where `buf` is, and whatever else the examples are made with."""
INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
BUILD = ("npm", "run", "build")
GO_PACKAGES = (
    "golang-github-golang-protobuf-1-5-dev",
    "golang-go",
    "golang-google-genproto-dev",
    "golang-google-grpc-dev",
    "golang-google-protobuf-dev",
    "protoc-gen-go",
    "protoc-gen-go-grpc",
)
GO_MODULE = "fangcheng.example/player"


def made(folder: Path, *commands: Sequence[str], **more: str) -> Path:
    """An example's folder, after these commands."""
    for words in commands:
        program = shutil.which(words[0], path=PROGRAMS)
        assert program is not None, f"{words[0]} is not installed; {folder} is made with it"
        done = subprocess.run(
            [program, *words[1:]],
            cwd=folder,
            env=environment(PATH=PROGRAMS, **more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{folder}: {' '.join(words)}\n{done.stdout}{done.stderr}"
    return folder


def made_in_go(workspace: Path) -> Path:
    """The player in Go, made with what Debian has: no module comes from elsewhere."""
    installed("protoc-gen-go-grpc", *GO_PACKAGES)
    made(EXAMPLES / "go", ("buf", "generate"))
    source = shutil.copytree(EXAMPLES / "go", workspace / "src" / GO_MODULE)
    path = f"{workspace}{os.pathsep}/usr/share/gocode"
    commands = [("go", "vet", "."), ("go", "build", "-o", str(workspace / "player"), ".")]
    return made(source, *commands, GO111MODULE="off", GOPATH=path).parents[2]


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
    target = suite.suite.target
    # Our own client asks each service first whether it is well. Then: where he is, and his ticket,
    # which is lost, and asked for again; his stream, and then his acts, some of which are lost.
    first = 2 if words[0] == sys.executable else 1
    async with (
        cut(target("matchmaking"), first + 1) as queue,
        cut(target("table"), first + 1, first + 4) as table,
    ):
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


@dataclass
class Beside:
    """What runs in a loop beside the browser: Envoy, a cable to it, and the other players."""

    address: Future[str] = field(default_factory=Future)
    """Where the browser finds Envoy: the cable's other end."""
    _loop: asyncio.AbstractEventLoop | None = None
    _cable: Cable | None = None
    _page_is_left: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[dict[str, str]] | None = None

    async def play(
        self, suite: Running, folder: Path, players: dict[str, tuple[Sequence[str], Path]]
    ) -> dict[str, str]:
        """What each has printed, once all have left the table."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        bank = Bank(suite.access)
        for name in (*players, "browser"):
            await bank.give(name)
        edge = Edge(folder)
        for service in ("table", "matchmaking", "wallet"):
            edge.send_to(service, suite.suite.target(service))
        edge.list_evaluators(suite.suite.services["evaluation"][0].grpc)
        async with edge.running(), Cable(edge.address).running() as cable:
            self._cable = cable
            self.address.set_result(cable.address)
            async with asyncio.TaskGroup() as group:
                tasks = {
                    name: group.create_task(played(suite, name, *started))
                    for name, started in players.items()
                }
            await self._page_is_left.wait()
            return {name: task.result() for name, task in tasks.items()}

    def pull(self) -> None:
        """Break the browser's connections."""
        assert self._loop is not None
        assert self._cable is not None
        self._loop.call_soon_threadsafe(self._cable.pull)

    @contextmanager
    def until_the_page_is_left(self) -> Iterator[None]:
        """Envoy goes on until the end of the block; where that fails, the others stop."""
        try:
            yield
        except BaseException:
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
            raise
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._page_is_left.set)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a page's folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def played_in_a_page(
    browser: Browser, page: str, suite: Running, beside: Beside, others: Future[dict[str, str]]
) -> str:
    """What the page has shown once its player has left the table; fails where the others do."""
    given = {
        "token": mint_token(suite.suite.key, "player:browser"),
        "edge": f"http://{beside.address.result(LONG_SECONDS)}",
        "pool": POOL,
    }
    tab = browser.new_page()
    try:
        tab.set_default_timeout(LONG_MS)
        failures: list[str] = []
        tab.on("pageerror", lambda error: failures.append(str(error)))
        tab.goto(f"{page}#{urlencode(given)}")
        log = tab.locator("#log")

        def wait_for(text: str) -> None:
            while text not in log.inner_text():
                if others.done():
                    others.result()
                tab.wait_for_timeout(50)

        wait_for("asked:")
        assert "token" not in tab.url
        # The first answer by a button, the others by itself, and then a broken connection.
        tab.locator("#actions button").last.click()
        tab.get_by_label("play by itself").check()
        beside.pull()
        wait_for("connection lost")
        wait_for("left the table")
        assert failures == []
        return log.inner_text()
    finally:
        tab.close()


def assert_played(said: str) -> None:
    """Every event came once and in order, whatever was lost; a hand was played to its end."""
    assert "connection lost" in said, said
    numbers = [int(number) for number in re.findall(r"^(\d+) ", said, re.M)]
    assert numbers == [*range(1, len(numbers) + 1)], said
    assert re.search(r"^\d+ asked: ", said, re.M), said
    (net,) = re.findall(r"^\d+ hand 1 ended: (.*)", said, re.M)
    assert sum(map(int, net.split())) == 0, said
    assert re.search(r"^\d+ the table closed: ", said, re.M), said
    assert said.rstrip().endswith("left the table"), said


def test_four_languages_play_a_hand_at_one_table(
    quiet_suite: Running, browser: Browser, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(3) as threads:
        in_go = threads.submit(made_in_go, tmp_path / "go")
        in_node = threads.submit(made, EXAMPLES / "node", INSTALL, BUILD)
        in_browser = threads.submit(made, EXAMPLES / "browser", INSTALL, BUILD)
        players: dict[str, tuple[Sequence[str], Path]] = {
            "python": ((sys.executable, "-u", "play.py"), EXAMPLES / "python"),
            "node": (("node", "dist/src/play.js"), in_node.result()),
            "go": ((str(in_go.result() / "player"),), in_go.result()),
        }
        beside = Beside()
        playing = threads.submit(asyncio.run, beside.play(quiet_suite, tmp_path, players))
        with beside.until_the_page_is_left(), served(in_browser.result() / "public") as page:
            shown = played_in_a_page(browser, page, quiet_suite, beside, playing)
        said = playing.result()
    assert_played(shown)
    for text in said.values():
        assert "(the first answer was lost)" in text, text
        assert_played(text)


@pytest.mark.parametrize("name", ["src/attend.ts", "src/game.ts", "buf.gen.yaml"])
def test_what_node_and_browsers_share_is_the_same(name: str) -> None:
    assert (EXAMPLES / "node" / name).read_text("utf-8") == (EXAMPLES / "browser" / name).read_text(
        "utf-8"
    )
