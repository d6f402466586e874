"""Make or refresh a virtual environment from a lock: hashes checked, nothing resolved.

    python3 tools/environment.py FOLDER LOCK [DISTRIBUTION ...]

Runs on a bare Python: uv comes first, from a lock of its own, and installs the rest. The
distributions are installed editable, without their dependencies, which the lock holds. At the end
the file FOLDER/ready is touched, so that make knows when nothing is to be done.
"""

from __future__ import annotations

import fcntl
import subprocess  # nosec B404 # for our own commands alone
import sys
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 13)
BOOTSTRAP = "requirements/bootstrap.lock"


def run(*command: str | Path) -> None:
    """Run a command of the set-up; its failure ends ours, with its own message above."""
    if subprocess.run(command).returncode:  # noqa: S603 # nosec B603 # no words of others
        raise SystemExit(f"set-up failed: {' '.join(map(str, command))}")


def make(folder: Path, lock: str, distributions: list[str]) -> None:
    """Bring ``folder`` to exactly what ``lock`` holds plus ``distributions``."""
    python, uv = folder / "bin" / "python", folder / "bin" / "uv"
    if version(python) != sys.version_info[:2]:
        print(f"{folder}: making it with Python {sys.version.split()[0]}", flush=True)
        run(sys.executable, "-m", "venv", "--clear", folder)
    if not uv.exists():
        pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
        run(*pip, "--no-deps", "--require-hashes", "--requirement", BOOTSTRAP)
    print(f"{folder}: installing {lock}", flush=True)
    for_it = ("--quiet", "--python", python)
    run(uv, "pip", "sync", *for_it, "--require-hashes", lock)
    if distributions:
        editable = [word for name in distributions for word in ("--editable", name)]
        run(uv, "pip", "install", *for_it, "--no-deps", "--no-build-isolation", *editable)
    (folder / "ready").touch()


def version(python: Path) -> tuple[int, ...]:
    """The (major, minor) of an interpreter; () where it is not there or does not start."""
    code = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)  # noqa: S603 # nosec B603 # no words of others
    except OSError:
        return ()
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else ()


if __name__ == "__main__":
    ours = sys.version_info[:2]
    if not OLDEST <= ours <= NEWEST:
        raise SystemExit(
            f"Fangcheng needs Python 3.11 to 3.13; {sys.executable} is {ours[0]}.{ours[1]}."
            " Name another one: make PYTHON=python3.13 ..."
        )
    with Path(__file__).open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # two makes at once would spoil each other's environment
        make(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
