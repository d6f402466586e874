"""Requests are checked against the limits that their protos declare.

And against one that holds for every text: it has no NUL in it. Not every database stores one, and
what the services answer must not depend on which they are run with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import protovalidate
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from buf.validate import validate_pb2
from fangcheng_kit.contract import ContractError, Method
from fangcheng_kit.errors import InvalidRequest

_NUL = "\0"


class Limits:
    """The limits of the requests of a server, compiled once in a process."""

    def __init__(self) -> None:
        self._validator = _validator()

    def add(self, method: Method) -> None:
        """Compile a call's limits; ``ContractError`` where that fails."""
        if method.limited:
            try:
                self._validator.collect_violations(method.request_type())
            except (protovalidate.CompilationError, protovalidate.EvaluationError) as error:
                raise ContractError(f"{method.path}: {error}") from error

    def check(self, request: Message, data: bytes | None = None, *, limited: bool = True) -> None:
        """Raise ``InvalidRequest`` with everything that is wrong with a request.

        ``data``: its bytes, where they are at hand. ``limited``: its proto declares limits.
        """
        wrong: list[tuple[str, str]] = []
        if limited:
            wrong.extend(map(_described, self._validator.collect_violations(request)))
        # Nearly every request is done with here.
        if b"\0" in (request.SerializeToString() if data is None else data):
            wrong.extend((path, "must not contain NUL") for path in _texts_with_nul(request))
        if wrong:
            raise InvalidRequest(wrong)


@cache
def _validator() -> protovalidate.Validator:
    return protovalidate.Validator()


def _described(violation: protovalidate.Violation) -> tuple[str, str]:
    proto = violation.proto
    path = ""
    for element in proto.field.elements if proto.field is not None else ():
        path += f".{element.field_name}" if path else element.field_name
        if element.subscript is not None:
            value = element.subscript.value
            path += f'["{value}"]' if isinstance(value, str) else f"[{value}]"
    return path, proto.message or proto.rule_id


def _texts_with_nul(message: Message, where: str = "") -> Iterator[str]:
    """The paths of the texts that have a NUL in them; of a map that has one in a key, its own."""
    for field in _fields_with_text(message.DESCRIPTOR):
        path = where + field.name
        if field.is_repeated:
            values = getattr(message, field.name)
            if isinstance(values, Mapping):
                named = [(str(key), value) for key, value in values.items()]
                if any(_NUL in key for key, _ in named):
                    yield path
                parts = [(f'{path}["{key}"]', value) for key, value in named if _NUL not in key]
            else:
                parts = [(f"{path}[{number}]", value) for number, value in enumerate(values)]
        elif field.has_presence and not message.HasField(field.name):
            continue
        else:
            parts = [(path, getattr(message, field.name))]
        for part, value in parts:
            if isinstance(value, Message):
                yield from _texts_with_nul(value, f"{part}.")
            elif isinstance(value, str) and _NUL in value:
                yield part


@cache
def _fields_with_text(message: Descriptor) -> list[FieldDescriptor]:
    """The fields of a message that are texts or have some in them.

    Items whose limits are left to whoever handles them are left to him here too.
    """
    return [field for field in message.fields if not _left_aside(field) and _has_text(field, set())]


def _left_aside(field: FieldDescriptor) -> bool:
    rules = field.GetOptions().Extensions[validate_pb2.field]
    return rules.repeated.items.ignore == validate_pb2.IGNORE_ALWAYS


def _has_text(field: FieldDescriptor, seen: set[str]) -> bool:
    message = field.message_type
    if message is None:
        return field.type == FieldDescriptor.TYPE_STRING
    if message.full_name in seen:
        return False
    seen.add(message.full_name)
    return any(_has_text(one, seen) for one in message.fields)
