"""The first program of whoever integrates us: short, and what it tells is what the ledger has."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .running import COMMAND, Running, environment

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[2] / "examples/quickstart.py"


def test_it_has_less_than_sixty_lines() -> None:
    assert len(PROGRAM.read_text("utf-8").splitlines()) < 60


def program_for(suite: Running, folder: Path) -> Path:
    """The program, word for word but for the addresses of that suite."""
    text = PROGRAM.read_text("utf-8")
    for service, port in (("table", 7101), ("wallet", 7102)):
        assert text.count(f'"127.0.0.1:{port}"') == 1
        text = text.replace(f"127.0.0.1:{port}", suite.suite.target(service))
    copy = folder / PROGRAM.name
    copy.write_text(text, "utf-8")
    return copy


def test_hands_are_played_and_the_ledger_has_what_they_came_to(
    quiet_suite: Running, tmp_path: Path
) -> None:
    ended = subprocess.run(
        [sys.executable, program_for(quiet_suite, tmp_path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(
            FANGCHENG_STATE=str(quiet_suite.state),
            PATH=f"{Path(COMMAND).parent}{os.pathsep}{os.environ['PATH']}",
        ),
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    hands = re.findall(r"^(?:win|draw|eight_flowers) (\[.*\])$", ended.stdout, re.M)
    assert len(hands) == 4
    nets = [ast.literal_eval(net) for net in hands]
    parts = dict(re.findall(r"^(ming|lan|zhu|ju) (\[.*\])$", ended.stdout, re.M))
    paid = [sum(amount for _, amount in ast.literal_eval(part)) for part in parts.values()]
    assert paid == [sum(seat) for seat in zip(*nets, strict=True)]
