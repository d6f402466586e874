"""`fangcheng load` as a process: at a suite that runs, interrupted, and with a client that dies."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from fangcheng.table.v1 import table_pb2
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_suite.load.client import LABELS
from fangcheng_suite.load.measured import SEATED, SEEN

from .browser import beside, opened
from .running import COMMAND, LONG_SECONDS, Running, environment, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

POOL = "baishan_kele-demo"


@contextmanager
def loading(suite: Running, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A load at a suite that runs, until the end of the block."""
    where = ["--running", "--pool", POOL, "--state", str(suite.state)]
    process = subprocess.Popen(
        [COMMAND, "load", *where, "--pace", "fast", "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def live_tables(suite: Running) -> int:
    """Tables of loads that are not closed."""

    async def count() -> int:
        async with suite.access.channel("table") as channel:
            stub: Any = TableServiceStub(channel)
            answer = await stub.ListTables(table_pb2.ListTablesRequest(labels=LABELS))
            return len(answer.tables)

    return beside(count())


@pytest.fixture(scope="module")
def told(quiet_suite: Running, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """What a load of some seconds told, and its page."""
    page = tmp_path_factory.mktemp("load") / "load.html"
    words = ("--tables", "3", "--minutes", "0.1", "--report", str(page))
    with loading(quiet_suite, *words) as process:
        out, error = process.communicate(timeout=LONG_SECONDS)
    assert process.returncode == 0, error
    return json.loads(out), page


def test_a_load_measures_a_suite_that_runs(told: tuple[Any, Path], quiet_suite: Running) -> None:
    found, _ = told
    assert found["tables"] == 3
    assert found["milliseconds"][SEATED]["times"] >= 12
    assert found["milliseconds"][SEEN]["times"] > 0
    assert found["ledger"]["balanced"]
    assert not found["interrupted"]
    assert {"client", "table", "wallet", "evaluation", "matchmaking"} <= set(found["processes"])
    assert [one for one in found["errors"] if not one["expected"]] == []
    until(lambda: live_tables(quiet_suite) == 0, "the tables are left")


@pytest.mark.parametrize(("theme", "width"), [("light", 1_280), ("dark", 375)])
def test_its_page_is_for_everybody(
    told: tuple[Any, Path], browser: Browser, theme: Any, width: int
) -> None:
    with opened(browser, theme=theme, width=width) as tab:
        tab.page.goto(told[1].as_uri())
        for summary in tab.page.locator("summary").all():
            summary.click()
        faults = [
            (fault["id"], node["html"])
            for fault in Axe().run(tab.page).response["violations"]
            if fault["impact"] in ("serious", "critical")
            for node in fault["nodes"]
        ]
        assert faults == []
        assert tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_an_interrupted_load_leaves_and_tells_what_there_was(quiet_suite: Running) -> None:
    with loading(quiet_suite, "--tables", "2", "--minutes", "30") as process:
        until(lambda: live_tables(quiet_suite) == 2, "two tables play")
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=LONG_SECONDS)
    assert process.returncode == 0, error
    found = json.loads(out)
    assert found["interrupted"]
    assert found["ledger"]["balanced"]
    until(lambda: live_tables(quiet_suite) == 0, "the tables are left")


def test_a_client_that_dies_ends_the_load(quiet_suite: Running) -> None:
    with loading(quiet_suite, "--tables", "2", "--minutes", "30") as process:
        until(lambda: live_tables(quiet_suite) == 2, "two tables play")
        (client,) = (
            one
            for one in psutil.Process(process.pid).children()
            if "fangcheng_suite.load.client" in one.cmdline()
        )
        client.kill()
        out, error = process.communicate(timeout=LONG_SECONDS)
    assert process.returncode == 1
    assert re.search(r"error: the load ended early: client of the load ended \(by SIGKILL\)", error)
    assert "SIGKILL" in json.loads(out)["trouble"]


def test_silver_of_a_suite_that_is_named_is_staked_only_with_leave(quiet_suite: Running) -> None:
    suite = quiet_suite.suite
    services = ("matchmaking", "table", "wallet", "evaluation")
    named = [word for name in services for word in (f"--{name}", suite.target(name))]
    words = ["load", *named, "--key", suite.key, "--pool", POOL, "--tables", "1"]
    told = quiet_suite.fangcheng(*words)
    assert told.returncode == 1
    assert f"the pool {POOL} stakes silver" in told.stderr
    assert "--yes" in told.stderr
