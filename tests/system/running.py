"""The command `fangcheng` as a process, for the tests that look at the whole suite."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fangcheng_suite.access import Access
from fangcheng_suite.state import StateFolder, SuiteFile

COMMAND = str(Path(sys.executable).with_name("fangcheng"))
LONG_SECONDS = 300.0
"""Longer than anything here takes, however busy the machine is: the first start compiles."""
PORTS_OF_A_SUITE = (0, 1, 2, 3, 4, 10, 11, 100, 101, 102, 103, 110, 111)
"""From its first one on, with two evaluators."""
SIXTH = Path(__file__).parent.parent / "sixth"
"""Where the tests' own rule set is; an entry point makes it known to whoever finds it."""


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what is set for a suite of its user's.

    What is compiled already stays.
    """
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("FANGCHENG_") or name == "FANGCHENG_CACHE_DIR"
    }
    return {**kept, "PYTHONUTF8": "1", "PYTHONPATH": str(SIXTH), **more}


def fangcheng(
    *words: str, within_seconds: float = LONG_SECONDS, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [COMMAND, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(**more),
        timeout=within_seconds,
        check=False,
    )


def until(holds: Callable[[], bool], what: str, within_seconds: float = LONG_SECONDS) -> None:
    """Wait for a condition; fails the test when it does not come to hold."""
    deadline = time.monotonic() + within_seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not come to be: {what}"
        time.sleep(0.02)


def free_port(offsets: Sequence[int] = (0,), hosts: Sequence[str] = ("127.0.0.1",)) -> int:
    """A port that is free on these addresses, and so are those at these offsets from it.

    It is none of those that Linux gives to connections: nobody is given it while a process that
    listened there is started again.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for host in hosts:
                for offset in offsets:
                    held.enter_context(socket.socket()).bind((host, port + offset))
            return port


def lives(pid: int) -> bool:
    """Whether a process runs (one that has ended and was not waited for does not)."""
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@dataclass
class Running:
    """A suite that `fangcheng up` runs."""

    state: Path
    process: subprocess.Popen[bytes]
    output: Path
    _seen: dict[str, int] = field(default_factory=dict)

    @property
    def suite(self) -> SuiteFile:
        """Addresses and key."""
        return StateFolder(self.state).read()

    @property
    def access(self) -> Access:
        """The way in."""
        return Access(self.suite.target, self.suite.key)

    @property
    def console(self) -> str:
        """Address of its console, `http://host:port`."""
        return self.suite.page

    def pid(self, label: str) -> int:
        """Process id of a service; the last one known while it is being started again."""
        with contextlib.suppress(OSError, ValueError):
            told = json.loads((self.state / f"{label}.port.json").read_text("utf-8"))
            self._seen[label] = int(told["pid"])
        return self._seen[label]

    def pids(self) -> list[int]:
        """Process ids of all services."""
        labels = [path.name.removesuffix(".port.json") for path in self.state.glob("*.port.json")]
        return [self.pid(label) for label in labels]

    def said(self) -> str:
        """What the command has printed."""
        return self.output.read_text("utf-8")

    def fangcheng(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run another command on this suite."""
        return fangcheng(*words, "--state", str(self.state))

    def killed(self, label: str) -> None:
        """`kill -9` a service, and wait until another process serves in its place."""
        before = self.pid(label)
        os.kill(before, signal.SIGKILL)
        until(lambda: self.pid(label) != before, f"{label} is started again")
        until(lambda: f"{label} serves again" in self.said(), f"{label} serves again")

    def stop(self, number: int = signal.SIGINT) -> int:
        """Interrupt it and wait for its end; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(LONG_SECONDS)


@contextlib.contextmanager
def running(folder: Path, *words: str, port: int = 0, **more: str) -> Iterator[Running]:
    """Run `fangcheng up` until the end of the block; it serves at its beginning.

    `more`: of its environment.
    """
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / "output.txt"
    state = folder / "state"
    with output.open("wb") as out:
        process = subprocess.Popen(
            [COMMAND, "up", "--state", str(state), "--port", str(port), *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment(**more),
        )
    suite = Running(state, process, output)
    try:
        until(
            # The last that it says before it plays; the file is there a moment earlier.
            lambda: "Ctrl-C ends everything" in suite.said() or process.poll() is not None,
            "the suite serves",
        )
        assert process.poll() is None, suite.said()
        yield suite
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(LONG_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
