"""Messages as what the page reads."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

MOST_EXACT = 2**53
"""Up to here a number of JavaScript holds every whole number; greater ones are sent as text."""


def plain(message: Message) -> Any:
    """A message as JSON: fields by their names of the contract, whether they are set or not.

    Whole numbers are numbers (text beyond 2^53), moments are milliseconds since 1970, enums are
    words without their prefix (`open`; those of a newer service, unknown here, their number as
    text), what is not set of messages, of a oneof or of `optional` is null.
    """
    if isinstance(message, Timestamp):
        return message.ToMilliseconds()
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def whole(number: int) -> int | str:
    """A number of any size as the page reads it."""
    return number if abs(number) <= MOST_EXACT else str(number)


def _field(message: Message, field: Any) -> Any:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        return {str(key): _value(field, one) for key, one in getattr(message, field.name).items()}
    if field.is_repeated:
        return [_value(field, one) for one in getattr(message, field.name)]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(field, getattr(message, field.name))


def _value(field: Any, value: Any) -> Any:
    if isinstance(value, Message):
        return plain(value)
    if field.enum_type is not None:
        # HOLD_STATE_OPEN of HoldState: all words of an enum begin with the first's.
        unspecified = field.enum_type.values_by_number[0].name
        known = field.enum_type.values_by_number.get(value)
        if known is None:
            return str(value)
        word: str = known.name
        return word.removeprefix(unspecified.removesuffix("UNSPECIFIED")).lower()
    if isinstance(value, int) and not isinstance(value, bool):
        return whole(value)
    return value
