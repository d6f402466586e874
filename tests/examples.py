"""The examples in the comments of the contracts, of each message that a caller fills in."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
protodoc: Any = importlib.import_module("protodoc")


def examples_of(files: Sequence[FileDescriptorProto]) -> dict[str, list[str]]:
    """Text format in braces, by the full name of the message; the files are of `protodoc.load`."""
    found = {}
    for file in files:
        comments = protodoc.Comments(file)
        for name, element, path in protodoc.elements(file):
            if isinstance(element, DescriptorProto):
                _, _, given = comments.of(*path).partition("Example")
                found[name] = re.findall(r"`(\{.*?\})`", " ".join(given.split()))
    return found
