"""What the protos say of each call: its kind, who may make it, whether its request has limits."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.descriptor import (
    Descriptor,
    FieldDescriptor,
    MethodDescriptor,
    OneofDescriptor,
)
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from fangcheng.access.v1 import access_pb2
from fangcheng_kit.errors import PermissionDenied
from fangcheng_kit.principal import Kind, Principal

# The number of protovalidate's options on messages, fields and oneofs.
_LIMITS = 1159

_KINDS: dict[int, Kind] = {
    access_pb2.ROLE_PLAYER: "player",
    access_pb2.ROLE_OPERATOR: "operator",
    access_pb2.ROLE_SERVICE: "service",
}


OWN_SERVICES = frozenset({"evaluation", "table", "matchmaking", "wallet", "console"})
"""The names of the suite's own services."""


class ContractError(Exception):
    """A proto lacks what the kit needs to serve it."""


@dataclass(frozen=True, slots=True)
class Need:
    """Who may make a call."""

    kinds: frozenset[Kind]
    services: frozenset[str]
    """Names of the services that may; empty: every service."""
    scope: str
    """A scope that the token must carry besides; empty: none."""
    studio_only: bool = False
    """None of the suite's own services may."""
    player_calls_per_minute: int = 0
    """How often one player may call; 0: as often as all calls together."""

    def check(self, principal: Principal) -> None:
        """Raise ``PermissionDenied`` unless this caller may."""
        allowed = principal.kind in self.kinds
        if principal.kind == "service":
            allowed = allowed and self._admits(principal.id)
        if not allowed:
            raise PermissionDenied("CALLER_NOT_ALLOWED", f"{self}.")
        if self.scope and self.scope not in principal.scopes:
            raise PermissionDenied("SCOPE_MISSING", f"The token lacks the scope {self.scope}.")

    def _admits(self, service: str) -> bool:
        if self.studio_only and service in OWN_SERVICES:
            return False
        return not self.services or service in self.services

    def __str__(self) -> str:
        names = []
        for kind in sorted(self.kinds):
            only = " " + ", ".join(sorted(self.services)) if self.services else ""
            only += " of the studio's" if self.studio_only else ""
            names.append(kind + (only if kind == "service" else ""))
        return "This call is for " + " or ".join(names)


OPERATORS = Need(frozenset({"operator"}), frozenset(), "")
"""Of calls that no proto of ours declares, and that are not for everybody."""


@dataclass(frozen=True, slots=True)
class Method:
    """A call as its proto declares it."""

    path: str
    """``/package.Service/Method``."""
    service: str
    name: str
    kind: str
    """``unary``, ``client_stream``, ``server_stream`` or ``bidi_stream``."""
    need: Need | None
    """``None``: open to everybody who reaches the port."""
    request_type: type[Message]
    limited: bool
    """The request, or a message in it, has limits to check."""


def methods_of(full_name: str, *, is_open: bool = False) -> list[Method]:
    """The calls of a service whose stubs are imported.

    Raises ``ContractError`` for a service that is not known, or a call that does not say who may
    make it, unless ``is_open``.
    """
    try:
        service = Default().FindServiceByName(full_name)
    except KeyError:
        raise ContractError(f"{full_name}: its stubs are not imported") from None
    return [_method(full_name, method, is_open) for method in service.methods]


def _method(service: str, method: MethodDescriptor, is_open: bool) -> Method:
    return Method(
        path=f"/{service}/{method.name}",
        service=service,
        name=method.name,
        kind=_kind(method),
        need=None if is_open else _need(service, method),
        request_type=GetMessageClass(method.input_type),
        limited=_limited(method.input_type, set()),
    )


def _kind(method: MethodDescriptor) -> str:
    if method.client_streaming:
        return "bidi_stream" if method.server_streaming else "client_stream"
    return "server_stream" if method.server_streaming else "unary"


def _need(service: str, method: MethodDescriptor) -> Need:
    access = method.GetOptions().Extensions[access_pb2.access]
    kinds = frozenset(_KINDS[role] for role in access.roles if role in _KINDS)
    if not kinds:
        raise ContractError(
            f"{service}.{method.name} does not say who may call it: give it the option "
            "(fangcheng.access.v1.access) with at least one role"
        )
    return Need(
        kinds,
        frozenset(access.services),
        access.scope,
        access.studio_only,
        max(0, access.player_calls_per_minute),
    )


def _limited(message: Descriptor, seen: set[str]) -> bool:
    """Whether a message, or one that it contains, declares limits."""
    if message.full_name in seen:
        return False
    seen.add(message.full_name)
    declares = (
        _has_limits(message)
        or any(map(_has_limits, message.fields))
        or any(map(_has_limits, message.oneofs))
    )
    return declares or any(
        field.message_type is not None and _limited(field.message_type, seen)
        for field in message.fields
    )


def _has_limits(part: Descriptor | FieldDescriptor | OneofDescriptor) -> bool:
    options: Message = part.GetOptions()
    return any(field.number == _LIMITS for field, _ in options.ListFields())
