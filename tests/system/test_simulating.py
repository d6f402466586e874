"""Several processes that play hands: the same figures, and an end in order whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from .running import COMMAND, LONG_SECONDS, environment, fangcheng, lives, until

pytestmark = pytest.mark.system


def test_figures_page_and_rows_are_the_same_with_one_worker_and_with_four(tmp_path: Path) -> None:
    made = {}
    for workers in ("1", "4"):
        folder = tmp_path / workers
        folder.mkdir()
        files = [folder / "page.html", folder / "rows.parquet"]
        ended = fangcheng(
            *("simulate", "--rule-set", "baishan_dazui", "--hands", "23", "--session-hands", "2"),
            *("--workers", workers, "--json", "--compare", "cap=0", "--buy-in", "200"),
            *("--report", str(files[0]), "--parquet", str(files[1])),
        )
        assert ended.returncode == 0, ended.stderr
        made[workers] = [ended.stdout.encode(), *(file.read_bytes() for file in files)]
    assert json.loads(made["1"][0])["hands"] == 23
    assert made["1"] == made["4"]


WORDS = ("--hands", "1000000", "--session-hands", "2", "--workers", "2")


@dataclass
class Playing:
    """The command while it plays a million hands, in a terminal of its own."""

    process: subprocess.Popen[str]
    terminal: int
    workers: list[int]

    def ends(self) -> tuple[int, str, str]:
        """Exit code and output, once it and its workers are gone."""
        # A terminal that nobody reads is full after a while, and who writes to it waits.
        with ThreadPoolExecutor(1) as pool:
            said = pool.submit(read, self.terminal)
            told, _ = self.process.communicate(timeout=LONG_SECONDS)
            until(lambda: not any(map(lives, self.workers)), "the workers are gone")
            return self.process.returncode, told, said.result()


def read(terminal: int) -> str:
    """What stands in a terminal that nobody writes to any more."""
    said = b""
    try:
        while part := os.read(terminal, 65_536):
            said += part
    except OSError:  # Linux's way to say that the other end is closed
        pass
    return said.decode("utf-8")


@contextmanager
def playing() -> Iterator[Playing]:
    terminal, error = os.openpty()
    process = subprocess.Popen(
        [COMMAND, "simulate", "--json", *WORDS],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=error,
        text=True,
        encoding="utf-8",
        env=environment(COLUMNS="200", TERM="xterm"),
        start_new_session=True,
    )
    os.close(error)
    try:
        said = ""
        while not re.search(r"[1-9]\d* of 1,000,000 hands", said):
            said += os.read(terminal, 65_536).decode("utf-8", "replace")
        workers = [
            child.pid
            for child in psutil.Process(process.pid).children()
            if any("spawn_main" in word for word in child.cmdline())
        ]
        assert len(workers) == 2
        yield Playing(process, terminal, workers)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_tells_what_was_played_by_then(number: signal.Signals) -> None:
    with playing() as command:
        # Ctrl-C reaches everything that runs in a terminal; a supervisor stops the command alone.
        if number is signal.SIGINT:
            os.killpg(command.process.pid, number)
        else:
            command.process.send_signal(number)
        code, told, said = command.ends()
    assert code == 130
    assert "Traceback" not in said
    hands = json.loads(told)["hands"]
    assert f"--hands {hands}" in said
    again = fangcheng("simulate", "--hands", str(hands), "--session-hands", "2", "--json")
    assert json.loads(again.stdout) == json.loads(told)


def test_a_worker_that_dies_ends_the_command_and_is_told() -> None:
    with playing() as command:
        os.kill(command.workers[0], signal.SIGKILL)
        code, told, said = command.ends()
    assert (code, told) == (1, "")
    assert re.search(r"a worker ended while it played session \d+", said)
    assert "killed by SIGKILL" in said
    assert "Traceback" not in said


def test_workers_do_not_outlive_a_command_that_is_killed() -> None:
    with playing() as command:
        command.process.kill()
        command.ends()
