"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import SuiteError

_HINT = "Name a file in a folder that may be written."


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A draft to write into: it becomes the file when the block ends, and is gone if it fails.

    Raises SuiteError where it cannot be written.
    """
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(descriptor)
        draft = Path(name)
        try:
            yield draft
            draft.chmod(0o644)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise SuiteError(f"cannot write {path}: {error.strerror}", _HINT) from error


def check_writable(path: Path) -> None:
    """Raise SuiteError where the file could not be written, before work is done for it."""
    if path.is_dir():
        raise SuiteError(f"cannot write {path}: it is a folder", _HINT)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise SuiteError(f"cannot write {path}: no folder that may be written", _HINT)
