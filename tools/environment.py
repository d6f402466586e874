"""Make or refresh a virtual environment from a lock: hashes checked, nothing resolved.

    python3 tools/environment.py FOLDER LOCK [DISTRIBUTION ...]

Runs on a bare Python: uv comes first, from a lock of its own, and installs the rest. The
distributions are installed editable, without their dependencies, which the lock holds. At the end
the file FOLDER/ready is touched, so that make knows when nothing is to be done.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 13)


def run(*command: str | Path) -> None:
    """Run a command of the set-up; its failure ends ours, with its own message above."""
    done = subprocess.run([str(word) for word in command])
    if done.returncode:
        raise SystemExit(f"set-up failed: {' '.join(map(str, command))}")


def make(folder: Path, lock: Path, distributions: list[str]) -> None:
    """Bring ``folder`` to exactly what ``lock`` holds plus ``distributions``."""
    python = folder / "bin" / "python"
    if not python.exists() or version(python) != sys.version_info[:2]:
        run(sys.executable, "-m", "venv", "--clear", folder)
    if not (folder / "bin" / "uv").exists():
        bootstrap = Path("requirements/bootstrap.lock")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        run(*pip, "install", "--no-deps", "--require-hashes", "--requirement", bootstrap)
    uv = [folder / "bin" / "uv", "pip"]
    run(*uv, "install", "--quiet", "--python", python, "--no-deps", "--require-hashes", "-r", lock)
    if distributions:
        editable = [word for name in distributions for word in ("--editable", name)]
        run(*uv, "install", "--quiet", "--python", python, "--no-deps", "--no-build-isolation", *editable)
    (folder / "ready").touch()


def version(python: Path) -> tuple[int, ...]:
    """The (major, minor) of an interpreter; () where it does not start."""
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else ()


if __name__ == "__main__":
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        raise SystemExit(
            f"Fangcheng needs Python 3.11 to 3.13, and {sys.executable} is"
            f" {sys.version_info[0]}.{sys.version_info[1]}. Name another: make PYTHON=python3.13 ..."
        )
    make(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
