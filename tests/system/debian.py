"""Programs that only the tests of the whole suite need, from Debian's packages."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path


def installed(program: str, *packages: str) -> str:
    """The path of a program; its packages are installed where it is missing and we may."""
    with (Path(tempfile.gettempdir()) / "fangcheng-tests-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        if shutil.which(program) is None and os.geteuid() == 0:
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
    found = shutil.which(program)
    missing = f"{program} is not installed, and only root may install {' '.join(packages)}"
    assert found is not None, missing
    return found
