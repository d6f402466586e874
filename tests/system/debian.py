"""Programs that only the tests of the whole suite need, from Debian's packages."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path


def installed(program: str, *packages: str) -> str:
    """The path of a program; its packages are installed where it is missing and we may."""
    install(packages, lambda: shutil.which(program) is not None, program)
    found = shutil.which(program)
    assert found is not None
    return found


def install(packages: tuple[str, ...], is_there: Callable[[], bool], what: str) -> None:
    """Install packages where something is missing and we may; fails where it stays missing."""
    with (Path(tempfile.gettempdir()) / "fangcheng-tests-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        if not is_there() and os.geteuid() == 0:
            for words in (
                ("update", "-q"),
                ("install", "-q", "-y", "--no-install-recommends", *packages),
            ):
                subprocess.run(
                    ["apt-get", *words],
                    check=True,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                )
    missing = f"{what} is not installed, and only root may install {' '.join(packages)}"
    assert is_there(), missing
