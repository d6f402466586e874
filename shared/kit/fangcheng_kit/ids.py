"""Ids that the services make."""

from __future__ import annotations

import os
import time


def new_id() -> str:
    """A new id of 32 hexadecimal digits (a UUID, version 7) that sorts by its time of making.

    Ids of the same millisecond sort at random. Nobody can guess one from another.
    """
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    value = value & ~(0xF << 76) | 0x7 << 76  # version
    value = value & ~(0x3 << 62) | 0x2 << 62  # variant
    return f"{value:032x}"
