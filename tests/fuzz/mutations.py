"""Messages that no honest client sends: made up, and changed ones, as messages and as bytes."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

_WORDS = (
    *("", "a", "t1", "ann", "silver", "points", "baishan_kele", "jintan", "free", "ting", "piao"),
    *("discard", "pass", "win", "chi", "exposed_kong", "front", "back", "house", "player:ann"),
    *("\x00", "a\x00b", "..", "../../etc/passwd", "' OR 1=1 --", "%s%n", "碰" * 40, "\u202e\ufeff"),
    *("\U0001f004", "e\u0301", " ", "-1", "1e999", "NaN", "9" * 40, "\ud7ff\ue000", "A" * 300),
)  # fmt: skip
_NUMBERS = (0, 1, 2, 3, 4, 5, 7, 11, 13, 14, 41, 47, 58, 100, 255, 1_000, 2**16, 2**31 - 1, 2**53)
_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_REALS = (0.0, 1.0, -1.0, 1e-300, 1e308, float("inf"), float("nan"))
_DEEPEST = 5
"""Messages within messages that `made` makes."""


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def places(message: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    """Every field of a message and of those in it that are set."""
    for field in message.DESCRIPTOR.fields:
        yield message, field
        if field.message_type is None or is_map(field):
            continue
        if field.is_repeated:
            for part in getattr(message, field.name):
                yield from places(part)
        elif message.HasField(field.name):
            yield from places(getattr(message, field.name))


def _parts(message: Message) -> list[Message]:
    """The messages right within a message."""
    found: list[Message] = []
    for part, value in message.ListFields():
        if part.message_type is not None and not is_map(part):
            found += value if part.is_repeated else [value]
    return found


@dataclasses.dataclass(slots=True)
class Mutator:
    """Makes and changes messages."""

    rng: random.Random
    known: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    """By a field's name: values that mean something where the message goes."""

    def scalar(self, field: FieldDescriptor) -> Any:
        """A value of a field that holds no message."""
        kind = field.cpp_type
        if field.name in self.known and self.rng.random() < 0.7:
            known = self.rng.choice(self.known[field.name])
            if isinstance(known, int) == (kind in _INTEGERS):
                return known
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return self.rng.random() < 0.5
        if kind == FieldDescriptor.CPPTYPE_ENUM:
            return self.rng.choice((0, 1, 2, 3, 99, -1, 2**31 - 1))
        if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
            return self.rng.choice(_REALS if kind == FieldDescriptor.CPPTYPE_DOUBLE else _REALS[:4])
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self.rng.randbytes(self.rng.choice((0, 1, 8, 32, 33, 64, 4_000)))
        if kind == FieldDescriptor.CPPTYPE_STRING:
            return (
                self.rng.choice(_WORDS)
                if self.rng.random() < 0.97
                else "x" * self.rng.choice((5_000, 200_000))
            )
        low, high = _INTEGERS[kind]
        number = self.rng.choice((low, high, -1, *_NUMBERS, *_NUMBERS))
        return min(max(number, low), high)

    def made(self, descriptor: Descriptor, depth: int = 0) -> Message:
        """A message of this type with most fields set, to anything."""
        message = GetMessageClass(descriptor)()
        for field in descriptor.fields:
            if self.rng.random() < 0.3 or (depth >= _DEEPEST and field.message_type is not None):
                continue
            self._set(message, field, depth)
        return message

    def _set(self, message: Message, field: FieldDescriptor, depth: int) -> None:
        place: Any = getattr(message, field.name)
        if is_map(field):
            key, value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
            for _ in range(self.rng.choice((0, 1, 2, 9))):
                if value.message_type is None:
                    place[self.scalar(key)] = self.scalar(value)
                else:
                    place[self.scalar(key)].CopyFrom(self.made(value.message_type, depth + 1))
        elif field.is_repeated:
            for _ in range(self.rng.choice((0, 1, 1, 2, 4, 4, 5, 14, 40))):
                if field.message_type is None:
                    place.append(self.scalar(field))
                elif depth < _DEEPEST:
                    place.add().CopyFrom(self.made(field.message_type, depth + 2))
        elif field.message_type is not None:
            place.CopyFrom(self.made(field.message_type, depth + 1))
        else:
            setattr(message, field.name, self.scalar(field))

    def mutate(self, message: Message) -> None:
        """Change one field somewhere in a message: another value, none, one more, fewer, another
        order."""
        owner = message
        while self.rng.random() < 0.7 and (parts := _parts(owner)):
            owner = self.rng.choice(parts)
        if not owner.DESCRIPTOR.fields:
            return
        field = self.rng.choice(owner.DESCRIPTOR.fields)
        place: Any = getattr(owner, field.name)
        if is_map(field) or not field.is_repeated or not place or self.rng.random() < 0.3:
            if self.rng.random() < 0.25:
                owner.ClearField(field.name)
            else:
                self._set(owner, field, _DEEPEST - 1)
            return
        at, other = self.rng.randrange(len(place)), self.rng.randrange(len(place))
        change = self.rng.randrange(4)
        if change == 0:
            del place[at]
        elif change == 1:
            place.extend([place[at]] * self.rng.choice((1, 1, 200)))
        elif field.message_type is not None:
            place[at].CopyFrom(place[other])
        elif change == 2:
            place[at], place[other] = place[other], place[at]
        else:
            place[at] = self.scalar(field)

    def broken(self, data: bytes) -> bytes:
        """Bytes that were a message: cut, flipped, with unknown, doubled or nested fields."""
        change, at = self.rng.randrange(8), self.rng.randrange(len(data) + 1)
        if change == 0:
            return data[:at]
        if change == 1:
            return data + data
        if change == 2:
            return self.rng.randbytes(self.rng.choice((1, 5, 60, 3_000)))
        if self.rng.random() < 0.002:  # more than anybody takes
            return data + b"\xfa\x7f" + _length(6_000_000) + bytes(6_000_000)
        if change == 3:  # fields that nobody knows: a number, some bytes
            return data + b"\xf8\x7f" + b"\xff" * 9 + b"\x01" + b"\xfa\x7f\x05other"
        if change == 4:  # nested deeper than anything here is
            nested = b""
            for _ in range(self.rng.choice((30, 99, 200, 2_000))):
                nested = bytes([self.rng.randrange(1, 16) << 3 | 2]) + _length(len(nested)) + nested
            return data + nested
        if change == 5:  # a text that is no text
            return data + bytes([self.rng.randrange(1, 8) << 3 | 2, 3]) + b"\xc3\x28\xff"
        if change == 6:  # groups, lengths past the end, fields of another type
            return data[:at] + self.rng.choice(
                (b"\x0b", b"\x0c", b"\x0a\xff\xff\xff\xff\x07", b"\x0d\x00")
            )
        flipped = bytearray(data or b"\x00")
        for _ in range(self.rng.choice((1, 1, 2, 8))):
            flipped[self.rng.randrange(len(flipped))] = self.rng.randrange(256)
        return bytes(flipped)


def _length(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def connection(rng: random.Random) -> bytes:
    """What a client of another mind sends on a connection: HTTP/2 gone wrong, or none."""
    if rng.random() < 0.3:
        return rng.choice((b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"")) + rng.randbytes(200)
    data = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    for _ in range(rng.choice((1, 3, 30))):
        payload = rng.randbytes(rng.choice((0, 4, 5, 8, 60)))
        length = len(payload) if rng.random() < 0.9 else rng.choice((0, 2**24 - 1))
        kind, flags, stream = rng.randrange(12), rng.randrange(256), rng.choice((0, 1, 3, 2**31))
        data += length.to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload
    return data
