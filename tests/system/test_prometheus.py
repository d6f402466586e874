"""A real Prometheus scrapes the suite with the configuration that we ship."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .running import PORTS_OF_A_SUITE, free_port, running, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

CONFIG = Path(__file__).parents[2] / "deploy" / "prometheus" / "prometheus.yml"
DEFAULT_BASE = 7100

Ask = Callable[[str], dict[str, float]]


def installed_prometheus() -> str:
    """The program; Debian's package is installed first where it is missing and we may."""
    if (found := shutil.which("prometheus")) is None and os.geteuid() == 0:
        quiet = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        subprocess.run(["apt-get", "update", "-q"], check=True, **quiet)
        subprocess.run(
            ["apt-get", "install", "-q", "-y", "--no-install-recommends", "prometheus"],
            check=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            **quiet,
        )
        found = shutil.which("prometheus")
    assert found is not None, "prometheus is not installed, and only root may install it"
    return found


def config_for(base: int) -> dict[str, Any]:
    """What we ship, with the ports of a suite that has another base and a test's patience."""
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text("utf-8"))
    config["global"]["scrape_interval"] = "1s"
    for job in config["scrape_configs"]:
        for group in job["static_configs"]:
            ports = (int(target.rpartition(":")[2]) for target in group["targets"])
            group["targets"] = [f"127.0.0.1:{port - DEFAULT_BASE + base}" for port in ports]
    return config


@contextlib.contextmanager
def prometheus(folder: Path, config: dict[str, Any]) -> Iterator[Ask]:
    """Run Prometheus until the end of the block; gives a way to query it, by job."""
    program = installed_prometheus()
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config), "utf-8")
    address = f"127.0.0.1:{free_port()}"
    words = [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]

    def ask(query: str) -> dict[str, float]:
        url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                rows = json.load(answer)["data"]["result"]
        except (urllib.error.URLError, ConnectionError):
            return {}  # it is still starting
        return {row["metric"].get("job", ""): float(row["value"][1]) for row in rows}

    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield ask
    finally:
        process.terminate()
        process.wait(30)


def test_every_process_of_a_playing_suite_is_scraped(tmp_path: Path) -> None:
    base = free_port(PORTS_OF_A_SUITE)
    (tmp_path / "suite").mkdir()
    with (
        running(tmp_path / "suite", "--tables", "1", port=base),
        prometheus(tmp_path, config_for(base)) as ask,
    ):
        jobs = {"matchmaking", "table", "wallet", "evaluation"}
        until(lambda: ask("up == 1").keys() == jobs, "every process is up")
        until(
            lambda: ask("sum by (job) (grpc_server_handled_total)").keys() == jobs,
            "every process counts its calls",
        )
        until(
            lambda: ask("sum by (job) (fangcheng_table_hands_total)").get("table", 0) > 0,
            "a hand has ended",
        )
        assert ask("max by (job) (abs(fangcheng_wallet_ledger_imbalance))") == {"wallet": 0}
