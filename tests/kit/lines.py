"""The lines that services in this process log."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from fangcheng_kit import logs


@contextmanager
def lines_of(service: str) -> Iterator[list[dict[str, Any]]]:
    """Has what services that begin in the block log, of debug too; filled at its end."""
    found: list[dict[str, Any]] = []
    written, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logs.set_up(service, "debug", written)
    try:
        yield found
    finally:
        structlog.reset_defaults()
        root.handlers[:], root.level = handlers, level
        found += map(json.loads, written.getvalue().splitlines())
