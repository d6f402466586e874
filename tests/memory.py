"""A folder in memory for what tests write: databases wait for their disk at every commit."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

FOLDER = Path("/dev/shm")  # noqa: S108  # names are random
LEAST_BYTES = 8 * 2**30


def has_room() -> bool:
    """Whether the folder is there, large enough, and takes programs too."""
    if not (FOLDER.is_dir() and os.access(FOLDER, os.W_OK)):
        return False
    may_execute = not os.statvfs(FOLDER).f_flag & os.ST_NOEXEC
    return may_execute and shutil.disk_usage(FOLDER).free >= LEAST_BYTES
