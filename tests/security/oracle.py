"""What must come of a call, from the options beside it and who calls; nothing here is the kit's."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.descriptor import MethodDescriptor

from fangcheng.access.v1 import access_pb2

from . import contracts

ADMITTED = "admitted"
"""The handler was reached. It may refuse what is asked for, with any status of its contract."""

ROLES = {
    "player": access_pb2.ROLE_PLAYER,
    "operator": access_pb2.ROLE_OPERATOR,
    "service": access_pb2.ROLE_SERVICE,
}
SUITE = ("evaluation", "table", "matchmaking", "wallet", "console")
"""Services of the suite's own."""
EDGE = "proxy/edge"
"""A proxy: it is nobody, and passes on those who show their tokens."""


@dataclass(frozen=True)
class Caller:
    """Somebody who calls, and who he is in truth."""

    name: str
    metadata: tuple[tuple[str, str | bytes], ...] = ()
    kind: str = ""
    """`player`, `operator`, `service` or `viewer`; empty: nobody can tell who it is."""
    id: str = ""
    scopes: frozenset[str] = frozenset()
    refused: str = ""
    """The status of whatever he calls, for what is wrong with his metadata besides."""
    certificate: str = EDGE
    """Whom the certificate of his connection names."""
    only_at: str = ""
    """The one process that takes him for who he is; the others refuse him."""


def expected(process: str, call: MethodDescriptor, caller: Caller) -> str:
    """A status, or `ADMITTED`."""
    need = contracts.need(call)
    if not caller.kind:
        return "UNAUTHENTICATED"
    if caller.refused:
        return caller.refused
    if caller.only_at not in ("", process):
        return "PERMISSION_DENIED"
    if ROLES.get(caller.kind) not in need.roles:
        return "PERMISSION_DENIED"
    if caller.kind == "service" and need.services and caller.id not in need.services:
        return "PERMISSION_DENIED"
    if caller.kind == "service" and need.studio_only and caller.id in SUITE:
        return "PERMISSION_DENIED"
    if need.scope and need.scope not in caller.scopes:
        return "PERMISSION_DENIED"
    return ADMITTED
