"""Compiled with numba where it is there, interpreted where it is not: the one switch."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = (
    os.environ.get("FANGCHENG_INTERPRETED", "") in ("", "0")
    and importlib.util.find_spec("numba") is not None
)
"""Whether the hot functions of this process are compiled."""

_numba: Any = importlib.import_module("numba") if COMPILED else None


def inner(function: F) -> F:
    """A hot function that is called by others of its kind, and built into them."""
    # Everything is built into its caller: without it scoring is three times slower
    # (measured), since a hand is passed as some twenty integers.
    if not COMPILED:
        return function
    compiled: F = _numba.njit(function, nogil=True, forceinline=True)
    return compiled


def apart(function: F) -> F:
    """A hot function that is called by others and compiled by itself.

    For what works on lists: nothing is lost by the call, and compiling takes a third of the time.
    """
    if not COMPILED:
        return function
    compiled: F = _numba.njit(function, nogil=True)
    return compiled


def entry(function: F) -> F:
    """A hot function that Python calls; its machine code is kept between processes."""
    if not COMPILED:
        return function
    compiled: F
    folder = code_folder()
    if folder is None:
        compiled = _numba.njit(function, nogil=True)
        return compiled
    # numba asks for the folder as it wraps the function; others in the process keep theirs.
    config = _numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        compiled = _numba.njit(function, nogil=True, cache=True)
    finally:
        config.CACHE_DIR = before
    return compiled


def _count_bits(bits: int) -> int:
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    bits = bits + (bits >> 8)
    bits = bits + (bits >> 16)
    return (bits + (bits >> 32)) & 0x7F


count_bits: Callable[[int], int] = inner(_count_bits) if COMPILED else int.bit_count
"""How many bits of a number from 0 to 2**63 - 1 are set."""


@cache
def cache_folder() -> Path | None:
    """Where tables and compiled code are kept; None where nothing can be written.

    ``FANGCHENG_CACHE_DIR``, or ``fangcheng`` in the user's own cache folder. Never a folder
    that others can write to: what lies in it is run.
    """
    given = os.environ.get("FANGCHENG_CACHE_DIR")
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(given) if given else Path(home) / "fangcheng"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


@cache
def code_folder() -> Path | None:
    """Where compiled code is kept: a folder for exactly these sources.

    numba looks at the date of one file only. A change in a rule set's file would go unseen.
    """
    folder = cache_folder()
    if folder is None:
        return None
    folder = folder / f"code-{digest_of(*sorted(Path(__file__).parent.parent.rglob('*.py')))}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return folder


def digest_of(*files: Path) -> str:
    """A short digest of the files' names and contents."""
    digest = hashlib.sha256()
    for file in files:
        text = file.read_bytes()
        digest.update(f"{file.name} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()[:16]
