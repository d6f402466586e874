"""What the contracts say, read from the options beside the calls.

Nothing of the kit is used in here: these tests ask whether the kit keeps what the protos promise.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import Descriptor, MethodDescriptor

import fangcheng
from fangcheng.access.v1 import access_pb2


def calls() -> Iterator[MethodDescriptor]:
    """Every call of every service of the contracts."""
    for folder in map(Path, fangcheng.__path__):
        for path in sorted(folder.glob("*/v1/*_pb2.py")):
            name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
            for service in importlib.import_module(name).DESCRIPTOR.services_by_name.values():
                yield from service.methods


def need(call: MethodDescriptor) -> access_pb2.Access:
    """Who may make a call, as its proto says."""
    return call.GetOptions().Extensions[access_pb2.access]


def reaches_players(call: MethodDescriptor) -> bool:
    """Whether its answers can reach a player: he calls himself, or a gateway that acts for him."""
    return access_pb2.ROLE_PLAYER in need(call).roles or need(call).scope == "act_as"


def within(*messages: Descriptor) -> dict[str, Descriptor]:
    """These messages and all that can be in them, by name."""
    found: dict[str, Descriptor] = {}
    left = list(messages)
    while left:
        message = left.pop()
        if message.full_name not in found:
            found[message.full_name] = message
            left += [field.message_type for field in message.fields if field.message_type]
    return found
