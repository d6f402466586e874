"""Prometheus itself takes our configuration and rules, and every alert comes when it should."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .debian import installed
from .prometheus import CONFIG

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

TESTS = Path(__file__).parents[1] / "prometheus"


def promtool(*words: str | Path) -> None:
    ended = subprocess.run(
        [installed("promtool", "prometheus"), *words], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_configuration_and_its_rules_are_taken() -> None:
    promtool("check", "config", CONFIG)


@pytest.mark.parametrize("file", sorted(TESTS.glob("*.test.yml")), ids=lambda file: file.name)
def test_alerts_come_when_they_should_and_not_before(file: Path) -> None:
    promtool("test", "rules", file)
