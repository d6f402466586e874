"""Files that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path


def keep(fresh: Path, target: Path) -> None:
    """Give a file its name once all of it is on disk."""
    with fresh.open("rb") as file:
        os.fsync(file.fileno())
    fresh.replace(target)
    folder = os.open(target.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
