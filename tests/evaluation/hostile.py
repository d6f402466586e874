"""Messages with anything in them that the wire can carry, for hypothesis."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from fangcheng_rules.tiles import code

_TILES = st.sampled_from([code(kind) for kind in range(34)])
_WORDS = st.sampled_from(
    [
        *("baishan_kele", "cap", "piao", "discarder_pays", "escape_penalty", "ting"),
        *("chi", "pong", "exposed_kong", "added_kong", "concealed_kong"),
        *("self_draw", "discard", "rob_kong", "exposed", "added", "concealed"),
        *("", "nothing of the kind", "\x00", "碰" * 40),
    ]
)
_BOUNDS = {
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}
_MOST_ITEMS = {"concealed": 14, "tiles": 4, "seats": 4, "melds": 4}


def _scalar(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.type == FieldDescriptor.TYPE_BOOL:
        return st.booleans()
    if field.type == FieldDescriptor.TYPE_STRING:
        return _WORDS
    low, high = _BOUNDS[field.type]
    return st.one_of(_TILES, st.integers(0, 14), st.sampled_from([low, high, -1 % (high + 1)]))


@st.composite
def messages(draw: st.DrawFn, descriptor: Descriptor) -> Message:
    """A message of this type with random fields set to random values."""
    message = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if draw(st.integers(0, 9)) == 0:
            continue
        place = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            for key in draw(st.lists(_WORDS, max_size=3)):
                place[key].CopyFrom(draw(messages(value.message_type)))
        elif field.is_repeated:
            most = _MOST_ITEMS.get(field.name, 3)
            size = draw(st.one_of(st.just(most), st.integers(0, most + 1)))
            for _ in range(size):
                if field.message_type is None:
                    place.append(draw(_scalar(field)))
                else:
                    place.add().CopyFrom(draw(messages(field.message_type)))
        elif field.message_type is not None:
            place.CopyFrom(draw(messages(field.message_type)))
        else:
            setattr(message, field.name, draw(_scalar(field)))
    return message


@st.composite
def mutated(draw: st.DrawFn, originals: Sequence[Message]) -> Message:
    """One of these messages with a few of its numbers, words and flags changed, or left out."""
    message = copy.deepcopy(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 3))):
        owner, field = draw(st.sampled_from(list(_leaves(message))))
        if field.is_repeated:
            place = getattr(owner, field.name)
            at = draw(st.integers(0, len(place)))
            place[at : at + draw(st.integers(0, 1))] = draw(st.lists(_scalar(field), max_size=2))
        elif draw(st.booleans()):
            owner.ClearField(field.name)
        else:
            setattr(owner, field.name, draw(_scalar(field)))
    return message


def _leaves(message: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    """Every field of the message, and of those in it, that holds no message itself."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None:
            yield message, field
        elif field.is_repeated and not field.message_type.GetOptions().map_entry:
            for part in getattr(message, field.name):
                yield from _leaves(part)
        elif not field.is_repeated and message.HasField(field.name):
            yield from _leaves(getattr(message, field.name))
