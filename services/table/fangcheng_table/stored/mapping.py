"""Goes between frozen values and messages whose fields have the same names.

How each field goes is worked out once, from the type hints of the value and the message's
descriptor: numbers, texts and bytes as they are; `| None` as a field that is absent; tuples, lists
and sets as repeated fields; a tuple within a tuple as a message with the one field `items`;
mappings as maps; an enumeration as its text; one of several classes as a oneof `kind`, whose
fields are named after them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

Convert = Callable[[Any], Any]
Way = tuple[Convert, Convert]
"""From a value to what a message's field is set to, and back."""

Special = Mapping[type, Way]
"""Classes that go their own way."""


class Unmapped(TypeError):
    """A value and a message do not have the same fields: a fault of the code."""


def field_name(kind: type) -> str:
    """The name of a class as a field: `HandEnded` is `hand_ended`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def mapped(hint: Any, descriptor: Descriptor, special: Special, leave_out: frozenset[str]) -> Way:
    """The way between values of a class, or of one of several, and a message; raises `Unmapped`.

    `leave_out`: fields of the outermost class that are not stored; they are as the class has them.
    """
    if hint in special:
        return special[hint]
    message = GetMessageClass(descriptor)
    if get_origin(hint) in (Union, UnionType):
        return _one_of(get_args(hint), descriptor, message, special)
    return _fields(hint, descriptor, message, special, leave_out)


def _fields(
    kind: type,
    descriptor: Descriptor,
    message: Callable[..., Message],
    special: Special,
    leave_out: frozenset[str],
) -> Way:
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name not in leave_out}
    fields = {field.name: field for field in descriptor.fields}
    if hints.keys() != fields.keys():
        differing = ", ".join(sorted(hints.keys() ^ fields.keys()))
        raise Unmapped(f"{kind.__name__} and {descriptor.full_name} differ in {differing}")
    ways = [(name, *_field(hints[name], fields[name], special)) for name in hints]
    options = [name for name, hint in hints.items() if NoneType in get_args(hint)]
    plain = [(name, read) for name, _, read in ways if name not in options]
    absent = [(name, read) for name, _, read in ways if name in options]

    # Of most fields a message takes what the value has; and what is empty need not be told.
    given = [name for name, write, _ in ways if write is _as_it_is]
    written = [(name, write) for name, write, _ in ways if write is not _as_it_is]

    def to(value: Any) -> Message:
        told = {name: one for name in given if (one := getattr(value, name))}
        for name, write in written:
            told[name] = write(getattr(value, name))
        return message(**told)

    def back(stored: Message) -> Any:
        values = {name: read(getattr(stored, name)) for name, read in plain}
        for name, read in absent:
            values[name] = read(getattr(stored, name)) if stored.HasField(name) else None
        return kind(**values)

    return to, back


def _one_of(
    kinds: tuple[type, ...],
    descriptor: Descriptor,
    message: Callable[..., Message],
    special: Special,
) -> Way:
    names = (
        _SCALARS if set(kinds) <= _SCALARS.keys() else {kind: field_name(kind) for kind in kinds}
    )
    fields = {field.name: field for field in descriptor.fields}
    missing = {names[kind] for kind in kinds} - fields.keys()
    if missing:
        raise Unmapped(f"{descriptor.full_name} lacks {', '.join(sorted(missing))}")
    writes, reads = {}, {}
    for kind in kinds:
        name = names[kind]
        write, reads[name] = _field(kind, fields[name], special)
        writes[kind] = name, write

    def to(value: Any) -> Message:
        name, write = writes[type(value)]
        return message(**{name: write(value)})

    def back(stored: Message) -> Any:
        name = stored.WhichOneof("kind")
        if name is None:
            raise LookupError(f"{descriptor.full_name} of a kind that is not known here")
        return reads[name](getattr(stored, name))

    return to, back


_SCALARS: dict[type, str] = {bool: "flag", int: "number", str: "text"}


def _as_it_is(value: Any) -> Any:
    return value


def _field(hint: Any, field: FieldDescriptor, special: Special) -> Way:
    hints = [one for one in get_args(hint) if one is not NoneType]
    if NoneType in get_args(hint):
        if len(hints) > 1:
            raise Unmapped(f"{field.full_name}: one of several, or None")
        write, read = _field(hints[0], field, special)
        return (lambda value: None if value is None else write(value)), read
    origin = get_origin(hint)
    if origin in _CONTAINERS:
        if not field.is_repeated:
            return _listed(hint, field, special)
        return _repeated(_CONTAINERS[origin], hints[0], field, special)
    if origin is not None and issubclass_of(origin, Mapping):
        value = _message(field).fields_by_name["value"]
        write, read = _field(hints[1], value, special)
        return (
            lambda given: {key: write(one) for key, one in given.items()},
            lambda stored: {key: read(one) for key, one in stored.items()},
        )
    if field.message_type is not None:
        return mapped(hint, field.message_type, special, frozenset())
    if origin is Literal:
        return _as_it_is, _as_it_is
    if isinstance(hint, type) and issubclass(hint, Enum):
        return (lambda value: value.value), hint
    return _as_it_is, _as_it_is


_CONTAINERS: dict[Any, Convert] = {tuple: tuple, list: list, set: set}


def issubclass_of(origin: Any, kind: type) -> bool:
    """Whether the origin of a hint is a class of this kind."""
    return isinstance(origin, type) and issubclass(origin, kind)


def _repeated(container: Convert, hint: Any, field: FieldDescriptor, special: Special) -> Way:
    if field.message_type is None:
        return _as_it_is, container
    write, read = _item(hint, field, special)
    return (
        lambda values: [write(value) for value in values],
        lambda stored: container([read(one) for one in stored]),
    )


def _message(field: FieldDescriptor) -> Descriptor:
    if field.message_type is None:
        raise Unmapped(f"{field.full_name} is no message")
    return field.message_type


def _item(hint: Any, field: FieldDescriptor, special: Special) -> Way:
    if get_origin(hint) in _CONTAINERS:
        return _listed(hint, field, special)
    return mapped(hint, _message(field), special, frozenset())


def _listed(hint: Any, field: FieldDescriptor, special: Special) -> Way:
    """A sequence as a message with the one field `items`."""
    descriptor = _message(field)
    message = GetMessageClass(descriptor)
    write, read = _repeated(
        _CONTAINERS[get_origin(hint)],
        get_args(hint)[0],
        descriptor.fields_by_name["items"],
        special,
    )
    return (lambda values: message(items=write(values))), (lambda stored: read(stored.items))
