"""What the caller sent, in a form that two requests can be compared by.

A command is written down as JSON with sorted keys: the ids that the wallet makes are not in it, and
neither is anything of how protobuf happened to encode the request. A stored command is read back as
the dataclass it was, so that a field which was added since has its default.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

Plain = TypeVar("Plain")

_MOST_PATHS = 8
_LISTS = (list, tuple)


def dumps(value: object) -> str:
    """A dataclass as canonical JSON."""
    return msgspec.json.encode(value, order="sorted").decode()


def loads(text: str, kind: type[Plain]) -> Plain:
    """The dataclass that ``dumps`` has written."""
    return msgspec.json.decode(text, type=kind)


def fingerprint(value: object) -> bytes:
    """SHA-256 of a list of plain values."""
    return hashlib.sha256(msgspec.json.encode(value)).digest()


def differences(first: object, second: object) -> list[str]:
    """The paths of the fields in which two commands of the same kind differ; at most eight.

    ``transfers[1].amount``, ``labels["club"]``; where a list has another length, the list.
    """
    paths = _differences(msgspec.to_builtins(first), msgspec.to_builtins(second), "")
    return [path for path, _ in zip(paths, range(_MOST_PATHS), strict=False)]


def _differences(first: Any, second: Any, path: str) -> Iterator[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            inner = f'{path}["{key}"]' if path == "labels" else f"{path}.{key}" if path else key
            yield from _differences(first.get(key), second.get(key), inner)
    elif isinstance(first, _LISTS) and isinstance(second, _LISTS) and len(first) == len(second):
        for number, pair in enumerate(zip(first, second, strict=True)):
            yield from _differences(*pair, f"{path}[{number}]")
    elif first != second:
        yield path
