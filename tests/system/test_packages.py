"""What other teams install: the wheels, with the oldest and the newest runtimes that we support.

Nothing else of ours is in these environments, and nothing of the tests': a program and the types of
what it uses are checked as they are where somebody integrates.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.locks import pins

from .running import Running, environment
from .test_quickstart import program_for

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
FOLDERS = ("protos", "shared/client")
BIN = Path(sys.executable).parent
IMPORT_ALL = """
import importlib
from importlib.metadata import files, version
modules = [
    ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    for name in ("fangcheng-protos", "fangcheng-client")
    for path in files(name)
    if path.suffix == ".py" and path.stem != "hands"  # whose extra is not installed
]
for module in modules:
    importlib.import_module(module)
print(len(modules), version("grpcio"), version("protobuf"))
"""


def ran(*command: str | Path, **more: str) -> str:
    """What a command printed; fails where it does."""
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(**more),
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheels that `make dist` builds of them."""
    out = tmp_path_factory.mktemp("wheels")
    for folder in FOLDERS:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
        subprocess.run(command, cwd=ROOT / folder, check=True, capture_output=True)
    return sorted(out.glob("*.whl"))


def newest_end() -> list[str]:
    """Their requirements in the newest versions, which all other tests have too."""
    stated = [
        line
        for folder in FOLDERS
        for line in tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"][
            "dependencies"
        ]
    ]
    theirs = {re.split(r"[^\w-]", line)[0] for line in stated if not line.startswith("fangcheng")}
    locked = pins(ROOT / "requirements/dev.lock")
    return [f"{name}=={version}" for name, version in locked if name in theirs]


@pytest.fixture(scope="module", params=["oldest", "newest"])
def installed(
    request: pytest.FixtureRequest, wheels: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The Python of an environment that has the wheels and one end of what they ask for."""
    folder = tmp_path_factory.mktemp(request.param) / "venv"
    python = folder / "bin/python"
    uv = BIN / "uv"
    ran(uv, "venv", "--quiet", "--python", sys.executable, folder)
    if request.param == "oldest":
        ends = ["--require-hashes", "-r", str(ROOT / "requirements/oldest.lock")]
    else:
        ends = newest_end()
        assert len(ends) == len({pin.split("=")[0] for pin in ends}) >= 3
    ran(uv, "pip", "install", "--quiet", "--python", python, *ends)
    # Without an index: what is there already must be enough for what the wheels ask for.
    ran(uv, "pip", "install", "--quiet", "--offline", "--no-index", "--python", python, *wheels)
    return python


def test_every_module_is_there_and_speaks_to_its_runtime(installed: Path) -> None:
    told = ran(installed, "-W", "error", "-c", IMPORT_ALL)
    modules, grpcio, protobuf = told.split()
    assert int(modules) > 30
    oldest = "oldest" in str(installed)
    assert (grpcio == "1.78.0") == oldest
    assert protobuf.partition(".")[0] == ("6" if oldest else "7")


def test_types_are_found(installed: Path, tmp_path: Path) -> None:
    """They are complete enough for a program of a studio's that is checked strictly."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from fangcheng_client import connect\n"
        "from fangcheng.table.v1 import table_pb2\n"
        "connect(7)\n"
        'table_pb2.ActRequest(table_id=3, nothing="")\n',
        "utf-8",
    )
    ended = subprocess.run(
        [
            *(BIN / "mypy", "--strict", "--python-executable", installed),
            *("--config-file=", f"--cache-dir={tmp_path}", wrong),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(PYTHONPATH=""),
        check=False,
    )
    kinds = re.findall(r"wrong\.py:(\d): error: .*\[([a-z-]+)\]", ended.stdout)
    assert kinds == [("3", "arg-type"), ("4", "call-arg"), ("4", "arg-type")], ended.stdout


def test_the_quick_start_runs(installed: Path, quiet_suite: Running, tmp_path: Path) -> None:
    told = ran(
        *(installed, program_for(quiet_suite, tmp_path)),
        FANGCHENG_STATE=str(quiet_suite.state),
        PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}",
    )
    assert len(re.findall(r"^(?:ming|lan|zhu|ju) \[", told, re.M)) == 4
