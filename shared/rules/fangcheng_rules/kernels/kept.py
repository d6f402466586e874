"""Machine code that is kept between processes. Needs numba.

numba keeps code beside the date of one file and refuses a folder that it cannot write to. Here the
folder's name tells what the code was made from (`folders`), and a folder that can only be read,
such as one made when an image was built, is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from .folders import code_folder, kernels_digest

compiled = 0
"""How many functions were compiled in this process."""

# Its stated type leaves out `_nrt`.
_njit: Callable[..., Any] = numba.njit


class _Folder(caching._CacheLocator):
    """The folder that `kept` was given for a function."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Folder:
        return cls(py_func.kept_in)

    def ensure_cache_path(self) -> None:
        pass  # it is there, whether or not it can be written to

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return ""  # the folder's name tells the sources

    def get_disambiguator(self) -> str:
        return "0"


class _Code(caching.CompileResultCacheImpl):
    _locator_classes: list[Any] = [_Folder]  # noqa: RUF012  # a list of the class's, as numba's is


class _Kept(caching.FunctionCache):
    _impl_class = _Code

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Straight from the file: numba would first make all ready that compiling needs, which it
        # does again when it compiles, and which takes half of a warm start.
        # A damaged file is no more than one that is not there.
        with contextlib.suppress(Exception):
            return self._load_overload(sig, target_context)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        global compiled
        compiled += 1
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


def kept(function: Callable[..., Any], name: str = "") -> Any:
    """The function compiled; its code is kept under this name, by default that of all kernels."""
    dispatcher = _njit(function, nogil=True, _nrt=False)
    folder = code_folder(name or f"kernels-{kernels_digest()}")
    if folder is not None:
        function.__dict__["kept_in"] = folder
        dispatcher._cache = _Kept(function)
    return dispatcher
