"""`fangcheng doctor` at a suite that runs, as whoever runs one would use it."""

from __future__ import annotations

import json
import socket

import pytest

from tests.system.running import Running, fangcheng

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


def test_a_suite_that_runs_is_well_in_all_that_is_looked_at(quiet_suite: Running) -> None:
    looked = quiet_suite.fangcheng("doctor", "--json")
    assert looked.returncode == 0, looked.stdout + looked.stderr
    told = json.loads(looked.stdout)
    assert told["healthy"] is True
    checks = {one["check"]: one["level"] for one in told["findings"]}
    assert "skip" not in checks.values()
    for check in ("health", "caller", "rule-sets", "pools", "tables", "ledger", "page", "clock"):
        assert checks[check] == "ok", check
    of = {one["subject"] for one in told["findings"] if one["check"] == "database"}
    assert of == {"wallet", "table", "matchmaking", "console"}

    shown = quiet_suite.fangcheng("doctor", "--quick")
    assert "answers an operator" in shown.stdout
    assert " 0 failed, 1 not looked at." in shown.stdout


def test_a_service_that_is_away_is_told_with_what_to_do(quiet_suite: Running) -> None:
    suite = quiet_suite.suite
    token = quiet_suite.fangcheng("token", "operator").stdout.strip()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        words = ["--wallet", f"127.0.0.1:{taken.getsockname()[1]}"]
        for service in ("table", "evaluation"):
            words += [f"--{service}", suite.services[service][0].grpc]
        looked = fangcheng("doctor", *words, FANGCHENG_TOKEN=token)
    assert looked.returncode == 1
    assert "no connection" in looked.stdout
    assert "To do: See whether the process runs" in looked.stdout
    assert "all play" in looked.stdout  # the others are looked at all the same
    assert not looked.stderr
