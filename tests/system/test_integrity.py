"""The integrity report at a suite that runs, whose bots play on meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.system.running import running, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


def test_a_report_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    with running(tmp_path, "--tables", "1", "--think", "0") as suite:

        def report() -> Any:
            ended = suite.fangcheng("integrity", "report", "--json", "--all", "--min-hands", "1")
            assert ended.returncode == 0, ended.stderr
            return json.loads(ended.stdout)

        until(lambda: report()["hands"] >= 1, "a hand is in the report")
        first = report()
        until(lambda: report()["hands"] > first["hands"], "a further hand is in the report")
        told = report()
        assert told["players"] >= 4
        assert told["pairs_asked_about"] == told["pairs_met"]
        player = told["pairs"][0]["players"][0]
        case = suite.fangcheng("integrity", "case", player)
        assert case.returncode == 0, case.stderr
        assert case.stdout.startswith(f"{player}: ")
        assert (suite.state / "integrity.db").exists()
    gone = suite.fangcheng("integrity", "report")
    assert gone.returncode == 1
    assert "Traceback" not in gone.stderr
