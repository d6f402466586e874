"""A real Prometheus with the configuration that we ship; Debian's package, if need be."""

from __future__ import annotations

import contextlib
import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from .debian import installed
from .running import free_port

CONFIG = Path(__file__).parents[2] / "deploy" / "prometheus" / "prometheus.yml"
DEFAULT_BASE = 7100


class Row(NamedTuple):
    """One series of an answer."""

    labels: dict[str, str]
    value: float


Ask = Callable[[str], list[Row]]
"""The series that a query has now; none while Prometheus is still starting."""


def config_for(base: int) -> dict[str, Any]:
    """What we ship, with the ports of a suite that has another base and a test's patience."""
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text("utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(CONFIG.parent / pattern) for pattern in config["rule_files"]]
    for job in config["scrape_configs"]:
        for group in job["static_configs"]:
            ports = (int(target.rpartition(":")[2]) for target in group["targets"])
            group["targets"] = [f"127.0.0.1:{port - DEFAULT_BASE + base}" for port in ports]
    return config


@contextlib.contextmanager
def prometheus(folder: Path, config: dict[str, Any]) -> Iterator[Ask]:
    """Run Prometheus until the end of the block; gives a way to query it."""
    program = installed("prometheus", "prometheus")
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config), "utf-8")
    address = f"127.0.0.1:{free_port()}"
    words = [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]

    def ask(query: str) -> list[Row]:
        url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                rows = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.SERVICE_UNAVAILABLE:  # it is still starting
                return []
            raise AssertionError(f"{query}: {error.read().decode()}") from error
        except (urllib.error.URLError, ConnectionError):
            return []
        return [Row(row["metric"], float(row["value"][1])) for row in rows]

    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield ask
    finally:
        process.terminate()
        process.wait(30)
