"""Where tables and machine code are kept between processes, and by which names."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

KEPT_FOLDERS = 4
"""How many folders of machine code of one name are kept; those used last."""


@cache
def cache_folder() -> Path | None:
    """Where tables and compiled code are kept; None where there is no such folder.

    ``FANGCHENG_CACHE_DIR``, or ``fangcheng`` in the user's own cache folder. Never a folder
    that others can write to: what lies in it is run. One that can only be read serves too.
    """
    given = os.environ.get("FANGCHENG_CACHE_DIR")
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(given) if given else Path(home) / "fangcheng"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.R_OK | os.X_OK) else None


def code_folder(name: str) -> Path | None:
    """The folder for machine code of this name; None where nothing is kept.

    Of those with the same name before the last dash, which earlier sources have left behind, the
    ones used last are kept.
    """
    root = cache_folder()
    if root is None:
        return None
    folder = root / f"code-{name}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        with contextlib.suppress(OSError):
            os.utime(folder)
        return folder
    except OSError:
        return None  # a folder that can only be read, and this code is not in it
    kind = folder.name.rpartition("-")[0]
    with contextlib.suppress(OSError):  # another process may be at it too
        alike = [old for old in root.glob(f"{kind}-*") if old.name.rpartition("-")[0] == kind]
        for old in sorted(alike, key=lambda old: old.stat().st_mtime)[:-KEPT_FOLDERS]:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def digest_of(*files: Path) -> str:
    """A short digest of the files' names and contents."""
    digest = hashlib.sha256()
    for file in files:
        text = file.read_bytes()
        digest.update(f"{file.name} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()[:16]


@cache
def kernels_digest() -> str:
    """A digest of the sources of this package of kernels."""
    return digest_of(*sorted(Path(__file__).parent.glob("*.py")))


def digest_of_functions(*functions: Callable[..., Any]) -> str:
    """A short digest of what compiled code of these functions depends on.

    That is their code and every value that it names, of modules too, that is a default or that it
    closes over, the functions among them likewise, whatever file they are in; and the kernels' own
    sources.
    """
    digest = hashlib.sha256(kernels_digest().encode())
    seen: set[int] = set()

    def add(value: Any) -> None:
        function = getattr(value, "py_func", value)  # of a compiled one
        if isinstance(function, FunctionType):
            if id(function) not in seen:
                seen.add(id(function))
                add_code(function.__code__, function.__globals__)
                for default in function.__defaults__ or ():
                    add(default)
                for name, default in (function.__kwdefaults__ or {}).items():
                    digest.update(name.encode())
                    add(default)
                for cell in function.__closure__ or ():
                    add(cell.cell_contents)
            return
        digest.update(f"{type(value).__qualname__} {_fields(value)!r};".encode())

    def add_code(code: CodeType, names: dict[str, Any]) -> None:
        digest.update(code.co_code)
        digest.update(repr((code.co_names, code.co_varnames)).encode())
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                add_code(constant, names)
            elif not isinstance(constant, str):  # the docstring may change
                digest.update(f"{constant!r};".encode())
        add_names(code, names, ())

    def add_names(code: CodeType, names: dict[str, Any], within: tuple[ModuleType, ...]) -> None:
        for name in code.co_names:
            value = names.get(name)
            if isinstance(value, ModuleType):
                if value not in within:
                    add_names(code, vars(value), (*within, value))
            elif name in names:
                digest.update(name.encode())
                add(value)

    for function in functions:
        add(function)
    return digest.hexdigest()[:16]


def _fields(value: Any) -> Any:
    # A class is told by its fields, since the text of most others tells where they lie in memory.
    return value._fields if isinstance(value, type) and hasattr(value, "_fields") else value
