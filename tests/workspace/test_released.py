"""What is released does not change any more."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The contracts, to be changed."""
    for name in ("buf.yaml", "protos", "services/table", "tools/released.py"):
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        else:
            shutil.copy(source, target)
    return tmp_path


def check(workspace: Path) -> tuple[int, str]:
    told = subprocess.run(
        [sys.executable, workspace / "tools/released.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    return told.returncode, told.stdout + told.stderr


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


def test_the_contracts_are_those_that_were_released_or_more(workspace: Path) -> None:
    assert check(workspace) == (0, "")
    matchmaking = workspace / "protos/fangcheng/matchmaking/v1/matchmaking.proto"
    change(matchmaking, "message ListPoolsRequest {}", "message ListPoolsRequest { int32 n = 1; }")
    assert check(workspace) == (0, "")


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("protos/fangcheng/matchmaking/v1/matchmaking.proto", "int64 per_unit =", "int64 unit ="),
        ("protos/fangcheng/matchmaking/v1/matchmaking.proto", "rpc LeaveQueue(", "rpc Leave("),
        (
            "services/table/fangcheng_table/stored/v1/event.proto",
            "VoteOpened vote_opened = 15",
            "VoteOpened vote_opened = 99",
        ),
    ],
)
def test_what_was_released_is_not_changed(workspace: Path, path: str, old: str, new: str) -> None:
    change(workspace / path, old, new)
    code, told = check(workspace)
    assert code == 1
    assert path in told
    assert "change what is released" in told
