"""Compiled with numba where it is there, interpreted where it is not: the one switch."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = (
    os.environ.get("FANGCHENG_INTERPRETED", "") in ("", "0")
    and importlib.util.find_spec("numba") is not None
)
"""Whether the hot functions of this process are compiled."""

CPU = "x86-64-v3"
"""The processors that machine code is made for, where this is one: any of the last ten years. Code
made for exactly one model would be compiled anew on the next (nothing is gained by it)."""


SLOW_GATHERERS = ("bdver4", "znver1", "znver2")
"""Processors that run code for `CPU`, but gather bits one by one."""


def _is_that_cpu() -> bool:
    """Whether this processor runs code made for `CPU`."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    features = importlib.import_module("llvmlite.binding").get_host_cpu_features()
    return all(features.get(name) for name in ("avx2", "bmi", "bmi2", "fma", "lzcnt", "movbe"))


_CHOSEN = "numba" in sys.modules or "NUMBA_CPU_NAME" in os.environ
if COMPILED and not _CHOSEN and _is_that_cpu():
    os.environ["NUMBA_CPU_NAME"] = CPU
    os.environ.setdefault("NUMBA_CPU_FEATURES", "")

CAN_GATHER = COMPILED and os.environ.get("NUMBA_CPU_NAME") == CPU
"""Whether code is made for a processor that has one instruction for `gather_bits`, ..."""
GATHERS = (
    CAN_GATHER
    and importlib.import_module("llvmlite.binding").get_host_cpu_name() not in SLOW_GATHERERS
)
"""... and whether it is quick on the one that is here."""

_numba: Any = importlib.import_module("numba") if COMPILED else None


def inner(function: F) -> F:
    """A hot function that is called by others of its kind, and built into them."""
    # Everything is built into its caller: without it scoring is three times slower
    # (measured), since a hand is passed as some twenty integers. And no memory is counted
    # (`_nrt`), for none is taken: numba counts who holds an array at each call of an inner
    # function, built in or not, which took a third of the time.
    if not COMPILED:
        return function
    compiled: F = _numba.njit(function, nogil=True, forceinline=True, _nrt=False)
    return compiled


def apart(function: F) -> F:
    """A hot function that is called by others and compiled by itself.

    For what works on lists: nothing is lost by the call, and compiling takes a third of the time.
    """
    if not COMPILED:
        return function
    compiled: F = _numba.njit(function, nogil=True, _nrt=False)
    return compiled


def entry(function: F, name: str = "") -> F:
    """A hot function that Python calls; its machine code is kept between processes (`kept`).

    The name is that of the code that it goes with: a rule set's, or all kernels' if it is empty.
    """
    if not COMPILED:
        return function
    compiled: F = importlib.import_module(f"{__package__}.kept").kept(function, name)
    return compiled


def compiled_here() -> int:
    """How many of the functions that Python calls were compiled in this process, not fetched."""
    return importlib.import_module(f"{__package__}.kept").compiled if COMPILED else 0


def _lowest_bit(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _gather_bits(bits: int, mask: int) -> int:
    places = [place for place in range(64) if mask >> place & 1]
    return sum((bits >> place & 1) << i for i, place in enumerate(places))


_intrinsics: Any = importlib.import_module(f"{__package__}.intrinsics") if COMPILED else None

count_bits: Callable[[int], int] = _intrinsics.count_bits if COMPILED else int.bit_count
"""How many bits of a number from 0 to 2**63 - 1 are set."""
lowest_bit: Callable[[int], int] = _intrinsics.lowest_bit if COMPILED else _lowest_bit
"""The place of the lowest bit that is set in a number from 1 to 2**63 - 1."""
gather_bits: Callable[[int, int], int] = (
    _intrinsics.gather_bits if CAN_GATHER else inner(_gather_bits)
)
"""The bits of a number at the places that a mask has, side by side; slow unless `GATHERS`."""
